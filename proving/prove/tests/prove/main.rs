//! The binary as a person runs it.
//!
//! The upstream itself on another port serves as the correct gateway: its answers are the same bytes.

mod campaign;
mod faults;
mod metered;
mod offline;
mod overhead;
#[path = "../../src/host/ports.rs"]
#[expect(dead_code, reason = "the tests need some of it")]
mod ports;
mod schema;
mod scrape;
mod verify;

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

const PROVE: &str = env!("CARGO_BIN_EXE_prove");
const SCENARIOS: &str = "[[scenario]]\nname = 'small'\nusers = 4\n\
    [[scenario]]\nname = 'streams'\nusers = 4\nevents = 5\ninterval_ms = 10\n\
    [[scenario]]\nname = 'many'\nusers = 4000000000\n\
    [[scenario]]\nname = 'quota_small'\nusers = 4\ncpu_quota = 0.1\n";

/// A directory of subjects, each with the program and arguments given.
fn subjects(named: &[(&str, &str, &[&str])]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a directory");
    fs::write(dir.path().join("race.toml"), SCENARIOS).expect("a file");
    let write = |name: &str, toml: String| {
        fs::create_dir(dir.path().join(name)).expect("a directory");
        fs::write(dir.path().join(name).join("subject.toml"), toml).expect("a file");
    };
    write(
        "direct",
        "summary = 'the upstream'\nfind = 'upstream'\n".into(),
    );
    for (name, program, args) in named {
        let toml = format!(
            "summary = 'x'\nready_seconds = 2\nfind = {{ path = ['{program}'] }}\nstart = {args:?}\n\
             workers = ''\n"
        );
        write(name, toml);
    }
    dir
}

fn race(dir: &Path, seconds: &str, further: &[&str]) -> Command {
    let mut command = Command::new(PROVE);
    command
        .arg("race")
        .arg(dir)
        .args(["--repeat", "2", "--seconds", seconds, "--json", "--out"]);
    command
        .arg(dir.join("out/result.json"))
        .args(further)
        .stderr(Stdio::piped())
        .stdout(Stdio::piped());
    command
}

fn result(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
        panic!("{error}: {}", String::from_utf8_lossy(&output.stderr));
    })
}

fn row<'a>(result: &'a Value, subject: &str, scenario: &str) -> &'a Value {
    let rows = result["rows"].as_array().expect("rows");
    rows.iter()
        .find(|row| row["subject"] == subject && row["scenario"] == scenario)
        .expect("a row")
}

const SAME: (&str, &str, &[&str]) = ("same", PROVE, &["upstream", "--port", "{port}"]);

#[test]
fn a_race_measures_every_subject_in_every_scenario_and_writes_what_it_prints() {
    let dir = subjects(&[SAME]);
    let output = race(dir.path(), "0.7", &["--scenarios", "small,streams"])
        .output()
        .expect("prove");
    let result = result(&output);
    assert_eq!(
        output.status.code(),
        Some(0),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert_eq!(result["schema"], "tollgate.race/1");
    for subject in ["direct", "same"] {
        let small = row(&result, subject, "small");
        assert_eq!(
            (&small["status"], &small["rounds"]),
            (&"measured".into(), &2.into())
        );
        for figure in ["cpu_us_per_request", "rps"] {
            assert!(
                small[figure]["median"].as_f64().expect(figure) > 0.0,
                "{figure}"
            );
        }
        assert!(
            small["latency_us"]["p99"]["max"].as_f64()
                >= small["latency_us"]["p50"]["min"].as_f64()
        );
        let streams = row(&result, subject, "streams");
        assert!(streams["cpu_us_per_event"]["median"].as_f64() > Some(0.0));
        assert!(
            streams["first_byte_us"]["p50"]["median"].as_f64()
                < streams["latency_us"]["p50"]["median"].as_f64()
        );
    }
    let written: Value =
        serde_json::from_slice(&fs::read(dir.path().join("out/result.json")).expect("a file"))
            .expect("JSON");
    assert_eq!(written, result);
}

#[test]
fn a_cpu_quota_is_enforced_where_it_may_be_set() {
    let dir = subjects(&[SAME]);
    let output = race(dir.path(), "1", &["--scenarios", "quota_small,small"])
        .output()
        .expect("prove");
    let result = result(&output);
    let row = row(&result, "same", "quota_small");
    if let Some(problem) = row["problem"].as_str() {
        assert!(problem.contains("no permission for cgroups"), "{problem}");
        testing::skip(problem);
        return;
    }
    let figure = |outer: &str, inner: &str| row[outer][inner]["median"].as_f64().expect(inner);
    let cores = row["cores"]["median"].as_f64().expect("cores");
    assert!(
        figure("cgroup", "periods") > 0.0 && figure("cgroup", "throttled") > 0.0,
        "{row}"
    );
    assert!(cores < 0.2, "{row}");
}

#[test]
fn a_profile_is_a_flame_graph_or_a_note_that_says_why_there_is_none() {
    let dir = subjects(&[SAME]);
    let output = race(dir.path(), "0.7", &["--scenarios", "small", "--profile"])
        .output()
        .expect("prove");
    let result = result(&output);
    let reported = result["subjects"].as_array().expect("subjects");
    let same = reported
        .iter()
        .find(|subject| subject["name"] == "same")
        .expect("same");
    let page = fs::read_to_string(dir.path().join("out/result.html")).expect("a page");
    match same["flame"].as_str() {
        Some(file) => {
            let svg = fs::read_to_string(dir.path().join("out").join(file)).expect("a file");
            assert!(svg.starts_with("<svg") && svg.contains("<rect"), "{svg}");
            assert!(page.contains(file));
        }
        None => assert!(
            same["notes"].to_string().contains("no flame graph: perf"),
            "{same}"
        ),
    }
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn other_subjects_are_stopped_while_one_is_measured() {
    let other = ("other", PROVE, SAME.2);
    let dir = subjects(&[SAME, other]);
    let mut child = race(dir.path(), "2", &["--scenarios", "small"])
        .spawn()
        .expect("prove");
    // The upstream and two subjects: during the race, each of the two is stopped at some time.
    let mut stood = std::collections::BTreeSet::new();
    while child.try_wait().expect("prove").is_none() {
        stood.extend(faults::started_by(child.id()).into_iter().filter(|pid| {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            stat.contains(") T ")
        }));
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    let output = child.wait_with_output().expect("its output");
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(stood.len(), 2);
    assert_eq!(row(&result(&output), "other", "small")["rounds"], 2);
}
