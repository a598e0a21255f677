//! JSON Web Tokens: checks those of others against a set of keys, and signs our own.
//!
//! A crate of its own for *purity*: keys, the time and chance are arguments, so every attack on a token is a row of
//! a table. Asymmetric signatures only: RS, PS and ES with 256, 384 and 512 bits, and Ed25519. There is no HMAC, so a
//! public key can never be taken for a shared secret.
//! Invariant: the claims of a token are had only from [`verify()`], but for its issuer, which says whose keys to ask
//! for. The key says which algorithm it is for; nothing that a token holds is used as a key or leads to one but
//! by `kid`, compared exactly. What two readers could read in two ways (a member twice, base64 with spare bits) is
//! refused. No input panics.
//! Not here: where keys come from and how old they may be (the host), what a claim allows (`policy`), encrypted
//! tokens, the other serialisations of RFC 7515.

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic
)]

mod algorithm;
mod base64url;
mod bounds;
mod claims;
mod der;
#[cfg(test)]
mod fixture;
mod header;
mod json;
mod key_set;
mod pem;
mod public_key;
mod refused;
mod rules;
pub mod sign;
mod spki;
mod token;
mod unusable;
mod verify;

pub use algorithm::Algorithm;
pub use bounds::{KEYS_MAX, KID_BYTES_MAX, LEEWAY_MAX_S, SET_BYTES_MAX, TOKEN_BYTES_MAX};
pub use claims::{Claims, Path};
pub use key_set::{KeySet, KeySetFault, LeftOut};
pub use pem::PemFault;
pub use refused::{Part, Refused};
pub use rules::Rules;
pub use token::Token;
pub use unusable::Unusable;
pub use verify::verify;
