//! The binary as a person runs it.
//!
//! The upstream itself on another port serves as the correct gateway: its answers are the same bytes.

mod agents;
mod agentx;
mod answers;
mod broken;
mod campaign;
mod copied;
mod faults;
mod fleet;
mod metered;
mod offline;
mod overhead;
#[path = "../../src/host/ports.rs"]
mod ports;
mod recipe;
#[path = "../recomputed/mod.rs"]
#[expect(dead_code, reason = "the tests need some of it")]
mod recomputed;
mod schema;
mod scrape;
mod serving;
mod verify;

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

const PROVE: &str = env!("CARGO_BIN_EXE_prove");
/// Users wait for a slow upstream, so that a race costs little; but for the quota, which has to be used up.
const SCENARIOS: &str = "[[scenario]]\nname = 'small'\nusers = 4\nlatency_ms = 20\n\
    [[scenario]]\nname = 'brisk'\nusers = 4\nlatency_ms = 5\n\
    [[scenario]]\nname = 'streams'\nusers = 4\nevents = 5\ninterval_ms = 10\n\
    [[scenario]]\nname = 'many'\nusers = 4000000000\n\
    [[scenario]]\nname = 'quota_small'\nusers = 4\ncpu_quota = 0.1\n";
/// Longer than a machine stands still: a measurement in which nothing is answered has no figures.
const SECONDS: &str = "1.2";
/// Races at most, until none of its measurements fell into a moment in which the machine stood still for longer.
const ATTEMPTS: u32 = 5;

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
            "summary = 'x'\nready_seconds = 100\nfind = {{ path = ['{program}'] }}\nstart = {args:?}\n\
             workers = ''\n"
        );
        write(name, toml);
    }
    dir
}

fn race(dir: &Path, rounds: u32, further: &[&str]) -> Command {
    let mut command = Command::new(PROVE);
    command
        .arg("race")
        .arg(dir)
        .args(["--repeat", &rounds.to_string(), "--seconds", SECONDS])
        .args(["--json", "--out"]);
    command
        .arg(dir.join("out/result.json"))
        .args(further)
        .stderr(Stdio::piped())
        .stdout(Stdio::piped());
    command
}

/// A race in each of whose measurements something was answered, and its result.
fn raced(race: &mut Command) -> (Output, Value) {
    raced_by(|| race.output().expect("prove runs"))
}

fn raced_by(mut race: impl FnMut() -> Output) -> (Output, Value) {
    for _ in 0..ATTEMPTS {
        let output = race();
        let result = result(&output);
        if !result.to_string().contains("nothing was answered in ") {
            return (output, result);
        }
    }
    panic!("{ATTEMPTS} times, in one of them nothing was answered");
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
    let (output, result) = raced(&mut race(dir.path(), 2, &["--scenarios", "small,streams"]));
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
        // A stream of five events, 10 ms apart, is no shorter; its first byte comes no later than its last.
        let p50 = |of: &str| streams[of]["p50"]["median"].as_f64();
        assert!(p50("latency_us") > Some(30e3), "{streams}");
        assert!(p50("first_byte_us") <= p50("latency_us"), "{streams}");
    }
    let written: Value =
        serde_json::from_slice(&fs::read(dir.path().join("out/result.json")).expect("a file"))
            .expect("JSON");
    assert_eq!(written, result);
}

#[test]
fn a_cpu_quota_is_enforced_where_it_may_be_set() {
    let dir = subjects(&[SAME]);
    let further = ["--scenarios", "quota_small", "--subjects", "same"];
    let (_, result) = raced(&mut race(dir.path(), 1, &further));
    let row = row(&result, "same", "quota_small");
    if let Some(problem) = row["problem"].as_str() {
        assert!(problem.contains("no permission for cgroups"), "{problem}");
        testing::skip(problem);
        return;
    }
    let figure = |outer: &str, inner: &str| row[outer][inner]["median"].as_f64().expect(inner);
    let cores = row["cores"]["median"].as_f64().expect("cores");
    assert!(figure("cgroup", "periods") > 0.0, "{row}");
    // Where others leave it less than its quota, nothing has to be throttled.
    let is_starved = cores < 0.08;
    assert!(is_starved || figure("cgroup", "throttled") > 0.0, "{row}");
    assert!(cores < 0.2, "{row}");
}

#[test]
fn a_profile_is_a_flame_graph_or_a_note_that_says_why_there_is_none() {
    let dir = subjects(&[SAME]);
    let further = ["--scenarios", "brisk", "--subjects", "same", "--profile"];
    let (output, result) = raced(&mut race(dir.path(), 1, &further));
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
    let child = race(dir.path(), 1_000, &["--scenarios", "small"]).spawn();
    let mut child = child.expect("prove");
    // Each runs in a directory of its name.
    let standing = |pid: &u32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let at = fs::read_link(format!("/proc/{pid}/cwd")).ok()?;
        stat.contains(") T ")
            .then(|| at.file_name()?.to_str().map(str::to_owned))?
    };
    let mut stood = std::collections::BTreeSet::new();
    testing::eventually("each of the two stood still at some time", || {
        assert_eq!(child.try_wait().expect("prove"), None, "it still races");
        stood.extend(faults::started_by(child.id()).iter().filter_map(standing));
        ["other", "same"].iter().all(|name| stood.contains(*name))
    });
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("it runs");
    let output = child.wait_with_output().expect("its output");
    assert_eq!(output.status.code(), Some(130));
}
