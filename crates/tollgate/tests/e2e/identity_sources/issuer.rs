//! Tokens of an issuer that the test is: signed with the keys of `vectors/jose`.
//!
//! Not here: a real provider.

use jose::sign::{SigningKey, SystemRandom};
use serde_json::{Map, Value, json};
use std::time::{SystemTime, UNIX_EPOCH};

/// What `iss` says.
pub(crate) const ISSUER: &str = "https://issuer.test/";

/// The text between a title of `others.txt` and the next.
fn section(name: &str) -> &'static str {
    let text = include_str!("../../../../../vectors/jose/others.txt");
    let mut sections = text.split("=== ").skip(1);
    let found = sections.find_map(|section| {
        let (title, text) = section.split_once('\n')?;
        (title == name).then_some(text)
    });
    found.expect("a section")
}

/// A key set with these keys alone: `rsa`, `p256`, `ed25519`.
pub(crate) fn jwks(kids: &[&str]) -> String {
    let all: Value = serde_json::from_str(section("keys")).expect("a key set");
    let keys = all["keys"].as_array().expect("keys");
    let is_wanted = |key: &&Value| kids.iter().any(|kid| key["kid"] == *kid);
    let kept: Vec<&Value> = keys.iter().filter(is_wanted).collect();
    assert_eq!(kept.len(), kids.len());
    json!({ "keys": kept }).to_string()
}

/// The time of this machine, in seconds since 1970: tokens and signatures have it.
pub(crate) fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.expect("after 1970").as_secs()
}

/// The claims of a good token.
pub(crate) fn claims() -> Value {
    json!({
        "iss": ISSUER, "aud": "gate", "sub": "ada", "azp": "chat", "dept": "search",
        "iat": now(), "exp": now() + 600,
    })
}

/// A token with these claims, signed with a key of the set.
pub(crate) fn signed(claims: &Value, kid: &str) -> String {
    let pem: &[u8] = match kid {
        "rsa" => include_bytes!("../../../../../vectors/jose/keys/rsa.pem"),
        "p256" => include_bytes!("../../../../../vectors/jose/keys/p256.pem"),
        "ed25519" => include_bytes!("../../../../../vectors/jose/keys/ed25519.pem"),
        other => panic!("no key {other}"),
    };
    let key = SigningKey::from_pem(pem, None, &SystemRandom::new()).expect("a key");
    let header: Map<String, Value> = [("kid".to_owned(), kid.into())].into_iter().collect();
    let claims = claims.as_object().expect("claims");
    let token = key.sign(&header, claims, &SystemRandom::new());
    token.expect("a token")
}
