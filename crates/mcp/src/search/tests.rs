//! What is found, in which order, and what a call of it becomes.

use serde_json::{Value, json};

use super::{CALL, FIND, Query, Wrong, listed, misused, unwrapped};
use crate::envelope::Message;

fn call(name: &str, arguments: &Value) -> String {
    json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call",
        "params": {"name": name, "arguments": arguments, "_meta": {"progressToken": 1}}})
    .to_string()
}

fn query(arguments: &Value) -> Result<Query, Wrong> {
    let text = call(FIND, arguments);
    let message = Message::read(text.as_bytes()).expect("a message");
    Query::read(text.as_bytes(), message.params.as_ref())
}

fn catalogue() -> Vec<u8> {
    json!({"tools": [
        {"name": "files__read_file", "description": "Read the contents of a file.", "inputSchema": {"type": "object"}, "_meta": {"x": 1}},
        {"name": "files__writeFile", "description": "Write text.", "inputSchema": {"type": "object", "properties": {"path": {}}}},
        {"name": "mail__send", "description": "Send an e-mail with attachments (files)."},
        {"name": "mail__list", "title": "Inbox", "description": "List messages."},
        {"name": "clock__now", "annotations": {"title": "Tells the hour"}},
    ]})
    .to_string()
    .into_bytes()
}

fn found(arguments: &Value) -> Vec<String> {
    let answer = query(arguments).expect("a query").answer(&catalogue());
    let answer: Value = serde_json::from_slice(&answer.expect("a list")).expect("JSON");
    let text = answer["content"][0]["text"].as_str().expect("a text");
    let tools: Vec<Value> = serde_json::from_str(text).unwrap_or_default();
    let names = tools
        .iter()
        .map(|tool| tool["name"].as_str().expect("a name").to_owned());
    names.collect()
}

#[test]
fn what_fits_best_is_found_first_and_what_does_not_fit_is_not() {
    for (words, expected) in [
        (
            "write a file",
            &["files__writeFile", "files__read_file", "mail__send"][..],
        ),
        (
            "FILES",
            &["files__read_file", "files__writeFile", "mail__send"],
        ),
        ("inbox", &["mail__list"]),
        ("path", &["files__writeFile"]),
        ("sending", &["mail__send"]),
        ("clock__now", &["clock__now"]),
        ("hour", &["clock__now"]),
        ("weather", &[]),
        ("clockwork", &["clock__now"]),
    ] {
        assert_eq!(found(&json!({"query": words})), expected, "{words}");
    }
    assert_eq!(found(&json!({"query": "files", "limit": 1})).len(), 1);
}

#[test]
fn a_tool_is_told_with_what_a_model_needs_to_call_it() {
    let answer = query(&json!({"query": "read"}))
        .expect("a query")
        .answer(&catalogue());
    let answer: Value = serde_json::from_slice(&answer.expect("a list")).expect("JSON");
    let text = answer["content"][0]["text"].as_str().expect("a text");
    let expected = json!([{"name": "files__read_file", "description": "Read the contents of a file.", "inputSchema": {"type": "object"}}]);
    assert_eq!(serde_json::from_str::<Value>(text).expect("JSON"), expected);
}

#[test]
fn what_is_told_has_a_bound() {
    let long = "file ".repeat(4000);
    let tools: Vec<Value> = (0..20)
        .map(|n| json!({"name": format!("t{n}"), "description": long}))
        .collect();
    let list = json!({"tools": tools}).to_string();
    let query = query(&json!({"query": "file", "limit": 20})).expect("a query");
    let answer = query.answer(list.as_bytes()).expect("a list");
    assert!(answer.len() < 80 << 10, "{}", answer.len());
    assert!(String::from_utf8_lossy(&answer).contains("More fit"));
}

#[test]
fn what_a_model_writes_wrong_is_told_in_words_that_say_how_it_should_be() {
    for (wrong, says) in [
        (json!({}), "`query` must be"),
        (json!({"query": 1}), "`query` must be"),
        (json!({"query": " - "}), "`query` must be"),
        (json!({"query": "a", "limit": "3"}), "from 1 to 20"),
        (json!({"query": "a", "limit": 0}), "from 1 to 20"),
        (json!({"query": "a", "limit": 21}), "from 1 to 20"),
    ] {
        let told = query(&wrong);
        assert!(
            matches!(&told, Err(Wrong::Arguments(told)) if told.contains(says)),
            "{wrong}: {told:?}"
        );
    }
    let told = misused("say \"x\"");
    assert_eq!(
        serde_json::from_slice::<Value>(&told).expect("JSON"),
        json!({"content": [{"type": "text", "text": "say \"x\""}], "isError": true})
    );
}

#[test]
fn who_is_away_is_told_beside_what_is_found_and_where_nothing_is() {
    for (words, away, texts) in [
        ("read", json!(["dead"]), 2),
        ("none", json!(["dead", "gone"]), 2),
        ("read", json!([]), 1),
    ] {
        let mut list: Value = serde_json::from_slice(&catalogue()).expect("JSON");
        list["_meta"] = json!({"tollgate/unavailable": away});
        let query = query(&json!({"query": words})).expect("a query");
        let answer = query.answer(list.to_string().as_bytes()).expect("a list");
        let answer: Value = serde_json::from_slice(&answer).expect("JSON");
        let content = answer["content"].as_array().expect("a list");
        assert_eq!(content.len(), texts, "{answer}");
        if texts == 2 {
            assert_eq!(answer["_meta"]["tollgate/unavailable"], away);
            let says = content[1]["text"].as_str().expect("a text");
            assert!(says.starts_with("dead"), "{says}");
        } else {
            assert!(answer["_meta"].is_null(), "{answer}");
        }
    }
}

#[test]
fn a_call_of_what_was_found_is_a_call_of_that_tool() {
    let of = |arguments: &str| {
        let text = format!(
            r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"arguments":{arguments},"_meta":{{"a":1}},"name":"{CALL}"}}}}"#
        );
        let message = Message::read(text.as_bytes()).expect("a message");
        let text = unwrapped(text.as_bytes(), message.params.as_ref());
        text.map(|text| String::from_utf8(text).expect("text"))
    };
    assert_eq!(
        of(r#"{"arguments":{"n":1.50,"b": [ 1 ]},"name":"a__b"}"#).as_deref(),
        Ok(
            r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"arguments":{"n":1.50,"b": [ 1 ]},"_meta":{"a":1},"name":"a__b"}}"#
        )
    );
    assert!(of(r#"{"name":"a__b"}"#).is_ok_and(|text| text.contains(r#""arguments":{},"#)));
    for none in [
        "{}",
        "[]",
        r#"{"name":1}"#,
        r#"{"name":"a","arguments":[]}"#,
        r#"{"name":"a","name":"b"}"#,
        r#"{"name":"a","Name":"b"}"#,
    ] {
        assert!(of(none).is_err(), "{none}");
    }
}

#[test]
fn two_tools_are_listed() {
    let listed: Value = serde_json::from_slice(&listed()).expect("JSON");
    let names: Vec<&Value> = listed["tools"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|of| &of["name"])
        .collect();
    assert_eq!(names, [FIND, CALL]);
}
