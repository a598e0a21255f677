//! Credentials that the gate makes for upstreams, each with a fake of the endpoint that it asks, which checks what it gets.
//!
//! Invariant: an upstream sees a credential that was given for this call, or it sees no call.
//! Not here: secrets that are sent as they are (`credentials`).

mod added;
mod caller;
mod clouds;
mod failing;
mod recorder;
mod signed;

use std::collections::BTreeMap;
use std::time::Duration;

use crate::harness::answer::{COMPLETION, json};
use crate::harness::{Gate, Response, Seen, Step, Upstream, chat, post};

/// Part of every secret here.
const CANARY: &str = "cAnArY4b1d";

/// An engine that answers every call.
fn engine() -> Upstream {
    Upstream::start(|_, _| vec![Step::Send(json(200, COMPLETION))])
}

/// A token endpoint whose nth token is `token-n`, for so many seconds.
fn endpoint(life_s: u64) -> Upstream {
    Upstream::start(move |n, _| vec![Step::Send(json(200, &token(n, life_s)))])
}

fn token(n: usize, life_s: u64) -> String {
    format!(
        r#"{{"access_token":"{CANARY}-token-{n}","token_type":"Bearer","expires_in":{life_s}}}"#
    )
}

/// One call of the workload `w`.
fn call(gate: &Gate) -> Response {
    gate.call(&post(
        "/v1/chat/completions",
        &["x-workload-app: w"],
        &chat("m", false),
    ))
}

/// The credential of the request that came last.
fn last(engine: &Upstream) -> String {
    let seen = engine.seen().pop().expect("a call arrived");
    let lines = seen.header("authorization");
    let [line] = &lines[..] else {
        panic!("{lines:?} in {}", seen.head);
    };
    line.clone()
}

/// The fields of a form.
fn form(seen: &Seen) -> BTreeMap<String, String> {
    assert_eq!(
        seen.header("content-type"),
        ["application/x-www-form-urlencoded"]
    );
    let text = String::from_utf8(seen.body.clone()).expect("text");
    let pairs = text
        .split('&')
        .map(|pair| pair.split_once('=').expect("a field"));
    pairs
        .map(|(name, value)| (decoded(name), decoded(value)))
        .collect()
}

fn decoded(text: &str) -> String {
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        match byte {
            b'+' => bytes.push(b' '),
            b'%' => {
                let digits = std::str::from_utf8(&after[..2]).expect("digits");
                bytes.push(u8::from_str_radix(digits, 16).expect("digits"));
                rest = &after[2..];
            }
            byte => bytes.push(*byte),
        }
    }
    String::from_utf8(bytes).expect("text")
}

/// Nothing that the gate wrote or shows holds a secret.
fn assert_silent(gate: &Gate) {
    let log = gate.log() + &std::fs::read_to_string(gate.path("access.jsonl")).unwrap_or_default();
    let pages = gate.metrics() + &gate.admin("/config").text();
    for (what, text) in [("a log", log), ("a page", pages)] {
        let line = text.lines().find(|line| line.contains(CANARY));
        assert_eq!(line, None, "{what} holds a secret");
    }
}

#[test]
fn a_token_of_an_oauth_endpoint_goes_upstream_and_is_shared_and_kept() {
    let (engine, endpoint) = (engine(), endpoint(3600));
    let config = |more: &str| {
        format!(
            "backends:\n  up:\n    endpoints: [ {{ url: http://{0}/v1 }}, {{ url: http://{0}/v2 }} ]\n    \
             credential: {{ oauth: {{ token_url: http://{1}/token, client_id: the gate, client_secret: {{ file: secret }}, \
             scope: [a, b], audience: models, fields: {{ tenant: main }} }} }}\n\
             routes: [ {{ workload: w, backend: up }} ]\n{more}",
            engine.address, endpoint.address
        )
    };
    let secret = format!("{CANARY}+secret\n");
    let gate = Gate::start(&config(""), &[("secret", secret.as_bytes())]);
    for _ in 0..6 {
        assert_eq!(call(&gate).status, 200);
        assert_eq!(last(&engine), format!("Bearer {CANARY}-token-0"));
    }
    let [asked] = &endpoint.seen()[..] else {
        panic!("asked {} times", endpoint.seen().len());
    };
    assert!(
        asked.head.starts_with("POST /token HTTP/1.1"),
        "{}",
        asked.head
    );
    let fields = form(asked);
    let fields: Vec<(&str, &str)> = fields.iter().map(|(n, v)| (&**n, &**v)).collect();
    let expected = [
        ("audience", "models"),
        ("grant_type", "client_credentials"),
        ("scope", "a b"),
        ("tenant", "main"),
    ];
    assert_eq!(fields, expected);
    let basic = asked.header("authorization").concat();
    assert!(basic.starts_with("Basic "), "{basic}");
    // A reload that changes nothing of it keeps the token; another secret makes another one.
    gate.reconfigure(&config("bounds: { body: 1MiB }\n"));
    testing::eventually("the reload", || {
        gate.log().matches("configuration taken").count() == 1
    });
    assert_eq!(call(&gate).status, 200);
    assert_eq!(
        (last(&engine), endpoint.seen().len()),
        (format!("Bearer {CANARY}-token-0"), 1)
    );
    gate.replace("secret", format!("{CANARY}-other").as_bytes());
    testing::eventually("the new secret is used", || endpoint.seen().len() == 2);
    assert_ne!(endpoint.seen()[1].header("authorization").concat(), basic);
    testing::eventually("the new token is sent", || {
        call(&gate).status == 200 && last(&engine) == format!("Bearer {CANARY}-token-1")
    });
    assert_silent(&gate);
}

#[test]
fn a_token_is_fetched_anew_before_it_ends() {
    let (engine, endpoint) = (engine(), endpoint(5));
    let config = format!(
        "backends: {{ up: {{ url: http://{}/v1, credential: {{ header: x-own, scheme: Key, oauth: {{ \
         token_url: http://{}/token, client_id: gate, client_secret: {{ inline: {CANARY}-s }}, client_auth: post }} }} }} }}\n\
         routes: [ {{ workload: w, backend: up }} ]\n",
        engine.address, endpoint.address
    );
    let gate = Gate::start(&config, &[]);
    let mut sent = std::collections::BTreeSet::new();
    // A call that finds a token near its end is served by it, and by the next one once that is there.
    while sent.len() < 2 {
        let response = call(&gate);
        assert_eq!(response.status, 200, "{}", response.text());
        let seen = engine.seen().pop().expect("it arrived");
        assert!(seen.header("authorization").is_empty(), "{}", seen.head);
        sent.extend(seen.header("x-own"));
        testing::pace(Duration::from_millis(100));
    }
    assert!(sent.iter().all(|line| line.starts_with("Key ")), "{sent:?}");
    let fields = form(&endpoint.seen()[0]);
    assert_eq!(fields["client_id"], "gate");
    assert_eq!(fields["client_secret"], format!("{CANARY}-s"));
    assert_silent(&gate);
}
