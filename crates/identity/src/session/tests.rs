//! Whose a session is, and for how long.

use policy::secret::Secret;
use serde_json::json;

use super::*;
use crate::claims::Workload;
use crate::sealed::Purpose;

const NOW: u64 = 1_700_000_000;
const ISSUER: &str = "https://issuer.example";
const HOUR: u64 = 3600;

fn sealer(purpose: Purpose) -> Sealer {
    Sealer::new(purpose, "", &Secret::new(vec![1; 32]), None).expect("a sealer")
}

fn claims(claims: Value) -> Map<String, Value> {
    match claims {
        Value::Object(claims) => claims,
        other => panic!("no claims: {other}"),
    }
}

fn ada() -> Map<String, Value> {
    claims(json!({
        "iss": ISSUER, "sub": "ada", "aud": "gate", "exp": NOW + 60, "iat": NOW, "nonce": "n", "at_hash": "h",
        "groups": ["dev"], "realm_access": { "roles": ["a"] }
    }))
}

fn session() -> Session {
    Session::begin(&ada(), &[], NOW, HOUR)
}

fn cookie(session: &Session) -> String {
    session
        .seal(&sealer(Purpose::Session), [3; NONCE_BYTES])
        .expect("it fits")
}

fn open(cookie: &str, at: (u64, u64)) -> Result<Session, NotASession> {
    Session::open(cookie.as_bytes(), &sealer(Purpose::Session), ISSUER, at)
}

#[test]
fn it_says_what_the_issuer_said_of_whom_it_is() {
    let session = open(&cookie(&session()), (NOW, HOUR)).expect("a session");
    let kept: Vec<_> = session.claims.keys().map(String::as_str).collect();
    assert_eq!(kept, ["aud", "groups", "iat", "iss", "realm_access", "sub"]);
    assert_eq!((session.issuer(), session.subject()), (ISSUER, "ada"));
    assert!(!format!("{session:?}").contains("ada"));
    let keep = ["realm_access.roles".to_owned()];
    let few = Session::begin(&ada(), &keep, NOW, HOUR);
    let kept: Vec<_> = few.claims.keys().map(String::as_str).collect();
    assert_eq!(kept, ["iss", "realm_access", "sub"]);
}

#[test]
fn it_ends_when_it_says_so_or_earlier_where_that_is_configured() {
    let cookie = cookie(&session());
    for (at, life, is_good) in [
        (NOW, HOUR, true),
        (NOW + HOUR - 1, HOUR, true),
        (NOW + HOUR, HOUR, false),
        (NOW + HOUR, 8 * HOUR, false),
        (NOW + 59, 60, true),
        (NOW + 60, 60, false),
        (NOW - 60, HOUR, true),
        (NOW - 61, HOUR, false),
        (u64::MAX, u64::MAX, false),
    ] {
        let opened = open(&cookie, (at, life));
        assert_eq!(opened.is_ok(), is_good, "{at} {life}: {opened:?}");
    }
    let ended = open(&cookie, (NOW + HOUR, HOUR)).expect_err("ended");
    assert!(ended.has_ended());
    assert_eq!(ended.to_string(), "not a session");
    let early = open(&cookie, (NOW - 61, HOUR)).expect_err("to come");
    assert!(!early.has_ended() && early.reason().contains("clocks"));
}

#[test]
fn another_issuers_or_another_content_is_no_session() {
    let cookie = cookie(&session());
    let ours = sealer(Purpose::Session);
    let at = (NOW, HOUR);
    let other = Session::open(cookie.as_bytes(), &ours, "https://issuer.example/", at);
    assert_eq!(
        other.expect_err("another").reason(),
        "it is of another issuer"
    );
    let nobodys = claims(json!({ "sub": "ada" }));
    let nobodys = Session::begin(&nobodys, &[], NOW, HOUR);
    let sealed = nobodys.seal(&ours, [3; NONCE_BYTES]).expect("it fits");
    assert!(open(&sealed, at).is_err());
    for text in [
        "",
        "{}",
        "[]",
        r#"{"i":1,"e":2}"#,
        r#"{"i":1700000000,"e":1700003600,"c":{"iss":"https://issuer.example"},"x":1}"#,
        r#"{"i":1700000000,"e":1,"e":1700003600,"c":{"iss":"https://issuer.example"}}"#,
        r#"{"i":-1,"e":1700003600,"c":{"iss":"https://issuer.example"}}"#,
    ] {
        let sealed = ours.seal(text.as_bytes(), [3; NONCE_BYTES]);
        let opened = open(&sealed.expect("it fits"), at);
        let why = opened.expect_err(text);
        assert_eq!(
            why.reason(),
            "it holds something else than a session",
            "{text}"
        );
    }
    let state = sealer(Purpose::LoginState);
    let as_state = session().seal(&state, [3; NONCE_BYTES]).expect("it fits");
    assert!(open(&as_state, at).is_err(), "sealed for another purpose");
}

#[test]
fn what_no_cookie_holds_is_refused_with_the_name_of_the_longest_claim() {
    let mut many = ada();
    let groups: Vec<String> = (0..200).map(|n| format!("group-{n:032}")).collect();
    many.insert("groups".to_owned(), json!(groups));
    let large = Session::begin(&many, &[], NOW, HOUR);
    let refused = large.seal(&sealer(Purpose::Session), [3; NONCE_BYTES]);
    let says = refused.expect_err("too large").to_string();
    assert!(says.contains("the longest claim is groups"), "{says}");
    let keep = ["email".to_owned()];
    let few = Session::begin(&many, &keep, NOW, HOUR);
    assert!(
        few.seal(&sealer(Purpose::Session), [3; NONCE_BYTES])
            .is_ok()
    );
}

#[test]
fn it_is_a_credential_as_a_token_is() {
    let verifier = SessionVerifier {
        sealer: Arc::new(sealer(Purpose::Session)),
        issuer: ISSUER.to_owned(),
        life_s: HOUR,
        mapping: Mapping {
            workload: Workload::Claim("groups".to_owned(), Vec::new()),
            user: "sub".to_owned(),
            tags: vec![("roles".to_owned(), "realm_access.roles".to_owned())],
        },
    };
    let cookie = cookie(&session());
    let proof = verifier.verify(cookie.as_bytes(), NOW).expect("a proof");
    assert_eq!(proof.until_unix_s, NOW + HOUR);
    let caller = &proof.caller;
    assert_eq!((&*caller.workload, caller.by), ("dev", Proven::Session));
    assert_eq!(caller.user.as_deref(), Some("ada"));
    assert!(!caller.claims.members().is_empty());
    let other = verifier.verify(&cookie.as_bytes()[1..], NOW);
    assert!(matches!(other, Err(Unproven::Invalid(_))), "{other:?}");
    let no_groups = Session::begin(&ada(), &["email".to_owned()], NOW, HOUR);
    let sealed = no_groups.seal(&sealer(Purpose::Session), [3; NONCE_BYTES]);
    let nobody = verifier.verify(sealed.expect("it fits").as_bytes(), NOW);
    assert!(matches!(nobody, Err(Unproven::Unmapped(_))), "{nobody:?}");
}
