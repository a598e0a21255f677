//! What the metadata service of a cloud knows: a token as Google's and Azure's give it.
//!
//! Invariant: it stands at a link-local address, so that its client needs `allow_link_local`; nothing else is loosened.

use std::time::Duration;

use http::header::{HeaderName, HeaderValue};
use http::{Method, StatusCode};
use policy::secret::Secret;
use tokio::time::Instant;

use super::AccessToken;
use super::grant::{ANSWER_BYTES_MAX, NO_LIFE, made};
use crate::client::{Call, Client, secret_value};
use crate::fault::Fault;
use crate::json;
use crate::secret_source::SecretSource;
use crate::url::Url;

/// A question to a metadata service.
#[derive(Debug, Clone)]
pub struct MetadataRequest {
    /// How it is asked.
    pub method: MetadataMethod,
    /// Where.
    pub url: Url,
    /// Headers that it asks for (`metadata-flavor: Google`, `metadata: true`).
    pub headers: Vec<(String, SecretSource)>,
}

/// How a metadata service is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetadataMethod {
    /// To read.
    Get,
    /// For the token of a session.
    Put,
}

impl MetadataRequest {
    /// The answer, as it is.
    pub(super) async fn body(&self, client: &Client) -> Result<Secret, Fault> {
        let method = match self.method {
            MetadataMethod::Get => Method::GET,
            MetadataMethod::Put => Method::PUT,
        };
        let mut call = Call::new(method, &self.url, ANSWER_BYTES_MAX);
        for (name, value) in &self.headers {
            let name = HeaderName::from_bytes(name.as_bytes());
            let name = name.map_err(|_| Fault::Unaskable("a header of it has no name"))?;
            let value: HeaderValue = secret_value(value.give()?.expose())?;
            call.headers.append(name, value);
        }
        let reply = client.send(&call).await?;
        if reply.status != StatusCode::OK {
            return Err(reply.refusal());
        }
        Ok(Secret::new(reply.body.to_vec()))
    }

    /// A token: `access_token`, and `expires_in`, which Azure writes as a text.
    pub(super) async fn token(&self, client: &Client) -> Result<AccessToken, Fault> {
        let asked = Instant::now();
        let body = self.body(client).await?;
        let members = json::object(body.expose())?;
        let seconds = json::seconds(&members, "expires_in", NO_LIFE)?;
        let seconds = seconds.ok_or(Fault::Garbage(NO_LIFE))?;
        let token = json::text(&members, "access_token", "its access_token is no text")?;
        made(token, Duration::from_secs(seconds))?.asked_for(asked)
    }
}
