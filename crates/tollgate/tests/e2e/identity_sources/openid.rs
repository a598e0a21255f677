//! A real OpenID provider: its keys are discovered, rotate and go away; its tokens are verified, asked about and revoked.
//!
//! Not here: tokens that no provider would give out (`tokens`, and the tables of attacks in `jose`), people who log in
//! (`browser_login`).

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use super::issuer::{claims, signed};
use super::{assert_invalid, bearer, call, config, echo, told};
use crate::harness::openid::{AUDIENCE, issuer};
use crate::harness::{Gate, OpenId, Upstream, free_address};

/// Each client that gets signed tokens, and how they begin: `{"alg":"RS256",` and so on.
const SIGNED: [(&str, &str); 3] = [
    ("batch-rsa", "eyJhbGciOiJSUzI1NiIs"),
    ("batch-ec", "eyJhbGciOiJFUzI1NiIs"),
    ("batch-ed", "eyJhbGciOiJFZERTQSIs"),
];
const OPAQUE: &str = "batch-opaque";
/// An introspected token that is revoked goes on so long: the default of `introspection.cache`.
const CACHE: Duration = Duration::from_secs(5);

/// A gate that takes the provider's signed tokens, and asks it about the others.
fn gate(upstream: &Upstream, provider: SocketAddr) -> Gate {
    let issuer = issuer(provider);
    let sources = format!(
        "\n  - jwt: {{ issuer: \"{issuer}\", audience: \"{AUDIENCE}\", workload_claim: client_id, \
         workloads: {{ batch-rsa: chat, batch-ec: chat, batch-ed: ci }} }}\n\
         \x20 - introspection: {{ url: \"{issuer}/token/introspection\", client_id: gate, \
         client_secret: {{ inline: gate-secret }}, audience: \"{AUDIENCE}\", \
         workload_claim: client_id, workloads: {{ {OPAQUE}: ci }}, user_claim: client_id }}"
    );
    Gate::start(&config(upstream, &sources), &[])
}

fn status(gate: &Gate, token: &str) -> u16 {
    call(gate, &[&bearer(token)]).status
}

/// Asks until the provider's keys are there: a gate fetches them beside its start. Gives how often it asked.
fn until_let_in(gate: &Gate, token: &str) -> usize {
    let mut asked = 0;
    testing::eventually("the keys are there", || {
        asked += 1;
        let status = status(gate, token);
        assert!([200, 503].contains(&status), "{status}");
        status == 200
    });
    asked
}

#[test]
fn the_keys_of_a_provider_are_discovered_and_its_tokens_say_who_calls() {
    let (upstream, address) = (echo(), free_address());
    let provider = OpenId::start(address, &[]);
    let gate = gate(&upstream, address);
    let before = until_let_in(&gate, &provider.token("batch-rsa", AUDIENCE));
    assert_eq!(gate.records(before).len(), before);
    for (client, beginning) in SIGNED {
        let token = provider.token(client, AUDIENCE);
        assert!(token.starts_with(beginning), "{token}");
        assert_eq!(status(&gate, &token), 200, "{client}");
        let other = provider.token(client, "https://another.test/");
        assert_invalid(&call(&gate, &[&bearer(&other)]), "of another audience");
    }
    let known = |record: &Value| json!([record["status"], record["workload"], record["user"]]);
    let records = gate.records(before + 2 * SIGNED.len());
    let known: Vec<Value> = records[before..].iter().map(known).collect();
    let expected = json!([
        [200, "chat", "batch-rsa"],
        [401, null, null],
        [200, "chat", "batch-ec"],
        [401, null, null],
        [200, "ci", "batch-ed"],
        [401, null, null]
    ]);
    assert_eq!(Value::from(known), expected);
}

#[test]
fn a_provider_is_asked_about_opaque_tokens_and_one_that_it_revoked_ends_within_the_cache() {
    let (upstream, address) = (echo(), free_address());
    let provider = OpenId::start(address, &[]);
    let gate = gate(&upstream, address);
    let [first, second] = [(); 2].map(|()| provider.token(OPAQUE, AUDIENCE));
    let asked = until_let_in(&gate, &first);
    assert_eq!(status(&gate, &second), 200);
    let named = gate.records(asked + 1).pop().expect("a record");
    let known = ["workload", "user", "identity"].map(|name| named[name].as_str());
    assert_eq!(known, [Some("ci"), Some(OPAQUE), Some("introspection")]);
    let other = provider.token(OPAQUE, "https://another.test/");
    assert_invalid(&call(&gate, &[&bearer(&other)]), "of another audience");

    provider.revoke(OPAQUE, &first);
    let revoked = testing::Began::now();
    testing::eventually("the revoked token is refused", || {
        testing::pace(Duration::from_millis(50));
        let is_over = revoked.is_over(CACHE);
        let is_good = status(&gate, &first) == 200;
        assert!(!is_good || !is_over, "a call after {CACHE:?} was let in");
        !is_good
    });
    assert_eq!(status(&gate, &second), 200, "the other one is good");
}

#[test]
fn keys_rotate_with_overlap_and_no_good_token_is_refused_meanwhile() {
    let (upstream, address) = (echo(), free_address());
    let provider = OpenId::start(address, &[]);
    let gate = gate(&upstream, address);
    let old = SIGNED.map(|(client, _)| provider.token(client, AUDIENCE));
    for token in &old {
        until_let_in(&gate, token);
    }

    provider.set_keys(&["first", "second"], "second");
    let new = SIGNED.map(|(client, _)| provider.token(client, AUDIENCE));
    for (old, new) in old.iter().zip(&new) {
        let [was, is] = [old, new].map(|token| token.split('.').next());
        assert_ne!(is, was, "another key signs");
        assert_eq!(status(&gate, new), 200, "good from the first call on");
        assert_eq!(status(&gate, old), 200, "and the old one still is");
    }

    // Of the new set, a gate hears when it is due, or by a token of a key that it does not know.
    provider.set_keys(&["second"], "second");
    let stranger = signed(&of(&provider), "p256");
    let is_over = AtomicBool::new(false);
    let calls = std::thread::scope(|scope| {
        let good = scope.spawn(|| good_meanwhile(&gate, &new, &is_over));
        let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            testing::eventually("the old key is gone", || {
                testing::pace(Duration::from_millis(250));
                assert_invalid(&call(&gate, &[&bearer(&stranger)]), "of no key");
                old.iter().all(|token| status(&gate, token) == 401)
            });
        }));
        is_over.store(true, Ordering::SeqCst);
        ended.expect("the old key is gone");
        good.join().expect("no good token was refused")
    });
    assert!(calls > 100, "{calls} calls");
}

/// Calls with these tokens until it is over, and says how often.
fn good_meanwhile(gate: &Gate, tokens: &[String], is_over: &AtomicBool) -> usize {
    let mut calls = 0;
    while !is_over.load(Ordering::SeqCst) {
        testing::pace(Duration::from_millis(20));
        for token in tokens {
            assert_eq!(status(gate, token), 200, "after {calls} calls");
            calls += 1;
        }
    }
    calls
}

/// The claims of a good token of the provider, but for who signs it.
fn of(provider: &OpenId) -> Value {
    let mut claims = claims();
    claims["iss"] = provider.issuer().into();
    claims["aud"] = AUDIENCE.into();
    claims["client_id"] = "batch-rsa".into();
    claims
}

#[test]
fn a_provider_that_is_away_at_the_start_is_waited_for_and_one_that_goes_away_is_not_missed() {
    let (upstream, address) = (echo(), free_address());
    let gate = gate(&upstream, address);
    let mut claims = claims();
    claims["iss"] = issuer(address).into();
    let early = call(&gate, &[&bearer(&signed(&claims, "p256"))]);
    assert_eq!(told(&early), (503, "identity_unavailable".to_owned()));
    let opaque = call(&gate, &[&bearer("opaque")]);
    assert_eq!(told(&opaque), (503, "identity_unavailable".to_owned()));
    assert_eq!(upstream.seen().len(), 0);

    let provider = OpenId::start(address, &[]);
    let [proven, unproven] = [(); 2].map(|()| provider.token("batch-ec", AUDIENCE));
    until_let_in(&gate, &proven);
    let opaque = provider.token(OPAQUE, AUDIENCE);
    drop(provider);
    assert_eq!(status(&gate, &proven), 200);
    assert_eq!(status(&gate, &unproven), 200, "by keys that are kept");
    let unasked = call(&gate, &[&bearer(&opaque)]);
    assert_eq!(told(&unasked), (503, "identity_unavailable".to_owned()));
}
