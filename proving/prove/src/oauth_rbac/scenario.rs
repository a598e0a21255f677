//! `scenario.toml`: what is run, and the published figures that stand beside.
//!
//! Invariant: what parses here has bounds: requests, connections, seconds and tokens.
//! Not here: running it (`rig`), what is said of it (`table`).

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::host::program;
use crate::issuer::Kind;

#[cfg(test)]
mod tests;

/// The scenario, as a person writes it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Scenario {
    /// Runs of `requests` requests, one after another.
    pub(super) iterations: usize,
    /// Requests of one iteration.
    pub(super) requests: u64,
    /// Connections, each asking again when answered.
    pub(super) connections: usize,
    /// The longest that an iteration may take.
    pub(super) iteration_seconds: u64,
    /// How long the parts are looked at before anything is asked.
    pub(super) rest_seconds: f64,
    #[serde(rename = "variant")]
    pub(super) variants: Vec<Variant>,
    #[serde(rename = "limit")]
    pub(super) limits: Vec<Limit>,
    /// What each run without a limit has to keep: the most of a latency, the least of the others.
    #[serde(default)]
    pub(super) objectives: Figures,
    pub(super) reference: Reference,
}

/// One way to validate tokens.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Variant {
    pub(super) name: String,
    pub(super) summary: String,
    /// The gate's configuration, a template beside the scenario.
    #[serde(default)]
    pub(super) config: String,
    /// Other programs in the gate's place, each in front of the next and the last in front of the backend.
    #[serde(default)]
    pub(super) hops: Vec<Hop>,
    pub(super) token: Kind,
    /// Tokens; each request brings the next.
    #[serde(default = "one")]
    pub(super) tokens: usize,
    /// What a bad token must be told.
    #[serde(default = "unauthorized")]
    pub(super) bad_token_status: u16,
}

/// A program in the gate's place.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Hop {
    /// On `PATH`.
    pub(super) program: String,
    /// How to get it.
    pub(super) install: String,
    /// A path that answers with status 200 once it is ready.
    pub(super) ready: String,
    /// In which `{port}`, `{next_port}` and `{issuer_port}` are filled in.
    pub(super) args: Vec<String>,
}

impl Hop {
    /// Its program, or what to do about it.
    pub(super) fn found(&self) -> Result<PathBuf, String> {
        program::on_path(&self.program)
            .ok_or_else(|| format!("{} is not on PATH: {}", self.program, self.install))
    }
}

/// Shares of the CPU, by cgroup.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Limit {
    pub(super) name: String,
    /// Cores that the gate may use.
    #[serde(default)]
    pub(super) gate: Option<f64>,
    /// Cores that the identity service may use.
    #[serde(default)]
    pub(super) service: Option<f64>,
    /// The variants that it is for; without any, all.
    #[serde(default)]
    pub(super) variants: Vec<String>,
}

/// What somebody else published.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Reference {
    /// What was measured.
    pub(super) name: String,
    /// Where it is published, and on what it was measured.
    pub(super) source: String,
    #[serde(rename(deserialize = "run", serialize = "runs"))]
    pub(super) runs: Vec<ReferenceRun>,
}

#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ReferenceRun {
    pub(super) limit: String,
    pub(super) average: Figures,
    #[serde(default)]
    pub(super) iterations: Vec<Figures>,
    #[serde(default)]
    pub(super) parts: Vec<ReferencePart>,
}

/// Of one iteration, or the average of several; what is not known is left out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Figures {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) p50_ms: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) p95_ms: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) p99_ms: Option<f64>,
    /// Good answers a second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) rps: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) success_percent: Option<f64>,
}

#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ReferencePart {
    pub(super) part: String,
    pub(super) cores_rest: f64,
    pub(super) cores_peak: f64,
    pub(super) mib_rest: f64,
    pub(super) mib_peak: f64,
}

const fn one() -> usize {
    1
}

const fn unauthorized() -> u16 {
    401
}

/// What is taken of the file, where the command line says otherwise.
#[derive(Debug, Default)]
pub(super) struct Wanted<'a> {
    pub(super) variants: &'a [String],
    pub(super) limits: &'a [String],
    pub(super) iterations: Option<usize>,
    pub(super) requests: Option<u64>,
    pub(super) connections: Option<usize>,
}

impl Scenario {
    /// Reads `scenario.toml` in `dir`; the error names the file.
    pub(super) fn load(dir: &Path, wanted: &Wanted<'_>) -> Result<Self, String> {
        let path = dir.join("scenario.toml");
        let said = |says: String| format!("{}: {says}", path.display());
        let text = fs::read_to_string(&path).map_err(|error| said(error.to_string()))?;
        Self::parse(&text, wanted).map_err(said)
    }

    /// Reads a scenario; a fault names the field.
    pub(super) fn parse(text: &str, wanted: &Wanted<'_>) -> Result<Self, String> {
        let mut scenario: Self = toml::from_str(text).map_err(|error| error.to_string())?;
        let of = &mut scenario;
        of.iterations = wanted.iterations.unwrap_or(of.iterations);
        of.requests = wanted.requests.unwrap_or(of.requests);
        of.connections = wanted.connections.unwrap_or(of.connections);
        of.variants = chosen(&of.variants, wanted.variants, "variant", |v| &v.name)?;
        of.limits = chosen(&of.limits, wanted.limits, "limit", |l| &l.name)?;
        match scenario.fault() {
            None => Ok(scenario),
            Some(says) => Err(says),
        }
    }

    fn fault(&self) -> Option<String> {
        let fault = |says: &str| Some(says.to_owned());
        if !(1..=100).contains(&self.iterations) {
            return fault("`iterations` is from 1 to 100");
        }
        if !(1..=1_000_000).contains(&self.requests) {
            return fault("`requests` is from 1 to 1000000");
        }
        if !(1..=4_000).contains(&self.connections) || self.connections as u64 > self.requests {
            return fault("`connections` is from 1 to 4000, and no more than `requests`");
        }
        if !(1..=3_600).contains(&self.iteration_seconds) {
            return fault("`iteration_seconds` is from 1 to 3600");
        }
        if !(0.1..=60.0).contains(&self.rest_seconds) {
            return fault("`rest_seconds` is from 0.1 to 60");
        }
        for Variant {
            name,
            tokens,
            config,
            hops,
            ..
        } in &self.variants
        {
            if !(1..=200_000).contains(tokens) {
                return Some(format!("variant {name}: `tokens` is from 1 to 200000"));
            }
            if config.is_empty() == hops.is_empty() {
                return Some(format!("variant {name}: say either `config` or `hops`"));
            }
        }
        for Limit {
            name,
            gate,
            service,
            ..
        } in &self.limits
        {
            let is_core = |cores: &f64| (0.01..=1024.0).contains(cores);
            if !gate.iter().chain(service).all(is_core) {
                return Some(format!("limit {name}: a number of cores, at least 0.01"));
            }
        }
        None
    }
}

impl Limit {
    /// Whether it is for this variant.
    pub(super) fn is_for(&self, variant: &Variant) -> bool {
        self.variants.is_empty() || self.variants.contains(&variant.name)
    }
}

/// Those of `all` that are wanted, in the order wanted; all where none is named.
fn chosen<T: Clone>(
    all: &[T],
    wanted: &[String],
    what: &str,
    name: impl Fn(&T) -> &String,
) -> Result<Vec<T>, String> {
    if wanted.is_empty() {
        return Ok(all.to_vec());
    }
    let find = |wanted: &String| {
        all.iter()
            .find(|one| name(one) == wanted)
            .cloned()
            .ok_or_else(|| {
                let known: Vec<&str> = all.iter().map(|one| name(one).as_str()).collect();
                format!("no {what} named {wanted}; there are {}", known.join(", "))
            })
    };
    wanted.iter().map(find).collect()
}
