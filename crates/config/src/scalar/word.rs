//! Listen addresses, protocols, kinds of billing and log targets.

use std::net::SocketAddr;

use serde_json::{Value, json};

use crate::decode::{Problem, Takes, Written, nearest};
use crate::host;

/// Where to listen.
#[derive(Clone, Copy)]
pub(crate) struct Address(pub(crate) SocketAddr);

impl Written for Address {
    const TAKES: Takes = Takes::Text;

    fn read(text: &str) -> Result<Self, Problem> {
        text.parse().map(Self).map_err(|_| {
            let hint = "write 127.0.0.1:1975, 0.0.0.0:1975 or \"[::]:1975\"";
            Problem::new("is not an IP address and port", hint)
        })
    }

    fn schema() -> Value {
        json!({ "type": "string" })
    }
}

/// HTTP version towards a backend.
#[derive(Clone, Copy)]
pub(crate) struct Protocol(pub(crate) policy::snapshot::Protocol);

impl Written for Protocol {
    const TAKES: Takes = Takes::Text;

    fn read(text: &str) -> Result<Self, Problem> {
        use policy::snapshot::Protocol as P;
        match text {
            "auto" => Ok(Self(P::Auto)),
            "http1" => Ok(Self(P::Http1)),
            "http2" => Ok(Self(P::Http2)),
            _ => Err(Problem::new(
                "is not a protocol",
                "write auto, http1 or http2",
            )),
        }
    }

    fn schema() -> Value {
        json!({ "enum": ["auto", "http1", "http2"] })
    }
}

/// How a collector of spans is spoken to.
#[derive(Clone, Copy)]
pub(crate) struct OtlpProtocol(pub(crate) host::OtlpProtocol);

impl Written for OtlpProtocol {
    const TAKES: Takes = Takes::Text;

    fn read(text: &str) -> Result<Self, Problem> {
        match text {
            "http" => Ok(Self(host::OtlpProtocol::Http)),
            "grpc" => Ok(Self(host::OtlpProtocol::Grpc)),
            _ => Err(Problem::new(
                "is not a protocol of OTLP",
                "write http or grpc",
            )),
        }
    }

    fn schema() -> Value {
        json!({ "enum": ["http", "grpc"] })
    }
}

/// How much care a route takes of its rows.
#[derive(Clone, Copy)]
pub(crate) struct Billing(pub(crate) policy::billing::Billing);

impl Written for Billing {
    const TAKES: Takes = Takes::Text;

    fn read(text: &str) -> Result<Self, Problem> {
        use policy::billing::Billing as B;
        match text {
            "grouped" => Ok(Self(B::Grouped)),
            "strict" => Ok(Self(B::Strict)),
            _ => Err(Problem::new(
                "is not a kind of billing",
                "write grouped or strict",
            )),
        }
    }

    fn schema() -> Value {
        json!({ "enum": ["grouped", "strict"] })
    }
}

/// Whose count is billed.
#[derive(Clone, Copy)]
pub(crate) struct BilledBy(pub(crate) policy::billing::BilledBy);

impl Written for BilledBy {
    const TAKES: Takes = Takes::Text;

    fn read(text: &str) -> Result<Self, Problem> {
        use policy::billing::BilledBy as B;
        match text {
            "reported" => Ok(Self(B::Reported)),
            "counted" => Ok(Self(B::Counted)),
            _ => Err(Problem::new(
                "is not a witness of tokens",
                "write reported or counted",
            )),
        }
    }

    fn schema() -> Value {
        json!({ "enum": ["reported", "counted"] })
    }
}

/// Whom a limit counts apart.
#[derive(Clone, Copy)]
pub(crate) struct Whose(pub(crate) policy::subject::Whose);

impl Written for Whose {
    const TAKES: Takes = Takes::Text;

    fn read(text: &str) -> Result<Self, Problem> {
        use policy::subject::Whose as W;
        match text {
            "workload" => Ok(Self(W::Workload)),
            "key" => Ok(Self(W::Key)),
            "user" => Ok(Self(W::User)),
            _ => Err(Problem::new(
                "is nobody whom a limit counts apart",
                "write workload, key or user",
            )),
        }
    }

    fn schema() -> Value {
        json!({ "enum": ["workload", "key", "user"] })
    }
}

/// Whom a budget gives its amount to, where it is not for all whom it counts together.
#[derive(Clone, Copy)]
pub(crate) struct Apart(pub(crate) policy::subject::Whose);

impl Written for Apart {
    const TAKES: Takes = Takes::Text;

    fn read(text: &str) -> Result<Self, Problem> {
        use policy::subject::Whose as W;
        match text {
            "key" => Ok(Self(W::Key)),
            "user" => Ok(Self(W::User)),
            _ => Err(Problem::new(
                "is nobody whom a budget counts apart",
                "write key or user, or leave it out: then all whom it counts share it",
            )),
        }
    }

    fn schema() -> Value {
        json!({ "enum": ["key", "user"] })
    }
}

/// A vocabulary that is built in.
#[derive(Clone, Copy)]
pub(crate) enum BuiltIn {
    Harmony,
    O200k,
    Cl100k,
}

impl Written for BuiltIn {
    const TAKES: Takes = Takes::Text;

    fn read(text: &str) -> Result<Self, Problem> {
        match text {
            "harmony" => Ok(Self::Harmony),
            "o200k" => Ok(Self::O200k),
            "cl100k" => Ok(Self::Cl100k),
            _ => Err(Problem::new(
                "is not a tokenizer",
                "write harmony, o200k, cl100k, or the model's own files: { file: tokenizer.json, … }",
            )),
        }
    }

    fn schema() -> Value {
        json!({ "enum": ["harmony", "o200k", "cl100k"] })
    }
}

/// Where access-log lines go: `off`, `stdout` or a file.
#[derive(Clone)]
pub(crate) enum LogTarget {
    Off,
    Stdout,
    File(String),
}

impl Written for LogTarget {
    const TAKES: Takes = Takes::Text;

    fn read(text: &str) -> Result<Self, Problem> {
        match text {
            "off" => Ok(Self::Off),
            "stdout" => Ok(Self::Stdout),
            path if path.contains(['/', '.']) && !path.contains('\0') && !path.contains("://") => {
                Ok(Self::File(path.to_owned()))
            }
            other => {
                let hint = match nearest(other, &["off", "stdout"]) {
                    Some(word) => format!("did you mean {word}? A file is written as ./{other}"),
                    None => "write off, stdout, or a path such as ./access.log".into(),
                };
                Err(Problem::new("is not a place for the access log", hint))
            }
        }
    }

    fn schema() -> Value {
        json!({ "type": "string", "pattern": "^(off|stdout|.*[/.].*)$" })
    }
}
