//! What rules are written in.

use serde_json::{Value, json};

use crate::decode::{Problem, Takes, Written};

/// Most bytes of an expression.
const EXPRESSION_BYTES_MAX: usize = 8 << 10;

/// An expression of CEL; it is checked when it is compiled.
#[derive(Clone)]
pub(crate) struct Expression(pub(crate) String);

impl Written for Expression {
    const TAKES: Takes = Takes::Text;

    fn read(text: &str) -> Result<Self, Problem> {
        if text.trim().is_empty() || text.len() > EXPRESSION_BYTES_MAX {
            let hint = "write 1 to 8192 bytes, such as 'workload == \"chat\"'";
            return Err(Problem::new("is no expression", hint));
        }
        Ok(Self(text.to_owned()))
    }

    fn schema() -> Value {
        json!({ "type": "string", "minLength": 1, "maxLength": EXPRESSION_BYTES_MAX })
    }
}

/// What becomes of a call where nobody answers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnFailure {
    Deny,
    Allow,
}

impl Written for OnFailure {
    const TAKES: Takes = Takes::Text;

    fn read(text: &str) -> Result<Self, Problem> {
        match text {
            "deny" => Ok(Self::Deny),
            "allow" => Ok(Self::Allow),
            _ => Err(Problem::new("is not a way to fail", "write deny or allow")),
        }
    }

    fn schema() -> Value {
        json!({ "enum": ["deny", "allow"] })
    }
}

/// A header that an authorisation service sees, in lower case.
#[derive(Clone)]
pub(crate) struct SecretHeader(pub(crate) String);

impl Written for SecretHeader {
    const TAKES: Takes = Takes::Text;

    fn read(text: &str) -> Result<Self, Problem> {
        let name = text.to_ascii_lowercase();
        let is_token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
        if name.is_empty() || name.len() > 128 || !name.bytes().all(is_token) {
            let hint = "write a name such as authorization";
            return Err(Problem::new("is not a header name", hint));
        }
        Ok(Self(name))
    }

    fn schema() -> Value {
        json!({ "type": "string", "pattern": "^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$" })
    }
}
