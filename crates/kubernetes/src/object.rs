//! One object as it is kept: what it says, and apart from that its status.
//!
//! Invariant: neither its text nor what it was made of can be printed; it may be a Secret.

use std::fmt;

use policy::secret::Secret;
use serde_json::{Map, Value, json};

use crate::kinds::{Kind, SERVICE_LABEL};

/// Which object it is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// Its kind.
    pub kind: &'static str,
    /// Its namespace; `default` of what has none.
    pub namespace: String,
    /// Its name; of a slice of a Service that Service's, a `/`, and its own; of a Pod the labels that were asked for, a `/`, and its own.
    pub name: String,
}

/// An object.
pub struct Object {
    /// Which it is.
    pub key: Key,
    /// What it says, as JSON, without its status and what changes with that.
    pub(crate) text: Secret,
    status: Option<Value>,
    pub(crate) resource_version: String,
    /// Where it is.
    pub(crate) path: String,
}

impl Object {
    /// One as an API server says it; none where it has no name. `labels` are those by which a Pod was asked for.
    pub(crate) fn of(
        kind: &'static Kind,
        version: &str,
        labels: Option<&str>,
        said: Value,
    ) -> Option<Self> {
        let Value::Object(mut members) = said else {
            return None;
        };
        if labels.is_some() {
            members = pod(members);
        }
        let status = members.remove("status");
        let metadata = members.get_mut("metadata")?.as_object_mut()?;
        metadata.remove("managedFields");
        let resource_version = match metadata.remove("resourceVersion") {
            Some(Value::String(version)) => version,
            _ => String::new(),
        };
        // A copy of all that it says, made by `kubectl apply`.
        if let Some(annotations) = metadata
            .get_mut("annotations")
            .and_then(Value::as_object_mut)
        {
            annotations.remove("kubectl.kubernetes.io/last-applied-configuration");
        }
        let said = |name: &str| {
            metadata
                .get(name)
                .and_then(Value::as_str)
                .map(str::to_owned)
        };
        let name = said("name")?;
        let namespace = said("namespace");
        let path = format!("{}/{name}", kind.path(version, namespace.as_deref()));
        let service = metadata
            .get("labels")
            .and_then(|all| all.get(SERVICE_LABEL));
        let service = service.and_then(Value::as_str);
        let name = match service.filter(|_| kind.is_of_service()).or(labels) {
            Some(whole) => format!("{whole}/{name}"),
            None => name,
        };
        // Where a Pod is, and whether it is ready, is what it says.
        let status = match labels {
            Some(_) => {
                members.extend(status.map(|status| ("status".to_owned(), status)));
                None
            }
            None => status,
        };
        // Those of a list do not say it.
        members.insert("apiVersion".to_owned(), kind.api_version(version).into());
        members.insert("kind".to_owned(), kind.name.into());
        Some(Self {
            key: Key {
                kind: kind.name,
                namespace: namespace.unwrap_or_else(|| "default".to_owned()),
                name,
            },
            text: Secret::new(Value::Object(members).to_string().into_bytes()),
            status,
            resource_version,
            path,
        })
    }

    /// What it says, as JSON, without its status.
    #[must_use]
    pub fn text(&self) -> &str {
        std::str::from_utf8(self.text.expose()).unwrap_or_default()
    }

    /// All of it.
    pub(crate) fn whole(&self) -> Value {
        let mut members: Map<String, Value> = serde_json::from_str(self.text()).unwrap_or_default();
        if let Some(status) = &self.status {
            members.insert("status".to_owned(), status.clone());
        }
        Value::Object(members)
    }

    pub(crate) fn bytes(&self) -> usize {
        self.text.expose().len()
    }

    /// Whether it says the same, whatever is said of it.
    pub(crate) fn says_as(&self, other: &Self) -> bool {
        self.text.expose() == other.text.expose()
    }
}

/// Of a Pod its name, its labels, where it is and whether it is ready: all else is its own, and changes without end.
fn pod(mut said: Map<String, Value>) -> Map<String, Value> {
    let mut kept = Map::new();
    if let Some(Value::Object(metadata)) = said.remove("metadata") {
        let names = [
            "name",
            "namespace",
            "labels",
            "resourceVersion",
            "deletionTimestamp",
        ];
        let of_it = metadata.into_iter();
        let of_it = of_it.filter(|(name, _)| names.contains(&name.as_str()));
        kept.insert("metadata".to_owned(), Value::Object(of_it.collect()));
    }
    let status = said.remove("status").unwrap_or_default();
    let conditions = status["conditions"].as_array().into_iter().flatten();
    let ready = conditions.filter(|of| of["type"] == "Ready");
    let ready = ready.map(|of| json!({ "type": "Ready", "status": of["status"] }));
    let ready: Vec<Value> = ready.collect();
    let status = json!({ "podIP": status["podIP"], "conditions": ready });
    kept.insert("status".to_owned(), status);
    kept
}

impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Object")
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}
