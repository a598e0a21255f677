//! `subject.toml` as a person writes it.
//!
//! Invariant: whatever parses here makes sense together; each fault names the file and the field.
//! Not here: finding the program (`subject`), fetching it (`subject::install`).

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::SubjectError;
use crate::issuer::Kind;

/// A subject's manifest.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Manifest {
    /// One line for the reader of a table.
    pub(crate) summary: String,
    /// Where the program is.
    pub(crate) find: Find,
    /// How to get it.
    #[serde(default)]
    pub(crate) install: Option<Install>,
    /// Arguments that make it print its version; without them, the pinned package is its version.
    #[serde(default)]
    pub(crate) version: Vec<String>,
    /// Arguments that start it in the foreground, with placeholders.
    #[serde(default)]
    pub(crate) start: Vec<String>,
    /// Arguments with which the program is run once before its first start, with placeholders; it prints a JSON object,
    /// whose members fill `{prepared.NAME}` in the client's headers.
    #[serde(default)]
    pub(crate) prepare: Vec<String>,
    /// Environment variables, with placeholders.
    #[serde(default)]
    pub(crate) env: BTreeMap<String, String>,
    /// Another subject whose templates are rendered too; files of the same name are ours.
    #[serde(default)]
    pub(crate) like: Option<String>,
    /// A subject beside it that takes its place under a campaign's load: the same policies, with limits that a load keeps.
    #[serde(default)]
    pub(crate) under_load: Option<String>,
    /// Its threads that serve requests have names that begin so; their CPU is also told apart.
    #[serde(default)]
    pub(crate) workers: Option<String>,
    /// So many of it run side by side, each with ports and a directory of its own; requests go to them in turn, and a CPU
    /// quota is each one's.
    #[serde(default = "one_replica")]
    pub(crate) replicas: u16,
    /// It must answer after at most so many seconds.
    #[serde(default = "fifteen")]
    pub(crate) ready_seconds: u64,
    /// How it is to be spoken to.
    #[serde(default)]
    pub(crate) client: Client,
    /// Where it shows what suites ask for, by their names.
    #[serde(default)]
    pub(crate) metrics: BTreeMap<String, Metric>,
    /// Where it shows what became of its own counts of tokens, if it counts.
    #[serde(default)]
    pub(crate) counting: Option<Counting>,
    /// The subject that is the same without the meter: CPU for a call is compared with its.
    #[serde(default)]
    pub(crate) unmetered: Option<String>,
    /// How its answers must equal the upstream's.
    #[serde(default)]
    pub(crate) body: Body,
    /// With `body = "json"`: members, by path, that it may add, drop or change.
    #[serde(default)]
    pub(crate) differs: Vec<String>,
    /// Dialects in which clients may speak to it, each translated to the upstream's.
    #[serde(default)]
    pub(crate) translates: Vec<Dialect>,
    /// Streaming is known not to work; the fault is a row, and no reason to distrust the race.
    #[serde(default)]
    pub(crate) known_stream_fault: Option<String>,
    /// Takes part only where it is asked for by name: its start takes long.
    #[serde(default)]
    pub(crate) only_when_named: bool,
    /// Takes part only in scenarios whose names begin with one of these; without any, in all.
    #[serde(default)]
    pub(crate) scenarios: Vec<String>,
}

/// How to find the program.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Find {
    /// The first of these that exists: a name on PATH, or an absolute path.
    Path(Vec<String>),
    /// A binary of this workspace, built in release.
    Cargo(String),
    /// A path inside what `install` fetched; `*` stands for any one name.
    Installed(String),
    /// No gateway: the upstream itself.
    Upstream,
}

/// How to get the program.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Install {
    /// A package of the distribution.
    Apt(String),
    /// Pinned packages of the Python registry, in an environment of their own.
    Pip(Vec<String>),
    /// Pinned packages of the npm registry, in a directory of their own.
    Npm(Vec<String>),
    /// No registry carries it: what a person has to do.
    ByHand(String),
}

/// How answers are compared with the upstream's.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Body {
    /// The same bytes.
    #[default]
    Bytes,
    /// The same JSON value, apart from the members in `differs`: it parses and writes anew.
    Json,
}

/// What clients speak, where the upstream does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Dialect {
    /// Anthropic's messages.
    Anthropic,
}

/// What the client sends besides the body, with placeholders.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Client {
    /// Instead of `/v1/chat/completions`.
    #[serde(default)]
    pub(crate) path: Option<String>,
    /// Instead of `race-model`.
    #[serde(default)]
    pub(crate) model: Option<String>,
    /// Further headers; `authorization` stands in place of the usual one.
    #[serde(default)]
    pub(crate) headers: BTreeMap<String, String>,
    /// Tokens for `{token}` in the headers.
    #[serde(default)]
    pub(crate) tokens: Option<Tokens>,
}

/// Where a metric is, with placeholders.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Metric {
    /// A page in Prometheus's text format.
    pub(crate) url: String,
    /// A name with the labels that its series have: `refused_total{workload="a"}`.
    pub(crate) series: String,
}

/// Where a subject shows what became of its own counts: series of one page, each a name with labels.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Counting {
    /// A page in Prometheus's text format, with placeholders.
    pub(crate) url: String,
    /// Calls that ended.
    pub(crate) calls: String,
    /// What became of their counts.
    pub(crate) results: String,
    /// The label of those series that says what.
    pub(crate) label: String,
    /// Its values that are counts; all others are reasons why there is none.
    pub(crate) counted: Vec<String>,
    /// Is above 0 while something waits to be counted: nothing is measured before it is 0.
    #[serde(default)]
    pub(crate) waiting: Option<String>,
    /// Seconds spent counting.
    #[serde(default)]
    pub(crate) seconds: Option<String>,
    /// Counts that were remembered.
    #[serde(default)]
    pub(crate) hits: Option<String>,
    /// Those that had to be made.
    #[serde(default)]
    pub(crate) misses: Option<String>,
    /// Calls without a row in its ledger.
    #[serde(default)]
    pub(crate) unwritten: Option<String>,
}

/// Tokens that callers bring, each request the next.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Tokens {
    /// How they are made.
    pub(crate) kind: Kind,
    /// How many there are.
    #[serde(default = "one")]
    pub(crate) count: usize,
}

impl Client {
    /// This with `value` in place of `placeholder`, in all headers.
    pub(crate) fn with(&self, placeholder: &str, value: &str) -> Self {
        let fill =
            |(name, text): (&String, &String)| (name.clone(), text.replace(placeholder, value));
        Self {
            headers: self.headers.iter().map(fill).collect(),
            ..self.clone()
        }
    }
}

/// Tokens of one subject at most: they are kept in memory with their requests.
const TOKENS_MAX: usize = 200_000;
/// Replicas at most.
const MOST_REPLICAS: u16 = 16;

const fn one() -> usize {
    1
}

const fn one_replica() -> u16 {
    1
}

const fn fifteen() -> u64 {
    15
}

/// Reads a manifest; `path` is for the faults.
pub(super) fn parse(path: &Path, text: &str) -> Result<Manifest, SubjectError> {
    let parsed = toml::from_str(text);
    let manifest: Manifest = parsed.map_err(|source| SubjectError::Parse {
        path: path.into(),
        source: Box::new(source),
    })?;
    match nonsense(&manifest) {
        None => Ok(manifest),
        Some(says) => Err(SubjectError::Field {
            path: path.into(),
            says,
        }),
    }
}

/// Fields that make no sense together.
fn nonsense(manifest: &Manifest) -> Option<&'static str> {
    let fetched = matches!(manifest.install, Some(Install::Pip(_) | Install::Npm(_)));
    match &manifest.find {
        Find::Path(names) if names.is_empty() => Some("`find.path` names no program"),
        Find::Path(_) | Find::Cargo(_) | Find::Installed(_) if manifest.start.is_empty() => {
            Some("`start` has no arguments")
        }
        Find::Upstream if !manifest.start.is_empty() => {
            Some("`start` has no meaning with `find = \"upstream\"`")
        }
        Find::Installed(_) if !fetched => {
            Some("`find.installed` needs `install = { pip = […] }` or `{ npm = […] }`")
        }
        _ if manifest
            .client
            .tokens
            .as_ref()
            .is_some_and(|tokens| !(1..=TOKENS_MAX).contains(&tokens.count)) =>
        {
            Some("`client.tokens.count` is from 1 to 200000")
        }
        _ if manifest
            .counting
            .as_ref()
            .is_some_and(|counting| counting.counted.is_empty()) =>
        {
            Some("`counting.counted` names no result that is a count")
        }
        _ if !manifest.differs.is_empty() && manifest.body == Body::Bytes => {
            Some("`differs` needs `body = \"json\"`")
        }
        _ => fault_of_replicas(manifest).or_else(|| unpinned(manifest.install.as_ref())),
    }
}

/// What one of several cannot say for all.
fn fault_of_replicas(manifest: &Manifest) -> Option<&'static str> {
    if !(1..=MOST_REPLICAS).contains(&manifest.replicas) {
        return Some("`replicas` is from 1 to 16");
    }
    let is_alone = manifest.find == Find::Upstream
        || manifest.counting.is_some()
        || !manifest.prepare.is_empty();
    (is_alone && manifest.replicas > 1).then_some(
        "`replicas` has no meaning with `find = \"upstream\"`, `counting` or `prepare`, which are of one",
    )
}

/// A version that is not pinned is another subject tomorrow.
fn unpinned(install: Option<&Install>) -> Option<&'static str> {
    match install {
        Some(Install::Pip(packages)) if !packages.iter().all(|name| name.contains("==")) => {
            Some("`install.pip`: each package needs its version, as in `name==1.2.3`")
        }
        Some(Install::Npm(packages))
            if !packages
                .iter()
                .all(|name| name.get(1..).is_some_and(|rest| rest.contains('@'))) =>
        {
            Some("`install.npm`: each package needs its version, as in `name@1.2.3`")
        }
        Some(Install::Pip(packages) | Install::Npm(packages)) if packages.is_empty() => {
            Some("`install` names no package")
        }
        _ => None,
    }
}
