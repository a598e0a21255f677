//! Events of objects that are refused, as `kubectl describe` shows them.
//!
//! Invariant: one for each change of reason, as the status that says it is written, and no more than some in a minute: the status says the rest.
//! Not here: why an object is refused (`control`).

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use crate::object::Object;
use crate::shared::Event;
use crate::time::{now, stamp};

/// Most that are told in a minute.
const EVENTS_MAX: u32 = 60;
const MINUTE: Duration = Duration::from_secs(60);
/// Longest message that the API takes, bytes.
const MESSAGE_BYTES_MAX: usize = 1024;
/// Of an object's name so much stands in that of an event.
const NAME_BYTES_MAX: usize = 220;
const COMPONENT: &str = "tollgate";

/// How many were told in this minute.
pub(crate) struct Told {
    since: Instant,
    count: u32,
}

impl Default for Told {
    fn default() -> Self {
        Self {
            since: Instant::now(),
            count: 0,
        }
    }
}

impl Told {
    /// Whether there is room for another one.
    pub(crate) fn takes_one(&mut self) -> bool {
        if self.since.elapsed() >= MINUTE {
            *self = Self::default();
        }
        self.count += 1;
        self.count <= EVENTS_MAX
    }
}

/// Where an event of an object is made, and what it says.
pub(crate) fn event(object: &Object, event: &Event, instance: &str) -> (String, Value) {
    let whole = object.whole();
    let namespace = &object.key.namespace;
    let name = &object.key.name;
    let start = name.get(..NAME_BYTES_MAX).unwrap_or(name);
    let mut message = event.message.as_str();
    if message.len() > MESSAGE_BYTES_MAX {
        let end = message.floor_char_boundary(MESSAGE_BYTES_MAX);
        message = message.get(..end).unwrap_or_default();
    }
    let now = now();
    let said = json!({
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": { "namespace": namespace, "name": format!("{start}.{}", stamp()) },
        "involvedObject": {
            "apiVersion": whole["apiVersion"],
            "kind": object.key.kind,
            "namespace": whole["metadata"]["namespace"],
            "name": name,
            "uid": whole["metadata"]["uid"],
            "resourceVersion": object.resource_version,
        },
        "type": "Warning",
        "reason": event.reason,
        "message": message,
        "source": { "component": COMPONENT },
        "reportingComponent": COMPONENT,
        "reportingInstance": instance,
        "firstTimestamp": now,
        "lastTimestamp": now,
        "count": 1,
    });
    (format!("/api/v1/namespaces/{namespace}/events"), said)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{EVENTS_MAX, Told, event};
    use crate::kinds::Kind;
    use crate::object::Object;
    use crate::shared::Event;

    #[test]
    fn an_event_names_its_object_and_is_short_enough_for_the_api() {
        let kind = Kind::of("HTTPRoute").expect("a kind");
        let name = "n".repeat(253);
        let said = json!({ "metadata": { "name": name, "namespace": "a", "uid": "u", "resourceVersion": "7" } });
        let object = Object::of(kind, "v1", None, said).expect("an object");
        let of = Event {
            reason: "BackendNotFound".to_owned(),
            message: "é".repeat(2000),
        };
        let (path, said) = event(&object, &of, "one");
        assert_eq!(path, "/api/v1/namespaces/a/events");
        let involved = json!({
            "apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute", "namespace": "a", "name": name,
            "uid": "u", "resourceVersion": "7",
        });
        assert_eq!(said["involvedObject"], involved);
        assert_eq!(said["message"].as_str().map(str::len), Some(1024));
        assert!(
            said["metadata"]["name"]
                .as_str()
                .is_some_and(|name| name.len() <= 253)
        );
    }

    #[test]
    fn no_more_than_some_are_told_in_a_minute() {
        let mut told = Told::default();
        let taken = (0..2 * EVENTS_MAX).filter(|_| told.takes_one()).count();
        assert_eq!(u32::try_from(taken), Ok(EVENTS_MAX));
    }
}
