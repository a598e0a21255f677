//! A page by example.

use std::collections::BTreeMap;

use experiment::Limit;

use super::render;
use crate::host::machine::Machine;
use crate::race::bench::{Problem, Told};
use crate::race::cell::Cell;
use crate::race::result::{Bases, RaceResult, Row};
use crate::race::scenario;

const SCENARIOS: &str = "[[scenario]]\nname = 'unary'\nusers = 32\n\
    [[scenario]]\nname = 'few'\nusers = 50\nlatency_ms = 60\n\
    [[scenario]]\nname = 'many'\nusers = 500\nlatency_ms = 60\n\
    [[scenario]]\nname = 'held'\nusers = 10\nhold = true\ninterval_ms = 1000\n";

fn page() -> String {
    let row = |scenario: &str, figures: &[(&'static str, f64)]| {
        let cell = Cell {
            round: 0,
            figures: figures.iter().copied().collect(),
            failures: BTreeMap::new(),
            counts: BTreeMap::new(),
            limit: Limit::Open,
            exact: true,
        };
        Row::new("a<b", scenario, &[cell], Bases::default(), None)
    };
    let problem = Problem {
        says: "not found: <no> program".into(),
        known: true,
    };
    let rows = vec![
        row("unary", &[("cpu_us_per_request", 16.0), ("rps", 60_000.0)]),
        Row::new("gone", "unary", &[], Bases::default(), Some(problem)),
        row(
            "few",
            &[
                ("latency_us.p50", 61_000.0),
                ("latency_us.p99", 63_000.0),
                ("rps", 812.0),
            ],
        ),
        row(
            "many",
            &[
                ("latency_us.p50", 62_000.0),
                ("latency_us.p99", 70_000.0),
                ("rps", 7_900.0),
            ],
        ),
        row(
            "held",
            &[("rss_kib_per_stream", 9.5), ("cpu_us_per_event", 8.0)],
        ),
    ];
    let told = |name: &str| Told {
        name: name.into(),
        summary: "a gateway".into(),
        version: Some("1.2".into()),
        problem: None,
        failed: false,
        notes: vec!["writes JSON anew".into()],
        unmetered: None,
        flame: Some("flame-x.svg".into()),
    };
    let scenarios = scenario::parse(SCENARIOS).expect("scenarios");
    let subjects = vec![told("a<b"), told("gone")];
    render(&RaceResult::new(
        Machine::read(0),
        subjects,
        scenarios,
        rows,
        1.0,
        1,
    ))
}

#[test]
fn a_page_holds_its_plots_and_a_table_for_each_scenario() {
    let page = page();
    for title in [
        "Latency p50 against users",
        "Latency p99 against users",
        "Throughput against users",
        "CPU µs per request: unary",
        "KiB per open stream: held",
    ] {
        assert!(
            page.contains(&format!("<figcaption>{title}</figcaption>")),
            "{title}"
        );
    }
    assert!(
        !page.contains("Throughput against CPU quota"),
        "there was none"
    );
    assert_eq!(page.matches("<table class=\"bars\">").count(), 2);
    assert_eq!(page.matches("<thead>").count(), 4);
    assert!(page.contains("<tr><td>gone</td><td colspan="), "{page}");
    assert!(page.contains("not found: &lt;no&gt; program") && page.contains("writes JSON anew"));
    assert!(page.contains("<a href=\"flame-x.svg\">"));
}

#[test]
fn a_page_asks_nobody_for_anything_and_names_are_text() {
    // The name of SVG's elements, which nobody fetches.
    let page = page().replace("http://www.w3.org/2000/svg", "");
    for word in ["http:", "https:", "src=", "@import", "url(", "a<b"] {
        assert!(!page.contains(word), "{word}");
    }
    assert!(page.contains("prefers-color-scheme: dark"));
}
