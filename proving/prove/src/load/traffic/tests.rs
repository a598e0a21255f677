//! Who gets which traffic.

use std::path::Path;

use experiment::arrivals::Process;
use experiment::workload::{Load, Stay};

use super::{
    CorpusProfile, File, Planned, THINK_S, TrafficRequest, Users, Value, header, named_arrivals,
    named_process, plan,
};

fn has() -> Vec<CorpusProfile> {
    let profile = |name: &str, sessions, has_pauses: bool| CorpusProfile {
        name: name.into(),
        sessions,
        later: 5,
        with_pauses: if has_pauses { 5 } else { 2 },
    };
    vec![
        profile("api-orchestration", 30, false),
        profile("terminal", 10, true),
        profile("coding", 60, false),
    ]
}

fn asked() -> TrafficRequest {
    TrafficRequest {
        users: Users::Together(10),
        connections: 100,
        path: "/chat/completions".into(),
        ..TrafficRequest::default()
    }
}

fn planned(asked: &TrafficRequest, file: &str) -> Result<Planned, String> {
    let file: File = toml::from_str(file).map_err(|error| error.to_string())?;
    plan(asked, &file, Path::new(""), &has()).map_err(|error| error.to_string())
}

fn users(planned: &Planned) -> Vec<u32> {
    let of = |load: &Load| match load {
        Load::Closed { users, .. } => *users,
        Load::Open { .. } => 0,
    };
    planned
        .workload
        .profiles
        .iter()
        .map(|profile| of(&profile.load))
        .collect()
}

fn think(planned: &Planned, at: usize) -> Process {
    match &planned.workload.profiles[at].load {
        Load::Closed { think, .. } | Load::Open { think, .. } => think.clone(),
    }
}

#[test]
fn users_are_shared_out_by_sessions_and_pauses_are_those_recorded_or_the_paper_s() {
    let planned = planned(&asked(), "").expect("a plan");
    assert_eq!(users(&planned), [3, 1, 6]);
    assert!(matches!(think(&planned, 0), Process::Mmpp(m) if m.low() == 0.0));
    assert_eq!(think(&planned, 1), Process::Recorded);
    assert_eq!(think(&planned, 2), Process::Exponential { mean_s: THINK_S });
}

#[test]
fn a_file_goes_before_options_and_options_before_the_corpus() {
    let mut asked = asked();
    let option = |text| named_process(text).expect(text);
    asked.think = vec![option("constant:1s"), option("coding=constant:2s")];
    let file = "[[profile]]\nname = 'terminal'\nusers = 7\nthink = 'gamma:3s,cv=1.5'\n\
                headers = { x-workload-app = 'terminal-bench-ci' }\n";
    let planned = planned(&asked, file).expect("a plan");
    // The others share what was asked for.
    assert_eq!(users(&planned), [3, 7, 7]);
    let constant = |mean_s| Process::Constant { mean_s };
    assert_eq!(
        (think(&planned, 0), think(&planned, 2)),
        (constant(1.0), constant(2.0))
    );
    assert_eq!(
        think(&planned, 1),
        Process::Gamma {
            mean_s: 3.0,
            cv: 1.5
        }
    );
    let workload = |at: usize| {
        let headers = planned.traffic[at].head.headers();
        let found = headers.iter().find(|(name, _)| name == "x-workload-app");
        found.map(|(_, value)| value.to_str().expect("text").to_owned())
    };
    assert_eq!(workload(0).as_deref(), Some("api-orchestration"));
    assert_eq!(workload(1).as_deref(), Some("terminal-bench-ci"));
}

#[test]
fn a_rate_opens_the_loop_and_is_shared_out_by_weight() {
    let mut asked = asked();
    asked.rate = Some(10.0);
    let planned = planned(&asked, "").expect("a plan");
    let rates: Vec<f64> = planned
        .workload
        .profiles
        .iter()
        .map(|profile| match &profile.load {
            Load::Open { arrivals, .. } => arrivals.rate().expect("a rate"),
            Load::Closed { .. } => panic!("closed"),
        })
        .collect();
    for (rate, expected) in rates.iter().zip([3.0, 1.0, 6.0]) {
        assert!((rate - expected).abs() < 1e-9, "{rates:?}");
    }
}

#[test]
fn a_law_of_starts_takes_its_mean_from_the_rate() {
    let named = named_arrivals("gamma:cv=1.5").expect("a law");
    let says = named.needs_a_rate.expect("no mean");
    assert!(
        says.contains("--arrivals gamma:cv=1.5: says no mean"),
        "{says}"
    );
    let mut asked = asked();
    asked.rate = Some(150.0);
    asked.arrivals = vec![(named.profile, named.law)];
    let planned = planned(&asked, "").expect("a plan");
    for (profile, share) in planned.workload.profiles.iter().zip([0.3, 0.1, 0.6]) {
        let Load::Open {
            arrivals: Process::Gamma { mean_s, cv },
            ..
        } = profile.load
        else {
            panic!("{profile:?}");
        };
        assert!(
            (mean_s * 150.0 * share - 1.0).abs() < 1e-9 && cv == 1.5,
            "{mean_s} {cv}"
        );
    }
    let own = named_arrivals("coding=gamma:2s,cv=3").expect("a law");
    assert_eq!(
        (own.profile.as_deref(), own.needs_a_rate),
        (Some("coding"), None)
    );
}

#[test]
fn what_says_the_same_twice_or_makes_no_sense_is_refused_with_what_to_do() {
    let profile = |says: &str| format!("[[profile]]\nname = 'coding'\n{says}\n");
    let refused =
        |asked: &TrafficRequest, says: &str| planned(asked, &profile(says)).expect_err(says);
    let (plain, mut rate, mut once) = (asked(), asked(), asked());
    (rate.rate, once.once) = (Some(10.0), true);
    for weight in ["-1.0", "0.0", "nan", "inf"] {
        let error = refused(&plain, &format!("weight = {weight}"));
        assert!(
            error.contains("profile coding") && error.contains("above 0"),
            "{error}"
        );
    }
    let arrivals = "arrivals = 'exponential:2/s'";
    for (says, names) in [
        (format!("users = 3\n{arrivals}"), "users are a closed loop"),
        ("users = 3\nweight = 2.0".into(), "a weight says nothing"),
        (format!("weight = 2.0\n{arrivals}"), "a weight says nothing"),
    ] {
        let error = refused(&plain, &says);
        assert!(error.contains(names), "{error}");
    }
    let error = refused(&plain, "think = 'recorded'");
    assert!(error.contains("3 of its 5 later requests"), "{error}");
    let error = refused(&once, arrivals);
    assert!(error.contains("--once"), "{error}");

    // What the file says goes before the rate, which is for the others.
    let of = |planned: &Planned, at: usize| match &planned.workload.profiles[at].load {
        Load::Open { arrivals, .. } => arrivals.rate(),
        Load::Closed { .. } => None,
    };
    let own = planned(&rate, &profile(arrivals)).expect("a plan");
    assert_eq!((of(&own, 0), of(&own, 2)), (Some(7.5), Some(2.0)));
    let closed = planned(&rate, &profile("users = 3")).expect("a plan");
    assert_eq!(users(&closed), [0, 0, 3]);
}

#[test]
fn once_has_no_more_users_than_sessions_and_no_pauses() {
    let mut asked = asked();
    (asked.users, asked.once) = (Users::Together(500), true);
    let planned = planned(&asked, "").expect("a plan");
    assert_eq!(users(&planned), [30, 10, 60]);
    for (at, profile) in planned.workload.profiles.iter().enumerate() {
        assert_eq!(think(&planned, at), Process::Constant { mean_s: 0.0 });
        assert!(matches!(
            profile.load,
            Load::Closed {
                stay: Stay::Once,
                ..
            }
        ));
    }
}

#[test]
fn once_leaves_no_profile_out_however_few_users_there_are() {
    let mut asked = asked();
    (asked.users, asked.once) = (Users::Together(1), true);
    let planned = planned(&asked, "").expect("a plan");
    assert_eq!(
        (users(&planned), planned.left_out.len()),
        (vec![1, 1, 1], 0)
    );
}

#[test]
fn who_gets_no_users_is_told_of_and_nobody_at_all_is_refused() {
    let mut asked = asked();
    asked.users = Users::Together(1);
    let planned_one = planned(&asked, "").expect("a plan");
    assert_eq!(planned_one.left_out, ["api-orchestration", "terminal"]);
    assert_eq!(planned_one.profiles, [2]);
    asked.users = Users::Together(0);
    let error = planned(&asked, "").expect_err("nobody");
    assert!(error.contains("more --users"), "{error}");
}

#[test]
fn unknown_profiles_and_keys_are_refused_by_name() {
    let error = planned(&asked(), "[[profile]]\nname = 'codng'\n").expect_err("a typo");
    assert!(
        error.contains("no profile codng") && error.contains("coding"),
        "{error}"
    );
    let error =
        planned(&asked(), "[[profile]]\nname = 'coding'\nthik = '1s'\n").expect_err("a typo");
    assert!(error.contains("thik"), "{error}");
    let twice = "[[profile]]\nname = 'coding'\n[[profile]]\nname = 'coding'\n";
    assert!(
        planned(&asked(), twice)
            .expect_err("twice")
            .contains("twice")
    );
}

#[test]
fn options_of_processes_and_headers_are_read_whole() {
    let (name, spec) = named_process("gamma:7.5s,cv=1.5").expect("a process");
    assert_eq!((name, spec.to_string()), (None, "gamma:7.5s,cv=1.5".into()));
    let (name, _) = named_process("coding=gamma:7.5s,cv=1.5").expect("a process");
    assert_eq!(name.as_deref(), Some("coding"));
    named_process("coding=").expect_err("no process");
    assert_eq!(header("a: b:c"), Ok(("a".into(), "b:c".into())));
    header("a").expect_err("no colon");
    let value = Value::read("x-key", "Bearer ${PATH}").expect("set");
    assert!(matches!(value, Value::Secret(_)), "{value:?}");
    assert!(!format!("{value:?}").contains('/'));
    let error = Value::read("x-key", "${TOLLGATE_SURELY_UNSET}")
        .expect_err("unset")
        .to_string();
    assert!(error.contains("TOLLGATE_SURELY_UNSET"), "{error}");
    let error = Value::read("x-key", "Bearer sk-secret${PATH").expect_err("no end");
    let error = error.to_string();
    assert!(
        error.contains("x-key") && !error.contains("secret"),
        "{error}"
    );
}

#[test]
fn whom_a_master_steers_are_there_and_none_is_at_work_before_it_says_so() {
    let steered = TrafficRequest {
        users: Users::OfEach(50),
        ..asked()
    };
    let planned = planned(&steered, "").expect("a plan");
    assert_eq!(users(&planned), [50, 50, 50]);
    assert!(
        planned
            .traffic
            .iter()
            .all(|traffic| traffic.users_at_first == Some(0))
    );
}

#[test]
fn the_file_of_traffic_of_the_documentation_is_read() {
    for (page, text) in crate::pages::pieces("traffic") {
        let file: File = toml::from_str(&text).unwrap_or_else(|error| panic!("{page}: {error}"));
        assert!(file.profile("terminal").is_some(), "{page}");
    }
}
