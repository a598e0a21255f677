//! Signing: a token's three parts, and the public half of a key as a JWK.
//!
//! Not here: what a token says (`issuer`).

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ring::rand::SystemRandom;
use ring::rsa::{KeyPair as RsaKeyPair, PublicKeyComponents};
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _, RSA_PKCS1_SHA256,
};
use serde_json::{Value, json};

use super::Kind;

/// 2,048 bits, of the golden cases: it opens nothing.
const RSA: &str = include_str!("../../../../vectors/jose/keys/rsa.pem");

/// A key of the issuer.
pub(super) struct SigningKey {
    pair: Pair,
    rng: SystemRandom,
}

enum Pair {
    Rsa(Box<RsaKeyPair>),
    P256(EcdsaKeyPair),
    Ed25519(Ed25519KeyPair),
}

impl SigningKey {
    /// A key for signed tokens of this kind.
    pub(super) fn new(kind: Kind, rng: &SystemRandom) -> Result<Self, String> {
        let pair = match kind {
            Kind::Rs256 => Pair::Rsa(Box::new(rsa()?)),
            Kind::Es256 => Pair::P256(p256(rng)?),
            Kind::EdDsa => Pair::Ed25519(ed25519(rng)?),
            Kind::Opaque => return Err("bug: an opaque token is signed with no key".into()),
        };
        let rng = rng.clone();
        Ok(Self { pair, rng })
    }

    fn algorithm(&self) -> &'static str {
        match self.pair {
            Pair::Rsa(_) => "RS256",
            Pair::P256(_) => "ES256",
            Pair::Ed25519(_) => "EdDSA",
        }
    }

    /// Its public half; it is called as its algorithm is.
    pub(super) fn jwk(&self) -> Value {
        let mut jwk = match &self.pair {
            Pair::Rsa(pair) => {
                let parts = PublicKeyComponents::<Vec<u8>>::from(pair.public());
                json!({ "kty": "RSA", "n": base64url(&parts.n), "e": base64url(&parts.e) })
            }
            Pair::P256(pair) => {
                // 4 (uncompressed), then both coordinates of 32 bytes.
                let (x, y) = pair.public_key().as_ref()[1..].split_at(32);
                json!({ "kty": "EC", "crv": "P-256", "x": base64url(x), "y": base64url(y) })
            }
            Pair::Ed25519(pair) => {
                json!({ "kty": "OKP", "crv": "Ed25519", "x": base64url(pair.public_key().as_ref()) })
            }
        };
        jwk["kid"] = self.algorithm().into();
        jwk["alg"] = self.algorithm().into();
        jwk["use"] = "sig".into();
        jwk
    }

    /// A token that says `claims`.
    pub(super) fn sign(&self, claims: &Value) -> Result<String, String> {
        let algorithm = self.algorithm();
        let header = json!({ "alg": algorithm, "kid": algorithm, "typ": "at+jwt" });
        let part = |value: &Value| base64url(value.to_string().as_bytes());
        let signed = format!("{}.{}", part(&header), part(claims));
        let message = signed.as_bytes();
        let failed = |_| format!("signing with {algorithm} failed");
        let signature = match &self.pair {
            Pair::Rsa(pair) => {
                let mut signature = vec![0; pair.public().modulus_len()];
                pair.sign(&RSA_PKCS1_SHA256, &self.rng, message, &mut signature)
                    .map_err(failed)?;
                signature
            }
            Pair::P256(pair) => {
                let signature = pair.sign(&self.rng, message).map_err(failed)?;
                signature.as_ref().to_vec()
            }
            Pair::Ed25519(pair) => pair.sign(message).as_ref().to_vec(),
        };
        Ok(format!("{signed}.{}", base64url(&signature)))
    }
}

fn rsa() -> Result<RsaKeyPair, String> {
    let lines = RSA.lines().filter(|line| !line.starts_with("-----"));
    let text: String = lines.collect();
    let pkcs8 = STANDARD.decode(text);
    let pkcs8 = pkcs8.map_err(|error| format!("the RSA key is no PEM: {error}"))?;
    RsaKeyPair::from_pkcs8(&pkcs8).map_err(|error| format!("the RSA key: {error}"))
}

fn p256(rng: &SystemRandom) -> Result<EcdsaKeyPair, String> {
    let curve = &ECDSA_P256_SHA256_FIXED_SIGNING;
    let none = |_| "no key on P-256 could be made".to_owned();
    let pkcs8 = EcdsaKeyPair::generate_pkcs8(curve, rng).map_err(none)?;
    EcdsaKeyPair::from_pkcs8(curve, pkcs8.as_ref(), rng)
        .map_err(|error| format!("the key on P-256: {error}"))
}

fn ed25519(rng: &SystemRandom) -> Result<Ed25519KeyPair, String> {
    let none = |_| "no Ed25519 key could be made".to_owned();
    let pkcs8 = Ed25519KeyPair::generate_pkcs8(rng).map_err(none)?;
    Ed25519KeyPair::from_pkcs8(pkcs8.as_ref()).map_err(|error| format!("the Ed25519 key: {error}"))
}

/// Without padding, as tokens and key sets have it.
pub(super) fn base64url(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}
