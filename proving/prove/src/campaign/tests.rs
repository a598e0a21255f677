//! Sums by phase and window, scenarios as they are shipped, and what stands in a document.

use std::path::{Path, PathBuf};
use std::time::Duration;

use experiment::telemetry::Span;

use super::live::clock;
use super::observed::{Cells, Ended, Observed};
use super::real;
use super::scenario::Scenario;
use crate::subject::{Places, Subject};

const SCENARIOS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios");

const fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn answer(due: u64, first: u64, ended: u64) -> Ended {
    Ended {
        due: s(due),
        sent: Some(s(due)),
        first_token: Some(s(first)),
        ended: s(ended),
        prompt_tokens: Some(100),
        cached_tokens: Some(40),
        output_tokens: Some(10),
        ..Ended::default()
    }
}

#[test]
fn a_request_is_of_the_phase_in_which_it_was_due_and_its_token_of_the_window_in_which_it_came() {
    let mut observed = Observed::new(1);
    observed.phase("baseline", s(0));
    observed.window(s(0));
    observed.phase("ramp", s(10));
    observed.window(s(10));
    observed.window(s(20));
    // Due in the baseline, its token in the first window of the ramp, its end in the second.
    observed.ended(&answer(9, 12, 21));
    observed.ended(&Ended {
        failure: Some("timeout".into()),
        ..answer(15, 16, 17)
    });
    let cells = |phase| Cells::sum(observed.cells(phase).expect("a phase"));
    assert_eq!((cells("baseline").answered, cells("ramp").answered), (1, 0));
    assert_eq!((cells("baseline").errors, cells("ramp").errors), (0, 1));
    assert_eq!(cells("baseline").cached_tokens, 40);
    let window = |from| observed.window_at(s(from)).expect("a window");
    assert_eq!(window(10).first.expect("a token").count, 1);
    assert!((window(10).first.expect("a token").mean - 3.0).abs() < 1e-9);
    assert_eq!((window(10).answered, window(10).errors), (0, 1));
    assert_eq!((window(20).answered, window(20).output_tokens), (1, 10));
    assert!(window(0).first.is_none());
    assert_eq!(observed.errors()[0].phase, "ramp");
    assert_eq!(observed.counts(), (1, 1));
}

#[test]
fn a_peak_is_the_best_ten_seconds_of_a_span() {
    let mut observed = Observed::new(1);
    observed.phase("soak", s(0));
    for second in 0..40 {
        let answers = if (20..30).contains(&second) { 5 } else { 1 };
        (0..answers).for_each(|_| observed.ended(&answer(second, second, second)));
    }
    let span = |from, to| Span {
        from: s(from),
        to: s(to),
    };
    assert!((observed.peak(span(0, 40)) - 5.0).abs() < 1e-9);
    assert!((observed.peak(span(0, 20)) - 1.0).abs() < 1e-9);
    assert!((observed.peak(span(90, 95)) - 0.0).abs() < 1e-9);
}

#[test]
fn the_client_is_a_target_whose_counters_are_those_of_its_rows() {
    let mut observed = Observed::new(1);
    observed.phase("baseline", s(0));
    observed.ended(&answer(1, 3, 6));
    let sample = observed.sample(s(7), 5);
    let value = |metric: &str| {
        let mut values = sample.values.iter();
        values
            .find(|value| value.metric == metric)
            .expect(metric)
            .value
    };
    let figures = [
        "requests_total",
        "errors_total",
        "ttft_seconds_sum",
        "e2e_seconds_sum",
        "users",
    ];
    assert_eq!(figures.map(value), [1.0, 0.0, 2.0, 5.0, 5.0]);
}

#[test]
fn every_scenario_that_is_shipped_is_read_without_a_fault() {
    for name in [
        "white-paper",
        "white-paper-short",
        "small-kv-cache",
        "cfs-trap",
    ] {
        let scenario = Scenario::read(&Path::new(SCENARIOS).join(name));
        let scenario = scenario.unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(scenario.name, name);
        assert!(scenario.gateway.is_some() && scenario.corpus.is_some());
        assert_eq!(scenario.hash().len(), 64);
        let gateway = scenario.gateway.as_deref().expect("a gateway");
        let upstreams = real::upstreams_of(&scenario).expect("a suite");
        let dir = tempfile::tempdir().expect("a directory");
        let places = Places {
            port: 1,
            admin_port: 2,
            upstream_port: 3,
            further_ports: upstreams.into_iter().map(|name| (name, 3)).collect(),
            issuer_port: 0,
            cores: 1,
            dir: dir.path().to_owned(),
        };
        let subject = Subject::of(gateway).expect("a manifest");
        let rendered = subject.render(&places);
        assert!(rendered.is_ok(), "{name}: {:?}", rendered.err());
    }
}

#[test]
fn a_scenario_without_gates_has_the_published_ones() {
    let text = "[engine]\npreset = 'x'\n".to_owned();
    let scenario = Scenario::parse("x", PathBuf::new(), text).expect("a scenario");
    let names: Vec<&str> = scenario
        .plan
        .gates
        .iter()
        .map(|gate| gate.name.as_str())
        .collect();
    assert_eq!(names, ["T2", "T3"]);
    let faults = Scenario::parse("x", PathBuf::new(), "[[target]]\nname = 'client'\n".into());
    let faults = faults.expect_err("faults").join("\n");
    for fault in [
        "engine: has to be there",
        "target[0].url: ",
        "target[0].name: ",
    ] {
        assert!(faults.contains(fault), "{fault} is not in\n{faults}");
    }
}

#[test]
fn a_time_is_told_as_a_clock_does() {
    assert_eq!([0.4, 61.0, 3723.0].map(clock), ["0:00", "1:01", "1:02:03"]);
}
