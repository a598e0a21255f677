//! Signed tokens, of one issuer or several, to callers.
//!
//! Which issuer's keys and rules count, its `iss` says before anything is proven; what is proven says it again.
//! Invariant: no keys, no proof: an issuer whose keys are not at hand is unavailable, never open.
//! Not here: the arithmetic (`jose`), where keys come from ([`IssuerKeys`]'s host).

use std::fmt;
use std::sync::Arc;

use jose::{KeySet, Refused, Rules, Token};
use policy::caller::{Later, Proven};
use policy::identity::{Proof, Unproven, Verifier};
use policy::secret::Secret;

use crate::claims::Mapping;

/// The keys of an issuer, as they are now.
pub trait IssuerKeys: fmt::Debug + Send + Sync {
    /// The keys; why there are none.
    ///
    /// # Errors
    /// In words, for the log.
    fn current(&self) -> Result<Arc<KeySet>, String>;
    /// Changes with the keys.
    fn generation(&self) -> u64;
    /// Whether others might be had by asking.
    fn may_refresh(&self) -> bool;
    /// Asks for others; afterwards [`Self::current`] are the issuer's, or it is said why they cannot be had.
    fn refresh(&self) -> Later<Result<(), String>>;
}

/// Keys that never change, such as a file's: another file makes another verifier.
#[derive(Debug)]
pub struct FixedKeys(Arc<KeySet>);

impl FixedKeys {
    /// These.
    #[must_use]
    pub fn new(keys: KeySet) -> Self {
        Self(Arc::new(keys))
    }
}

impl IssuerKeys for FixedKeys {
    fn current(&self) -> Result<Arc<KeySet>, String> {
        Ok(Arc::clone(&self.0))
    }

    fn generation(&self) -> u64 {
        0
    }

    fn may_refresh(&self) -> bool {
        false
    }

    fn refresh(&self) -> Later<Result<(), String>> {
        Box::pin(std::future::ready(Ok(())))
    }
}

/// An issuer, and what its tokens must say.
#[derive(Debug, Clone)]
pub struct Issuer {
    /// What they must say.
    pub rules: Arc<Rules>,
    /// How their claims become a caller.
    pub mapping: Arc<Mapping>,
    /// Its keys.
    pub keys: Arc<dyn IssuerKeys>,
}

/// Tokens of these issuers.
#[derive(Debug)]
pub struct JwtVerifier {
    issuers: Vec<Issuer>,
    /// The wall clock, for what is proven after somebody was asked.
    clock: fn() -> u64,
}

impl JwtVerifier {
    /// Tokens of several issuers; `clock` gives seconds since the Unix epoch.
    #[must_use]
    pub fn new(issuers: Vec<Issuer>, clock: fn() -> u64) -> Self {
        Self { issuers, clock }
    }
}

impl Verifier for JwtVerifier {
    fn takes(&self, credential: &[u8]) -> bool {
        // A JSON object in base64url, and three parts.
        credential.starts_with(b"ey") && dots(credential) == 2
    }

    fn fingerprint(&self, credential: &[u8]) -> [u8; 32] {
        crate::fingerprint(credential)
    }

    fn generation(&self) -> u64 {
        let generations = self.issuers.iter().map(|issuer| issuer.keys.generation());
        // A sum would be the same where one goes up and another down.
        generations.fold(0, |all: u64, one| all.wrapping_mul(MIX).wrapping_add(one))
    }

    fn verify(&self, credential: &[u8], unix_s: u64) -> Result<Proof, Unproven> {
        let token = read(credential)?;
        first(&self.issuers, &token, unix_s)?.map_err(|_| Unproven::Ask)
    }

    fn ask(&self, credential: Secret) -> Later<Result<Proof, Unproven>> {
        let (issuers, clock) = (self.issuers.clone(), self.clock);
        Box::pin(async move {
            let token = read(credential.expose())?;
            let mut refreshed = Ok(());
            for issuer in of(&issuers, &token) {
                refreshed = refreshed.and(issuer.keys.refresh().await);
            }
            match (first(&issuers, &token, clock())?, refreshed) {
                (Ok(proof), _) => Ok(proof),
                // It may be good.
                (Err(Refused::UnknownKey | Refused::NoKeyFits), Err(why)) => {
                    let says = format!("{UNKNOWN_KEY}, and newer ones cannot be fetched: {why}");
                    Err(Unproven::Unavailable(says.into()))
                }
                (Err(Refused::UnknownKey | Refused::NoKeyFits), Ok(())) => {
                    Err(Unproven::Invalid(UNKNOWN_KEY.into()))
                }
                // The issuer has a key of this name, and it says no.
                (Err(refused), _) => Err(Unproven::Invalid(refused.to_string().into())),
            }
        })
    }
}

/// Odd and without a pattern, so that small numbers do not meet.
const MIX: u64 = 0x9E37_79B9_7F4A_7C15;

/// Most of an issuer's name that the log repeats, characters.
const SHOWN: usize = 100;

/// How many dots there are. They are counted in bytes, as many of which are added at once as a register holds.
fn dots(credential: &[u8]) -> usize {
    let of = |part: &[u8]| part.iter().map(|byte| u8::from(*byte == b'.')).sum::<u8>();
    let parts = credential.chunks(usize::from(u8::MAX));
    parts.map(|part| usize::from(of(part))).sum()
}

const UNKNOWN_KEY: &str = "the issuer has no key that fits the token";

fn read(credential: &[u8]) -> Result<Token<'_>, Unproven> {
    Token::read(credential).map_err(|refused| Unproven::Invalid(refused.to_string().into()))
}

/// Those that a token names: several, where an issuer's tokens are for one of several audiences.
fn of<'i>(issuers: &'i [Issuer], token: &Token<'_>) -> impl Iterator<Item = &'i Issuer> {
    let said = token.issuer().map(str::to_owned);
    let is_said = move |i: &&Issuer| said.as_deref() == Some(&*i.rules.issuer);
    issuers.iter().filter(is_said)
}

/// A proof, or why there is none although newer keys could give one.
type WithKeys = Result<Proof, Refused>;

/// The first proof.
fn first(issuers: &[Issuer], token: &Token<'_>, unix_s: u64) -> Result<WithKeys, Unproven> {
    let mut refused = None;
    for issuer in of(issuers, token) {
        match proof(issuer, token, unix_s) {
            Ok(proof) => return Ok(proof),
            Err(unproven) => refused = refused.or(Some(unproven)),
        }
    }
    Err(refused.unwrap_or_else(|| elsewhere(issuers, token)))
}

#[cold]
fn elsewhere(issuers: &[Issuer], token: &Token<'_>) -> Unproven {
    let known: Vec<&str> = issuers.iter().map(|i| &*i.rules.issuer).collect();
    let said: String = token
        .issuer()
        .unwrap_or_default()
        .chars()
        .take(SHOWN)
        .collect();
    let says = format!("its iss is {said:?}, and tokens of {known:?} are taken");
    Unproven::Elsewhere(says.into())
}

fn proof(issuer: &Issuer, token: &Token<'_>, unix_s: u64) -> Result<WithKeys, Unproven> {
    let keys = issuer
        .keys
        .current()
        .map_err(|why| Unproven::Unavailable(why.into()))?;
    let claims = match jose::verify(token, &issuer.rules, &keys, unix_s) {
        Ok(claims) => claims,
        Err(refused) if refused.asks_for_keys() && issuer.keys.may_refresh() => {
            return Ok(Err(refused));
        }
        Err(refused) => return Err(Unproven::Invalid(refused.to_string().into())),
    };
    let caller = issuer.mapping.caller(claims.all(), Proven::Token);
    let caller = caller.map_err(|why| Unproven::Invalid(why.into()))?;
    let leeway = issuer.rules.leeway_s;
    Ok(Ok(Proof {
        caller: Arc::new(caller),
        until_unix_s: claims
            .expires()
            .map_or(u64::MAX, |exp| exp.saturating_add(leeway)),
    }))
}

#[cfg(test)]
mod tests;
