//! The signature algorithms of JWS that are supported, by their registered names.
//!
//! Invariant: none of them is symmetric, and none of them is `none`.
//! Not here: which key does which of them (`public_key`).

/// An algorithm that a token is signed with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Algorithm {
    /// RSA, PKCS#1 v1.5, SHA-256.
    Rs256,
    /// RSA, PKCS#1 v1.5, SHA-384.
    Rs384,
    /// RSA, PKCS#1 v1.5, SHA-512.
    Rs512,
    /// RSA, PSS, SHA-256.
    Ps256,
    /// RSA, PSS, SHA-384.
    Ps384,
    /// RSA, PSS, SHA-512.
    Ps512,
    /// ECDSA, P-256, SHA-256.
    Es256,
    /// ECDSA, P-384, SHA-384.
    Es384,
    /// ECDSA, P-521, SHA-512.
    Es512,
    /// Ed25519, which RFC 8037 calls `EdDSA` and RFC 9864 `Ed25519`.
    EdDsa,
}

impl Algorithm {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::Rs256,
        Self::Rs384,
        Self::Rs512,
        Self::Ps256,
        Self::Ps384,
        Self::Ps512,
        Self::Es256,
        Self::Es384,
        Self::Es512,
        Self::EdDsa,
    ];

    /// The algorithm of this name, compared exactly. `None` for one that is not supported.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        if name == "Ed25519" {
            return Some(Self::EdDsa);
        }
        Self::ALL.into_iter().find(|known| known.name() == name)
    }

    /// The name in a header and in a key.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Rs256 => "RS256",
            Self::Rs384 => "RS384",
            Self::Rs512 => "RS512",
            Self::Ps256 => "PS256",
            Self::Ps384 => "PS384",
            Self::Ps512 => "PS512",
            Self::Es256 => "ES256",
            Self::Es384 => "ES384",
            Self::Es512 => "ES512",
            Self::EdDsa => "EdDSA",
        }
    }
}
