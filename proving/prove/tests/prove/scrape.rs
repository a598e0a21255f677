//! Targets that answer, and those that have to be named before anything begins.
//!
//! Not here: targets that stop answering later (the unit tests of `scraper`).

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::thread;

use serde_json::Value;

use super::PROVE;
use super::answers::{self, serve};
use super::ports::Closed;
use super::serving::{self, Ends};

/// A server of one page of this kind.
fn page(kind: &'static str, page: &'static str) -> SocketAddr {
    serve(move |_| Some(answers::page(kind, page)))
}

fn lines(child: &mut Child) -> impl Iterator<Item = Value> + use<> {
    let out = child.stdout.take().expect("a pipe");
    let lines = BufReader::new(out).lines();
    lines.map(|line| serde_json::from_str(&line.expect("a line")).expect("JSON"))
}

fn scrape(args: &[&str]) -> Command {
    let mut command = Command::new(PROVE);
    command.arg("scrape").args(args);
    command.stdout(Stdio::piped()).stderr(Stdio::null());
    command
}

#[test]
fn every_fault_is_named_at_once_before_anything_begins() {
    let html = page("text/html", "<html><body>Sign in</body></html>");
    let well = page("text/plain", "# TYPE up gauge\nup{of=\"it\"} 1\n");
    let gone = Closed::new();
    let target = |name: &str, of: SocketAddr| format!("{name}=http://{of}/metrics");
    let mut run = Ends(
        scrape(&[
            "--target",
            &target("html", html),
            "--target",
            &target("gone", gone.address),
            "--target",
            &target("well", well),
            "--query",
            "avg(well:uq)",
            "--query",
            "avg(nobody:up)",
            "--query",
            "rate(well:requests_total)",
        ])
        .spawn()
        .expect("prove runs"),
    );
    let told: Vec<Value> = lines(&mut run.0).collect();
    let says = |member: &str| -> Vec<&str> {
        told.iter()
            .filter_map(|line| line[member].as_str())
            .collect()
    };
    let faults = says("fault");
    assert_eq!(faults.len(), 4, "{told:?}");
    assert!(
        faults[0].contains("HTML, not metrics; it begins \"<html>"),
        "{}",
        faults[0]
    );
    assert!(faults[1].contains("unreachable"), "{}", faults[1]);
    assert!(
        faults[2].contains("there is no uq; nearest are up"),
        "{}",
        faults[2]
    );
    assert!(
        faults[3].contains("no such target; there are gone, html, well"),
        "{}",
        faults[3]
    );
    let warnings = says("warning");
    assert_eq!(warnings.len(), 1, "{told:?}");
    assert!(
        warnings[0].contains("may come with the first request"),
        "{}",
        warnings[0]
    );
    assert_eq!(run.0.wait().expect("an end").code(), Some(1));
}

#[test]
fn the_pages_of_an_engine_and_its_gpus_answer_every_query_by_one_name() {
    thread::scope(|scope| {
        for old in [&[][..], &["--old-metric-names"]] {
            scope.spawn(|| answers_every_query(old));
        }
    });
}

fn answers_every_query(old: &[&str]) {
    let (_serving, [engine, gpus]) = serving::serve(|[engine, gpus]| {
        let mut serving = Command::new(PROVE);
        serving.args(["engine", "--preset", PRESET]);
        serving.args(["--listen", &engine.to_string(), "--dcgm", &gpus.to_string()]);
        serving.args(old).stderr(Stdio::null());
        serving
    });
    let dir = tempfile::tempdir().expect("a directory");
    let out = dir.path().join("samples.parquet");
    let mut run = scrape(&[
        "--target",
        &format!("engine=http://{engine}/metrics"),
        "--target",
        &format!("gpu=http://{gpus}/metrics"),
        "--out",
        &out.display().to_string(),
        // Two ticks, at 0 and 2.5 s. An answer may take as long as a tick: longer than a machine stands still.
        "--every-ms",
        "2500",
        "--seconds",
        "4.9",
    ]);
    for query in QUERIES {
        run.args(["--query", query]);
    }
    let mut run = Ends(run.spawn().expect("prove runs"));
    let told: Vec<Value> = lines(&mut run.0).collect();
    let end = told.last().expect("an end");
    for query in QUERIES {
        // Nothing was asked of it: a mean over no requests has no answer.
        let has = !query.starts_with("mean");
        let answer = &end["answers"][query];
        assert_eq!(answer.is_number(), has, "{query} {old:?}: {told:#?}");
    }
    assert_eq!(
        told.len(),
        1,
        "neither fault nor warning nor event: {told:#?}"
    );
    assert_eq!(
        (&end["samples"], &end["samples_lost"]),
        (&4.into(), &0.into()),
        "{end}"
    );
    assert!(end["rows"].as_u64() > Some(4), "{end}");
    assert_eq!(run.0.wait().expect("an end").code(), Some(0));
    assert!(out.is_file());
}

/// With GPUs, and fast to start.
const PRESET: &str = "gpt-oss-120b.h100x4";

/// What the gates and tables of a campaign ask.
const QUERIES: [&str; 10] = [
    "mean(engine:vllm:time_to_first_token_seconds)",
    "mean(engine:vllm:inter_token_latency_seconds)",
    "ratio(engine:vllm:num_preemptions_total, engine:vllm:request_success_total)",
    "rate(engine:vllm:generation_tokens_total)",
    "avg(engine:vllm:kv_cache_usage_perc)",
    "increase(engine:vllm:prefix_cache_hits_total)",
    "sum(engine:vllm:num_requests_running)",
    "avg(gpu:DCGM_FI_DEV_GPU_UTIL)",
    "sum(gpu:DCGM_FI_DEV_POWER_USAGE)",
    "max(gpu:nvlink_bytes_per_second)",
];
