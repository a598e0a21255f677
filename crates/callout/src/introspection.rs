//! Whether a token is good, as its issuer says (RFC 7662).
//!
//! Invariant: a token is good only where the answer says `"active": true`, once, and between the times that it says for
//! it. An answer is never kept beyond the token's own end, nor longer than the settings say: so long may a token that was revoked still pass.
//! Not here: what the claims mean (the host), what is kept of answers (`about_token`).

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use http::Method;
use http::header::{ACCEPT, HeaderMap, HeaderValue};
use policy::secret::Secret;
use serde_json::{Map, Value};

use crate::about_token::{AboutTokens, TokenQuestion};
use crate::client::{Call, Client};
use crate::client_auth::ClientAuth;
use crate::fault::Fault;
use crate::form::Form;
use crate::json;
use crate::questions::Questions;
use crate::service::{Answered, Handle};
use crate::shared::{Found, Shared};
use crate::url::Url;

/// The longest answer.
const ANSWER_BYTES_MAX: usize = 64 << 10;
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
pub struct Introspection(AboutTokens<Endpoint>);

struct Endpoint {
    client: Client,
    settings: IntrospectionSettings,
}

impl Introspection {
    /// One that has asked nothing yet.
    #[must_use]
    pub fn new(handle: &Handle, client: Client, settings: IntrospectionSettings) -> Self {
        let shared = Shared::counted(settings.entries_max, Arc::clone(&settings.questions));
        let endpoint = Endpoint { client, settings };
        Self(AboutTokens::new(handle, endpoint, shared))
    }

    /// Asks whether a token is good. A fault says that nobody can tell now.
    pub fn ask(&self, token: &Secret, within: Duration) -> Answered<Introspected> {
        self.0.ask(token, within)
    }
}

impl TokenQuestion for Endpoint {
    type Answer = Introspected;
    const REFUSED: Introspected = Introspected::Inactive;

    fn can_be_one(&self, _: &[u8]) -> bool {
        true
    }

    async fn look(&self, token: &Secret) -> Result<Found<Introspected>, Fault> {
        let Self { client, settings } = self;
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
        if !is_active {
            return Ok(self.inactive());
        }
        let exp = json::seconds(&claims, "exp", "its member exp is no number of seconds")?;
        let nbf = json::seconds(&claims, "nbf", "its member nbf is no number of seconds")?;
        let left = exp.map(|exp| Duration::from_secs(exp).saturating_sub(now));
        let has_ended =
            exp.is_some_and(|exp| Duration::from_secs(exp).saturating_add(LEEWAY) <= now);
        let is_early = nbf.is_some_and(|nbf| Duration::from_secs(nbf) > now.saturating_add(LEEWAY));
        if has_ended || is_early {
            return Ok(self.inactive());
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

    fn inactive(&self) -> Found<Introspected> {
        let (least, most) = (Duration::from_secs(5), Duration::from_secs(10));
        Found {
            value: Introspected::Inactive,
            is_yes: false,
            good_for: self.cache_inactive.clamp(least, most),
            weight: 0,
        }
    }
}

pub(crate) fn since_1970() -> Duration {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.unwrap_or_default()
}

impl std::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.settings.fmt(f)
    }
}

#[cfg(test)]
mod tests;
