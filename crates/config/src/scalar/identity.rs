//! What names issuers, claims and certificates, and the words of `identity`.

use serde_json::{Value, json};

use crate::decode::{Problem, Takes, Written};

/// Most bytes of a text that is compared as it stands.
const TEXT_BYTES_MAX: usize = 1024;

/// A text that is compared as it stands: an issuer, an audience, the value of a claim, a name of a certificate.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Text(pub(crate) String);

impl Written for Text {
    const TAKES: Takes = Takes::Text;

    fn read(text: &str) -> Result<Self, Problem> {
        if text.is_empty() || text.len() > TEXT_BYTES_MAX || text.chars().any(char::is_control) {
            let hint = "write 1 to 1024 bytes without control characters";
            return Err(Problem::new("cannot be compared with anything", hint));
        }
        Ok(Self(text.to_owned()))
    }

    fn schema() -> Value {
        json!({ "type": "string", "minLength": 1, "maxLength": TEXT_BYTES_MAX })
    }
}

/// The name of a claim: a member of the token, or with dots a member of a member.
#[derive(Clone)]
pub(crate) struct Claim(pub(crate) String);

impl Written for Claim {
    const TAKES: Takes = Takes::Text;

    fn read(text: &str) -> Result<Self, Problem> {
        let is_name = |b: u8| b.is_ascii_graphic() && !matches!(b, b'"' | b'\\');
        if text.is_empty() || text.len() > 256 || !text.bytes().all(is_name) {
            let hint = "write a name such as azp, or a path such as realm_access.roles";
            return Err(Problem::new("is not the name of a claim", hint));
        }
        Ok(Self(text.to_owned()))
    }

    fn schema() -> Value {
        json!({ "type": "string", "minLength": 1, "maxLength": 256 })
    }
}

/// Whose word about the workload counts.
#[derive(Clone, Copy)]
pub(crate) struct Trust;

impl Written for Trust {
    const TAKES: Takes = Takes::Text;

    fn read(text: &str) -> Result<Self, Problem> {
        match text {
            "anyone" => Ok(Self),
            _ => Err(Problem::new(
                "is not a kind of trust",
                "write anyone, or leave it out and say `from`",
            )),
        }
    }

    fn schema() -> Value {
        json!({ "enum": ["anyone"] })
    }
}

/// How a client's name and secret are sent to an endpoint.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClientAuth {
    Basic,
    Post,
}

impl Written for ClientAuth {
    const TAKES: Takes = Takes::Text;

    fn read(text: &str) -> Result<Self, Problem> {
        match text {
            "basic" => Ok(Self::Basic),
            "post" => Ok(Self::Post),
            _ => Err(Problem::new(
                "is not a way to send a client's secret",
                "write basic or post",
            )),
        }
    }

    fn schema() -> Value {
        json!({ "enum": ["basic", "post"] })
    }
}

/// Whether a call is believed who is behind it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct CallUser(pub(crate) bool);

impl Written for CallUser {
    const TAKES: Takes = Takes::Text;

    fn read(text: &str) -> Result<Self, Problem> {
        match text {
            "trusted" => Ok(Self(true)),
            "ignored" => Ok(Self(false)),
            _ => Err(Problem::new(
                "is no way to take what a call says of its user",
                "write trusted or ignored",
            )),
        }
    }

    fn schema() -> Value {
        json!({ "enum": ["trusted", "ignored"] })
    }
}

/// Whether users are kept in records.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct RecordUser(pub(crate) bool);

impl Written for RecordUser {
    const TAKES: Takes = Takes::Text;

    fn read(text: &str) -> Result<Self, Problem> {
        match text {
            "full" => Ok(Self(true)),
            "off" => Ok(Self(false)),
            _ => Err(Problem::new(
                "is not a way to record users",
                "write full or off",
            )),
        }
    }

    fn schema() -> Value {
        json!({ "enum": ["full", "off"] })
    }
}

/// Whether a client must bring a certificate.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClientCertificates {
    Required,
    Optional,
}

impl Written for ClientCertificates {
    const TAKES: Takes = Takes::Text;

    fn read(text: &str) -> Result<Self, Problem> {
        match text {
            "required" => Ok(Self::Required),
            "optional" => Ok(Self::Optional),
            _ => Err(Problem::new(
                "is not a use of client certificates",
                "write required or optional",
            )),
        }
    }

    fn schema() -> Value {
        json!({ "enum": ["required", "optional"] })
    }
}

/// Names of the signature algorithms that are known.
const ALGORITHMS: [&str; 10] = [
    "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA",
];

/// A signature algorithm, by its name in RFC 7518 and 8037.
#[derive(Clone, Copy)]
pub(crate) struct Algorithm(pub(crate) &'static str);

impl Written for Algorithm {
    const TAKES: Takes = Takes::Text;

    fn read(text: &str) -> Result<Self, Problem> {
        let known = ALGORITHMS.into_iter().find(|name| *name == text);
        known.map(Self).ok_or_else(|| {
            let hint = format!("write {}", ALGORITHMS.join(", "));
            Problem::new("is not a signature algorithm that is known here", hint)
        })
    }

    fn schema() -> Value {
        json!({ "enum": ALGORITHMS })
    }
}
