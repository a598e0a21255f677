//! Rows from cells, and what makes a race untrustworthy.

use std::collections::BTreeMap;

use experiment::Limit;

use super::{Bases, RaceResult, Row};
use crate::host::machine::Machine;
use crate::race::bench::{Problem, Told};
use crate::race::cell::Cell;

fn cell(round: usize, figures: &[(&'static str, f64)]) -> Cell {
    let figures = figures.iter().copied().collect();
    Cell {
        round,
        figures,
        failures: BTreeMap::new(),
        counts: BTreeMap::new(),
        limit: Limit::Open,
        exact: true,
    }
}

fn told(problem: Option<&str>, failed: bool) -> Told {
    let problem = problem.map(ToOwned::to_owned);
    Told {
        name: "x".into(),
        summary: String::new(),
        version: None,
        problem,
        failed,
        notes: Vec::new(),
        unmetered: None,
        flame: None,
    }
}

fn result(told: Told, rows: Vec<Row>) -> RaceResult {
    RaceResult::new(Machine::read(0), vec![told], Vec::new(), rows, 1.0, 2)
}

#[test]
fn figures_are_medians_over_rounds_and_additions_are_taken_round_by_round() {
    let direct = [
        cell(0, &[("latency_us.p50", 50.0)]),
        cell(1, &[("latency_us.p50", 70.0)]),
    ];
    let cells = [
        cell(0, &[("latency_us.p50", 80.0), ("cpu_us_per_request", 16.0)]),
        cell(1, &[("latency_us.p50", 90.0), ("cpu_us_per_request", 18.0)]),
    ];
    let bases = Bases {
        direct: Some(&direct),
        unmetered: None,
    };
    let row = Row::new("x", "s", &cells, bases, None);
    let json: serde_json::Value =
        serde_json::from_str(&result(told(None, false), vec![row]).to_json()).expect("JSON");
    let row = &json["rows"][0];
    assert_eq!(
        row["cpu_us_per_request"],
        serde_json::json!({"median": 17.0, "min": 16.0, "max": 18.0})
    );
    assert_eq!(
        row["added_us"]["p50"],
        serde_json::json!({"median": 25.0, "min": 20.0, "max": 30.0})
    );
    assert_eq!(
        (&row["status"], &row["rounds"]),
        (&"measured".into(), &2.into())
    );
    assert!(row.get("rps").is_none());
    assert_eq!(json["trusted"], true);
}

#[test]
fn a_row_in_which_many_requests_failed_is_not_trusted() {
    let few = Row::new(
        "x",
        "s",
        &[cell(0, &[("answered", 1000.0), ("failed", 1.0)])],
        Bases::default(),
        None,
    );
    let many = Row::new(
        "x",
        "s",
        &[cell(0, &[("answered", 90.0), ("failed", 10.0)])],
        Bases::default(),
        None,
    );
    assert_eq!(few.problem, None);
    assert_eq!(
        many.problem.as_deref(),
        Some("10.0 % of the requests failed")
    );
    assert!(result(told(None, false), vec![few]).trusted());
    assert!(!result(told(None, false), vec![many]).trusted());
}

#[test]
fn a_missing_rival_is_a_row_and_fails_the_race_only_when_asked_for() {
    let row = |known| {
        let says = "not found".to_owned();
        Row::new(
            "x",
            "s",
            &[],
            Bases::default(),
            Some(Problem { says, known }),
        )
    };
    assert!(result(told(Some("not found"), false), vec![row(true)]).trusted());
    assert!(!result(told(Some("not found"), true), vec![row(true)]).trusted());
    assert!(!result(told(None, false), vec![row(false)]).trusted());
}

#[test]
fn a_fault_that_was_foretold_is_a_row_and_no_reason_to_distrust() {
    let says = "cannot stream".to_owned();
    let problem = Some(Problem { says, known: true });
    let row = Row::new("x", "s", &[], Bases::default(), problem);
    let whole = result(told(None, false), vec![row]);
    assert!(whole.trusted());
    let json: serde_json::Value = serde_json::from_str(&whole.to_json()).expect("JSON");
    let row = &json["rows"][0];
    assert_eq!(
        (&row["status"], &row["known_problem"]),
        (&"failed".into(), &true.into())
    );
}
