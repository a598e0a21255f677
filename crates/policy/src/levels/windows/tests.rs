//! Subjects that come, stay, and are refused where nobody makes room.

use std::sync::atomic::AtomicU64;
use std::time::Duration;

use super::*;
use crate::fast_hash;
use crate::fixture::rate;

const S: i64 = 1_000_000_000;

/// A subject of no crowd.
fn finalize(n: u64) -> u64 {
    fast_hash::finalize(n) >> 8
}

fn at(seconds: i64) -> Mono {
    Mono(seconds * S)
}

fn windows(kind: Kind, amount: u64, subjects: usize) -> Windows {
    Windows::new(kind, rate(amount, 60), subjects, Whose::User, 7)
}

fn wait(seconds: u64) -> Result<(), Denied> {
    Err(Denied::Wait(Duration::from_secs(seconds)))
}

#[test]
fn each_user_has_two_in_any_minute_and_no_third_after_31_seconds() {
    let windows = windows(Kind::Requests, 2, 1024);
    for user in (0..1000).map(finalize) {
        assert_eq!(windows.take(user, 1, at(0)), Ok(()));
        assert_eq!(windows.take(user, 1, at(1)), Ok(()));
        assert_eq!(windows.take(user, 1, at(31)), wait(29));
        assert_eq!(windows.would_take(user, 1, at(31)), wait(29));
        assert_eq!(windows.level(user, at(31)).remaining, 0);
        assert_eq!(windows.take(user, 1, at(60)), Ok(()));
    }
    assert_eq!(windows.active(at(60)), 1000);
    assert_eq!(windows.active(at(120)), 0);
}

#[test]
fn what_a_user_did_not_use_is_free_again() {
    let windows = windows(Kind::Tokens, 1000, 64);
    let share = Share {
        reserved: 900,
        at: at(0),
    };
    windows.take(finalize(1), 900, at(0)).expect("room");
    windows.settle(finalize(1), share, 900, 100, at(3));
    assert_eq!(windows.level(finalize(1), at(3)).remaining, 900);
    // Nobody's is changed by who has no place.
    windows.settle(finalize(2), share, 900, 100, at(3));
    assert_eq!(windows.level(finalize(1), at(3)).remaining, 900);
    assert_eq!(windows.take(finalize(2), 1001, at(3)), Err(Denied::Never));
}

#[test]
fn nobody_is_forgotten_for_another_and_who_finds_no_place_is_refused() {
    // One set: all share it.
    let windows = windows(Kind::Requests, 1, 16);
    for user in 0..64 {
        assert_eq!(windows.take(finalize(user), 1, at(0)), Ok(()), "{user}");
    }
    assert_eq!(windows.take(finalize(64), 1, at(59)), Err(Denied::NoPlace));
    assert_eq!(windows.turned_away(), 1);
    for user in 0..64 {
        assert_eq!(windows.take(finalize(user), 1, at(59)), wait(1), "{user}");
    }
    // A minute later they say nothing any more.
    for user in 64..128 {
        assert_eq!(windows.take(finalize(user), 1, at(60)), Ok(()), "{user}");
        assert_eq!(windows.take(finalize(user), 1, at(60)), wait(60), "{user}");
    }
    assert_eq!(windows.turned_away(), 1);
}

#[test]
fn invented_users_of_one_workload_leave_windows_for_others() {
    let windows = windows(Kind::Requests, 1, 1024);
    let user = |crowd: u64, n| finalize(crowd << 32 | n) | crowd << 56;
    let given = |crowd, many, now| {
        let users = (0..many).map(|n| user(crowd, n));
        users
            .filter(|hash| windows.take(*hash, 1, now).is_ok())
            .count()
    };
    // Of 4,096 places three quarters.
    let invented = given(1, 20_000, at(0));
    assert_eq!(invented, 3072);
    assert_eq!(given(2, 200, at(1)), 200);
    let turned_away = windows.turned_away();
    assert_eq!(turned_away, 20_000 - invented as u64);
    // A reload keeps all of them, whoever came first.
    let carried = Windows::carried(rate(2, 60), &windows, at(2));
    assert_eq!(carried.active(at(2)), invented + 200);
    assert_eq!((carried.turned_away(), given(1, 1024, at(60))), (0, 1024));
}

#[test]
fn a_reload_with_another_amount_keeps_what_each_user_took() {
    let old = windows(Kind::Tokens, 1000, 64);
    old.take(finalize(1), 700, at(0)).expect("room");
    let new = Windows::carried(rate(800, 60), &old, at(10));
    assert_eq!(new.take(finalize(1), 200, at(10)), wait(50));
    assert_eq!(new.take(finalize(2), 800, at(10)), Ok(()));
    // A worker that has the old configuration still.
    old.take(finalize(1), 50, at(11)).expect("room");
    assert_eq!(new.level(finalize(1), at(11)).remaining, 50);
}

/// More users than a set has places, from four threads, in step: what each was admitted is counted.
#[test]
fn threads_bring_users_in_once_and_no_user_gets_more() {
    let windows = windows(Kind::Requests, 3, 16);
    for round in 0..50 {
        let now = at(round * 60);
        let admitted: Vec<AtomicU64> = (0..80).map(|_| AtomicU64::new(0)).collect();
        std::thread::scope(|scope| {
            for thread in 0..4_u64 {
                let (windows, admitted) = (&windows, &admitted);
                scope.spawn(move || {
                    for n in 0..400 {
                        let user = (n * 7 + thread * 13) % 80;
                        if windows.take(finalize(user), 1, now).is_ok() {
                            let user = usize::try_from(user).expect("few");
                            admitted[user].fetch_add(1, Ordering::Relaxed);
                        }
                    }
                });
            }
        });
        let admitted: Vec<u64> = admitted.into_iter().map(AtomicU64::into_inner).collect();
        assert!(admitted.iter().all(|n| *n <= 3), "{admitted:?}");
        assert_eq!(admitted.iter().filter(|n| **n == 3).count(), 64);
    }
}
