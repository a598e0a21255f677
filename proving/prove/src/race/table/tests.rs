//! A table by example.

use std::collections::BTreeMap;

use experiment::Limit;
use experiment::statistics::Spread;

use super::{COLUMNS, render};
use crate::host::machine::Machine;
use crate::race::bench::Problem;
use crate::race::cell::Cell;
use crate::race::result::{RaceResult, Row};

fn row(subject: &str, cpu: &[f64], limit: Limit) -> Row {
    let cell = |(round, &us): (usize, &f64)| {
        let figures = BTreeMap::from([
            ("cpu_us_per_request", us),
            ("client.cpu_us_per_request", 5.5),
        ]);
        Cell {
            round,
            figures,
            failures: BTreeMap::from([("timeout".into(), 2)]),
            limit,
            exact: true,
        }
    };
    let cells: Vec<_> = cpu.iter().enumerate().map(cell).collect();
    Row::new(
        subject,
        "unary",
        &cells,
        None,
        cells.is_empty().then(|| Problem {
            says: "not installed: get x".into(),
            known: true,
        }),
    )
}

#[test]
fn a_block_holds_ratios_errors_limits_problems_and_the_rigs_own_cost() {
    let rows = vec![
        row("nginx", &[16.0, 15.0, 17.0], Limit::Machine),
        row("ours", &[12.0], Limit::Client),
        row("gone", &[], Limit::Open),
    ];
    let text = render(
        &RaceResult::new(Machine::read(0), Vec::new(), Vec::new(), rows, 1.0, 3),
        false,
    );
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[1], "unary");
    assert_eq!(lines[2].split_whitespace().next(), Some("subject"));
    assert!(
        lines[3].contains("16.0 (15.0–17.0)")
            && lines[3].contains("1.00")
            && lines[3].contains("timeout 6")
    );
    assert!(lines[3].ends_with("machine"), "{}", lines[3]);
    assert!(lines[4].contains("12.0") && lines[4].contains("0.75"));
    assert!(lines[5].starts_with("gone") && lines[5].ends_with("not installed: get x"));
    assert!(lines[6].contains("ours: the generator or the upstream was the limit"));
    assert!(lines[7].contains("client: 5.50 (5.50–5.50) µs/req"));
    assert!(!text.contains('\x1b'));
}

#[test]
fn bold_is_only_for_terminals_that_want_it() {
    let result = RaceResult::new(
        Machine::read(0),
        Vec::new(),
        Vec::new(),
        vec![row("x", &[1.0], Limit::Open)],
        1.0,
        1,
    );
    assert!(render(&result, true).contains("\x1b[1munary\x1b[0m"));
}

#[test]
fn a_block_of_every_column_goes_on_below_within_eighty_columns() {
    let spread = Spread {
        median: 123_456.7,
        min: 99_999.9,
        max: 234_567.8,
    };
    let mut rows = vec![
        row("tollgate-64workers", &[16.0], Limit::Machine),
        row("nginx", &[15.0], Limit::Client),
        row("gone", &[], Limit::Open),
    ];
    for row in rows.iter_mut().take(2) {
        let unary = COLUMNS
            .iter()
            .filter(|column| column.figure != "cpu_us_per_event");
        row.figures
            .extend(unary.map(|column| (column.figure, spread)));
    }
    let text = render(
        &RaceResult::new(Machine::read(0), Vec::new(), Vec::new(), rows, 1.0, 3),
        false,
    );
    for line in text.lines() {
        assert!(line.chars().count() <= 80, "{line:?}\n{text}");
    }
    for head in [
        "CPU µs/req",
        "p99.9",
        "peak",
        "throttled",
        "errors",
        "limit",
    ] {
        assert!(text.contains(head), "no {head} in\n{text}");
    }
    let again = text
        .lines()
        .filter(|line| line.starts_with("tollgate-64workers"))
        .count();
    assert!(again > 1, "each part names its subjects: {text}");
    assert_eq!(text.matches("not installed: get x").count(), 1, "{text}");
}
