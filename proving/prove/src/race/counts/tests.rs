//! Two pages, and what happened between them.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::{Counts, Meter, Moments, Shown};
use crate::scrape::exposition::Page;
use crate::subject::{Counting, Places, Subject};

const MANIFEST: &str = r#"
url = "http://127.0.0.1:{admin_port}/metrics"
calls = 'calls_total{kind="chat"}'
results = 'results_total{direction="input"}'
label = "result"
counted = ["exact", "near"]
seconds = "seconds_total"
hits = 'remembered_total{result="hit"}'
misses = 'remembered_total{result="miss"}'
unwritten = "lost_total"
"#;

fn meter(manifest: &str) -> Result<Meter, String> {
    let counting: Counting = toml::from_str(manifest).expect("a manifest");
    Meter::of(&counting, &places())
}

fn places() -> Places {
    Places {
        port: 1,
        admin_port: 2,
        upstream_port: 3,
        further_ports: BTreeMap::new(),
        issuer_port: 4,
        cores: 1,
        dir: PathBuf::new(),
    }
}

fn shown(page: &str) -> Shown {
    let meter = meter(MANIFEST).expect("a meter");
    meter
        .shown(&Page::read(page.as_bytes()).values)
        .expect("what it shows")
}

fn page(calls: u64, [exact, near, busy]: [u64; 3], more: &str) -> String {
    format!(
        "calls_total{{kind=\"chat\",status=\"200\"}} {calls}\n\
         calls_total{{kind=\"models\"}} 77\n\
         results_total{{direction=\"input\",result=\"exact\"}} {exact}\n\
         results_total{{direction=\"input\",result=\"near\"}} {near}\n\
         results_total{{direction=\"input\",result=\"busy\"}} {busy}\n\
         results_total{{direction=\"output\",result=\"exact\"}} 5000\n{more}"
    )
}

fn figure(counts: &Counts, name: &str) -> Option<f64> {
    let mut figures = counts.figures.iter();
    figures.find(|(of, _)| *of == name).map(|(_, value)| *value)
}

#[test]
fn shares_are_of_the_calls_that_ended_and_what_is_left_over_waits() {
    let before = shown(&page(100, [10, 20, 30], "seconds_total 1.5\n"));
    let after = shown(&page(
        1_100,
        [110, 720, 80],
        "seconds_total 2.0\nlost_total 3\n",
    ));
    let counts = Counts::between(&before, &after);
    let expected = [
        ("busy", 50),
        ("exact", 100),
        ("near", 700),
        ("unwritten", 3),
        ("waiting", 150),
    ];
    assert_eq!(
        counts.calls,
        expected.map(|(of, n)| (of.to_owned(), n)).into()
    );
    assert_eq!(figure(&counts, "counted_percent"), Some(80.0));
    assert_eq!(figure(&counts, "counting.us_per_request"), Some(500.0));
    assert_eq!(
        figure(&counts, "counting.hit_percent"),
        None,
        "nothing was looked up"
    );
}

#[test]
fn what_waited_before_may_be_counted_in_the_interval_and_is_no_more_than_all() {
    let before = shown(&page(100, [60, 0, 0], ""));
    let after = shown(&page(
        200,
        [200, 0, 0],
        "remembered_total{result=\"hit\"} 30\nremembered_total{result=\"miss\"} 10\n",
    ));
    let counts = Counts::between(&before, &after);
    assert_eq!(counts.calls, BTreeMap::from([("exact".to_owned(), 140)]));
    assert_eq!(figure(&counts, "counted_percent"), Some(100.0));
    assert_eq!(figure(&counts, "counting.hit_percent"), Some(75.0));
}

#[test]
fn an_interval_without_calls_has_no_figures() {
    let shown = shown(&page(100, [60, 0, 0], ""));
    assert_eq!(Counts::between(&shown, &shown), Counts::default());
}

#[test]
fn a_page_without_the_series_and_a_series_that_is_none_are_told() {
    let meter_of = meter(MANIFEST).expect("a meter");
    let says = meter_of
        .shown(&Page::read(b"calls_total 1\n").values)
        .expect_err("no results");
    let expected = "http://127.0.0.1:2/metrics has no results_total{direction=\"input\"} with the label result";
    assert_eq!(says, expected);
    let wrong = MANIFEST.replace("lost_total", "lost_total{");
    let says = meter(&wrong).expect_err("no series");
    assert!(says.starts_with("counting.unwritten: "), "{says}");
}

#[test]
fn what_came_of_the_whole_run_in_the_end_stands_beside_the_interval() {
    let moments = Moments {
        quiet: shown(&page(0, [0, 0, 0], "")),
        begin: shown(&page(100, [80, 0, 0], "")),
        end: shown(&page(200, [130, 0, 20], "")),
        settled: shown(&page(250, [225, 0, 25], "")),
    };
    let counts = Counts::of(&moments);
    assert_eq!(figure(&counts, "counted_percent"), Some(50.0));
    assert_eq!(figure(&counts, "counted_in_the_end_percent"), Some(90.0));
    assert_eq!(counts.calls["waiting"], 30, "of the interval");
}

#[test]
fn the_subjects_that_are_shipped_name_series() {
    let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/gateways");
    let subjects = Subject::load_all(dir.as_ref(), &[]).expect("subjects");
    let all = subjects
        .iter()
        .filter_map(|subject| subject.manifest.counting.as_ref());
    let meters: Vec<Meter> = all
        .map(|counting| Meter::of(counting, &places()).expect("series"))
        .collect();
    assert!(!meters.is_empty());
}
