//! Bounds and copies. What is read and withheld: `vectors/sse` and `tests/bodies`.

use bytes::Bytes;
use testing::Draw;

use super::*;
use crate::usage::Reading;

const USAGE: &str = r#""usage":{"prompt_tokens":3,"completion_tokens":2}"#;

fn event(padding: usize) -> Vec<u8> {
    format!(
        "data: {{\"choices\":[],\"x\":\"{}\",{USAGE}}}\n\n",
        "x".repeat(padding)
    )
    .into_bytes()
}

fn scan(mode: Mode, stream: &[u8], step: usize) -> (Vec<u8>, StreamStats) {
    let mut scanner = Scanner::new(mode);
    let mut out = Vec::new();
    for chunk in stream.chunks(step) {
        scanner.push(Bytes::copy_from_slice(chunk), &mut out);
    }
    scanner.finish(&mut out);
    (out.concat(), *scanner.stats())
}

#[test]
fn an_event_is_withheld_up_to_the_hold_limit_and_not_beyond_however_it_is_cut() {
    let frame = event(0).len();
    let (fits, too_long) = (
        event(HOLD_LIMIT_BYTES - frame),
        event(HOLD_LIMIT_BYTES - frame + 1),
    );
    for step in [
        1000,
        4096,
        HOLD_LIMIT_BYTES - 1,
        HOLD_LIMIT_BYTES,
        usize::MAX,
    ] {
        let (out, stats) = scan(Mode::Withhold, &fits, step);
        assert_eq!(
            (out.len(), stats.withheld_events),
            (0, 1),
            "in chunks of {step}"
        );
        let (out, stats) = scan(Mode::Withhold, &too_long, step);
        assert!(
            out == too_long && stats.withheld_events == 0,
            "in chunks of {step}"
        );
        assert!(matches!(stats.usage, Reading::Valid(_)));
    }
}

/// A stream of one event whose document has so many bytes before its usage.
fn long_event(name: &str, bytes: usize, fields: &str) -> Vec<u8> {
    let filling = "x".repeat(bytes);
    format!("{fields}data: {{\"{name}\":\"{filling}\",\"usage\":{{\"prompt_tokens\":7,\"completion_tokens\":6250}}}}\n\n")
        .into_bytes()
}

#[test]
fn usage_behind_megabytes_is_read_however_the_event_is_cut() {
    for (name, fields, text) in [
        ("b64_json", "", 1),
        ("b64_json", "event: image_generation.completed\n", 1),
        ("text", "id: 4\r\n", 500_000),
    ] {
        let event = long_event(name, 2_000_000, fields);
        for mode in [Mode::Observe, Mode::Withhold] {
            for step in [
                9_999,
                INSPECT_LIMIT_BYTES - 1,
                INSPECT_LIMIT_BYTES + 1,
                usize::MAX,
            ] {
                let (out, stats) = scan(mode, &event, step);
                assert!(out == event, "in chunks of {step}");
                let usage = match stats.usage {
                    Reading::Valid(usage) => (usage.prompt, usage.completion),
                    other => panic!("{other:?}, in chunks of {step}"),
                };
                assert_eq!(usage, (Some(7), Some(6250)));
                assert_eq!((stats.data_events, stats.uninspected_events), (1, 0));
                assert!(
                    stats.text_tokens.abs_diff(text) < 100,
                    "{}",
                    stats.text_tokens
                );
            }
        }
    }
}

#[test]
fn an_event_of_megabytes_that_is_no_document_passes_uninspected() {
    let event = [b"data: ", &*"x".repeat(2_000_000).into_bytes(), b"\n\n"].concat();
    for step in [10_000, usize::MAX] {
        let (out, stats) = scan(Mode::Withhold, &event, step);
        assert!(out == event && stats.uninspected_events == 1 && stats.usage == Reading::Absent);
        assert!(stats.data_bytes >= 2_000_000);
    }
}

#[test]
fn whole_events_are_forwarded_as_one_slice_of_their_chunk() {
    let chunk = Bytes::from_static(b"data: {}\n\ndata: {\"choices\":[]}\n\n");
    let mut scanner = Scanner::new(Mode::Withhold);
    let mut out = Vec::new();
    scanner.push(chunk.clone(), &mut out);
    assert_eq!(out.len(), 1);
    assert_eq!(
        (out[0].as_ptr(), out[0].len()),
        (chunk.as_ptr(), chunk.len())
    );
}

#[test]
fn an_unfinished_event_waits_when_withholding_and_passes_when_observing() {
    let chunk = Bytes::from_static(b"data: {}\n\ndata: {\"cho");
    let mut out = Vec::new();
    Scanner::new(Mode::Withhold).push(chunk.clone(), &mut out);
    assert_eq!(out.concat(), b"data: {}\n\n");
    out.clear();
    Scanner::new(Mode::Observe).push(chunk.clone(), &mut out);
    assert_eq!(out, [chunk]);
}

#[test]
fn the_first_bytes_say_whether_they_begin_a_stream_of_events() {
    for stream in [
        "data: {}\n\n",
        "data:{}",
        "data\n",
        "event: message_start\r\ndata: {}\r\n\r\n",
        "id: 1\ndata: x\n\n",
        "retry: 3000\n\n",
        ": OPENROUTER PROCESSING\n\n",
        ":\n",
        "\u{feff}data: {}\n\n",
        "\r\n\ndata: {}\n\n",
    ] {
        let said = (0..=stream.len()).find_map(|at| begins_events(&stream.as_bytes()[..at]));
        assert_eq!(said, Some(true), "{stream:?}");
        assert_eq!(begins_events(stream.as_bytes()), Some(true), "{stream:?}");
    }
    for other in [
        r#"{"choices":[]}"#,
        "[",
        "<html>",
        "<!doctype html>",
        "database error",
        "dat: x",
        "data x",
        "Data: x",
        " data: x",
        "identity",
        "error: no",
        "\u{1f8b}",
    ] {
        let said = (0..=other.len()).find_map(|at| begins_events(&other.as_bytes()[..at]));
        assert_eq!(said, Some(false), "{other:?}");
    }
    for begun in [
        "",
        "d",
        "data",
        "eve",
        "re",
        "\n\n",
        "\u{feff}",
        "\u{feff}da",
    ] {
        assert_eq!(begins_events(begun.as_bytes()), None, "{begun:?}");
    }
    assert_eq!(begins_events(&[b'\n'; OPENING_BYTES]), Some(false));
}

#[test]
fn an_event_is_told_whole_with_its_id_and_its_retry_however_it_is_cut() {
    let text = b"\xef\xbb\xbfid: 7\nretry: 500\ndata:\n\n: quiet\n\nid:a b\r\ndata: x\r\ndata: y\r\n\r\nretry: 5s\nid\ndata: z\n\n";
    let whole = |data: Option<&str>, id: Option<&str>, retry_ms: Option<u32>| {
        let bytes = |text: &str| text.as_bytes().to_vec();
        (data.map(bytes), id.map(bytes), retry_ms)
    };
    let expected = [
        whole(Some(""), Some("7"), Some(500)),
        whole(None, None, None),
        whole(Some("x\ny"), Some("a b"), None),
        whole(Some("z"), None, None),
    ];
    for cut in 0..=text.len() {
        let (mut reader, mut seen) = (super::DataReader::new(), Vec::new());
        let (before, after) = text.split_at(cut);
        for chunk in [before, after] {
            reader.push_whole(chunk, |event| {
                let data = event.data.map(std::borrow::Cow::into_owned);
                seen.push((data, event.id.map(<[u8]>::to_vec), event.retry_ms));
            });
        }
        assert_eq!(seen, expected, "{cut}");
    }
}

/// Whether such a stream told its end, the same however it is cut and whatever is withheld.
fn told_end(stream: &str) -> bool {
    let tells = |mode, step| {
        let mut scanner = Scanner::new(mode);
        for chunk in stream.as_bytes().chunks(step) {
            scanner.push(Bytes::copy_from_slice(chunk), &mut Vec::new());
        }
        scanner.finish(&mut Vec::new());
        scanner.told_end()
    };
    let told = tells(Mode::Observe, usize::MAX);
    for step in [1, 2, 3, 7, 64, usize::MAX] {
        for mode in [Mode::Observe, Mode::Withhold] {
            assert_eq!(tells(mode, step), told, "{stream} in chunks of {step}");
        }
    }
    told
}

#[test]
fn a_stream_has_told_its_end_by_a_mark_a_reason_or_the_name_of_its_last_event() {
    let begun = "data: {\"choices\":[{\"delta\":{\"content\":\"a\"},\"finish_reason\":null}]}\n\n";
    let stopped = "data: {\"choices\":[{\"delta\":{},\"finish_reason\" : \"stop\"}]}\n\n";
    let usage = format!("data: {{\"choices\":[],{USAGE}}}\n\n");
    let long = "x".repeat(100_000);
    for whole in [
        format!("{begun}data: [DONE]\n\n"),
        format!("{begun}{stopped}"),
        format!("{begun}{stopped}{usage}"),
        format!("{begun}{stopped}: still there\n\n"),
        format!("{begun}data: {{\"x\":\"{long}\",\"finish_reason\":\"stop\"}}"),
        "event: message_delta\ndata: {\"type\":\"message_delta\"}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n".to_owned(),
        "data: {\"type\": \"message_stop\"}\n\n".to_owned(),
        format!("event: response.completed\ndata: {{\"type\":\"response.completed\",\"x\":\"{long}\"}}\n\n"),
        "data: {\"candidates\":[{\"content\":{},\"finishReason\": \"STOP\"}],\"usageMetadata\":{}}\r\n\r\n".to_owned(),
        "data: {\"promptFeedback\":{\"blockReason\":\"SAFETY\"}}\n\n".to_owned(),
        format!("{begun}data: {{\"error\":{{\"message\":\"no\"}}}}\n\n"),
    ] {
        assert!(told_end(&whole), "{whole}");
    }
    for cut in [
        String::new(),
        begun.to_owned(),
        format!("{begun}{usage}"),
        format!("{begun}: still there\n\n"),
        format!("{stopped}{begun}"),
        "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"text\":\"message_stop\"}}\n\n".to_owned(),
        "data: {\"delta\":\"he said \\\"finish_reason\\\":\\\"stop\\\"\"}\n\n".to_owned(),
        "event: response.in_progress\ndata: {\"type\":\"response.in_progress\"}\n\n".to_owned(),
        format!("data: {{\"x\":\"{long}\"}}\n\n"),
    ] {
        assert!(!told_end(&cut), "{cut}");
    }
}

/// A stream of events in the form of a chat, each with such a text, between its first event and its last.
fn chat(texts: &[&str]) -> String {
    let event = |delta: &str| {
        format!(
            "data: {{\"id\":\"chatcmpl-0123456789abcdef\",\"object\":\"chat.completion.chunk\",\"created\":1764350000,\"model\":\"m\",\"choices\":[{{\"index\":0,\"delta\":{{{delta}}},\"finish_reason\":null}}]}}\n\n"
        )
    };
    let mut stream = event("\"role\":\"assistant\",\"content\":\"\"");
    for text in texts {
        stream += &event(&format!("\"content\":\"{text}\""));
    }
    stream + &event("") + "data: [DONE]\n\n"
}

#[test]
fn tokens_of_a_streams_text_are_told_by_its_events_and_by_their_length() {
    let long = "lorem ipsum dolor ".repeat(500);
    let twenty =
        " and so it goes with twenty of them in an event of a stream, as it may be set up to";
    for (texts, least, most) in [
        (&["He", "llo", " there"][..], 5, 5),
        (&[&long], 2250, 2252),
        (&[&long, &long], 4500, 4502),
        (&[twenty; 30], 30 * 20, 30 * 22),
        // One that is long among short ones.
        (&["a", "b", &long, "c"], 2253, 2256),
    ] {
        let stream = chat(texts);
        for (mode, step) in [
            (Mode::Observe, 1),
            (Mode::Observe, 700),
            (Mode::Withhold, stream.len()),
        ] {
            let (_, stats) = scan(mode, stream.as_bytes(), step);
            assert!(
                (least..=most).contains(&stats.text_tokens),
                "{} of {} events",
                stats.text_tokens,
                stats.data_events
            );
            assert_eq!(stats.data_events, texts.len() as u64 + 2);
        }
    }
    let anthropic = "data: {\"type\":\"message_start\",\"message\":{\"content\":[]}}\n\ndata: {\"type\":\"content_block_start\",\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n".to_owned()
        + &"data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"Hello\"}}\n\n".repeat(40);
    let (_, stats) = scan(Mode::Observe, anthropic.as_bytes(), 64);
    assert_eq!((stats.text_tokens, stats.data_events), (42, 42));
}

#[test]
fn what_has_no_name_of_a_text_is_told_as_well_however_the_stream_is_cut() {
    let words = "ANSWER ".repeat(500);
    let chat =
        |delta: String| format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{delta}}}]}}\n\n");
    let custom = |input: &str| {
        chat(format!(
            "{{\"tool_calls\":[{{\"index\":0,\"type\":\"custom\",\"custom\":{{\"name\":\"f\",\"input\":\"{input}\"}}}}]}}"
        ))
    };
    let part = |part: String| {
        format!(
            "data: {{\"candidates\":[{{\"content\":{{\"parts\":[{{{part}}}],\"role\":\"model\"}}}}]}}\n\n"
        )
    };
    let block = |block: String| {
        format!(
            "event: content_block_start\ndata: {{\"type\":\"content_block_start\",\"index\":0,\"content_block\":{{{block}}}}}\n\n"
        )
    };
    let picture = "QUFB".repeat(900);
    let least = 500 * 7 / 4;
    for stream in [
        custom(&words),
        custom(&"ANSWER ".repeat(20)).repeat(25),
        chat(format!(
            "{{\"images\":[{{\"image_url\":{{\"url\":\"{words}\"}}}}]}}"
        )),
        chat(format!("{{\"of_tomorrow\":\"{words}\"}}")),
        part(format!(
            "\"functionCall\":{{\"name\":\"f\",\"args\":{{\"x\":\"{words}\"}}}}"
        )),
        part(format!("\"executableCode\":{{\"code\":\"{words}\"}}")),
        part(format!(
            "\"codeExecutionResult\":{{\"output\":\"{words}\"}}"
        )),
        part(format!(
            "\"inlineData\":{{\"mimeType\":\"image/png\",\"data\":\"{picture}\"}}"
        )),
        // What a picture comes to is its frame's of no other event.
        part(format!(
            "\"inlineData\":{{\"mimeType\":\"audio/pcm\",\"data\":\"{}\"}}",
            "QUFB".repeat(9000)
        )) + &part(format!("\"text\":\"{words}\"")),
        block(format!(
            "\"type\":\"tool_use\",\"id\":\"t\",\"name\":\"f\",\"input\":{{\"a\":\"{words}\"}}"
        )),
        block(format!(
            "\"type\":\"redacted_thinking\",\"data\":\"{words}\""
        )),
        block(format!(
            "\"type\":\"web_search_tool_result\",\"tool_use_id\":\"t\",\"content\":[{{\"type\":\"web_search_result\",\"title\":\"{words}\"}}]"
        )),
        format!(
            "data: {{\"type\":\"content_block_delta\",\"delta\":{{\"type\":\"signature_delta\",\"signature\":\"{words}\"}}}}\n\n"
        ),
    ] {
        for step in [7, 700, stream.len()] {
            let (_, stats) = scan(Mode::Observe, stream.as_bytes(), step);
            let told = stats.text_tokens;
            assert!((least..least + 300).contains(&told), "{told} of {stream}");
        }
    }
}

/// Events of every kind, the plain ones among them, in an order that the seed draws.
fn mixed(draw: &mut Draw) -> Vec<Vec<u8>> {
    let token =
        "\"choices\":[{\"index\":0,\"delta\":{\"content\":\" token\"},\"finish_reason\":null}]";
    let kinds = [
        format!("data: {{{token}}}\n\n"),
        format!("data:{{{token}}}\n\n"),
        format!("data: {{{token},\"user\":\"eve\",\"even\":1}}\n\n"),
        format!("data: {{{token},\"usage\":null}}\n\n"),
        format!("data: {{{token},\"usage\": null}}\n\n"),
        format!("data: {{{token},\"usage\":{{\"prompt_tokens\":3,\"completion_tokens\":2}}}}\n\n"),
        "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":4}}\n\n".into(),
        format!("data: {{{token},\"error\":{{\"message\":\"no\"}}}}\n\n"),
        format!("event: content_block_delta\ndata: {{{token}}}\n\n"),
        format!("event: \"usage\"\ndata: {{{token}}}\n\n"),
        "event: message_stop\ndata: {\"type\":\"message_stop\",\"padding\":\"of some length\"}\n\n"
            .into(),
        format!("data: {{{token}}}\r\n\r\n"),
        format!("data: {{{token}}}\r\r"),
        format!("data: {{\ndata: {token}}}\n\n"),
        format!("data: {{{token}}}\nid: 7\n\n"),
        format!("id: 7\ndata: {{{token}}}\n\n"),
        ": ping\n\n".into(),
        "\n".into(),
        "data: {}\n\n".into(),
        "data: [DONE]\n\n".into(),
        format!("data: {{{token},\"padding\":\"{}\"}}\n\n", "x".repeat(700)),
    ];
    // One of each at times, for the most part plain ones.
    (0..24)
        .map(|_| {
            let kind = match draw.below(2) {
                0 => draw.below(3),
                _ => draw.below(kinds.len()),
            };
            kinds[kind].clone().into_bytes()
        })
        .collect()
}

#[test]
fn plain_events_are_taken_as_others_are_however_the_stream_is_cut() {
    let seed = testing::seed("plain_events_are_taken_as_others_are");
    let mut draw = Draw::new(seed);
    for _ in 0..200 {
        let draw = &mut draw;
        let events = mixed(draw);
        let stream = events.concat();
        // A chunk has one event or several.
        let mut chunks = vec![Vec::new()];
        for event in &events {
            chunks.last_mut().expect("one").extend_from_slice(event);
            if draw.below(3) > 0 {
                chunks.push(Vec::new());
            }
        }
        for mode in [Mode::Observe, Mode::Withhold] {
            let (mut whole, mut out) = (Scanner::new(mode), Vec::new());
            for chunk in &chunks {
                let passes = match mode {
                    Mode::Observe => {
                        whole.observe(chunk);
                        true
                    }
                    Mode::Withhold => whole.pass(chunk),
                };
                match passes {
                    true => out.push(Bytes::copy_from_slice(chunk)),
                    false => whole.push(Bytes::copy_from_slice(chunk), &mut out),
                }
            }
            let (mut slow, mut expected) = (Scanner::new(mode), Vec::new());
            for byte in &stream {
                slow.push(Bytes::copy_from_slice(&[*byte]), &mut expected);
            }
            assert_eq!(whole.stats(), slow.stats());
            assert_eq!(whole.told_end(), slow.told_end());
            assert_eq!(out.concat(), expected.concat());
        }
        let read = |pieces: &[&[u8]]| {
            let (mut reader, mut seen) = (DataReader::new(), Vec::new());
            for piece in pieces {
                reader.push(piece, |data| seen.push(data.to_vec()));
            }
            seen
        };
        let chunks: Vec<&[u8]> = chunks.iter().map(Vec::as_slice).collect();
        assert_eq!(read(&chunks), read(&stream.chunks(1).collect::<Vec<_>>()));
    }
}
