//! Answers of every dialect, whole and in events, cut everywhere.

use policy::operation::Operation;

use super::*;

const LONGEST: usize = 1 << 20;

fn harmony() -> Arc<Counter> {
    Arc::new(Counter::harmony())
}

fn counted(streamed: bool, batches: &[&[u8]], whole: bool) -> Result<Output, Missed> {
    let mut answer = Answer::new(harmony(), streamed, LONGEST);
    batches.iter().for_each(|batch| answer.push(batch));
    answer.finish(whole)
}

/// Tokens of plain text.
fn text(text: &str) -> u64 {
    let body = serde_json::json!({ "prompt": text }).to_string();
    let count = Counter::harmony().prompt(Operation::Completions, body.as_bytes(), 0);
    count.expect("countable").count.tokens
}

const REASONING: &str = "Let me see what they want. ";
const CONTENT: &str = "The answer is 42, naïvely: ¿qué?";
const ARGUMENTS: &str = r#"{"city":"Paris","n":[1,2]}"#;

/// Reasoning, an answer and a call, as the engine frames them: three headers, two messages behind one another
/// twice, the name, the end.
fn everything() -> u64 {
    let said = text(REASONING) + text(CONTENT) + text(ARGUMENTS) + text("get_weather");
    said + 3 + 3 + 10 + 2 * 3 + 1
}

fn events(all: &[serde_json::Value]) -> Vec<u8> {
    let mut out = Vec::new();
    for event in all {
        out.extend_from_slice(format!("event: x\ndata: {event}\n\n").as_bytes());
    }
    out.extend_from_slice(b": comment\n\ndata: [DONE]\n\n");
    out
}

fn chat() -> Vec<u8> {
    let delta = |delta: serde_json::Value| serde_json::json!({"choices":[{"index":0,"delta":delta,"finish_reason":null}]});
    events(&[
        delta(serde_json::json!({"role":"assistant","content":""})),
        // Both names of one thing.
        delta(serde_json::json!({"reasoning": REASONING, "reasoning_content": REASONING})),
        delta(serde_json::json!({"content": &CONTENT[..10]})),
        delta(serde_json::json!({"content": &CONTENT[10..]})),
        delta(
            serde_json::json!({"tool_calls":[{"index":0,"id":"c","type":"function","function":{"name":"get_weather","arguments":""}}]}),
        ),
        delta(
            serde_json::json!({"tool_calls":[{"index":0,"function":{"arguments":&ARGUMENTS[..7]}}]}),
        ),
        delta(
            serde_json::json!({"tool_calls":[{"index":0,"function":{"arguments":&ARGUMENTS[7..]}}]}),
        ),
        serde_json::json!({"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}),
        serde_json::json!({"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2}}),
    ])
}

fn responses() -> Vec<u8> {
    events(&[
        serde_json::json!({"type":"response.created","response":{"status":"in_progress","output":[]}}),
        serde_json::json!({"type":"response.output_item.added","output_index":0,"item":{"type":"reasoning","content":[]}}),
        serde_json::json!({"type":"response.reasoning_text.delta","output_index":0,"delta":REASONING}),
        serde_json::json!({"type":"response.reasoning_text.done","output_index":0,"text":REASONING}),
        serde_json::json!({"type":"response.output_text.delta","output_index":1,"delta":CONTENT}),
        serde_json::json!({"type":"response.output_item.added","output_index":2,"item":{"type":"function_call","name":"get_weather","arguments":""}}),
        serde_json::json!({"type":"response.function_call_arguments.delta","output_index":2,"delta":ARGUMENTS}),
        serde_json::json!({"type":"response.function_call_arguments.done","output_index":2,"arguments":ARGUMENTS}),
        serde_json::json!({"type":"response.output_item.done","output_index":2,"item":{"type":"function_call","name":"get_weather","arguments":ARGUMENTS}}),
        serde_json::json!({"type":"response.completed","response":{"status":"completed","output":[{"type":"message","content":[{"text":CONTENT}]}]}}),
    ])
}

fn messages() -> Vec<u8> {
    events(&[
        serde_json::json!({"type":"message_start","message":{"content":[],"usage":{"input_tokens":3}}}),
        serde_json::json!({"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":""}}),
        serde_json::json!({"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":REASONING}}),
        serde_json::json!({"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}),
        serde_json::json!({"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":CONTENT}}),
        serde_json::json!({"type":"content_block_start","index":2,"content_block":{"type":"tool_use","name":"get_weather","input":{}}}),
        serde_json::json!({"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":ARGUMENTS}}),
        serde_json::json!({"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":9}}),
        serde_json::json!({"type":"message_stop"}),
    ])
}

#[test]
fn a_stream_of_any_dialect_cut_at_every_byte_gives_one_count() {
    for (name, stream) in [
        ("chat", chat()),
        ("responses", responses()),
        ("messages", messages()),
    ] {
        let whole = counted(true, &[&stream], true).expect(name);
        assert_eq!(whole.count.tokens, everything(), "{name}");
        assert!(whole.reasoning > 0, "{name}");
        for cut in (0..stream.len()).step_by(7) {
            let (before, after) = stream.split_at(cut);
            assert_eq!(
                counted(true, &[before, after], true),
                Ok(whole),
                "{name} {cut}"
            );
        }
        let bytes: Vec<&[u8]> = stream.chunks(1).collect();
        assert_eq!(counted(true, &bytes, true), Ok(whole), "{name}");
        let text = String::from_utf8(stream).expect("it is text");
        for line_end in ["\r\n", "\r"] {
            let stream = text.replace('\n', line_end);
            let bytes: Vec<&[u8]> = stream.as_bytes().chunks(3).collect();
            assert_eq!(
                counted(true, &bytes, true),
                Ok(whole),
                "{name} {line_end:?}"
            );
        }
    }
}

#[test]
fn a_document_of_any_dialect_counts_as_its_stream() {
    let call = serde_json::json!({"name":"get_weather","arguments":ARGUMENTS});
    let chat = serde_json::json!({"choices":[{"index":0,"finish_reason":"tool_calls","message":{
        "role":"assistant","content":CONTENT,"reasoning_content":REASONING,"reasoning":REASONING,
        "tool_calls":[{"id":"c","type":"function","function":call}]}}]});
    let responses = serde_json::json!({"status":"completed","output":[
        {"type":"reasoning","summary":[{"text":"short"}],"content":[{"type":"reasoning_text","text":REASONING}]},
        {"type":"message","content":[{"type":"output_text","text":CONTENT}]},
        {"type":"function_call","name":"get_weather","arguments":ARGUMENTS}]});
    let arguments: serde_json::Value = serde_json::from_str(ARGUMENTS).expect("it is JSON");
    let messages = serde_json::json!({"type":"message","stop_reason":"tool_use","content":[
        {"type":"thinking","thinking":REASONING},
        {"type":"text","text":CONTENT},
        {"type":"tool_use","name":"get_weather","input":arguments}]});
    for (name, document) in [
        ("chat", chat),
        ("responses", responses),
        ("messages", messages),
    ] {
        let document = document.to_string();
        let whole = counted(false, &[document.as_bytes()], true).expect(name);
        assert_eq!(whole.count.tokens, everything(), "{name}");
        let halves = document.as_bytes().split_at(document.len() / 2);
        assert_eq!(counted(false, &[halves.0, halves.1], true), Ok(whole));
        assert_eq!(counted(false, &[halves.0], false), Err(Missed::Unreadable));
    }
}

#[test]
fn plain_text_has_no_framing_but_its_end() {
    let stream = |why: &str| {
        events(&[
            serde_json::json!({"choices":[{"index":0,"text":"The answer"}]}),
            serde_json::json!({"choices":[{"index":0,"text":" is 42","finish_reason":why}]}),
        ])
    };
    let tokens = |why| counted(true, &[&stream(why)], true).map(|output| output.count.tokens);
    assert_eq!(tokens("length"), Ok(text("The answer is 42")));
    assert_eq!(tokens("stop"), Ok(text("The answer is 42") + 1));
}

#[test]
fn what_was_cut_off_counts_to_where_it_was_and_has_no_end() {
    let stream = chat();
    let text_of = String::from_utf8(stream.clone()).expect("it is text");
    let at = text_of.find("\"tool_calls\"").expect("a call");
    let until = text_of[..at].rfind("event:").expect("its event");
    let cut = counted(true, &[&stream[..until]], false).expect("countable");
    assert_eq!(
        cut.count.tokens,
        text(REASONING) + text(CONTENT) + 3 + 3 + 3
    );
    // Half an event more is nothing more.
    assert_eq!(counted(true, &[&stream[..at]], false), Ok(cut));
}

#[test]
fn what_cannot_be_read_or_is_too_long_is_never_nothing() {
    let good = chat();
    let garbled = [b"data: {\"choices\":[{\xff\n\n".to_vec(), good.clone()].concat();
    assert_eq!(counted(true, &[&garbled], true), Err(Missed::Unreadable));
    assert_eq!(counted(false, &[b"<html>"], true), Err(Missed::Unreadable));
    let mut answer = Answer::new(harmony(), true, 100);
    answer.push(b"data: ");
    answer.push(&[b'x'; 101]);
    assert_eq!(answer.finish(true), Err(Missed::Long));
    let mut answer = Answer::new(harmony(), true, 1000);
    good.chunks(10).for_each(|batch| answer.push(batch));
    assert!(answer.finish(true).is_ok(), "a long stream of short events");
}

#[test]
fn a_tokenizer_that_fails_on_an_answer_is_a_failure_of_the_gate() {
    let mut answer = Answer::new(harmony(), false, LONGEST);
    answer.push(br#"{"choices":[{"finish_reason":"stop","message":{"content":"hello"}}]}"#);
    answer.text.is_uncountable = true;
    assert_eq!(answer.finish(true).map_err(Missed::as_str), Err("failed"));
}
