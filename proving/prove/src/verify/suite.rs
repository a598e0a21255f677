//! A suite as it is run: cases in order, each with its calls and all that has to hold.
//!
//! Invariant: whatever is in a [`Suite`] can be sent and asked; what cannot was a fault of its file ([`form`]).
//! Not here: making the calls (`run`), holding answers against it (`check`).

mod form;
mod statuses;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use experiment::telemetry::Selector;
use http::{HeaderMap, Method, StatusCode};

pub(crate) use statuses::{Code, Statuses, in_short};

use crate::files;
use crate::scrape::targets::nearest;
pub(crate) use crate::scrape::targets::{selector, shown};
use crate::toml_document::Fault;

/// A suite.
#[derive(Debug, Clone)]
pub(crate) struct Suite {
    pub(crate) name: String,
    /// How long one call may take, to its last byte.
    pub(crate) timeout: Duration,
    pub(crate) upstreams: Vec<Upstream>,
    /// The metrics that cases ask for, by the suite's own names.
    pub(crate) metrics: BTreeMap<String, Metric>,
    pub(crate) cases: Vec<Case>,
}

/// An upstream that records what arrives.
#[derive(Debug, Clone)]
pub(crate) struct Upstream {
    pub(crate) name: String,
    /// The value of `authorization` that it demands.
    pub(crate) credential: String,
    /// What it answers to whoever lacks that.
    pub(crate) refuses: StatusCode,
}

/// Where a metric is, unless the gateway says so itself.
#[derive(Debug, Clone)]
pub(crate) struct Metric {
    pub(crate) url: Option<String>,
    pub(crate) selector: Option<Selector>,
}

/// One invariant.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) says: String,
    /// Time before the first call.
    pub(crate) wait: Duration,
    /// The number of an earlier case from whose first call the time before this one's counts.
    pub(crate) since: Option<usize>,
    pub(crate) calls: Vec<Call>,
    /// By the number of the upstream.
    pub(crate) upstreams: Vec<AtUpstream>,
    pub(crate) metrics: Vec<Growth>,
    /// Texts that must not arrive at any upstream, and texts that must not come back; those of the suite among them.
    pub(crate) never_upstream: Vec<String>,
    pub(crate) never_downstream: Vec<String>,
}

/// Equal calls, one after the other.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) to: To,
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
    /// Names of headers that are not written in small letters, by those that are.
    pub(crate) spelled: BTreeMap<String, String>,
    pub(crate) count: usize,
    pub(crate) statuses: Statuses,
    pub(crate) answers: Vec<Answers>,
}

/// Who is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum To {
    Gateway,
    /// The upstream of this number, past the gateway.
    Upstream(usize),
}

/// What has to hold of answers.
#[derive(Debug, Clone, Default)]
pub(crate) struct Answers {
    /// Of those with this status; of all without one.
    pub(crate) status: Option<Code>,
    pub(crate) headers: Vec<String>,
    pub(crate) no_headers: Vec<String>,
    /// JSON pointers to members that have to be there.
    pub(crate) json: Vec<String>,
    /// Members that have to have these values, by pointer.
    pub(crate) json_equals: BTreeMap<String, serde_json::Value>,
    /// The body is what the upstream sent, byte for byte.
    pub(crate) body_equals_upstream: bool,
    pub(crate) stream: Option<StreamEnd>,
    /// The first byte was here before the upstream had sent its last.
    pub(crate) flows: bool,
    /// Usage is what the upstream said.
    pub(crate) usage_equals_upstream: bool,
}

/// How a stream of events has to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum StreamEnd {
    /// With `[DONE]`, and with its connection in order.
    Whole,
    /// Without `[DONE]`: the connection is cut, or an error is the last event.
    Broken,
}

/// What an upstream does in a case, and what has to have arrived there.
#[derive(Debug, Clone, Default)]
pub(crate) struct AtUpstream {
    pub(crate) does: Behaviour,
    pub(crate) calls: Option<u64>,
    /// Each call there has this header once, with this value.
    pub(crate) headers: BTreeMap<String, String>,
    /// None of these.
    pub(crate) no_headers: Vec<String>,
    /// Each body there is one that was sent, byte for byte.
    pub(crate) same_body: bool,
}

/// What an upstream does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Behaviour {
    #[default]
    Answer,
    /// Ends streams after so many events, and other answers in their middle.
    Break(u32),
    Fail(StatusCode),
    /// Reads the call and answers nothing.
    Hang,
    /// Nobody listens there.
    Down,
}

/// What a metric has to grow by in a case.
#[derive(Debug, Clone)]
pub(crate) struct Growth {
    pub(crate) metric: String,
    pub(crate) by: By,
    /// Nothing is asked where neither suite nor gateway says where it is.
    pub(crate) optional: bool,
}

/// How much.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum By {
    Count(u64),
    /// What upstreams said in the case, prompt and completion tokens.
    TotalTokens,
}

/// Why a file is no suite.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SuiteError {
    #[error("{0}")]
    Read(#[from] std::io::Error),
    #[error("{path}: {}", faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n  "))]
    Faults { path: String, faults: Vec<Fault> },
}

impl Suite {
    /// Reads a suite's file; all its faults are told at once.
    pub(crate) fn read(path: &Path) -> Result<Self, SuiteError> {
        let text = files::read(path).map_err(|error| near(path, error))?;
        form::parse(&text).map_err(|faults| SuiteError::Faults {
            path: path.display().to_string(),
            faults,
        })
    }
}

/// The error of a file that is not there, with the suite beside it that was meant, where there is one.
fn near(path: &Path, error: std::io::Error) -> std::io::Error {
    if error.kind() != std::io::ErrorKind::NotFound {
        return error;
    }
    let (dir, wanted) = (path.parent(), path.file_name());
    let dir = dir.filter(|dir| !dir.as_os_str().is_empty());
    let beside = std::fs::read_dir(dir.unwrap_or(Path::new("."))).ok();
    let names: BTreeSet<String> = beside
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| name.ends_with(".toml"))
        .collect();
    let names: BTreeSet<&str> = names.iter().map(String::as_str).collect();
    let wanted = wanted.unwrap_or_default().to_string_lossy();
    let few = wanted.chars().count().div_ceil(2);
    match nearest(&wanted, &names).first() {
        Some((distance, name)) if *distance <= few => {
            let meant = path.with_file_name(name);
            let says = format!("{error}; did you mean {}?", meant.display());
            std::io::Error::new(error.kind(), says)
        }
        _ => error,
    }
}
