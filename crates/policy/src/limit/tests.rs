//! The bucket in cases that can be checked in the head, and under threads.
//!
//! Not here: random courses against an exact bucket (`tests/model`).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::{Bucket, Denied, Level, Rate};
use crate::clock::Mono;
use crate::fixture::rate;

const S: i64 = 1_000_000_000;

fn at(seconds: i64) -> Mono {
    Mono(seconds * S)
}

fn taken(bucket: &Bucket, tries: u32, now: Mono) -> u32 {
    (0..tries)
        .map(|_| u32::from(bucket.take(1, now).is_ok()))
        .sum()
}

fn remaining(bucket: &Bucket, now: Mono) -> u64 {
    bucket.level(now).remaining
}

#[test]
fn two_a_minute_is_two_and_then_one_each_half_minute() {
    let bucket = Bucket::new(rate(2, 60));
    assert_eq!(taken(&bucket, 6, at(100)), 2);
    assert_eq!(
        bucket.take(1, at(100)),
        Err(Denied::Wait(Duration::from_secs(30)))
    );
    assert_eq!(
        bucket.take(1, at(129)),
        Err(Denied::Wait(Duration::from_secs(1)))
    );
    assert_eq!(taken(&bucket, 6, at(130)), 1);
    assert_eq!(
        taken(&bucket, 6, at(1000)),
        2,
        "an idle bucket holds its burst, not more"
    );
}

#[test]
fn whoever_waits_as_told_is_admitted_and_a_nanosecond_less_is_not_enough() {
    for r in [
        rate(2, 60),
        rate(7, 60),
        rate(1000, 1),
        rate(99_999, 60),
        rate(3, 3600),
    ] {
        let bucket = Bucket::new(r);
        let now = at(5);
        bucket.take(r.burst, now).expect("full");
        let units = r.burst.div_ceil(2);
        let Err(Denied::Wait(wait)) = bucket.take(units, now) else {
            panic!("{r:?} gave more than its burst");
        };
        let early = Mono(now.after(wait).0 - 1);
        assert_eq!(
            bucket.take(units, early),
            Err(Denied::Wait(Duration::from_nanos(1))),
            "{r:?}"
        );
        assert_eq!(bucket.take(units, now.after(wait)), Ok(()), "{r:?}");
    }
}

#[test]
fn a_burst_taken_in_single_units_is_the_whole_burst_and_no_more() {
    for amount in [1, 2, 3, 6, 7, 11, 13, 59, 61, 97, 100, 997, 1001, 8191] {
        for seconds in [1, 60, 3600, 86_400] {
            let bucket = Bucket::new(rate(amount, seconds));
            let asked = u32::try_from(amount).expect("small") + 10;
            let got = taken(&bucket, asked, at(1));
            assert_eq!(u64::from(got), amount, "{amount} per {seconds} s");
        }
    }
}

#[test]
fn remaining_counts_down_by_one_whatever_the_rate() {
    for amount in [7, 13, 59, 997] {
        let bucket = Bucket::new(rate(amount, 60));
        for left in (0..amount).rev() {
            bucket.take(1, at(1)).expect("not empty");
            assert_eq!(remaining(&bucket, at(1)), left, "{amount} a minute");
        }
    }
}

#[test]
fn more_than_the_burst_is_never_and_takes_nothing() {
    let bucket = Bucket::new(rate(100, 60));
    assert_eq!(bucket.take(101, at(0)), Err(Denied::Never));
    assert_eq!(bucket.take(u64::MAX, at(0)), Err(Denied::Never));
    assert_eq!(remaining(&bucket, at(0)), 100);
    assert_eq!(bucket.take(100, at(0)), Ok(()));
}

#[test]
fn an_overspend_is_debt_that_refill_must_pay_first() {
    let bucket = Bucket::new(rate(100, 100));
    bucket.take(10, at(0)).expect("full");
    bucket.settle(10, 250, at(0));
    assert_eq!(
        bucket.level(at(0)),
        Level {
            remaining: 0,
            reset: Duration::from_secs(250)
        }
    );
    assert_eq!(
        bucket.take(1, at(0)),
        Err(Denied::Wait(Duration::from_secs(151)))
    );
    assert_eq!(
        bucket.take(1, at(150)),
        Err(Denied::Wait(Duration::from_secs(1)))
    );
    assert_eq!(bucket.take(1, at(151)), Ok(()));
}

#[test]
fn debts_without_bound_stay_debts() {
    let bucket = Bucket::new(rate(10, 60));
    for _ in 0..20 {
        bucket.settle(0, u64::MAX, at(1));
    }
    assert!(matches!(bucket.take(1, at(1)), Err(Denied::Wait(_))));
    assert_eq!(remaining(&bucket, at(1_000_000)), 0);
}

#[test]
fn the_extremes_of_rate_and_window_neither_overflow_nor_admit_more() {
    let rates = [
        Rate {
            amount: 1,
            per: Duration::from_secs(86_400 * 365),
            burst: 1,
        },
        Rate {
            amount: 1,
            per: Duration::from_secs(86_400 * 365),
            burst: 1_000_000,
        },
        Rate {
            amount: u64::MAX,
            per: Duration::from_nanos(1),
            burst: u64::MAX,
        },
        Rate {
            amount: u64::MAX,
            per: Duration::MAX,
            burst: 3,
        },
        Rate {
            amount: 1,
            per: Duration::MAX,
            burst: u64::MAX,
        },
        Rate {
            amount: 1,
            per: Duration::from_nanos(1),
            burst: 1,
        },
        Rate {
            amount: 1_000_000_000_000,
            per: Duration::from_secs(60),
            burst: 5_000_000,
        },
    ];
    for r in rates {
        let bucket = Bucket::new(r);
        for now in [Mono(0), Mono(1), at(1), at(1_000_000_000)] {
            let level = bucket.level(now);
            assert!(level.remaining <= r.burst, "{r:?}");
            let half = (r.burst / 2).max(1);
            if bucket.take(half, now).is_ok() {
                bucket.settle(half, 0, now);
            }
            assert!(bucket.level(now).remaining <= r.burst, "{r:?}");
        }
        let got = u64::from(taken(&Bucket::new(r), 20, Mono(0)));
        assert!((1..=r.burst).contains(&got), "{r:?} gave {got}");
    }
}

#[test]
fn a_clock_that_runs_behind_admits_nothing_more() {
    let bucket = Bucket::new(rate(2, 60));
    assert_eq!(taken(&bucket, 2, at(100)), 2);
    assert_eq!(taken(&bucket, 2, at(40)), 0);
    assert_eq!(taken(&bucket, 2, at(-1000)), 0);
    assert_eq!(taken(&bucket, 2, at(129)), 0);
    assert_eq!(taken(&bucket, 2, at(130)), 1);
}

/// Workers go on with the old bucket until they have the new configuration.
#[test]
fn what_is_taken_from_an_old_bucket_after_a_reload_is_taken_from_the_new_one_once() {
    let old = Bucket::new(rate(100, 100));
    old.take(10, at(0)).expect("full");
    // Of a configuration that is refused after all.
    let refused = Bucket::carried(rate(100, 100), &old, at(0));
    let new = Bucket::carried(rate(100, 100), &old, at(0));
    old.take(20, at(0)).expect("90 are left");
    new.take(5, at(0)).expect("70 are left");
    for (bucket, left) in [(&old, 70), (&*refused, 70), (&*new, 65)] {
        assert_eq!(bucket.level(at(0)).remaining, left);
    }
    old.settle(20, 2, at(0));
    assert_eq!(new.level(at(0)).remaining, 83);
}

#[test]
fn a_thousand_reloads_forgive_no_part_of_a_unit() {
    let (one, other) = (
        rate(2, 60),
        Rate {
            burst: 3,
            ..rate(3, 60)
        },
    );
    let mut bucket = Arc::new(Bucket::new(one));
    assert_eq!(taken(&bucket, 2, at(0)), 2);
    for n in 0..1000 {
        let now = Mono(n * 10_000_000);
        bucket = Bucket::carried(if n % 2 == 0 { other } else { one }, &bucket, now);
    }
    // Ten seconds at 2 or 3 a minute, turn about, refill 0.42 of a unit of the two.
    let now = at(10);
    let reset = Bucket::carried(one, &bucket, now).level(now).reset;
    let exact = Duration::from_millis(47_500);
    assert!(reset >= exact, "forgiven: {reset:?}");
    assert!(
        reset <= exact + Duration::from_millis(20),
        "invented: {reset:?}"
    );
}

#[test]
fn threads_hammering_one_bucket_take_exactly_its_burst() {
    for burst in [1, 7, 1000] {
        let (bucket, got) = (Bucket::new(rate(burst, 3600)), AtomicU64::new(0));
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..2000 {
                        if bucket.take(1, at(7)).is_ok() {
                            got.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                });
            }
        });
        assert_eq!(got.into_inner(), burst);
    }
}

#[test]
fn threads_that_take_and_settle_lose_no_update() {
    let bucket = Bucket::new(rate(1_000_000, 1_000_000));
    std::thread::scope(|scope| {
        for thread in 0..4_u64 {
            let bucket = &bucket;
            scope.spawn(move || {
                for n in 0..5000_u64 {
                    let reserved = 1 + n % 7;
                    bucket.take(reserved, at(0)).expect("room for all");
                    bucket.settle(reserved, (n + thread) % 11, at(0));
                }
            });
        }
    });
    let used: u64 = (0..4_u64)
        .flat_map(|t| (0..5000_u64).map(move |n| (n + t) % 11))
        .sum();
    assert_eq!(remaining(&bucket, at(0)), 1_000_000 - used);
}
