//! Deals, parts, turns, and the plans that people run.

use super::*;
use crate::random::Rng;

const SEED: u64 = 3;

/// Sessions of one to four turns, each but the first after as many seconds as its number.
struct Recorded(u64);

impl Sessions for Recorded {
    fn count(&self) -> u64 {
        self.0
    }

    fn turns(&self, session: u64) -> u32 {
        1 + (session % 4) as u32
    }

    fn think(&self, _session: u64, turn: u32) -> Option<Duration> {
        (turn > 0).then(|| Duration::from_secs(u64::from(turn)))
    }
}

fn closed(users: u32, think: Process) -> Load {
    Load::Closed {
        users,
        think,
        enter: Enter::Thinking,
        stay: Stay::Always,
    }
}

fn workload(load: Load) -> Workload {
    let profile = Profile {
        name: "p".into(),
        load,
        scope: Scope::Profile,
    };
    Workload {
        seed: SEED,
        ramp: Duration::ZERO,
        profiles: vec![profile],
    }
}

fn exponential(mean_s: f64) -> Process {
    Process::Exponential { mean_s }
}

#[test]
fn a_permutation_has_everything_once() {
    println!("seed {SEED}");
    for n in [1, 2, 3, 4, 5, 16, 17, 1000, 4097] {
        let order = Permutation::new(&mut Rng::new(SEED), n);
        let mut seen: Vec<u64> = (0..n).map(|place| order.at(place)).collect();
        let moved = (0..).zip(&seen).filter(|(place, at)| place != *at).count();
        assert!(n < 16 || moved as f64 > 0.8 * n as f64, "{n}: {moved}");
        seen.sort_unstable();
        assert!(seen.into_iter().eq(0..n), "{n}");
    }
}

#[test]
fn each_session_comes_once_before_any_comes_again() {
    println!("seed {SEED}");
    let (users, count) = (7_u64, 100);
    let mut seen = vec![Vec::new(); count as usize];
    for user in 0..users {
        let mut deal = Deal::new(SEED, 0, user, users);
        for step in 0..count {
            let (session, repeat) = deal.next(count).unwrap();
            assert_eq!(repeat, (user + step * users) / count);
            seen[session as usize].push(repeat);
        }
    }
    for repeats in &mut seen {
        repeats.sort_unstable();
        assert!(repeats.iter().copied().eq(0..users));
    }
    assert_eq!(Deal::new(SEED, 0, 0, 1).next(0), None);
}

#[test]
fn parts_together_are_the_whole_whatever_their_number() {
    println!("seed {SEED}");
    let sessions = Recorded(50);
    let open = workload(Load::Open {
        arrivals: exponential(0.1),
        think: Process::Recorded,
    });
    let take = |part: Part, n: usize| -> Vec<(u64, Turn)> {
        let mut arrivals = open.arrivals(0, part).unwrap();
        std::iter::from_fn(|| arrivals.next(&sessions))
            .take(n)
            .map(|arrival| (arrival.number, arrival.first))
            .collect()
    };
    let whole = take(Part::WHOLE, 300);
    let mut parts: Vec<_> = (0..3)
        .flat_map(|index| take(Part { index, of: 3 }, 100))
        .collect();
    parts.sort_by_key(|(number, _)| *number);
    assert_eq!(whole, parts);
    assert!(open.users(0, Part::WHOLE).next().is_none());

    let closed = workload(closed(10, exponential(1.0)));
    let numbers = |index| -> Vec<u64> {
        let part = Part { index, of: 4 };
        closed.users(0, part).map(|user| user.number()).collect()
    };
    assert_eq!(numbers(1), [1, 5, 9]);
    let mut of_part = closed.users(0, Part { index: 1, of: 4 }).nth(1).unwrap();
    let mut of_whole = closed.users(0, Part::WHOLE).nth(5).unwrap();
    let from = Duration::from_secs(9);
    assert_eq!(
        of_part.next(from, &sessions),
        of_whole.next(from, &sessions)
    );
    assert!(closed.arrivals(0, Part::WHOLE).is_none());
}

#[test]
fn recorded_pauses_are_followed_inside_a_session_and_sessions_begin_at_once() {
    let sessions = Recorded(4);
    let workload = workload(closed(1, Process::Recorded));
    let mut user = workload.users(0, Part::WHOLE).next().unwrap();
    let (mut from, mut turns) = (Duration::ZERO, Vec::new());
    for _ in 0..20 {
        let turn = user.next(from, &sessions).unwrap();
        assert_eq!(
            turn.due.at - from,
            Duration::from_secs(u64::from(turn.turn))
        );
        assert!(!turn.due.drawn);
        from = turn.due.at + Duration::from_millis(100);
        turns.push(turn);
    }
    assert!(turns[..10].iter().all(|turn| turn.repeat == 0));
    assert!(turns[10..].iter().all(|turn| turn.repeat == 1));
    assert_eq!(turns.iter().filter(|turn| turn.last).count(), 8);
    assert_eq!(user.tally().sessions, 8);
    assert_eq!(user.tally().repeated, 4);
}

#[test]
fn a_failed_turn_skips_the_rest_of_its_session() {
    println!("seed {SEED}");
    let sessions = Plain {
        sessions: 5,
        turns: 4,
    };
    let closed = workload(closed(1, exponential(1.0)));
    let mut user = closed.users(0, Part::WHOLE).next().unwrap();
    let first = user.next(Duration::ZERO, &sessions).unwrap();
    user.abandon();
    let second = user.next(first.due.at, &sessions).unwrap();
    assert_ne!(first.session, second.session);
    assert_eq!(second.turn, 0);
    let tally = user.tally();
    assert_eq!((tally.abandoned, tally.skipped_turns), (1, 3));

    let open = workload(Load::Open {
        arrivals: exponential(1.0),
        think: exponential(1.0),
    });
    let mut arrivals = open.arrivals(0, Part::WHOLE).unwrap();
    let arrival = arrivals.next(&sessions).unwrap();
    assert_eq!((arrival.begun.sessions, arrival.begun.repeated), (1, 0));
    let mut visit = arrival.visit;
    assert_eq!(visit.next(Duration::ZERO, &sessions).unwrap().turn, 1);
    assert_eq!(visit.abandon().skipped_turns, 2);
}

#[test]
fn later_turns_of_an_open_session_wait_for_their_answers() {
    println!("seed {SEED}");
    let sessions = Recorded(4);
    let open = workload(Load::Open {
        arrivals: exponential(1.0),
        think: Process::Recorded,
    });
    let mut arrivals = open.arrivals(0, Part::WHOLE).unwrap();
    let long = std::iter::from_fn(|| arrivals.next(&sessions)).find(|a| a.first.session == 3);
    let mut visit = long.unwrap().visit;
    let end = Duration::from_secs(77);
    let due: Vec<_> = (0..4)
        .map(|_| visit.next(end, &sessions).map(|turn| turn.due.at.as_secs()))
        .collect();
    assert_eq!(due, [Some(78), Some(79), Some(80), None]);
}

#[test]
fn the_three_plans_of_a_race_can_be_said() {
    let keep = |load| {
        let mut made = workload(load);
        made.ramp = Duration::from_secs(1);
        made.check().unwrap();
        made
    };
    let asking = |think, stay| Load::Closed {
        users: 4,
        think,
        enter: Enter::Asking,
        stay,
    };
    let users = keep(asking(Process::Constant { mean_s: 0.5 }, Stay::Always));
    let mut third = users.users(0, Part::WHOLE).nth(2).unwrap();
    assert_eq!(third.comes_in(), Duration::from_millis(500));
    let first = third.next(third.comes_in(), &Plain::ONE).unwrap();
    assert_eq!(first.due.at, third.comes_in());
    let second = third.next(Duration::from_secs(3), &Plain::ONE).unwrap();
    assert_eq!(second.due.at, Duration::from_millis(3500));

    let hold = keep(asking(Process::Constant { mean_s: 0.0 }, Stay::Sessions(1)));
    let mut stream = hold.users(0, Part::WHOLE).next().unwrap();
    assert!(stream.next(Duration::ZERO, &Plain::ONE).is_some());
    assert!(stream.next(Duration::ZERO, &Plain::ONE).is_none());

    let rate = keep(Load::Open {
        arrivals: Process::Constant { mean_s: 0.001 },
        think: Process::Recorded,
    });
    let mut arrivals = rate.arrivals(0, Part::WHOLE).unwrap();
    let last = (0..1000)
        .map(|_| arrivals.next(&Plain::ONE).unwrap())
        .last();
    assert_eq!(last.unwrap().first.due.at, Duration::from_secs(1));
}

#[test]
fn a_traces_arrivals_take_sessions_in_their_order_at_the_moments_of_the_trace() {
    let lines: String = (0..50)
        .map(|at| {
            format!(
                "{{\"timestamp\":{},\"input_length\":1,\"output_length\":1}}\n",
                at * at * 10
            )
        })
        .collect();
    let trace = crate::arrivals::Trace::mooncake("t", &lines).unwrap();
    let load = Load::Open {
        arrivals: Process::Trace(trace),
        think: Process::Constant { mean_s: 0.0 },
    };
    let workload = workload(load);
    let mut arrivals = workload.arrivals(0, Part::WHOLE).unwrap();
    let sessions = Recorded(50);
    for at in 0..50 {
        let arrival = arrivals.next(&sessions).unwrap();
        assert_eq!((arrival.first.session, arrival.first.repeat), (at, 0));
        assert_eq!(arrival.first.due.at, Duration::from_millis(at * at * 10));
    }
    assert!(arrivals.next(&sessions).is_none());
}

#[test]
fn what_makes_no_sense_is_refused() {
    let says = |load| workload(load).check().unwrap_err().to_string();
    let trace = Process::Trace(
        crate::arrivals::Trace::mooncake(
            "t",
            "{\"timestamp\": 0, \"input_length\": 1, \"output_length\": 1}",
        )
        .unwrap(),
    );
    let open = |arrivals| Load::Open {
        arrivals,
        think: Process::Recorded,
    };
    assert!(says(closed(0, exponential(1.0))).contains("profile p: needs 1 to"));
    assert!(says(closed(1, trace)).contains("nothing about pauses"));
    assert!(says(open(Process::Recorded)).contains("not when they start"));
    assert!(says(open(Process::Constant { mean_s: 0.0 })).contains("gap"));

    let mut two = workload(closed(1, exponential(1.0)));
    two.profiles.push(two.profiles[0].clone());
    assert_eq!(two.check(), Err(WorkloadError::Twice("p".into())));
    for (profile, off_s) in two.profiles.iter_mut().zip([24.0, 25.0]) {
        profile.name = format!("{off_s}");
        profile.scope = Scope::Fleet;
        let mmpp = crate::arrivals::Mmpp::on_off(1.0, 6.0, off_s).unwrap();
        profile.load = closed(1, Process::Mmpp(mmpp));
    }
    assert!(
        two.check()
            .unwrap_err()
            .to_string()
            .contains("profile 25: shares")
    );
    two.profiles.clear();
    assert_eq!(two.check(), Err(WorkloadError::Profiles(0)));
}

#[test]
fn users_are_dealt_by_weight() {
    assert_eq!(apportion(10, &[1.0, 1.0, 1.0]), [4, 3, 3]);
    assert_eq!(
        apportion(190, &[35.0, 25.0, 20.0, 15.0, 5.0])
            .iter()
            .sum::<u32>(),
        190
    );
    assert_eq!(apportion(3, &[0.0, f64::NAN, 2.0]), [0, 0, 3]);
    assert_eq!(apportion(3, &[0.0]), [0]);
}

#[test]
fn users_who_stay_once_ask_every_session_once_together() {
    for (users, sessions) in [(1, 1), (3, 10), (4, 8), (7, 3)] {
        let mut load = closed(users, Process::Constant { mean_s: 0.0 });
        if let Load::Closed { stay, .. } = &mut load {
            *stay = Stay::Once;
        }
        let all = Plain { sessions, turns: 2 };
        let mut asked = vec![0; sessions as usize];
        for mut user in workload(load).users(0, Part::WHOLE) {
            while let Some(turn) = user.next(Duration::ZERO, &all) {
                asked[turn.session as usize] += 1;
            }
            assert!(user.next(Duration::ZERO, &all).is_none());
            assert_eq!(user.tally().repeated, 0);
        }
        assert!(asked.iter().all(|turns| *turns == 2), "{users} {asked:?}");
    }
}
