//! Four simulated engines behind the gate that users run, one small campaign for each way to choose among them: prefixes are found where
//! they are looked for.
//!
//! Not here: figures of latency, which are measured at full size (`scenarios/inference-pool`).

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::verify::found_at;
use super::{PROVE, gate};

const POOL: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../scenarios/inference-pool"
);
const POLICIES: [&str; 2] = ["round-robin", "prefix-cache"];

/// The shipped scenario, at once at its most users and over in seconds.
fn scenario() -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a directory");
    let read = |name: &str| fs::read_to_string(Path::new(POOL).join(name)).expect("a text");
    let write = |name: &str, text: &str| fs::write(dir.path().join(name), text).expect("a file");
    let mut text = read("scenario.toml");
    for (from, to) in [
        (
            "users = 8\nwarm_up = \"5s\"\nmin = \"10s\"\nrequests = 30",
            "users = 6\nwarm_up = \"1s\"\nmin = \"4s\"\nrequests = 4",
        ),
        (
            "step = 16\nwindow = \"6s\"\nmax_users = 320",
            "step = 1\nwindow = \"2s\"\nmax_users = 6",
        ),
        (
            "settle = \"5s\"\nlength = \"15s\"",
            "settle = \"1s\"\nlength = \"20s\"",
        ),
        ("exponential:2s", "exponential:200ms"),
    ] {
        assert!(text.contains(from), "{from}");
        text = text.replace(from, to);
    }
    write("scenario.toml", &text);
    write("corpus.toml", &read("corpus.toml"));
    // Quicker, so that many turns pass in the time.
    let engine = read("engine.toml").replace("per_token_us = 60.0", "per_token_us = 6.0");
    write("engine.toml", &engine);
    for policy in POLICIES {
        let of = format!("gateways/{policy}");
        fs::create_dir_all(dir.path().join(&of)).expect("a directory");
        let subject = read(&format!("{of}/subject.toml"));
        write(&format!("{of}/subject.toml"), &found_at(&subject, &gate()));
        write(
            &format!("{of}/tollgate.yaml"),
            &read(&format!("{of}/tollgate.yaml")),
        );
    }
    dir
}

fn report(dir: &Path, policy: &str) -> Value {
    let file = dir
        .join("out")
        .join(policy)
        .join("report.simulated-engine.json");
    let text =
        fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    serde_json::from_str(&text).expect("JSON")
}

#[test]
fn turns_of_conversations_find_their_prefixes_where_the_gate_looks_for_them() {
    let dir = scenario();
    let mut command = Command::new(PROVE);
    command
        .arg("run")
        .arg(dir.path())
        .arg("--out")
        .arg(dir.path().join("out"));
    for policy in POLICIES {
        command
            .arg("--gateway")
            .arg(dir.path().join("gateways").join(policy));
    }
    let output = command.output().expect("prove runs");
    let said = String::from_utf8_lossy(&output.stderr);
    // A generator that was late on a busy machine is no fault here: nothing is said of time.
    assert!(matches!(output.status.code(), Some(0 | 1 | 4)), "{said}");
    let hits = |policy: &str| {
        let report = report(dir.path(), policy);
        let engines = &report["scenario"]["under_test"]["engine"];
        assert!(
            engines
                .as_str()
                .is_some_and(|told| told.starts_with("4 of simulated")),
            "{engines}"
        );
        let measured = report["prefix_cache"]["measured"].as_f64();
        measured.unwrap_or_else(|| panic!("{policy}: {}", report["prefix_cache"]))
    };
    let [turns, seen] = POLICIES.map(hits);
    assert!(
        seen > turns + 0.1,
        "of prompts were cached {turns} by turns, {seen} where seen\n{said}"
    );
    let comparison = fs::read_to_string(dir.path().join("out/comparison.html")).expect("a page");
    assert!(POLICIES.iter().all(|policy| comparison.contains(policy)));
}
