//! A backend's `proxy`: the word `none`, an address, or an address with a credential.
//!
//! Not here: the proxies that the environment names (`lower::proxy`).

use serde_json::{Value as Json, json};

use crate::decode::{At, Problem, ShortOrFull, Written, record};
use crate::scalar::{Inline, SecretFile, Variable};
use crate::target::Target;

/// The proxy on the way to a backend.
pub(crate) type Proxy = ShortOrFull<Address, ProxyAt>;

/// An address, or `none`.
pub(crate) struct Address(pub(crate) Option<Target>);

impl Written for Address {
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
