//! Tokens as others read them: `ring` verifies what was signed, with what the key set says.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents,
    UnparsedPublicKey,
};
use serde_json::Value;

use super::{Issuer, Kind, Role};

fn decoded(text: &str) -> Vec<u8> {
    URL_SAFE_NO_PAD.decode(text).expect("base64url")
}

fn is_signed(token: &str, set: &Value) -> bool {
    let (message, signature) = token.rsplit_once('.').expect("three parts");
    let (header, _) = message.split_once('.').expect("two parts");
    let header: Value = serde_json::from_slice(&decoded(header)).expect("JSON");
    let keys = set["keys"].as_array().expect("keys");
    let key = keys.iter().find(|key| key["kid"] == header["kid"]);
    let key = key.expect("its key");
    assert_eq!(key["alg"], header["alg"]);
    let part = |name: &str| decoded(key[name].as_str().expect(name));
    let (message, signature) = (message.as_bytes(), decoded(signature));
    let verified = match key["alg"].as_str().expect("a name") {
        "RS256" => RsaPublicKeyComponents {
            n: part("n"),
            e: part("e"),
        }
        .verify(&RSA_PKCS1_2048_8192_SHA256, message, &signature),
        "ES256" => {
            let point = [&[4], &part("x")[..], &part("y")].concat();
            UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point).verify(message, &signature)
        }
        "EdDSA" => UnparsedPublicKey::new(&ED25519, part("x")).verify(message, &signature),
        other => panic!("{other}"),
    };
    verified.is_ok()
}

#[test]
fn signed_tokens_are_verified_by_the_key_set_and_no_two_are_the_same() {
    let mut issuer = Issuer::new().expect("keys");
    let set: Value = serde_json::from_str(&issuer.jwks()).expect("JSON");
    for kind in [Kind::Rs256, Kind::Es256, Kind::EdDsa] {
        let mut tokens = issuer.tokens(kind, Role::Inference, 5).expect("tokens");
        assert!(
            tokens.iter().all(|token| is_signed(token, &set)),
            "{kind:?}"
        );
        let (head, signature) = tokens[0].rsplit_once('.').expect("three parts");
        let (_, others) = tokens[1].rsplit_once('.').expect("three parts");
        assert_ne!(signature, others);
        assert!(!is_signed(&format!("{head}.{others}"), &set), "{kind:?}");
        let claims = head.split_once('.').expect("two parts").1;
        let claims: Value = serde_json::from_slice(&decoded(claims)).expect("JSON");
        assert_eq!(claims["groups"][0], "inference");
        tokens.sort_unstable();
        tokens.dedup();
        assert_eq!(tokens.len(), 5);
    }
}

#[test]
fn opaque_tokens_stand_in_the_table_with_their_group() {
    let mut issuer = Issuer::new().expect("keys");
    let good = issuer.tokens(Kind::Opaque, Role::Inference, 3);
    let denied = issuer.tokens(Kind::Opaque, Role::Visitors, 1);
    let lines: Vec<&str> = issuer.table.lines().collect();
    assert_eq!(lines.len(), 4);
    assert_eq!(lines[2], format!("{} inference", good.expect("three")[2]));
    assert_eq!(lines[3], format!("{} visitors", denied.expect("one")[0]));
}
