//! An OpenID provider where people log in: where browsers are sent, and ID tokens for codes.
//!
//! Invariant: what anybody can have asked takes a bounded room.
//! Not here: its document (`issuer_document`), its keys (`jwks`), what an ID token says (the host).

mod tries;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use policy::secret::Secret;
use tokio::sync::Semaphore;

use crate::client::Client;
use crate::client_auth::ClientAuth;
use crate::fault::Fault;
use crate::issuer_document::{Document, UrlFaults};
use crate::jwks::{IssuerFault, KeySource};
use crate::secret_source::SecretSource;
use crate::service::{Answered, Handle};
use crate::shared::{Found, Shared};
use crate::token::{Grant, OAuthRequest};
use crate::url::Url;
use tries::Tries;

/// Codes that are given for ID tokens at once: anybody can bring one, and must not take the room of other questions.
const CODES_MAX: usize = 64;
/// How long a document is used before it is fetched again.
const DOCUMENT_KEPT: Duration = Duration::from_secs(60 * 60);

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
    document: Url,
    auth: ClientAuth,
    shared: Arc<Shared<Arc<Provider>>>,
    codes: Arc<Semaphore>,
    tries: Tries,
    /// Of those who wait for the document.
    waiting: Arc<Semaphore>,
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
            codes: Arc::new(Semaphore::new(CODES_MAX)),
            tries: Tries::new(),
            waiting: Arc::new(Semaphore::new(CODES_MAX)),
        };
        Ok(Self {
            handle: handle.clone(),
            asker: Arc::new(asker),
        })
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
        let asker = Arc::clone(&self.asker);
        let place = Arc::clone(&asker.codes).try_acquire_owned();
        self.handle.ask(within, async move {
            let _place = place.map_err(|_| Fault::Full)?;
            let from = code.from;
            let _running = asker.tries.begin(from, &code.verifier)?;
            let given = Arc::clone(&asker).id_token(code).await;
            given.inspect_err(|_| asker.tries.note_failure(from))
        })
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
            let provider = provider(&Document::fetch(client, issuer, document).await?)?;
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
        end_session_endpoint: end_session.map(|url| url.to_text()),
        names_itself,
    })
}

#[cfg(test)]
mod tests;
