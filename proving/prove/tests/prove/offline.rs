//! The simulated engine in virtual time, from the command line.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

fn engine(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_prove"))
        .arg("engine")
        .args(args)
        .output()
        .expect("prove starts")
}

fn json(args: &[&str]) -> Value {
    let output = engine(args);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).expect("one JSON document")
}

fn refusal(args: &[&str]) -> String {
    let output = engine(args);
    assert_eq!(output.status.code(), Some(2), "{args:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A synthetic recording of ten requests, one each second, with 100 ms of prefill and a token each 20 ms.
fn recording(dir: &Path) {
    let meta = r#"{"model": "made-up", "engine_kwargs": {"max_num_seqs": 8, "max_num_batched_tokens": 512, "max_model_len": 1024}}"#;
    let lines: String = (0..10)
        .map(|i| {
            let (at, first) = (100.0 + f64::from(i), 0.1 + f64::from(i));
            format!(
                "{{\"request_id\": \"r{i}\", \"input_toks\": 100, \"output_toks\": 11, \"arrival_time\": {at}, \
                 \"queued_ts\": {i}, \"scheduled_ts\": {i}, \"first_token_ts\": {first}, \"last_token_ts\": {}}}\n",
                first + 0.2
            )
        })
        .collect();
    std::fs::write(dir.join("meta.json"), meta).expect("writable");
    std::fs::write(dir.join("requests.jsonl"), lines).expect("writable");
}

#[test]
fn a_preset_is_fitted_to_a_recording_and_replays_it() {
    let dir = tempfile::tempdir().expect("a directory");
    recording(dir.path());
    let place = |name: &str| dir.path().join(name).to_string_lossy().into_owned();
    let (run, preset, plot) = (place(""), place("made-up.toml"), place("plot.svg"));
    let fitted = engine(&["fit", &run, "--requests", "0..0.5", "--out", &preset]);
    assert!(
        fitted.status.success(),
        "{}",
        String::from_utf8_lossy(&fitted.stderr)
    );
    fits(&fitted);
    fits(&engine(&[
        "replay", &run, "--preset", &preset, "--score", "0.5..1",
    ]));
    let score = json(&[
        "replay", &run, "--preset", &preset, "--score", "0.5..1", "--json", "--plot", &plot,
    ]);
    for measure in ["ttft", "tpot", "e2e"] {
        for part in ["mean", "p50", "p90", "p99"] {
            let error = score[format!("{measure}_{part}_error")]
                .as_f64()
                .expect("a number");
            assert!(error.abs() < 0.02, "{measure} {part}: {error}");
        }
    }
    assert_eq!(
        (&score["preemptions"], &score["requests"]),
        (&0.into(), &5.into())
    );
    assert!(
        std::fs::read_to_string(&plot)
            .expect("drawn")
            .contains("<polyline")
    );
}

#[test]
fn a_soak_gives_the_same_document_from_the_same_seed() {
    let soak = |seed: &str| {
        json(&[
            "soak",
            "--preset",
            "gpt-oss-120b.h100x4",
            "--users",
            "10",
            "--hours",
            "0.05",
            "--warm-up",
            "60s",
            "--seed",
            seed,
            "--json",
        ])
    };
    let report = soak("1");
    assert_eq!(report, soak("1"));
    assert_ne!(report, soak("2"));
    assert_eq!(report["preemptions"], 0);
    let few = [
        "soak",
        "--preset",
        "gpt-oss-120b.h100x4",
        "--users",
        "10,400",
        "--hours",
        "0.05",
        "--warm-up",
        "60s",
    ];
    fits(&engine(&few));
}

/// Asserts that output for people has at most eighty columns.
fn fits(output: &Output) {
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        !said.trim().is_empty(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    for line in said.lines() {
        assert!(line.chars().count() <= 80, "{line:?}\n{said}");
    }
}

#[test]
fn an_error_names_the_file_and_its_place() {
    let dir = tempfile::tempdir().expect("a directory");
    let place = dir.path().to_string_lossy().into_owned();
    assert!(refusal(&["replay", &place, "--preset", "instant"]).contains("meta.json"));
    recording(dir.path());
    let lines = dir.path().join("requests.jsonl");
    let text = std::fs::read_to_string(&lines).expect("written above");
    std::fs::write(
        &lines,
        text.replacen("\"input_toks\": 100", "\"input_toks\": -1", 3),
    )
    .expect("writable");
    assert!(refusal(&["replay", &place, "--preset", "instant"]).contains("requests.jsonl:1: "));
    assert!(refusal(&["soak", "--preset", "no-such", "--users", "1"]).contains("instant"));
    assert!(
        refusal(&["replay", &place, "--preset", "instant", "--score", "1..0"]).contains("1..0")
    );
}
