//! What an issuer says of itself (OpenID Connect Discovery 1.0, 3; RFC 8414, 2).
//!
//! Invariant: a document that names another issuer is of no use, in whatever small way the name differs; what is named
//! by an issuer that is spoken to over TLS is spoken to over TLS.
//! Not here: where the document is (`jwks`), what of it is used (`jwks`, `openid`).

use http::header::{ACCEPT, HeaderValue};
use http::{Method, StatusCode};
use serde_json::{Map, Value};

use crate::client::{Call, Client};
use crate::fault::Fault;
use crate::json;
use crate::url::Url;

/// The longest document.
const DOCUMENT_BYTES_MAX: usize = 256 << 10;

/// A document.
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
        let faults = UrlFaults {
            absent: "it names no jwks_uri",
            mistyped: "its jwks_uri is no text",
            unusable: "its jwks_uri is not a usable URL",
            clear: "its jwks_uri is not https",
        };
        self.url("jwks_uri", &faults)?
            .ok_or(Fault::Garbage(faults.absent))
    }

    /// A member that is a URL; none where it is absent.
    pub(crate) fn url(&self, name: &str, faults: &UrlFaults) -> Result<Option<Url>, Fault> {
        let Some(text) = json::text(&self.members, name, faults.mistyped)? else {
            return Ok(None);
        };
        let url = Url::parse(text).map_err(|_| Fault::Garbage(faults.unusable))?;
        if self.is_tls && !url.is_tls() {
            return Err(Fault::Garbage(faults.clear));
        }
        Ok(Some(url))
    }

    /// A member that is true or false; false where it is absent.
    pub(crate) fn flag(&self, name: &str, otherwise: &'static str) -> Result<bool, Fault> {
        match json::member(&self.members, name) {
            None => Ok(false),
            Some(Value::Bool(is)) => Ok(*is),
            Some(_) => Err(Fault::Garbage(otherwise)),
        }
    }
}

/// What is wrong with a URL of a document, in words.
pub(crate) struct UrlFaults {
    pub(crate) absent: &'static str,
    pub(crate) mistyped: &'static str,
    pub(crate) unusable: &'static str,
    pub(crate) clear: &'static str,
}

#[cfg(test)]
impl Document {
    /// One with these members.
    pub(crate) fn with(members: Map<String, Value>, is_tls: bool) -> Self {
        Self { members, is_tls }
    }
}
