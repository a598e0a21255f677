//! Events as the public documentation has them, and as nobody should write them.

use super::*;

fn asked(text: &str) -> RealtimeAsked {
    RealtimeAsked::read(text.as_bytes()).expect(text)
}

#[test]
fn what_is_sound_is_counted_apart_from_the_text_beside_it() {
    let sound = "QUJD".repeat(200);
    let text = "word ".repeat(100);
    let event = format!(
        r#"{{"type":"conversation.item.create","item":{{"content":[{{"type":"input_text","text":"{text}"}},{{"type":"input_audio","audio":"{sound}"}},{{"type":"input_image","image_url":"data:image/png;base64,{sound}"}},{{"type":"input_audio","audio":""}}]}}}}"#
    );
    assert_eq!(
        media_bytes(event.as_bytes()),
        1600 + "data:image/png;base64,".len()
    );
    let none = format!(r#"{{"text":"{sound}","audio":"","image_url":"https://a.test/{text}"}}"#);
    assert_eq!(media_bytes(none.as_bytes()), 0);
    let escaped = format!(r#"{{"text":"\"audio\":\"{sound}\""}}"#);
    assert_eq!(media_bytes(escaped.as_bytes()), 0);
}

#[test]
fn an_answer_outside_of_the_conversation_is_told_from_others() {
    let of = |response: &str| {
        let text = format!(r#"{{"type":"response.create","response":{response}}}"#);
        RealtimeAsked::read(text.as_bytes())
            .expect("an event")
            .is_apart
    };
    assert!(of(r#"{"conversation":"none"}"#));
    assert!(of(r#"{"input":[]}"#));
    assert!(!of(r#"{"conversation":"auto"}"#));
    assert!(!of(r#"{"conversation":null,"input":null}"#));
}

#[test]
fn a_cap_is_a_plain_number_and_of_two_names_the_greater_one() {
    let of = |text: &str| RealtimeAsked::read(text.as_bytes()).map(|asked| asked.cap);
    let both = r#"{"type":"session.update","session":{"max_output_tokens":1,"max_response_output_tokens":5000}}"#;
    assert_eq!(of(both), Ok(Some(Cap::Tokens(5000))));
    let open = r#"{"type":"session.update","session":{"max_output_tokens":"inf","max_response_output_tokens":7}}"#;
    assert_eq!(of(open), Ok(Some(Cap::Open)));
    for odd in ["5.000e3", "5000e0", "5.0", "-1", "[5]"] {
        let text =
            format!(r#"{{"type":"response.create","response":{{"max_output_tokens":{odd}}}}}"#);
        assert_eq!(of(&text), Err(NoEvent::Cap), "{odd}");
    }
    let told = RealtimeTold::read(
        br#"{"type":"session.updated","session":{"model":"m","max_output_tokens":400}}"#,
    );
    let Some(RealtimeTold::Session { cap, .. }) = told else {
        panic!("{told:?}");
    };
    assert_eq!(cap, Some(Cap::Tokens(400)));
}

#[test]
fn a_clients_event_says_its_models_its_cap_and_its_id() {
    let update = asked(
        r#"{"type":"session.update","event_id":"e1","session":{"type":"realtime","model":"gpt-realtime","max_output_tokens":"inf","audio":{"input":{"transcription":{"model":"gpt-4o-transcribe"},"turn_detection":{"type":"server_vad"}}}}}"#,
    );
    assert_eq!(
        (&*update.name, update.id.as_deref()),
        ("session.update", Some("e1"))
    );
    assert_eq!(update.model.as_deref(), Some("gpt-realtime"));
    assert_eq!(update.transcription.as_deref(), Some("gpt-4o-transcribe"));
    assert_eq!(update.cap, Some(Cap::Open));
    let older = asked(
        r#"{"type":"transcription_session.update","session":{"input_audio_transcription":{"model":"whisper-1"},"max_response_output_tokens":9}}"#,
    );
    assert_eq!(older.transcription.as_deref(), Some("whisper-1"));
    assert_eq!(older.cap, Some(Cap::Tokens(9)));
    let create = asked(
        r#"{"response":{"max_output_tokens":200,"instructions":"\"model\":\"x\""},"type":"response.create"}"#,
    );
    assert_eq!(create.cap, Some(Cap::Tokens(200)));
    assert!(create.model.is_none());
    let off = asked(
        r#"{"type":"session.update","session":{"audio":{"input":{"transcription":null}},"model":null}}"#,
    );
    assert_eq!((off.transcription, off.model), (None, None));
}

#[test]
fn an_event_that_two_readers_could_read_in_two_ways_is_none() {
    for (none, why) in [
        ("[]", NoEvent::Unread),
        ("{", NoEvent::Unread),
        (r#"{"a":1}"#, NoEvent::Unread),
        (r#"{"type":1}"#, NoEvent::Unread),
        (
            r#"{"type":"input_audio_buffer.commit","type":"response.create"}"#,
            NoEvent::Unread,
        ),
        (
            r#"{"type":"input_audio_buffer.commit","Type":"response.create"}"#,
            NoEvent::Unread,
        ),
        (
            r#"{"type":"a","session":{"model":"a","model":"b"}}"#,
            NoEvent::Unread,
        ),
        (
            r#"{"type":"a","session":{"model":"a"},"session":{"model":"b"}}"#,
            NoEvent::Unread,
        ),
        (
            r#"{"type":"a","session":{"model":"m"},"response":{"model":"m"}}"#,
            NoEvent::Unread,
        ),
        (
            r#"{"type":"a","session":{"audio":{"input":{"transcription":{"model":"a","model":"b"}}}}}"#,
            NoEvent::Unread,
        ),
        (
            r#"{"type":"a","session":{"audio":{"input":{"transcription":{"model":"a"}}},"input_audio_transcription":{"model":"b"}}}"#,
            NoEvent::Unread,
        ),
        (
            r#"{"type":"a","session":{"model":"no name"}}"#,
            NoEvent::Model,
        ),
        (r#"{"type":"a","session":{"model":7}}"#, NoEvent::Model),
        (
            r#"{"type":"a","session":{"input_audio_transcription":{"model":{}}}}"#,
            NoEvent::Model,
        ),
    ] {
        assert_eq!(RealtimeAsked::read(none.as_bytes()), Err(why), "{none}");
    }
}

#[test]
fn an_event_passes_byte_for_byte_but_for_the_name_of_its_model_and_its_id() {
    for (event, model, id, made) in [
        (
            r#"{"type":"a", "session":{"model" : "m"}}"#,
            None,
            None,
            r#"{"type":"a", "session":{"model" : "m"}}"#,
        ),
        (
            r#"{"type":"a", "session":{"model" : "m"}}"#,
            Some("n"),
            None,
            r#"{"type":"a", "session":{"model" : "n"}}"#,
        ),
        (
            r#"{"type":"a"}"#,
            Some("n"),
            Some("i\""),
            r#"{"event_id":"i\"","type":"a"}"#,
        ),
        (
            r#"{"event_id":null,"type":"a"}"#,
            None,
            Some("i"),
            r#"{"event_id":"i","type":"a"}"#,
        ),
        (
            r#"{"session":{"model":"m"},"type":"a","event_id":""}"#,
            Some("n"),
            Some("i"),
            r#"{"session":{"model":"n"},"type":"a","event_id":"i"}"#,
        ),
    ] {
        let read = asked(event).edited(event.as_bytes(), model, id);
        assert_eq!(String::from_utf8(read).expect("text"), made);
    }
}

#[test]
fn a_servers_event_tells_what_an_answer_used() {
    let done = RealtimeTold::read(
        br#"{"type":"response.done","event_id":"e","response":{"object":"realtime.response","id":"resp_1","status":"completed","output":[{"type":"message"}],"usage":{"total_tokens":253,"input_tokens":132,"output_tokens":121,"input_token_details":{"text_tokens":119,"audio_tokens":13,"image_tokens":0,"cached_tokens":64,"cached_tokens_details":{"text_tokens":58,"audio_tokens":6,"image_tokens":0}},"output_token_details":{"text_tokens":30,"audio_tokens":91}}}}"#,
    );
    let Some(RealtimeTold::Ended {
        id,
        usage,
        is_good: true,
    }) = done
    else {
        panic!("{done:?}");
    };
    let Reading::Valid(usage) = *usage else {
        panic!("{usage:?}");
    };
    assert_eq!(&*id, "resp_1");
    assert_eq!(
        (usage.prompt, usage.completion, usage.cached),
        (Some(132), Some(121), Some(64))
    );
    // Of 13 of sound six were cached, and have the price of what is cached.
    assert_eq!(
        (usage.audio_prompt, usage.audio_completion),
        (Some(7), Some(91))
    );
    assert!(!usage.doubtful);
    let failed = RealtimeTold::read(
        br#"{"type":"response.done","response":{"id":"r","status":"failed","usage":null}}"#,
    );
    let nothing = Box::new(Reading::Absent);
    let ended = RealtimeTold::Ended {
        id: "r".into(),
        usage: nothing,
        is_good: false,
    };
    assert_eq!(failed, Some(ended));
}

#[test]
fn a_servers_other_events_tell_of_beginnings_transcriptions_sessions_and_refusals() {
    let told = |text: &str| RealtimeTold::read(text.as_bytes()).expect(text);
    assert_eq!(
        told(r#"{"type":"response.created","response":{"id":"resp_1","usage":null}}"#),
        RealtimeTold::Begun {
            id: "resp_1".into()
        }
    );
    assert_eq!(
        told(r#"{"type":"response.output_audio.delta","response_id":"r","delta":"AAAA"}"#),
        RealtimeTold::Piece {
            id: "r".into(),
            is_audio: true
        }
    );
    assert_eq!(
        told(
            r#"{"type":"response.output_text.delta","response_id":"r","delta":"\"response.done\""}"#
        ),
        RealtimeTold::Piece {
            id: "r".into(),
            is_audio: false
        }
    );
    assert_eq!(
        told(
            r#"{"type":"session.updated","session":{"model":"m","audio":{"input":{"transcription":{"model":"t"}}}}}"#
        ),
        RealtimeTold::Session {
            model: Some("m".into()),
            transcription: Some("t".into()),
            cap: None,
        }
    );
    assert_eq!(
        told(
            r#"{"type":"error","error":{"type":"invalid_request_error","event_id":"e9","message":"no"}}"#
        ),
        RealtimeTold::Refused {
            event: Some("e9".into())
        }
    );
    let seconds = told(
        r#"{"type":"conversation.item.input_audio_transcription.completed","usage":{"type":"duration","seconds":3.2}}"#,
    );
    assert!(
        matches!(
            seconds,
            RealtimeTold::Transcribed {
                seconds: Some(4),
                ..
            }
        ),
        "{seconds:?}"
    );
    let tokens = told(
        r#"{"type":"conversation.item.input_audio_transcription.completed","usage":{"type":"tokens","input_tokens":14,"input_token_details":{"audio_tokens":10,"text_tokens":4},"output_tokens":5,"total_tokens":19}}"#,
    );
    let RealtimeTold::Transcribed {
        usage,
        seconds: None,
        item: None,
    } = tokens
    else {
        panic!("{tokens:?}");
    };
    let Reading::Valid(usage) = *usage else {
        panic!("{usage:?}")
    };
    assert_eq!(
        (usage.prompt, usage.completion, usage.audio_prompt),
        (Some(14), Some(5), Some(10))
    );
    assert_eq!(
        told(r#"{"type":"rate_limits.updated"}"#),
        RealtimeTold::Other
    );
    for none in [
        "",
        "[]",
        r#"{"type":7}"#,
        r#"{"type":"response.done","response":{}}"#,
    ] {
        assert_eq!(RealtimeTold::read(none.as_bytes()), None, "{none}");
    }
}

#[test]
fn what_an_account_keeps_is_found_in_an_event_and_items_of_the_session_are_not() {
    for (event, member) in [
        (
            r#"{"type":"session.update","session":{"tools":[{"type":"mcp","server_label":"d","connector_id":"connector_dropbox"}]}}"#,
            Some("connector_id"),
        ),
        (
            r#"{"type":"response.create","response":{"audio":{"output":{"voice":{"id":"voice_1"}}}}}"#,
            Some("voice.id"),
        ),
        (
            r#"{"type":"session.update","session":{"audio":{"output":{"voice":"marin"}}}}"#,
            None,
        ),
        (
            r#"{"type":"response.create","response":{"input":[{"type":"item_reference","id":"item_1"}]}}"#,
            None,
        ),
        (
            r#"{"type":"conversation.item.create","previous_item_id":"item_1","item":{"id":"a","type":"message","role":"user","content":[{"type":"input_text","text":"file_id"}]}}"#,
            None,
        ),
    ] {
        assert_eq!(stored_in(event.as_bytes()), member, "{event}");
    }
}
