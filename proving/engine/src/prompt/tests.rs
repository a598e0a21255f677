//! Counting message by message against the whole body, and a memory of texts against none.

use experiment::random::Rng;
use serde_json::{Value, json};

use super::*;
use crate::text::below;

const DATE: &str = "2026-01-02";

fn templated() -> PromptModel {
    let tokenizer = r#"{"version":"1.0","added_tokens":[
        {"id":0,"content":"<s>","special":true,"single_word":false,"lstrip":false,"rstrip":false,"normalized":false},
        {"id":1,"content":"<s>>","special":true,"single_word":false,"lstrip":false,"rstrip":false,"normalized":false}],
        "model":{"type":"WordLevel","vocab":{"<s>":0,"<s>>":1,"user":2,"a":3,"b":4,"[UNK]":5},"unk_token":"[UNK]"},
        "pre_tokenizer":{"type":"Whitespace"}}"#;
    let files = ModelFiles {
        tokenizer: tokenizer.to_owned(),
        config: None,
        chat_template: Some(
            "{% for m in messages %}<s>{{ m.role }} {{ m.content }}<s>>{% endfor %}<s>".to_owned(),
        ),
    };
    PromptModel::new("other", Some(files), DATE).unwrap()
}

/// A message of some role, with the pitfalls in it: marks as text, calls, reasoning, parts, nothing at all.
fn message(rng: &mut Rng, i: usize) -> Value {
    let text = [
        "",
        "a b",
        "<|start|>user",
        "<s>> a <s>",
        "naïve 数据\n\n",
        "x".repeat(300).as_str(),
    ][below(rng, 6)]
    .to_owned();
    match below(rng, 6) {
        0 => json!({"role": "system", "content": text}),
        1 => {
            json!({"role": "user", "content": [{"type": "text", "text": text}, {"type": "text", "text": "b"}]})
        }
        2 => {
            json!({"role": "tool", "tool_call_id": format!("call_{}", below(rng, i + 1)), "content": text})
        }
        3 => json!({"role": "assistant", "reasoning": "a thought", "tool_calls": [
            {"id": format!("call_{i}"), "type": "function", "function": {"name": "look", "arguments": "{\"q\": 1}"}}]}),
        4 => json!({"role": "assistant", "content": text, "reasoning_content": "b"}),
        _ => json!({"role": "user", "content": text}),
    }
}

#[test]
fn a_prompt_counted_message_by_message_is_that_of_the_whole_body() {
    let mut rng = Rng::new(testing::seed(
        "a_prompt_counted_message_by_message_is_that_of_the_whole_body",
    ));
    let models = [
        PromptModel::new("gpt-oss-120b", None, DATE).unwrap(),
        PromptModel::new("llama", None, DATE).unwrap(),
        templated(),
    ];
    let tools = json!([{"type": "function", "function": {"name": "look", "description": "looks",
        "parameters": {"type": "object", "properties": {"q": {"type": "integer"}}}}}]);
    let mut memo: Vec<Memo> = models.iter().map(|_| Memo::default()).collect();
    for round in 0..16 {
        let with_tools = round % 2 == 0;
        let messages: Vec<Value> = (0..12).map(|i| message(&mut rng, i)).collect();
        let texts: Vec<String> = messages.iter().map(Value::to_string).collect();
        let shown = tools.to_string();
        for (model, memo) in models.iter().zip(&mut memo) {
            let texts = texts.iter().map(|text| Cow::Borrowed(text.as_str()));
            let mut session = model
                .session(with_tools.then_some(&shown), texts.collect())
                .unwrap();
            for _ in 0..8 {
                // Mostly longer and longer prompts, and now and then one that leaves some out.
                let end = 1 + below(&mut rng, messages.len());
                let skip = below(&mut rng, 3) * below(&mut rng, 2);
                let places: Vec<usize> = (0..end).filter(|i| *i != skip + 1).collect();
                let prompt: Vec<&Value> = places.iter().map(|i| &messages[*i]).collect();
                let mut body = json!({"model": "any", "messages": prompt, "stream": true});
                if with_tools {
                    body["tools"] = tools.clone();
                }
                let whole = model.prompt(body.to_string().as_bytes());
                assert_eq!(session.prompt(&places, memo), whole, "{body}");
                assert!(whole.is_ok_and(|ids| !ids.is_empty()), "{body}");
            }
        }
    }
}

#[test]
fn an_answer_is_as_long_as_what_it_adds_to_the_next_prompt() {
    let model = PromptModel::new("gpt-oss-120b", None, DATE).unwrap();
    let messages = [
        json!({"role": "user", "content": "hello"}),
        json!({"role": "assistant", "content": "I look.", "reasoning": "Let me see.", "tool_calls": [
            {"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}]}),
    ];
    let texts = messages.iter().map(|m| Cow::Owned(m.to_string())).collect();
    let mut session = model.session(None, texts).unwrap();
    let mut memo = Memo::default();
    let before = session.prompt(&[0], &mut memo).unwrap().len();
    let after = session.prompt(&[0, 1], &mut memo).unwrap().len();
    // The next prompt ends with `<|start|>assistant` again, which the answer does not have.
    let answer = session.answer_tokens(1, &mut memo).unwrap();
    assert_eq!(answer, after - before - 2);
}

#[test]
fn what_the_server_refuses_is_refused_here_and_the_message_is_named() {
    let model = PromptModel::new("gpt-oss-120b", None, DATE).unwrap();
    let bad = vec![
        Cow::Borrowed(r#"{"role":"user","content":"a"}"#),
        Cow::Borrowed(r#"{"role":"function","name":"f","content":"b"}"#),
    ];
    let mut session = model.session(None, bad).unwrap();
    let mut memo = Memo::default();
    assert!(session.prompt(&[0], &mut memo).is_ok());
    let why = session.prompt(&[0, 1], &mut memo).unwrap_err();
    assert!(
        why.starts_with("messages[1]:") && why.contains("function"),
        "{why}"
    );
    assert!(session.prompt(&[], &mut memo).is_err());
    assert!(session.prompt(&[7], &mut memo).is_err());
    assert!(model.session(Some("[{}]"), Vec::new()).is_err());
}
