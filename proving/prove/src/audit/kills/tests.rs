//! What a kill may have taken of a grouped route, and how far a machine that stood still excuses more.

use std::time::{Duration, Instant};

use super::last_moments;
use crate::audit::account::Missing;
use crate::audit::verdict::Verdict;
use crate::host::stalls::Stalls;

/// Whether a row that was lost may have been, with its answer at `at_ms`, one kill at 10,000 ms and these stalls.
fn is_excused(at_ms: u64, stalls: &[(u64, u64)]) -> bool {
    let start = Instant::now();
    let at = |ms| start + Duration::from_millis(ms);
    let missing = Missing {
        lost_at: vec![at(at_ms)],
        kept_at: vec![at(1)],
        ..Missing::default()
    };
    let stalls = Stalls::of(stalls.iter().map(|&(from, to)| (at(from), at(to))));
    let mut verdict = Verdict::new("test", 0, true);
    last_moments(&missing, &[at(10_000)], &stalls, &mut verdict);
    verdict.holds
}

#[test]
fn a_row_is_lost_of_the_last_moments_and_of_no_earlier_ones() {
    for (at_ms, is_so) in [
        (8_900, false),
        (9_000, true),
        (10_100, true),
        (10_101, false),
    ] {
        assert_eq!(is_excused(at_ms, &[]), is_so, "{at_ms}");
    }
}

#[test]
fn only_what_the_machine_stood_still_excuses_more() {
    // The engine's thread stood still across the kill, and answered then.
    assert!(is_excused(10_300, &[(10_050, 10_290)]));
    assert!(!is_excused(10_300, &[(10_050, 10_200)]), "50 ms too few");
    assert!(!is_excused(10_300, &[(9_000, 10_000)]), "before the kill");
    // So did the gate, before it wrote what it had answered.
    assert!(is_excused(8_800, &[(8_900, 9_150)]));
    assert!(!is_excused(8_800, &[(8_900, 9_000)]), "100 ms too few");
    assert!(!is_excused(8_800, &[(8_000, 8_800)]), "before the answer");
}

#[test]
fn who_keeps_nothing_of_what_a_kill_ended_writes_only_at_the_end() {
    let start = Instant::now();
    let at = |ms| start + Duration::from_millis(ms);
    let holds = |lost: u64, kept: &[u64]| {
        let mut missing = Missing {
            kept_at: kept.iter().map(|ms| at(*ms)).collect(),
            ..Missing::default()
        };
        (0..lost).for_each(|n| missing.lost.add(|| n.to_string()));
        let mut verdict = Verdict::new("test", 0, false);
        last_moments(&missing, &[at(100)], &Stalls::default(), &mut verdict);
        verdict.holds
    };
    assert!(holds(1, &[10, 20]));
    assert!(holds(0, &[]));
    assert!(!holds(2, &[200, 300]), "of the last run, which none ended");
}
