//! What becomes of the keys of a set.

use serde_json::{Value, json};

use super::{KeySet, KeySetFault};
use crate::algorithm::Algorithm;
use crate::fixture::{good, jwks, key, kid, outcome_by, rules};
use crate::pem::PemFault;
use crate::refused::Refused;
use crate::unusable::Unusable;

/// A good key by its `kid`, with members set; a null takes a member away.
fn jwk(kid: &str, changes: Value) -> Value {
    let all: Value = serde_json::from_str(jwks()).unwrap();
    let all = all["keys"].as_array().unwrap();
    let mut key = all.iter().find(|key| key["kid"] == kid).unwrap().clone();
    for (name, value) in changes.as_object().unwrap() {
        match value {
            Value::Null => drop(key.as_object_mut().unwrap().remove(name)),
            value => key[name] = value.clone(),
        }
    }
    key
}

fn set(keys: &[Value]) -> KeySet {
    let text = json!({ "keys": keys }).to_string();
    KeySet::parse(text.as_bytes()).expect("a set")
}

fn reasons(set: &KeySet) -> Vec<(usize, Unusable)> {
    set.left_out()
        .iter()
        .map(|key| (key.index, key.why))
        .collect()
}

#[test]
fn a_key_that_cannot_be_used_is_left_out_with_its_reason() {
    use Unusable::{Algorithm as Alg, Curve, KidTooLong, Member, Operations, Point, Private, Use};
    let short = "AQAB";
    let rows = [
        (json!(1), Unusable::NotAnObject),
        (json!({}), Member("kty")),
        (jwk("rsa", json!({"kty": 1})), Member("kty")),
        (jwk("rsa", json!({"kty": "rsa"})), Unusable::Type),
        (
            json!({"kty": "oct", "k": "AAAA", "alg": "HS256"}),
            Unusable::Symmetric,
        ),
        (jwk("rsa", json!({"use": "enc"})), Use),
        (jwk("rsa", json!({"use": 1})), Member("use")),
        (jwk("rsa", json!({"key_ops": ["sign"]})), Operations),
        (jwk("rsa", json!({"key_ops": []})), Operations),
        (jwk("rsa", json!({"key_ops": "verify"})), Member("key_ops")),
        (jwk("rsa", json!({"alg": "RSA-OAEP"})), Alg),
        (jwk("rsa", json!({"alg": "HS256"})), Alg),
        (jwk("rsa", json!({"alg": "none"})), Alg),
        (jwk("rsa", json!({"alg": "ES256"})), Alg),
        (jwk("p256", json!({"alg": "ES384"})), Alg),
        (jwk("ed25519", json!({"alg": "ES256"})), Alg),
        (jwk("rsa", json!({"alg": 1})), Member("alg")),
        (jwk("rsa", json!({"kid": "k".repeat(257)})), KidTooLong),
        (jwk("rsa", json!({"kid": 7})), Member("kid")),
        (jwk("rsa", json!({"d": "AAAA"})), Private("d")),
        (jwk("rsa", json!({"qi": "AAAA"})), Private("qi")),
        (jwk("p256", json!({"d": "AAAA"})), Private("d")),
        (jwk("ed25519", json!({"d": "AAAA"})), Private("d")),
        (jwk("rsa", json!({"n": null})), Member("n")),
        (jwk("rsa", json!({"n": ""})), Member("n")),
        (jwk("rsa", json!({"n": "AQAB="})), Member("n")),
        (jwk("rsa", json!({"n": "A+AB"})), Member("n")),
        (
            jwk("rsa", json!({"n": short})),
            Unusable::RsaSize { bits: 17 },
        ),
        (jwk("rsa", json!({"e": "Aw"})), Unusable::RsaExponent),
        (jwk("rsa", json!({"e": "AQAA"})), Unusable::RsaExponent),
        (jwk("p256", json!({"crv": "P-384"})), Member("x")),
        (jwk("p256", json!({"crv": "secp256k1"})), Curve),
        (jwk("p256", json!({"crv": null})), Curve),
        (jwk("p256", json!({"x": short})), Member("x")),
        (jwk("p256", json!({"y": "A".repeat(43)})), Point),
        (jwk("p521", json!({"y": "A".repeat(88)})), Point),
        (jwk("ed25519", json!({"crv": "Ed448"})), Curve),
        (jwk("ed25519", json!({"crv": "X25519"})), Curve),
        (jwk("ed25519", json!({"x": "A".repeat(43)})), Point),
        (jwk("ed25519", json!({"x": short})), Point),
    ];
    let (keys, expected): (Vec<Value>, Vec<Unusable>) = rows.into_iter().unzip();
    let found = set(&keys);
    let expected: Vec<_> = expected.into_iter().enumerate().collect();
    assert_eq!(reasons(&found), expected);
    assert!(found.is_empty());
    // The others of a set do not suffer.
    let found = set(&[json!(null), jwk("p384", json!({})), json!({"kty": "oct"})]);
    assert_eq!((found.len(), found.left_out().len()), (1, 2));
    assert!(outcome_by(&good(Algorithm::Es384), &rules(), &found).is_ok());
}

#[test]
fn what_a_key_may_say_is_no_hindrance() {
    let changes = json!({
        "key_ops": ["sign", "verify"], "alg": "ES256", "x5c": ["AAAA"], "x5t": "AAAA",
        "unknown": {"d": 1}, "use": "sig",
    });
    let found = set(&[
        jwk("p256", changes),
        jwk("ed25519", json!({"alg": "Ed25519", "use": null})),
    ]);
    assert_eq!(reasons(&found), []);
    assert!(outcome_by(&good(Algorithm::Es256), &rules(), &found).is_ok());
    assert!(outcome_by(&good(Algorithm::EdDsa), &rules(), &found).is_ok());
}

#[test]
fn of_two_keys_with_one_kid_neither_is_used_unless_they_are_one() {
    let twin = jwk("rsa-3072", json!({"kid": "rsa"}));
    let bound = jwk("rsa", json!({"alg": "RS256"}));
    let rows = [
        (vec![jwk("rsa", json!({})), twin.clone()], vec![0, 1]),
        (
            vec![jwk("rsa", json!({})), jwk("rsa", json!({})), twin],
            vec![0, 1, 2],
        ),
        (vec![jwk("rsa", json!({})), bound], vec![0, 1]),
        (
            vec![jwk("rsa", json!({})), jwk("p256", json!({"kid": "rsa"}))],
            vec![0, 1],
        ),
        (vec![jwk("rsa", json!({})), jwk("rsa", json!({}))], vec![]),
        (
            vec![
                jwk("rsa", json!({})),
                jwk("rsa", json!({"use": null, "x5t": "AAAA"})),
            ],
            vec![],
        ),
    ];
    for (keys, refused) in rows {
        let mut keys = keys;
        keys.push(jwk("ed25519", json!({})));
        let found = set(&keys);
        let expected: Vec<_> = refused.iter().map(|at| (*at, Unusable::SameKid)).collect();
        assert_eq!(reasons(&found), expected);
        assert!(
            found
                .left_out()
                .iter()
                .all(|key| key.kid.as_deref() == Some("rsa"))
        );
        let found_by = |algorithm| outcome_by(&good(algorithm), &rules(), &found).map(|_| ());
        let expected = if refused.is_empty() {
            Ok(())
        } else {
            Err(Refused::UnknownKey)
        };
        assert_eq!(found_by(Algorithm::Rs256), expected);
        assert_eq!(found_by(Algorithm::EdDsa), Ok(()));
        assert_eq!(found.len(), 1 + usize::from(refused.is_empty()));
    }
    // A key that cannot be used takes no kid from one that can.
    let found = set(&[
        jwk("rsa-3072", json!({"kid": "rsa", "use": "enc"})),
        jwk("rsa", json!({})),
    ]);
    assert_eq!(reasons(&found), [(0, Unusable::Use)]);
    assert!(outcome_by(&good(Algorithm::Rs256), &rules(), &found).is_ok());
}

#[test]
fn what_is_no_set_says_why() {
    let many = |keys: usize| format!(r#"{{"keys":[{}]}}"#, vec!["{}"; keys].join(","));
    let rows = [
        ("", KeySetFault::Json { line: 1, column: 0 }),
        ("<html>", KeySetFault::Json { line: 1, column: 1 }),
        (
            "{\"keys\":[}",
            KeySetFault::Json {
                line: 1,
                column: 10,
            },
        ),
        ("[]", KeySetFault::NoKeys),
        ("{}", KeySetFault::NoKeys),
        (r#"{"keys":{}}"#, KeySetFault::NoKeys),
        (r#"{"keys":null}"#, KeySetFault::NoKeys),
        (r#"{"Keys":[]}"#, KeySetFault::NoKeys),
        (r#"{"keys":[],"keys":[]}"#, KeySetFault::Duplicate),
        (
            r#"{"keys":[{"kty":"RSA","kty":"EC"}]}"#,
            KeySetFault::Duplicate,
        ),
        (&many(10_001), KeySetFault::TooMany { keys: 10_001 }),
        (&many(300_000), KeySetFault::TooMany { keys: 300_000 }),
        (
            &" ".repeat(1 << 20),
            KeySetFault::Json {
                line: 1,
                column: 1 << 20,
            },
        ),
        (
            &" ".repeat((1 << 20) + 1),
            KeySetFault::TooLong {
                bytes: (1 << 20) + 1,
            },
        ),
        (
            &"x".repeat(10_000_000),
            KeySetFault::TooLong { bytes: 10_000_000 },
        ),
    ];
    for (text, expected) in rows {
        let found = KeySet::parse(text.as_bytes()).map(|set| set.len());
        assert_eq!(found, Err(expected), "{text:.40}");
    }
    let found = KeySet::parse(many(10_000).as_bytes()).unwrap();
    assert_eq!((found.len(), found.left_out().len()), (0, 10_000));
}

#[test]
fn a_flood_of_kids_finds_nothing_in_many_keys() {
    let x = |at: u32| crate::base64url::encode(&[[7; 28].as_slice(), &at.to_le_bytes()].concat());
    let mut keys: Vec<Value> = (0..9_999_u32)
        .map(|at| json!({"kty": "OKP", "crv": "Ed25519", "kid": at.to_string(), "x": x(at)}))
        .collect();
    keys.push(jwk("p256", json!({})));
    let found = set(&keys);
    assert_eq!((found.len(), found.left_out()), (10_000, [].as_slice()));
    let by = |kid: Option<&str>, algorithm| found.key_for(kid, algorithm).map(|_| ());
    for at in 10_000..60_000 {
        let kid = at.to_string();
        assert_eq!(by(Some(&kid), Algorithm::EdDsa), Err(Refused::UnknownKey));
    }
    assert_eq!(by(Some("9998"), Algorithm::EdDsa), Ok(()));
    assert_eq!(by(None, Algorithm::EdDsa), Err(Refused::SeveralKeysFit));
    assert_eq!(by(None, Algorithm::Es256), Ok(()));
    assert_eq!(by(None, Algorithm::Es384), Err(Refused::NoKeyFits));
}

#[test]
fn a_public_key_in_pem_or_in_a_certificate_is_a_set_of_one() {
    let pems: [(Algorithm, &[u8]); 7] = [
        (Algorithm::Rs256, key!("rsa.public")),
        (Algorithm::Ps512, key!("rsa.certificate")),
        (Algorithm::Es256, key!("p256.public")),
        (Algorithm::Es384, key!("p384.public")),
        (Algorithm::Es384, key!("p384.certificate")),
        (Algorithm::Es512, key!("p521.public")),
        (Algorithm::EdDsa, key!("ed25519.public")),
    ];
    for (algorithm, pem) in pems {
        let found = KeySet::from_pem(pem).unwrap();
        assert_eq!(found.len(), 1);
        let verified = outcome_by(&good(algorithm), &rules(), &found);
        assert!(verified.is_ok(), "{} {verified:?}", kid(algorithm));
    }
}

#[test]
fn pem_without_a_public_key_says_why() {
    const LABELS: &str = "PUBLIC KEY, CERTIFICATE";
    let text = |pem: &[u8]| std::str::from_utf8(pem).unwrap().to_owned();
    let relabelled = |pem, from, to| text(pem).replace(from, to);
    let pem = |fault| KeySetFault::Pem(fault);
    let rows = [
        (text(key!("rsa")), pem(PemFault::Label(LABELS))),
        (text(key!("rsa.pkcs1")), pem(PemFault::Label(LABELS))),
        (text(key!("rsa.public")).repeat(2), pem(PemFault::SeveralBlocks)),
        (relabelled(key!("rsa.public"), "PUBLIC KEY", "CERTIFICATE"), pem(PemFault::Der)),
        (relabelled(key!("rsa.certificate"), "CERTIFICATE", "PUBLIC KEY"), pem(PemFault::Der)),
        (relabelled(key!("p256"), "PRIVATE KEY", "PUBLIC KEY"), pem(PemFault::Der)),
        // X25519 and secp256k1.
        (
            "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VuAyEABwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc=\n-----END PUBLIC KEY-----".to_owned(),
            KeySetFault::Key(Unusable::Type),
        ),
        (
            "-----BEGIN PUBLIC KEY-----\nMBgwEAYHKoZIzj0CAQYFK4EEAAoDBAAEBAQ=\n-----END PUBLIC KEY-----".to_owned(),
            KeySetFault::Key(Unusable::Curve),
        ),
    ];
    for (text, expected) in rows {
        let found = KeySet::from_pem(text.as_bytes()).map(|set| set.len());
        assert_eq!(found, Err(expected), "{text:.60}");
    }
    // Every byte of a key cut off or changed: a fault, or another key, but no panic.
    let der = crate::pem::block(key!("rsa.certificate")).unwrap().der;
    for at in 0..der.len() {
        assert!(crate::spki::certified_key(&der[..at]).is_err());
        let mut damaged = der.to_vec();
        for bit in 0..8 {
            damaged[at] ^= 1 << bit;
            let _ = crate::spki::certified_key(&damaged);
            let _ = crate::spki::public_key(&damaged);
        }
    }
}

#[test]
fn what_is_left_out_is_told_in_one_clean_line() {
    let kid = format!("a\n\"b\u{1b}[31m{}", "k".repeat(300));
    let found = set(&[jwk("rsa", json!({"kid": kid})), json!({"kty": "oct"})]);
    let told: Vec<String> = found.left_out().iter().map(ToString::to_string).collect();
    let shown = "k".repeat(71);
    assert_eq!(
        told,
        [
            format!(
                "key 0 of the set, kid \"a\\n\\\"b\\u{{1b}}[31m{shown}\", is not used: its `kid` is longer than 256 bytes"
            ),
            "key 1 of the set, is not used: it is symmetric, and tokens are checked with public keys only"
                .to_owned(),
        ]
    );
}
