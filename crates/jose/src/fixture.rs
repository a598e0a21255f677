//! Keys, tokens and rules for the tests: what an issuer has, and what one who is none can make.
//!
//! The keys were made for `vectors/jose` and open nothing.

use ring::rand::SystemRandom;
use ring::rsa::KeyPair as RsaKeyPair;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair,
    RSA_PKCS1_SHA256, RSA_PKCS1_SHA384, RSA_PKCS1_SHA512, RSA_PSS_SHA256, RSA_PSS_SHA384,
    RSA_PSS_SHA512, RsaEncoding,
};

use crate::algorithm::Algorithm;
use crate::base64url;
use crate::claims::Claims;
use crate::der::{INTEGER, Reader};
use crate::key_set::KeySet;
use crate::pem;
use crate::refused::Refused;
use crate::rules::Rules;
use crate::token::Token;

pub(crate) const NOW: u64 = 1_700_000_000;
pub(crate) const ISSUER: &str = "https://issuer.example/";
pub(crate) const OTHERS: &str = include_str!("../../../vectors/jose/others.txt");

macro_rules! key {
    ($name:literal) => {
        include_bytes!(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../vectors/jose/keys/",
            $name,
            ".pem"
        ))
    };
}
pub(crate) use key;

/// Sections of `others.txt`: a title and what follows it.
pub(crate) fn sections() -> impl Iterator<Item = (&'static str, &'static str)> {
    let sections = OTHERS.split("=== ").skip(1);
    sections.map(|section| section.split_once('\n').expect("a title"))
}

/// The text of the key set of `others.txt`: `rsa`, `rsa-3072`, `rsa-4096`, `p256`, `p384`, `p521`, `ed25519`.
pub(crate) fn jwks() -> &'static str {
    let (_, text) = sections()
        .find(|(title, _)| *title == "keys")
        .expect("it has keys");
    text
}

pub(crate) fn keys() -> KeySet {
    KeySet::parse(jwks().as_bytes()).expect("a key set")
}

/// The one of these keys that is for the algorithm and can be signed with here.
pub(crate) fn kid(algorithm: Algorithm) -> &'static str {
    match algorithm {
        Algorithm::Es256 => "p256",
        Algorithm::Es384 => "p384",
        Algorithm::Es512 => "p521",
        Algorithm::EdDsa => "ed25519",
        _ => "rsa",
    }
}

pub(crate) fn rules() -> Rules {
    Rules {
        issuer: ISSUER.into(),
        audiences: vec!["tollgate".into()],
        types: Vec::new(),
        algorithms: Vec::new(),
        leeway_s: 0,
        requires_expiry: true,
    }
}

pub(crate) fn header(algorithm: Algorithm) -> String {
    let (name, kid) = (algorithm.name(), kid(algorithm));
    format!(r#"{{"alg":"{name}","kid":"{kid}","typ":"JWT"}}"#)
}

pub(crate) const CLAIMS: &str = r#"{"iss":"https://issuer.example/","aud":"tollgate","sub":"a","iat":1699999990,"nbf":1699999990,"exp":1700003600}"#;

/// A token of the keys' owner, whatever it says.
pub(crate) fn token(header: &str, claims: &str, algorithm: Algorithm) -> String {
    let signed = unsigned(header, claims);
    let signature = sign(algorithm, signed.as_bytes());
    format!("{signed}.{}", base64url::encode(&signature))
}

pub(crate) fn unsigned(header: &str, claims: &str) -> String {
    let encode = |text: &str| base64url::encode(text.as_bytes());
    format!("{}.{}", encode(header), encode(claims))
}

pub(crate) fn good(algorithm: Algorithm) -> String {
    token(&header(algorithm), CLAIMS, algorithm)
}

/// Reads and verifies under the usual rules and keys.
pub(crate) fn outcome(token: &str) -> Result<Claims, Refused> {
    outcome_by(token, &rules(), &keys())
}

pub(crate) fn outcome_by(token: &str, rules: &Rules, keys: &KeySet) -> Result<Claims, Refused> {
    crate::verify(&Token::read(token.as_bytes())?, rules, keys, NOW)
}

pub(crate) fn sign(algorithm: Algorithm, message: &[u8]) -> Vec<u8> {
    let chance = SystemRandom::new();
    let ecdsa = |with, pem| {
        let pair = EcdsaKeyPair::from_pkcs8(with, &der(pem), &chance).expect("a key");
        let signature = pair.sign(&chance, message).expect("a signature");
        signature.as_ref().to_vec()
    };
    match algorithm {
        Algorithm::Rs256 => rsa(&RSA_PKCS1_SHA256, message),
        Algorithm::Rs384 => rsa(&RSA_PKCS1_SHA384, message),
        Algorithm::Rs512 => rsa(&RSA_PKCS1_SHA512, message),
        Algorithm::Ps256 => rsa(&RSA_PSS_SHA256, message),
        Algorithm::Ps384 => rsa(&RSA_PSS_SHA384, message),
        Algorithm::Ps512 => rsa(&RSA_PSS_SHA512, message),
        Algorithm::Es256 => ecdsa(&ECDSA_P256_SHA256_FIXED_SIGNING, key!("p256")),
        Algorithm::Es384 => ecdsa(&ECDSA_P384_SHA384_FIXED_SIGNING, key!("p384")),
        Algorithm::Es512 => p521(message),
        Algorithm::EdDsa => {
            let pair = Ed25519KeyPair::from_pkcs8_maybe_unchecked(&der(key!("ed25519")));
            pair.expect("a key").sign(message).as_ref().to_vec()
        }
    }
}

fn der(pem: &[u8]) -> Vec<u8> {
    pem::block(pem).expect("a block").der.to_vec()
}

fn rsa(padding: &'static dyn RsaEncoding, message: &[u8]) -> Vec<u8> {
    let pair = RsaKeyPair::from_pkcs8(&der(key!("rsa"))).expect("a key");
    let mut signature = vec![0; pair.public().modulus_len()];
    pair.sign(padding, &SystemRandom::new(), message, &mut signature)
        .expect("a signature");
    signature
}

fn p521(message: &[u8]) -> Vec<u8> {
    use p521::ecdsa::signature::Signer;
    const OCTET_STRING: u8 = 0x04;
    let der = der(key!("p521"));
    let scalar = || {
        let mut key = Reader::new(&der).sequence()?;
        key.take(INTEGER)?;
        key.sequence()?;
        let mut key = Reader::new(key.take(OCTET_STRING)?).sequence()?;
        key.take(INTEGER)?;
        key.take(OCTET_STRING)
    };
    let key = p521::ecdsa::SigningKey::from_slice(scalar().expect("a scalar")).expect("a key");
    let signature: p521::ecdsa::Signature = key.sign(message);
    signature.to_bytes().to_vec()
}
