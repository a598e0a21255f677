//! How large what strangers send may be.

/// Bytes of a token.
pub const TOKEN_BYTES_MAX: usize = 16 * 1024;

/// Bytes of a `kid`, in a token and in a key.
pub const KID_BYTES_MAX: usize = 256;

/// Bytes of a set of keys, and of a key in PEM.
pub const SET_BYTES_MAX: usize = 1024 * 1024;

/// Keys in a set.
pub const KEYS_MAX: usize = 10_000;

/// Seconds that the clocks of an issuer and of this machine may differ by at most, whatever the rules say.
pub const LEEWAY_MAX_S: u64 = 60;

/// Bits of an RSA modulus: fewer are weak, and more take long to check.
pub(crate) const RSA_BITS: std::ops::RangeInclusive<usize> = 2048..=4096;

/// Bytes of a signature: one of RSA with 4096 bits.
pub(crate) const SIGNATURE_BYTES_MAX: usize = 512;
