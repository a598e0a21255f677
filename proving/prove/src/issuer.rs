//! An issuer of tokens, for gateways that verify who calls: signed ones, and opaque ones that it is asked about.
//!
//! Its keys are made anew for each run, but for RSA's, which stands in `vectors/jose`: `ring` makes none, and that one opens nothing.
//! Invariant: no two tokens are the same; all are good for a day and say the same of their holder, but for the group.
//! Not here: signing (`sign`), the process that answers questions (`serve`).

pub(crate) mod serve;
mod sign;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use load::client::fetch;
use ring::rand::{SecureRandom, SystemRandom};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::host::ports;
use crate::host::process::{Group, Start};
use crate::host::ready::{get, start_ready};
use crate::host::usage::Process;
use sign::{SigningKey, base64url};

#[cfg(test)]
mod tests;

/// What `iss` says.
const ISSUER: &str = "https://issuer.test/";
/// Whom the tokens are for.
const AUDIENCE: &str = "tollgate";
/// The client that holds them, and the service or person behind it.
const CLIENT: &str = "race";
const USER: &str = "ada";
/// How long they are good.
const GOOD_SECONDS: u64 = 24 * 3600;
const PATIENCE: Duration = Duration::from_secs(10);

/// What a token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
pub(crate) enum Kind {
    /// Signed with RSA of 2048 bits.
    #[serde(rename = "RS256")]
    Rs256,
    /// Signed on the curve P-256.
    #[serde(rename = "ES256")]
    Es256,
    /// Signed with Ed25519.
    #[serde(rename = "EdDSA")]
    EdDsa,
    /// 32 random bytes that only the issuer can tell anything of.
    #[serde(rename = "opaque")]
    Opaque,
}

/// What a token's holder may do, as the group says that it is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// May call models.
    Inference,
    /// May not.
    Visitors,
}

impl Role {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Inference => "inference",
            Self::Visitors => "visitors",
        }
    }
}

/// What the issuer was asked since it was started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct Asked {
    /// Tokens that it was asked about.
    pub(crate) introspections: u64,
    /// Calls that it was asked about.
    pub(crate) authorizations: u64,
    /// Times that its keys were fetched.
    pub(crate) keys: u64,
}

impl Asked {
    /// Since `before` was read.
    pub(crate) const fn since(&self, before: &Self) -> Self {
        Self {
            introspections: self.introspections.saturating_sub(before.introspections),
            authorizations: self.authorizations.saturating_sub(before.authorizations),
            keys: self.keys.saturating_sub(before.keys),
        }
    }
}

/// The issuer, and its process while it runs.
pub(crate) struct Issuer {
    keys: BTreeMap<Kind, SigningKey>,
    rng: SystemRandom,
    /// Opaque tokens and the group of each, a line each.
    table: String,
    issued: u64,
    port: u16,
    group: Option<Group>,
}

impl Issuer {
    /// One with keys of its own and a port; nothing is started.
    pub(crate) fn new() -> Result<Self, String> {
        let rng = SystemRandom::new();
        let kinds = [Kind::Rs256, Kind::Es256, Kind::EdDsa];
        let keys = kinds.map(|kind| Ok((kind, SigningKey::new(kind, &rng)?)));
        let keys: Result<_, String> = keys.into_iter().collect();
        let port = ports::free().map_err(|error| format!("no port for the issuer: {error}"))?;
        Ok(Self {
            keys: keys?,
            rng,
            table: String::new(),
            issued: 0,
            port,
            group: None,
        })
    }

    pub(crate) const fn port(&self) -> u16 {
        self.port
    }

    /// Whether there are tokens that only its process can tell anything of.
    pub(crate) fn is_asked(&self) -> bool {
        !self.table.is_empty()
    }

    /// So many tokens, no two the same. Opaque ones are known to a process that is started afterwards.
    pub(crate) fn tokens(
        &mut self,
        kind: Kind,
        role: Role,
        count: usize,
    ) -> Result<Vec<String>, String> {
        let first = self.issued;
        self.issued += count as u64;
        let Some(key) = self.keys.get(&kind) else {
            return (0..count).map(|_| self.opaque(role)).collect();
        };
        let numbers: Vec<u64> = (first..self.issued).collect();
        let now = now_s();
        // Signing with RSA takes most of a millisecond.
        let share = count.div_ceil(thread::available_parallelism().map_or(1, usize::from));
        let signed: Vec<Result<Vec<String>, String>> = thread::scope(|scope| {
            let chunks = numbers.chunks(share.max(1));
            let threads: Vec<_> = chunks
                .map(|chunk| {
                    let sign = move |&number: &u64| key.sign(&claims(role.name(), number, now));
                    scope.spawn(move || chunk.iter().map(sign).collect())
                })
                .collect();
            let bug = |_| Err("bug: the signing thread panicked".to_owned());
            let joined = threads
                .into_iter()
                .map(|thread| thread.join().unwrap_or_else(bug));
            joined.collect()
        });
        let all: Result<Vec<Vec<String>>, String> = signed.into_iter().collect();
        Ok(all?.concat())
    }

    fn opaque(&mut self, role: Role) -> Result<String, String> {
        let mut bytes = [0; 32];
        let none = |_| "the system gave no random bytes".to_owned();
        self.rng.fill(&mut bytes).map_err(none)?;
        let token = base64url(&bytes);
        let _ = writeln!(self.table, "{token} {}", role.name());
        Ok(token)
    }

    /// Its public keys as a JWK set.
    pub(crate) fn jwks(&self) -> String {
        let keys: Vec<Value> = self.keys.values().map(SigningKey::jwk).collect();
        json!({ "keys": keys }).to_string()
    }

    /// Starts the process that answers for the tokens there are, in a group with a quota where one is given.
    pub(crate) fn start(&mut self, home: &Path, cgroup: Option<&Path>) -> Result<(), String> {
        let said = |error: std::io::Error| format!("the issuer could not start: {error}");
        let dir = home.join("issuer");
        fs::create_dir_all(&dir).map_err(said)?;
        fs::write(dir.join(serve::TOKENS), &self.table).map_err(said)?;
        fs::write(dir.join(serve::KEYS), self.jwks()).map_err(said)?;
        let args = [
            "issuer".to_owned(),
            "--port".to_owned(),
            self.port.to_string(),
        ];
        let log = dir.join("output.log");
        let start = Start {
            cgroup,
            ..Start::own(&args, &dir, &log)
        };
        let asks = (self.address(), &get("/healthy"));
        self.group = Some(start_ready("the issuer", start, asks, PATIENCE)?);
        Ok(())
    }

    /// Ends the process.
    pub(crate) fn stop(&mut self) {
        self.group = None;
    }

    pub(crate) fn processes(&self) -> Vec<Process> {
        self.group
            .as_ref()
            .map(Group::processes)
            .unwrap_or_default()
    }

    /// What the process was asked.
    pub(crate) fn asked(&self) -> Result<Asked, String> {
        let request = get("/asked");
        let said = fetch(self.address(), &request, PATIENCE)
            .map_err(|error| format!("the issuer: {error}"))?;
        serde_json::from_slice(&said.body).map_err(|error| format!("the issuer: {error}"))
    }

    fn address(&self) -> SocketAddr {
        ports::loopback(self.port)
    }
}

/// What is said of a holder, in a token or in an answer about one.
fn claims(group: &str, number: u64, now: u64) -> Value {
    json!({
        "iss": ISSUER, "aud": AUDIENCE, "sub": USER, "client_id": CLIENT, "groups": [group],
        "iat": now, "exp": now + GOOD_SECONDS, "jti": format!("{number:08}"),
    })
}

fn now_s() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}
