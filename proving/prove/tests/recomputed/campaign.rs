//! The figures of a campaign's report, from `requests.parquet`, `samples.parquet` and `pairs.parquet`.
//!
//! What the controller decided is taken as told: when phases and steps began and ended, and how many users there were.
//! Not here: what an objective of windows said.

mod client;
mod pages;
mod relay;

use std::fs;
use std::path::Path;

use serde_json::Value;

use super::rows::{Row, read};
use super::samples::Samples;
use super::{EXACT, Figures};

/// What no file of a campaign has.
const OF_NO_FILE: [&str; 18] = [
    "/version",
    "/scenario",
    "/reproduce",
    "/verify",
    "/published",
    // The controller's, of which all else is.
    "/phases/*/from_s",
    "/phases/*/to_s",
    "/steps/*/from_s",
    "/steps/*/to_s",
    "/steps/*/users",
    "/events",
    "/objectives/*/limit",
    // Of requests before the load.
    "/overhead/isolated",
    "/overhead/throttling/quota_cores",
    // The generator's own.
    "/certificate",
    "/generator/threads",
    "/generator/cores",
    // Of the corpus.
    "/prefix_cache",
];
/// What is counted as an error of the soak, and has no row.
const LEFT: &str = "no whole answer at the end";
/// In the place of a workload, of exchanges that other rows have, too.
const OF_BOTH: &str = "all, where both counted";
const TTFT: &str = "mean(engine:vllm:time_to_first_token_seconds)";
const HITS: &str =
    "ratio(engine:vllm:prefix_cache_hits_total, engine:vllm:prefix_cache_queries_total)";
/// What differs in the report of a campaign from what the files beside it come to.
pub(crate) fn differences(report: &Value, dir: &Path) -> Vec<String> {
    let rows = dir.join("requests.parquet");
    let pairs = dir.join("pairs.parquet");
    let mut again = Again {
        report,
        figures: Figures::of(report),
        rows: rows.is_file().then(|| read(&rows)),
        samples: Samples::read(&dir.join("samples.parquet")),
        pairs: pairs.is_file().then(|| read(&pairs)),
        log: access_log(dir),
    };
    again.all();
    let mut figures = again.figures;
    figures.except(&OF_NO_FILE);
    figures.finish()
}

struct Again<'a> {
    report: &'a Value,
    figures: Figures<'a>,
    /// None of a campaign in virtual time.
    rows: Option<Vec<Row>>,
    samples: Samples,
    /// What client and relay stamped of the same requests, where there was a relay.
    pairs: Option<Vec<Row>>,
    /// The lines of the gateway's own record, where it keeps one.
    log: Vec<Value>,
}

/// A span that a report tells of.
#[derive(Clone, Copy)]
struct Told {
    from: f64,
    to: f64,
}

impl Told {
    fn of(value: &Value) -> Self {
        let at = |name: &str| value[name].as_f64().expect("a moment");
        Self {
            from: at("from_s"),
            to: at("to_s"),
        }
    }

    fn seconds(self) -> f64 {
        self.to - self.from
    }

    fn has(self, at: f64) -> bool {
        // A moment has nanoseconds, and more digits than are written of a late one.
        at >= self.from - 5e-10 && at < self.to - 5e-10
    }
}

/// What a gateway that was started wrote of each exchange.
fn access_log(dir: &Path) -> Vec<Value> {
    let gateways = fs::read_dir(dir.join("rig"))
        .into_iter()
        .flatten()
        .flatten();
    let logs =
        gateways.filter_map(|entry| fs::read_to_string(entry.path().join("access.log")).ok());
    let all: Vec<String> = logs.collect();
    let lines = all.iter().flat_map(|log| log.lines());
    // The gate may have ended within its last line.
    lines
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect()
}

fn list<'a>(report: &'a Value, name: &str) -> &'a [Value] {
    report[name].as_array().map_or(&[], Vec::as_slice)
}

impl Again<'_> {
    fn all(&mut self) {
        let phases: Vec<Told> = list(self.report, "phases").iter().map(Told::of).collect();
        let Some(main) = list(self.report, "phases")
            .iter()
            .position(|phase| phase["name"] == "soak")
        else {
            panic!("a campaign without a soak: {}", self.report["reason"]);
        };
        self.saturation();
        self.asked_for(&phases, main);
        self.series(phases.last().expect("a phase").to);
        self.hardware(phases[main]);
        self.answers(phases[main]);
        let all = Told {
            from: 0.0,
            ..*phases.last().expect("a phase")
        };
        self.asked("/prefix_cache/measured_throughout", HITS, all);
        for at in 0..list(self.report, "steps").len() {
            self.step_of_pages(at);
        }
        self.tokens();
        let Some(rows) = self.rows.take() else {
            self.without_rows();
            return;
        };
        for (at, phase) in phases.iter().enumerate() {
            self.phase(at, *phase, &of_phase(&rows, *phase));
        }
        for at in 0..list(self.report, "steps").len() {
            self.step(at, &rows);
        }
        let of_soak = of_phase(&rows, phases[main]);
        self.soak(phases[main], &of_soak);
        self.profiles(phases[main], &of_soak, &rows);
        self.errors(&rows, &phases);
        self.sessions(&rows);
        self.witnesses(&rows);
        self.generator(&rows);
        self.overhead(phases[main], &rows);
    }

    /// The figures of the client, of which a campaign in virtual time has no rows.
    fn without_rows(&mut self) {
        for name in [
            "requests",
            "errors",
            "requests_per_s",
            "error_share",
            "peak_requests_per_s",
        ] {
            self.figures.except(&[&format!("/phases/*/{name}")]);
        }
        for name in [
            "requests",
            "errors",
            "requests_per_s",
            "ttft_p50_s",
            "ttft_p99_s",
            "tpot_mean_s",
            "e2e_mean_s",
        ] {
            self.figures.except(&[&format!("/steps/*/{name}")]);
        }
        self.figures.except(&[
            "/soak/requests",
            "/soak/requests_per_second",
            "/soak/e2e_s",
            "/latency/*/client",
            "/profiles",
            "/errors",
            "/series/requests_per_s/points/*/1",
            "/series/errors_per_s/points/*/1",
        ]);
    }

    /// What the controller asked for.
    fn asked_for(&mut self, phases: &[Told], main: usize) {
        for (at, phase) in phases.iter().enumerate() {
            let users = self.users(*phase);
            self.figures
                .equals(&format!("/phases/{at}/max_users"), users);
        }
        let users = self.users(phases[main]);
        self.figures.equals("/soak/users", users);
        self.figures.equals("/soak/seconds", phases[main].seconds());
    }

    /// The most users that the controller asked for in a span.
    fn users(&self, span: Told) -> f64 {
        let events = list(self.report, "events");
        let at = |event: &&Value| event["at_s"].as_f64().expect("a moment");
        let decided = events
            .iter()
            .filter(|event| event["users"].as_f64() > Some(0.0));
        let before = decided.clone().rfind(|event| at(event) <= span.from);
        let inside = decided.filter(|event| at(event) > span.from && at(event) < span.to);
        let users = inside
            .chain(before)
            .filter_map(|event| event["users"].as_f64());
        users.fold(0.0, f64::max)
    }

    fn saturation(&mut self) {
        let events = list(self.report, "events");
        let found = events.iter().find(|event| event["kind"] == "saturated");
        self.figures
            .equals("/t2_users", found.and_then(|event| event["users"].as_f64()));
        let first = list(self.report, "steps").first().expect("a baseline");
        let ttft = self.when_decided(Told::of(first));
        let in_ms: Vec<_> = ttft
            .iter()
            .map(|ttft| ttft.map(|ttft| ttft * 1e3))
            .collect();
        self.figures.is_one_of("/baseline_ttft_ms", &in_ms, EXACT);
        let factor = self.report["reproduce"]["scenario"]
            .as_str()
            .and_then(|text| {
                let line = text
                    .lines()
                    .find_map(|line| line.strip_prefix("times_baseline = "))?;
                line.parse::<f64>().ok()
            });
        let factor = factor.unwrap_or(3.0);
        let limit: Vec<_> = ttft
            .iter()
            .map(|ttft| ttft.map(|ttft| ttft * factor))
            .collect();
        self.figures.is_one_of("/ttft_limit_s", &limit, EXACT);
    }

    /// What the controller may have had of a span at its end: it decides by what has been read, and a reading of the last moments may come
    /// while it does.
    fn when_decided(&self, span: Told) -> Vec<Option<f64>> {
        let ends = (0..=20).map(|tenths| span.to - f64::from(tenths) / 10.0);
        let ends = ends.filter(|end| *end > span.from);
        ends.flat_map(|to| self.of_step(&Told { to, ..span }))
            .collect()
    }

    /// Both sides of each change, and the end.
    fn users_over_time(&mut self, points: &[Value], end: f64) {
        let mut own = Vec::new();
        let mut now = None;
        for event in list(self.report, "events") {
            let (at, users) = (
                event["at_s"].as_f64().expect("a moment"),
                event["users"].as_f64(),
            );
            if users == now || !is_of_controller(event) {
                continue;
            }
            own.extend(now.map(|before| (at, before)));
            own.extend(users.map(|users| (at, users)));
            now = users;
        }
        own.extend(now.map(|now| (end, now)));
        if own.len() != points.len() {
            let says = format!(
                "the users over time have {} points; by the events {own:?}",
                points.len()
            );
            self.figures.differences.push(says);
        }
        for (at, (moment, users)) in own.into_iter().enumerate() {
            self.figures
                .equals(&format!("/series/users/points/{at}/0"), moment);
            self.figures
                .equals(&format!("/series/users/points/{at}/1"), users);
        }
    }
}

/// Whether an event is a decision, and none of the host's.
fn is_of_controller(event: &Value) -> bool {
    let words = [
        "phase",
        "baseline",
        "advanced",
        "held",
        "saturated",
        "retracted",
        "ended",
        "silent_gate",
        "aborted",
    ];
    event["kind"]
        .as_str()
        .is_some_and(|kind| words.contains(&kind))
}

/// What was due in a phase. Users who are told that all is over may ask once more, which is of none.
fn of_phase(rows: &[Row], phase: Told) -> Vec<&Row> {
    rows.iter().filter(|row| phase.has(row.due())).collect()
}

#[expect(clippy::cast_precision_loss, reason = "counts below 2^53")]
fn float(count: i64) -> f64 {
    count as f64
}
