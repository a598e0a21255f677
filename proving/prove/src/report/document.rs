//! What a campaign came to, as `report.json` keeps it: everything that a report shows.
//!
//! Invariant: names are a contract, and are only added to; a figure that there is not is `null` or left out, and never
//! 0. Times are seconds since the campaign began unless their names say otherwise.
//! Not here: measuring, pages.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The version of the document.
pub(crate) const VERSION: u32 = 1;

/// The whole of it. What `prove run --json` prints begins with the members that its documentation names.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Document {
    pub(crate) version: u32,
    pub(crate) verdict: Verdict,
    /// One sentence: why the verdict is what it is.
    pub(crate) reason: String,
    /// What a pass does not say, in words: saturation was not reached, the generator is unproven. Empty of any other verdict.
    #[serde(default)]
    pub(crate) reservations: Vec<String>,
    pub(crate) baseline_ttft_ms: Option<f64>,
    /// Users at the saturation point; `null` where none was found.
    pub(crate) t2_users: Option<u32>,
    /// Whether a gate ended the campaign at once.
    pub(crate) t3: bool,
    pub(crate) soak: Option<Soak>,
    pub(crate) scenario: Scenario,
    pub(crate) phases: Vec<Phase>,
    pub(crate) latency: Vec<Latency>,
    pub(crate) steps: Vec<Step>,
    pub(crate) events: Vec<Event>,
    /// T2's threshold in seconds, where it is relative to the baseline.
    pub(crate) ttft_limit_s: Option<f64>,
    /// Points over time, by name: `users`, `ttft_s`, `kv_cache`, `nvlink_bytes_per_s`, `preemptions`, `requests_per_s`,
    /// `errors_per_s`, `running`, `waiting`, `upstream_s`, `downstream_s`, `gate_s`, `gpu_utilisation`, `power_w`.
    pub(crate) series: BTreeMap<String, Series>,
    pub(crate) overhead: Option<Overhead>,
    pub(crate) profiles: Vec<Profile>,
    /// As `experiment::certificate` writes it; `null` of a simulated campaign.
    pub(crate) certificate: Option<Value>,
    pub(crate) generator: Option<Generator>,
    pub(crate) tokens: Vec<Tokens>,
    pub(crate) prefix_cache: PrefixCache,
    pub(crate) errors: Vec<Errors>,
    pub(crate) verify: Option<Verified>,
    pub(crate) objectives: Vec<Objective>,
    pub(crate) published: Vec<Published>,
    pub(crate) hardware: Hardware,
    pub(crate) reproduce: Reproduce,
}

/// How a campaign ended, as its exit code tells it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Verdict {
    Passed,
    /// An objective was missed, or too many requests failed.
    SloFailed,
    /// A gate ended it: the memory boundary.
    T3Stop,
    /// The generator could not keep up: no figure counts.
    GeneratorVoid,
    /// A target could not be reached, or fell silent for too long.
    Unreachable,
    /// The functional suite failed.
    VerifyFailed,
    /// Somebody ended it.
    Interrupted,
}

/// The soak in short.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Soak {
    pub(crate) users: u32,
    pub(crate) seconds: f64,
    pub(crate) requests: u64,
    pub(crate) ttft_ms: Option<f64>,
    pub(crate) tpot_ms: Option<f64>,
    pub(crate) e2e_s: Option<f64>,
    pub(crate) requests_per_second: f64,
    /// Mean share of KV blocks in use, 0 to 1.
    pub(crate) kv_cache: Option<f64>,
    pub(crate) preemptions: Option<u64>,
}

/// What was run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Scenario {
    pub(crate) name: String,
    pub(crate) title: String,
    /// Whether the engine and its users were simulated in virtual time.
    pub(crate) is_virtual: bool,
    /// Whether what answered was a simulated engine; of virtual time it always was.
    #[serde(default)]
    pub(crate) is_engine_simulated: bool,
    pub(crate) started_unix_ms: u64,
    pub(crate) seconds: f64,
    /// Gateway, engine, model, hardware: names and what is known of each.
    pub(crate) under_test: BTreeMap<String, String>,
}

/// A row of Table 1.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Phase {
    /// `verify`, `baseline`, `ramp`, `retract` or `soak`.
    pub(crate) name: String,
    pub(crate) from_s: f64,
    pub(crate) to_s: f64,
    pub(crate) max_users: u32,
    pub(crate) requests: u64,
    pub(crate) requests_per_s: f64,
    /// The greatest rate over ten seconds.
    pub(crate) peak_requests_per_s: f64,
    pub(crate) errors: u64,
    pub(crate) error_share: f64,
}

/// A row of Table 2: one measure in the soak (or in the last phase there was), seconds.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Latency {
    /// `TTFT`, `TPOT`, `ITL`, `queue`, `prefill`, `E2E`.
    pub(crate) measure: String,
    /// By the engine's own histograms: sum over count.
    pub(crate) engine_mean_s: Option<f64>,
    pub(crate) client: Option<Quantiles>,
}

/// Seconds.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(crate) struct Quantiles {
    pub(crate) count: u64,
    pub(crate) mean: f64,
    pub(crate) p50: f64,
    pub(crate) p90: f64,
    pub(crate) p95: f64,
    pub(crate) p99: f64,
    pub(crate) p999: f64,
    pub(crate) max: f64,
}

/// A window of the baseline or the ramp: a point of Figure 4 and of the knee plot.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Step {
    pub(crate) users: u32,
    pub(crate) from_s: f64,
    pub(crate) to_s: f64,
    pub(crate) requests: u64,
    pub(crate) requests_per_s: f64,
    pub(crate) output_tokens_per_s: Option<f64>,
    /// As the engine says, or as users had it where the engine says nothing.
    pub(crate) ttft_mean_s: Option<f64>,
    /// As users had it.
    pub(crate) ttft_p50_s: Option<f64>,
    pub(crate) ttft_p99_s: Option<f64>,
    pub(crate) tpot_mean_s: Option<f64>,
    pub(crate) e2e_mean_s: Option<f64>,
    pub(crate) kv_cache: Option<f64>,
    pub(crate) running: Option<f64>,
    pub(crate) waiting: Option<f64>,
    pub(crate) preemptions: Option<u64>,
    pub(crate) errors: u64,
    pub(crate) is_stable: bool,
    /// Which gates were open.
    pub(crate) says: String,
}

/// A decision.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Event {
    pub(crate) at_s: f64,
    pub(crate) kind: String,
    pub(crate) users: u32,
    pub(crate) says: String,
}

/// A figure over time.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Series {
    pub(crate) unit: String,
    /// How it was read: a query, or what the client counted.
    pub(crate) source: String,
    /// Seconds and value; `null` where there was none. At most 2,000.
    pub(crate) points: Vec<(f64, Option<f64>)>,
}

/// Table 3 and what lies behind it. Seconds.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Overhead {
    /// `paired`: each request's own stamps at client and upstream; `interleaved`: requests with and without the gateway
    /// in turn; `record`: the gate's own record of each exchange.
    pub(crate) method: String,
    pub(crate) requests: u64,
    /// From the request at the upstream to the last byte from it, mean.
    pub(crate) upstream_s: f64,
    /// From the request at the client to its last byte, mean.
    pub(crate) downstream_s: f64,
    /// `paired`: the way there and the first byte back, of each request, two hops of loopback each way among it.
    /// `interleaved`: differences of means and quantiles, one hop each way among them.
    pub(crate) gate: Quantiles,
    /// `paired`, means: `client to gate and upstream`, `first byte back`, `last byte back`. `interleaved`: differences and
    /// their intervals.
    pub(crate) parts: Vec<(String, f64)>,
    /// `paired`: how much later the last byte was at the client than at the relay, a hop of loopback each among it.
    #[serde(default)]
    pub(crate) last_byte: Option<Quantiles>,
    /// `paired`: the same less the first byte's: by how much the answer, and the events of a stream, were drawn out.
    #[serde(default)]
    pub(crate) drawn_out: Option<Quantiles>,
    /// Where the price of loopback is known.
    #[serde(default)]
    pub(crate) isolated: Option<Isolated>,
    /// What the gateway's own histogram says of the same time, mean.
    pub(crate) own_histogram_s: Option<f64>,
    /// The same time by the gateway's own record of each exchange, mean, of the exchanges that the client had.
    pub(crate) own_record_s: Option<f64>,
    /// Its distribution: time, and the share of requests at or below.
    pub(crate) cdf: Vec<(f64, f64)>,
    pub(crate) throttling: Option<Throttling>,
}

/// The gateway's time without what the way to it and from it takes, by medians. Seconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Isolated {
    /// Less one hop of loopback each way: what a client would save without the gateway.
    pub(crate) net_of_one_hop_s: f64,
    /// Less two hops each way, as a relay in the gateway's place has them: what the gateway's own histogram is of.
    pub(crate) own_s: f64,
}

/// What the kernel's scheduler did to the gateway's cgroup in the campaign.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Throttling {
    pub(crate) quota_cores: Option<f64>,
    pub(crate) periods: u64,
    pub(crate) throttled_periods: u64,
    pub(crate) throttled_s: f64,
}

/// A profile in the soak (or in the last phase there was).
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Profile {
    pub(crate) name: String,
    /// The law of its pauses, as asked for.
    pub(crate) law: String,
    pub(crate) users: u32,
    pub(crate) requests: u64,
    pub(crate) requests_per_s: f64,
    pub(crate) errors: u64,
    pub(crate) prompt_tokens_mean: Option<f64>,
    pub(crate) output_tokens_mean: Option<f64>,
    pub(crate) think_mean_s: Option<f64>,
    pub(crate) ttft: Option<Quantiles>,
    pub(crate) tpot: Option<Quantiles>,
    pub(crate) e2e: Option<Quantiles>,
    /// The share of its prompts' tokens that the engine had cached.
    pub(crate) cached_share: Option<f64>,
}

/// The client itself.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Generator {
    pub(crate) threads: usize,
    /// Cores that its threads used.
    pub(crate) cores: f64,
    /// Sent after it was due.
    pub(crate) lag: Option<Quantiles>,
    pub(crate) rows_lost: u64,
    /// `good`, `failed`, `unproven` or `void`.
    pub(crate) verdict: String,
}

/// Tokens and money of one workload and model over the whole campaign.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Tokens {
    pub(crate) workload: String,
    pub(crate) model: String,
    /// Of the workload, to whichever model: its rows have the same figure. In a row of what both counted, those exchanges.
    pub(crate) requests: u64,
    pub(crate) input_tokens: u64,
    pub(crate) output_tokens: u64,
    /// By the gateway's own count, where it has one.
    pub(crate) input_counted: Option<u64>,
    pub(crate) output_counted: Option<u64>,
    /// Reported over counted, less one.
    pub(crate) drift: Option<f64>,
    /// In the currency of the gateway's prices.
    pub(crate) cost: Option<f64>,
    pub(crate) currency: Option<String>,
}

impl Tokens {
    /// Stands for the workload, in a row of exchanges whose tokens both the engine reported and the gateway counted: they
    /// are in the rows of their workloads, too.
    pub(crate) const COUNTED_TWICE: &str = "all, where both counted";

    /// Whether what is in this row is in others, too.
    pub(crate) fn is_in_others(&self) -> bool {
        self.workload == Self::COUNTED_TWICE
    }
}

/// Shares of prompt tokens.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct PrefixCache {
    /// By the corpus, as if nothing were ever evicted.
    pub(crate) predicted: Option<f64>,
    /// In the soak.
    pub(crate) measured: Option<f64>,
    /// From the first request to the last one, as what is foretold is of all of them.
    #[serde(default)]
    pub(crate) measured_throughout: Option<f64>,
    /// Of the corpus.
    pub(crate) sessions: Option<u64>,
    /// Different ones that were sent.
    pub(crate) unique_sessions: Option<u64>,
    /// Of the corpus: those that say what none before says.
    #[serde(default)]
    pub(crate) corpus_unique_sessions: Option<u64>,
    /// Begun, as often as they were.
    #[serde(default)]
    pub(crate) begun_sessions: Option<u64>,
    /// As `predicted`, with sessions that came again.
    #[serde(default)]
    pub(crate) expected: Option<f64>,
}

/// With a smaller share of sessions that are no repetition, figures are of a cache.
const LEAST_UNIQUE: f64 = 0.1;

impl PrefixCache {
    /// With the hits that are expected of what was sent, by the share of sessions that are no repetition.
    pub(crate) fn expecting(mut self, hits: impl FnOnce(f64) -> f64) -> Self {
        self.expected = self.unique_share().map(hits);
        self
    }

    /// The share of sessions that are no repetition; `None` where there were none.
    #[expect(clippy::cast_precision_loss, reason = "sessions below 2^53")]
    pub(crate) fn unique_share(&self) -> Option<f64> {
        let begun = self.begun_sessions.filter(|begun| *begun > 0)?;
        let sent = self.unique_sessions?;
        let unique = self
            .corpus_unique_sessions
            .map_or(sent, |most| sent.min(most));
        Some(unique.min(begun) as f64 / begun as f64)
    }
}

/// Requests that failed alike.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Errors {
    pub(crate) phase: String,
    pub(crate) kind: String,
    pub(crate) count: u64,
    /// What the first said.
    pub(crate) says: Option<String>,
}

/// The functional suite.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Verified {
    pub(crate) suite: String,
    pub(crate) passed: usize,
    pub(crate) failed: usize,
    pub(crate) cases: Vec<Case>,
}

/// One invariant.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) passed: bool,
    pub(crate) seconds: f64,
    /// What has to hold, in words.
    pub(crate) expected: String,
    /// What was found.
    pub(crate) got: String,
    /// Lines that prove it.
    pub(crate) evidence: Vec<String>,
}

/// A service level of the soak.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Objective {
    pub(crate) name: String,
    pub(crate) query: String,
    pub(crate) limit: f64,
    pub(crate) value: Option<f64>,
    pub(crate) kept: bool,
}

/// A figure that somebody published, beside ours.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Published {
    pub(crate) name: String,
    pub(crate) unit: String,
    pub(crate) published: f64,
    pub(crate) ours: Option<f64>,
    /// Why they differ.
    pub(crate) note: String,
}

/// Means over the soak (or the last phase there was).
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Hardware {
    pub(crate) kv_cache_mean: Option<f64>,
    pub(crate) kv_cache_max: Option<f64>,
    pub(crate) nvlink_bytes_per_s: Option<f64>,
    /// Which ends were added up.
    pub(crate) nvlink_convention: String,
    pub(crate) gpu_utilisation: Option<f64>,
    pub(crate) power_w: Option<f64>,
    pub(crate) gpus: Option<u32>,
}

/// What is needed to do it again.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Reproduce {
    pub(crate) command: String,
    pub(crate) tool: String,
    pub(crate) seed: u64,
    /// SHA-256 of every input file, by its name.
    pub(crate) hashes: BTreeMap<String, String>,
    pub(crate) versions: BTreeMap<String, String>,
    /// CPU, cores, memory, kernel.
    pub(crate) machine: BTreeMap<String, String>,
    /// Files that lie beside the report.
    pub(crate) files: Vec<String>,
    /// The scenario, as it was.
    pub(crate) scenario: String,
}

/// What the figures of a campaign are of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Evidence {
    /// Requests to an engine that is not known to be simulated.
    Real,
    /// Requests in real time, whose answers, times and GPUs a model of an engine made.
    SimulatedEngine,
    /// Nothing was sent.
    Virtual,
}

impl Evidence {
    /// In a table.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Real => "real",
            Self::SimulatedEngine => "SIMULATED ENGINE",
            Self::Virtual => "SIMULATED ENGINE, virtual time",
        }
    }

    /// What nobody may miss; `None` where everything was real.
    pub(crate) const fn banner(self) -> Option<&'static str> {
        match self {
            Self::Real => None,
            Self::SimulatedEngine => Some(
                "SIMULATED ENGINE: requests were sent in real time, but answers, latencies, KV cache, GPUs and saturation are \
                 those of a model of an engine",
            ),
            Self::Virtual => Some(
                "SIMULATED ENGINE and users, in virtual time; no request was sent to a real system",
            ),
        }
    }

    /// The name of a report's file that ends like this, such as `html`: a file that is passed on tells it, too.
    pub(crate) fn file(self, end: &str) -> String {
        match self {
            Self::Real => format!("report.{end}"),
            Self::SimulatedEngine | Self::Virtual => format!("report.simulated-engine.{end}"),
        }
    }
}

impl Document {
    /// What its figures are of.
    pub(crate) const fn evidence(&self) -> Evidence {
        match (self.scenario.is_virtual, self.scenario.is_engine_simulated) {
            (true, _) => Evidence::Virtual,
            (false, true) => Evidence::SimulatedEngine,
            (false, false) => Evidence::Real,
        }
    }

    /// What its pass does not say. Of a document without the member it is found anew.
    pub(crate) fn found_reservations(&self) -> Vec<String> {
        let is_passed = self.verdict == Verdict::Passed;
        let generator = self.generator.as_ref();
        let found = [
            (self.t2_users.is_none(), "saturation was not reached"),
            (
                generator.is_some_and(|generator| generator.verdict == "unproven"),
                "the generator is unproven",
            ),
        ];
        let found = found.into_iter().filter(|(holds, _)| is_passed && *holds);
        let found = found.map(|(_, says)| says.to_owned());
        let few = self.few_sessions().filter(|_| is_passed);
        found.chain(few).collect()
    }

    /// Whether the same sessions came again and again, in words.
    pub(crate) fn few_sessions(&self) -> Option<String> {
        let cache = &self.prefix_cache;
        cache.unique_share().filter(|share| *share < LEAST_UNIQUE)?;
        let (unique, begun) = (cache.unique_sessions?, cache.begun_sessions?);
        Some(format!(
            "only {unique} different sessions were sent, {begun} times: what was measured is the prefix cache"
        ))
    }
}

impl Verdict {
    /// As the process ends; 2 is what could not be done at all.
    pub(crate) const fn exit_code(self) -> u8 {
        match self {
            Self::Passed => 0,
            Self::SloFailed => 1,
            Self::T3Stop => 3,
            Self::GeneratorVoid => 4,
            Self::Unreachable => 5,
            Self::VerifyFailed => 6,
            Self::Interrupted => 130,
        }
    }

    /// The word for it.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::SloFailed => "slo_failed",
            Self::T3Stop => "t3_stop",
            Self::GeneratorVoid => "generator_void",
            Self::Unreachable => "unreachable",
            Self::VerifyFailed => "verify_failed",
            Self::Interrupted => "interrupted",
        }
    }
}
