//! What a backend adds to every request: headers' values, members of the query; and the words of `credential`.

use serde_json::{Value, json};

use crate::decode::{HIDDEN, Problem, Takes, Written};

/// Most bytes of a value that is added.
const VALUE_BYTES_MAX: usize = 1024;

/// The value of a header.
#[derive(Clone)]
pub(crate) struct HeaderValue(pub(crate) String);

impl Written for HeaderValue {
    const TAKES: Takes = Takes::Text;

    fn read(text: &str) -> Result<Self, Problem> {
        let is_plain = text.bytes().all(|b| (b' '..=b'~').contains(&b));
        let is_trimmed = text.trim() == text && !text.is_empty();
        if !is_plain || !is_trimmed || text.len() > VALUE_BYTES_MAX {
            let hint = "write 1 to 1024 of visible ASCII, without spaces at the ends";
            return Err(Problem::new("is not the value of a header", hint));
        }
        Ok(Self(text.to_owned()))
    }

    fn schema() -> Value {
        json!({ "type": "string", "minLength": 1, "maxLength": VALUE_BYTES_MAX })
    }
}

/// The name of a member of a query.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct QueryName(pub(crate) String);

impl Written for QueryName {
    const TAKES: Takes = Takes::Text;

    fn read(text: &str) -> Result<Self, Problem> {
        let is_plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
        if !(1..=128).contains(&text.len()) || !text.bytes().all(is_plain) {
            let hint = "use 1 to 128 of A-Z a-z 0-9 . _ -";
            return Err(Problem::new("is not a plain name of a query", hint));
        }
        if !policy::credential::may_be_queried(text) {
            let hint = "queries are logged on the way: write it as `credential`";
            return Err(Problem::new("may carry a credential", hint));
        }
        Ok(Self(text.to_owned()))
    }

    fn schema() -> Value {
        json!({ "type": "string", "pattern": "^[A-Za-z0-9._-]{1,128}$" })
    }
}

/// The value of a member of a query, before it is encoded.
#[derive(Clone)]
pub(crate) struct QueryValue(pub(crate) String);

impl QueryValue {
    /// As a query holds it.
    pub(crate) fn encoded(&self) -> String {
        encoded(&self.0)
    }
}

/// A text as the value of a query's member.
pub(crate) fn encoded(text: &str) -> String {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_' | b'~');
    let coded = text.bytes().map(|b| match b {
        b if is_plain(b) => char::from(b).to_string(),
        b => format!("%{b:02X}"),
    });
    coded.collect()
}

impl Written for QueryValue {
    const TAKES: Takes = Takes::Text;

    fn read(text: &str) -> Result<Self, Problem> {
        if text.len() > VALUE_BYTES_MAX || text.chars().any(char::is_control) {
            let hint = "write at most 1024 bytes without control characters";
            return Err(Problem::new("is not the value of a query's member", hint));
        }
        Ok(Self(text.to_owned()))
    }

    fn schema() -> Value {
        json!({ "type": "string", "maxLength": VALUE_BYTES_MAX })
    }
}

/// The id of a key at AWS. Its secret is pasted here, too.
#[derive(Clone)]
pub(crate) struct AccessKeyId(pub(crate) String);

impl Written for AccessKeyId {
    const TAKES: Takes = Takes::Text;
    const HOLDS_SECRET: bool = true;

    fn read(text: &str) -> Result<Self, Problem> {
        let is_plain = |b: u8| b.is_ascii_uppercase() || b.is_ascii_digit();
        if (16..=128).contains(&text.len()) && text.bytes().all(is_plain) {
            return Ok(Self(text.to_owned()));
        }
        let hint =
            "it has 16 to 128 capitals and digits; the secret goes under `secret_access_key`";
        Err(Problem::new("is not the id of a key", hint))
    }

    fn shown(_: &str) -> String {
        HIDDEN.into()
    }

    fn schema() -> Value {
        json!({ "type": "string", "pattern": "^[A-Z0-9]{16,128}$" })
    }
}

/// How a caller's token is sent to be exchanged.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExchangeGrant {
    TokenExchange,
    JwtBearer,
}

impl Written for ExchangeGrant {
    const TAKES: Takes = Takes::Text;

    fn read(text: &str) -> Result<Self, Problem> {
        match text {
            "token_exchange" => Ok(Self::TokenExchange),
            "jwt_bearer" => Ok(Self::JwtBearer),
            _ => Err(Problem::new(
                "is not a grant for which a caller's token is given",
                "write token_exchange or jwt_bearer",
            )),
        }
    }

    fn schema() -> Value {
        json!({ "enum": ["token_exchange", "jwt_bearer"] })
    }
}
