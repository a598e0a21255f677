//! The document and the page.

use std::time::Duration;

use experiment::arrivals::{Process, Scope};
use experiment::certificate::Certifier;
use experiment::slo::{Goodput, Slo, Times};
use experiment::workload::{Enter, Load, Part, Profile, Stay, Workload};
use load::client::Failure;
use load::observer::{Measure, Observations};
use load::run::{Outcome, ProfileOutcome};

use super::{Ended, Report, Run};
use crate::load::rows::{Summed, Sums};
use crate::report::plain::Paper;

const PLAIN: Paper = Paper {
    width: 80,
    is_bold: false,
};

fn report(slo_share: Option<f64>) -> Report {
    report_of(slo_share, 0, 0)
}

fn report_of(slo_share: Option<f64>, errors: u64, left: u64) -> Report {
    let workload = Workload {
        seed: 1,
        ramp: Duration::ZERO,
        profiles: vec![Profile {
            name: "coding".into(),
            load: Load::Closed {
                users: 1,
                think: Process::Recorded,
                enter: Enter::Thinking,
                stay: Stay::Always,
            },
            scope: Scope::User,
        }],
    };
    let certificate = Certifier::new(&workload, Part::WHOLE).certify(Duration::from_secs(10));
    let mut observations = Observations::default();
    (observations.answered, observations.completed) = (20, 20);
    observations.left = left;
    let kind = Failure::Status(404);
    if errors > 0 {
        observations.failures.insert(kind, errors);
        observations
            .said
            .insert(kind, "no\x1b[2J such\n model".into());
    }
    for ms in 1..=20 {
        observations.record(Measure::Latency, Duration::from_millis(ms));
    }
    let outcome = Outcome {
        profiles: vec![ProfileOutcome {
            observations,
            ..ProfileOutcome::default()
        }],
        measured: Duration::from_secs(10),
        client_cpu: Duration::from_millis(20),
        ..Outcome::default()
    };
    let slo: Slo = "e2e<=10ms".parse().expect("a level");
    let mut goodput = Goodput::default();
    for e2e_s in [0.005, 0.015] {
        let times = Times {
            e2e_s: Some(e2e_s),
            ..Times::default()
        };
        goodput.count(&slo, &times);
    }
    let summed = Summed {
        profiles: vec![Sums {
            goodput,
            has_levels: true,
            ..Sums::default()
        }],
        rows: 20,
        fault: None,
    };
    let run = Run {
        tool: "prove 0".into(),
        corpus: "c".into(),
        corpus_model: "m".into(),
        predicted_hit_rate: 0.5,
        targets: vec!["http://127.0.0.1:1/v1".into()],
        protocol: "HTTP/1.1",
        seed: 1,
        started_unix_ms: 0,
        warm_up_s: 0.0,
        duration_s: 10.0,
        users: [("coding".into(), 1)].into(),
        threads: 1,
        profiles_left_out: vec!["terminal".into()],
        unchecked: false,
        error_share: 0.1,
        slo: slo_share.map(|_| slo.to_string()),
        slo_share,
    };
    Report::new(run, &["coding".into()], &outcome, &summed, certificate)
}

#[test]
fn the_document_has_the_names_that_are_fixed_and_leaves_out_what_there_is_not() {
    let document: serde_json::Value = serde_json::from_str(&report(None).to_json()).expect("JSON");
    assert_eq!(document["requests"], 20);
    assert_eq!(document["errors"], 0);
    assert!(document["certificate"]["verdict"].is_string());
    assert_eq!(document["requests_per_s"], 2.0);
    assert_eq!(document["generator"]["cpu_us_per_request"], 1000.0);
    assert_eq!(document["profiles"]["coding"]["requests"], 20);
    let e2e = &document["e2e_ms"];
    assert!(
        e2e["p50"]
            .as_f64()
            .is_some_and(|p50| (9.9..10.1).contains(&p50)),
        "{e2e}"
    );
    assert!(document.get("ttft_ms").is_none());
}

#[test]
fn too_few_good_exchanges_are_a_verdict_of_their_own() {
    assert_eq!(report(Some(0.9)).verdict, "slo_missed");
    assert_ne!(report(Some(0.5)).verdict, "slo_missed");
    let page = report(Some(0.9)).page(PLAIN);
    assert!(
        page.contains("goodput: 50.00 % of 2 kept e2e<=0.01s"),
        "{page}"
    );
    assert!(
        page.contains("profile terminal of the corpus got no traffic"),
        "{page}"
    );
    assert!(!page.contains('\x1b'));
    // Whose CPU it is, a reader does not have to guess.
    assert!(
        page.contains("the generator itself, not what it asked: "),
        "{page}"
    );
    let line = page
        .lines()
        .find(|line| line.contains("us of CPU a request"));
    assert!(
        line.is_none_or(|line| line.contains("the generator itself")),
        "{page}"
    );
}

#[test]
fn too_many_errors_are_a_verdict_of_their_own_and_the_page_says_what_the_first_said() {
    assert_ne!(
        report_of(None, 2, 0).verdict,
        "errors",
        "2 of 22 are within a tenth"
    );
    let report = report_of(Some(0.9), 3, 0);
    assert_eq!((report.verdict, report.ended()), ("errors", Ended::Failed));
    let page = report.page(PLAIN);
    assert!(
        page.contains("  error status_404: 3\n    the first said: no\u{fffd}[2J such model\n"),
        "{page}"
    );
    let report = report.without(&["such".to_owned().into()]);
    let document: serde_json::Value = serde_json::from_str(&report.to_json_line()).expect("JSON");
    let said = document["errors_said"]["status_404"]
        .as_str()
        .expect("text");
    assert!(said.contains("*** ") || said.contains("***\n"), "{said}");
    assert_eq!(document["errors_by_kind"]["status_404"], 3);
}

#[test]
fn what_has_no_end_is_an_error_and_keeps_no_service_level() {
    let report = report_of(Some(0.5), 0, 3);
    assert_eq!(report.verdict, "errors");
    let page = report.page(PLAIN);
    assert!(page.contains("3 requests had no whole answer"), "{page}");
    assert!(page.contains("goodput: 20.00 % of 5 kept"), "{page}");
}
