//! Why a token is refused.
//!
//! Invariant: nothing that a token holds is quoted; numbers of seconds are all that is told of it.
//! Not here: which status a client gets (`policy::refusal`).

use thiserror::Error;

use crate::algorithm::Algorithm;
use crate::bounds::{KID_BYTES_MAX, TOKEN_BYTES_MAX};

/// A part of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The first.
    Header,
    /// The second.
    Claims,
    /// The third.
    Signature,
}

impl Part {
    fn name(self) -> &'static str {
        match self {
            Self::Header => "header",
            Self::Claims => "claims",
            Self::Signature => "signature",
        }
    }
}

/// Why a token is refused. What is said of claims is said after the signature was found good.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Refused {
    /// It has more bytes than are read.
    #[error("the token is longer than {TOKEN_BYTES_MAX} bytes")]
    TooLong,
    /// It does not have the three parts of a compact JWS.
    #[error("the token does not have the three parts of a signed JWT")]
    NotCompact,
    /// It has the five parts of a compact JWE.
    #[error("the token is encrypted (JWE); only signed ones (JWS) are read")]
    Encrypted,
    /// A part is not base64url without padding, in its one spelling.
    #[error("the {} of the token: not base64url without padding", .0.name())]
    Base64(Part),
    /// A part is not one JSON object.
    #[error("the {} of the token: not a JSON object", .0.name())]
    Json(Part),
    /// An object in a part has a member twice.
    #[error("the {} of the token: an object has a member twice", .0.name())]
    Duplicate(Part),
    /// This member of the header has a wrong type.
    #[error("the header of the token: `{0}` is not a string")]
    HeaderMistyped(&'static str),
    /// The header has this member, which changes how the token is to be read.
    #[error("the header of the token has `{0}`, which is not supported")]
    HeaderMember(&'static str),
    /// `kid` is longer than any key's.
    #[error("the header of the token: `kid` is longer than {KID_BYTES_MAX} bytes")]
    KidTooLong,
    /// `alg` is absent, `none`, symmetric or unknown.
    #[error("the header of the token: `alg` is not a supported asymmetric algorithm")]
    Algorithm,
    /// The rules do not list the algorithm.
    #[error("the token is signed with {}, which is not among the allowed algorithms", .0.name())]
    AlgorithmNotAllowed(Algorithm),
    /// The key that `kid` names is for another algorithm.
    #[error("the token is signed with {}, which its key is not for", .0.name())]
    AlgorithmOfKey(Algorithm),
    /// No key has the token's `kid`. The issuer may have a new key.
    #[error("no key of the issuer has the `kid` of the token")]
    UnknownKey,
    /// The token has no `kid`, and no key is for its algorithm. The issuer may have a new key.
    #[error("the token has no `kid`, and no key of the issuer is for its algorithm")]
    NoKeyFits,
    /// The token has no `kid`, and several keys are for its algorithm.
    #[error("the token has no `kid`, and several keys of the issuer are for its algorithm")]
    SeveralKeysFit,
    /// The signature is not the key's over this token.
    #[error("the signature of the token is wrong")]
    Signature,
    /// `typ` is not one of those that are allowed.
    #[error("the token is of another type (`typ`) than those allowed")]
    Type,
    /// A claim that is needed is absent.
    #[error("the token has no `{0}`")]
    Missing(&'static str),
    /// A claim has a wrong type, or is a time outside of 0 to 2^53.
    #[error("`{0}` of the token has a wrong type or is out of range")]
    Mistyped(&'static str),
    /// `iss` is another.
    #[error("the token is of another issuer (`iss`)")]
    Issuer,
    /// `aud` names none of ours.
    #[error("the token is for another audience (`aud`)")]
    Audience,
    /// `exp` is past.
    #[error("the token expired {ago_s} s ago")]
    Expired {
        /// Seconds since `exp`.
        ago_s: u64,
    },
    /// `nbf` is to come.
    #[error("the token is valid in {in_s} s only (`nbf`); if it is new, the clocks differ by that")]
    NotYetValid {
        /// Seconds until `nbf`.
        in_s: u64,
    },
    /// `iat` is to come: the issuer's clock and ours differ.
    #[error(
        "the token is of {ahead_s} s in the future (`iat`): the clocks of its issuer and of this machine differ by \
         that at least"
    )]
    IssuedAhead {
        /// Seconds until `iat`.
        ahead_s: u64,
    },
}

impl Refused {
    /// A short name that stays, for logs, metrics and error bodies.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::TooLong => "token_too_long",
            Self::NotCompact => "token_not_compact",
            Self::Encrypted => "token_encrypted",
            Self::Base64(_) => "token_bad_base64",
            Self::Json(_) => "token_bad_json",
            Self::Duplicate(_) => "token_duplicate_member",
            Self::HeaderMistyped(_) => "token_header_mistyped",
            Self::HeaderMember(_) => "token_header_unsupported",
            Self::KidTooLong => "token_kid_too_long",
            Self::Algorithm => "token_algorithm_unsupported",
            Self::AlgorithmNotAllowed(_) => "token_algorithm_not_allowed",
            Self::AlgorithmOfKey(_) => "token_algorithm_of_key",
            Self::UnknownKey => "token_key_unknown",
            Self::NoKeyFits => "token_no_key_fits",
            Self::SeveralKeysFit => "token_several_keys_fit",
            Self::Signature => "token_signature_wrong",
            Self::Type => "token_type_wrong",
            Self::Missing(_) => "token_claim_missing",
            Self::Mistyped(_) => "token_claim_mistyped",
            Self::Issuer => "token_issuer_wrong",
            Self::Audience => "token_audience_wrong",
            Self::Expired { .. } => "token_expired",
            Self::NotYetValid { .. } => "token_not_yet_valid",
            Self::IssuedAhead { .. } => "token_issued_ahead",
        }
    }

    /// Whether newer keys of the issuer could make the token good, so that asking for them makes sense (seldom: who
    /// sends bad tokens sends many). A key may have been replaced under its old `kid`.
    #[must_use]
    pub fn asks_for_keys(&self) -> bool {
        matches!(
            self,
            Self::UnknownKey | Self::NoKeyFits | Self::Signature | Self::AlgorithmOfKey(_)
        )
    }
}
