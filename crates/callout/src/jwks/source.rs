//! Where a key set is: at a URL, or where its issuer says.
//!
//! Not here: the document (`issuer_document`).

use crate::client::Client;
use crate::issuer_document::Document;
use crate::url::{Url, UrlFault};

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
        Ok(Self::Issuer {
            issuer: issuer.to_owned(),
            document: Self::openid_document(issuer)?,
        })
    }

    /// Where the document of [`KeySource::openid`] is.
    pub(crate) fn openid_document(issuer: &str) -> Result<Url, IssuerFault> {
        Self::document(issuer, |path| {
            format!("{path}/.well-known/openid-configuration")
        })
    }

    /// By RFC 8414: `/.well-known/oauth-authorization-server` before the issuer's path.
    ///
    /// # Errors
    /// [`IssuerFault`] when the issuer is no URL of `http` or `https` without a query.
    pub fn oauth(issuer: &str) -> Result<Self, IssuerFault> {
        let document = Self::document(issuer, |path| {
            format!("/.well-known/oauth-authorization-server{path}")
        })?;
        Ok(Self::Issuer {
            issuer: issuer.to_owned(),
            document,
        })
    }

    fn document(issuer: &str, at: impl Fn(&str) -> String) -> Result<Url, IssuerFault> {
        let url = Url::parse(issuer)?;
        if url.target().contains('?') {
            return Err(IssuerFault::Query);
        }
        let path = url.target().strip_suffix('/').unwrap_or(url.target());
        Ok(url.at(&at(path))?)
    }

    /// The URL of the set; asked for each time, since issuers move their sets.
    pub(super) async fn key_set(&self, client: &Client) -> Result<Url, String> {
        let (issuer, document) = match self {
            Self::Url(url) => return Ok(url.clone()),
            Self::Issuer { issuer, document } => (issuer, document),
        };
        let found = Document::fetch(client, issuer, document).await;
        let keys = found.and_then(|document| document.jwks_uri());
        keys.map_err(|fault| format!("the issuer's document: {fault}"))
    }
}
