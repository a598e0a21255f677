//! A backend's `proxy`: the word `none`, an address, or an address with a credential.
//!
//! Not here: the proxies that the environment names (`lower::proxy`).

use serde_json::{Value as Json, json};

use crate::decode::{At, Decode, Defs, Findings, Problem, Takes, Written, record};
use crate::node::{Node, Value};
use crate::scalar::{Inline, SecretFile, Variable};
use crate::target::Target;

/// The proxy on the way to a backend.
pub(crate) enum Proxy {
    Address(At<Address>),
    Full(Box<ProxyAt>),
}

/// An address, or `none`.
pub(crate) struct Address(pub(crate) Option<Target>);

impl Decode for Proxy {
    fn decode(node: &Node, path: &str, findings: &mut Findings) -> Option<Self> {
        if matches!(node.value, Value::Map(_)) {
            let full = ProxyAt::decode(node, path, findings)?;
            return Some(Self::Full(Box::new(full)));
        }
        At::decode(node, path, findings).map(Self::Address)
    }

    fn schema(defs: &mut Defs) -> Json {
        json!({ "anyOf": [At::<Address>::schema(defs), ProxyAt::schema(defs)] })
    }
}

impl Written for Address {
    const TAKES: Takes = Takes::Text;

    fn read(text: &str) -> Result<Self, Problem> {
        if text == "none" {
            return Ok(Self(None));
        }
        let read = Target::read(text).map(|target| Self(Some(target)));
        read.map_err(|problem| Problem {
            hint: "write http://host:port, or none; what the proxy asks for stands in { url, credential }".into(),
            ..problem
        })
    }

    fn schema() -> Json {
        json!({ "anyOf": [{ "enum": ["none"] }, Target::schema()] })
    }
}

record! {
    /// An HTTP proxy and what it asks for.
    ProxyAt {
        /// Its address, such as http://proxy.example:3128.
        required url: At<Target>,
        /// What the gate sends to it to be let through; nothing unless said.
        optional credential: ProxyCredential,
    }
}

record! {
    /// A user and a password, written user:password, from exactly one of `file`, `env` and `inline`.
    ProxyCredential {
        /// File that holds them alone; watched, and used anew within a second of a change.
        optional file: At<SecretFile>,
        /// Environment variable that holds them.
        optional env: At<Variable>,
        /// They themselves, for tests.
        optional inline: At<Inline>,
    }
}
