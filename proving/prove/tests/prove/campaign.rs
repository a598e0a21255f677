//! `prove run` as far as it needs no gateway: scenarios with faults, virtual time, targets that are not there.
//!
//! Not here: real time through the gate (`tests/e2e`).

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Output};
use std::thread;

use serde_json::Value;

use super::PROVE;

const SMALL: &str = include_str!("../campaign/small.toml");
const WORKLOAD: &str = include_str!("../campaign/workload.toml");

/// A scenario of few users on a small machine.
const SCENARIO: &str = r#"
title = "small"
seed = 3
[engine]
preset = "small.toml"
workload = "workload.toml"
[baseline]
users = 2
warm_up = "5s"
least = "20s"
requests = 10
[ramp]
step = 4
window = "20s"
most_users = 60
[soak]
settle = "5s"
length = "30s"
[[objective]]
name = "TTFT, s"
query = "mean(engine:vllm:time_to_first_token_seconds)"
below = 5.0
[[published]]
name = "users"
value = 10
figure = "/t2_users"
"#;

fn scenario(text: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a directory");
    fs::write(dir.path().join("scenario.toml"), text).expect("a file");
    fs::write(dir.path().join("small.toml"), SMALL).expect("a file");
    fs::write(dir.path().join("workload.toml"), WORKLOAD).expect("a file");
    dir
}

fn run(dir: &Path, args: &[&str]) -> Output {
    let output = Command::new(PROVE)
        .arg("run")
        .arg(dir)
        .arg("--out")
        .arg(dir.join("out"))
        .args(args)
        .output();
    output.expect("prove runs")
}

fn json(output: &Output) -> Value {
    let said = String::from_utf8_lossy(&output.stderr);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {said}"))
}

#[test]
fn every_fault_of_a_scenario_is_told_at_once_with_its_path() {
    let dir = scenario(
        "titel = 'x'\nerror_share = 2\n[engine]\npreset = 'small.toml'\nreplicas = 0\n\
         [ramp]\nstep = 0\nwindow = '10'\n[[gate]]\nname = 'a'\nquery = 'mean(engine)'\nabove = 1\nthen = 'stop'\n\
         [[objective]]\nname = 'x'\n",
    );
    let output = run(dir.path(), &["--virtual"]);
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr);
    for fault in [
        "titel: is unknown here",
        "error_share: ",
        "engine.replicas: ",
        "ramp.step: ",
        "ramp.window: ",
        "gate[0].query: ",
        "gate[0].then: is one of hold, retract and abort",
        "objective[0].query: has to be there",
        "objective[0].below: has to be there",
    ] {
        assert!(said.contains(fault), "{fault} is not in\n{said}");
    }
}

#[test]
fn a_campaign_in_virtual_time_finds_its_edge_and_says_so_the_same_each_time() {
    let dir = scenario(SCENARIO);
    let output = run(dir.path(), &["--virtual", "--json"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{said}");
    let result = json(&output);
    assert_eq!(result["verdict"], "passed", "{result:#}");
    let t2 = result["t2_users"].as_u64().expect("an edge");
    assert_eq!(result["t3"], false);
    assert!(result["baseline_ttft_ms"].as_f64() > Some(0.0));
    let soak = &result["soak"];
    assert_eq!(soak["users"].as_u64(), Some(t2 * 85 / 100));
    for figure in [
        "ttft_ms",
        "tpot_ms",
        "e2e_s",
        "requests_per_second",
        "kv_cache",
    ] {
        assert!(soak[figure].as_f64() > Some(0.0), "{figure}: {soak}");
    }
    assert_eq!(soak["preemptions"], 0);
    for file in ["report.html", "report.md", "report.json", "samples.parquet"] {
        let about = fs::metadata(dir.path().join("out").join(file)).expect(file);
        assert!(about.len() > 100, "{file}");
    }
    let again = json(&run(dir.path(), &["--virtual", "--json"]));
    assert_eq!(again["soak"], result["soak"]);
    assert_eq!(again["phases"], result["phases"]);
}

#[test]
fn a_cache_that_is_too_small_stops_at_t3_and_replicas_carry_more() {
    let dir = scenario(SCENARIO);
    let small = run(dir.path(), &["--virtual", "--json", "--kv-blocks", "110"]);
    let result = json(&small);
    assert_eq!(small.status.code(), Some(3), "{result:#}");
    assert_eq!(
        (&result["verdict"], &result["t3"]),
        (&"t3_stop".into(), &true.into())
    );
    assert!(result["soak"].is_null());
    let one = json(&run(dir.path(), &["--virtual", "--json"]));
    let two = json(&run(
        dir.path(),
        &["--virtual", "--json", "--replicas", "2"],
    ));
    assert!(
        two["t2_users"].as_u64() > one["t2_users"].as_u64(),
        "{} and {}",
        two["t2_users"],
        one["t2_users"]
    );
}

#[test]
fn a_missed_objective_and_a_page_for_people_have_exit_codes_of_their_own() {
    let dir = scenario(&SCENARIO.replace("below = 5.0", "below = 0.0001"));
    let missed = run(dir.path(), &["--virtual", "--json"]);
    assert_eq!(missed.status.code(), Some(1), "{:#}", json(&missed));

    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut stream = stream;
            let mut asked = [0; 2048];
            let _ = stream.read(&mut asked);
            let page = "<!doctype html><title>Sign in</title>";
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: {}\r\n\r\n",
                page.len()
            );
            let _ = stream.write_all((head + page).as_bytes());
        }
    });
    let dir = scenario(&SCENARIO.replace(
        "preset = \"small.toml\"",
        &format!("url = \"http://{address}\""),
    ));
    let corpus = dir.path().join("corpus");
    let built = Command::new(PROVE)
        .args([
            "corpus",
            "build",
            "--profile",
            "coding",
            "--reader",
            "synthetic",
            "--sessions",
            "5",
            "--out",
        ])
        .arg(&corpus)
        .output()
        .expect("prove runs");
    assert!(built.status.success());
    let target = format!("http://{address}/v1");
    let corpus = corpus.display().to_string();
    let output = run(dir.path(), &["--target", &target, "--corpus", &corpus]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(5), "{said}");
    assert!(said.contains("HTML"), "{said}");
}
