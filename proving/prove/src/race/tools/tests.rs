//! What is sent, and which tool it is.

use load::source::Source as _;
use serde_json::json;

use super::message::{Era, around_id};
use super::{Calls, Version, find, knock};
use crate::subject::Client;

#[test]
fn a_tool_is_found_under_whatever_a_gateway_puts_before_its_name() {
    let listed = |names: &[&str]| {
        let tools: Vec<_> = names.iter().map(|name| json!({ "name": name })).collect();
        json!({ "tools": tools })
    };
    for name in ["echo", "s0__echo", "s0_echo", "s0-echo", "s0.echo"] {
        assert_eq!(
            find(&listed(&["s0__echo_events", name]), "echo").as_deref(),
            Ok(name)
        );
    }
    let says = find(&listed(&["gecko", "echo_events"]), "echo").expect_err("there is none");
    assert!(says.contains("no tool `echo`"), "{says}");
}

#[test]
fn each_call_has_another_id_and_the_head_of_the_next_session() {
    let era = Era::of(Version::November2025);
    let client = Client::default();
    let call = |session: &str| {
        let session = session.to_owned();
        era.request(
            &client,
            Some(&session),
            "tools/call",
            &json!({ "name": "echo" }),
        )
        .expect("a request")
    };
    let (one, two) = (call("one"), call("two"));
    let (before, after) = around_id(&one.body).expect("an id");
    let calls = Calls::new(vec![one.head, two.head], before, after);
    let sent = || {
        let turn = calls.turn(0, 0, 0).expect("a turn");
        let body: Vec<u8> = turn.payload.parts().iter().flatten().copied().collect();
        let body: serde_json::Value = serde_json::from_slice(&body).expect("JSON");
        let headers = turn.head.expect("a head").headers();
        let session = headers.iter().find(|(name, _)| name == "mcp-session-id");
        let session = session
            .expect("a session")
            .1
            .to_str()
            .expect("text")
            .to_owned();
        (body["id"].as_u64().expect("a number"), session)
    };
    let all: Vec<_> = (0..3).map(|_| sent()).collect();
    assert_eq!(
        all.iter().map(|(id, _)| *id).collect::<Vec<_>>(),
        [1000, 1001, 1002]
    );
    let sessions: Vec<_> = all.iter().map(|(_, session)| session.as_str()).collect();
    assert_eq!(sessions, ["one", "two", "one"]);
}

#[test]
fn a_request_without_a_session_says_in_headers_what_it_is_about() {
    let era = Era::of(Version::July2026);
    let request = era.request(
        &Client::default(),
        None,
        "tools/call",
        &json!({ "name": "echo" }),
    );
    let request = request.expect("a request");
    let has = |name: &str, value: &str| {
        let mut headers = request.head.headers().iter();
        headers.any(|(of, is)| of == name && is == value)
    };
    assert!(has("mcp-method", "tools/call") && has("mcp-name", "echo"));
    assert!(has("mcp-protocol-version", "2026-07-28"));
    let body: serde_json::Value = serde_json::from_slice(&request.body).expect("JSON");
    let meta = &body["params"]["_meta"];
    assert_eq!(
        meta["io.modelcontextprotocol/protocolVersion"],
        "2026-07-28"
    );
    let knock = knock(&Client::default()).expect("a request");
    let body: serde_json::Value = serde_json::from_slice(&knock.body).expect("JSON");
    assert_eq!(body["params"]["protocolVersion"], "2025-11-25");
}
