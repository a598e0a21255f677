//! What a body has in it.

use wire::dialect::Operation;

use crate::tests::{CLOCK_S, tiny, vectors};
use crate::{BuiltIn, Counter};

#[track_caller]
fn shape(operation: Operation, body: &str) -> String {
    let counter = tiny(&vectors("chatml.jinja"));
    let prompt = counter.prompt(operation, body.as_bytes(), CLOCK_S);
    prompt.expect("countable").shape.to_string()
}

#[test]
fn texts_and_numbers() {
    let text = |body| shape(Operation::Completions, body);
    assert_eq!(text(r#"{"prompt":"a"}"#), "text");
    assert_eq!(text(r#"{"prompt":["a","é"]}"#), "text+several+unicode");
    assert_eq!(text(r#"{"prompt":[1,2]}"#), "text+numbers");
    assert_eq!(
        text(r#"{"prompt":[[1,2],[3]],"truncate_prompt_tokens":1}"#),
        "text+truncated+several+numbers"
    );
    assert_eq!(text(r#"{"prompt":"a [INFO] <b> x<y"}"#), "text");
    assert_eq!(text(r#"{"prompt":"a <|x|>"}"#), "text+marks");
    assert_eq!(text(r#"{"prompt":"\u003c/s\u003e"}"#), "text+marks");
    let embeddings = |body| shape(Operation::Embeddings, body);
    assert_eq!(embeddings(r#"{"input":"a"}"#), "embeddings");
    assert_eq!(
        embeddings(r#"{"messages":[{"role":"user","content":"a"}]}"#),
        "embeddings"
    );
}

#[test]
fn arguments_are_what_differs_from_what_an_api_gives_by_itself() {
    let chat = |rest: &str| {
        let body = format!(r#"{{"messages":[{{"role":"user","content":"a"}}]{rest}}}"#);
        shape(Operation::Chat, &body)
    };
    assert_eq!(chat(""), "chat");
    assert_eq!(chat(r#","add_generation_prompt":true"#), "chat");
    assert_eq!(chat(r#","add_generation_prompt":false"#), "chat+arguments");
    assert_eq!(chat(r#","chat_template_kwargs":{"x":null}"#), "chat");
    assert_eq!(chat(r#","chat_template_kwargs":{"x":0}"#), "chat+arguments");
    assert_eq!(chat(r#","documents":null,"tools":[]"#), "chat");
    assert_eq!(chat(r#","add_special_tokens":true"#), "chat+special");
    assert_eq!(chat(r#","tool_choice":"none""#), "chat");
    assert_eq!(chat(r#","reasoning_effort":"low""#), "chat+effort");
}

#[test]
fn a_message_is_empty_that_says_nothing_in_any_way() {
    let said = |message: &str| {
        let body = format!(r#"{{"messages":[{{"role":"user","content":"a"}},{message}]}}"#);
        shape(Operation::Chat, &body)
    };
    assert_eq!(said(r#"{"role":"user","content":""}"#), "chat+empty");
    assert_eq!(
        said(
            r#"{"role":"assistant","content":"","tool_calls":[{"id":"1","function":{"name":"f"}}]}"#
        ),
        "chat+history+calls"
    );
    assert_eq!(said(r#"{"role":"critic","content":"a"}"#), "chat+roles");
    assert_eq!(
        said(r#"{"role":"user","content":[{"type":"text","text":"a","more":1}]}"#),
        "chat+parts"
    );
}

#[test]
fn of_several_conversations_each_has_its_part() {
    let body = r#"{"input":[[{"role":"user","content":"é"}],[{"role":"system","content":"a"}]]}"#;
    assert_eq!(
        shape(Operation::Embeddings, body),
        "embeddings+system+several+unicode"
    );
}

#[test]
fn without_a_template_only_what_counts_is_told_apart() {
    let counter = Counter::without_template(BuiltIn::O200k);
    let body = br#"{"messages":[{"role":"user","content":""}],"reasoning_effort":"low","tool_choice":"none","tools":[]}"#;
    let prompt = counter.prompt(Operation::Chat, body, CLOCK_S);
    assert_eq!(prompt.expect("countable").shape.to_string(), "chat");
    let text = |body: &[u8]| {
        let prompt = counter.prompt(Operation::Completions, body, CLOCK_S);
        prompt.expect("countable").shape.to_string()
    };
    assert_eq!(text(br#"{"prompt":"a"}"#), "text");
    let bare = br#"{"prompt":"a","add_special_tokens":false}"#;
    assert_eq!(text(bare), "text+special");
}
