//! Which objects are asked for: all of a kind, those of a namespace, or one by its name.

use serde_json::Value;

use crate::kinds::{Kind, SERVICE_LABEL};
use crate::object::{Key, Object};

/// Objects of a kind.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Query {
    pub(crate) kind: &'static Kind,
    pub(crate) namespace: Option<String>,
    pub(crate) name: Option<String>,
}

/// Objects of one page.
const PAGE: usize = 250;
/// After how long the server ends a watch, for another to begin.
const WATCH_S: u32 = 240;

impl Query {
    pub(crate) fn of_kind(kind: &'static Kind, namespace: Option<&str>) -> Self {
        Self {
            kind,
            namespace: namespace.filter(|_| kind.is_namespaced).map(str::to_owned),
            name: None,
        }
    }

    /// One object by its name. Whoever may read it by name may not read others.
    pub(crate) fn named(kind: &'static Kind, namespace: &str, name: &str) -> Self {
        Self {
            kind,
            namespace: Some(namespace.to_owned()),
            name: Some(name.to_owned()),
        }
    }

    pub(crate) fn holds(&self, key: &Key) -> bool {
        let is = |said: &Option<String>, of: &str| said.as_deref().is_none_or(|said| said == of);
        self.kind.name == key.kind
            && is(&self.namespace, &key.namespace)
            && (is(&self.name, &key.name) || self.holds_part(key))
    }

    /// Whether it is a slice of the Service, or a Pod with the labels, that are asked for: its name is behind these.
    fn holds_part(&self, key: &Key) -> bool {
        let is_whole = self.kind.is_of_service() || self.kind.is_of_labels();
        let whole = self.name.as_deref().filter(|_| is_whole);
        let rest = whole.and_then(|whole| key.name.strip_prefix(whole));
        rest.is_some_and(|rest| rest.starts_with('/'))
    }

    /// An object that it is answered with; none where that has no name.
    pub(crate) fn object(&self, version: &str, said: Value) -> Option<Object> {
        let labels = self.name.as_deref().filter(|_| self.kind.is_of_labels());
        Object::of(self.kind, version, labels, said)
    }

    /// Where a page of the list is.
    pub(crate) fn list(&self, version: &str, after: Option<&str>) -> String {
        let mut path = format!("{}?limit={PAGE}{}", self.path(version), self.selector());
        if let Some(after) = after {
            path.push_str("&continue=");
            path.push_str(&encoded(after));
        }
        path
    }

    /// Where changes since a version are told.
    pub(crate) fn watch(&self, version: &str, since: &str) -> String {
        format!(
            "{}?watch=true&allowWatchBookmarks=true&timeoutSeconds={WATCH_S}&resourceVersion={}{}",
            self.path(version),
            encoded(since),
            self.selector()
        )
    }

    fn path(&self, version: &str) -> String {
        self.kind.path(version, self.namespace.as_deref())
    }

    fn selector(&self) -> String {
        match self.name.as_deref().map(encoded) {
            None => String::new(),
            Some(service) if self.kind.is_of_service() => {
                format!("&labelSelector={}%3D{service}", encoded(SERVICE_LABEL))
            }
            Some(labels) if self.kind.is_of_labels() => format!("&labelSelector={labels}"),
            Some(name) => format!("&fieldSelector=metadata.name%3D{name}"),
        }
    }

    /// In words.
    pub(crate) fn shown(&self) -> String {
        let kind = self.kind.name;
        match (&self.namespace, &self.name) {
            (Some(namespace), Some(name)) => format!("{kind} {namespace}/{name}"),
            (Some(namespace), None) => format!("{kind} of {namespace}"),
            _ => kind.to_owned(),
        }
    }
}

/// As a value of a query is written.
fn encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                out.push(char::from(byte));
            }
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}
