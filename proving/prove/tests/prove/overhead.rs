//! A relay with a delay on purpose is a gateway whose own time is known.
//!
//! How near to it a measurement comes is for a quiet machine to say (`timing_…`). That nothing takes less than the delay,
//! and what is counted and written, holds on any.

use std::cell::Cell;
use std::fs;
use std::net::SocketAddr;
use std::process::{Command, Stdio};

use serde_json::Value;
use testing::found;

use super::serving::{self, Ends};
use super::{PROVE, ports};

const DELAY_US: f64 = 3_000.0;
/// What two processes more on the way may cost on a busy machine, at the median.
const MOST_US: f64 = 6_000.0;

/// How often a time is measured until it is right: a busy machine delays whatever runs, while what measures wrongly does so in
/// a quiet moment as well.
const ATTEMPTS: usize = 8;

/// Measures until the figures are right, which `is_right` tells, and fails with what was said last.
fn measured(measure: impl Fn() -> Value, is_right: impl Fn(&Value) -> bool) {
    let mut said = Value::Null;
    for _ in 0..ATTEMPTS {
        said = measure();
        if is_right(&said) {
            return;
        }
    }
    panic!("{said:#}");
}

fn free() -> SocketAddr {
    ports::loopback(ports::free().expect("a port"))
}

/// `prove` with these arguments, on a port that nobody took in between.
fn serve(args: impl Fn(SocketAddr) -> Vec<String>) -> (Ends, SocketAddr) {
    let (serving, [at]) = serving::serve(|[at]| {
        let mut command = Command::new(PROVE);
        command
            .args(args(at))
            .stderr(Stdio::null())
            .stdout(Stdio::null());
        command
    });
    (serving, at)
}

fn overhead(args: &[&str]) -> Value {
    let output = Command::new(PROVE)
        .arg("overhead")
        .args(args)
        .output()
        .expect("prove runs");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{said}{errors}");
    serde_json::from_str(&said).expect("JSON")
}

fn part(overhead: &Value, name: &str) -> f64 {
    let parts = overhead["parts"].as_array().expect("parts");
    let part = parts.iter().find(|part| part[0] == name);
    part.expect(name)[1].as_f64().expect("seconds") * 1e6
}

/// An upstream, a body, and where what stands before it will write and listen.
struct Bench {
    dir: tempfile::TempDir,
    body: String,
    out: String,
    upstream: SocketAddr,
    tap: SocketAddr,
    /// Of the relay that was begun last.
    gateway: Cell<SocketAddr>,
    _upstream: Ends,
}

impl Bench {
    fn new(body: &str) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let path = |name: &str| dir.path().join(name).display().to_string();
        let (file, out) = (path("body.json"), path("stamps.jsonl"));
        fs::write(&file, body).expect("a file");
        let of_port = |at: SocketAddr| {
            let port = at.port().to_string();
            vec!["upstream".to_owned(), "--port".to_owned(), port]
        };
        let (serving, upstream) = serve(of_port);
        Self {
            body: file,
            out,
            upstream,
            tap: free(),
            gateway: Cell::new(upstream),
            _upstream: serving,
            dir,
        }
    }

    /// A relay in a gateway's place, which goes on to `to`.
    fn relay(&self, to: SocketAddr, further: &[&str]) -> Ends {
        let to = to.to_string();
        let (relaying, at) = serve(|at| {
            let at = at.to_string();
            let args = [
                "tap",
                "--listen",
                &at,
                "--upstream",
                &to,
                "--out",
                &self.out,
            ];
            [&args[..], further]
                .concat()
                .iter()
                .map(ToString::to_string)
                .collect()
        });
        self.gateway.set(at);
        relaying
    }

    fn overhead(&self, further: &[&str]) -> Value {
        let target = format!("http://{}", self.gateway.get());
        overhead(&[&["--target", &target, "--body", &self.body], further].concat())
    }

    fn paired(&self, further: &[&str]) -> Value {
        let (upstream, tap) = (self.upstream.to_string(), self.tap.to_string());
        self.overhead(&[&["--upstream", &upstream, "--tap", &tap], further].concat())
    }

    fn stamps(&self) -> String {
        fs::read_to_string(self.dir.path().join("stamps.jsonl")).expect("a file")
    }
}

const BODY: &str = "{\"model\":\"m\",\"messages\":[]}";
const DELAYED: [&str; 2] = ["--delay-us", "3000"];

/// Of so many requests, those that were timed on both sides: a machine that stands still loses some.
fn counted(said: &Value, requests: u64) {
    let paired = said["overhead"]["requests"].as_u64().expect("a count");
    assert!((requests / 2..=requests).contains(&paired), "{said:#}");
}

fn difference(said: &Value) -> [f64; 3] {
    ["", ", 95 % from", ", 95 % to"]
        .map(|which| part(&said["overhead"], &format!("difference of medians{which}")))
}

#[test]
fn a_delay_is_in_every_pair_of_stamps_and_asking_in_turn_writes_none() {
    let bench = Bench::new(BODY);
    let relaying = bench.relay(bench.tap, &DELAYED);
    let said = bench.paired(&["--requests", "40", "--rounds", "4"]);
    let result = &said["result"];
    assert_eq!(result["overhead"]["method"], "paired", "{said:#}");
    counted(result, 40);
    let gate = result["median_us"]["gate"].as_f64();
    assert!(gate >= Some(DELAY_US), "nothing takes less: {said:#}");
    for of in ["isolated_us_by_medians", "two_hops_us_by_medians"] {
        assert!(result[of]["median"].is_number(), "{of}: {said:#}");
    }
    drop(relaying);

    let _relaying = bench.relay(bench.upstream, &DELAYED);
    let direct = format!("http://{}", bench.upstream);
    let said = bench.overhead(&["--direct", &direct, "--requests", "40"]);
    assert_eq!(said["overhead"]["method"], "interleaved");
    assert_eq!(said["overhead"]["requests"], 40);
    let through = said["overhead"]["downstream_s"].as_f64();
    assert!(
        through >= Some(DELAY_US / 1e6),
        "nothing takes less: {said:#}"
    );
    let [is, low, high] = difference(&said);
    assert!(low <= is && is <= high, "{said:#}");
    // No request has a time of the gateway's here: what may fall from one quantile to the next is not named like what cannot.
    assert!(said["overhead"].get("gate").is_none(), "{said:#}");
    for name in ["of_means", "of_p50", "of_p90", "of_p99", "of_max"] {
        assert!(
            said["overhead"]["differences"][name].is_number(),
            "{name}: {said:#}"
        );
    }
    // Interleaved requests carry no ids of ours: nothing is written of them.
    assert_eq!(bench.stamps(), "");
}

#[test]
fn what_a_delay_on_purpose_is_seen_as_is_told_of_each_round() {
    let bench = Bench::new(BODY);
    let _gateway = bench.relay(bench.tap, &[]);
    for side in ["front", "behind"] {
        let rounds = ["--requests", "20", "--rounds", "3", "--delay-us", "100"];
        let said = bench.paired(&[&rounds[..], &["--delay-at", side]].concat());
        let result = &said["result"];
        assert_eq!(result["delay_us"], 100, "{side}: {said:#}");
        let rounds = result["rounds"].as_array().map(Vec::len);
        assert_eq!(rounds, Some(3), "{side}: {said:#}");
        let seen = |which: &str| result["seen_us"][which].as_f64().expect("microseconds");
        let is_ordered = seen("least") <= seen("median") && seen("median") <= seen("most");
        assert!(is_ordered, "{side}: {said:#}");
    }
}

#[test]
#[ignore = "timing"]
fn timing_a_known_delay_is_found_by_pairs_of_stamps_and_by_asking_in_turn() {
    let bench = Bench::new(BODY);
    let relaying = bench.relay(bench.tap, &DELAYED);
    measured(
        || bench.paired(&["--requests", "160"]),
        |said| {
            let overhead = &said["result"]["overhead"];
            let us = |of: &Value, name: &str| of[name].as_f64().expect("seconds") * 1e6;
            let [gate, least] = [("median_us", "gate"), ("isolated_us_by_medians", "least")]
                .map(|(of, name)| said["result"][of][name].as_f64().expect("microseconds"));
            // Nothing takes less than the delay. What stands in the gateway's place does all but the delay, so that the
            // least of the rounds, that of the quietest, is near to it.
            let isolated = &overhead["isolated"];
            let all = [
                gate,
                us(isolated, "net_of_one_hop_s"),
                us(overhead, "downstream_s") - us(overhead, "upstream_s"),
            ];
            all.into_iter().all(|us| us > DELAY_US * 0.9)
                && (DELAY_US * 0.9..DELAY_US * 1.15).contains(&least)
        },
    );
    drop(relaying);
    let _relaying = bench.relay(bench.upstream, &DELAYED);
    let direct = format!("http://{}", bench.upstream);
    measured(
        || bench.overhead(&["--requests", "160", "--direct", &direct]),
        |said| {
            let [_, low, high] = difference(said);
            low < MOST_US && high > DELAY_US * 0.9
        },
    );
}

/// What 100 µs may be seen as: medians of requests with and without the delay, which take turns one by one, so that what
/// else happens on the machine happens to both; and of those the median over nine rounds.
const RESOLVED_US: f64 = 100.0;
const RESOLUTION_US: f64 = 20.0;

#[test]
#[ignore = "timing"]
fn timing_a_delay_of_100_microseconds_on_purpose_is_resolved_and_next_to_none_is_not_seen() {
    let bench = Bench::new(BODY);
    let _gateway = bench.relay(bench.tap, &[]);
    for (delay_us, expected) in [("100", RESOLVED_US), ("1", 1.0)] {
        let rounds = ["--requests", "300", "--rounds", "9"];
        let delay = ["--delay-us", delay_us, "--delay-at", "behind"];
        let is_resolved = |said: &Value| {
            let us = said["result"]["seen_us"]["median"].as_f64();
            (us.expect("a median") - expected).abs() < RESOLUTION_US
        };
        measured(
            || bench.paired(&[&rounds[..], &delay].concat()),
            is_resolved,
        );
    }
}

#[test]
fn a_relay_writes_a_line_for_each_exchange_with_its_times_in_order() {
    let bench = Bench::new("{\"model\":\"m\",\"messages\":[],\"stream\":true}");
    let _gateway = bench.relay(bench.tap, &[]);
    let said = bench.paired(&["--requests", "20", "--users", "3", "--rounds", "2"]);
    counted(&said["result"], 20);
    // Two that were sent to warm up, and the twenty.
    let lines = found("a line for each", || {
        let text = bench.stamps();
        (text.lines().count() >= 22).then_some(text)
    });
    for line in lines.lines() {
        let stamp: Value = serde_json::from_str(line).expect("JSON");
        assert!(stamp["id"].as_str().expect("an id").starts_with("prove-0-"));
        let names = ["in_ns", "whole_in_ns", "first_out_ns", "last_out_ns"];
        let times = names.map(|name| stamp[name].as_u64().expect("a time"));
        assert!(times.is_sorted() && times[0] > 0, "{line}");
    }
}
