//! Sums by phase and window, scenarios as they are shipped, and what stands in a document.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use experiment::campaign::{Course, Ending, Phase, PhaseSpan, Plan};
use experiment::telemetry::{Sample, Telemetry, Value};

use super::live::clock;
use super::observed::{Cells, Ended, Observed};
use super::queries;
use super::real;
use super::scenario::Scenario;
use super::summary::{self, Parts};
use crate::report::document::{self, Document, Reproduce, Verdict};
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
    assert_eq!(window(20).answered, 1);
    // Ten tokens came in the nine seconds from the first to the end, and one of these is the second window's.
    assert!((window(10).output_tokens - 80.0 / 9.0).abs() < 1e-9);
    assert!((window(20).output_tokens - 10.0 / 9.0).abs() < 1e-9);
    assert!(window(0).first.is_none());
    assert_eq!(observed.errors()[0].phase, "ramp");
    assert_eq!(observed.counts(), (1, 1));
}

#[test]
fn a_peak_is_the_best_ten_seconds_of_a_phase() {
    let mut observed = Observed::new(1);
    observed.phase("ramp", s(0));
    observed.phase("soak", s(5));
    for second in 0..45 {
        let answers = if (25..35).contains(&second) { 5 } else { 1 };
        (0..answers).for_each(|_| observed.ended(&answer(second, second, second)));
    }
    let is = |phase: &str, length: u64, wanted: f64| {
        let peak = observed.peak(phase, s(length));
        assert!(
            (peak - wanted).abs() < 1e-9,
            "{phase} of {length} s: {peak}"
        );
    };
    is("soak", 40, 5.0);
    is("soak", 20, 1.0);
    is("ramp", 5, 1.0);
    // Ten seconds in five of which nothing was due.
    is("ramp", 60, 0.5);
    is("retract", 5, 0.0);
}

#[test]
fn a_peak_has_nothing_of_the_phase_before_it() {
    let mut observed = Observed::new(1);
    let at = Duration::from_millis;
    observed.phase("ramp", s(0));
    observed.phase("retract", at(18_006));
    // Two in the last six milliseconds of the ramp, and two a second after it.
    for due in [
        18_001, 18_002, 18_100, 18_600, 19_100, 19_600, 20_100, 20_600,
    ] {
        let due = at(due);
        observed.ended(&Ended {
            due,
            first_token: Some(due),
            ended: due,
            ..Ended::default()
        });
    }
    let peak = observed.peak("retract", at(2_998));
    assert!((peak - 2.0).abs() < 1e-9, "{peak}");
}

#[test]
fn tokens_of_a_warm_up_are_none_of_the_window_after_it() {
    let mut observed = Observed::new(1);
    observed.phase("baseline", s(0));
    // After a warm-up of 30 s; the ramp's begins at 90.
    observed.window(s(30));
    observed.window(s(90));
    // One user, from the start: answers of 20 s that come at ten tokens a second.
    for at in 0..6 {
        let answer = Ended {
            output_tokens: Some(200),
            ..answer(at * 20, at * 20, at * 20 + 20)
        };
        observed.ended(&answer);
    }
    let window = observed.window_at(s(30)).expect("a window");
    assert!(
        (window.output_tokens / 60.0 - 10.0).abs() < 1e-9,
        "{}",
        window.output_tokens
    );
}

#[test]
fn a_peak_counts_what_a_phase_counts_and_is_never_below_its_mean() {
    let mut observed = Observed::new(1);
    observed.phase("baseline", s(0));
    observed.phase("soak", s(20));
    // Twenty requests of the baseline end in one second of the soak, whose own end after it.
    (0..20).for_each(|due| observed.ended(&answer(due, 25, 25)));
    (20..40).for_each(|due| observed.ended(&answer(due, due + 30, due + 30)));
    for phase in ["baseline", "soak"] {
        let peak = observed.peak(phase, s(20));
        assert!((peak - 1.0).abs() < 1e-9, "{phase}: {peak}");
    }
}

#[test]
fn a_pause_is_a_users_whatever_became_of_the_request_before_it() {
    let mut observed = Observed::new(1);
    observed.phase("soak", s(0));
    // Two users who pause for three seconds after each second, of whom one has every other request refused.
    let refused = |turn| (turn % 2 == 1).then(|| "status_503".to_owned());
    for (user, failures) in [(1, 0), (2, 1)] {
        for turn in 0..5 {
            let due = u64::from(turn) * 4;
            observed.ended(&Ended {
                user: Some(user),
                session: Some(7),
                turn: Some(turn),
                failure: refused(turn * failures),
                ..answer(due, due, due + 1)
            });
        }
    }
    // What is sent again as late as its refusal said is no pause.
    for (due, failure) in [(20, Some("status_429".to_owned())), (90, None)] {
        observed.ended(&Ended {
            user: Some(2),
            session: Some(7),
            turn: Some(5),
            failure,
            ..answer(due, due, due + 1)
        });
    }
    let cells = &observed.cells("soak").expect("a phase")[0];
    assert_eq!(cells.pauses, 9);
    assert!((cells.pauses_s - 27.0).abs() < 1e-9, "{}", cells.pauses_s);
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
fn the_white_papers_scenarios_have_each_figure_of_its_tables() {
    let document = serde_json::to_value(crate::report::full()).expect("a document");
    for name in ["white-paper", "white-paper-short"] {
        let scenario = Scenario::read(&Path::new(SCENARIOS).join(name), |_| Vec::new());
        let scenario = scenario.unwrap_or_else(|error| panic!("{error}"));
        let published: Vec<(&str, f64)> = scenario
            .published
            .iter()
            .map(|figure| (&*figure.name, figure.value))
            .collect();
        for figure in [
            // Table 1.
            ("Duration of the ramp", 25.0),
            ("T2", 224.0),
            ("Peak of requests in the ramp", 10.0),
            ("Error rate of the ramp", 0.0),
            ("Duration of the soak", 10_800.0),
            ("Soak", 190.0),
            ("Requests in the soak", 8.7),
            ("Error rate of the soak", 0.0125),
            // Table 2.
            ("TTFT in the soak", 0.103),
            ("TPOT in the soak", 0.035),
            ("ITL in the soak", 0.035),
            ("Queue time in the soak", 0.001),
            ("Prefill time in the soak", 0.074),
            // Table 3.
            ("Upstream latency in the soak", 14.291),
            ("End to end in the soak", 14.293),
            ("Gateway overhead", 2.0),
            ("Gateway overhead of the upstream latency", 0.01),
        ] {
            assert!(published.contains(&figure), "{name}: {figure:?}");
        }
        for figure in &scenario.published {
            let ours = super::published::figure(&document, &figure.figure);
            assert!(ours.is_some(), "{name}: {} leads nowhere", figure.name);
        }
    }
}

#[test]
fn every_scenario_that_is_shipped_is_read_without_a_fault() {
    for name in [
        "white-paper",
        "white-paper-short",
        "small-kv-cache",
        "cfs-trap",
        "inference-pool",
    ] {
        let scenario = Scenario::read(&Path::new(SCENARIOS).join(name), |_| Vec::new());
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
            further_ports: (upstreams.into_iter())
                .chain((1..=scenario.engine.replicas.unwrap_or(0)).map(super::rig::replica))
                .map(|name| (name, 3))
                .collect(),
            issuer_port: 0,
            cores: 1,
            dir: dir.path().to_owned(),
        };
        let subject = Subject::of(gateway).expect("a manifest");
        let rendered = subject.render(&places);
        assert!(rendered.is_ok(), "{name}: {:?}", rendered.err());
        let loaded = subject.under_load().expect("a manifest of it under load");
        let rendered = loaded.render(&places);
        assert!(rendered.is_ok(), "{name}: {:?}", rendered.err());
    }
}

#[test]
fn the_white_papers_load_comes_under_the_papers_identities_to_both_tiers_with_token_limits() {
    for name in ["white-paper", "white-paper-short"] {
        let scenario = Scenario::read(&Path::new(SCENARIOS).join(name), |_| Vec::new());
        let scenario = scenario.unwrap_or_else(|error| panic!("{error}"));
        let profiles = scenario.profiles.iter();
        let identities: Vec<&str> = profiles
            .map(|profile| {
                profile
                    .headers
                    .get("x-workload-app")
                    .unwrap_or(&profile.name)
            })
            .map(String::as_str)
            .collect();
        let papers = [
            "toolbench-agent",
            "terminal-bench-ci",
            "ui-navigation",
            "swe-rebench-ide",
        ];
        assert_eq!(identities, papers, "{name}");
        let gateway = Subject::of(scenario.gateway.as_deref().expect("one")).expect("a manifest");
        let loaded = gateway.under_load().expect("a manifest");
        let config = fs::read_to_string(loaded.dir.join("tollgate.yaml")).expect("a text");
        let routes = config.split_once("routes:").expect("routes").1;
        for identity in identities {
            assert!(routes.contains(identity), "{name}: {identity}");
        }
        for policy in ["backend: frontier", "backend: on-prem"] {
            assert!(routes.contains(policy), "{name}: {policy}");
        }
        assert_eq!(
            routes.matches("{ tokens: 20M, per: 1m }").count(),
            2,
            "{routes}"
        );
    }
}

#[test]
fn a_scenario_without_gates_has_the_published_ones() {
    let text = "[engine]\npreset = 'x'\n".to_owned();
    let (scenario, faults) = Scenario::parse("x", PathBuf::new(), text);
    assert_eq!(faults, Vec::<String>::new());
    let scenario = scenario.expect("a scenario");
    let names: Vec<&str> = scenario
        .plan
        .gates
        .iter()
        .map(|gate| gate.name.as_str())
        .collect();
    assert_eq!(names, ["T2", "T3"]);
    let (_, faults) = Scenario::parse(
        "x",
        PathBuf::new(),
        "[[target]]\nname = 'client'\nurl = 'x'\n[[target]]\nname = 'y'\n".into(),
    );
    let faults = faults.join("\n");
    for fault in [
        "engine: has to be there",
        "target[1].url: ",
        "target[0].name: ",
    ] {
        assert!(faults.contains(fault), "{fault} is not in\n{faults}");
    }
}

/// An engine whose mean TTFT is this, ten requests a second for a hundred seconds.
fn heard(plan: &Plan, ttft: f64) -> Telemetry {
    let mut queries = queries::queries();
    queries.extend(plan.gates.iter().map(|gate| gate.query.clone()));
    let mut telemetry = Telemetry::new(&queries);
    for second in 0..=100_u32 {
        let requests = f64::from(second) * 10.0;
        let values = [
            ("vllm:time_to_first_token_seconds_sum", requests * ttft),
            ("vllm:time_to_first_token_seconds_count", requests),
            ("vllm:num_preemptions_total", 0.0),
            ("vllm:request_success_total", requests),
        ];
        telemetry.hear(&Sample {
            at: s(second.into()),
            target: "engine".into(),
            values: values
                .map(|(metric, value)| value_of(metric, &[], value))
                .into(),
        });
        let gpus = ["0", "1", "2"].map(|gpu| {
            let labels = [("gpu", gpu)];
            value_of("DCGM_FI_DEV_POWER_USAGE", &labels, 100.0)
        });
        let nvlink = value_of("nvlink_bytes_per_second", &[], 5e9);
        telemetry.hear(&Sample {
            at: s(second.into()),
            target: "gpu".into(),
            values: gpus.into_iter().chain([nvlink]).collect(),
        });
    }
    telemetry
}

fn value_of(metric: &str, labels: &[(&str, &str)], value: f64) -> Value {
    Value {
        metric: metric.into(),
        labels: labels
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect(),
        value,
    }
}

/// A baseline of 0.1 s, T2 at 20 users, and a soak in which T2's gate said this in its worst two windows.
fn course(sustained: Option<f64>) -> Course {
    let span = |phase, from, to| PhaseSpan {
        phase,
        from: s(from),
        to: s(to),
    };
    Course {
        phases: vec![
            span(Phase::Baseline, 0, 20),
            span(Phase::Ramp, 20, 40),
            span(Phase::Retract, 40, 50),
            span(Phase::Soak, 50, 100),
        ],
        baselines: vec![("T2".into(), Some(0.1)), ("T3".into(), None)],
        soak: vec![("T2".into(), sustained), ("T3".into(), None)],
        t2_users: Some(20),
        ending: Some(Ending::Completed),
        ..Course::default()
    }
}

fn document(gates: &str, course: &Course, fit: Result<(), String>) -> Document {
    let text = format!(
        "[engine]\npreset = 'x'\n[scrape]\npatience = '20s'\n[baseline]\nwarm_up = '5s'\n{gates}"
    );
    let (scenario, faults) = Scenario::parse("x", PathBuf::new(), text);
    assert_eq!(faults, Vec::<String>::new());
    let scenario = scenario.expect("a scenario");
    let mut observed = Observed::new(1);
    for (phase, from) in [("baseline", 0), ("ramp", 20), ("retract", 40), ("soak", 50)] {
        observed.phase(phase, s(from));
    }
    (0..100).for_each(|second| observed.ended(&answer(second, second, second)));
    let telemetry = heard(&scenario.plan, 0.12);
    let reproduce = Reproduce::default();
    summary::document(Parts {
        remarks: vec!["policies were not verified".into()],
        generator_fit: fit,
        ..Parts::new(&scenario, about(), course, &telemetry, &observed, reproduce)
    })
}

fn about() -> document::Scenario {
    document::Scenario {
        name: "x".into(),
        title: "x".into(),
        is_virtual: false,
        is_engine_simulated: false,
        started_unix_ms: 0,
        seconds: 100.0,
        under_test: BTreeMap::new(),
    }
}

#[test]
fn a_soak_is_judged_by_its_worst_windows_and_not_by_its_mean() {
    let kept = document("", &course(Some(0.2)), Ok(()));
    assert_eq!(kept.verdict, Verdict::Passed, "{}", kept.reason);
    assert!(
        kept.reason.ends_with("; policies were not verified"),
        "{}",
        kept.reason
    );
    let open = document("", &course(Some(1.5)), Ok(()));
    assert_eq!(open.verdict, Verdict::SloFailed, "{}", open.reason);
    assert!(
        open.reason
            .contains("held for 2 consecutive windows: 1.5000 is above 0.3"),
        "{}",
        open.reason
    );
    let unknown = document("", &course(None), Ok(()));
    assert_eq!(unknown.verdict, Verdict::SloFailed, "{}", unknown.reason);
}

#[test]
fn an_end_has_the_exit_code_of_whoever_is_at_fault() {
    for (ending, code) in [
        (Ending::Completed, 0),
        (Ending::Held, 1),
        (Ending::Broken("bug: the scraper is gone".into()), 4),
        (Ending::Lapsed(s(600)), 4),
        (Ending::Failed("the engine ended".into()), 5),
        (Ending::Unanswered("T3".into()), 5),
        (Ending::Unreachable, 5),
        (Ending::Interrupted, 130),
    ] {
        let course = Course {
            ending: Some(ending.clone()),
            ..course(Some(0.2))
        };
        let told = document("", &course, Ok(()));
        assert_eq!(
            told.verdict.exit_code(),
            code,
            "{ending:?}: {}",
            told.reason
        );
    }
    let void = document("", &course(Some(0.2)), Err("no space left".into()));
    assert_eq!(void.verdict, Verdict::GeneratorVoid);
    assert_eq!(void.reason, "no space left");
}

#[test]
fn the_curve_and_its_limit_are_what_the_gate_asks_that_finds_t2() {
    let engines = document("", &course(Some(0.2)), Ok(()));
    assert!((engines.ttft_limit_s.expect("a limit") - 0.3).abs() < 1e-9);
    assert!(engines.series["ttft_s"].source.contains("engine:"));
    let gate = |query: &str| {
        format!(
            "[[gate]]\nname = 'T2'\nquery = '{query}'\ntimes_baseline = 3.0\nwindows = 2\nthen = 'retract'\n"
        )
    };
    let cache = gate("avg(engine:vllm:kv_cache_usage_perc)");
    let of_cache = document(&cache, &course(Some(0.2)), Ok(()));
    assert_eq!(
        of_cache.ttft_limit_s, None,
        "three times a share is no time"
    );
    let baseline = of_cache.baseline_ttft_ms.expect("the engine's");
    assert!((baseline - 120.0).abs() < 1e-6, "{baseline}");
    let users = document(
        &gate("mean(client:ttft_seconds)"),
        &course(Some(0.2)),
        Ok(()),
    );
    assert!((users.ttft_limit_s.expect("a limit") - 0.3).abs() < 1e-9);
    assert_eq!(users.baseline_ttft_ms, Some(100.0), "as users had it");
    assert!(!users.series.contains_key("ttft_s"), "nobody was heard");
}

#[test]
fn gpus_are_counted_and_nvlink_is_read_by_counters_where_there_are_no_rates() {
    let hardware = document("", &course(Some(0.2)), Ok(())).hardware;
    assert_eq!(hardware.gpus, Some(3));
    assert_eq!(hardware.nvlink_bytes_per_s, Some(5e9));
}

#[test]
fn a_time_is_told_as_a_clock_does() {
    assert_eq!([0.4, 61.0, 3723.0].map(clock), ["0:00", "1:01", "1:02:03"]);
}

#[test]
fn the_gates_of_the_documentation_are_read() {
    let dir = Path::new(SCENARIOS).join("white-paper");
    let shipped = std::fs::read_to_string(dir.join("scenario.toml"));
    let shipped = shipped.expect("a scenario");
    let own = shipped
        .split("[[gate]]")
        .next()
        .expect("what stands before");
    for (page, text) in crate::pages::pieces("gates") {
        let (_, faults) = Scenario::parse("x", dir.clone(), format!("{own}\n{text}"));
        assert_eq!(faults, Vec::<String>::new(), "{page}");
    }
}
