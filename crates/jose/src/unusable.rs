//! Why a key is not used.

use thiserror::Error;

use crate::bounds::{KID_BYTES_MAX, RSA_BITS};

/// Why a key is not used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Unusable {
    /// An element of `keys` is no object.
    #[error("it is not an object")]
    NotAnObject,
    /// A member is absent or has a wrong type or encoding.
    #[error("`{0}` is absent or malformed")]
    Member(&'static str),
    /// `kty`, or the algorithm in PEM, is none that is known.
    #[error("it is not a key of RSA, of an elliptic curve (EC) or of Ed25519 (OKP)")]
    Type,
    /// It is a shared secret (`oct`).
    #[error("it is symmetric, and tokens are checked with public keys only")]
    Symmetric,
    /// The curve is none that is known.
    #[error("its curve is not P-256, P-384, P-521 or Ed25519")]
    Curve,
    /// It holds private members. Who published it must replace it.
    #[error(
        "it holds its private half (`{0}`), so that everyone who has the set can sign: replace it"
    )]
    Private(&'static str),
    /// `use` is not `sig`.
    #[error("its `use` is not `sig`")]
    Use,
    /// `key_ops` does not list `verify`.
    #[error("its `key_ops` do not list `verify`")]
    Operations,
    /// `alg` is not supported, or not one of the key's type.
    #[error("its `alg` is not a supported one of its type")]
    Algorithm,
    /// `kid` is longer than any token's.
    #[error("its `kid` is longer than {KID_BYTES_MAX} bytes")]
    KidTooLong,
    /// Another key has the same `kid`, so that neither is used.
    #[error("another key of the set has the same `kid`; neither is used")]
    SameKid,
    /// The size of the RSA modulus.
    #[error(
        "its modulus has {bits} bits, and {} to {} are supported",
        RSA_BITS.start(),
        RSA_BITS.end()
    )]
    RsaSize {
        /// Bits of the modulus.
        bits: usize,
    },
    /// The RSA modulus is even.
    #[error("its modulus is even")]
    RsaModulus,
    /// The RSA exponent is even, less than 65537 or too large.
    #[error("its exponent is even, less than 65537 or more than 33 bits long")]
    RsaExponent,
    /// The RSA modulus was made by a library whose primes are guessed.
    #[error(
        "its modulus has the mark of a library that made primes which can be guessed (ROCA, CVE-2017-15361): replace it"
    )]
    RsaPrimes,
    /// The point is not on the curve, or one that signs everything.
    #[error("its point is not on the curve, is of small order or is not written in full")]
    Point,
}
