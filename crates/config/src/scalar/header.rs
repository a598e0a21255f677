//! Names of headers, and the word before a credential.

use serde_json::{Value, json};

use crate::decode::{HIDDEN, Problem, Takes, Written};
use crate::mask::looks_like_key;

/// The header that names the workload, in lower case.
#[derive(Clone)]
pub(crate) struct IdentityHeader(pub(crate) String);

impl Written for IdentityHeader {
    const TAKES: Takes = Takes::Text;

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

    fn schema() -> Value {
        json!({ "type": "string", "pattern": HEADER_PATTERN })
    }
}

/// A header that a route lets pass, in lower case.
#[derive(Clone)]
pub(crate) struct PassedHeader(pub(crate) String);

impl Written for PassedHeader {
    const TAKES: Takes = Takes::Text;

    fn read(text: &str) -> Result<Self, Problem> {
        let name = header_name(text)?;
        if policy::credential::may_be_listed(&name) {
            return Ok(Self(name));
        }
        let is =
            "may carry a credential or an identity, steer a server, or end with the connection";
        Err(Problem::new(is, "such headers never pass: name another"))
    }

    fn schema() -> Value {
        json!({ "type": "string", "pattern": "^[0-9A-Za-z-]{1,128}$" })
    }
}

/// The header that carries a credential upstream, in lower case.
#[derive(Clone)]
pub(crate) struct CredentialHeader(pub(crate) String);

impl Written for CredentialHeader {
    const TAKES: Takes = Takes::Text;

    fn read(text: &str) -> Result<Self, Problem> {
        // Whole header lines are pasted here, secret and all.
        header_name(text).map(Self).map_err(|problem| Problem {
            quotable: text.bytes().all(is_token) && text.len() <= 32,
            ..problem
        })
    }

    fn schema() -> Value {
        json!({ "type": "string", "pattern": HEADER_PATTERN })
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
    let name = text.to_ascii_lowercase();
    if name.is_empty() || name.len() > 128 || !name.bytes().all(is_token) {
        return Err(Problem::new(
            "is not a header name",
            "write a name such as x-workload-app",
        ));
    }
    if RESERVED.contains(&name.as_str()) {
        return Err(Problem::new(
            "is a header that HTTP or the gate needs",
            "name another",
        ));
    }
    Ok(name)
}

fn is_token(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b)
}

/// The word before a credential: `Bearer`, or nothing.
#[derive(Clone)]
pub(crate) struct Scheme(pub(crate) String);

impl Written for Scheme {
    const TAKES: Takes = Takes::Text;

    fn read(text: &str) -> Result<Self, Problem> {
        if text.len() <= 64 && text.bytes().all(is_token) {
            return Ok(Self(text.to_owned()));
        }
        let hint = "write one word such as Bearer, or \"\" for none";
        Err(Problem::new("is not an authentication scheme", hint))
    }

    /// The credential itself is pasted here, too.
    fn shown(_: &str) -> String {
        HIDDEN.into()
    }

    fn schema() -> Value {
        json!({ "type": "string", "maxLength": 64 })
    }
}
