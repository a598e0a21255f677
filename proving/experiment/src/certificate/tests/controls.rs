//! Negative controls: generators with the defects of published ones, each of which must not pass.

use super::*;

const SEED: u64 = 43;
const RATE: f64 = 10.0;
const SENDS: usize = 20_000;

/// So many exponential gaps, stretched to fill a time exactly.
fn normalised(rng: &mut Rng, n: usize, span_s: f64) -> Vec<f64> {
    let gaps: Vec<f64> = (0..n).map(|_| rng.exponential(1.0)).collect();
    let sum: f64 = gaps.iter().sum();
    gaps.iter().map(|gap| gap * span_s / sum).collect()
}

fn ends(gaps: impl IntoIterator<Item = f64>) -> Vec<f64> {
    let mut at = 0.0;
    gaps.into_iter()
        .map(|gap| {
            at += gap;
            at
        })
        .collect()
}

fn poisson(rng: &mut Rng, mean: f64) -> usize {
    let (mut n, mut left) = (0, mean - rng.exponential(1.0));
    while left > 0.0 {
        n += 1;
        left -= rng.exponential(1.0);
    }
    n
}

#[test]
fn a_constant_rate_of_normalised_exponential_gaps_fails() {
    println!("seed {SEED}");
    let mut rng = Rng::new(SEED);
    let moments = ends(normalised(&mut rng, SENDS, SENDS as f64 / RATE));
    let certificate = external(&open(SEED, process("constant:10/s")), &moments);
    assert_eq!(certificate.verdict, Verdict::Failed);
    assert!(names(&certificate).contains(&"exact_s"), "{certificate}");
}

#[test]
fn a_poisson_process_fitted_into_seconds_fails() {
    println!("seed {SEED}");
    let mut rng = Rng::new(SEED);
    let mut moments = Vec::new();
    for second in 0..SENDS / RATE as usize {
        let n = poisson(&mut rng, RATE);
        let within = ends(normalised(&mut rng, n, 1.0));
        moments.extend(within.iter().map(|at| second as f64 + at));
    }
    let workload = open(SEED, process("exponential:10/s"));
    let certificate = external(&workload, &moments);
    println!("{certificate}");
    assert_eq!(certificate.verdict, Verdict::Failed);
    assert!(names(&certificate).contains(&"phase"), "{certificate}");
    // Its canary: the same without the fitting passes.
    let honest = ends((0..SENDS).map(|_| rng.exponential(1.0 / RATE)));
    assert_eq!(external(&workload, &honest).verdict, Verdict::Good);
}

#[test]
fn processes_seeded_alike_fail_in_step() {
    println!("seed {SEED}");
    let processes = 4;
    let one = || {
        let mut rng = Rng::new(SEED);
        ends((0..SENDS / processes).map(move |_| rng.exponential(processes as f64 / RATE)))
    };
    let mut moments: Vec<f64> = (0..processes).flat_map(|_| one()).collect();
    moments.sort_by(f64::total_cmp);
    let certificate = external(&open(SEED, process("exponential:10/s")), &moments);
    assert_eq!(certificate.verdict, Verdict::Failed, "{certificate}");
    assert!(names(&certificate).contains(&"kolmogorov_smirnov"));

    // Even a few milliseconds apart, and as users of a closed loop.
    let mut apart: Vec<f64> = (0..processes)
        .flat_map(|process| one().into_iter().map(move |at| at + process as f64 * 0.003))
        .collect();
    apart.sort_by(f64::total_cmp);
    let certificate = external(&open(SEED, process("exponential:10/s")), &apart);
    assert_eq!(certificate.verdict, Verdict::Failed, "{certificate}");

    let workload = closed(
        SEED,
        processes as u32,
        process("exponential:400ms"),
        Scope::User,
    );
    let mut certifier = Certifier::new(&workload, Part::WHOLE);
    for user in 0..processes as u64 {
        let mut from = Duration::ZERO;
        for moment in one() {
            let at = Duration::from_secs_f64(moment);
            let drawn = true;
            certifier.record(0, user, Due { from, at, drawn }, Sent::At(at));
            from = at;
        }
    }
    let certificate = certifier.certify(Duration::from_secs(SENDS as u64));
    assert_eq!(certificate.verdict, Verdict::Failed, "{certificate}");
    assert!(names(&certificate).contains(&"correlation"));
}

#[test]
fn a_sender_whose_lag_grows_is_void() {
    let workload = open(SEED, process("exponential:10/s"));
    let growing = |i| Duration::from_micros(30 * i as u64);
    let certificate = send_open(&workload, SENDS, growing);
    assert_eq!(certificate.verdict, Verdict::Void);
    // One that says it meant to send when it sent hides its lag, and not its gaps.
    let mut at = 0.0;
    let mut rng = Rng::new(SEED);
    let moments: Vec<f64> = (0..SENDS)
        .map(|_| {
            at += rng.exponential(1.0 / RATE).max(0.08);
            at
        })
        .collect();
    assert_eq!(external(&workload, &moments).verdict, Verdict::Failed);
}

#[test]
fn sends_that_never_left_make_a_run_void() {
    let workload = open(SEED, process("exponential:10/s"));
    let mut certifier = Certifier::new(&workload, Part::WHOLE);
    let mut arrivals = workload.arrivals(0, Part::WHOLE).unwrap();
    for i in 0..1000 {
        let due = arrivals.next(&Plain::ONE).unwrap().first.due;
        certifier.record(
            0,
            SEQUENCE,
            due,
            if i % 50 > 0 {
                Sent::At(due.at)
            } else {
                Sent::Never
            },
        );
    }
    let certificate = certifier.certify(Duration::from_secs(1000));
    assert_eq!(certificate.verdict, Verdict::Void, "{certificate}");
    assert_eq!(certificate.profiles[0].lag.overdue, 20);
}

#[test]
fn a_wrong_parameter_fails() {
    println!("seed {SEED}");
    for (asked, sent) in [
        ("exponential:10/s", "exponential:9.5/s"),
        ("gamma:10/s,cv=1.5", "gamma:10/s,cv=1.4"),
        ("exponential:10/s", "mmpp:10/s,factor=1.5"),
        ("on-off:10/s", "on-off:10/s,on=3s,off=12s"),
        ("mmpp:10/s", "exponential:10/s"),
    ] {
        let mut arrivals = open(SEED, process(sent)).arrivals(0, Part::WHOLE).unwrap();
        let moments: Vec<f64> = (0..SENDS)
            .map(|_| {
                arrivals
                    .next(&Plain::ONE)
                    .unwrap()
                    .first
                    .due
                    .at
                    .as_secs_f64()
            })
            .collect();
        let certificate = external(&open(SEED, process(asked)), &moments);
        assert_eq!(
            certificate.verdict,
            Verdict::Failed,
            "{asked}: {certificate}"
        );
    }
}

#[test]
fn sends_before_they_are_due_fail() {
    let workload = closed(SEED, 5, process("exponential:2s"), Scope::User);
    let mut certifier = Certifier::new(&workload, Part::WHOLE);
    let mut user = workload.users(0, Part::WHOLE).next().unwrap();
    let mut from = Duration::from_secs(1);
    for _ in 0..1000 {
        let due = user.next(from, &Plain::ONE).unwrap().due;
        let early = due.at.saturating_sub(Duration::from_millis(2));
        certifier.record(0, 0, due, Sent::At(early));
        from = due.at + Duration::from_secs(1);
    }
    assert!(names(&certifier.certify(from)).contains(&"early_s"));
}
