//! One query: listed once, then watched from there on, for as long as anybody wants it.
//!
//! Invariant: what is gone is seen to be gone: where the server does not know any more what happened since (410), all is listed
//! anew. A server that says nothing for long is asked anew; one that fails is asked ever less often, [`WAIT_MAX`] apart at most, and at
//! once where another one heard it answer. What was known stays known, whatever a server says before it knows its own rights.
//! Not here: what is kept (`store`).

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use callout::{Fault, Said};
use http::Method;
use serde_json::Value;
use tokio::time::{Instant, sleep};

use crate::query::Query;
use crate::shared::Shared;
use crate::store::Change;

/// How long after the first failure it is tried again, doubled with each further one.
const WAIT: Duration = Duration::from_millis(200);
const WAIT_MAX: Duration = Duration::from_secs(10);
/// How often a kind is looked for that the server does not serve.
const ABSENT_EVERY: Duration = Duration::from_secs(30);
/// For how long it has to be so where there were objects of it: a server that has only begun serves not all, and forbids what it allows.
const ABSENT_AFTER: Duration = Duration::from_secs(10);
/// A watch that ends in order within this has not begun well.
const SHORT: Duration = Duration::from_secs(1);

/// Why there is no list, or no watch any more.
#[derive(Debug)]
enum Ended {
    /// It is listed, and to be watched from there.
    Listed,
    /// The server ended it in order.
    InOrder,
    /// It does not know what happened since.
    Gone,
    /// It serves no such kind.
    Absent,
    /// It says no.
    No(u16, String),
    Fault(Fault),
}

/// What is known of a query so far.
struct Place {
    version: &'static str,
    resource_version: String,
    /// Whether it was watched from there: not only listed.
    is_watched: bool,
    /// Whether a watch brought something, or lasted: one that is only answered tells nothing of how the next one ends.
    is_well: bool,
}

/// Follows a query. Never ends.
pub(crate) async fn follow(query: Query, shared: Arc<Shared>) {
    let mut back = shared.is_back.subscribe();
    let mut follower = Follower {
        query,
        shared,
        place: None,
        wait: WAIT,
        absent_since: None,
        forbidden_since: None,
        is_told: false,
    };
    loop {
        let began = Instant::now();
        let ended = follower.step().await;
        let Some(wait) = follower.after(ended, began.elapsed()) else {
            continue;
        };
        tokio::select! {
            () = sleep(jittered(wait)) => follower.wait = (follower.wait * 2).min(WAIT_MAX),
            Ok(()) = back.changed() => follower.wait = WAIT,
        }
    }
}

struct Follower {
    query: Query,
    shared: Arc<Shared>,
    place: Option<Place>,
    wait: Duration,
    absent_since: Option<Instant>,
    forbidden_since: Option<Instant>,
    /// It was told that the server forbids this.
    is_told: bool,
}

impl Follower {
    /// Lists, or watches until that ends.
    async fn step(&mut self) -> Ended {
        let Self {
            query,
            shared,
            place,
            wait,
            ..
        } = self;
        match place {
            Some(place) => {
                let ended = watch(query, place, shared, wait).await;
                if place.is_watched {
                    (self.forbidden_since, self.is_told) = (None, false);
                }
                ended
            }
            None => match list(query, shared).await {
                Ok(listed) => {
                    *place = Some(listed);
                    Ended::Listed
                }
                Err(ended) => ended,
            },
        }
    }

    /// How long to wait before the next step; none where it follows at once.
    fn after(&mut self, ended: Ended, took: Duration) -> Option<Duration> {
        if let Some(place) = self.place.as_mut().filter(|place| place.is_watched) {
            place.is_well |= took >= SHORT;
        }
        let was_well = self.place.as_ref().is_some_and(|place| place.is_well);
        if !matches!(ended, Ended::Fault(_)) {
            self.shared.hears();
        }
        if !matches!(ended, Ended::Absent | Ended::Fault(_)) {
            self.absent_since = None;
        }
        match ended {
            Ended::Listed => None,
            // A server that ends each watch as it begins is not asked in a circle.
            Ended::InOrder => (took < SHORT).then_some(self.wait),
            Ended::Gone => {
                let query = self.query.shown();
                tracing::debug!(
                    query,
                    "the API server forgot what happened since: all is listed anew"
                );
                self.place = None;
                (!was_well).then_some(self.wait)
            }
            Ended::Absent => Some(self.absent()),
            Ended::No(status, says) => {
                self.forbidden(status, &says);
                Some(self.wait)
            }
            Ended::Fault(fault) => {
                self.shared.misses(&self.query.shown(), &fault);
                Some(self.wait)
            }
        }
    }

    /// The server says no. Of what is known that is told once it stays so, or where what may be listed may not be watched.
    fn forbidden(&mut self, status: u16, says: &str) {
        let query = self.query.shown();
        let is_listed = self.place.take().is_some_and(|place| !place.is_watched);
        let why = format!("the API server answers {status}: {says}");
        let is_known = self.shared.change(|store| store.refuse(&self.query, why))
            == Change::Nothing
            && self.shared.store().is_known(&self.query);
        let since = *self.forbidden_since.get_or_insert_with(Instant::now);
        if self.is_told || (is_known && !is_listed && since.elapsed() < ABSENT_AFTER) {
            tracing::debug!(
                query,
                status,
                says,
                "the API server does not let the gate read this"
            );
            return;
        }
        self.is_told = true;
        let does = "the API server forbids the gate to read these objects";
        match is_known {
            true => tracing::warn!(
                query,
                status,
                says,
                "{does}: what is known of them may be old"
            ),
            false => tracing::warn!(query, status, says, "{does}"),
        }
    }

    /// The server serves no such kind. One that has only begun says so of kinds that it will serve in a moment.
    fn absent(&mut self) -> Duration {
        self.place = None;
        let since = *self.absent_since.get_or_insert_with(Instant::now);
        let has_any = self.shared.store().has_any(&self.query);
        if has_any && since.elapsed() < ABSENT_AFTER {
            return self.wait;
        }
        self.shared
            .change(|store| store.list(&self.query, &BTreeSet::new()));
        ABSENT_EVERY
    }
}

/// Between three quarters and all of it: replicas that lost the same server do not come back together.
fn jittered(wait: Duration) -> Duration {
    use std::hash::{BuildHasher, RandomState};
    let chance = RandomState::new().hash_one(0) % 256;
    wait * 3 / 4 + wait * u32::try_from(chance).unwrap_or(0) / 1024
}

/// Lists all of it, page by page, by the first version that the server has.
async fn list(query: &Query, shared: &Shared) -> Result<Place, Ended> {
    for version in query.kind.versions {
        match list_version(query, version, shared).await {
            Err(Ended::Absent) => {}
            Err(ended) => {
                shared.change(|store| store.broke_off(query));
                return Err(ended);
            }
            listed => return listed,
        }
    }
    Err(Ended::Absent)
}

async fn list_version(
    query: &Query,
    version: &'static str,
    shared: &Shared,
) -> Result<Place, Ended> {
    let mut there = BTreeSet::new();
    let mut after: Option<String> = None;
    loop {
        let path = query.list(version, after.as_deref());
        let said = shared.objects.ask(Method::GET, &path, None).await;
        let said = said.map_err(Ended::Fault)?;
        if said.status != 200 {
            return Err(ended(&said));
        }
        let mut page: Value = serde_json::from_slice(&said.body)
            .map_err(|_| Ended::Fault(Fault::Garbage("a list is not JSON")))?;
        let Some(Value::Array(items)) = page.get_mut("items").map(Value::take) else {
            return Err(Ended::Fault(Fault::Garbage("a list has no items")));
        };
        let items = items.into_iter();
        let objects: Vec<_> = items
            .filter_map(|item| query.object(version, item))
            .collect();
        there.extend(objects.iter().map(|object| object.key.clone()));
        shared.change(|store| store.page(query, objects));
        let metadata = &page["metadata"];
        let text = |name: &str| metadata[name].as_str().filter(|text| !text.is_empty());
        after = text("continue").map(str::to_owned);
        if after.is_none() || there.len() > crate::store::OBJECTS_MAX {
            let resource_version = text("resourceVersion").unwrap_or_default().to_owned();
            shared.change(|store| store.list(query, &there));
            return Ok(Place {
                version,
                resource_version,
                is_watched: false,
                is_well: false,
            });
        }
    }
}

/// Takes changes as they come, until none come any more.
async fn watch(query: &Query, place: &mut Place, shared: &Shared, wait: &mut Duration) -> Ended {
    let path = query.watch(place.version, &place.resource_version);
    let mut lines = match shared.objects.lines(&path).await {
        Ok(Ok(lines)) => lines,
        Ok(Err(said)) => return ended(&said),
        Err(fault) => return Ended::Fault(fault),
    };
    shared.hears();
    place.is_watched = true;
    loop {
        let line = match lines.next().await {
            Ok(Some(line)) => line,
            Ok(None) => return Ended::InOrder,
            Err(fault) => return Ended::Fault(fault),
        };
        let Ok(mut event) = serde_json::from_slice::<Value>(&line) else {
            return Ended::Fault(Fault::Garbage("a change is not JSON"));
        };
        let object = event["object"].take();
        let kind = event["type"].as_str().unwrap_or_default();
        if kind == "ERROR" {
            let code = object["code"]
                .as_u64()
                .and_then(|code| u16::try_from(code).ok());
            return match code {
                Some(410) => Ended::Gone,
                _ => Ended::Fault(Fault::Garbage("a watch ended with an error")),
            };
        }
        // One who speaks is well.
        (*wait, place.is_well) = (WAIT, true);
        if let Some(version) = object["metadata"]["resourceVersion"].as_str() {
            version.clone_into(&mut place.resource_version);
        }
        let object = match kind {
            "ADDED" | "MODIFIED" | "DELETED" => query.object(place.version, object),
            // A bookmark says how far it is.
            _ => None,
        };
        if let Some(object) = object {
            shared.change(|store| match kind {
                "DELETED" => store.delete(query, &object.key),
                _ => store.put(query, object),
            });
        }
    }
}

/// What an answer that says no means.
fn ended(said: &Said) -> Ended {
    match said.status {
        404 => Ended::Absent,
        410 => Ended::Gone,
        // It may say no to what it does not know; all else is trouble of its own, and passes.
        status @ (400 | 401 | 403 | 405 | 406) => {
            let body = serde_json::from_slice(&said.body).unwrap_or(Value::Null);
            Ended::No(status, message(&body))
        }
        status => Ended::Fault(Fault::Status { status, code: None }),
    }
}

/// What a server's status says, in words and bounded.
pub(crate) fn message(status: &Value) -> String {
    let says = status["message"].as_str().unwrap_or("it does not say why");
    says.chars().filter(|c| !c.is_control()).take(300).collect()
}
