//! Rolling windows in cases that can be checked in the head, and under threads.
//!
//! Not here: random courses against brute force (`tests/model`).

use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::*;
use crate::fixture::rate;
use crate::limit::Bucket;

const S: i64 = 1_000_000_000;

fn at(seconds: i64) -> Mono {
    Mono(seconds * S)
}

fn requests(amount: u64, seconds: u64) -> Rolling {
    Rolling::new(Kind::Requests, rate(amount, seconds), Room::Ample)
}

fn tokens(amount: u64, seconds: u64) -> Rolling {
    Rolling::new(Kind::Tokens, rate(amount, seconds), Room::Ample)
}

fn remaining(window: &Rolling, now: Mono) -> u64 {
    window.level(now).remaining
}

fn wait(seconds: u64) -> Result<(), Denied> {
    Err(Denied::Wait(Duration::from_secs(seconds)))
}

#[test]
fn two_a_minute_refuses_a_third_after_31_seconds_and_admits_one_after_60() {
    let window = requests(2, 60);
    assert_eq!(window.take(1, at(100)), Ok(()));
    assert_eq!(window.take(1, at(100)), Ok(()));
    assert_eq!(window.take(1, at(131)), wait(29));
    let just_before = Mono(at(160).0 - 1);
    let nanosecond = Err(Denied::Wait(Duration::from_nanos(1)));
    assert_eq!(window.take(1, just_before), nanosecond);
    assert_eq!(window.take(1, at(160)), Ok(()));
    assert_eq!(window.take(1, at(161)), Ok(()));
    assert_eq!(window.take(1, at(219)), wait(1));
    // The bucket admits the third.
    let bucket = Bucket::new(rate(2, 60));
    let admitted = [100, 100, 131].map(|seconds| bucket.take(1, at(seconds)).is_ok());
    assert_eq!(admitted, [true, true, true]);
}

#[test]
fn calls_that_are_apart_are_exact_for_tokens_too() {
    let window = tokens(1000, 60);
    assert_eq!(window.take(600, at(100)), Ok(()));
    assert_eq!(window.take(400, at(110)), Ok(()));
    assert_eq!(window.take(600, at(159)), wait(1));
    assert_eq!(window.take(601, at(159)), wait(11));
    assert_eq!(window.take(600, at(160)), Ok(()));
    assert_eq!(window.take(1, at(169)), wait(1));
    assert_eq!(window.take(1001, at(1000)), Err(Denied::Never));
}

#[test]
fn a_level_says_what_is_left_and_when_all_of_it_is_free() {
    for window in [requests(5, 60), tokens(5, 60)] {
        window.take(1, at(0)).expect("room");
        window.take(1, at(20)).expect("room");
        let level = |remaining, seconds| Level {
            remaining,
            reset: Duration::from_secs(seconds),
        };
        assert_eq!(window.level(at(30)), level(3, 50));
        assert_eq!(window.level(at(60)), level(4, 20));
        assert_eq!(window.level(at(80)), level(5, 0));
    }
}

#[test]
fn what_a_call_did_not_use_is_free_at_once_and_what_it_overran_is_owed_from_then_on() {
    let window = tokens(1000, 60);
    let share = Share {
        reserved: 900,
        at: at(0),
    };
    window.take(900, at(0)).expect("room");
    window.settle(share, 900, 100, at(5));
    assert_eq!(remaining(&window, at(5)), 900);
    // A count that comes later: more than was reserved.
    window.settle(share, 100, 1300, at(5));
    assert_eq!(remaining(&window, at(5)), 0);
    assert_eq!(window.take(1, at(5)), wait(55));
    // What was reserved counts from the admission, the rest from the end.
    assert_eq!(remaining(&window, at(60)), 600);
    assert_eq!(remaining(&window, at(65)), 1000);
    // A window later nothing is there that could be given back.
    window.take(1000, at(70)).expect("room");
    window.settle(share, 1300, 0, at(5));
    assert_eq!(remaining(&window, at(70)), 0);
}

#[test]
fn a_call_that_another_limit_refused_never_was() {
    for window in [requests(2, 60), tokens(2, 60)] {
        let share = Share {
            reserved: 1,
            at: at(10),
        };
        window.take(1, at(0)).expect("room");
        window.take(1, at(10)).expect("room");
        window.settle(share, 1, 0, at(10));
        assert_eq!(window.take(1, at(11)), Ok(()));
        assert_eq!(window.take(1, at(12)), wait(48));
    }
}

#[test]
fn debts_without_bound_block_a_window_and_no_longer() {
    let window = tokens(10, 60);
    let share = Share {
        reserved: 0,
        at: at(1),
    };
    for _ in 0..20 {
        window.settle(share, 0, u64::MAX, at(1));
    }
    assert_eq!(window.take(1, at(1)), wait(60));
    assert_eq!(window.take(10, at(61)), Ok(()));
}

#[test]
fn the_extremes_of_rate_and_window_neither_overflow_nor_admit_more() {
    let year = Duration::from_secs(366 * 86_400);
    for (amount, per) in [
        (1, Duration::from_nanos(1)),
        (1, Duration::from_millis(1)),
        (1_000_000_000_000, Duration::from_secs(60)),
        (1_000_000_000_000, year),
        (3, Duration::MAX),
        (1025, year),
    ] {
        let rate = Rate {
            amount,
            per,
            burst: amount,
        };
        for kind in [Kind::Requests, Kind::Tokens] {
            let window = Rolling::new(kind, rate, Room::Scant);
            for now in [Mono(-5), Mono(0), at(1), at(1_000_000_000)] {
                let before = remaining(&window, now);
                assert!(before <= amount);
                if window.take(1, now).is_ok() {
                    assert_eq!(remaining(&window, now), before - 1, "{kind:?} {rate:?}");
                }
            }
            assert_eq!(window.take(amount + 1, at(0)), Err(Denied::Never));
        }
    }
}

#[test]
fn a_clock_that_runs_behind_admits_nothing_more() {
    for window in [requests(2, 60), tokens(2, 60)] {
        let taken = |now| window.take(1, now).is_ok();
        assert_eq!([at(100), at(100), at(100)].map(taken), [true, true, false]);
        assert_eq!([at(40), at(-1000), at(159)].map(taken), [false; 3]);
        assert!(taken(at(160)));
        // Whether it still sees what the other worker does not, or is counted as of that one's window: one is left.
        let admitted = [at(159), at(160), at(160)].map(taken);
        assert_eq!(admitted.iter().filter(|it| **it).count(), 1);
        assert_eq!([at(159), at(219)].map(taken), [false; 2]);
    }
}

#[test]
fn memory_is_bounded_and_stated() {
    for (window, bytes) in [
        (requests(2, 60), 16),
        (requests(1024, 60), 8192),
        (requests(1_000_000, 60), 2048),
        (tokens(100_000, 60), 2048),
    ] {
        assert_eq!(window.bytes(), bytes, "{:?}", window.rate());
    }
    for (kind, amount, bytes) in [
        (Kind::Requests, 2, 16),
        (Kind::Requests, 64, 512),
        (Kind::Requests, 65, 512),
        (Kind::Tokens, 100_000, 512),
    ] {
        let window = Rolling::new(kind, rate(amount, 60), Room::Scant);
        assert_eq!(window.bytes(), bytes, "{kind:?} {amount}");
    }
}

#[test]
fn a_reload_keeps_when_each_was_taken() {
    let carried = |old: &Rolling, kind, rate| Rolling::carried(kind, rate, Room::Ample, old);
    let old = requests(5, 60);
    for second in [0, 10, 20, 30, 40] {
        old.take(1, at(second)).expect("room");
    }
    // The last two of five count: a third fits when the earlier of them is a window ago.
    let fewer = carried(&old, Kind::Requests, rate(2, 60));
    assert_eq!(fewer.take(1, at(50)), wait(40));
    // The other three are not forgotten: a larger amount counts them again, until they are a window ago.
    let again = carried(&fewer, Kind::Requests, rate(5, 60));
    assert_eq!(again.take(1, at(50)), wait(10));
    assert_eq!(again.take(1, at(60)), Ok(()));
    let none = carried(&fewer, Kind::Requests, rate(1, 60));
    let all = carried(&none, Kind::Requests, rate(20, 60));
    assert_eq!(remaining(&all, at(50)), 15);
    let longer = carried(&old, Kind::Requests, rate(5, 3600));
    assert_eq!(longer.take(1, at(100)), wait(3500));
    let more = carried(&old, Kind::Requests, rate(2000, 60));
    assert_eq!(remaining(&more, at(50)), 1995);
    let old = tokens(1000, 60);
    old.take(700, at(0)).expect("room");
    old.take(200, at(30)).expect("room");
    let fewer = carried(&old, Kind::Tokens, rate(300, 60));
    assert_eq!(fewer.take(100, at(31)), wait(29));
    assert_eq!(fewer.take(100, at(60)), Ok(()));
}

/// Workers go on with the old window until they have the new configuration.
#[test]
fn what_is_taken_from_an_old_window_after_a_reload_is_taken_from_the_new_one_once() {
    let old = tokens(100, 60);
    old.take(10, at(0)).expect("room");
    // Of a configuration that is refused after all.
    let refused = Rolling::carried(Kind::Tokens, rate(200, 60), Room::Ample, &old);
    let new = Rolling::carried(Kind::Tokens, rate(200, 60), Room::Ample, &old);
    old.take(20, at(1)).expect("room");
    new.take(5, at(1)).expect("room");
    for (window, left) in [(&old, 70), (&*refused, 170), (&*new, 165)] {
        assert_eq!(remaining(window, at(1)), left);
    }
    let share = Share {
        reserved: 20,
        at: at(1),
    };
    old.settle(share, 20, 2, at(2));
    assert_eq!(remaining(&new, at(2)), 183);
}

#[test]
fn threads_hammering_one_window_take_exactly_its_amount() {
    for amount in [1, 7, 1000, 5000] {
        for window in [requests(amount, 3600), tokens(amount, 3600)] {
            let got = AtomicU64::new(0);
            std::thread::scope(|scope| {
                for _ in 0..8 {
                    scope.spawn(|| {
                        for _ in 0..2000 {
                            got.fetch_add(
                                u64::from(window.take(1, at(7)).is_ok()),
                                Ordering::Relaxed,
                            );
                        }
                    });
                }
            });
            assert_eq!(got.into_inner(), amount, "{:?}", window.rate());
        }
    }
}

/// Four workers in step, for many windows: what each step admitted is summed over every window.
#[test]
fn threads_never_admit_more_in_any_window_of_many() {
    const STEPS: usize = 3000;
    const WINDOW: usize = 40;
    for window in [requests(25, 40), tokens(25, 40)] {
        let admitted: Vec<AtomicU64> = (0..STEPS).map(|_| AtomicU64::new(0)).collect();
        let step = Barrier::new(4);
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let (window, admitted, step) = (&window, &admitted, &step);
                scope.spawn(move || {
                    for (nth, admitted) in (0..).zip(admitted) {
                        step.wait();
                        for _ in 0..(nth * 7 + thread) % 5 {
                            let got = u64::from(window.take(1, at(nth)).is_ok());
                            admitted.fetch_add(got, Ordering::Relaxed);
                        }
                    }
                });
            }
        });
        let admitted: Vec<u64> = admitted.into_iter().map(AtomicU64::into_inner).collect();
        let most = admitted.windows(WINDOW).map(|in_one| in_one.iter().sum());
        assert_eq!(most.max(), Some(25_u64), "{:?}", window.rate());
    }
}

#[test]
fn threads_that_take_and_settle_lose_no_update() {
    let window = tokens(1_000_000, 1_000_000);
    std::thread::scope(|scope| {
        for thread in 0..4_u64 {
            let window = &window;
            scope.spawn(move || {
                for n in 0..5000_u64 {
                    let reserved = 1 + n % 7;
                    window.take(reserved, at(0)).expect("room for all");
                    let share = Share {
                        reserved,
                        at: at(0),
                    };
                    window.settle(share, reserved, (n + thread) % 11, at(0));
                }
            });
        }
    });
    let used: u64 = (0..4_u64)
        .flat_map(|t| (0..5000_u64).map(move |n| (n + t) % 11))
        .sum();
    assert_eq!(remaining(&window, at(0)), 1_000_000 - used);
}
