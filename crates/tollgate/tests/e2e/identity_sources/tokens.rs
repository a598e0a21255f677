//! Signed tokens by file and by URL, with keys that rotate; tokens that an endpoint is asked about.

use std::io::Write as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use super::issuer::{claims, jwks, now, signed};
use super::{assert_invalid, bearer, call, config, echo, told};
use crate::harness::answer::json as answer;
use crate::harness::{Connection, Gate, PartialUpstream, Step, Upstream, post};

/// Signed tokens of the test's issuer, whose keys are there.
fn source(keys: &str) -> String {
    format!(
        "[ {{ jwt: {{ issuer: \"https://issuer.test/\", audience: gate, jwks: {{ {keys} }}, \
         workload_claim: azp, tags: {{ team: dept }} }} }} ]"
    )
}

#[test]
fn a_signed_token_says_who_calls_and_a_bad_one_lets_nobody_in() {
    let upstream = echo();
    let set = jwks(&["rsa", "p256", "ed25519"]);
    let config = config(&upstream, &source("file: jwks.json"));
    let gate = Gate::start(&config, &[("jwks.json", set.as_bytes())]);
    for kid in ["rsa", "p256", "ed25519"] {
        let token = signed(&claims(), kid);
        for _ in 0..2 {
            let response = call(&gate, &[&bearer(&token)]);
            assert_eq!(response.status, 200, "{kid}: {}", response.text());
        }
        let named = call(&gate, &[&bearer(&token), "x-workload-app: chat"]);
        assert_eq!(named.status, 200, "{kid}");
        let other = call(&gate, &[&bearer(&token), "x-workload-app: ci"]);
        assert_eq!(told(&other), (403, "identity_contradicted".to_owned()));
    }
    assert!(
        upstream
            .seen()
            .iter()
            .all(|s| s.header("authorization") == ["Bearer gate-key"])
    );

    let with = |member: &str, value: Value| {
        let mut claims = claims();
        claims[member] = value;
        signed(&claims, "p256")
    };
    let good = signed(&claims(), "p256");
    let (head, _) = good.rsplit_once('.').expect("three parts");
    for (what, token) in [
        ("expired", with("exp", json!(now() - 61))),
        ("not yet valid", with("nbf", json!(now() + 120))),
        ("of another audience", with("aud", json!("gate2"))),
        (
            "of another issuer",
            with("iss", json!("https://issuer.test")),
        ),
        (
            "an expiry as text",
            with("exp", json!((now() + 60).to_string())),
        ),
        ("no signature", format!("{head}.")),
        ("another's signature", format!("{head}.{}", "A".repeat(86))),
        (
            "no algorithm",
            format!(
                "eyJhbGciOiJub25lIn0.{}.",
                head.split_once('.').expect("two").1
            ),
        ),
        ("two parts", head.to_owned()),
        ("no workload", with("azp", Value::Null)),
    ] {
        assert_invalid(&call(&gate, &[&bearer(&token)]), what);
    }
    let stranger = call(&gate, &[&bearer(&with("azp", json!("nobody")))]);
    assert_eq!(told(&stranger), (403, "workload_not_registered".to_owned()));
}

/// All tokens of an issuer begin alike: whoever knows one by a part of it takes a caller for another one.
#[test]
fn cve_2026_35030_tokens_that_differ_in_one_place_are_known_each_by_all_of_it() {
    let upstream = echo();
    let config = config(&upstream, &source("file: jwks.json"));
    let gate = Gate::start(&config, &[("jwks.json", jwks(&["p256"]).as_bytes())]);
    let token = |azp: &str| {
        let mut claims = claims();
        claims["azp"] = json!(azp);
        signed(&claims, "p256")
    };
    let (known, stranger) = (token("chat"), token("c_at"));
    let alike = known.bytes().zip(stranger.bytes());
    let alike = alike.take_while(|(one, other)| one == other).count();
    assert!(alike > 20, "{known} {stranger}");
    let (signed, signature) = known.rsplit_once('.').expect("a signature");
    let (_, of_stranger) = stranger.rsplit_once('.').expect("a signature");
    // A place whose six bits all count, at either end and in the middle of the signature.
    let forged = [0, signature.len() / 2, signature.len() - 2].map(|at| {
        let mut forged = signature.to_owned().into_bytes();
        forged[at] = if forged[at] == b'A' { b'B' } else { b'A' };
        let forged = String::from_utf8(forged).expect("text");
        format!("{signed}.{forged}")
    });
    for _ in 0..3 {
        assert_eq!(call(&gate, &[&bearer(&known)]).status, 200);
        let other = call(&gate, &[&bearer(&stranger)]);
        assert_eq!(told(&other), (403, "workload_not_registered".to_owned()));
        for forged in &forged {
            assert_invalid(&call(&gate, &[&bearer(forged)]), forged);
        }
        assert_invalid(
            &call(&gate, &[&bearer(&format!("{signed}.{of_stranger}"))]),
            "swapped",
        );
        assert_invalid(&call(&gate, &[&bearer(&format!("{known}A"))]), "longer");
        assert_invalid(
            &call(&gate, &[&bearer(&known[..known.len() - 1])]),
            "shorter",
        );
    }
}

/// A key set that the test can change, and how often it was fetched.
fn served(first: String) -> (Upstream, Arc<Mutex<String>>, Arc<AtomicUsize>) {
    let (set, fetched) = (Arc::new(Mutex::new(first)), Arc::new(AtomicUsize::new(0)));
    let (of, count) = (Arc::clone(&set), Arc::clone(&fetched));
    let server = Upstream::start(move |_, _| {
        count.fetch_add(1, Ordering::SeqCst);
        let set = of.lock().expect("a lock").clone();
        vec![Step::Send(answer(200, &set))]
    });
    (server, set, fetched)
}

#[test]
fn keys_that_rotate_are_fetched_once_for_a_key_that_is_not_known() {
    let upstream = echo();
    let (server, set, fetched) = served(jwks(&["rsa"]));
    let keys = format!("url: http://{}/keys", server.address);
    let gate = Gate::start(&config(&upstream, &source(&keys)), &[]);
    let (old, new) = (signed(&claims(), "rsa"), signed(&claims(), "p256"));
    testing::eventually("the keys are there", || {
        call(&gate, &[&bearer(&old)]).status == 200
    });

    *set.lock().expect("a lock") = jwks(&["rsa", "p256"]);
    let rotated = call(&gate, &[&bearer(&new)]);
    assert_eq!(rotated.status, 200, "{}", rotated.text());
    assert_eq!(call(&gate, &[&bearer(&old)]).status, 200, "both are good");
    let before = fetched.load(Ordering::SeqCst);

    // Keys that are gone prove nothing, whatever was proven with them before.
    *set.lock().expect("a lock") = jwks(&["p256"]);
    for n in 0..40 {
        let unknown = signed(&claims(), "ed25519");
        assert_invalid(&call(&gate, &[&bearer(&unknown)]), &format!("{n}"));
    }
    let asked = fetched.load(Ordering::SeqCst) - before;
    assert!(asked <= 1, "{asked} fetches for keys that nobody has");
}

#[test]
fn without_keys_of_its_issuer_a_token_is_neither_good_nor_bad() {
    let upstream = echo();
    let closed = crate::harness::free_address();
    let keys = format!("url: http://{closed}/keys");
    let gate = Gate::start(&config(&upstream, &source(&keys)), &[]);
    let token = signed(&claims(), "p256");
    let said = told(&call(&gate, &[&bearer(&token)]));
    assert_eq!(said, (503, "identity_unavailable".to_owned()));
    assert_eq!(upstream.seen().len(), 0);
}

#[test]
fn an_opaque_token_is_asked_about_once_and_a_revoked_one_ends_within_the_cache() {
    let upstream = echo();
    let active = Arc::new(Mutex::new(true));
    let of = Arc::clone(&active);
    let endpoint = Upstream::start(move |_, seen| {
        assert_eq!(seen.header("authorization"), ["Basic dG9sbGdhdGU6czNjcmV0"]);
        let body = String::from_utf8_lossy(&seen.body).into_owned();
        let is_known = body.contains("token=opaque-1");
        let is_active = is_known && *of.lock().expect("a lock");
        let said =
            json!({ "active": is_active, "client_id": "chat", "sub": "ada", "exp": now() + 60 });
        vec![Step::Send(answer(200, &said.to_string()))]
    });
    let source = format!(
        "[ {{ introspection: {{ url: http://{}/introspect, client_id: tollgate, \
         client_secret: {{ inline: s3cret }}, cache: 1s, workload_claim: client_id }} }} ]",
        endpoint.address
    );
    let gate = Gate::start(&config(&upstream, &source), &[]);
    for _ in 0..5 {
        let response = call(&gate, &[&bearer("opaque-1")]);
        assert_eq!(response.status, 200, "{}", response.text());
    }
    let asked = endpoint.seen().len();
    assert!((1..=3).contains(&asked), "{asked} questions for one token");
    assert_invalid(
        &call(&gate, &[&bearer("opaque-2")]),
        "a token that is not active",
    );
    *active.lock().expect("a lock") = false;
    testing::eventually("the revoked token is refused", || {
        call(&gate, &[&bearer("opaque-1")]).status == 401
    });
}

#[test]
fn an_endpoint_that_is_away_is_neither_yes_nor_no() {
    let upstream = echo();
    let closed = crate::harness::free_address();
    let source =
        format!("[ {{ introspection: {{ url: http://{closed}/introspect, workload: chat }} }} ]");
    let gate = Gate::start(&config(&upstream, &source), &[]);
    let said = told(&call(&gate, &[&bearer("opaque-1")]));
    assert_eq!(said, (503, "identity_unavailable".to_owned()));
    assert_eq!(
        told(&call(&gate, &[])),
        (401, "credential_missing".to_owned())
    );
}

#[test]
fn who_leaves_while_somebody_is_asked_who_it_is_leaves_a_record_and_nothing_open() {
    let endpoint = PartialUpstream::start(Vec::new());
    let ledger = tempfile::tempdir().expect("a directory");
    let config = format!(
        "identity: [ {{ introspection: {{ url: http://{}/introspect, workload: chat }} }} ]\n\
         backends: {{ up: {{ url: http://127.0.0.1:1/v1, credential: {{ inline: k }} }} }}\n\
         routes: [ {{ workload: chat, match: {{ model: m }}, backend: up, batches: {{ api: openai }} }} ]\n\
         mcp: {{ secret: {{ inline: {} }}, servers: {{ s: {{ url: http://127.0.0.1:1/mcp }} }}, routes: [ {{ workload: chat }} ] }}\n\
         ledger: {{ path: {} }}\n",
        endpoint.address,
        "s".repeat(32),
        ledger.path().join("usage.db").display()
    );
    let gate = Gate::start(&config, &[]);
    let paths = ["/v1/files", "/v1/batches", "/mcp"];
    for (nth, path) in paths.iter().enumerate() {
        let mut connection = Connection::open(gate.data);
        let request = post(path, &[&bearer(&format!("opaque-{nth}"))], "{}");
        connection
            .tcp
            .write_all(&request)
            .expect("the gate takes it");
        endpoint.reached();
    }
    let records = gate.records(paths.len());
    for record in &records {
        assert_eq!(record["outcome"], "aborted", "{record}");
    }
    testing::eventually("no exchange is open", || {
        gate.metric("tollgate_open_exchanges", &[]) < 0.5
    });
}
