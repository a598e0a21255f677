//! Signs our own tokens: what a service account, an application or an agent shows to be given a token (RFC 7523).
//!
//! Invariant: a private key leaves only as signatures, and no error quotes it. What is read of its PEM is wiped;
//! ring does not wipe the key pair that it makes of it.
//! Not here: what the claims are and where the token goes (the host), keys in hardware.

use std::fmt;

use ring::rsa::KeyPair as RsaKeyPair;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, RSA_PKCS1_SHA256, RSA_PSS_SHA256,
};
use serde_json::{Map, Value};
use thiserror::Error;

use crate::algorithm::Algorithm;
use crate::base64url;
use crate::der::{INTEGER, OBJECT_ID, Reader};
use crate::pem::{self, PemFault};
use crate::spki::{OID_EC, OID_ED25519, OID_P256, OID_RSA};

pub use ring::rand::{SecureRandom, SystemRandom};

/// A private key with the algorithm that it signs with.
pub struct SigningKey {
    algorithm: Algorithm,
    pair: Pair,
}

enum Pair {
    Rsa(Box<RsaKeyPair>),
    P256(Box<EcdsaKeyPair>),
    Ed25519(Box<Ed25519KeyPair>),
}

/// Why there is no signing key, or no signature.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SigningFault {
    /// PEM that holds no key.
    #[error("the private key in PEM: {0}")]
    Pem(PemFault),
    /// The key is encrypted.
    #[error("the private key is encrypted; `openssl pkcs8 -topk8 -nocrypt` decrypts it")]
    Encrypted,
    /// The key is in the older form of elliptic curves.
    #[error(
        "the private key is in SEC1 form (`EC PRIVATE KEY`); `openssl pkcs8 -topk8 -nocrypt` converts it"
    )]
    Sec1,
    /// The key is of a type that is not supported.
    #[error("the private key is not one of RSA, P-256 or Ed25519")]
    Type,
    /// ring does not take the key: it is too small, or its numbers do not go together.
    #[error("the private key cannot be used: {0}")]
    Key(String),
    /// The key does not sign with this algorithm.
    #[error("the private key does not sign with {}", .0.name())]
    Algorithm(Algorithm),
    /// The header may not have this member.
    #[error("the header of a token that is signed may not have `{0}`")]
    Header(&'static str),
    /// The source of randomness failed.
    #[error("the source of randomness failed")]
    Chance,
}

impl SigningKey {
    /// Reads a private key in PEM: `PRIVATE KEY` (PKCS#8; RSA, P-256, Ed25519) or `RSA PRIVATE KEY` (PKCS#1). RSA
    /// signs with RS256, or with PS256 if that is asked for; the others with the one algorithm that they have.
    ///
    /// # Errors
    /// It is no such PEM, or the key does not sign with the algorithm.
    pub fn from_pem(
        pem: &[u8],
        algorithm: Option<Algorithm>,
        chance: &dyn SecureRandom,
    ) -> Result<Self, SigningFault> {
        let block = pem::block(pem).map_err(SigningFault::Pem)?;
        let pair = match block.label {
            "PRIVATE KEY" => Pair::from_pkcs8(&block.der, chance)?,
            "RSA PRIVATE KEY" => {
                let pair = RsaKeyPair::from_der(&block.der).map_err(rejected)?;
                Pair::Rsa(Box::new(pair))
            }
            "ENCRYPTED PRIVATE KEY" => return Err(SigningFault::Encrypted),
            "EC PRIVATE KEY" => return Err(SigningFault::Sec1),
            _ => {
                let labels = "PRIVATE KEY, RSA PRIVATE KEY";
                return Err(SigningFault::Pem(PemFault::Label(labels)));
            }
        };
        let [usual, other] = pair.algorithms();
        let algorithm = algorithm.unwrap_or(usual);
        if algorithm != usual && algorithm != other {
            return Err(SigningFault::Algorithm(algorithm));
        }
        Ok(Self { algorithm, pair })
    }

    /// The algorithm that it signs with.
    #[must_use]
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// A token with these claims. To the header, `alg` is added, and `typ` (`JWT`) where it is not given; `kid`,
    /// `x5t` and others are as given.
    ///
    /// # Errors
    /// The header has a member that it may not have, or chance failed.
    pub fn sign(
        &self,
        header: &Map<String, Value>,
        claims: &Map<String, Value>,
        chance: &dyn SecureRandom,
    ) -> Result<String, SigningFault> {
        if let Some(member) = OURS.iter().find(|name| header.contains_key(**name)) {
            return Err(SigningFault::Header(member));
        }
        let mut header = header.clone();
        header.insert("alg".to_owned(), self.algorithm.name().into());
        header.entry("typ").or_insert("JWT".into());
        let mut token = part(header);
        token.push('.');
        token.push_str(&part(claims.clone()));
        let signature = self.pair.sign(self.algorithm, token.as_bytes(), chance)?;
        token.push('.');
        token.push_str(&base64url::encode(&signature));
        Ok(token)
    }
}

/// Members of a header that are not the caller's: `alg` is the key's, the others change how a token is read.
const OURS: [&str; 3] = ["alg", "crit", "b64"];

fn part(members: Map<String, Value>) -> String {
    base64url::encode(Value::Object(members).to_string().as_bytes())
}

/// The SHA-256 of a certificate in PEM, in base64url: what `x5t#S256` of a header holds.
///
/// # Errors
/// It is not one block `CERTIFICATE`.
pub fn certificate_thumbprint(pem: &[u8]) -> Result<String, PemFault> {
    let block = pem::block(pem)?;
    if block.label != "CERTIFICATE" {
        return Err(PemFault::Label("CERTIFICATE"));
    }
    let digest = ring::digest::digest(&ring::digest::SHA256, &block.der);
    Ok(base64url::encode(digest.as_ref()))
}

impl Pair {
    fn from_pkcs8(der: &[u8], chance: &dyn SecureRandom) -> Result<Self, SigningFault> {
        let kind = pkcs8_kind(der).ok_or(SigningFault::Pem(PemFault::Der))?;
        Ok(match kind {
            [OID_RSA, _] => Self::Rsa(Box::new(RsaKeyPair::from_pkcs8(der).map_err(rejected)?)),
            [OID_EC, OID_P256] => {
                let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, der, chance);
                Self::P256(Box::new(pair.map_err(rejected)?))
            }
            [OID_ED25519, _] => {
                // Most tools write the seed alone; where the public half stands beside it, ring compares.
                let pair = Ed25519KeyPair::from_pkcs8_maybe_unchecked(der);
                Self::Ed25519(Box::new(pair.map_err(rejected)?))
            }
            _ => return Err(SigningFault::Type),
        })
    }

    /// The usual one, and another or the same.
    fn algorithms(&self) -> [Algorithm; 2] {
        match self {
            Self::Rsa(_) => [Algorithm::Rs256, Algorithm::Ps256],
            Self::P256(_) => [Algorithm::Es256; 2],
            Self::Ed25519(_) => [Algorithm::EdDsa; 2],
        }
    }

    fn sign(
        &self,
        algorithm: Algorithm,
        signed: &[u8],
        chance: &dyn SecureRandom,
    ) -> Result<Vec<u8>, SigningFault> {
        let failed = |_| SigningFault::Chance;
        match self {
            Self::Rsa(pair) => {
                let mut signature = vec![0; pair.public().modulus_len()];
                let padding: &'static dyn ring::signature::RsaEncoding = match algorithm {
                    Algorithm::Ps256 => &RSA_PSS_SHA256,
                    _ => &RSA_PKCS1_SHA256,
                };
                pair.sign(padding, chance, signed, &mut signature)
                    .map_err(failed)?;
                Ok(signature)
            }
            Self::P256(pair) => {
                let signature = pair.sign(chance, signed).map_err(failed)?;
                Ok(signature.as_ref().to_vec())
            }
            Self::Ed25519(pair) => Ok(pair.sign(signed).as_ref().to_vec()),
        }
    }
}

/// The algorithm of a PKCS#8 key and its first parameter, if that is a name.
fn pkcs8_kind(der: &[u8]) -> Option<[&[u8]; 2]> {
    let mut key = Reader::new(der).sequence()?;
    key.take(INTEGER)?;
    let mut algorithm = key.sequence()?;
    let name = algorithm.take(OBJECT_ID)?;
    Some([name, algorithm.take(OBJECT_ID).unwrap_or_default()])
}

fn rejected(error: ring::error::KeyRejected) -> SigningFault {
    SigningFault::Key(error.to_string())
}

/// Only the algorithm is shown.
impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SigningKey")
            .field("algorithm", &self.algorithm)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
