//! Whatever credential a client sends, the engine sees only the gate's.

use serde_json::{Value, json};

use super::{call, runs, values};
use crate::harness::{Connection, Demo, chat, post};

/// The rogue credential, plain and in base64 as Basic sends it.
const ROGUE: [&str; 2] = ["malicious-token", "bWFsaWNpb3VzLXRva2Vu"];

/// Calls that carry it in different ways. The SDK's own bearer is omitted where it would be a second
/// credential, which is refused.
pub(super) fn rogues(stream: bool) -> Vec<Value> {
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
    for run in runs() {
        let what = run.what();
        for (call, outcome) in &run.rogue {
            assert_eq!(outcome["status"], 200, "{what} {call} {outcome}");
            assert_eq!(outcome["model"], "gemini-2.5-flash");
        }
        // One call before them had no rogue credential.
        assert_eq!(run.frontier.len(), 1 + run.rogue.len());
        let everything = Value::from([&run.frontier[..], &run.on_prem].concat()).to_string();
        for word in ROGUE {
            assert!(
                !everything.contains(word),
                "{what}: {word} crossed\n{everything}"
            );
        }
        let secret = bearer(&run.frontier[0]);
        let mut seen = run.frontier.iter();
        assert!(seen.all(|request| bearer(request) == secret));
        assert_eq!(run.direct, [401, 401, 200], "{what}");
        // The two that its limit let through.
        assert_eq!(run.on_prem.len(), 2, "{what}");
    }
}

/// What the engine itself says of calls without the gate's credential, with the rogue one and with the gate's.
pub(super) fn direct(demo: &Demo, seen: &[Value]) -> [u16; 3] {
    let direct = |headers: &[&str]| {
        let request = post(
            "/v1/chat/completions",
            headers,
            &chat("gemini-2.5-flash", false),
        );
        Connection::open(demo.frontier).call(&request).status
    };
    let secret = bearer(&seen[0]);
    [
        direct(&[]),
        direct(&["authorization: Bearer malicious-token"]),
        direct(&[&format!("authorization: {secret}")]),
    ]
}

/// The value of `authorization` that an engine saw; asserts that there is exactly one.
fn bearer(request: &Value) -> String {
    let [one] = values(request, "authorization")[..] else {
        panic!("not one authorization: {request}")
    };
    assert!(one.starts_with("Bearer "), "{one}");
    one.to_owned()
}
