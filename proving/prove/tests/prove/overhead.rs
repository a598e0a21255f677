//! A relay with a delay on purpose is a gateway whose own time is known.

use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::{PROVE, ports};

const DELAY_US: f64 = 3_000.0;
/// What two processes more on the way may cost on a busy machine, at the median.
const MOST_US: f64 = 6_000.0;

/// How often a time is measured until it is right: a busy machine delays whatever runs, while what measures wrongly does so in
/// a quiet moment as well.
const ATTEMPTS: usize = 8;

/// Measures until the figures are right, which `is_right` tells, and fails with what was said last.
fn measured(measure: impl Fn() -> Value, is_right: impl Fn(&Value) -> bool) -> Value {
    let mut said = Value::Null;
    for _ in 0..ATTEMPTS {
        said = measure();
        if is_right(&said) {
            return said;
        }
    }
    panic!("{said:#}");
}

/// A process that ends with its test.
struct Ends(Child);

impl Drop for Ends {
    fn drop(&mut self) {
        let _gone = self.0.kill();
        let _gone = self.0.wait();
    }
}

fn free() -> SocketAddr {
    ports::loopback(ports::free().expect("a port"))
}

fn serve(args: &[&str], at: SocketAddr) -> Ends {
    let child = Command::new(PROVE)
        .args(args)
        .stderr(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .expect("prove runs");
    let child = Ends(child);
    let began = Instant::now();
    while TcpStream::connect(at).is_err() {
        assert!(began.elapsed() < Duration::from_secs(30), "{args:?}");
        thread::sleep(Duration::from_millis(10));
    }
    child
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

#[test]
fn a_known_delay_is_found_by_pairs_of_stamps_and_by_asking_in_turn() {
    let dir = tempfile::tempdir().expect("a directory");
    let (body, out) = (
        dir.path().join("body.json"),
        dir.path().join("stamps.jsonl"),
    );
    fs::write(&body, "{\"model\":\"m\",\"messages\":[]}").expect("a file");
    let (body, out) = (body.display().to_string(), out.display().to_string());
    let (upstream, tap, gateway) = (free(), free(), free());
    let port = upstream.port().to_string();
    let _upstream = serve(&["upstream", "--port", &port], upstream);
    let (at, beyond) = (gateway.to_string(), tap.to_string());
    let relay = |to: &str| {
        let args = [
            "tap",
            "--listen",
            &at,
            "--upstream",
            to,
            "--out",
            &out,
            "--delay-us",
            "3000",
        ];
        serve(&args, gateway)
    };
    let (target, direct) = (format!("http://{gateway}"), format!("http://{upstream}"));
    let same = ["--target", &target, "--body", &body, "--requests", "160"];

    let relaying = relay(&beyond);
    let pairing = ["--upstream", &upstream.to_string(), "--tap", &beyond];
    let said = measured(
        || overhead(&[&same[..], &pairing].concat()),
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
    let result = &said["result"];
    assert_eq!(result["overhead"]["method"], "paired", "{said:#}");
    assert_eq!(result["overhead"]["requests"], 160, "{said:#}");
    drop(relaying);

    let _relaying = relay(&upstream.to_string());
    let difference = |said: &Value| {
        ["", ", 95 % from", ", 95 % to"]
            .map(|which| part(&said["overhead"], &format!("difference of medians{which}")))
    };
    let said = measured(
        || overhead(&[&same[..], &["--direct", &direct]].concat()),
        |said| {
            let [_, low, high] = difference(said);
            low < MOST_US && high > DELAY_US * 0.9
        },
    );
    assert_eq!(said["overhead"]["method"], "interleaved");
    let [is, low, high] = difference(&said);
    assert!(low <= is && is <= high, "{said:#}");
    // Interleaved requests carry no ids of ours: nothing is written of them.
    assert_eq!(fs::read_to_string(&out).expect("a file"), "");
}

/// What 100 µs may be seen as: medians of requests with and without the delay, which take turns one by one, so that what
/// else happens on the machine happens to both; and of those the median over nine rounds.
const RESOLVED_US: f64 = 100.0;
const RESOLUTION_US: f64 = 20.0;

#[test]
fn a_delay_of_100_microseconds_on_purpose_is_resolved_and_next_to_none_is_not_seen() {
    let dir = tempfile::tempdir().expect("a directory");
    let (body, out) = (
        dir.path().join("body.json"),
        dir.path().join("stamps.jsonl"),
    );
    fs::write(&body, "{\"model\":\"m\",\"messages\":[]}").expect("a file");
    let (upstream, tap, gateway) = (free(), free(), free());
    let port = upstream.port().to_string();
    let _upstream = serve(&["upstream", "--port", &port], upstream);
    let (at, beyond, out) = (
        gateway.to_string(),
        tap.to_string(),
        out.display().to_string(),
    );
    let args = ["tap", "--listen", &at, "--upstream", &beyond, "--out", &out];
    let _gateway = serve(&args, gateway);
    let (target, body) = (format!("http://{gateway}"), body.display().to_string());
    let ask = |delay_us: &str| {
        overhead(&[
            "--target",
            &target,
            "--body",
            &body,
            "--upstream",
            &upstream.to_string(),
            "--tap",
            &beyond,
            "--requests",
            "300",
            "--rounds",
            "9",
            "--delay-us",
            delay_us,
            "--delay-at",
            "behind",
        ])
    };
    for (delay_us, expected) in [("100", RESOLVED_US), ("1", 1.0)] {
        let is_resolved = |said: &Value| {
            let us = said["result"]["seen_us"]["median"].as_f64();
            (us.expect("a median") - expected).abs() < RESOLUTION_US
        };
        measured(|| ask(delay_us), is_resolved);
    }
}

#[test]
fn a_relay_writes_a_line_for_each_exchange_with_its_times_in_order() {
    let dir = tempfile::tempdir().expect("a directory");
    let (body, out) = (
        dir.path().join("body.json"),
        dir.path().join("stamps.jsonl"),
    );
    fs::write(&body, "{\"model\":\"m\",\"messages\":[],\"stream\":true}").expect("a file");
    let (upstream, tap, gateway) = (free(), free(), free());
    let port = upstream.port().to_string();
    let _upstream = serve(&["upstream", "--port", &port], upstream);
    let (at, beyond, file) = (
        gateway.to_string(),
        tap.to_string(),
        out.display().to_string(),
    );
    let args = [
        "tap",
        "--listen",
        &at,
        "--upstream",
        &beyond,
        "--out",
        &file,
    ];
    let _gateway = serve(&args, gateway);
    let said = overhead(&[
        "--target",
        &format!("http://{gateway}"),
        "--body",
        &body.display().to_string(),
        "--upstream",
        &upstream.to_string(),
        "--tap",
        &beyond,
        "--requests",
        "20",
        "--users",
        "3",
    ]);
    assert_eq!(said["result"]["overhead"]["requests"], 20, "{said:#}");
    // Two that were sent to warm up, and the twenty.
    let began = Instant::now();
    let lines = loop {
        let text = fs::read_to_string(&out).expect("a file");
        if text.lines().count() >= 22 {
            break text;
        }
        assert!(began.elapsed() < Duration::from_secs(10), "{text}");
        thread::sleep(Duration::from_millis(20));
    };
    for line in lines.lines() {
        let stamp: Value = serde_json::from_str(line).expect("JSON");
        assert!(stamp["id"].as_str().expect("an id").starts_with("prove-0-"));
        let names = ["in_ns", "whole_in_ns", "first_out_ns", "last_out_ns"];
        let times = names.map(|name| stamp[name].as_u64().expect("a time"));
        assert!(times.is_sorted() && times[0] > 0, "{line}");
    }
}
