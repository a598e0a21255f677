//! Keys where pages put them.

use super::*;
use crate::credential::{Given, given};

fn head(target: &str, protocols: &[&str]) -> RequestHead {
    let mut head = RequestHead::new();
    head.set_method("GET").expect("a method");
    head.set_target(target).expect("a target");
    for offered in protocols {
        head.fields
            .push(b"sec-websocket-protocol", offered.as_bytes())
            .expect("room");
    }
    head
}

#[test]
fn a_key_among_the_sub_protocols_is_a_credential_and_goes_nowhere() {
    let one = head(
        "/v1/realtime",
        &[
            "realtime, openai-insecure-api-key.sk-1 ,openai-beta.realtime-v1",
            "openai-project.p, OpenAI-Insecure-Api-Key.x, other",
        ],
    );
    assert_eq!(offered(&one), b"realtime, openai-beta.realtime-v1");
    assert_eq!(given(&one), Given::Token(b"sk-1"));
    assert!(check(&one).is_ok());
    let two = head(
        "/v1/realtime",
        &["openai-insecure-api-key.a,openai-insecure-api-key.b"],
    );
    assert!(matches!(check(&two), Err(Refusal::ConflictingCredentials)));
    let mut beside = head("/v1/realtime", &["openai-insecure-api-key.a"]);
    beside
        .fields
        .push(b"authorization", b"Bearer b")
        .expect("room");
    assert!(matches!(
        check(&beside),
        Err(Refusal::ConflictingCredentials)
    ));
    // On other paths it is no credential, as before.
    let other = head("/v1/responses", &["openai-insecure-api-key.a"]);
    assert_eq!(given(&other), Given::Nothing);
}
