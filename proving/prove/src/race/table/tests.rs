//! A table by example.

use std::collections::BTreeMap;

use experiment::Limit;
use experiment::statistics::Spread;

use super::{COLUMNS, sections};
use crate::host::machine::Machine;
use crate::race::bench::{Problem, Told};
use crate::race::cell::Cell;
use crate::race::result::{Bases, RaceResult, Row};
use crate::report::plain::{self, Paper};

fn render(result: &RaceResult, is_bold: bool) -> String {
    plain::text(&sections(result), Paper { width: 80, is_bold })
}

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
            counts: BTreeMap::new(),
            limit,
            exact: true,
        }
    };
    let cells: Vec<_> = cpu.iter().enumerate().map(cell).collect();
    Row::new(
        subject,
        "unary",
        &cells,
        Bases::default(),
        cells.is_empty().then(|| Problem {
            says: "not installed: get x".into(),
            known: true,
        }),
    )
}

fn spread(value: f64) -> Spread {
    Spread {
        median: value,
        min: value,
        max: value,
    }
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
    assert!(lines[5].starts_with("  gone") && lines[5].ends_with("not installed: get x"));
    assert!(lines[6].contains("ours: the generator or the upstream was the limit"));
    assert!(lines[7].contains("client: 5.50 (5.50–5.50) µs/req"));
    assert!(!text.contains('\x1b'));
}

#[test]
fn who_keeps_no_connections_is_told() {
    let made = |subject: &str, value: f64| {
        let mut row = row(subject, &[16.0], Limit::Machine);
        let name = "upstream.connections_per_request";
        row.figures.insert(name, spread(value));
        row
    };
    let rows = vec![made("keeps", 0.001), made("closes", 0.98)];
    let result = RaceResult::new(Machine::read(0), Vec::new(), Vec::new(), rows, 1.0, 3);
    let text = render(&result, false);
    let told = "closes: 0.98 connections to the upstream for each request: they are not";
    assert!(text.contains(told), "{text}");
    assert!(!text.contains("keeps: "), "{text}");
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
            .filter(|column| column.1 != "cpu_us_per_event");
        row.figures.extend(unary.map(|column| (column.1, spread)));
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
        .filter(|line| line.starts_with("  tollgate-64workers"))
        .count();
    assert!(again > 1, "each part names its subjects: {text}");
    assert_eq!(text.matches("not installed: get x").count(), 1, "{text}");
}

#[test]
fn what_metering_costs_stands_below_the_blocks_within_eighty_columns() {
    let toml =
        "[[scenario]]\nname = 'meter_conversation_2000rps'\nusers = 1\nper_second = 2000.0\n";
    let scenarios = crate::race::scenario::parse(toml).expect("a scenario");
    let row = |subject: &str, us: f64| {
        let mut row = row(subject, &[us], Limit::Open);
        row.scenario = "meter_conversation_2000rps".into();
        if subject == "with" {
            row.figures.extend([
                ("over_unmetered", spread(28.29)),
                ("counted_percent", spread(99.95)),
                ("counted_in_the_end_percent", spread(100.0)),
            ]);
            row.counts = BTreeMap::from([("exact".into(), 4), ("busy".into(), 1)]);
        }
        row
    };
    let told = |name: &str, unmetered: Option<&str>| Told {
        name: name.into(),
        summary: "x".into(),
        version: None,
        problem: None,
        failed: false,
        notes: Vec::new(),
        unmetered: unmetered.map(ToOwned::to_owned),
        flame: None,
    };
    let subjects = vec![told("with", Some("without")), told("without", None)];
    let rows = vec![row("with", 10_055.9), row("without", 355.4)];
    let result = RaceResult::new(Machine::read(0), subjects, scenarios, rows, 1.0, 1);
    let text = render(&result, false);
    let (_, below) = text.split_once("the meter: ").expect("the table");
    let line = below.lines().nth(2).expect("a line");
    let cells: Vec<&str> = line.split_whitespace().collect();
    let expected = ["2000", "10055.9", "355.4", "28.29", "99.95", "100.00"];
    assert_eq!(cells[1..], expected, "{text}");
    let counts = "  with: exact 4 (80.00 %), busy 1 (20.00 %)";
    assert!(text.contains(counts), "{text}");
    for line in text.lines() {
        assert!(line.chars().count() <= 80, "{line:?}\n{text}");
    }
}
