//! What is found, in which order, and what a call of it becomes.

use std::sync::Arc;

use policy::mcp::Prefix;
use serde_json::{Value, json};

use super::{CALL, FIND, Looked, Query, Wrong, listed, misused, unwrapped};
use crate::catalog::{Catalog, Kind, Naming, Source, seen};
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

fn catalogue() -> Looked {
    let lists = [
        (
            "files",
            json!([
                {"name": "read_file", "description": "Read the contents of a file.", "inputSchema": {"type": "object"}, "_meta": {"x": 1}},
                {"name": "writeFile", "description": "Write text.", "inputSchema": {"type": "object", "properties": {"path": {}}}},
            ]),
        ),
        (
            "mail",
            json!([
                {"name": "send", "description": "Send an e-mail with attachments (files)."},
                {"name": "list", "title": "Inbox", "description": "List messages."},
            ]),
        ),
        (
            "clock",
            json!([{"name": "now", "annotations": {"title": "Tells the hour"}}]),
        ),
    ];
    looked(&lists)
}

fn looked(lists: &[(&str, Value)]) -> Looked {
    let lists: Vec<(Box<str>, Arc<Catalog>)> = lists
        .iter()
        .map(|(server, tools)| {
            let mut list = Catalog::default();
            let page = json!({"tools": tools}).to_string();
            list.add_page(Kind::Tools, page.as_bytes()).expect("a list");
            ((*server).into(), Arc::new(list))
        })
        .collect();
    let sources: Vec<Source<'_>> = lists
        .iter()
        .map(|(server, list)| Source {
            server,
            catalog: Some(list),
            last: None,
        })
        .collect();
    let naming = Naming::of(Prefix::Always, std::iter::empty());
    let tools = seen(Kind::Tools, &sources, &naming, |_, _| true);
    Looked {
        lists,
        tools,
        away: Vec::new(),
    }
}

fn answer(arguments: &Value, of: &Looked) -> Value {
    let answer = query(arguments).expect("a query").answer(of);
    serde_json::from_slice(&answer).expect("JSON")
}

fn found(arguments: &Value) -> Vec<String> {
    names(&answer(arguments, &catalogue()))
}

fn names(answer: &Value) -> Vec<String> {
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
fn nothing_is_found_that_is_not_shown_nor_do_others_change_the_order() {
    let mut shown = catalogue();
    shown.tools.retain(|of| (of.list, of.at) != (0, 1));
    let query = json!({"query": "write a file"});
    assert_eq!(
        names(&answer(&query, &shown)),
        ["files__read_file", "mail__send"]
    );
    shown.tools[0].name = Some("read_file".to_owned());
    assert_eq!(names(&answer(&query, &shown)), ["read_file", "mail__send"]);
    shown.tools.clear();
    assert_eq!(
        answer(&query, &shown)["content"][0]["text"],
        "None of 0 tools has these words: try others."
    );
}

#[test]
fn a_tool_is_told_with_what_a_model_needs_to_call_it() {
    let answer = answer(&json!({"query": "read"}), &catalogue());
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
    let list = looked(&[("files", json!(tools))]);
    let answer = answer(&json!({"query": "file", "limit": 20}), &list).to_string();
    assert!(answer.len() < 80 << 10, "{}", answer.len());
    assert!(answer.contains("More fit"));
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
        ("read", &["dead"][..], 2),
        ("none", &["dead", "gone"], 2),
        ("read", &[], 1),
    ] {
        let mut list = catalogue();
        list.away = away.iter().map(|of| (*of).into()).collect();
        let answer = answer(&json!({"query": words}), &list);
        let content = answer["content"].as_array().expect("a list");
        assert_eq!(content.len(), texts, "{answer}");
        if texts == 2 {
            assert_eq!(answer["_meta"]["tollgate/unavailable"], json!(away));
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
