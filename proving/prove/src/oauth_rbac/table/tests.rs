//! What a reader sees of runs good and bad.

use std::collections::BTreeMap;

use super::{TITLE, sections};
use crate::host::machine::Machine;
use crate::issuer::Asked;
use crate::oauth_rbac::measure::{Iteration, Part, average};
use crate::oauth_rbac::result::{Outcome, Run, Throttled};
use crate::oauth_rbac::rig::Check;
use crate::oauth_rbac::scenario::{Figures, Scenario, Wanted};
use crate::report::html;
use crate::report::plain::{self, Paper};

fn iteration(answered: u64, p50_ms: f64) -> Iteration {
    let failed = 1_000 - answered;
    let failures = [("status_503".to_owned(), failed)].into_iter();
    Iteration {
        answered,
        requests: 1_000,
        seconds: 2.0,
        figures: Figures {
            p50_ms: Some(p50_ms),
            p95_ms: Some(2.0 * p50_ms),
            p99_ms: Some(3.0 * p50_ms),
            rps: Some(answered as f64 / 2.0),
            success_percent: Some(answered as f64 / 10.0),
        },
        failures: failures.filter(|_| failed > 0).collect::<BTreeMap<_, _>>(),
    }
}

fn outcome(iterations: Vec<Iteration>, problem: Option<&str>) -> Outcome {
    let shipped = include_str!("../../../../../scenarios/oauth-rbac/scenario.toml");
    let scenario = Scenario::parse(shipped, &Wanted::default()).expect("a scenario");
    let mut run = Run::new(&scenario.variants[0], &scenario.limits[1]);
    run.problem = problem.map(ToOwned::to_owned);
    run.checks = vec![Check {
        what: "a bad token",
        status: 401,
        expected: 401,
    }];
    run.average = (!iterations.is_empty()).then(|| average(&iterations));
    run.iterations = iterations;
    run.parts = vec![Part {
        part: "gate",
        cores_rest: 0.0001,
        cores_mean: 0.049,
        cores_peak: 0.05,
        mib_rest: 20.0,
        mib_peak: 21.5,
        cpu_us_per_request: 17.25,
    }];
    run.asked = Some(Asked {
        introspections: 3,
        authorizations: 0,
        keys: 0,
    });
    let spent = Throttled {
        periods: 40,
        throttled: 39,
        throttled_ms: 3_700,
    };
    run.gate_throttled = Some(spent);
    let machine = Machine {
        cpu: "a <CPU>".into(),
        cores: 2,
        memory_mib: 1,
        kernel: "6".into(),
        descriptors: 1,
    };
    Outcome {
        machine,
        gate: Some("tollgate 0".into()),
        target: None,
        scenario,
        runs: vec![run],
    }
}

fn text(outcome: &Outcome) -> String {
    let paper = Paper {
        width: 80,
        is_bold: false,
    };
    plain::text(&sections(outcome), paper)
}

#[test]
fn iterations_their_average_and_the_published_ones_stand_together_in_eighty_columns() {
    let outcome = outcome(vec![iteration(1_000, 1.0), iteration(1_000, 2.0)], None);
    assert!(outcome.trusted());
    let text = text(&outcome);
    for line in text.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
    let words = |start: &str| -> Vec<String> {
        let line = text
            .lines()
            .find(|line| line.trim_start().starts_with(start));
        let line = line.unwrap_or_else(|| panic!("no line {start}: {text}"));
        line.split_whitespace().map(ToOwned::to_owned).collect()
    };
    assert_eq!(
        words("1 "),
        ["1", "1.00", "2.00", "3.00", "500", "100.0", "(1000/1000)"]
    );
    assert_eq!(
        words("average "),
        ["average", "1.50", "3.00", "4.50", "500", "100.0"]
    );
    assert_eq!(
        words("gate  ")[1..],
        ["0.0001", "0.0490", "0.0500", "20.0", "21.5", "17.2"]
    );
    let ours = words("introspection, gate at 0.05 core  ");
    assert_eq!(ours[ours.len() - 5], "1.50");
    let limited = words("published, kube-auth-proxy at 0.05 core");
    assert_eq!(
        limited[limited.len() - 5..],
        ["1588", "3493", "4000", "29", "-"]
    );
    assert!(
        text.contains("stopped in 39 of 40 periods, for 3700 ms"),
        "{text}"
    );
    assert!(
        text.contains("about 3 tokens and 0 calls, for 2000 requests"),
        "{text}"
    );
    assert!(text.contains("18 November 2025"), "{text}");
}

#[test]
fn failures_and_problems_are_told_and_make_the_result_one_that_is_not_trusted() {
    let failing = outcome(vec![iteration(1_000, 1.0), iteration(990, 1.0)], None);
    assert!(!failing.trusted());
    let said = text(&failing);
    assert!(
        said.contains("failures of iteration 2: status_503 10"),
        "{said}"
    );
    let none = outcome(Vec::new(), Some("no permission for cgroups"));
    assert!(!none.trusted());
    let said = text(&none);
    assert!(
        said.contains("problem: no permission for cgroups"),
        "{said}"
    );
    let page = html::page(TITLE, &sections(&none));
    assert!(
        page.contains("no permission for cgroups") && page.contains("a &lt;CPU&gt;"),
        "{page}"
    );
    let json: serde_json::Value = serde_json::from_str(&none.to_json()).expect("JSON");
    assert_eq!(json["schema"], "tollgate.oauth-rbac/1");
    assert_eq!(
        (&json["trusted"], &json["runs"][0]["average"]),
        (&false.into(), &().into())
    );
    assert_eq!(json["reference"]["runs"][1]["average"]["p50_ms"], 1588.0);
}
