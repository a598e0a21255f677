//! Who the gate is to an OAuth endpoint (RFC 6749, 2.3; RFC 7523, 2.2).
//!
//! Invariant: a secret goes into one place of the request, and into no fault.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::header::{AUTHORIZATION, HeaderMap};
use zeroize::Zeroizing;

use crate::client::secret_value;
use crate::fault::Fault;
use crate::form::{Form, encode};
use crate::secret_source::SecretSource;

/// How a client shows who it is.
#[derive(Debug, Clone)]
pub enum ClientAuth {
    /// `client_secret_basic`: both form-encoded, then as HTTP's basic credential.
    Basic {
        /// The client's id.
        id: String,
        /// Its secret.
        secret: SecretSource,
    },
    /// `client_secret_post`: both in the form.
    Post {
        /// The client's id.
        id: String,
        /// Its secret.
        secret: SecretSource,
    },
    /// `private_key_jwt`: an assertion that the host signs for each request.
    Assertion {
        /// The client's id, where it is sent beside the assertion.
        id: Option<String>,
        /// The assertion.
        assertion: SecretSource,
    },
    /// Nothing in the request: the certificate of the connection says it, or nothing does.
    Nothing {
        /// The client's id, where the form names it.
        id: Option<String>,
    },
}

impl ClientAuth {
    pub(crate) fn apply(&self, form: &mut Form, headers: &mut HeaderMap) -> Result<(), Fault> {
        match self {
            Self::Basic { id, secret } => {
                let secret = secret.give()?;
                let mut pair = Zeroizing::new(Vec::with_capacity(1024));
                encode(id.as_bytes(), &mut pair);
                pair.push(b':');
                encode(secret.expose(), &mut pair);
                let value = Zeroizing::new(format!("Basic {}", STANDARD.encode(&*pair)));
                headers.insert(AUTHORIZATION, secret_value(value.as_bytes())?);
            }
            Self::Post { id, secret } => {
                form.add("client_id", id.as_bytes());
                form.add("client_secret", secret.give()?.expose());
            }
            Self::Assertion { id, assertion } => {
                if let Some(id) = id {
                    form.add("client_id", id.as_bytes());
                }
                let kind = b"urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
                form.add("client_assertion_type", kind);
                form.add("client_assertion", assertion.give()?.expose());
            }
            Self::Nothing { id } => {
                if let Some(id) = id {
                    form.add("client_id", id.as_bytes());
                }
            }
        }
        Ok(())
    }
}

/// `Bearer …`, as a header has it.
pub(crate) fn bearer(token: &SecretSource) -> Result<http::HeaderValue, Fault> {
    let token = token.give()?;
    let value = Zeroizing::new([b"Bearer ", token.expose()].concat());
    secret_value(&value)
}

#[cfg(test)]
mod tests;
