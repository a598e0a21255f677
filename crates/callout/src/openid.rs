//! An OpenID provider: its document, and ID tokens for codes.
//!
//! Invariant: a document that names another issuer is of no use, in whatever small way the name differs; what is named
//! by an issuer that is spoken to over TLS is spoken to over TLS.
//! Not here: keys (`jwks`), what an ID token says (the host).

use std::sync::Arc;
use std::time::Duration;

use http::header::{ACCEPT, HeaderValue};
use http::{Method, StatusCode};
use policy::secret::Secret;
use serde_json::{Map, Value};

use crate::client::{Call, Client};
use crate::client_auth::ClientAuth;
use crate::fault::Fault;
use crate::json;
use crate::jwks::{IssuerFault, KeySource};
use crate::secret_source::SecretSource;
use crate::service::{Answered, Handle};
use crate::shared::{Found, Shared};
use crate::token::{Grant, OAuthRequest};
use crate::url::Url;

/// The longest document of an issuer.
const DOCUMENT_BYTES_MAX: usize = 256 << 10;
/// How long a document is used before it is fetched again.
const DOCUMENT_KEPT: Duration = Duration::from_secs(60 * 60);

/// What an issuer says of itself (OpenID Connect Discovery 1.0, 3; RFC 8414).
pub(crate) struct Document {
    members: Map<String, Value>,
    is_tls: bool,
}

impl Document {
    /// Fetches it.
    pub(crate) async fn fetch(client: &Client, issuer: &str, at: &Url) -> Result<Self, Fault> {
        let mut call = Call::new(Method::GET, at, DOCUMENT_BYTES_MAX);
        let kind = HeaderValue::from_static("application/json");
        call.headers.insert(ACCEPT, kind);
        let reply = client.send(&call).await?;
        if reply.status != StatusCode::OK {
            return Err(reply.refusal());
        }
        let members = json::object(&reply.body)?;
        let named = json::text(&members, "issuer", "its issuer is no text")?;
        if named != Some(issuer) {
            return Err(Fault::Garbage("it names another issuer, or none"));
        }
        let is_tls = at.is_tls();
        Ok(Self { members, is_tls })
    }

    /// Where its keys are.
    pub(crate) fn jwks_uri(&self) -> Result<Url, Fault> {
        let faults = Faults {
            absent: "it names no jwks_uri",
            mistyped: "its jwks_uri is no text",
            unusable: "its jwks_uri is no URL to be used",
            clear: "its jwks_uri is not https",
        };
        self.url("jwks_uri", &faults)?
            .ok_or(Fault::Garbage(faults.absent))
    }

    fn url(&self, name: &str, faults: &Faults) -> Result<Option<Url>, Fault> {
        let Some(text) = json::text(&self.members, name, faults.mistyped)? else {
            return Ok(None);
        };
        let url = Url::parse(text).map_err(|_| Fault::Garbage(faults.unusable))?;
        if self.is_tls && !url.is_tls() {
            return Err(Fault::Garbage(faults.clear));
        }
        Ok(Some(url))
    }

    /// What of it a login needs.
    fn provider(&self) -> Result<Provider, Fault> {
        const AUTHORIZATION: Faults = Faults {
            absent: "it names no authorization_endpoint",
            mistyped: "its authorization_endpoint is no text",
            unusable: "its authorization_endpoint is no URL to be used",
            clear: "its authorization_endpoint is not https",
        };
        const TOKEN: Faults = Faults {
            absent: "it names no token_endpoint",
            mistyped: "its token_endpoint is no text",
            unusable: "its token_endpoint is no URL to be used",
            clear: "its token_endpoint is not https",
        };
        const END_SESSION: Faults = Faults {
            absent: "",
            mistyped: "its end_session_endpoint is no text",
            unusable: "its end_session_endpoint is no URL to be used",
            clear: "its end_session_endpoint is not https",
        };
        let authorization = self.url("authorization_endpoint", &AUTHORIZATION)?;
        let authorization = authorization.ok_or(Fault::Garbage(AUTHORIZATION.absent))?;
        let token = self.url("token_endpoint", &TOKEN)?;
        let end_session = self.url("end_session_endpoint", &END_SESSION)?;
        let names_itself = match self
            .members
            .get("authorization_response_iss_parameter_supported")
        {
            None => false,
            Some(Value::Bool(does)) => *does,
            Some(_) => {
                let says =
                    "its authorization_response_iss_parameter_supported is not true or false";
                return Err(Fault::Garbage(says));
            }
        };
        Ok(Provider {
            authorization_endpoint: authorization.to_text(),
            token_endpoint: token.ok_or(Fault::Garbage(TOKEN.absent))?,
            end_session_endpoint: end_session.map(|url| url.to_text()),
            names_itself,
        })
    }
}

/// What is wrong with a URL of a document, in words.
struct Faults {
    absent: &'static str,
    mistyped: &'static str,
    unusable: &'static str,
    clear: &'static str,
}

/// A provider as its document says it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Provider {
    /// Where browsers are sent to log in; it may have a query.
    pub authorization_endpoint: String,
    /// Where codes are given for tokens.
    token_endpoint: Url,
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
    document: Url,
    auth: ClientAuth,
    shared: Arc<Shared<Arc<Provider>>>,
}

impl OpenId {
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
        let asker = Asker {
            client,
            issuer: issuer.to_owned(),
            document: KeySource::openid_document(issuer)?,
            auth,
            shared: Shared::new(1),
        };
        Ok(Self {
            handle: handle.clone(),
            asker: Arc::new(asker),
        })
    }

    /// The provider, as it says itself: its document is fetched when it is first needed, and once an hour.
    pub fn provider(&self, within: Duration) -> Answered<Arc<Provider>> {
        let asker = Arc::clone(&self.asker);
        self.handle
            .ask(within, async move { asker.provider().await })
    }

    /// The ID token that the provider gives for a code. A code is good once, whatever comes of it.
    pub fn id_token(&self, code: Code, within: Duration) -> Answered<Secret> {
        let asker = Arc::clone(&self.asker);
        self.handle
            .ask(within, async move { asker.id_token(code).await })
    }
}

impl Asker {
    async fn provider(self: &Arc<Self>) -> Result<Arc<Provider>, Fault> {
        // There is one document.
        const KEY: [u8; 32] = [0; 32];
        let asker = Arc::clone(self);
        let fetch = || async move {
            let Self {
                client,
                issuer,
                document,
                ..
            } = &*asker;
            let provider = Document::fetch(client, issuer, document)
                .await?
                .provider()?;
            Ok(Found {
                weight: provider.authorization_endpoint.len(),
                value: Arc::new(provider),
                is_yes: true,
                good_for: DOCUMENT_KEPT,
            })
        };
        self.shared.get(KEY, fetch).await
    }

    async fn id_token(self: Arc<Self>, code: Code) -> Result<Secret, Fault> {
        let provider = self.provider().await?;
        let grant = Grant::AuthorizationCode {
            code: SecretSource::fixed(code.code),
            verifier: SecretSource::fixed(code.verifier),
            redirect_url: code.redirect_url,
        };
        let url = provider.token_endpoint.clone();
        let request = OAuthRequest::new(url, self.auth.clone(), grant);
        request.id_token(&self.client).await
    }
}

impl std::fmt::Debug for Asker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("OpenId").field(&self.issuer).finish()
    }
}

#[cfg(test)]
mod tests;
