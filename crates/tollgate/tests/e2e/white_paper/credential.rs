//! Whatever credential a client sends, the engine sees only the gate's.

use serde_json::{Value, json};

use super::{call, make};
use crate::harness::{Connection, Demo, Sdk, chat, post, seen_by};

/// The rogue credential, plain and in base64 as Basic sends it.
const ROGUE: [&str; 2] = ["malicious-token", "bWFsaWNpb3VzLXRva2Vu"];

/// Calls that carry it in different ways. The SDK's own bearer is omitted where it would be a second
/// credential, which is refused.
fn rogues(stream: bool) -> Vec<Value> {
    let instead = |name: &str, value: &str| json!({ "Authorization": null, name: value });
    let headers = [
        json!({}),
        json!({ "Authorization": "bearer malicious-token" }),
        json!({ "Authorization": "Basic bWFsaWNpb3VzLXRva2Vu" }),
        json!({ "Authorization": "malicious-token" }),
        json!({ "cookie": "token=malicious-token", "proxy-authorization": "Bearer malicious-token" }),
        json!({ "openai-organization": "malicious-token", "openai-project": "malicious-token" }),
        json!({ "x-amz-security-token": "malicious-token", "x-forwarded-access-token": "malicious-token" }),
        instead("x-api-key", "malicious-token"),
        instead("api-key", "malicious-token"),
        instead("x-goog-api-key", "malicious-token"),
        instead("x-auth-token", "malicious-token"),
    ];
    let of = |more: Value, query: Value| {
        let mut call = call("toolbench-agent", stream);
        call["api_key"] = "malicious-token".into();
        call["query"] = query;
        for (name, value) in more.as_object().expect("an object") {
            call["headers"][name] = value.clone();
        }
        call
    };
    let mut calls: Vec<Value> = headers.into_iter().map(|h| of(h, json!({}))).collect();
    for member in ["key", "api_key", "api-key", "access_token"] {
        calls.push(of(
            json!({ "Authorization": null }),
            json!({ member: "malicious-token" }),
        ));
    }
    calls
}

#[test]
fn a_call_with_a_rogue_credential_is_answered_and_the_credential_not_forwarded() {
    for (sdk, stream) in Sdk::ways() {
        let demo = Demo::start();
        let calls = rogues(stream);
        for (call, outcome) in calls.iter().zip(make(sdk, &demo, &calls)) {
            assert_eq!(outcome["status"], 200, "{sdk:?} {stream} {call} {outcome}");
            assert_eq!(outcome["model"], "gemini-2.5-flash");
        }
        let seen = seen_by(demo.frontier);
        assert_eq!(seen.len(), calls.len());
        let everything = Value::from(seen.clone()).to_string();
        for word in ROGUE {
            assert!(
                !everything.contains(word),
                "{sdk:?} {stream}: {word} crossed\n{everything}"
            );
        }
        let secret = bearer(&seen[0]);
        assert!(seen.iter().all(|request| bearer(request) == secret));
        engine_wants(&demo, &secret);
        assert!(seen_by(demo.on_prem).is_empty());
    }
}

/// Asserts that the engine refuses calls without the gate's credential and with the rogue one.
fn engine_wants(demo: &Demo, secret: &str) {
    let direct = |headers: &[&str]| {
        let request = post(
            "/v1/chat/completions",
            headers,
            &chat("gemini-2.5-flash", false),
        );
        Connection::open(demo.frontier).call(&request).status
    };
    assert_eq!(direct(&[]), 401);
    assert_eq!(direct(&["authorization: Bearer malicious-token"]), 401);
    assert_eq!(direct(&[&format!("authorization: {secret}")]), 200);
}

/// The value of `authorization` that an engine saw; asserts that there is exactly one.
fn bearer(request: &Value) -> String {
    let headers = request["headers"].as_array().expect("a list");
    let values: Vec<&str> = headers
        .iter()
        .filter(|h| h[0] == "authorization")
        .filter_map(|h| h[1].as_str())
        .collect();
    let [one] = values[..] else {
        panic!("not one authorization: {request}")
    };
    assert!(one.starts_with("Bearer "), "{one}");
    one.to_owned()
}
