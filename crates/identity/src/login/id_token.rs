//! Whether an ID token says who has just logged in (OpenID Connect Core, 3.1.3.7).
//!
//! Invariant: it is signed by the issuer, for the gate and for this very login.
//! Not here: signature, issuer, audience and times (`jose`).

use jose::{Claims, KeySet, Refused, Rules, Token};
use policy::secret::Secret;
use serde_json::{Map, Value};

/// Longest `sub`, bytes (OpenID Connect Core, 2).
pub(super) const SUBJECT_BYTES_MAX: usize = 255;

/// Why an ID token is of no use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum IdTokenFault {
    /// It is not good as a token.
    #[error("{0}")]
    Token(#[from] Refused),
    /// It is of another login.
    #[error("the nonce of the ID token belongs to another login")]
    Nonce,
    /// It was issued to another client.
    #[error("the ID token was issued to another client (azp), or is for several and names none")]
    AuthorizedParty,
    /// It does not say of whom it is.
    #[error("the ID token has no sub, or one that is longer than {SUBJECT_BYTES_MAX} bytes")]
    Subject,
}

impl IdTokenFault {
    /// Whether newer keys of the issuer could make it good.
    #[must_use]
    pub fn asks_for_keys(&self) -> bool {
        matches!(self, Self::Token(refused) if refused.asks_for_keys())
    }
}

/// What an ID token says, if it is good and of the login with this nonce. The rules name the gate alone as audience.
///
/// # Errors
/// [`IdTokenFault`].
pub fn id_token(
    token: &[u8],
    nonce: &Secret,
    client_id: &str,
    (rules, keys): (&Rules, &KeySet),
    unix_s: u64,
) -> Result<Claims, IdTokenFault> {
    let token = Token::read(token)?;
    let claims = jose::verify(&token, rules, keys, unix_s)?;
    let all = claims.all();
    let said = text(all, "nonce").unwrap_or_default();
    if !nonce.is(said.as_bytes()) {
        return Err(IdTokenFault::Nonce);
    }
    let is_for_several = matches!(all.get("aud"), Some(Value::Array(many)) if many.len() > 1);
    let is_ours = match all.get("azp") {
        None => !is_for_several,
        Some(party) => party.as_str() == Some(client_id),
    };
    if !is_ours {
        return Err(IdTokenFault::AuthorizedParty);
    }
    let subject = text(all, "sub").unwrap_or_default();
    if !(1..=SUBJECT_BYTES_MAX).contains(&subject.len()) {
        return Err(IdTokenFault::Subject);
    }
    Ok(claims)
}

fn text<'c>(claims: &'c Map<String, Value>, name: &str) -> Option<&'c str> {
    claims.get(name)?.as_str()
}
