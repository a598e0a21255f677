//! Whether a token is good.
//!
//! First the algorithm, then the key, then the signature, and only then what the claims say: whatever is said of
//! them in a refusal, the issuer did sign.
//! Not here: the set of keys (`key_set`), the arithmetic (`public_key`), the rules for claims (`rules`).

use std::sync::Arc;

use crate::claims::Claims;
use crate::key_set::KeySet;
use crate::refused::Refused;
use crate::rules::Rules;
use crate::token::Token;

/// The claims of a token, if a key of the set signed it and it says what the rules require. The time is that of the
/// wall, in seconds since 1970.
///
/// # Errors
/// Why the token is refused. For some of it, newer keys may help: [`Refused::asks_for_keys`].
pub fn verify(
    token: &Token<'_>,
    rules: &Rules,
    keys: &KeySet,
    now_unix_s: u64,
) -> Result<Claims, Refused> {
    let header = &token.header;
    rules.check_algorithm(header.algorithm)?;
    let key = keys.key_for(header.kid.as_deref(), header.algorithm)?;
    if !key.verifies(header.algorithm, token.signed, token.signature()) {
        return Err(Refused::Signature);
    }
    rules.check_type(header.typ.as_deref())?;
    let expires = rules.check_claims(&token.claims, now_unix_s)?;
    Ok(Claims::new(Arc::clone(&token.claims), expires))
}

#[cfg(test)]
mod tests;
