//! What must hold for any bytes that claim to be a token, a set of keys or a key in PEM.
//!
//! A token that is good is one that the owner of the keys signed (`vectors/jose`), byte for byte; what is read has
//! three parts of the alphabet; a set holds no more keys than are read.
//! Not here: which claims make a token good (the tests of `jose`).

use std::sync::OnceLock;

use jose::sign::{SigningKey, SystemRandom};
use jose::{KEYS_MAX, KeySet, Path, Rules, TOKEN_BYTES_MAX, Token, verify};

const OTHERS: &str = include_str!("../../vectors/jose/others.txt");
const NOW: u64 = 1_700_000_000;

/// Panics when an invariant is broken.
pub(crate) fn fuzz_one(input: &[u8]) {
    if let Ok(token) = Token::read(input) {
        assert!(input.len() <= TOKEN_BYTES_MAX);
        assert_eq!(input.iter().filter(|byte| **byte == b'.').count(), 2);
        let is_spelt = |byte: &u8| byte.is_ascii_alphanumeric() || b".-_".contains(byte);
        assert!(input.iter().all(is_spelt));
        if let Ok(claims) = verify(&token, &rules(), keys(), NOW) {
            let is_signed = OTHERS.lines().any(|line| line.as_bytes() == input);
            assert!(is_signed, "nobody signed it");
            assert_eq!(claims.text(&Path::dotted("iss")), token.issuer());
        }
    }
    if let Ok(set) = KeySet::parse(input) {
        assert!(set.len() + set.left_out().len() <= KEYS_MAX);
        for left_out in set.left_out() {
            assert!(!left_out.to_string().contains(char::is_control));
        }
    }
    if let Ok(set) = KeySet::from_pem(input) {
        assert_eq!(set.len(), 1);
    }
    let _ = SigningKey::from_pem(input, None, &SystemRandom::new());
}

fn keys() -> &'static KeySet {
    static KEYS: OnceLock<KeySet> = OnceLock::new();
    KEYS.get_or_init(|| {
        let (_, keys) = OTHERS.split_once("=== keys\n").expect("it has keys");
        let (keys, _) = keys.split_once("===").expect("tokens follow");
        KeySet::parse(keys.as_bytes()).expect("a set of keys")
    })
}

fn rules() -> Rules {
    Rules {
        issuer: "https://issuer.example/".into(),
        audiences: vec!["tollgate".into()],
        types: Vec::new(),
        algorithms: Vec::new(),
        leeway_s: 0,
        requires_expiry: true,
    }
}
