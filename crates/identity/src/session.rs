//! Sessions of browsers: what an ID token said of somebody, sealed in a cookie, and whose calls bring it.
//!
//! Invariant: a session ends when it says so, and earlier where the configuration has become stricter; it is good for
//! the issuer alone that it came from.
//! Not here: the sealing (`sealed`), how somebody logs in (`login`), which cookie it is (the host).

use std::fmt;
use std::sync::Arc;

use policy::caller::Proven;
use policy::identity::{Proof, Unproven, Verifier};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::claims::Mapping;
use crate::sealed::{NONCE_BYTES, NotSealed, SEALED_BYTES_MAX, Sealer, TooLong};

/// How far the clocks of gates that share a secret may be apart, seconds.
const AHEAD_MAX_S: u64 = 60;

/// Claims of the token itself, not of whom it tells of; `iat` is for rules, which may ask how long ago that was.
const OF_TOKEN: [&str; 7] = ["at_hash", "c_hash", "exp", "jti", "nbf", "nonce", "s_hash"];

/// Somebody is logged in.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Session {
    /// When it began, seconds since the Unix epoch.
    #[serde(rename = "i")]
    pub issued_unix_s: u64,
    /// The first second in which it is no more.
    #[serde(rename = "e")]
    pub expires_unix_s: u64,
    /// What the issuer said of whom it is: `iss` and `sub` are among it.
    #[serde(rename = "c")]
    pub claims: Map<String, Value>,
}

/// Who it is, is theirs: the times are shown.
impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("issued_unix_s", &self.issued_unix_s)
            .field("expires_unix_s", &self.expires_unix_s)
            .finish_non_exhaustive()
    }
}

/// What was brought is no session. It says no more to who brought it; [`NotASession::reason`] is for the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a session")]
pub struct NotASession(Why);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Why {
    Sealed(NotSealed),
    Content,
    Ended,
    Ahead,
    Issuer,
}

impl NotASession {
    /// For the log.
    #[must_use]
    pub const fn reason(self) -> &'static str {
        match self.0 {
            Why::Sealed(why) => why.reason(),
            Why::Content => "it holds something else than a session",
            Why::Ended => "it has ended",
            Why::Ahead => {
                "it begins in the future: the clocks of two gates differ by more than a minute"
            }
            Why::Issuer => "it is of another issuer",
        }
    }

    /// Whether it was a good one once.
    #[must_use]
    pub const fn has_ended(self) -> bool {
        matches!(self.0, Why::Ended)
    }
}

/// What an ID token says is more than a cookie holds.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the session would have {bytes} bytes, and a cookie holds {SEALED_BYTES_MAX}; the longest claim is {longest}: name \
     those to keep in `claims`, or have the provider put fewer into its ID tokens"
)]
pub struct TooLarge {
    bytes: usize,
    /// The name of the longest claim.
    longest: String,
}

impl Session {
    /// One that begins now. Of the claims, `iss` and `sub` are kept, and those that are named in `keep`, by the first
    /// member of their path; where that is empty, all that are not of the token itself.
    #[must_use]
    pub fn begin(claims: &Map<String, Value>, keep: &[String], unix_s: u64, life_s: u64) -> Self {
        let is_named = |name: &str| {
            let mut keep = keep.iter().map(String::as_str);
            keep.any(|kept| kept == name || kept.split('.').next() == Some(name))
        };
        let is_kept = |name: &str| {
            matches!(name, "iss" | "sub")
                || is_named(name)
                || (keep.is_empty() && !OF_TOKEN.contains(&name))
        };
        let kept = claims.iter().filter(|(name, _)| is_kept(name));
        Self {
            issued_unix_s: unix_s,
            expires_unix_s: unix_s.saturating_add(life_s),
            claims: kept.map(|(n, v)| (n.clone(), v.clone())).collect(),
        }
    }

    /// Seals it.
    ///
    /// # Errors
    /// [`TooLarge`], which names its longest claim.
    pub fn seal(&self, sealer: &Sealer, nonce: [u8; NONCE_BYTES]) -> Result<String, TooLarge> {
        // A map of texts is always JSON.
        let text = serde_json::to_vec(self).unwrap_or_default();
        sealer.seal(&text, nonce).map_err(|TooLong(bytes)| {
            let length = |value: &Value| value.to_string().len();
            let longest = self.claims.iter().max_by_key(|(_, value)| length(value));
            TooLarge {
                bytes,
                longest: longest.map_or_else(String::new, |(name, _)| name.clone()),
            }
        })
    }

    /// The session that a cookie holds, if it is this issuer's and goes on, at most `life_s` after it began.
    ///
    /// # Errors
    /// [`NotASession`].
    pub fn open(
        cookie: &[u8],
        sealer: &Sealer,
        issuer: &str,
        (unix_s, life_s): (u64, u64),
    ) -> Result<Self, NotASession> {
        let text = sealer.open(cookie);
        let text = text.map_err(|why| NotASession(Why::Sealed(why)))?;
        let session: Self = serde_json::from_slice(&text).map_err(|_| NotASession(Why::Content))?;
        if session.text("iss") != Some(issuer) {
            return Err(NotASession(Why::Issuer));
        }
        if session.issued_unix_s > unix_s.saturating_add(AHEAD_MAX_S) {
            return Err(NotASession(Why::Ahead));
        }
        if unix_s >= session.end(life_s) {
            return Err(NotASession(Why::Ended));
        }
        Ok(session)
    }

    /// When it ends, where no session is longer than this.
    fn end(&self, life_s: u64) -> u64 {
        let latest = self.issued_unix_s.saturating_add(life_s);
        self.expires_unix_s.min(latest)
    }

    /// Who said whose it is.
    #[must_use]
    pub fn issuer(&self) -> &str {
        self.text("iss").unwrap_or_default()
    }

    /// Whose it is, by the issuer's own name for them.
    #[must_use]
    pub fn subject(&self) -> &str {
        self.text("sub").unwrap_or_default()
    }

    fn text(&self, claim: &str) -> Option<&str> {
        self.claims.get(claim)?.as_str()
    }
}

/// Takes sessions for credentials.
#[derive(Debug)]
pub struct SessionVerifier {
    /// Opens them.
    pub sealer: Arc<Sealer>,
    /// Whose they are.
    pub issuer: String,
    /// How long one may be, seconds.
    pub life_s: u64,
    /// How their claims become a caller.
    pub mapping: Mapping,
}

impl Verifier for SessionVerifier {
    fn takes(&self, _: &[u8]) -> bool {
        true
    }

    fn fingerprint(&self, credential: &[u8]) -> [u8; 32] {
        crate::fingerprint(credential)
    }

    fn verify(&self, credential: &[u8], unix_s: u64) -> Result<Proof, Unproven> {
        let now = (unix_s, self.life_s);
        let session = Session::open(credential, &self.sealer, &self.issuer, now);
        let session = session.map_err(|no| Unproven::Invalid(no.reason().into()))?;
        let caller = self.mapping.caller(&session.claims, Proven::Session);
        Ok(Proof {
            // To log in again would change nothing.
            caller: Arc::new(caller.map_err(|why| Unproven::Unmapped(why.into()))?),
            until_unix_s: session.end(self.life_s),
        })
    }
}

#[cfg(test)]
mod tests;
