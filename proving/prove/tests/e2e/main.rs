//! `prove audit` and `prove oauth-rbac` at a small size, against the gate that users run; a corpus from its build to its replay; workers
//! of a real Locust master; `prove verify` against that gate and a real Envoy; a campaign's report in a browser.
//!
//! Not here: what an audit must detect, which unit tests cover without a gate.

mod campaign;
#[path = "../../src/report/document.rs"]
#[expect(dead_code, reason = "the tests need some of it")]
mod document;
mod locust;
mod oauth_rbac;
mod pool;
#[path = "../../src/host/ports.rs"]
#[expect(dead_code, reason = "the tests need some of it")]
mod ports;
mod race;
#[path = "../recomputed/mod.rs"]
mod recomputed;
mod replay;
mod report;
#[path = "../../src/report/sample.rs"]
mod sample;
mod verify;

use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

const PROVE: &str = env!("CARGO_BIN_EXE_prove");

/// The release binary that `cargo xtask test` provides.
fn gate() -> PathBuf {
    let named = std::env::var_os("TOLLGATE_BIN").map(PathBuf::from);
    named
        .expect("TOLLGATE_BIN is not set: run these tests with `cargo xtask test`, which builds it")
}

/// Runs an audit, asserts that it passes, and returns a lookup of the values of its verdict by name.
fn passed_audit(args: &[&str]) -> impl Fn(&str) -> Value {
    let gate = gate();
    let output = Command::new(PROVE)
        .arg("audit")
        .args(args)
        .args(["--json", "--gate"])
        .arg(gate)
        .output()
        .expect("prove runs");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{said}\n{errors}");
    let verdict: Value = serde_json::from_str(&said).expect("a verdict is JSON");
    assert_eq!(verdict["holds"], true, "{said}");
    move |what: &str| {
        let lines = verdict["lines"].as_array().expect("lines");
        let line = lines.iter().find(|line| line["what"] == what);
        line.unwrap_or_else(|| panic!("no line {what}: {verdict:#}"))["value"].clone()
    }
}

#[test]
fn a_killed_gate_loses_no_row_of_a_strict_route() {
    let args = [
        "kills",
        "--requests",
        "3000",
        "--kills",
        "4",
        "--users",
        "16",
    ];
    let value = passed_audit(&args);
    assert_eq!((value("rows lost"), value("kills")), (0.into(), 4.into()));
    assert!(value("rows settled").as_u64() > Some(1000));
    assert!(value("rows indeterminate").as_u64() > Some(0));
}

#[test]
fn a_killed_gate_loses_only_the_last_moments_of_a_grouped_route() {
    let args = [
        "kills",
        "--billing",
        "grouped",
        "--requests",
        "3000",
        "--kills",
        "3",
    ];
    let value = passed_audit(&args);
    // How long before a kill they were answered is told, and the machine's; in which order they were lost is judged.
    let outlived = "rows kept of calls after a lost one on their connection";
    assert_eq!((value(outlived), value("kills")), (0.into(), 3.into()));
}

#[test]
fn a_full_disk_stops_strict_routes_alone_and_loses_nothing() {
    let args = ["disk", "--seconds", "2", "--users", "16"];
    let value = passed_audit(&args);
    assert_eq!(value("strict answers while the disk was full"), 0);
}

#[test]
fn calls_of_clients_that_disconnect_are_recorded_as_served() {
    for more in [
        &[][..],
        &["--http2"],
        &["--http2-clients"],
        &["--http2", "--http2-clients"],
        &["--drain"],
        &["--counted"],
    ] {
        // So few clients are of every kind by this seed, and not by any.
        let own = ["aborts", "--count", "300", "--users", "16", "--seed", "21"];
        let args = [&own, more].concat();
        let value = passed_audit(&args);
        let reading = value("clients that left and read on").as_u64();
        let can_read = !more.contains(&"--http2-clients");
        assert_eq!(reading > Some(60), can_read, "{reading:?}");
        for phase in [
            "of all these, while they sent",
            "waiting for an answer in one piece",
            "of those of a stream, before the first event",
        ] {
            assert!(value(phase).as_u64() > Some(3), "{phase} {more:?}");
        }
        if more == ["--counted"] {
            let counted = value("rows with completion counted").as_u64();
            assert!(counted > Some(100), "{counted:?}");
        }
    }
}

#[test]
fn no_call_runs_twice_without_a_counted_retry_when_upstreams_die_with_it() {
    for more in [&[][..], &["--http2"]] {
        let args = [&["deaths", "--count", "200", "--users", "16"], more].concat();
        let value = passed_audit(&args);
        let deaths = value("deaths with a call on a kept connection");
        assert!(deaths.as_u64() >= Some(200), "{deaths}");
        let twice = value("calls that ran twice, as counted retries");
        assert!(twice.as_u64() > Some(0), "{twice}");
    }
}

#[test]
fn no_kill_of_a_gate_takes_a_session_or_a_state_of_a_client_of_tools() {
    let args = [
        "sessions", "--calls", "6000", "--kills", "6", "--users", "40",
    ];
    let value = passed_audit(&args);
    assert_eq!(value("answers of another client or call"), 0);
    assert!(value("of these, with a state that was sealed before").as_u64() > Some(300));
}

#[test]
fn no_attempt_to_use_what_a_filter_hides_comes_through() {
    let value = passed_audit(&["filters", "--attempts", "3000", "--users", "8"]);
    assert_eq!(value("uses of what is hidden that came through"), 0);
    assert!(value("messages that came to a server").as_u64() > Some(0));
}

#[test]
fn an_audit_without_a_gate_binary_says_what_to_build() {
    let dir = tempfile::tempdir().expect("a directory");
    let nothing = dir.path().join("nothing").display().to_string();
    let output = Command::new(PROVE)
        .args(["audit", "kills", "--gate", &nothing])
        .output()
        .expect("prove runs");
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("build the gate"), "{said}");
}
