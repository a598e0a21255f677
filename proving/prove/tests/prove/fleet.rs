//! A race whose load comes from several processes.
//!
//! Not here: what a race measures from one (`main`).

use std::fs;
use std::process::Command;

use serde_json::Value;

use super::{PROVE, SAME, raced, row, subjects};

/// Streams, calls at a rate, users that ask again, and one user alone; the machine needs to do next to nothing for them.
const SCENARIOS: &str = "[[scenario]]\nname = 'users'\nusers = 6\nlatency_ms = 20\n\
    [[scenario]]\nname = 'rate'\nusers = 9\nper_second = 60.0\nlatency_ms = 5\n\
    [[scenario]]\nname = 'streams'\nusers = 6\nevents = 5\ninterval_ms = 10\n\
    [[scenario]]\nname = 'held'\nusers = 6\nhold = true\ninterval_ms = 50\n\
    [[scenario]]\nname = 'talks'\nusers = 6\nlatency_ms = 20\nbodies = 'conversation'\nbody_bytes = 4096\n\
    first_bytes = 2048\nturn_bytes = 1024\n\
    [[scenario]]\nname = 'alone'\nusers = 1\nlatency_ms = 20\n";

fn race(dir: &std::path::Path, further: &[&str]) -> Command {
    let mut race = super::race(dir, 1, &["--load-processes", "3"]);
    race.args(further);
    race
}

#[test]
fn a_race_is_driven_by_a_fleet_of_processes_that_share_users_and_rate() {
    let dir = subjects(&[SAME]);
    fs::write(dir.path().join("race.toml"), SCENARIOS).expect("a file");
    let (output, result) = raced(&mut race(dir.path(), &[]));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert_eq!(result["load_processes"], 3);
    let figure = |row: &Value, path: &str| row.pointer(path).and_then(Value::as_f64);
    for subject in ["direct", "same"] {
        for scenario in ["users", "rate", "streams", "held", "talks"] {
            let row = row(&result, subject, scenario);
            assert_eq!(row["status"], "measured", "{row:#}");
            assert_eq!(
                figure(row, "/client/processes/median"),
                Some(3.0),
                "{row:#}"
            );
            // Each had its share: a third, as far as a machine with others lets it.
            let least = figure(row, "/client/least_percent/median");
            assert!(least > Some(5.0) && least < Some(33.4), "{row:#}");
        }
        let alone = row(&result, subject, "alone");
        assert!(alone["client"]["processes"].is_null(), "{alone:#}");
        // One rate, and not one for each process; one stream for each user.
        let rate = row(&result, subject, "rate");
        let due = ["/answered/median", "/failed/median"].map(|path| figure(rate, path));
        let due = due.into_iter().flatten().sum::<f64>();
        assert!(
            (66.0..=78.0).contains(&due),
            "{due} of 72 in 1.2 s: {rate:#}"
        );
        let held = row(&result, subject, "held");
        assert_eq!(figure(held, "/streams_open/median"), Some(6.0), "{held:#}");
    }
    assert!(
        said.contains("client (3 processes, the least of them "),
        "{said}"
    );
}

#[test]
fn a_fleet_is_refused_where_sessions_are_one_processes_own() {
    let dir = subjects(&[]);
    let scenarios = "[[scenario]]\nname = 'tools'\nusers = 2\nmcp = { version = '2025-11-25', answers = 'json' }\n";
    fs::write(dir.path().join("race.toml"), scenarios).expect("a file");
    let output = race(dir.path(), &[]).output().expect("prove runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(
        said.contains("--load-processes: sessions of tools"),
        "{said}"
    );
}

#[test]
fn a_process_that_nobody_orders_anything_says_so() {
    let output = Command::new(PROVE)
        .arg("load-worker")
        .stdin(std::process::Stdio::null())
        .output()
        .expect("prove runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("a process of a race"), "{said}");
}
