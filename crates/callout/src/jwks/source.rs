//! Where a key set is: at a URL, or where its issuer says.
//!
//! Invariant: a document that names another issuer is of no use, in whatever small way the name differs; keys of an
//! issuer that is spoken to over TLS are fetched over TLS.

use http::header::{ACCEPT, HeaderValue};
use http::{Method, StatusCode};

use crate::client::{Call, Client};
use crate::fault::Fault;
use crate::json;
use crate::url::{Url, UrlFault};

/// The longest document of an issuer.
const DOCUMENT_BYTES_MAX: usize = 256 << 10;

/// Where a key set is.
#[derive(Debug, Clone)]
pub enum KeySource {
    /// At this URL.
    Url(Url),
    /// Where a document of the issuer says.
    Issuer {
        /// The issuer, as tokens name it.
        issuer: String,
        /// Its document.
        document: Url,
    },
}

/// Why an issuer has no document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum IssuerFault {
    /// It is no URL.
    #[error("the issuer: {0}")]
    Url(#[from] UrlFault),
    /// It has a query.
    #[error("the issuer has a query (?…), which no issuer may have")]
    Query,
}

impl KeySource {
    /// By OpenID Connect Discovery: `<issuer>/.well-known/openid-configuration`.
    ///
    /// # Errors
    /// [`IssuerFault`] when the issuer is no URL of `http` or `https` without a query.
    pub fn openid(issuer: &str) -> Result<Self, IssuerFault> {
        Self::issuer(issuer, |path| {
            format!("{path}/.well-known/openid-configuration")
        })
    }

    /// By RFC 8414: `/.well-known/oauth-authorization-server` before the issuer's path.
    ///
    /// # Errors
    /// [`IssuerFault`] when the issuer is no URL of `http` or `https` without a query.
    pub fn oauth(issuer: &str) -> Result<Self, IssuerFault> {
        Self::issuer(issuer, |path| {
            format!("/.well-known/oauth-authorization-server{path}")
        })
    }

    fn issuer(issuer: &str, document: impl Fn(&str) -> String) -> Result<Self, IssuerFault> {
        let url = Url::parse(issuer)?;
        if url.target().contains('?') {
            return Err(IssuerFault::Query);
        }
        let path = url.target().strip_suffix('/').unwrap_or(url.target());
        Ok(Self::Issuer {
            issuer: issuer.to_owned(),
            document: url.at(&document(path))?,
        })
    }

    /// The URL of the set; asked for each time, since issuers move their sets.
    pub(super) async fn key_set(&self, client: &Client) -> Result<Url, String> {
        let (issuer, document) = match self {
            Self::Url(url) => return Ok(url.clone()),
            Self::Issuer { issuer, document } => (issuer, document),
        };
        let found = discover(client, issuer, document).await;
        found.map_err(|fault| format!("the issuer's document: {fault}"))
    }
}

async fn discover(client: &Client, issuer: &str, document: &Url) -> Result<Url, Fault> {
    let mut call = Call::new(Method::GET, document, DOCUMENT_BYTES_MAX);
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
    let keys = json::text(&members, "jwks_uri", "its jwks_uri is no text")?;
    let keys = keys.ok_or(Fault::Garbage("it names no jwks_uri"))?;
    let keys = Url::parse(keys).map_err(|_| Fault::Garbage("its jwks_uri is no URL to be used"))?;
    if document.is_tls() && !keys.is_tls() {
        return Err(Fault::Garbage("its jwks_uri is not https"));
    }
    Ok(keys)
}
