//! The messages between a Locust master and its workers: `[type, data, worker]` in MessagePack.
//!
//! Read in Locust 2.47.0 (`rpc/protocol.py`, `runners.py`, `stats.py`).
//! Invariant: whatever bytes a master sends, the answer is a message or a [`Damage`]; what is not known is skipped, at
//! most [`MOST_DEPTH`] levels deep.
//! Not here: what is done about a message (`machine`).

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Error, IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use super::stats::{Counts, LocustStats};

/// Levels of a message from a master.
const MOST_DEPTH: usize = 32;
/// Users that one worker can be told to have.
pub(super) const MOST_USERS: u64 = 1_000_000;
/// Classes of users.
pub(super) const MOST_CLASSES: usize = 256;

/// How many users of each class.
pub(crate) type Users = BTreeMap<String, u32>;

/// A message that cannot be read.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("a message of {bytes} bytes from the master cannot be read: {says}")]
pub(super) struct Damage {
    bytes: usize,
    says: String,
}

/// What a master says.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum FromMaster {
    /// The answer to `client_ready`; old masters give no index.
    Ack {
        index: Option<u32>,
    },
    Spawn(Job),
    /// Every worker has what it was told to have.
    Ramped,
    Heartbeat,
    Stop,
    Quit,
    Reconnect,
    /// A type that is not known here.
    Other(String),
}

/// How many users a worker must have from now on.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct Job {
    /// The master's clock; a job that is not newer than the last one is stale.
    pub(super) timestamp: f64,
    /// Absolute, and for this worker alone.
    #[serde(rename = "user_classes_count")]
    pub(super) users: Users,
    #[serde(default)]
    pub(super) host: Option<String>,
    /// Seconds that users get to end their work.
    #[serde(default)]
    pub(super) stop_timeout: Option<f64>,
}

impl Job {
    fn check(self) -> Result<Self, String> {
        let users: u64 = self.users.values().map(|count| u64::from(*count)).sum();
        if users > MOST_USERS || self.users.len() > MOST_CLASSES {
            let classes = self.users.len();
            return Err(format!(
                "{users} users of {classes} classes; at most {MOST_USERS} of {MOST_CLASSES}"
            ));
        }
        let stop_timeout = self.stop_timeout.unwrap_or(0.0);
        if !(self.timestamp.is_finite() && self.timestamp >= 0.0 && stop_timeout.is_finite()) {
            return Err("a time that is none".into());
        }
        Ok(self)
    }
}

#[derive(Deserialize)]
struct Ack {
    #[serde(default)]
    index: Option<u32>,
}

/// Reads a message.
pub(super) fn decode(bytes: &[u8]) -> Result<FromMaster, Damage> {
    let mut deserializer = rmp_serde::Deserializer::from_read_ref(bytes);
    deserializer.set_max_depth(MOST_DEPTH);
    FromMaster::deserialize(&mut deserializer).map_err(|cause| Damage {
        bytes: bytes.len(),
        says: cause.to_string(),
    })
}

impl<'de> Deserialize<'de> for FromMaster {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Message;
        impl<'de> Visitor<'de> for Message {
            type Value = FromMaster;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("an array of a type, its data and a worker")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut of: A) -> Result<FromMaster, A::Error> {
                let kind: String = next(&mut of)?;
                let message = match kind.as_str() {
                    "ack" => FromMaster::Ack {
                        index: next::<_, Option<Ack>>(&mut of)?.and_then(|ack| ack.index),
                    },
                    "spawn" => {
                        FromMaster::Spawn(next::<_, Job>(&mut of)?.check().map_err(Error::custom)?)
                    }
                    known => {
                        next::<_, IgnoredAny>(&mut of)?;
                        match known {
                            "spawning_complete" => FromMaster::Ramped,
                            "heartbeat" => FromMaster::Heartbeat,
                            "stop" => FromMaster::Stop,
                            "quit" => FromMaster::Quit,
                            "reconnect" => FromMaster::Reconnect,
                            other => FromMaster::Other(other.chars().take(64).collect()),
                        }
                    }
                };
                next::<_, IgnoredAny>(&mut of)?;
                match of.next_element::<IgnoredAny>()? {
                    None => Ok(message),
                    Some(_) => Err(Error::custom("more than three elements")),
                }
            }
        }
        fn next<'de, A: SeqAccess<'de>, T: Deserialize<'de>>(of: &mut A) -> Result<T, A::Error> {
            of.next_element()?
                .ok_or_else(|| Error::custom("fewer than three elements"))
        }
        deserializer.deserialize_seq(Message)
    }
}

/// What a worker does, in the master's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Doing {
    Ready,
    Spawning,
    Running,
}

/// What the process uses.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Health {
    /// Of the CPUs that it may use, in percent: above 90 the master marks the run.
    pub(super) cpu_percent: f64,
    /// Resident.
    pub(super) memory_bytes: u64,
}

/// What a worker says.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum ToMaster {
    Ready,
    Spawning,
    SpawningComplete {
        users: Users,
    },
    Heartbeat {
        doing: Doing,
        health: Health,
    },
    Stats {
        tally: Box<LocustStats>,
        users: Users,
    },
    Stopped,
    Exception {
        says: String,
    },
    Quit,
}

/// The bytes of a message of the worker `id`.
pub(super) fn encode(message: &ToMaster, id: &str) -> Vec<u8> {
    match message {
        // In place of a version: the worker is of no version of Locust.
        ToMaster::Ready => bytes("client_ready", -1, id),
        ToMaster::Spawning => bytes("spawning", (), id),
        ToMaster::SpawningComplete { users } => {
            let (user_classes_count, user_count) = (users, sum(users));
            let data = SpawningComplete {
                user_classes_count,
                user_count,
            };
            bytes("spawning_complete", data, id)
        }
        ToMaster::Heartbeat { doing, health } => {
            let data = Heartbeat {
                state: *doing,
                current_cpu_usage: health.cpu_percent,
                current_memory_usage: health.memory_bytes,
            };
            bytes("heartbeat", data, id)
        }
        ToMaster::Stats { tally, users } => bytes("stats", Stats::new(tally, users), id),
        ToMaster::Stopped => bytes("client_stopped", (), id),
        ToMaster::Exception { says } => bytes(
            "exception",
            Exception {
                msg: says,
                traceback: "",
            },
            id,
        ),
        ToMaster::Quit => bytes("quit", (), id),
    }
}

fn bytes(kind: &str, data: impl Serialize, id: &str) -> Vec<u8> {
    rmp_serde::to_vec_named(&(kind, data, id)).expect("every length is known, and memory has room")
}

fn sum(users: &Users) -> u64 {
    users.values().map(|count| u64::from(*count)).sum()
}

#[derive(Serialize)]
struct SpawningComplete<'a> {
    user_classes_count: &'a Users,
    user_count: u64,
}

#[derive(Serialize)]
struct Heartbeat {
    state: Doing,
    current_cpu_usage: f64,
    current_memory_usage: u64,
}

#[derive(Serialize)]
struct Exception<'a> {
    msg: &'a str,
    traceback: &'static str,
}

#[derive(Serialize)]
struct Stats<'a> {
    stats: Vec<Entry<'a>>,
    stats_total: Entry<'a>,
    errors: BTreeMap<String, ErrorEntry<'a>>,
    user_classes_count: &'a Users,
    user_count: u64,
}

impl<'a> Stats<'a> {
    fn new(tally: &'a LocustStats, users: &'a Users) -> Self {
        let errors = tally.errors().map(|(of, error)| {
            let key = format!("{}.{}.{}", of.method, of.name, of.error);
            let entry = ErrorEntry {
                name: &of.name,
                method: &of.method,
                error: &of.error,
                occurrences: error.count,
                first_seen: seconds(error.first_us),
                last_seen: seconds(error.last_us),
            };
            (key, entry)
        });
        let entries = tally.entries();
        let since = tally.since_us();
        Self {
            stats: entries
                .map(|(name, method, counts)| Entry::new(name, method, since, counts))
                .collect(),
            stats_total: Entry::new("Aggregated".into(), "", since, tally.total()),
            errors: errors.collect(),
            user_classes_count: users,
            user_count: sum(users),
        }
    }
}

#[derive(Serialize)]
struct Entry<'a> {
    name: String,
    method: &'a str,
    last_request_timestamp: Option<f64>,
    start_time: f64,
    num_requests: u64,
    num_none_requests: u64,
    num_failures: u64,
    total_response_time: f64,
    max_response_time: f64,
    min_response_time: Option<f64>,
    total_content_length: u64,
    response_times: &'a BTreeMap<u64, u64>,
    num_reqs_per_sec: &'a BTreeMap<u64, u64>,
    num_fail_per_sec: &'a BTreeMap<u64, u64>,
}

impl<'a> Entry<'a> {
    fn new(name: String, method: &'a str, since_us: u64, of: &'a Counts) -> Self {
        Self {
            name,
            method,
            last_request_timestamp: of.last_us.map(seconds),
            start_time: seconds(since_us),
            num_requests: of.requests,
            num_none_requests: of.untimed,
            num_failures: of.failures,
            total_response_time: millis(of.sum_us),
            max_response_time: millis(of.max_us),
            min_response_time: of.min_us.map(millis),
            total_content_length: of.bytes,
            response_times: &of.times_ms,
            num_reqs_per_sec: &of.per_second,
            num_fail_per_sec: &of.failures_per_second,
        }
    }
}

#[derive(Serialize)]
struct ErrorEntry<'a> {
    name: &'a str,
    method: &'a str,
    error: &'a str,
    occurrences: u64,
    first_seen: f64,
    last_seen: f64,
}

fn seconds(us: u64) -> f64 {
    us as f64 / 1e6
}

fn millis(us: u64) -> f64 {
    us as f64 / 1e3
}

#[cfg(test)]
mod tests;
