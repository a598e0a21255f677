//! Whether a token is good, as its issuer says (RFC 7662).
//!
//! Invariant: a token is good only where the answer says `"active": true`, once. What is kept is keyed by the SHA-256 of
//! the whole token, and holds the token nowhere. An answer is never kept beyond the token's own end, nor longer than the
//! settings say: so long may a token that was revoked still pass.
//! Not here: what the claims mean (the host), the bounds of what is kept (`shared`: who was kept first goes first; an
//! eighth of the room is for tokens that are not good).

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use http::Method;
use http::header::{ACCEPT, HeaderMap, HeaderValue};
use policy::secret::Secret;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::client::{Call, Client};
use crate::client_auth::ClientAuth;
use crate::fault::Fault;
use crate::form::Form;
use crate::json;
use crate::questions::Questions;
use crate::service::{Answered, Handle};
use crate::shared::{Found, Key, Shared};
use crate::url::Url;

/// The longest answer.
const ANSWER_BYTES_MAX: usize = 64 << 10;
/// The longest token that is asked about; a longer one is not good.
pub const TOKEN_BYTES_MAX: usize = 16 << 10;
/// How far the clocks of issuer and gate may be apart.
const LEEWAY: Duration = Duration::from_secs(60);

/// Who is asked, and how long what it says is kept.
#[derive(Debug, Clone)]
pub struct IntrospectionSettings {
    /// The endpoint.
    pub url: Url,
    /// Who the gate is to it.
    pub auth: ClientAuth,
    /// The longest that a good token is kept.
    pub cache: Duration,
    /// How long one that is not good is kept: from 5 s to 10 s.
    pub cache_inactive: Duration,
    /// Tokens that are kept.
    pub entries_max: usize,
    /// Where questions are counted.
    pub questions: Arc<Questions>,
}

impl IntrospectionSettings {
    /// A minute for good tokens, five seconds for others, 65,536 of them.
    #[must_use]
    pub fn new(url: Url, auth: ClientAuth) -> Self {
        Self {
            url,
            auth,
            cache: Duration::from_secs(60),
            cache_inactive: Duration::from_secs(5),
            entries_max: 65_536,
            questions: Arc::default(),
        }
    }
}

/// What the issuer says of a token.
#[derive(Debug, Clone, PartialEq)]
pub enum Introspected {
    /// It is good.
    Active(Arc<ActiveToken>),
    /// It is not, or was never one.
    Inactive,
}

/// A good token.
#[derive(Debug, Clone, PartialEq)]
pub struct ActiveToken {
    /// All members of the answer, with `active`.
    pub claims: Map<String, Value>,
    /// When it ends, in seconds after 1970, where the issuer says so.
    pub exp: Option<u64>,
    /// When it was asked about, in seconds after 1970: who keeps the answer counts from there.
    pub asked_s: u64,
}

/// The way to one endpoint; clones share what is kept.
#[derive(Debug, Clone)]
pub struct Introspection {
    asker: Arc<Asker>,
    handle: Handle,
}

struct Asker {
    client: Client,
    settings: IntrospectionSettings,
    shared: Arc<Shared<Introspected>>,
}

impl Introspection {
    /// One that has asked nothing yet.
    #[must_use]
    pub fn new(handle: &Handle, client: Client, settings: IntrospectionSettings) -> Self {
        let shared = Shared::counted(settings.entries_max, Arc::clone(&settings.questions));
        let asker = Asker {
            client,
            settings,
            shared,
        };
        Self {
            asker: Arc::new(asker),
            handle: handle.clone(),
        }
    }

    /// Asks whether a token is good. A fault says that nobody can tell now.
    pub fn ask(&self, token: &Secret, within: Duration) -> Answered<Introspected> {
        let (asker, token) = (Arc::clone(&self.asker), token.clone());
        self.handle
            .ask(within, async move { asker.ask(token).await })
    }
}

impl Asker {
    async fn ask(self: Arc<Self>, token: Secret) -> Result<Introspected, Fault> {
        if !(1..=TOKEN_BYTES_MAX).contains(&token.expose().len()) {
            return Ok(Introspected::Inactive);
        }
        let key: Key = Sha256::digest(token.expose()).into();
        let asker = Arc::clone(&self);
        let question = || async move { asker.look(&token).await };
        self.shared.get(key, question).await
    }

    async fn look(&self, token: &Secret) -> Result<Found<Introspected>, Fault> {
        let Self {
            client, settings, ..
        } = self;
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        let call = Call {
            body: form(token, &settings.auth, &mut headers)?,
            headers,
            ..Call::new(Method::POST, &settings.url, ANSWER_BYTES_MAX)
        };
        let reply = client.send(&call).await?;
        let body = reply.good(&["application/json"], "it is not application/json")?;
        settings.read(body, since_1970())
    }
}

fn form(token: &Secret, auth: &ClientAuth, headers: &mut HeaderMap) -> Result<Bytes, Fault> {
    let mut form = Form::new();
    form.add("token", token.expose());
    form.add("token_type_hint", b"access_token");
    auth.apply(&mut form, headers)?;
    Ok(form.finish(headers))
}

impl IntrospectionSettings {
    fn read(&self, body: &[u8], now: Duration) -> Result<Found<Introspected>, Fault> {
        let claims = json::object(body)?;
        let is_active = match claims.get("active") {
            Some(Value::Bool(is_active)) => *is_active,
            _ => return Err(Fault::Garbage("its member active is not true or false")),
        };
        let exp = json::whole(&claims, "exp", "its member exp is not a whole number")?;
        let left = exp.map(|exp| Duration::from_secs(exp).saturating_sub(now));
        let has_ended =
            exp.is_some_and(|exp| Duration::from_secs(exp).saturating_add(LEEWAY) <= now);
        if !is_active || has_ended {
            let (least, most) = (Duration::from_secs(5), Duration::from_secs(10));
            return Ok(Found {
                value: Introspected::Inactive,
                is_yes: false,
                good_for: self.cache_inactive.clamp(least, most),
                weight: 0,
            });
        }
        Ok(Found {
            value: Introspected::Active(Arc::new(ActiveToken {
                claims,
                exp,
                asked_s: now.as_secs(),
            })),
            is_yes: true,
            good_for: left.map_or(self.cache, |left| left.min(self.cache)),
            weight: body.len(),
        })
    }
}

fn since_1970() -> Duration {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.unwrap_or_default()
}

impl std::fmt::Debug for Asker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Asker").field(&self.settings).finish()
    }
}

#[cfg(test)]
mod tests;
