//! Certificates of honest generators, and of defective ones.

mod controls;
mod honest;

use std::time::Duration;

use super::*;
use crate::arrivals::{Due, Process, Scope, Spec};
use crate::random::Rng;
use crate::workload::{Enter, Load, Part, Plain, Profile, SEQUENCE, Stay, Workload};

fn process(text: &str) -> Process {
    match text.parse() {
        Ok(Spec::Process(process)) => process,
        other => panic!("{text}: {other:?}"),
    }
}

fn workload(seed: u64, load: Load, scope: Scope) -> Workload {
    let name = "p".into();
    let workload = Workload {
        seed,
        ramp: Duration::ZERO,
        profiles: vec![Profile { name, load, scope }],
    };
    workload.check().unwrap();
    workload
}

fn open(seed: u64, process: Process) -> Workload {
    let load = Load::Open {
        arrivals: process,
        think: Process::Recorded,
    };
    workload(seed, load, Scope::Profile)
}

fn closed(seed: u64, users: u32, think: Process, scope: Scope) -> Workload {
    let load = Load::Closed {
        users,
        think,
        enter: Enter::Thinking,
        stay: Stay::Always,
    };
    workload(seed, load, scope)
}

/// The certificate of `n` arrivals, each sent after a lag.
fn send_open(workload: &Workload, n: usize, mut lag: impl FnMut(usize) -> Duration) -> Certificate {
    let mut certifier = Certifier::new(workload, Part::WHOLE);
    let mut arrivals = workload.arrivals(0, Part::WHOLE).unwrap();
    let mut end = Duration::ZERO;
    for i in 0..n {
        let Some(arrival) = arrivals.next(&Plain::ONE) else {
            break;
        };
        end = arrival.first.due.at;
        certifier.record(0, SEQUENCE, arrival.first.due, Sent::At(end + lag(i)));
    }
    certifier.certify(end)
}

/// The certificate of users over a time, each answer taking an exponential time, each send a lag.
fn send_closed(workload: &Workload, end: Duration, lag: Duration) -> Certificate {
    let mut certifier = Certifier::new(workload, Part::WHOLE);
    for mut user in workload.users(0, Part::WHOLE) {
        let mut service = Rng::stream(workload.seed, &[99, user.number()]);
        let mut from = user.comes_in();
        while let Some(turn) = user.next(from, &Plain::ONE) {
            let sent = turn.due.at + lag;
            let left = if sent < end {
                Sent::At(sent)
            } else {
                Sent::Never
            };
            certifier.record(0, user.number(), turn.due, left);
            if left == Sent::Never {
                break;
            }
            from = sent + Duration::from_secs_f64(service.exponential(0.8));
            if from >= end {
                break;
            }
        }
    }
    certifier.certify(end)
}

/// The certificate of moments that some other generator made, in order.
fn external(workload: &Workload, moments: &[f64]) -> Certificate {
    let mut certifier = Certifier::new(workload, Part::WHOLE);
    let mut from = Duration::ZERO;
    for &moment in moments {
        let at = Duration::from_secs_f64(moment);
        let drawn = true;
        certifier.record(0, SEQUENCE, Due { from, at, drawn }, Sent::At(at));
        from = at;
    }
    certifier.certify(from)
}

fn names(certificate: &Certificate) -> Vec<&'static str> {
    certificate
        .failures()
        .map(|(_, check)| check.name)
        .collect()
}
