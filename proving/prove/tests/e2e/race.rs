//! The race's subjects with callers that prove who they are, as they are shipped, with fewer tokens.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::{PROVE, gate};

const SHIPPED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/gateways");
const ECHO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/mcp-echo");
const SUBJECTS: [&str; 9] = [
    "direct",
    "tollgate",
    "tollgate-key",
    "tollgate-jwt",
    "tollgate-jwt-rules",
    "tollgate-introspection",
    "tollgate-jwt-rs256-new",
    "tollgate-jwt-es256-new",
    "tollgate-jwt-eddsa-new",
];

/// A copy of a subject that finds the gate under test.
fn copy(subject: &str, to: &Path) {
    copy_of(&Path::new(SHIPPED).join(subject), to);
}

fn copy_of(subject: &Path, to: &Path) {
    fs::create_dir(to).expect("a directory");
    for entry in fs::read_dir(subject).expect("a subject") {
        let from = entry.expect("an entry").path();
        let text = fs::read_to_string(&from).expect("a text");
        let found = format!("find = {{ path = ['{}'] }}", gate().display());
        let text = text.replace("find = { cargo = \"tollgate\" }", &found);
        let text = text.replace("count = 50000", "count = 50");
        fs::write(to.join(from.file_name().expect("a name")), text).expect("a file");
    }
}

/// A short cell of each traffic of the meter, as it is shipped, at rates that any machine carries.
#[test]
fn what_metering_costs_is_told_for_each_traffic_and_none_is_given_up() {
    let dir = tempfile::tempdir().expect("a directory");
    let shipped = Path::new(SHIPPED).join("race.toml");
    let mut scenarios = fs::read_to_string(shipped).expect("scenarios");
    let mut slower = |from: u32, to: u32| {
        let [from, to] =
            [from, to].map(|rate| format!("per_second = {rate}.0\nquick = true\nmeter = true"));
        assert!(scenarios.contains(&from), "{from}");
        scenarios = scenarios.replace(&from, &to);
    };
    slower(4_000, 200);
    slower(2_000, 200);
    slower(400, 60);
    slower(100, 20);
    fs::write(dir.path().join("race.toml"), scenarios).expect("a file");
    let messages = "conversation.json";
    fs::copy(Path::new(SHIPPED).join(messages), dir.path().join(messages)).expect("a file");
    for subject in ["tollgate-metered", "tollgate-unmetered"] {
        copy(subject, &dir.path().join(subject));
    }
    let output = Command::new(PROVE)
        .arg("race")
        .arg(dir.path())
        .args(["--meter", "--quick", "--repeat", "1", "--json", "--out"])
        .arg(dir.path().join("result.json"))
        .output()
        .expect("prove runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let result: Value = serde_json::from_slice(&output.stdout).expect(&said);
    let rows = result["rows"].as_array().expect("rows");
    assert_eq!(rows.len(), 10, "{said}");
    for row in rows {
        assert_eq!(row["rounds"], 1, "{row:#}");
        // On a busy machine the client may be late with the last of them; nothing else may fail.
        let failures = row["failures"].as_object().expect("an object");
        assert!(failures.keys().all(|kind| kind == "unsent"), "{row:#}");
        if row["subject"] == "tollgate-metered" {
            // So may the counts be, and none is given up.
            let in_the_end = row["counted_in_the_end_percent"]["min"].as_f64();
            assert!(in_the_end > Some(99.0), "{row:#}");
            assert!(row["counts"]["approximate"].as_u64() > Some(5), "{row:#}");
            assert!(row["counts"]["busy"].is_null(), "{row:#}");
            let ratio = row["over_unmetered"]["median"].as_f64();
            assert!(ratio > Some(0.0), "{row:#}");
        }
    }
}

/// Races at most, until the machine stood still in none of their measurements.
const ATTEMPTS: usize = 4;

#[test]
fn callers_prove_who_they_are_in_every_way_that_is_raced() {
    let dir = tempfile::tempdir().expect("a directory");
    // Some hundred calls a second: what any machine can do is enough, and all that it can is not needed.
    let scenarios = "[[scenario]]\nname = 'unary_1k_c4'\nusers = 4\nlatency_ms = 5\n";
    fs::write(dir.path().join("race.toml"), scenarios).expect("a file");
    for subject in SUBJECTS {
        copy(subject, &dir.path().join(subject));
    }
    let race = || {
        let output = Command::new(PROVE)
            .arg("race")
            .arg(dir.path())
            .args(["--subjects", &SUBJECTS.join(",")])
            .args(["--repeat", "2", "--seconds", "0.7", "--json", "--out"])
            .arg(dir.path().join("result.json"))
            .output()
            .expect("prove runs");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        (output, said)
    };
    // A machine that stands still for longer than a measurement leaves it without an answer: that is raced again.
    let (mut output, mut said) = race();
    for _ in 1..ATTEMPTS {
        if !said.contains("nothing was answered") {
            break;
        }
        (output, said) = race();
    }
    assert_eq!(output.status.code(), Some(0), "{said}");
    let result: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let rows = result["rows"].as_array().expect("rows");
    assert_eq!(rows.len(), SUBJECTS.len());
    for row in rows {
        assert_eq!(
            (&row["status"], &row["rounds"]),
            (&"measured".into(), &2.into()),
            "{row:#}"
        );
        assert_eq!(row["failed"]["max"], 0.0, "{row:#}");
        let made = row["upstream"]["connections_per_request"]["max"].as_f64();
        assert!(made.is_some_and(|made| made < 0.05), "{row:#}");
        assert!(
            row["answered"]["max"].as_f64() > Some(50.0),
            "more than there are tokens, in the better round: {row:#}"
        );
    }
}

/// Work is counted, not speed: were all requests one replica's, the other would have used next to nothing.
#[test]
fn requests_go_to_replicas_in_turn_and_each_has_its_share() {
    let dir = tempfile::tempdir().expect("a directory");
    let scenarios = "[[scenario]]\nname = 'unary_1k_c4'\nusers = 4\nlatency_ms = 5\n";
    fs::write(dir.path().join("race.toml"), scenarios).expect("a file");
    let subjects = ["tollgate", "tollgate-2replicas"];
    for subject in subjects {
        copy(subject, &dir.path().join(subject));
    }
    let output = Command::new(PROVE)
        .arg("race")
        .arg(dir.path())
        .args(["--subjects", &subjects.join(","), "--repeat", "1"])
        .args(["--seconds", "2", "--json", "--out"])
        .arg(dir.path().join("result.json"))
        .output()
        .expect("prove runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let result: Value = serde_json::from_slice(&output.stdout).expect(&said);
    let rows = result["rows"].as_array().expect("rows");
    assert_eq!(rows.len(), 2, "{said}");
    for row in rows {
        assert_eq!(row["status"], "measured", "{row:#}");
        assert_eq!(row["failed"]["max"], 0.0, "{row:#}");
        let least = row["replicas"]["least_cpu_percent"]["min"].as_f64();
        match row["subject"].as_str() {
            Some("tollgate") => assert_eq!(least, None, "{row:#}"),
            _ => assert!(least > Some(20.0), "{row:#}"),
        }
    }
}

/// A short cell of each kind of call of a tool, as it is shipped: versions, forms of answers, one server and ten, streams that are held.
#[test]
fn an_echoing_tool_is_called_in_every_version_and_form_through_the_gate() {
    let dir = tempfile::tempdir().expect("a directory");
    let scenarios = fs::read_to_string(Path::new(ECHO).join("race.toml")).expect("scenarios");
    let few = scenarios
        .replace("users = 64", "users = 4")
        .replace("users = 1000\n", "users = 20\n");
    fs::write(dir.path().join("race.toml"), few).expect("a file");
    for subject in ["direct", "tollgate", "tollgate-10"] {
        copy_of(&Path::new(ECHO).join(subject), &dir.path().join(subject));
    }
    let names = [
        "one_sessions_json_c1",
        "one_sessions_events_c64",
        "one_stateless_json_c64",
        "one_stateless_events_c64",
        "ten_sessions_json_c64",
        "ten_stateless_events_c64",
        "one_hold_1000streams",
    ];
    let output = Command::new(PROVE)
        .arg("race")
        .arg(dir.path())
        .args(["--scenarios", &names.join(",")])
        .args(["--repeat", "1", "--seconds", "1.5", "--json", "--out"])
        .arg(dir.path().join("result.json"))
        .output()
        .expect("prove runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let result: Value = serde_json::from_slice(&output.stdout).expect(&said);
    let rows = result["rows"].as_array().expect("rows");
    assert_eq!(rows.len(), 2 * names.len(), "{said}");
    for row in rows {
        assert_eq!(row["status"], "measured", "{row:#}");
        assert_eq!(row["failed"]["max"], 0.0, "{row:#}");
        let is_held = row["scenario"] == "one_hold_1000streams";
        let (count, least) = if is_held {
            (&row["streams_open"], 20.0)
        } else {
            (&row["answered"], 1.0)
        };
        assert!(count["max"].as_f64() >= Some(least), "{row:#}");
    }
    assert!(said.contains("beside published figures"), "{said}");
    assert_eq!(result["references"][0]["rows"][0]["us"], 80.7, "{said}");
}
