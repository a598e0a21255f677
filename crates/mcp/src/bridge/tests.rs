//! Messages of one kind of versions as those of the other.

use serde_json::{Value, json};

use super::{
    Legacy, Need, STATE_BYTES_MAX, TaskId, Unusable, again, cancelled, state_in, to_legacy,
    to_modern, told_legacy, told_modern, with_id,
};
use crate::client::Can;
use crate::envelope::{Fault, Message};
use crate::reply::edited;

fn request(params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{params}}}"#)
}

fn params(text: &str) -> Option<std::ops::Range<usize>> {
    Message::read(text.as_bytes()).expect("a message").params
}

fn result(of: Value) -> String {
    json!({"jsonrpc": "2.0", "id": 7, "result": of}).to_string()
}

fn json_of(text: &[u8]) -> Value {
    serde_json::from_slice(text).unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(text)))
}

#[test]
fn a_request_of_a_client_with_a_session_says_to_a_server_without_sessions_what_its_session_says() {
    let can = Can::of(br#"{"elicitation":{}}"#);
    for (before, meta) in [
        (r#"{"name":"a"}"#, json!({})),
        (r#"{ "name":"a","_meta":{} }"#, json!({})),
        (
            r#"{"_meta":{"progressToken":3},"name":"a"}"#,
            json!({"progressToken": 3}),
        ),
        (r#"{"name":"a","_meta":null}"#, json!({})),
    ] {
        let text = request(before);
        let edits = to_modern(text.as_bytes(), params(&text).as_ref(), can, Some("error"))
            .expect("it is made");
        let made = json_of(&edited(text.as_bytes(), edits));
        let mut expected = meta;
        expected["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
        expected["io.modelcontextprotocol/clientCapabilities"] = json!({"elicitation": {}});
        expected["io.modelcontextprotocol/logLevel"] = json!("error");
        expected["io.modelcontextprotocol/clientInfo"] =
            json!({"name": "tollgate", "version": env!("CARGO_PKG_VERSION")});
        assert_eq!(
            made["params"],
            json!({"name": "a", "_meta": expected}),
            "{before}"
        );
        assert_eq!(made["id"], 7);
        let quiet =
            to_modern(text.as_bytes(), params(&text).as_ref(), can, None).expect("it is made");
        let quiet = json_of(&edited(text.as_bytes(), quiet));
        assert!(quiet["params"]["_meta"]["io.modelcontextprotocol/logLevel"].is_null());
    }
    for before in [
        r#"{"name":"a","_meta":{"io.modelcontextprotocol/clientCapabilities":{"sampling":{}}}}"#,
        r#"{"name":"a","requestState":"x"}"#,
        r#"{"name":"a","inputResponses":{}}"#,
        r#"{"name":"a","_META":{}}"#,
    ] {
        let text = request(before);
        let made = to_modern(text.as_bytes(), params(&text).as_ref(), can, Some("error"));
        assert!(
            matches!(made, Err(Fault::NotRpc(_) | Fault::Ambiguous(_))),
            "{before}"
        );
    }
}

#[test]
fn a_server_with_sessions_is_not_told_what_its_session_says() {
    let text = request(
        r#"{"name":"a","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","progressToken":"t","io.modelcontextprotocol/clientCapabilities":{},"traceparent":"00-1"}}"#,
    );
    let edits = to_legacy(text.as_bytes(), params(&text).as_ref()).expect("it is made");
    let made = json_of(&edited(text.as_bytes(), edits));
    assert_eq!(
        made["params"],
        json!({"name": "a", "_meta": {"progressToken": "t", "traceparent": "00-1"}})
    );
}

#[test]
fn a_client_without_a_session_is_told_complete_results_and_codes_of_its_version() {
    let told = |answer: &str, is_read, is_public| {
        let seal = |state: &str| Some(format!("sealed {state}"));
        let told = told_modern(answer.as_bytes(), is_read, is_public, seal, TaskId::None);
        json_of(&told.expect("an answer"))
    };
    let of = |answer: Value, is_read, is_public| {
        told(&result(answer), is_read, is_public)["result"].clone()
    };
    assert_eq!(
        of(json!({}), false, false),
        json!({"resultType": "complete"})
    );
    assert_eq!(
        of(json!({"content": []}), false, false),
        json!({"resultType": "complete", "content": []})
    );
    let complete = json!({"resultType": "complete", "content": []});
    assert_eq!(of(complete.clone(), false, false), complete);
    let read =
        json!({"resultType": "complete", "contents": [], "ttlMs": 9, "cacheScope": "public"});
    assert_eq!(of(read.clone(), true, true), read);
    assert_eq!(of(read, true, false)["cacheScope"], "private");
    assert_eq!(
        of(json!({"contents": []}), true, true),
        json!({"resultType": "complete", "contents": [], "ttlMs": 0, "cacheScope": "private"})
    );
    assert_eq!(
        of(
            json!({"resultType": "input_required", "requestState": "s", "inputRequests": {}}),
            true,
            false
        ),
        json!({"resultType": "input_required", "requestState": "sealed s", "inputRequests": {}})
    );
    let error = |code: i32| {
        json!({"jsonrpc": "2.0", "id": 7, "error": {"code": code, "message": "m"}}).to_string()
    };
    for (code, instead) in [(-32002, -32602), (-32042, -32603), (-32021, -32021), (7, 7)] {
        assert_eq!(told(&error(code), false, false)["error"]["code"], instead);
    }
    for none in [
        r#"{"jsonrpc":"2.0","id":7,"result":[]}"#,
        r#"{"jsonrpc":"2.0","id":7,"result":{"resultType":7}}"#,
        r#"{"jsonrpc":"2.0","id":7,"result":{"resultType":"input_required","requestState":7}}"#,
        r#"{"jsonrpc":"2.0","id":7}"#,
    ] {
        assert!(
            told_modern(none.as_bytes(), false, false, |_| None, TaskId::None).is_err(),
            "{none}"
        );
    }
    let state = result(json!({"resultType": "input_required", "requestState": "s"}));
    assert!(
        told_modern(state.as_bytes(), false, false, |_| None, TaskId::None).is_err(),
        "it cannot be sealed"
    );
}

#[test]
fn a_client_with_a_session_is_asked_what_a_server_without_sessions_wants_to_know() {
    let of = |answer: Value| told_legacy(result(answer).as_bytes());
    assert_eq!(of(json!({"content": []})), Ok(Legacy::Answer));
    assert_eq!(
        of(json!({"content": [], "resultType": "complete"})),
        Ok(Legacy::Answer)
    );
    assert_eq!(
        of(json!({"resultType": "task"})),
        Ok(Legacy::Unknown("task".into()))
    );
    assert!(of(json!({"resultType": "input_required"})).is_err());
    let answer = json!({"resultType": "input_required", "requestState": "a\"b", "inputRequests": {
        "who": {"method": "elicitation/create", "params": {"message": "Who?"}}, "roots": {"method": "roots/list"}}});
    let Ok(Legacy::Needs(mut needs)) = of(answer) else {
        panic!("it needs something");
    };
    needs.requests.sort_by(|one, other| one.key.cmp(&other.key));
    assert_eq!(needs.state.as_deref(), Some(&br#""a\"b""#[..]));
    assert_eq!(
        needs.requests[0],
        Need {
            key: "roots".into(),
            method: "roots/list".into(),
            params: None
        }
    );
    assert_eq!(
        needs.requests[1].params.as_deref(),
        Some(&br#"{"message":"Who?"}"#[..])
    );
    let many: serde_json::Map<String, Value> = (0..40)
        .map(|n| (n.to_string(), json!({"method": "roots/list"})))
        .collect();
    assert!(of(json!({"resultType": "input_required", "inputRequests": many})).is_err());
    let text = request(r#"{"name":"a"}"#);
    let answers = [("who".to_owned(), br#"{"action":"accept"}"#.to_vec())];
    let made = again(
        text.as_bytes(),
        params(&text).as_ref(),
        &answers,
        needs.state.as_deref(),
    );
    let expected = json!({"name": "a", "inputResponses": {"who": {"action": "accept"}}, "requestState": "a\"b"});
    assert_eq!(json_of(&made.expect("it is made"))["params"], expected);
}

#[test]
fn a_state_that_is_longer_than_may_be_is_told_of_and_neither_kept_nor_sealed() {
    for (bytes, is_long) in [(STATE_BYTES_MAX - 2, false), (STATE_BYTES_MAX + 1, true)] {
        let state = "x".repeat(bytes);
        let answer = result(json!({"resultType": "input_required", "requestState": state}));
        let legacy = told_legacy(answer.as_bytes()).err();
        let modern = told_modern(
            answer.as_bytes(),
            false,
            false,
            |_| Some("s".to_owned()),
            TaskId::None,
        );
        let long = is_long.then_some(Unusable::LongState);
        assert_eq!((legacy, modern.err()), (long, long));
    }
}

#[test]
fn an_answer_has_the_id_that_its_client_gave() {
    let answer = br#"{"jsonrpc":"2.0","id":"tollgate-7","result":{"id":"tollgate-7"}}"#;
    let told = with_id(answer, b"3").expect("an answer");
    assert_eq!(
        json_of(&told),
        json!({"jsonrpc": "2.0", "id": 3, "result": {"id": "tollgate-7"}})
    );
    assert!(with_id(br#"{"jsonrpc":"2.0","id":1,"method":"m"}"#, b"3").is_err());
    assert_eq!(json_of(&cancelled(b"\"a\""))["params"]["requestId"], "a");
}

#[test]
fn the_state_of_a_request_is_a_text() {
    let text = request(r#"{"name":"a","requestState":"x\ny"}"#);
    let found = state_in(text.as_bytes(), params(&text).as_ref()).expect("it is read");
    let (state, at) = found.expect("a state");
    assert_eq!((&*state, &text[at]), ("x\ny", r#""x\ny""#));
    let text = request(r#"{"name":"a","requestState":{}}"#);
    assert!(state_in(text.as_bytes(), params(&text).as_ref()).is_err());
    assert_eq!(state_in(b"{}", None), Ok(None));
}

#[test]
fn the_id_of_a_task_is_told_as_its_client_is_shown_it() {
    let seal = |id: &str| (id == "t1").then(|| "sealed".to_owned());
    let told = |answer: Value, task: TaskId<'_>| {
        let answer = result(answer);
        let told = told_modern(answer.as_bytes(), false, false, |_| None, task);
        told.map(|told| json_of(&told)["result"].clone())
    };
    let made = json!({"resultType": "task", "taskId": "t1", "status": "working"});
    let shown = json!({"resultType": "task", "taskId": "sealed", "status": "working"});
    assert_eq!(told(made.clone(), TaskId::Sealed(&seal)), Ok(shown));
    for cannot_ask in [TaskId::None, TaskId::Shown("own")] {
        assert_eq!(told(made.clone(), cannot_ask), Err(Unusable::Task));
    }
    for none in [
        json!({"resultType": "task"}),
        json!({"resultType": "task", "taskId": 7}),
        json!({"resultType": "task", "taskId": "too long"}),
    ] {
        assert!(told(none.clone(), TaskId::Sealed(&seal)).is_err(), "{none}");
    }
    let got = json!({"resultType": "complete", "taskId": "t1", "result": {"taskId": "t1"}});
    assert_eq!(
        told(got.clone(), TaskId::Shown("own")),
        Ok(json!({"resultType": "complete", "taskId": "own", "result": {"taskId": "t1"}}))
    );
    assert_eq!(
        told(got.clone(), TaskId::Sealed(&seal)),
        Ok(got),
        "a result of a tool's own"
    );
    assert_eq!(
        told(json!({}), TaskId::Shown("own")),
        Ok(json!({"resultType": "complete"}))
    );
}
