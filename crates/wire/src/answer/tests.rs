//! What is read of an answer, and what is a fault. How it counts, in every dialect: `counting`.

use super::*;

fn read(streamed: bool, chunks: &[&[u8]], longest: usize) -> (Result<(), Fault>, Vec<String>) {
    let mut told = Vec::new();
    let mut take = |piece: Piece<'_>| told.push(format!("{piece:?}"));
    let mut reader = Reader::new(streamed, longest);
    chunks
        .iter()
        .for_each(|chunk| reader.push(chunk, &mut take));
    let end = reader.finish(true, &mut take);
    (end, told)
}

#[test]
fn text_is_told_by_lane_and_a_choice_ends_once() {
    let document = br#"{"choices":[{"index":1,"finish_reason":"length","message":{"content":"a",
        "tool_calls":[{"function":{"name":"f","arguments":"{}"}}]}}]}"#;
    let told = [
        r#"Text(1, Content, "a")"#,
        r#"Text(1, CallName(0), "f")"#,
        r#"Text(1, CallArguments(0), "{}")"#,
        "Cut",
    ];
    let (end, all) = read(false, &[document], 1024);
    assert_eq!((end, &all[..]), (Ok(()), &told.map(str::to_owned)[..]));
    let plain =
        b"data: {\"choices\":[{\"text\":\"a\",\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    let (end, all) = read(true, &[plain], 1024);
    assert_eq!(
        (end, all.concat()),
        (Ok(()), r#"Text(0, Plain, "a")Stopped"#.to_owned())
    );
}

#[test]
fn events_may_have_a_byte_order_mark_several_lines_and_any_line_end() {
    let stream = "\u{feff}event: x\ndata: {\"choices\":\ndata: [{\"text\":\"a\"}]}\n\n: ping\n\n";
    for line_end in ["\n", "\r\n", "\r"] {
        let stream = stream.replace('\n', line_end);
        for step in 1..stream.len() {
            let chunks: Vec<&[u8]> = stream.as_bytes().chunks(step).collect();
            let (end, all) = read(true, &chunks, 1024);
            assert_eq!(
                (end, all.concat()),
                (Ok(()), r#"Text(0, Plain, "a")"#.to_owned())
            );
        }
    }
}

#[test]
fn what_is_too_long_or_no_answer_is_a_fault_and_stays_one() {
    let long = [b'x'; 101];
    assert_eq!(read(true, &[b"data: ", &long], 100).0, Err(Fault::TooLong));
    assert_eq!(read(false, &[&long], 100).0, Err(Fault::TooLong));
    assert_eq!(read(false, &[b"<html>"], 100).0, Err(Fault::Unreadable));
    let bad_then_good: [&[u8]; 2] = [b"data: {\n\n", b"data: {\"choices\":[]}\n\n"];
    assert_eq!(read(true, &bad_then_good, 100).0, Err(Fault::Unreadable));
}

#[test]
fn calls_of_every_kind_are_told() {
    for (event, told) in [
        (
            r#"{"choices":[{"delta":{"tool_calls":[{"index":1,"type":"custom","custom":{"name":"f","input":"abc"}}]}}]}"#,
            r#"Text(0, CallName(1), "f")Text(0, CallArguments(1), "abc")"#,
        ),
        (
            r#"{"choices":[{"delta":{"function_call":{"name":"f","arguments":"abc"}}}]}"#,
            r#"Text(0, CallName(0), "f")Text(0, CallArguments(0), "abc")"#,
        ),
        (
            r#"{"type":"response.custom_tool_call_input.delta","output_index":2,"delta":"abc"}"#,
            r#"Text(0, CallArguments(2), "abc")"#,
        ),
    ] {
        let event = format!("data: {event}\n\n");
        let (end, all) = read(true, &[event.as_bytes()], 1024);
        assert_eq!((end, all.concat()), (Ok(()), told.to_owned()), "{event}");
    }
}

#[test]
fn an_event_that_holds_more_of_an_answer_than_texts_is_not_told_whole() {
    let long = "ANSWER ".repeat(100);
    for (event, is_told) in [
        (
            format!(r#"{{"choices":[{{"delta":{{"content":"{long}"}}}}]}}"#),
            true,
        ),
        // Some engines tell a text twice.
        (
            format!(
                r#"{{"choices":[{{"delta":{{"reasoning":"{long}","reasoning_details":[{{"text":"{long}"}}]}}}}]}}"#
            ),
            true,
        ),
        (
            format!(
                r#"{{"type":"content_block_delta","delta":{{"type":"signature_delta","signature":"{long}"}}}}"#
            ),
            true,
        ),
        (
            format!(r#"{{"type":"response.reasoning_summary_text.delta","delta":"{long}"}}"#),
            true,
        ),
        (
            format!(
                r#"{{"choices":[{{"delta":{{"images":[{{"image_url":{{"url":"{long}"}}}}]}}}}]}}"#
            ),
            false,
        ),
        (
            format!(
                r#"{{"type":"content_block_start","content_block":{{"type":"redacted_thinking","data":"{long}"}}}}"#
            ),
            false,
        ),
        (
            format!(
                r#"{{"type":"content_block_start","content_block":{{"type":"tool_use","name":"f","input":{{"a":"{long}"}}}}}}"#
            ),
            false,
        ),
    ] {
        let (end, _) = read(true, &[format!("data: {event}\n\n").as_bytes()], 4096);
        assert_eq!(end.is_ok(), is_told, "{event}");
    }
}
