//! The comparison by example.

use std::collections::BTreeMap;

use experiment::Limit;

use super::{TITLE, counts_of, lines};
use crate::host::machine::Machine;
use crate::race::bench::Told;
use crate::race::cell::Cell;
use crate::race::result::{Bases, RaceResult, Row};
use crate::race::{page, scenario};

fn cells(us: [f64; 2], counts: &[(&str, u64)]) -> Vec<Cell> {
    let cell = |(round, us): (usize, f64)| Cell {
        round,
        figures: BTreeMap::from([
            ("cpu_us_per_request", us),
            ("counted_percent", 99.95),
            ("counted_in_the_end_percent", 99.99),
        ]),
        failures: BTreeMap::new(),
        counts: counts.iter().map(|(of, n)| ((*of).into(), *n)).collect(),
        limit: Limit::Open,
        exact: true,
    };
    us.into_iter().enumerate().map(cell).collect()
}

fn told(name: &str, unmetered: Option<&str>) -> Told {
    Told {
        name: name.into(),
        summary: String::new(),
        version: None,
        problem: None,
        failed: false,
        notes: Vec::new(),
        unmetered: unmetered.map(ToOwned::to_owned),
        flame: None,
    }
}

#[test]
fn a_subject_is_compared_with_the_same_without_its_meter_round_by_round() {
    let scenarios = "[[scenario]]\nname = 'free'\nusers = 1\n\
        [[scenario]]\nname = 'steady'\nusers = 1\nper_second = 400.0\n\
        [[scenario]]\nname = 'alone'\nusers = 1\n";
    let scenarios = scenario::parse(scenarios).expect("scenarios");
    let base = cells([10.0, 20.0], &[]);
    let own = cells([30.0, 40.0], &[]);
    let bases = Bases {
        direct: None,
        unmetered: Some(&base),
    };
    let mut rows = Vec::new();
    for scenario in ["free", "steady"] {
        rows.push(Row::new("with", scenario, &own, bases, None));
        rows.push(Row::new("without", scenario, &base, Bases::default(), None));
    }
    rows.push(Row::new("with", "alone", &own, Bases::default(), None));
    let subjects = vec![told("with", Some("without")), told("without", None)];
    let result = RaceResult::new(Machine::read(0), subjects, scenarios, rows, 1.0, 2);
    let [head, free, steady] = &lines(&result)[..] else {
        panic!("{:?}", lines(&result));
    };
    assert_eq!(head[0], "traffic");
    // The median of 3 and 2, not the ratio of the medians.
    assert_eq!(
        free[..],
        ["free", "max", "35.0", "15.0", "2.50", "99.95", "99.99"]
    );
    assert_eq!(steady[..2], ["steady", "400"]);
    let page = page::render(&result);
    assert!(page.contains(TITLE) && page.contains("<td class=\"n\">2.50</td>"));
}

#[test]
fn what_became_of_counts_is_told_with_shares_the_most_first() {
    let cells = cells(
        [1.0, 1.0],
        &[
            ("approximate", 30),
            ("busy", 60),
            ("unwritten", 4),
            ("waiting", 10),
        ],
    );
    let row = Row::new("x", "s", &cells, Bases::default(), None);
    assert_eq!(row.counts["busy"], 120, "of both rounds");
    let says = counts_of(&row);
    assert!(
        says.starts_with("busy 120 (60.00 %), approximate 60 (30.00 %), waiting 20 (10.00 %)"),
        "{says}"
    );
    assert!(says.ends_with("unwritten 8 (4.00 %)"), "{says}");
}
