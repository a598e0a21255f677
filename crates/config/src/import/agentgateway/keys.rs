//! Keys of models and servers of tools in a configuration of agentgateway's.
//!
//! Invariant: no secret is sent to a host that was not sent it there: each that stands in the file has a variable to itself, and a
//! provider's usual variable is for the provider's own address.
//! Not here: how a credential is written (`super::super::credential`), variables of commands (`tools`).

use super::super::credential::{Credential, NamedKey, Variables, is_placeholder, key_of};
use super::super::read::{Section, scalar};
use super::{Plan, said, word};
use crate::decode::{Findings, Place};
use crate::node::{Node, Value};
use crate::vars::is_name;

impl Plan {
    /// The key of a model, as far as one is told; `usual` is the variable of its provider's, at the provider's own address.
    pub(super) fn credential(
        &mut self,
        section: &Section<'_>,
        params: &Section<'_>,
        (url, usual): (&str, Option<&str>),
        findings: &mut Findings,
    ) -> Option<Credential> {
        let usual = usual.filter(|key| !key.is_empty());
        let auth = section.section("auth", findings);
        let key = auth.section("key", findings);
        let keys = [
            (said(params, "apiKey", findings), params.place_of("apiKey")),
            (said(&key, "value", findings), key.place_of("value")),
        ];
        let key = match keys.into_iter().find_map(|(said, at)| Some((said?, at))) {
            Some((said, place)) => {
                let suggested = usual.map_or_else(|| key_of(url), str::to_owned);
                named_key(&said, &suggested, place)?
            }
            None => {
                self.others(&auth, &["key"]);
                let Some(usual) = usual else {
                    let says = "is an address of its own without a key here: none is sent; where it needs one, write `credential: { env: NAME }`";
                    self.comment(&params.place, says);
                    return None;
                };
                NamedKey::of_variable(usual)
            }
        };
        Some(Credential::of_key(key, ""))
    }

    /// The variables of all keys: a secret has one to itself, and a provider's usual one is for its own address.
    pub(super) fn keys(&mut self, root: &Node, findings: &mut Findings) {
        let mut taken = Vec::new();
        variables(root, &mut taken);
        taken.extend(self.tools.variables());
        let mut keys = Variables::new(taken.into_iter());
        for is_its_own in [true, false] {
            for backend in &mut self.backends {
                if backend.is_its_own != is_its_own {
                    continue;
                }
                let written = backend.credentials.iter().flatten();
                let written = written.map(|credential| keys.written(credential, findings));
                let written: Vec<String> = written.collect();
                backend.credential = written.into_iter().next();
            }
            let usual = self.backends.iter().map(|it| it.provider.key.to_owned());
            keys.take(usual);
        }
        self.tools.keys(&mut keys, findings);
    }
}

/// The credential that a policy sends; `suggested` is the variable for a key that stands in the file.
pub(super) fn of_policies(
    policies: &Section<'_>,
    suggested: &str,
    plan: &mut Plan,
    findings: &mut Findings,
) -> Option<Credential> {
    let auth = policies.section("backendAuth", findings);
    for other in auth.entries().filter(|entry| entry.key != "key") {
        let says = match other.key.as_str() {
            "passthrough" => "no server is sent what a caller brings: give it a `credential`",
            _ => "docs/upstream-credentials.md says how such a credential is made here",
        };
        plan.comment(&auth.place_of(&other.key), says);
    }
    let is_nested = matches!(auth.get("key").map(|node| &node.value), Some(Value::Map(_)));
    let (said, place) = if is_nested {
        let key = auth.section("key", findings);
        if let Some(file) = word(&key, "file", findings) {
            return Some(Credential::made(format!("{{ file: {} }}", scalar(&file))));
        }
        (said(&key, "value", findings), key.place_of("value"))
    } else {
        (said(&auth, "key", findings), auth.place_of("key"))
    };
    let key = named_key(&said?, suggested, place)?;
    Some(Credential::of_key(key, ""))
}

/// The variable that a text names.
pub(super) fn variable(said: &str) -> Option<&str> {
    let name = said.strip_prefix('$')?;
    let name = name.strip_prefix('{').unwrap_or(name);
    let name = name.strip_suffix('}').unwrap_or(name);
    is_name(name).then_some(name)
}

/// Every variable that is named somewhere below.
fn variables(node: &Node, names: &mut Vec<String>) {
    match &node.value {
        Value::Scalar(scalar) => names.extend(variable(scalar.text.trim()).map(str::to_owned)),
        Value::List(items) => items.iter().for_each(|item| variables(item, names)),
        Value::Map(entries) => entries
            .iter()
            .for_each(|entry| variables(&entry.node, names)),
    }
}

/// A key as it stands there: the name of a variable, or the key itself, for which `suggested` is the name of one.
fn named_key(said: &str, suggested: &str, place: Place) -> Option<NamedKey> {
    match variable(said) {
        Some(name) => Some(NamedKey::of_variable(name)),
        None if is_placeholder(said) => None,
        None => Some(NamedKey::of_secret(said, suggested, place)),
    }
}
