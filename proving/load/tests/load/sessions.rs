//! Sessions of many turns, users that come and go, and the end of a run.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use experiment::arrivals::{Process, Scope};
use experiment::certificate::{Of, Verdict};
use experiment::workload::{Enter, Load, Profile, Stay, Workload};
use load::observer::{Answers, Counters, Measure};
use load::run::{Plan, Shape, Traffic, start};
use load::source::{Source, Turn};
use testing::{Began, eventually};

use super::server::{self, Server};
use super::{ENOUGH, closed, head, plan, seen};

/// Sessions of five turns with a pause of 20 ms before each.
struct Turns {
    asked: AtomicU64,
}

impl Source for Turns {
    fn sessions(&self, _profile: usize) -> u64 {
        3
    }

    fn turns(&self, _profile: usize, _session: u64) -> u32 {
        5
    }

    fn think(&self, _profile: usize, _session: u64, turn: u32) -> Option<Duration> {
        (turn > 0).then(|| Duration::from_millis(20))
    }

    fn turn(&self, _profile: usize, _session: u64, turn: u32) -> Option<Turn<'_>> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        (turn < 5).then(|| Turn {
            payload: Bytes::from_static(b"{}").into(),
            head: None,
            tokens: None,
        })
    }
}

fn sessions(server: &Server, load: Load) -> Plan {
    let profile = |name: &str| Profile {
        name: name.into(),
        load: load.clone(),
        scope: Scope::User,
    };
    let traffic = Traffic {
        head: head(),
        answers: Answers::Any,
        expects: None,
        connections: 10,
        users_at_first: None,
        request_id: None,
    };
    Plan {
        source: Arc::new(Turns {
            asked: AtomicU64::new(0),
        }),
        workload: Workload {
            seed: 7,
            ramp: Duration::ZERO,
            profiles: vec![profile("one"), profile("other")],
        },
        traffic: vec![traffic.clone(), traffic],
        warm_up: Duration::ZERO,
        measure: Duration::from_secs(3600),
        ..plan(server, closed(1))
    }
}

#[test]
fn turns_are_sent_after_the_answer_before_and_the_recorded_pause() {
    let server = Server::new(|_| vec![server::wait(10), server::whole(b"hello")]);
    let load = Load::Closed {
        users: 2,
        think: Process::Recorded,
        enter: Enter::Asking,
        stay: Stay::Always,
    };
    let plan = Plan {
        certify: true,
        threads: 2,
        most: Some(40),
        ..sessions(&server, load)
    };
    let outcome = start(plan).expect("threads").finish().expect("a run");
    // Of four users one at least asks ten times: ten answers of 10 ms and eight pauses of 20 ms. No machine is faster.
    assert!(outcome.measured >= Duration::from_millis(260));
    let mut all = 0;
    for profile in &outcome.profiles {
        let (answered, sessions) = (profile.observations.answered, profile.sessions);
        all += answered;
        // Each of two users may be at its first turn of the last.
        let whole = sessions.sessions - sessions.sessions.min(2);
        assert!(
            answered >= 5 * whole && answered <= 5 * sessions.sessions,
            "{answered} {sessions:?}"
        );
        assert_eq!((profile.observations.failed(), sessions.abandoned), (0, 0));
    }
    assert_eq!(all, 40);
    let certificate = outcome.certificate().expect("it was asked for");
    for (profile, seen) in certificate.profiles.iter().zip(&outcome.profiles) {
        // Each of two users has at most one that it drew and did not send, or that is not answered in time.
        let answered = seen.observations.answered;
        assert!(
            (answered..=answered + 2).contains(&profile.sends),
            "{answered} {}",
            profile.sends
        );
        assert!(
            profile.lag.early_s <= 0.0,
            "nothing leaves before it is due"
        );
    }
    let lag = outcome.total().quantiles(Measure::Lag).expect("requests");
    eprintln!("lag of closed users in microseconds: {lag:?}");
}

/// Refuses the second request of each run for so long, in the words of its head, and answers all others.
fn refusing_once(number: u64, status: &str, retry_after: &str) -> Vec<server::Step> {
    if number != 1 {
        return vec![server::whole(b"hello")];
    }
    let head =
        format!("HTTP/1.1 {status}\r\nretry-after: {retry_after}\r\ncontent-length: 0\r\n\r\n");
    vec![server::bytes(head.as_bytes())]
}

#[test]
fn a_session_that_is_refused_for_a_while_goes_on_where_the_plan_heeds_it_and_is_else_given_up() {
    let one = |most, script: server::Script| {
        let server = Server::new(script);
        let load = Load::Closed {
            users: 1,
            think: Process::Constant { mean_s: 0.0 },
            enter: Enter::Asking,
            stay: Stay::Once,
        };
        let mut plan = Plan {
            heeds_retry_after: most,
            backs_off: false,
            ..sessions(&server, load)
        };
        plan.workload.profiles.truncate(1);
        plan.traffic.truncate(1);
        let outcome = start(plan).expect("threads").finish().expect("a run");
        let seen = &outcome.profiles[0];
        let of = &seen.observations;
        (
            of.answered,
            of.failed(),
            of.sent_again,
            seen.sessions.abandoned,
        )
    };
    let limited = |number| refusing_once(number, "429 Too Many Requests", "1");
    let minute = Some(Duration::from_secs(60));
    let began = Began::now();
    // Three sessions of five turns; the second turn of the first is refused once, and counted as that.
    assert_eq!(one(minute, limited), (15, 1, 1, 0));
    began.took_at_least(Duration::from_secs(1));
    let busy = |number| refusing_once(number, "503 Service Unavailable", "0");
    assert_eq!(one(minute, busy), (15, 1, 1, 0));
    // Nobody asked to heed it; it is longer than is heeded; it is no number; another refusal.
    assert_eq!(one(None, limited), (11, 1, 0, 1));
    let long = |number| refusing_once(number, "429 Too Many Requests", "61");
    assert_eq!(one(minute, long), (11, 1, 0, 1));
    let date = |number| {
        refusing_once(
            number,
            "429 Too Many Requests",
            "Wed, 21 Oct 2026 07:28:00 GMT",
        )
    };
    assert_eq!(one(minute, date), (11, 1, 0, 1));
    let forbidden = |number| refusing_once(number, "403 Forbidden", "1");
    assert_eq!(one(minute, forbidden), (11, 1, 0, 1));
}

#[test]
fn what_left_when_it_was_due_is_certified_and_what_never_left_is_told() {
    let server = Server::new(|_| vec![server::whole(b"hello")]);
    let load = |rate: f64| Load::Open {
        arrivals: Process::Exponential { mean_s: 1.0 / rate },
        think: Process::Recorded,
    };
    let certificate = |plan: Plan| {
        let outcome = start(plan).expect("threads").finish().expect("a run");
        outcome.certificate().expect("it was asked for")
    };
    let plan = |server: &Server| Plan {
        certify: true,
        threads: 2,
        ..sessions(server, load(150.0))
    };
    let honest = certificate(Plan {
        most: Some(150),
        ..plan(&server)
    });
    let tested: usize = honest.profiles.iter().map(|profile| profile.tested).sum();
    // Further turns of sessions are sent too, and are of no law.
    assert!((2..=150).contains(&tested), "{honest:?}");
    let of_intended = honest
        .failures()
        .filter(|(_, check)| check.of == Of::Intended);
    assert_eq!(of_intended.count(), 0, "{honest:?}");
    assert!(
        honest
            .profiles
            .iter()
            .all(|profile| profile.lag.overdue == 0)
    );
    let lags: Vec<_> = honest.profiles.iter().map(|profile| profile.lag).collect();
    println!("verdict {:?}, lags {lags:?}", honest.verdict);
    // Ten connections that are never answered: whatever is due later never leaves.
    let silent = Server::new(|_| vec![server::never()]);
    let stalled = certificate(Plan {
        measure: Duration::from_millis(400),
        drain: Duration::from_millis(100),
        ..plan(&silent)
    });
    assert_eq!(stalled.verdict, Verdict::Void);
    assert!(
        stalled
            .profiles
            .iter()
            .all(|profile| profile.lag.overdue > 20),
        "{stalled:?}"
    );
}

#[test]
fn a_session_whose_turn_fails_is_given_up_and_counted() {
    let server = Server::new(|index| match index % 7 {
        3 => vec![server::bytes(
            b"HTTP/1.1 500 Internal Server Error\r\ncontent-length: 0\r\n\r\n",
        )],
        _ => vec![server::whole(b"hello")],
    });
    let load = Load::Open {
        arrivals: Process::Constant { mean_s: 0.02 },
        think: Process::Recorded,
    };
    let running = start(sessions(&server, load)).expect("threads");
    let sum = |of: fn(&Counters) -> u64| running.counters().iter().map(of).sum::<u64>();
    // A fifth of what is answered are first turns, unless many are given up.
    eventually("failures, and further turns of other sessions", || {
        let failed = sum(|counters| counters.failures.iter().map(|(_, count)| count).sum());
        failed >= 10 && sum(|counters| counters.answered) >= 100
    });
    running.control().stop();
    let outcome = running.finish().expect("a run");
    let total = outcome.total();
    let sessions = outcome.profiles.iter().map(|profile| profile.sessions);
    let (begun, abandoned) = sessions.fold((0, 0), |(begun, abandoned), one| {
        (begun + one.sessions, abandoned + one.abandoned)
    });
    // Two profiles, each of which has drawn one more that is not due. No machine is faster.
    let due = outcome.ended.as_millis() / 20 + 2;
    assert!(u128::from(begun) <= 2 * due, "{begun} of {due}");
    assert_eq!(abandoned, total.failed());
    let lag = total.quantiles(Measure::Lag).expect("requests");
    println!("{begun} begun, lag of an open loop in microseconds: {lag:?}");
}

#[test]
fn users_come_and_go_while_a_run_goes_on_and_it_ends_at_once_when_told() {
    let server = Server::new(|_| vec![server::wait(5), server::whole(b"hello")]);
    let mut plan = Plan {
        measure: Duration::from_secs(3600),
        threads: 2,
        ..plan(&server, closed(10))
    };
    plan.traffic[0].users_at_first = Some(1);
    let running = start(plan).expect("threads");
    let settles_at = |users: u64| {
        eventually("so many users", || running.counters()[0].users == users);
    };
    settles_at(1);
    let control = running.control();
    assert_eq!(control.set_users(0, 99), 10, "no more than there are");
    settles_at(10);
    assert_eq!(control.set_users(0, 3), 3);
    settles_at(3);
    assert_eq!(control.set_users(1, 3), 0, "there is no such profile");
    eventually("answers", || running.counters()[0].answered > 10);
    let counters = running.counters();
    assert!(counters[0].failures.is_empty());
    assert!(counters[0].latency.quantile(0.5).expect("answers") >= 4_500);
    control.stop();
    // At once: the rest of the hour is not waited for.
    let outcome = running.finish().expect("a run");
    assert!(outcome.total().left <= 3 && outcome.measured < Duration::from_secs(3600));
    assert_eq!(server.connections(), 10);
}

#[test]
fn what_is_under_way_when_the_time_to_drain_is_over_is_left_and_counted() {
    eventually("a run in which all three came to ask", || {
        let server = Server::new(|_| vec![server::never()]);
        let mut plan = Plan {
            warm_up: Duration::ZERO,
            measure: Duration::from_millis(50),
            drain: Duration::from_millis(50),
            ..plan(&server, closed(3))
        };
        // It is not waited for.
        plan.reach.timeout = Duration::from_secs(3600);
        let seen = seen(plan);
        assert_eq!((seen.answered, seen.failed()), (0, 0));
        seen.left == 3
    });
}

#[test]
fn a_plan_that_makes_no_sense_is_refused_before_anything_is_sent() {
    let server = Server::new(|_| Vec::new());
    let refused = |change: fn(&mut Plan)| {
        let mut plan = plan(
            &server,
            Shape::Open {
                per_second: 1.0,
                connections: 1,
            },
        );
        change(&mut plan);
        start(plan).err().expect("a refusal").to_string()
    };
    assert!(refused(|plan| plan.reach.targets.clear()).contains("no target"));
    assert!(refused(|plan| plan.threads = 0).contains("threads"));
    assert!(refused(|plan| plan.traffic[0].connections = 0).contains("profile all"));
    assert!(refused(|plan| plan.workload.profiles.clear()).contains("profiles"));
    assert_eq!(server.connections(), 0);
}

#[test]
fn a_run_in_which_every_session_is_asked_once_ends_with_the_last_answer() {
    let server = Server::new(|_| vec![server::whole(b"hello")]);
    let load = Load::Closed {
        users: 2,
        think: Process::Constant { mean_s: 0.0 },
        enter: Enter::Thinking,
        stay: Stay::Once,
    };
    let plan = Plan {
        threads: 2,
        measure: Duration::from_secs(3600),
        ..sessions(&server, load)
    };
    let outcome = start(plan).expect("threads").finish().expect("a run");
    assert!(
        outcome.measured < Duration::from_secs(3600),
        "{:?}",
        outcome.measured
    );
    for profile in &outcome.profiles {
        assert_eq!(
            (profile.observations.answered, profile.sessions.sessions),
            (15, 3)
        );
    }
}

#[test]
fn a_run_of_so_many_requests_ends_with_the_last_of_them_and_is_certified() {
    let server = Server::new(|_| vec![server::whole(b"hello")]);
    let users = Load::Closed {
        users: 25,
        think: Process::Exponential { mean_s: 0.2 },
        enter: Enter::Thinking,
        stay: Stay::Always,
    };
    let arrivals = Load::Open {
        arrivals: Process::Exponential { mean_s: 0.02 },
        think: Process::Recorded,
    };
    for load in [users, arrivals] {
        let plan = Plan {
            certify: true,
            threads: 2,
            most: Some(400),
            measure: Duration::from_secs(3600),
            ..sessions(&server, load)
        };
        let outcome = start(plan).expect("threads").finish().expect("a run");
        assert_eq!(outcome.total().answered, 400);
        assert!(
            outcome.measured < Duration::from_secs(3600),
            "{:?}",
            outcome.measured
        );
        let certificate = outcome.certificate().expect("it was asked for");
        for profile in &certificate.profiles {
            assert_eq!(profile.lag.overdue, 0, "{certificate}");
        }
    }
}

#[test]
fn an_answer_that_ends_after_the_measured_time_is_measured_and_not_completed_in_it() {
    let server = Server::new(|_| vec![server::wait(400), server::whole(b"hello")]);
    let plan = Plan {
        warm_up: Duration::ZERO,
        measure: Duration::from_millis(200),
        drain: ENOUGH,
        ..plan(&server, closed(3))
    };
    let seen = seen(plan);
    assert_eq!((seen.answered, seen.completed, seen.left), (3, 0, 0));
    assert!(seen.latency().expect("three").p50 >= 390_000);
}
