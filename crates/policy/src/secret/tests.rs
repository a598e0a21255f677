//! That a secret cannot be printed.

use super::Secret;

const CANARY: &str = "sk-canary-7f3a9c";

#[test]
fn debug_shows_nothing_however_it_is_asked() {
    let secret = Secret::new(CANARY.into());
    let auth = crate::credential::UpstreamAuth::Header {
        name: "authorization".to_owned(),
        value: secret.clone(),
    };
    let shown = format!(
        "{secret:?} {secret:#?} {auth:?} {auth:#?} {:?}",
        Some(&secret)
    );
    assert!(!shown.contains("canary"), "{shown}");
    assert!(!shown.contains("115, 107"), "bytes as numbers: {shown}");
    assert!(shown.contains("***"));
}

#[test]
fn the_bytes_come_out_as_they_went_in() {
    assert_eq!(Secret::new(CANARY.into()).expose(), CANARY.as_bytes());
    assert_ne!(Secret::new(CANARY.into()), Secret::new(b"other".into()));
}

#[test]
fn only_the_very_same_bytes_are_the_secret() {
    let secret = Secret::new(CANARY.into());
    assert!(secret.is(CANARY.as_bytes()));
    for other in [
        "",
        "sk-canary-7f3a9",
        "sk-canary-7f3a9cx",
        "sk-canary-7f3a9d",
        "tk-canary-7f3a9c",
    ] {
        assert!(!secret.is(other.as_bytes()), "{other}");
    }
    assert!(!Secret::new(Vec::new()).is(b"x"));
}
