//! A token of another issuer, asked for right before it is shown to whoever gives another one for it.
//!
//! Invariant: it is shown once, and is kept no longer than that.
//! Not here: who is shown it (`grant`, `aws`).

use std::sync::{Arc, Mutex, PoisonError};

use policy::secret::Secret;

use super::grant::{Grant, OAuthRequest};
use crate::client::Client;
use crate::client_auth::ClientAuth;
use crate::fault::Fault;
use crate::issuer_document::{Document, UrlFaults};
use crate::jwks::{IssuerFault, KeySource};
use crate::secret_source::SecretSource;
use crate::url::Url;

const TOKEN: UrlFaults = UrlFaults {
    absent: "the issuer's document names no token_endpoint",
    mistyped: "the issuer's token_endpoint is no text",
    unusable: "the issuer's token_endpoint is not a usable URL",
    clear: "the issuer's token_endpoint is not https",
};

/// A token of another issuer, and how it is asked for.
#[derive(Debug, Clone)]
pub struct Federation {
    /// Whose document says where; the request says it where there is none.
    issuer: Option<String>,
    request: OAuthRequest,
    held: Arc<Mutex<Option<Secret>>>,
}

impl Federation {
    /// One that is given where the request says.
    #[must_use]
    pub fn new(request: OAuthRequest) -> Self {
        Self {
            issuer: None,
            request,
            held: Arc::default(),
        }
    }

    /// One that is given where the issuer's discovery document says, to this client; what else is asked of it can be changed.
    ///
    /// # Errors
    /// [`IssuerFault`] when the issuer is no URL of `http` or `https` without a query.
    pub fn of_issuer(
        issuer: &str,
        auth: ClientAuth,
        change: impl FnOnce(&mut OAuthRequest),
    ) -> Result<Self, IssuerFault> {
        let document = KeySource::openid_document(issuer)?;
        let mut request = OAuthRequest::new(document, auth, Grant::ClientCredentials);
        change(&mut request);
        Ok(Self {
            issuer: Some(issuer.to_owned()),
            ..Self::new(request)
        })
    }

    /// The token for whoever it is shown to, once.
    #[must_use]
    pub fn token(&self) -> SecretSource {
        let held = Arc::clone(&self.held);
        SecretSource::with(move || held.lock().unwrap_or_else(PoisonError::into_inner).take())
    }

    /// Asks for it.
    pub(super) async fn fetch(&self, client: &Client) -> Result<(), Fault> {
        let token = match &self.issuer {
            None => self.request.fetch(client).await?,
            Some(issuer) => {
                let request = OAuthRequest {
                    url: endpoint(issuer, &self.request.url, client).await?,
                    ..self.request.clone()
                };
                request.fetch(client).await?
            }
        };
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        *held = Some(token.value);
        Ok(())
    }
}

/// Where an issuer gives tokens, as its document says.
async fn endpoint(issuer: &str, document: &Url, client: &Client) -> Result<Url, Fault> {
    let document = Document::fetch(client, issuer, document).await?;
    let url = document.url("token_endpoint", &TOKEN)?;
    url.ok_or(Fault::Garbage(TOKEN.absent))
}
