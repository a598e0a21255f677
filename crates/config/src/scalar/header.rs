//! Names of headers, and the word before a credential.

use serde_json::{Value, json};

use super::text::is_of;
use crate::decode::{Problem, Written};
use crate::mask::looks_like_key;

/// The header that names the workload, in lower case.
#[derive(Clone)]
pub(crate) struct IdentityHeader(pub(crate) String);

impl Written for IdentityHeader {
    const PATTERN: &'static str = HEADER_PATTERN;

    fn read(text: &str) -> Result<Self, Problem> {
        if looks_like_key(text) {
            // Every client would be told it.
            let is = "looks like a key, not like the name of a header";
            return Err(Problem::new(is, "name a header, such as x-workload-app"));
        }
        let name = header_name(text)?;
        let key = matches!(name.as_str(), "authorization" | "x-api-key" | "api-key")
            || matches!(name.as_str(), "x-goog-api-key" | "cookie" | "set-cookie");
        if key {
            let hint = "name another, such as x-workload-app";
            return Err(Problem::new(
                "carries credentials, which are not identity",
                hint,
            ));
        }
        Ok(Self(name))
    }
}

/// Whether a header may name callers or users.
///
/// # Errors
/// Why it may not.
pub fn may_name_callers(name: &str) -> Result<(), String> {
    match IdentityHeader::read(name) {
        Ok(_) => Ok(()),
        Err(problem) => Err(problem.is),
    }
}

/// A header that a route lets pass, in lower case.
#[derive(Clone)]
pub(crate) struct PassedHeader(pub(crate) String);

impl Written for PassedHeader {
    const PATTERN: &'static str = "^[0-9A-Za-z-]{1,128}$";

    fn read(text: &str) -> Result<Self, Problem> {
        let name = header_name(text)?;
        if policy::credential::may_be_listed(&name) {
            return Ok(Self(name));
        }
        let is =
            "may carry a credential or an identity, steer a server, or end with the connection";
        Err(Problem::new(is, "such headers never pass: name another"))
    }
}

/// The header that carries a credential upstream, in lower case.
#[derive(Clone)]
pub(crate) struct CredentialHeader(pub(crate) String);

impl Written for CredentialHeader {
    const PATTERN: &'static str = HEADER_PATTERN;

    fn read(text: &str) -> Result<Self, Problem> {
        // Whole header lines are pasted here, secret and all.
        header_name(text).map(Self).map_err(|problem| Problem {
            quotable: text.bytes().all(is_token) && text.len() <= 32,
            ..problem
        })
    }
}

/// A header that an authorisation service sees, in lower case.
#[derive(Clone)]
pub(crate) struct SecretHeader(pub(crate) String);

impl AsRef<str> for SecretHeader {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl Written for SecretHeader {
    const PATTERN: &'static str = HEADER_PATTERN;

    fn read(text: &str) -> Result<Self, Problem> {
        lower_case(text, "write a name such as authorization").map(Self)
    }
}

const HEADER_PATTERN: &str = "^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$";

/// A field name that the gate does not itself depend on.
fn header_name(text: &str) -> Result<String, Problem> {
    const RESERVED: &[&str] = &[
        "accept",
        "accept-encoding",
        "connection",
        "content-encoding",
        "content-length",
        "content-type",
        "date",
        "expect",
        "host",
        "keep-alive",
        "proxy-connection",
        "server",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "user-agent",
        "via",
        "x-request-id",
    ];
    let name = lower_case(text, "write a name such as x-workload-app")?;
    if RESERVED.contains(&name.as_str()) {
        return Err(Problem::new(
            "is a header that HTTP or the gate needs",
            "name another",
        ));
    }
    Ok(name)
}

pub(super) fn lower_case(text: &str, hint: &str) -> Result<String, Problem> {
    if is_of(text, 128, is_token) {
        return Ok(text.to_ascii_lowercase());
    }
    Err(Problem::new("is not a header name", hint))
}

fn is_token(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b)
}

/// The word before a credential: `Bearer`, or nothing.
#[derive(Clone)]
pub(crate) struct Scheme(pub(crate) String);

impl Written for Scheme {
    /// The credential itself is pasted here, too.
    const IS_SHOWN: bool = false;

    fn read(text: &str) -> Result<Self, Problem> {
        if text.len() <= 64 && text.bytes().all(is_token) {
            return Ok(Self(text.to_owned()));
        }
        let hint = "write one word such as Bearer, or \"\" for none";
        Err(Problem::new("is not an authentication scheme", hint))
    }

    fn schema() -> Value {
        json!({ "type": "string", "maxLength": 64 })
    }
}
