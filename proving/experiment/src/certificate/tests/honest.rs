//! Honest generators pass: every process at 100,000 sends, and nearly every seed of many.

use testing::{number_of, seed};

use super::*;
use crate::arrivals::Trace;

const SEED: u64 = 41;
/// What a run of hours sends: that many show a law that is off by little.
const MANY: usize = 100_000;
const OPEN: [&str; 9] = [
    "constant:250ms",
    "exponential:4/s",
    "gamma:4/s,cv=1.5",
    "gamma:4/s,cv=0.3",
    "gamma:4/s,cv=3",
    "gamma:4/s,cv=5",
    "mmpp:4/s",
    "on-off:4/s",
    "mmpp:high=20/s,low=0.5/s,on=2s,off=10s",
];

fn good(certificate: &Certificate) {
    println!("seed {SEED}\n{certificate}");
    assert_eq!(certificate.verdict, Verdict::Good, "{certificate}");
}

/// Of 100,000 sends each where the environment has `CERTIFICATE_SENDS=100000`; without, only the least even process is.
#[test]
fn every_process_of_arrivals_is_certified() {
    let sends = usize::try_from(number_of("CERTIFICATE_SENDS", 15_000)).unwrap();
    let each = OPEN.map(|text| (text, sends));
    for (text, sends) in each.into_iter().chain([(OPEN[8], MANY)]) {
        let certificate = send_open(&open(SEED, process(text)), sends, |_| Duration::ZERO);
        good(&certificate);
        assert_eq!(certificate.profiles[0].tested, sends);
    }
}

#[test]
fn a_timers_lag_is_no_fault_where_gaps_are_long_beside_it() {
    let mut rng = Rng::new(SEED);
    for text in OPEN {
        let lag = |_| Duration::from_nanos(50_000 + rng.below(150_000));
        good(&send_open(&open(SEED, process(text)), 5_000, lag));
    }
    let fast = open(SEED, process("exponential:2000/s"));
    let certificate = send_open(&fast, 20_000, |_| Duration::from_nanos(rng.below(150_000)));
    good(&certificate);
    let ks = |of| {
        let checks = &certificate.profiles[0].checks;
        let found = checks
            .iter()
            .find(|c| c.name == "kolmogorov_smirnov" && c.of == of);
        found.unwrap().outcome
    };
    assert_eq!(ks(Of::Intended), Outcome::Passed);
    assert_eq!(ks(Of::Achieved), Outcome::Unjudged);
}

#[test]
fn users_with_think_times_are_certified() {
    let lag = Duration::from_micros(200);
    for (text, scope) in [
        ("exponential:2s", Scope::User),
        ("gamma:2s,cv=1.5", Scope::User),
        ("mmpp:2s", Scope::Profile),
        ("on-off:2s", Scope::Profile),
        ("on-off:2s", Scope::User),
        ("constant:2s", Scope::User),
    ] {
        let workload = closed(SEED, 50, process(text), scope);
        good(&send_closed(&workload, Duration::from_secs(1000), lag));
    }
}

#[test]
fn a_trace_is_certified() {
    let lines: String = (0..MANY)
        .map(|i| {
            let ms = i * 37 + (i * i) % 37;
            format!("{{\"timestamp\": {ms}, \"input_length\": 1, \"output_length\": 1}}\n")
        })
        .collect();
    let trace = Trace::parse("t", &lines).unwrap();
    let workload = open(SEED, Process::Trace(trace));
    good(&send_open(&workload, MANY + 1, |_| {
        Duration::from_micros(100)
    }));
}

#[test]
fn a_fleets_parts_give_the_same_certificate_together() {
    println!("seed {SEED}");
    let workload = open(SEED, process("mmpp:4/s"));
    let whole = send_open(&workload, 9000, |_| Duration::ZERO);
    let mut together = Certifier::new(&workload, Part::WHOLE);
    let mut end = Duration::ZERO;
    for index in 0..3 {
        let part = Part { index, of: 3 };
        let mut certifier = Certifier::new(&workload, part);
        let mut arrivals = workload.arrivals(0, part).unwrap();
        for _ in 0..3000 {
            let due = arrivals.next(&Plain::ONE).unwrap().first.due;
            end = end.max(due.at);
            certifier.record(0, SEQUENCE, due, Sent::At(due.at));
        }
        together.absorb(certifier);
    }
    assert_eq!(together.certify(end), whole);
}

#[test]
fn few_sends_prove_nothing() {
    let certificate = send_open(&open(SEED, process("exponential:4/s")), 50, |_| {
        Duration::ZERO
    });
    assert_eq!(certificate.verdict, Verdict::Unproven);
    let json = serde_json::to_value(&certificate).unwrap();
    assert_eq!(json["verdict"], "unproven");
    assert_eq!(json["profiles"][0]["checks"][0]["outcome"], "unjudged");
    assert!(
        certificate
            .to_string()
            .starts_with("certificate of what was sent: unproven")
    );
}

#[test]
fn the_head_counts_all_checks_and_says_below_what_those_by_probability_fail() {
    let workload = open(SEED, process("exponential:4/s"));
    let mut certificate = send_open(&workload, 3000, |_| Duration::ZERO);
    let head = |certificate: &Certificate| {
        let text = certificate.to_string();
        text.lines().next().unwrap_or_default().to_owned()
    };
    let checks = certificate.profiles[0].checks.iter();
    let all = checks.filter(|c| c.outcome != Outcome::Unjudged).count();
    assert!(0 < certificate.judged && certificate.judged <= all);
    let says = format!("certificate of what was sent: good ({all} checks; ");
    let printed = head(&certificate);
    assert!(
        printed.starts_with(&says) && printed.contains("each fails below"),
        "{printed}"
    );
    // Recorded gaps have no law to be held against: limits alone judge them.
    for check in &mut certificate.profiles[0].checks {
        (check.p, check.limit) = (None, Some(f64::INFINITY));
    }
    let all = certificate.profiles[0].checks.len();
    let by_limits = Certificate::of(certificate.profiles, (Duration::ZERO, Duration::MAX));
    assert_eq!(by_limits.judged, 0);
    let says = format!("certificate of what was sent: good ({all} checks)");
    assert_eq!(head(&by_limits), says);
}

/// 60 seeds unless the environment has `CERTIFICATE_SEEDS`, of 1,000 sends unless it has `CERTIFICATE_SENDS`. They follow each other.
#[test]
fn a_correct_generator_hardly_ever_fails() {
    let (seeds, sends) = (
        number_of("CERTIFICATE_SEEDS", 60),
        number_of("CERTIFICATE_SENDS", 1000),
    );
    let first = seed("a_correct_generator_hardly_ever_fails");
    let mut failed = Vec::new();
    let mut unproven = 0;
    let mut look = |certificate: Certificate, what: String| match certificate.verdict {
        Verdict::Good => {}
        Verdict::Unproven => unproven += 1,
        Verdict::Failed | Verdict::Void => {
            failed.push(format!("{what}: {:?}", names(&certificate)))
        }
    };
    for seed in (0..seeds).map(|i| first.wrapping_add(i)) {
        let text = OPEN[1 + seed as usize % (OPEN.len() - 1)];
        let workload = open(seed, process(text));
        let certificate = send_open(&workload, sends as usize, |_| Duration::ZERO);
        look(certificate, format!("seed {seed}, {text}"));
        let scope = [Scope::User, Scope::Profile][seed as usize % 2];
        let workload = closed(seed, 20, process(text), scope);
        let end = Duration::from_secs_f64(sends as f64 / 20.0);
        let certificate = send_closed(&workload, end, Duration::from_micros(100));
        look(certificate, format!("seed {seed}, {text}, users"));
    }
    println!(
        "{} failed, {unproven} unproven of {}: {failed:#?}",
        failed.len(),
        2 * seeds
    );
    let expected = 2.0 * seeds as f64 * SIGNIFICANCE;
    assert!(failed.len() as f64 <= 1.0 + expected + 3.0 * expected.sqrt());
    assert!(unproven < seeds / 10);
}

#[test]
fn what_is_withdrawn_is_neither_late_nor_missing() {
    println!("seed {SEED}");
    // Every fifth user is sent away whenever its pause is over: its pauses were drawn, and long ones are among them.
    let workload = closed(SEED, 20, process("exponential:2s"), Scope::User);
    let mut certifier = Certifier::new(&workload, Part::WHOLE);
    for mut user in workload.users(0, Part::WHOLE) {
        let mut from = user.comes_in();
        for _ in 0..500 {
            let Some(turn) = user.next(from, &Plain::ONE) else {
                break;
            };
            let goes = user.number() % 5 > 0;
            let sent = if goes {
                Sent::At(turn.due.at)
            } else {
                Sent::Withdrawn
            };
            certifier.record(0, user.number(), turn.due, sent);
            from = turn.due.at;
        }
    }
    let certificate = certifier.certify(Duration::from_secs(10_000));
    good(&certificate);
    assert_eq!(
        (
            certificate.profiles[0].lag.late,
            certificate.profiles[0].sends
        ),
        (0, 8_000)
    );
}

#[test]
fn a_stall_after_all_that_is_kept_makes_a_run_void() {
    let workload = open(SEED, process("constant:1us"));
    let mut certifier = Certifier::new(&workload, Part { index: 0, of: 1000 });
    let kept = MOST_KEPT as u64 / 1000;
    for i in 0..kept + 100 {
        let at = Duration::from_micros(i);
        let lag = if i < kept {
            Duration::ZERO
        } else {
            Duration::from_secs(1)
        };
        let due = Due {
            from: at,
            at,
            drawn: true,
        };
        certifier.record(0, SEQUENCE, due, Sent::At(at + lag));
    }
    let certificate = certifier.certify(Duration::from_secs(1));
    assert_eq!(certificate.verdict, Verdict::Void, "{certificate}");
    assert_eq!(certificate.profiles[0].lag.late, 100);
}

#[test]
fn a_sender_that_did_not_come_to_its_turn_makes_a_run_void_whatever_its_lag() {
    let workload = open(SEED, process("exponential:10/s"));
    for (stalled_ms, verdict) in [(900, Verdict::Good), (1_100, Verdict::Void)] {
        let mut certifier = Certifier::new(&workload, Part::WHOLE);
        let mut arrivals = workload.arrivals(0, Part::WHOLE).unwrap();
        for _ in 0..1000 {
            let due = arrivals.next(&Plain::ONE).unwrap().first.due;
            certifier.record(0, SEQUENCE, due, Sent::At(due.at));
        }
        certifier.stalled(Duration::from_millis(stalled_ms));
        let certificate = certifier.certify(Duration::from_secs(100));
        assert_eq!(certificate.verdict, verdict, "{certificate}");
    }
}
