//! A provider where people log in: where browsers are sent, and for codes ID tokens, or of a plain OAuth server what its user endpoint says.
//!
//! Invariant: what anybody can have asked takes a bounded room.
//! Not here: its document (`issuer_document`), its keys (`jwks`), what an ID token says (the host).

mod tries;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use http::header::{ACCEPT, AUTHORIZATION, HeaderValue};
use http::{Method, StatusCode};
use policy::secret::Secret;
use serde_json::{Map, Value};
use tokio::sync::Semaphore;

use crate::client::{Call, Client};
use crate::client_auth::{ClientAuth, bearer};
use crate::fault::Fault;
use crate::issuer_document::{Document, UrlFaults};
use crate::json;
use crate::jwks::{IssuerFault, KeySource};
use crate::secret_source::SecretSource;
use crate::service::{Answered, Handle};
use crate::shared::{Found, Shared};
use crate::token::{Grant, OAuthRequest};
use crate::url::Url;
use tries::Tries;

/// Codes that are given for ID tokens at once: anybody can bring one, and must not take the room of other questions.
const CODES_MAX: usize = 64;
/// The longest answer of a user endpoint.
const USER_BYTES_MAX: usize = 256 << 10;
/// How long a document is used before it is fetched again.
const DOCUMENT_KEPT: Duration = Duration::from_secs(60 * 60);

/// A provider, as its document or the configuration says it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Provider {
    /// Where browsers are sent to log in; it may have a query.
    pub authorization_endpoint: String,
    /// Where codes are given for tokens.
    token_endpoint: Url,
    /// Who an access token is of, where the provider gives no ID tokens.
    user_endpoint: Option<Url>,
    /// Where browsers are sent to log out, where there is such a place.
    pub end_session_endpoint: Option<String>,
    /// It names itself in what the browser brings back (RFC 9207).
    pub names_itself: bool,
}

/// A code that a browser brought back.
#[derive(Debug, Clone)]
pub struct Code {
    /// It.
    pub code: Secret,
    /// What the challenge was made of (RFC 7636).
    pub verifier: Secret,
    /// Where the browser came back to.
    pub redirect_url: String,
    /// Where the browser is.
    pub from: IpAddr,
}

/// The way to one provider; clones share its document.
#[derive(Debug, Clone)]
pub struct OpenId {
    handle: Handle,
    asker: Arc<Asker>,
}

struct Asker {
    client: Client,
    issuer: String,
    known: Known,
    auth: ClientAuth,
    shared: Arc<Shared<Arc<Provider>>>,
    codes: Arc<Semaphore>,
    tries: Tries,
    /// Of those who wait for the document.
    waiting: Arc<Semaphore>,
}

/// Where it is known from what a login needs.
enum Known {
    /// Its discovery document.
    Document(Url),
    /// The configuration.
    Written(Arc<Provider>),
}

impl OpenId {
    /// A server of plain OAuth, without a document and without ID tokens: its addresses are written.
    ///
    /// # Errors
    /// In words, with the address that is none.
    pub fn written(
        handle: &Handle,
        client: Client,
        issuer: &str,
        auth: ClientAuth,
        [authorization, token, user]: [&str; 3],
    ) -> Result<Self, String> {
        let read = |name, text: &str| {
            let url = Url::parse(text);
            url.map_err(|fault| format!("{name}: {fault}"))
        };
        let provider = Provider {
            authorization_endpoint: read("authorization_endpoint", authorization)?.to_text(),
            token_endpoint: read("token_endpoint", token)?,
            user_endpoint: Some(read("user_endpoint", user)?),
            end_session_endpoint: None,
            names_itself: false,
        };
        let known = Known::Written(Arc::new(provider));
        Ok(Self::of(handle, client, issuer, auth, known))
    }

    /// One that has asked nothing yet. `auth`: who the gate is to the token endpoint.
    ///
    /// # Errors
    /// [`IssuerFault`] when the issuer is no URL of `http` or `https` without a query.
    pub fn new(
        handle: &Handle,
        client: Client,
        issuer: &str,
        auth: ClientAuth,
    ) -> Result<Self, IssuerFault> {
        let known = Known::Document(KeySource::openid_document(issuer)?);
        Ok(Self::of(handle, client, issuer, auth, known))
    }

    fn of(handle: &Handle, client: Client, issuer: &str, auth: ClientAuth, known: Known) -> Self {
        let asker = Asker {
            client,
            issuer: issuer.to_owned(),
            known,
            auth,
            shared: Shared::new(1),
            codes: Arc::new(Semaphore::new(CODES_MAX)),
            tries: Tries::new(),
            waiting: Arc::new(Semaphore::new(CODES_MAX)),
        };
        Self {
            handle: handle.clone(),
            asker: Arc::new(asker),
        }
    }

    /// The provider, as it says itself: its document is fetched when it is first needed, and once an hour. Past
    /// [`CODES_MAX`] that wait for it, the next does not.
    pub fn provider(&self, within: Duration) -> Answered<Arc<Provider>> {
        let asker = Arc::clone(&self.asker);
        let place = Arc::clone(&asker.waiting).try_acquire_owned();
        self.handle.ask(within, async move {
            let _place = place.map_err(|_| Fault::Full)?;
            asker.provider().await
        })
    }

    /// The ID token that the provider gives for a code. A code is good once, whatever comes of it; past [`CODES_MAX`] that
    /// wait, the next is not asked about, nor is one of a login or an address of which too many came ([`Fault::TooMany`]).
    pub fn id_token(&self, code: Code, within: Duration) -> Answered<Secret> {
        self.given(code, within, Asker::id_token)
    }

    /// What the provider's user endpoint says of whose code it is; of its members nothing was looked at. Codes as for
    /// [`OpenId::id_token`].
    pub fn user(&self, code: Code, within: Duration) -> Answered<Map<String, Value>> {
        self.given(code, within, Asker::user)
    }

    fn given<T, F>(
        &self,
        code: Code,
        within: Duration,
        of: impl FnOnce(Arc<Asker>, Code) -> F + Send + 'static,
    ) -> Answered<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Fault>> + Send,
    {
        let asker = Arc::clone(&self.asker);
        let place = Arc::clone(&asker.codes).try_acquire_owned();
        self.handle.ask(within, async move {
            let _place = place.map_err(|_| Fault::Full)?;
            let from = code.from;
            let _running = asker.tries.begin(from, &code.verifier)?;
            let given = of(Arc::clone(&asker), code).await;
            given.inspect_err(|_| asker.tries.note_failure(from))
        })
    }
}

impl Asker {
    async fn provider(self: &Arc<Self>) -> Result<Arc<Provider>, Fault> {
        // There is one document.
        const KEY: [u8; 32] = [0; 32];
        let document = match &self.known {
            Known::Written(provider) => return Ok(Arc::clone(provider)),
            Known::Document(url) => url.clone(),
        };
        let asker = Arc::clone(self);
        let fetch = || async move {
            let Self { client, issuer, .. } = &*asker;
            let provider = provider(&Document::fetch(client, issuer, &document).await?)?;
            Ok(Found {
                weight: provider.authorization_endpoint.len(),
                value: Arc::new(provider),
                is_yes: true,
                good_for: DOCUMENT_KEPT,
            })
        };
        self.shared.get(KEY, fetch).await
    }

    /// The request by which a code is given for tokens.
    fn request(&self, provider: &Provider, code: Code) -> OAuthRequest {
        let grant = Grant::AuthorizationCode {
            code: SecretSource::fixed(code.code),
            verifier: SecretSource::fixed(code.verifier),
            redirect_url: code.redirect_url,
        };
        OAuthRequest::new(provider.token_endpoint.clone(), self.auth.clone(), grant)
    }

    async fn id_token(self: Arc<Self>, code: Code) -> Result<Secret, Fault> {
        let provider = self.provider().await?;
        let request = self.request(&provider, code);
        request.id_token(&self.client).await
    }

    /// Whose code it is. The access token comes over the gate's own connection, so that nobody else chose it.
    async fn user(self: Arc<Self>, code: Code) -> Result<Map<String, Value>, Fault> {
        let provider = self.provider().await?;
        let at = provider.user_endpoint.as_ref();
        let at = at.ok_or(Fault::Garbage("it has no user_endpoint"))?;
        let token = self.request(&provider, code).fetch(&self.client).await?;
        let mut call = Call::new(Method::GET, at, USER_BYTES_MAX);
        let kind = HeaderValue::from_static("application/json");
        call.headers.insert(ACCEPT, kind);
        let token = bearer(&SecretSource::fixed(token.value))?;
        call.headers.insert(AUTHORIZATION, token);
        let reply = self.client.send(&call).await?;
        if matches!(
            reply.status,
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN
        ) {
            return Err(Fault::Garbage(
                "its user_endpoint refused the access token: `scopes` may lack what it asks for",
            ));
        }
        json::object(reply.good(&["application/json"], "it is not application/json")?)
    }
}

impl std::fmt::Debug for Asker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("OpenId").field(&self.issuer).finish()
    }
}

/// What of a document a login needs.
fn provider(document: &Document) -> Result<Provider, Fault> {
    const AUTHORIZATION: UrlFaults = UrlFaults {
        absent: "it names no authorization_endpoint",
        mistyped: "its authorization_endpoint is no text",
        unusable: "its authorization_endpoint is not a usable URL",
        clear: "its authorization_endpoint is not https",
    };
    const TOKEN: UrlFaults = UrlFaults {
        absent: "it names no token_endpoint",
        mistyped: "its token_endpoint is no text",
        unusable: "its token_endpoint is not a usable URL",
        clear: "its token_endpoint is not https",
    };
    const END_SESSION: UrlFaults = UrlFaults {
        absent: "",
        mistyped: "its end_session_endpoint is no text",
        unusable: "its end_session_endpoint is not a usable URL",
        clear: "its end_session_endpoint is not https",
    };
    let authorization = document.url("authorization_endpoint", &AUTHORIZATION)?;
    let authorization = authorization.ok_or(Fault::Garbage(AUTHORIZATION.absent))?;
    let token = document.url("token_endpoint", &TOKEN)?;
    let end_session = document.url("end_session_endpoint", &END_SESSION)?;
    let names_itself = document.flag(
        "authorization_response_iss_parameter_supported",
        "its authorization_response_iss_parameter_supported is not true or false",
    )?;
    Ok(Provider {
        authorization_endpoint: authorization.to_text(),
        token_endpoint: token.ok_or(Fault::Garbage(TOKEN.absent))?,
        user_endpoint: None,
        end_session_endpoint: end_session.map(|url| url.to_text()),
        names_itself,
    })
}

#[cfg(test)]
mod tests;
