//! Whose a credential is: the gate's own keys, the claims of tokens and sessions of browsers, to
//! [`policy::caller::Caller`]s.
//!
//! Exists for its *weight*: cryptography and JSON stay out of policy. It reads no clock, file or environment: keys and
//! tokens come as bytes, time and chance as arguments.
//! Invariant: a secret is compared by its hash and in constant time, and never kept; whatever is wrong with a
//! credential, the work and the answer are the same.
//! Not here: which source is asked (`policy::identity`), files and fetching (`tollgate`, `callout`).

pub mod claims;
pub mod jwt;
pub mod keys;
pub mod login;
pub mod roles;
pub mod sealed;
pub mod session;
pub mod static_keys;

/// SHA-256 of a credential, under which its proof is kept.
#[must_use]
pub fn fingerprint(credential: &[u8]) -> [u8; 32] {
    let digest = ring::digest::digest(&ring::digest::SHA256, credential);
    let mut print = [0; 32];
    print.copy_from_slice(digest.as_ref());
    print
}
