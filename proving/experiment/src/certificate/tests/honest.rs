//! Honest generators pass: every process at 100,000 sends, and nearly every seed of many.

use super::*;
use crate::arrivals::Trace;

const SEED: u64 = 41;
const SENDS: usize = 100_000;
const OPEN: [&str; 6] = [
    "constant:250ms",
    "exponential:4/s",
    "gamma:4/s,cv=1.5",
    "mmpp:4/s",
    "on-off:4/s",
    "mmpp:high=20/s,low=0.5/s,on=2s,off=10s",
];

fn good(certificate: &Certificate) {
    println!("seed {SEED}\n{certificate}");
    assert_eq!(certificate.verdict, Verdict::Good, "{certificate}");
}

#[test]
fn every_process_of_arrivals_is_certified_at_100_000_sends() {
    for text in OPEN {
        let certificate = send_open(&open(SEED, process(text)), SENDS, |_| Duration::ZERO);
        good(&certificate);
        assert_eq!(certificate.profiles[0].tested, SENDS);
    }
}

#[test]
fn a_timers_lag_is_no_fault_where_gaps_are_long_beside_it() {
    let mut rng = Rng::new(SEED);
    for text in OPEN {
        let lag = |_| Duration::from_nanos(50_000 + rng.below(150_000));
        good(&send_open(&open(SEED, process(text)), 20_000, lag));
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
    let lines: String = (0..SENDS)
        .map(|i| {
            let ms = i * 37 + (i * i) % 37;
            format!("{{\"timestamp\": {ms}, \"input_length\": 1, \"output_length\": 1}}\n")
        })
        .collect();
    let trace = Trace::parse("t", &lines).unwrap();
    let workload = open(SEED, Process::Trace(trace));
    good(&send_open(&workload, SENDS + 1, |_| {
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
            certifier.record(0, SEQUENCE, due, Some(due.at));
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
    assert!(certificate.to_string().starts_with("certificate: unproven"));
}

/// 300 seeds unless the build has `CERTIFICATE_SEEDS`, of 1,000 sends unless it has `CERTIFICATE_SENDS`.
#[test]
fn a_correct_generator_hardly_ever_fails() {
    let number = |set: Option<&str>, or: u64| set.and_then(|text| text.parse().ok()).unwrap_or(or);
    let seeds = number(option_env!("CERTIFICATE_SEEDS"), 300);
    let sends = number(option_env!("CERTIFICATE_SENDS"), 1000);
    println!("seeds 0 to {}", seeds - 1);
    let mut failed = Vec::new();
    let mut unproven = 0;
    let mut look = |certificate: Certificate, what: String| match certificate.verdict {
        Verdict::Good => {}
        Verdict::Unproven => unproven += 1,
        Verdict::Failed | Verdict::Void => {
            failed.push(format!("{what}: {:?}", names(&certificate)))
        }
    };
    for seed in 0..seeds {
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
