//! Closed loops: the same from a seed, and Little's law.

use super::*;

fn plan() -> Plan {
    Plan {
        users: 20,
        think: Duration::from_millis(7550),
        prompt_tokens: 7300,
        cached_tokens: 704,
        output_tokens: 405,
        variation: 0.3,
        length: Duration::from_secs(300),
        warm_up: Duration::from_secs(60),
        seed: 1,
    }
}

fn preset() -> Preset {
    Preset::named("gpt-oss-120b.h100x4").expect("it comes with the program")
}

#[test]
fn the_same_seed_gives_the_same_report_and_another_seed_another() {
    let report = |seed| {
        let report = soak(&preset(), &Plan { seed, ..plan() }).unwrap();
        serde_json::to_string(&report).unwrap()
    };
    assert_eq!(report(1), report(1));
    assert_ne!(report(1), report(2));
}

#[test]
fn answers_obey_littles_law_and_the_loop_is_closed() {
    let report = soak(&preset(), &plan()).unwrap();
    let users = report.requests_per_s * (report.e2e.mean + 7.55);
    assert!((users - 20.0).abs() < 1.5, "{users} users by Little's law");
    let in_engine = report.requests_per_s * (report.e2e.mean - 0.029);
    assert!((report.running + report.waiting - in_engine).abs() < 1.0);
    assert_eq!(report.preemptions, 0);
    assert!((report.prefix_hit_rate - 704.0 / 8004.0).abs() < 0.01);
}

#[test]
fn more_users_wait_longer() {
    let ttft = |users| {
        soak(&preset(), &Plan { users, ..plan() })
            .unwrap()
            .ttft
            .mean
    };
    assert!(ttft(10) < ttft(100));
}

#[test]
fn a_plan_without_sense_is_refused() {
    let refused = |plan: Plan| soak(&preset(), &plan).unwrap_err().to_string();
    assert!(refused(Plan { users: 0, ..plan() }).contains("users"));
    assert!(
        refused(Plan {
            variation: f64::NAN,
            ..plan()
        })
        .contains("variation")
    );
    assert!(
        refused(Plan {
            warm_up: Duration::from_secs(300),
            ..plan()
        })
        .contains("warm-up")
    );
    assert!(
        refused(Plan {
            think: Duration::ZERO,
            ..plan()
        })
        .contains("pause")
    );
    assert!(
        refused(Plan {
            cached_tokens: u32::MAX,
            ..plan()
        })
        .contains("131072")
    );
    let soon = Plan {
        length: Duration::from_millis(20),
        warm_up: Duration::ZERO,
        ..plan()
    };
    assert!(refused(soon).contains("too short"));
}
