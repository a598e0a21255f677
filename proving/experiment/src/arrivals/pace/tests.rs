//! Means, exactness, traces, and uniforms that are uniform.

use super::super::Mmpp;
use super::*;

const SEED: u64 = 5;
const ACTOR: Actor = Actor {
    profile: 0,
    number: 3,
};

fn pace(process: &Process) -> Pace {
    Pace::new(SEED, Scope::User, ACTOR, process)
}

fn dues(pace: &mut Pace, n: usize) -> Vec<Due> {
    let mut from = Duration::ZERO;
    std::iter::from_fn(|| {
        let due = pace.next(from, None)?;
        from = due.at;
        Some(due)
    })
    .take(n)
    .collect()
}

#[test]
fn a_constant_rate_stays_exact() {
    let mut pace = pace(&Process::Constant {
        mean_s: 1.0 / 7000.0,
    });
    let last = dues(&mut pace, 700_000).last().unwrap().at;
    assert!(last.abs_diff(Duration::from_secs(100)) < Duration::from_nanos(100));
}

#[test]
fn arrivals_have_the_rate_of_their_process() {
    println!("seed {SEED}");
    let mmpp = Mmpp::new(20.0, 0.5, 2.0, 10.0).unwrap();
    for process in [
        Process::Exponential { mean_s: 0.25 },
        Process::Gamma {
            mean_s: 0.25,
            cv: 1.5,
        },
        Process::Mmpp(mmpp),
    ] {
        let n = 100_000;
        let span = dues(&mut pace(&process), n)
            .last()
            .unwrap()
            .at
            .as_secs_f64();
        let rate = process.rate().unwrap();
        let error = n as f64 / span / rate - 1.0;
        assert!(error.abs() < 0.05, "{process}: {error}");
    }
}

#[test]
fn the_uniforms_of_drawn_gaps_are_uniform() {
    println!("seed {SEED}");
    for process in [
        Process::Exponential { mean_s: 0.25 },
        Process::Gamma {
            mean_s: 0.25,
            cv: 1.5,
        },
        Process::Gamma {
            mean_s: 0.25,
            cv: 0.3,
        },
        // Most gaps are shorter than a nanosecond.
        Process::Gamma {
            mean_s: 0.25,
            cv: 5.0,
        },
        Process::Mmpp(Mmpp::on_off(0.25, 6.0, 24.0).unwrap()),
    ] {
        let (mut pace, mut within) = (pace(&process), Rng::new(SEED));
        let mut uniforms: Vec<f64> = dues(&mut pace, 20_000)
            .iter()
            .map(|due| pace.uniform(due.from, due.at, within.unit()).unwrap())
            .collect();
        uniforms.sort_by(f64::total_cmp);
        let n = uniforms.len() as f64;
        let farthest = (1..)
            .zip(&uniforms)
            .map(|(i, u)| (f64::from(i) / n - u).abs())
            .fold(0.0, f64::max);
        assert!(farthest < 1.95 / n.sqrt(), "{process}: {farthest}");
    }
}

#[test]
fn users_of_one_chain_have_their_bursts_in_common() {
    println!("seed {SEED}");
    let process = Process::Mmpp(Mmpp::on_off(2.0, 6.0, 24.0).unwrap());
    let seconds = |scope, number| {
        let actor = Actor { profile: 0, number };
        let mut pace = Pace::new(SEED, scope, actor, &process);
        let mut busy = vec![false; 3000];
        for due in dues(&mut pace, 1000) {
            if let Some(second) = busy.get_mut(due.at.as_secs() as usize) {
                *second = true;
            }
        }
        busy
    };
    let common = |scope| {
        let (a, b) = (seconds(scope, 1), seconds(scope, 2));
        a.iter().zip(&b).filter(|(a, b)| **a && **b).count()
    };
    assert_ne!(seconds(Scope::Profile, 1), seconds(Scope::Profile, 2));
    assert!(common(Scope::Profile) > 3 * common(Scope::User));
}

#[test]
fn a_trace_ends_and_recorded_pauses_are_followed() {
    let text = r#"{"timestamp": 5, "input_length": 1, "output_length": 1}
{"timestamp": 9, "input_length": 1, "output_length": 1}"#;
    let trace = Trace::parse("t", text).unwrap();
    let dues = dues(&mut pace(&Process::Trace(trace)), 5);
    let at: Vec<Duration> = dues.iter().map(|due| due.at).collect();
    assert_eq!(at, [Duration::ZERO, Duration::from_millis(4)]);

    let mut recorded = pace(&Process::Recorded);
    let (from, pause) = (Duration::from_secs(3), Duration::from_secs(2));
    let due = recorded.next(from, Some(pause)).unwrap();
    assert_eq!((due.at, due.drawn), (from + pause, false));
    assert_eq!(recorded.next(from, None).unwrap().at, from);
    assert_eq!(recorded.uniform(from, from + pause, 0.5), None);
    let mut drawn = pace(&Process::Constant { mean_s: 1.0 });
    assert_eq!(
        drawn.next(from, Some(pause)).unwrap().at,
        Duration::from_secs(4)
    );
}
