//! A public key, and whether it made a signature.
//!
//! Invariant: a key that exists was checked as far as it can be without a signature, and it is for fixed algorithms.
//! Signatures of ECDSA are r and s side by side, each as long as the field; DER is refused.
//! Not here: how keys are written (`key_set::jwk`, `spki`).

use p521::ecdsa::signature::Verifier;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256,
    RSA_PKCS1_2048_8192_SHA384, RSA_PKCS1_2048_8192_SHA512, RSA_PSS_2048_8192_SHA256,
    RSA_PSS_2048_8192_SHA384, RSA_PSS_2048_8192_SHA512, RsaParameters, RsaPublicKeyComponents,
    UnparsedPublicKey, VerificationAlgorithm,
};

use crate::algorithm::Algorithm;
use crate::bounds::RSA_BITS;
use crate::unusable::Unusable;

/// A key with the algorithms that it is for.
#[derive(Debug, PartialEq)]
pub(crate) struct Key {
    material: Material,
    /// Where the key says so; otherwise all of its type.
    only: Option<Algorithm>,
}

/// What a key of each type consists of.
#[derive(Debug)]
pub(crate) enum Material {
    Rsa(RsaPublicKeyComponents<Box<[u8]>>),
    P256(Box<[u8]>),
    P384(Box<[u8]>),
    P521(Box<p521::ecdsa::VerifyingKey>),
    Ed25519([u8; 32]),
}

/// The curves of ECDSA.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Curve {
    P256,
    P384,
    P521,
}

impl Key {
    pub(crate) fn new(material: Material, only: Option<Algorithm>) -> Result<Self, Unusable> {
        match only {
            Some(only) if !material.can(only) => Err(Unusable::Algorithm),
            _ => Ok(Self { material, only }),
        }
    }

    pub(crate) fn is_for(&self, algorithm: Algorithm) -> bool {
        self.only.is_none_or(|only| only == algorithm) && self.material.can(algorithm)
    }

    /// Whether this key made the signature, with this algorithm, over these bytes.
    pub(crate) fn verifies(&self, algorithm: Algorithm, signed: &[u8], signature: &[u8]) -> bool {
        self.is_for(algorithm) && self.material.verifies(algorithm, signed, signature)
    }
}

impl Material {
    /// Numbers as bytes, the most significant first. Zeros in front are left off: some write them.
    pub(crate) fn rsa(n: &[u8], e: &[u8]) -> Result<Self, Unusable> {
        let (n, e) = (without_zeros(n), without_zeros(e));
        let bits = bits(n);
        if !RSA_BITS.contains(&bits) {
            return Err(Unusable::RsaSize { bits });
        }
        if n.last().is_none_or(|last| last % 2 == 0) {
            return Err(Unusable::RsaModulus);
        }
        if !is_exponent(e) {
            return Err(Unusable::RsaExponent);
        }
        if is_of_weak_primes(n) {
            return Err(Unusable::RsaPrimes);
        }
        Ok(Self::Rsa(RsaPublicKeyComponents {
            n: n.into(),
            e: e.into(),
        }))
    }

    /// A point in full: 4, then both coordinates, each as long as the field.
    pub(crate) fn point(curve: Curve, point: &[u8]) -> Result<Self, Unusable> {
        if point.len() != 1 + 2 * curve.coordinate_bytes() || point.first() != Some(&4) {
            return Err(Unusable::Point);
        }
        let off_curve = |_| Unusable::Point;
        Ok(match curve {
            Curve::P256 => {
                p256::PublicKey::from_sec1_bytes(point).map_err(off_curve)?;
                Self::P256(point.into())
            }
            Curve::P384 => {
                p384::PublicKey::from_sec1_bytes(point).map_err(off_curve)?;
                Self::P384(point.into())
            }
            Curve::P521 => {
                let key = p521::ecdsa::VerifyingKey::from_sec1_bytes(point);
                Self::P521(Box::new(key.map_err(|_| Unusable::Point)?))
            }
        })
    }

    /// Whether a point that is none is found only where a signature is checked, which then is refused.
    pub(crate) fn ed25519(point: &[u8]) -> Result<Self, Unusable> {
        let point: [u8; 32] = point.try_into().map_err(|_| Unusable::Point)?;
        if signs_everything(point) {
            return Err(Unusable::Point);
        }
        Ok(Self::Ed25519(point))
    }

    fn can(&self, algorithm: Algorithm) -> bool {
        match self {
            Self::Rsa(_) => rsa_parameters(algorithm).is_some(),
            Self::P256(_) => algorithm == Algorithm::Es256,
            Self::P384(_) => algorithm == Algorithm::Es384,
            Self::P521(_) => algorithm == Algorithm::Es512,
            Self::Ed25519(_) => algorithm == Algorithm::EdDsa,
        }
    }

    fn verifies(&self, algorithm: Algorithm, signed: &[u8], signature: &[u8]) -> bool {
        let by = |with: &'static dyn VerificationAlgorithm, key: &[u8]| {
            let key = UnparsedPublicKey::new(with, key);
            key.verify(signed, signature).is_ok()
        };
        match self {
            Self::Rsa(key) => rsa_parameters(algorithm)
                .is_some_and(|parameters| key.verify(parameters, signed, signature).is_ok()),
            Self::P256(point) => by(&ECDSA_P256_SHA256_FIXED, point),
            Self::P384(point) => by(&ECDSA_P384_SHA384_FIXED, point),
            Self::P521(key) => p521::ecdsa::Signature::from_slice(signature)
                .is_ok_and(|signature| key.verify(signed, &signature).is_ok()),
            Self::Ed25519(point) => by(&ED25519, point),
        }
    }
}

impl PartialEq for Material {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Rsa(one), Self::Rsa(two)) => one.n == two.n && one.e == two.e,
            (Self::P256(one), Self::P256(two)) | (Self::P384(one), Self::P384(two)) => one == two,
            (Self::P521(one), Self::P521(two)) => one == two,
            (Self::Ed25519(one), Self::Ed25519(two)) => one == two,
            _ => false,
        }
    }
}

impl Curve {
    pub(crate) fn coordinate_bytes(self) -> usize {
        match self {
            Self::P256 => 32,
            Self::P384 => 48,
            Self::P521 => 66,
        }
    }
}

fn rsa_parameters(algorithm: Algorithm) -> Option<&'static RsaParameters> {
    Some(match algorithm {
        Algorithm::Rs256 => &RSA_PKCS1_2048_8192_SHA256,
        Algorithm::Rs384 => &RSA_PKCS1_2048_8192_SHA384,
        Algorithm::Rs512 => &RSA_PKCS1_2048_8192_SHA512,
        Algorithm::Ps256 => &RSA_PSS_2048_8192_SHA256,
        Algorithm::Ps384 => &RSA_PSS_2048_8192_SHA384,
        Algorithm::Ps512 => &RSA_PSS_2048_8192_SHA512,
        Algorithm::Es256 | Algorithm::Es384 | Algorithm::Es512 | Algorithm::EdDsa => return None,
    })
}

fn without_zeros(number: &[u8]) -> &[u8] {
    let zeros = number.iter().take_while(|byte| **byte == 0).count();
    number.get(zeros..).unwrap_or_default()
}

/// Of a number without zeros in front.
fn bits(number: &[u8]) -> usize {
    let first = number.first().map_or(0, |first| first.leading_zeros());
    (number.len() * 8).saturating_sub(first as usize)
}

/// Whether the modulus has the mark of Infineon's library (CVE-2017-15361, "ROCA"): its primes are powers of 65537 modulo
/// every small prime, and so is their product; with that its 2048-bit keys are factored in practice. Of other moduli one
/// in 2^27 has it by chance.
fn is_of_weak_primes(n: &[u8]) -> bool {
    const GENERATOR: u32 = 65_537;
    /// The odd primes of which the library's smallest keys are made.
    const PRIMES: [u32; 38] = [
        3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71, 73, 79, 83, 89,
        97, 101, 103, 107, 109, 113, 127, 131, 137, 139, 149, 151, 157, 163, 167,
    ];
    PRIMES.iter().all(|prime| {
        let rest = n
            .iter()
            .fold(0, |rest, byte| (rest << 8 | u32::from(*byte)) % prime);
        let mut power = 1;
        (1..*prime).any(|_| {
            power = power * (GENERATOR % prime) % prime;
            power == rest
        })
    })
}

/// From 65537, the least that FIPS 186-5 allows, to the most that ring takes.
fn is_exponent(e: &[u8]) -> bool {
    let value = e
        .iter()
        .fold(0_u64, |value, byte| value << 8 | u64::from(*byte));
    e.len() <= 8 && (65_537..1 << 33).contains(&value) && value % 2 == 1
}

/// Points of small order, with which a signature of zeros is good for many messages or for all, and points that are
/// not in their one spelling. A key of zeros is one of them.
fn signs_everything(mut point: [u8; 32]) -> bool {
    // The heights of the points of order 1, 2, 4 and 8, the least significant byte first; a side has two points.
    const ONE: [u8; 32] = height(1, 0, 0);
    const MINUS_ONE: [u8; 32] = height(0xec, 0xff, 0x7f);
    const ZERO: [u8; 32] = [0; 32];
    const OF_EIGHT: [[u8; 32]; 2] = [
        [
            0x26, 0xe8, 0x95, 0x8f, 0xc2, 0xb2, 0x27, 0xb0, 0x45, 0xc3, 0xf4, 0x89, 0xf2, 0xef,
            0x98, 0xf0, 0xd5, 0xdf, 0xac, 0x05, 0xd3, 0xc6, 0x33, 0x39, 0xb1, 0x38, 0x02, 0x88,
            0x6d, 0x53, 0xfc, 0x05,
        ],
        [
            0xc7, 0x17, 0x6a, 0x70, 0x3d, 0x4d, 0xd8, 0x4f, 0xba, 0x3c, 0x0b, 0x76, 0x0d, 0x10,
            0x67, 0x0f, 0x2a, 0x20, 0x53, 0xfa, 0x2c, 0x39, 0xcc, 0xc6, 0x4e, 0xc7, 0xfd, 0x77,
            0x92, 0xac, 0x03, 0x7a,
        ],
    ];
    if let Some(side) = point.last_mut() {
        *side &= 0x7f;
    }
    // 2^255 - 19 and more.
    let is_misspelt = matches!(point, [0xed..=0xff, middle @ .., 0x7f]
        if middle.iter().all(|byte| *byte == 0xff));
    is_misspelt || [ONE, MINUS_ONE, ZERO].contains(&point) || OF_EIGHT.contains(&point)
}

const fn height(first: u8, middle: u8, last: u8) -> [u8; 32] {
    [
        first, middle, middle, middle, middle, middle, middle, middle, middle, middle, middle,
        middle, middle, middle, middle, middle, middle, middle, middle, middle, middle, middle,
        middle, middle, middle, middle, middle, middle, middle, middle, middle, last,
    ]
}

#[cfg(test)]
mod tests;
