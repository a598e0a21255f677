//! What keeps callers out, wherever it stands in a configuration of agentgateway's.
//!
//! Invariant: it is looked for in all of the file, so that no level of it is forgotten; what is found too much keeps callers out here, too.
//! Not here: rules about names of tools, which are taken over (`tools`); what the made file says in its place (`super`).

use crate::decode::{Place, child};
use crate::node::{Node, Shape, Value};

/// What keeps callers out there.
const DOORS: [&str; 9] = [
    "apiKey",
    "authorization",
    "basicAuth",
    "extAuthz",
    "jwt",
    "jwtAuth",
    "mcpAuthentication",
    "mcpAuthorization",
    "oidc",
];

/// Below these stands what goes upstream, where the same words mean something else.
const UPSTREAM: [&str; 9] = [
    "add",
    "auth",
    "backendAuth",
    "env",
    "headers",
    "params",
    "requestHeaders",
    "schema",
    "set",
];

/// Where each of them stands.
pub(super) fn below(node: &Node, path: &str, found: &mut Vec<Place>) {
    match &node.value {
        Value::Scalar(_) => {}
        Value::List(items) => {
            for (nth, item) in items.iter().enumerate() {
                below(item, &format!("{path}[{nth}]"), found);
            }
        }
        Value::Map(entries) => {
            for entry in entries {
                let key = entry.key.as_str();
                let path = child(path, key);
                if DOORS.contains(&key) {
                    if !is_nothing(&entry.node) {
                        found.push(Place::new(path, entry.line));
                    }
                } else if !UPSTREAM.contains(&key) {
                    below(&entry.node, &path, found);
                }
            }
        }
    }
}

fn is_nothing(node: &Node) -> bool {
    matches!(&node.value, Value::Scalar(scalar) if scalar.shape() == Shape::Nothing)
}
