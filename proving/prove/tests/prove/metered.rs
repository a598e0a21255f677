//! A race of the meter: a subject that counts beside the same that does not, with bodies of every kind.
//!
//! The counts are those of a page that stands still between requests and grows with each that asks for it.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;

use serde_json::Value;

use super::answers::{self, serve};
use super::ports::Closed;
use super::{PROVE, SAME, race, raced, result, row, subjects};

const TRAFFIC: &str = "[[scenario]]\nname = 'not_asked_for'\nusers = 4\n\
    [[scenario]]\nname = 'free'\nusers = 4\nlatency_ms = 20\nbodies = 'code'\nbody_bytes = 4096\nmeter = true\n\
    [[scenario]]\nname = 'steady'\nusers = 4\nbodies = 'conversation'\nfirst_bytes = 2048\nturn_bytes = 1024\n\
    body_bytes = 4096\nper_second = 50.0\nmeter = true\n";
/// Requests that are due in one measurement and in the warm-up before it, at 50 a second.
const DUE: (u64, u64) = (60, 26);

/// Serves a page on which, each time, 1000 more calls have ended, of which so many are `counted`; `waiting` stays as it is.
/// It serves until the process ends.
pub(crate) fn page(counted: u64, waiting: u64) -> SocketAddr {
    serve(move |times| {
        let times = times as u64;
        let (calls, counted) = (times * 1_000, times * counted);
        let body = format!(
            "calls_total {calls}\nresults_total{{result=\"exact\"}} {counted}\n\
             results_total{{result=\"busy\"}} {}\nwaiting {waiting}\nseconds_total {times}\n\
             hits_total {}\nmisses_total {times}\n",
            calls - counted,
            times * 3,
        );
        Some(answers::page("text/plain", &body))
    })
}

/// Lets a subject count as the page says, and be compared with another.
pub(crate) fn with_counts(dir: &Path, subject: &str, unmetered: &str, page: SocketAddr) {
    let path = dir.join(subject).join("subject.toml");
    let manifest = fs::read_to_string(&path).expect("a manifest");
    let counting = format!(
        "unmetered = '{unmetered}'\n[counting]\nurl = 'http://{page}/metrics'\ncalls = 'calls_total'\n\
         results = 'results_total'\nlabel = 'result'\ncounted = ['exact']\nwaiting = 'waiting'\n\
         seconds = 'seconds_total'\nhits = 'hits_total'\nmisses = 'misses_total'\n"
    );
    fs::write(path, manifest + &counting).expect("a file");
}

/// Requests that the client came too late for; nothing else may fail.
fn unsent(row: &Value) -> u64 {
    let failures = row["failures"].as_object().expect("by kind");
    assert!(failures.keys().all(|kind| kind == "unsent"), "{row:#}");
    failures.get("unsent").and_then(Value::as_u64).unwrap_or(0)
}

#[test]
fn the_meter_is_raced_with_its_own_subjects_and_scenarios_and_the_ratio_is_told() {
    let dir = subjects(&[SAME, ("bare", PROVE, SAME.2), ("other", PROVE, SAME.2)]);
    fs::write(dir.path().join("race.toml"), TRAFFIC).expect("a file");
    with_counts(dir.path(), "same", "bare", page(990, 0));
    let (output, result) = raced(&mut race(dir.path(), 2, &["--meter"]));
    let table = String::from_utf8_lossy(&output.stderr);
    let rows = result["rows"].as_array().expect("rows");
    assert_eq!(rows.len(), 4, "{table}");
    // A busy machine may keep the client from sending some in time, which the race does not trust.
    let is_late = |row: &Value| unsent(row) > 0;
    let code = output.status.code();
    assert!(
        code == Some(0) || code == Some(1) && rows.iter().any(is_late),
        "{table}"
    );
    for scenario in ["free", "steady"] {
        let metered = row(&result, "same", scenario);
        assert_eq!(metered["counted_percent"]["median"], 99.0);
        assert_eq!(metered["counted_in_the_end_percent"]["median"], 99.0);
        assert_eq!(metered["counting"]["hit_percent"]["median"], 75.0);
        assert_eq!(metered["counts"]["busy"], 20, "of two rounds");
        assert!(metered["over_unmetered"]["median"].as_f64() > Some(0.0));
        let bare = row(&result, "bare", scenario);
        assert!(bare["counted_percent"].is_null() && bare["over_unmetered"].is_null());
    }
    // As many as are due, and no more, whatever an answer takes.
    let steady = row(&result, "same", "steady");
    let [least, most] = ["min", "max"].map(|of| steady["answered"][of].as_f64().expect("a count"));
    let due = least as u64 + most as u64 + unsent(steady);
    let (measured, warm_up) = DUE;
    let all = 2 * measured - 2..=2 * (measured + warm_up) + 2;
    assert!(all.contains(&due), "{due}: {steady:#}");
    assert!(
        table.contains("the meter: CPU") && table.contains("99.00"),
        "{table}"
    );
    assert!(
        table.contains("same: exact 1980 (99.00 %), busy 20 (1.00 %)"),
        "{table}"
    );
}

#[test]
fn without_a_subject_that_meters_there_is_nothing_to_race() {
    let dir = subjects(&[SAME]);
    fs::write(dir.path().join("race.toml"), TRAFFIC).expect("a file");
    let output = race(dir.path(), 1, &["--meter"]).output().expect("prove");
    let says = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{says}");
    assert!(says.contains("no subject says in `unmetered`"), "{says}");
}

#[test]
fn a_page_that_is_not_there_is_a_row_that_says_so() {
    let dir = subjects(&[SAME]);
    let nobody = Closed::new();
    with_counts(dir.path(), "same", "direct", nobody.address);
    let further = ["--scenarios", "small", "--subjects", "same"];
    let output = race(dir.path(), 1, &further).output();
    let output = output.expect("prove");
    let problem = row(&result(&output), "same", "small")["problem"].to_string();
    assert!(problem.contains("/metrics: unreachable"), "{problem}");
    assert_eq!(output.status.code(), Some(1));
}
