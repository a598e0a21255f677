//! A caller's own token, given for another one.

use jose::sign::{SigningKey, SystemRandom};
use serde_json::json as value;

use super::*;

/// Who signs callers' tokens.
struct Issuer(SigningKey);

impl Issuer {
    fn new() -> (Self, String) {
        let key = rcgen::KeyPair::generate().expect("a key");
        let signing =
            SigningKey::from_pem(key.serialize_pem().as_bytes(), None, &SystemRandom::new());
        (Self(signing.expect("a key")), key.public_key_pem())
    }

    /// A token of this subject.
    fn token(&self, subject: &str) -> String {
        let claims = value!({
            "iss": "https://login.example", "aud": "gate", "sub": subject, "exp": 4_000_000_000_u64,
        });
        let claims = claims.as_object().expect("claims");
        let token = self
            .0
            .sign(&serde_json::Map::new(), claims, &SystemRandom::new());
        token.expect("a token")
    }
}

/// Gives each caller a token of its own.
fn exchange() -> Upstream {
    Upstream::start(|_, seen: &Seen| {
        let caller = form(seen).get("subject_token").cloned().unwrap_or_default();
        let payload = caller.split('.').nth(1).unwrap_or_default().to_owned();
        let body = format!(
            r#"{{"access_token":"{CANARY}.{payload}","token_type":"Bearer","issued_token_type":"urn:x","expires_in":600}}"#
        );
        vec![Step::Send(json(200, &body))]
    })
}

#[test]
fn each_callers_token_is_exchanged_for_one_of_its_own_and_kept() {
    let (issuer, public) = Issuer::new();
    let (engine, endpoint) = (engine(), exchange());
    let config = format!(
        "identity:\n  - jwt: {{ issuer: https://login.example, audience: gate, workload: w, jwks: {{ file: issuer.pem }} }}\n  \
         - header: x-workload-app\n    from: 127.0.0.1\n\
         backends:\n  up: {{ url: http://{}/v1, credential: {{ exchange: {{ token_url: http://{}/token, client_id: gate, \
         client_secret: {{ inline: {CANARY}-s }}, audience: models }} }} }}\n\
         routes: [ {{ workload: w, backend: up }} ]\n",
        engine.address, endpoint.address
    );
    let gate = Gate::start(&config, &[("issuer.pem", public.as_bytes())]);
    let call_as = |token: &str| {
        let authorization = format!("authorization: Bearer {token}");
        gate.call(&post(
            "/v1/chat/completions",
            &[&authorization],
            &chat("m", false),
        ))
    };
    // Users are written down, and so are no secrets of theirs.
    let (ada, bob) = (issuer.token("ada"), issuer.token("bob"));
    for token in [&ada, &bob, &ada, &bob, &ada] {
        let response = call_as(token);
        assert_eq!(response.status, 200, "{}", response.text());
        let payload = token.split('.').nth(1).expect("a payload");
        assert_eq!(last(&engine), format!("Bearer {CANARY}.{payload}"));
        let seen = engine.seen().pop().expect("it arrived");
        assert!(
            !seen.head.contains(token.as_str()),
            "the caller's token went upstream"
        );
    }
    assert_eq!(endpoint.seen().len(), 2, "each once");
    let asked = form(&endpoint.seen()[0]);
    assert_eq!(
        asked["grant_type"],
        "urn:ietf:params:oauth:grant-type:token-exchange"
    );
    assert_eq!(asked["subject_token"], ada);
    assert_eq!(
        asked["subject_token_type"],
        "urn:ietf:params:oauth:token-type:access_token"
    );
    assert_eq!(asked["audience"], "models");
    // Somebody who is known by a header brings nothing that could be exchanged.
    let headers = ["x-workload-app: w"];
    let response = gate.call(&post("/v1/chat/completions", &headers, &chat("m", false)));
    assert_eq!(
        response.code(),
        "upstream_credential_unavailable",
        "{}",
        response.text()
    );
    // A token that proves nothing is given to nobody.
    assert_eq!(call_as(&format!("{ada}x")).status, 401);
    assert_eq!((engine.seen().len(), endpoint.seen().len()), (5, 2));
    assert_eq!(gate.records(7).len(), 7);
    let stage = |stage: &str| {
        let label = format!("stage=\"{stage}\"");
        gate.metric("tollgate_stage_seconds_count", &[&label])
    };
    assert!(stage("credential") >= 2.0, "two calls waited for tokens");
    assert_eq!(stage("upstream"), 5.0);
    assert!(stage("own") >= 5.0);
    assert_eq!(stage("authorization"), 0.0, "nobody was asked");
    assert_silent(&gate);
    let log = gate.log();
    assert!(
        ![ada, bob].iter().any(|token| log.contains(token.as_str())),
        "the log holds a token"
    );
}
