//! Servers that are sent a token which a token endpoint gives for that of the caller: whose it is, and that nothing of one caller is shown to
//! another.
//!
//! Not here: tokens that callers bring for servers themselves (`own_tokens`), the same for models (`upstream_credentials`).

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::openapi::description;
use super::own_tokens::{bringing, personal, tools};
use super::{Caller, Told, config, server, url};
use crate::harness::{Gate, Seen, Step, Upstream, answer};
use crate::identity_sources::issuer::{ISSUER, claims, jwks, signed};

/// A token of this person.
fn token(subject: &str) -> String {
    let mut claims = claims();
    claims["sub"] = subject.into();
    signed(&claims, "ed25519")
}

/// The header line that brings it.
fn bearer(token: &str) -> String {
    format!("authorization: Bearer {token}")
}

/// A token endpoint that gives `its-NAME` for the token of a name, and refuses every other.
fn endpoint(names: &BTreeMap<String, &'static str>) -> Upstream {
    let names = names.clone();
    Upstream::start(move |_, seen: &Seen| {
        let form = String::from_utf8(seen.body.clone()).expect("a form");
        let subject = form
            .split('&')
            .find_map(|pair| pair.strip_prefix("subject_token="));
        let name = subject.and_then(|subject| names.get(subject));
        vec![Step::Send(match name {
            Some(name) => answer::json(
                200,
                &json!({"access_token": format!("its-{name}"), "token_type": "Bearer", "expires_in": 600})
                    .to_string(),
            ),
            None => answer::json(400, r#"{"error":"invalid_grant"}"#),
        })]
    })
}

/// A gate whose server `one` is sent exchanged tokens, and `two` none.
fn gate((one, two): (&Upstream, &Upstream), endpoint: &Upstream) -> Gate {
    let servers = format!(
        "    one: {{ url: \"{}\", credential: {{ exchange: {{ token_url: http://{}/token, client_id: gate, \
         client_secret: {{ inline: the-secret }}, audience: one }} }} }}\n    two: {{ url: \"{}\" }}",
        url(one),
        endpoint.address,
        url(two)
    );
    let routes = "    - { workload: agents }";
    let keys = jwks(&["ed25519"]);
    Gate::start(
        &(identity() + &config(&servers, routes)),
        &[("keys.json", keys.as_bytes())],
    )
}

/// Callers are known by tokens of the issuer, or by a header.
fn identity() -> String {
    format!(
        "workers: 1\nidentity:\n  - jwt: {{ issuer: \"{ISSUER}\", audience: gate, workload: agents, jwks: {{ file: keys.json }} }}\n  \
         - header: x-workload-app\n    from: 127.0.0.1\n"
    )
}

fn called(caller: &Caller<'_>, line: &str) -> Told {
    let params = json!({"name": "one__any", "arguments": {}});
    bringing(caller, &[line], "tools/call", &params)
}

fn result(told: &Told) -> (Value, Value) {
    let result = &told.body["result"];
    assert_eq!(told.status, 200, "{}", told.body);
    (result["token"].clone(), result["session"].clone())
}

#[test]
fn a_server_is_sent_what_is_given_for_its_callers_token_and_what_it_shows_is_that_callers() {
    let (ada, ben, eve) = (token("ada"), token("ben"), token("eve"));
    let names = BTreeMap::from([(ada.clone(), "ada"), (ben.clone(), "ben")]);
    let (one, two, endpoint) = (personal(), server("two"), endpoint(&names));
    let gate = gate((&one, &two), &endpoint);
    let caller = Caller::new(&gate, "agents");
    let list = |token: &str| bringing(&caller, &[&bearer(token)], "tools/list", &json!({}));
    for (token, name) in [(&ada, "ada"), (&ben, "ben"), (&ada, "ada")] {
        let told = list(token);
        let its = format!("one__of_its-{name}");
        assert_eq!(tools(&told), [&*its, "two__read", "two__delete"]);
        assert_eq!(told.body["result"]["cacheScope"], "private");
    }
    // Sessions that the gate keeps at the server are each caller's.
    let (hers, his) = (
        result(&called(&caller, &bearer(&ada))),
        result(&called(&caller, &bearer(&ben))),
    );
    assert_eq!(
        (&hers.0, &his.0),
        (&json!("Bearer its-ada"), &json!("Bearer its-ben"))
    );
    assert_ne!(hers.1, his.1);
    assert_eq!(result(&called(&caller, &bearer(&ada))), hers);
    assert_eq!(endpoint.count(), 2, "each token is exchanged once");
    // A session of a client is used with its caller's token, and is worth nothing to another.
    let mut session = Caller::new(&gate, "agents");
    let begin =
        json!({"jsonrpc": "2.0", "id": 7, "method": "initialize", "params": super::initialize()});
    let told = session.send("POST", &[&bearer(&ada)], begin.to_string().as_bytes());
    assert_eq!(told.status, 200, "{}", told.body);
    session.session = told.session;
    let call =
        json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "one__any"}});
    let call = call.to_string();
    let told = session.send("POST", &[&bearer(&ada)], call.as_bytes());
    assert_eq!(result(&told).0, "Bearer its-ada");
    let told = session.send("POST", &[&bearer(&ben)], call.as_bytes());
    assert_eq!(told.status, 404, "{}", told.body);
    // Where none is given the client is told, and nothing goes out: neither for a token that is refused nor without one.
    let seen = one.count();
    for line in [bearer(&eve), "x-nothing: 1".to_owned()] {
        let told = called(&caller, &line);
        assert_eq!(
            (told.status, &told.body["error"]["data"]["code"]),
            (503, &json!("upstream_credential_unavailable")),
            "{}",
            told.body
        );
        let told = bringing(&caller, &[&line], "tools/list", &json!({}));
        assert_eq!(tools(&told), ["two__read", "two__delete"]);
        let missing = &told.body["result"]["_meta"]["tollgate/unavailable"];
        assert_eq!(missing, &json!(["one"]), "{}", told.body);
    }
    assert_eq!(one.count(), seen, "nothing was sent");
    for seen in one.seen().iter().chain(&two.seen()) {
        let tokens = [&ada, &ben, &eve];
        assert!(
            !tokens
                .iter()
                .any(|token| seen.head.contains(token.as_str())),
            "{}",
            seen.head
        );
    }
    assert!(
        two.seen()
            .iter()
            .all(|seen| seen.header("authorization").is_empty())
    );
    let log = gate.log();
    let secrets = [&*ada, &ben, &eve, "its-ada", "its-ben", "the-secret"];
    assert!(!secrets.iter().any(|secret| log.contains(secret)), "{log}");
}

#[test]
fn a_session_goes_on_with_the_renewed_token_of_its_user_and_with_no_other_of_nobody() {
    let of = |claim: &str, value: Option<&str>| {
        let mut claims = claims();
        let members = claims.as_object_mut().expect("claims");
        members.remove("sub");
        members.extend(value.map(|value| ("sub".to_owned(), value.into())));
        claims["jti"] = claim.into();
        signed(&claims, "ed25519")
    };
    let ada = [of("1", Some("ada")), of("2", Some("ada"))];
    let nobody = [of("1", None), of("2", None)];
    let tokens = ada.iter().chain(&nobody);
    let names = BTreeMap::from_iter(tokens.map(|token| (token.clone(), "any")));
    let (one, two, endpoint) = (personal(), server("two"), endpoint(&names));
    let gate = gate((&one, &two), &endpoint);
    for ([first, second], status) in [(&ada, 200), (&nobody, 404)] {
        let mut session = Caller::new(&gate, "agents");
        let posted = |session: &Caller<'_>, token: &str, method: &str, params: Value| {
            let message = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
            session.send("POST", &[&bearer(token)], message.to_string().as_bytes())
        };
        let told = posted(&session, first, "initialize", super::initialize());
        assert_eq!(told.status, 200, "{}", told.body);
        session.session = told.session;
        for (token, status) in [(first, 200), (second, status)] {
            let told = posted(&session, token, "tools/call", json!({"name": "one__any"}));
            assert_eq!(told.status, status, "{}", told.body);
        }
    }
}

#[test]
fn an_http_api_is_sent_what_is_given_for_its_callers_token() {
    let (ada, ben, eve) = (token("ada"), token("ben"), token("eve"));
    let names = BTreeMap::from([(ada.clone(), "ada"), (ben.clone(), "ben")]);
    let api = Upstream::start(|_, seen| {
        let is_refused = seen.head.contains("/pets/none ");
        vec![Step::Send(match is_refused {
            true => answer::whole(401, "text/plain", b"no"),
            false => answer::json(
                200,
                &json!({"of": seen.header("authorization")}).to_string(),
            ),
        })]
    });
    let endpoint = endpoint(&names);
    let servers = format!(
        "    pets: {{ openapi: pets.json, credential: {{ exchange: {{ token_url: http://{}/token, client_id: gate, \
         client_secret: {{ inline: the-secret }}, audience: one }} }} }}",
        endpoint.address
    );
    let (keys, described) = (
        jwks(&["ed25519"]),
        description(&format!("http://{}/v1", api.address)),
    );
    let gate = Gate::start(
        &(identity() + &config(&servers, "    - { workload: agents }")),
        &[
            ("keys.json", keys.as_bytes()),
            ("pets.json", described.as_bytes()),
        ],
    );
    let caller = Caller::new(&gate, "agents");
    let called = |line: &str, pet: &str| {
        let params = json!({"name": "pets__getPet", "arguments": {"petId": pet}});
        bringing(&caller, &[line], "tools/call", &params)
    };
    for (token, name) in [(&ada, "ada"), (&ben, "ben"), (&ada, "ada")] {
        let told = called(&bearer(token), "7");
        let of = &told.body["result"]["structuredContent"]["of"];
        assert_eq!(of, &json!([format!("Bearer its-{name}")]), "{}", told.body);
    }
    assert_eq!(endpoint.count(), 2, "each token is exchanged once");
    // What is given is refused: that is its caller's matter.
    let told = called(&bearer(&ada), "none");
    let data = &told.body["error"]["data"];
    assert_eq!(
        (told.status, &data["code"], &data["server"], &data["status"]),
        (
            403,
            &json!("mcp_token_refused"),
            &json!("pets"),
            &json!(401)
        ),
        "{}",
        told.body
    );
    // Nothing is sent where nothing is given, and the tools are those of the description all the same.
    let seen = api.count();
    for line in [bearer(&eve), "x-nothing: 1".to_owned()] {
        let told = called(&line, "7");
        assert_eq!(
            (told.status, &told.body["error"]["data"]["code"]),
            (503, &json!("upstream_credential_unavailable")),
            "{}",
            told.body
        );
        let told = bringing(&caller, &[&line], "tools/list", &json!({}));
        assert!(
            tools(&told).contains(&"pets__getPet".to_owned()),
            "{}",
            told.body
        );
    }
    assert_eq!(api.count(), seen, "nothing was sent");
    for seen in api.seen() {
        let tokens = [&ada, &ben, &eve];
        let has = tokens
            .iter()
            .any(|token| seen.head.contains(token.as_str()));
        assert!(!has, "{}", seen.head);
    }
}
