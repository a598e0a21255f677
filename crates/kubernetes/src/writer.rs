//! What is said of objects, written into their status.
//!
//! Invariant: the holder of the lease alone writes; each status is written over the version that was read, and where it says the same already, not at all.
//! Not here: what is said, and what stays of what others said (`control`).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use callout::Fault;
use http::Method;
use serde_json::{Value, json};
use tokio::time::{Instant, timeout_at};

use crate::events::{self, Told};
use crate::object::{Key, Object};
use crate::shared::{Event, Said, Shared};
use crate::time::now;
use crate::watcher::message;

/// After how long what could not be written is tried again.
const AGAIN: Duration = Duration::from_secs(10);

/// Writes what is to be said as long as this one holds the lease. Never ends.
pub(crate) async fn write(shared: Arc<Shared>) {
    let mut desired = shared.desired.subscribe();
    let mut changes = shared.all_changes.subscribe();
    let mut leader = shared.is_leader.subscribe();
    let mut writer = Writer::default();
    loop {
        desired.borrow_and_update();
        changes.borrow_and_update();
        let is_leader = *leader.borrow_and_update();
        let is_whole = !is_leader || writer.round(&shared).await;
        tokio::select! {
            Ok(()) = desired.changed() => writer.begin_anew(),
            Ok(()) = changes.changed() => {}
            Ok(()) = leader.changed() => {}
            () = tokio::time::sleep(AGAIN), if !is_whole => writer.begin_anew(),
            else => return,
        }
    }
}

#[derive(Default)]
struct Writer {
    /// The version of each object that was written over: it is not looked at again before another comes.
    tried: BTreeMap<Key, String>,
    /// Objects whose status could not be written, whatever was written since.
    failed: BTreeSet<Key>,
    /// Kinds that could not be written, which is told once.
    told: BTreeSet<&'static str>,
    /// Events of the last minute.
    events: Told,
}

impl Writer {
    /// Writes whatever differs; whether that was all.
    async fn round(&mut self, shared: &Shared) -> bool {
        let desired = Arc::clone(&shared.desired.borrow());
        for desired in desired.iter() {
            let Some(object) = find(shared, &desired.of) else {
                continue;
            };
            if self.was_tried(&object.key, &object.resource_version) {
                continue;
            }
            let Some(said) = (desired.saying)(&object.whole(), &now()) else {
                continue;
            };
            if !shared.leads() {
                return false;
            }
            let is_written = self.put(shared, &object, &said).await;
            self.ended(&object.key, &object.resource_version, is_written);
        }
        self.is_whole()
    }

    fn begin_anew(&mut self) {
        self.tried.clear();
        self.failed.clear();
    }

    fn was_tried(&self, key: &Key, version: &str) -> bool {
        self.tried.get(key).is_some_and(|tried| tried == version)
    }

    fn ended(&mut self, key: &Key, version: &str, is_written: bool) {
        self.tried.insert(key.clone(), version.to_owned());
        match is_written {
            true => self.failed.remove(key),
            false => self.failed.insert(key.clone()),
        };
    }

    fn is_whole(&self) -> bool {
        self.failed.is_empty()
    }

    async fn put(&mut self, shared: &Shared, object: &Object, said: &Said) -> bool {
        let Said { status, event } = said;
        let patch = json!({
            "metadata": { "resourceVersion": object.resource_version },
            "status": status,
        });
        let path = format!("{}/status", object.path);
        let media = "application/merge-patch+json";
        let json = Bytes::from(patch.to_string());
        let began = Instant::now();
        let Some(until) = *shared.good_until() else {
            return false;
        };
        let asked = shared
            .objects
            .ask(Method::PATCH, &path, Some((media, json)));
        // Another one may have the lease from then on.
        let said = timeout_at(until, asked).await.unwrap_or_else(|_| {
            Err(Fault::Late {
                waited_for: "lease",
                within: until.duration_since(began),
            })
        });
        let kind = object.key.kind;
        let why = match said {
            // Of another version the watch tells, and it is looked at again then.
            Ok(said) if matches!(said.status, 200 | 404 | 409) => {
                self.told.remove(kind);
                if let Some(event) = event.as_ref().filter(|_| said.status == 200) {
                    self.tell(shared, object, event).await;
                }
                return true;
            }
            Ok(said) => answered(&said),
            Err(fault) => fault.to_string(),
        };
        if self.told.insert(kind) {
            let Key {
                namespace, name, ..
            } = &object.key;
            tracing::warn!(
                kind,
                namespace,
                name,
                why,
                "cannot write the status of an object"
            );
        }
        false
    }
}

impl Writer {
    /// Tells why an object is refused. What could not be told stands in its status.
    async fn tell(&mut self, shared: &Shared, object: &Object, event: &Event) {
        if !self.events.takes_one() {
            return;
        }
        let (path, said) = events::event(object, event, &shared.settings.identity);
        let json = Bytes::from(said.to_string());
        let asked = Some(("application/json", json));
        let why = match shared.objects.ask(Method::POST, &path, asked).await {
            Ok(said) if said.status == 201 => {
                self.told.remove(EVENT);
                return;
            }
            Ok(said) => answered(&said),
            Err(fault) => fault.to_string(),
        };
        if self.told.insert(EVENT) {
            tracing::warn!(path, why, "an event cannot be written");
        }
    }
}

const EVENT: &str = "Event";

/// An answer that says no, in words: it names the right that is missing.
fn answered(said: &callout::Said) -> String {
    let body = serde_json::from_slice(&said.body).unwrap_or(Value::Null);
    format!("it answers {}: {}", said.status, message(&body))
}

fn find(shared: &Shared, [kind, namespace, name]: &[String; 3]) -> Option<Arc<Object>> {
    let key = Key {
        kind: crate::kinds::Kind::of(kind)?.name,
        namespace: namespace.clone(),
        name: name.clone(),
    };
    shared.store().objects.get(&key).cloned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_that_could_not_be_written_is_tried_again_though_others_were() {
        let key = |name: &str| Key {
            kind: "Gateway",
            namespace: "a".to_owned(),
            name: name.to_owned(),
        };
        let (one, two) = (key("one"), key("two"));
        let mut writer = Writer::default();
        writer.ended(&one, "1", true);
        writer.ended(&two, "1", false);
        assert!(!writer.is_whole());
        // The watch tells of the one that was written; nothing is left to write in that round.
        writer.ended(&one, "2", true);
        assert!(writer.was_tried(&two, "1") && !writer.is_whole());
        writer.begin_anew();
        assert!(!writer.was_tried(&two, "1"));
        writer.ended(&two, "1", true);
        assert!(writer.is_whole());
    }
}
