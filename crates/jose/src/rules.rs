//! What a token must say beside being signed: type, issuer, audience, times.
//!
//! Invariant: a claim of a wrong type refuses the token, it is never taken as absent.
//! Not here: the signature (`verify`), claims of other names (`policy`).

use serde_json::{Map, Value};

use crate::algorithm::Algorithm;
use crate::bounds::LEEWAY_MAX_S;
use crate::claims::{text, time};
use crate::refused::Refused;

/// What the tokens of one issuer must say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rules {
    /// `iss`, compared exactly.
    pub issuer: Box<str>,
    /// `aud` must hold one of these, compared exactly. With an empty list, only a token without `aud` is good: one
    /// for nobody in particular.
    pub audiences: Vec<Box<str>>,
    /// `typ` must be one of these, whatever the case and with or without `application/`. With an empty list, it may
    /// be absent, `JWT` or `at+jwt`.
    pub types: Vec<Box<str>>,
    /// The signature must be of one of these. With an empty list, of any that its key is for.
    pub algorithms: Vec<Algorithm>,
    /// Seconds that the clocks may differ by; more than [`LEEWAY_MAX_S`] count as that.
    pub leeway_s: u64,
    /// Whether a token without `exp` is refused.
    pub requires_expiry: bool,
}

/// Of an empty list of types.
const USUAL_TYPES: [&str; 2] = ["JWT", "at+jwt"];

impl Rules {
    pub(crate) fn check_algorithm(&self, algorithm: Algorithm) -> Result<(), Refused> {
        if self.algorithms.is_empty() || self.algorithms.contains(&algorithm) {
            return Ok(());
        }
        Err(Refused::AlgorithmNotAllowed(algorithm))
    }

    pub(crate) fn check_type(&self, typ: Option<&str>) -> Result<(), Refused> {
        let is_good = match typ {
            None => self.types.is_empty(),
            Some(typ) if self.types.is_empty() => {
                USUAL_TYPES.iter().any(|usual| is_same_type(typ, usual))
            }
            Some(typ) => self.types.iter().any(|listed| is_same_type(typ, listed)),
        };
        if is_good { Ok(()) } else { Err(Refused::Type) }
    }

    /// Gives `exp`.
    pub(crate) fn check_claims(
        &self,
        claims: &Map<String, Value>,
        now_unix_s: u64,
    ) -> Result<Option<u64>, Refused> {
        let issuer = text(claims, "iss")?.ok_or(Refused::Missing("iss"))?;
        if issuer != &*self.issuer {
            return Err(Refused::Issuer);
        }
        self.check_audience(claims.get("aud"))?;
        self.check_times(claims, now_unix_s)
    }

    fn check_audience(&self, aud: Option<&Value>) -> Result<(), Refused> {
        let is_ours = |name: &str| self.audiences.iter().any(|ours| **ours == *name);
        let mut is_for_us = false;
        let named = match aud {
            None if self.audiences.is_empty() => return Ok(()),
            None => return Err(Refused::Missing("aud")),
            Some(Value::Array(named)) => named.as_slice(),
            Some(one) => std::slice::from_ref(one),
        };
        for name in named {
            let name = name.as_str().ok_or(Refused::Mistyped("aud"))?;
            is_for_us |= is_ours(name);
        }
        if is_for_us {
            Ok(())
        } else {
            Err(Refused::Audience)
        }
    }

    fn check_times(
        &self,
        claims: &Map<String, Value>,
        now_unix_s: u64,
    ) -> Result<Option<u64>, Refused> {
        let exp = time(claims, "exp")?;
        let nbf = time(claims, "nbf")?.unwrap_or(0);
        let iat = time(claims, "iat")?.unwrap_or(0);
        let leeway_s = self.leeway_s.min(LEEWAY_MAX_S);
        let latest = now_unix_s.saturating_add(leeway_s);
        match exp {
            None if self.requires_expiry => return Err(Refused::Missing("exp")),
            Some(exp) if now_unix_s >= exp.saturating_add(leeway_s) => {
                let ago_s = now_unix_s.saturating_sub(exp);
                return Err(Refused::Expired { ago_s });
            }
            _ => {}
        }
        if iat > latest {
            let ahead_s = iat.saturating_sub(now_unix_s);
            return Err(Refused::IssuedAhead { ahead_s });
        }
        if nbf > latest {
            let in_s = nbf.saturating_sub(now_unix_s);
            return Err(Refused::NotYetValid { in_s });
        }
        Ok(exp)
    }
}

/// RFC 7515, 4.1.9: a type without a slash stands for one of `application/`.
fn is_same_type(one: &str, other: &str) -> bool {
    short_type(one).eq_ignore_ascii_case(short_type(other))
}

fn short_type(typ: &str) -> &str {
    const PREFIX: &str = "application/";
    match typ.split_at_checked(PREFIX.len()) {
        Some((prefix, rest)) if prefix.eq_ignore_ascii_case(PREFIX) && !rest.contains('/') => rest,
        _ => typ,
    }
}
