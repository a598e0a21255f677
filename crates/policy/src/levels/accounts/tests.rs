//! What subjects spend, through periods and on many threads.

use super::*;
use crate::budget::Every;
use crate::fast_hash;

const JULY_FIRST_2026: u64 = 1_782_864_000_000;

/// A subject of no crowd.
fn finalize(n: u64) -> u64 {
    fast_hash::finalize(n) >> 8
}

/// A user of this crowd.
fn user(crowd: u64, n: u64) -> u64 {
    finalize(crowd << 32 | n) | crowd << 56
}

fn days(every: Every, nth: i64) -> Days {
    let calendar = Calendar { every, east_min: 0 };
    let Period(now) = calendar.of(JULY_FIRST_2026);
    Days::of(calendar, Period(now + nth))
}

#[test]
fn a_subject_has_its_amount_in_each_period_and_settles_in_the_one_it_took_from() {
    let accounts = Accounts::new(16);
    let (today, tomorrow) = (days(Every::Day, 0), days(Every::Day, 1));
    for subject in [1, 2, 3].map(finalize) {
        assert_eq!(accounts.take(subject, today, 60, 100), Ok(()));
        assert_eq!(
            accounts.take(subject, today, 41, 100),
            Err(Short::Exhausted)
        );
        assert_eq!(accounts.fits(subject, today, 40, 100), Ok(()));
        assert_eq!(
            accounts.fits(subject, today, 41, 100),
            Err(Short::Exhausted)
        );
        assert_eq!(accounts.take(subject, tomorrow, 100, 100), Ok(()));
        // More than was reserved, of the day before.
        accounts.settle(subject, today, 60, 150);
        assert_eq!(accounts.held(subject, today), Some(150));
        assert_eq!(accounts.held(subject, tomorrow), Some(100));
        assert_eq!(accounts.take(subject, today, 1, 150), Err(Short::Exhausted));
        accounts.settle(subject, today, 150, 0);
        assert_eq!(accounts.held(subject, today), Some(0));
    }
    assert_eq!(accounts.used(JULY_FIRST_2026), 6);
    assert_eq!(accounts.used(JULY_FIRST_2026 + 2 * DAY_MS), 0);
}

#[test]
fn a_place_is_kept_for_a_whole_period_more_and_then_used_again() {
    let accounts = Accounts::new(1);
    let subject = |n: u64| finalize(n);
    let mut came = 0;
    // Days without end fit, because places are used again.
    for day in 0..400 {
        for n in 0..60 {
            let taken = accounts.take(subject(n), days(Every::Day, day), 1 + n, 100);
            assert_eq!(taken, Ok(()), "{day} {n}");
            came += 1;
        }
        for n in 0..60 {
            // Today's and yesterday's are there; what was today's is not what stood there before.
            assert_eq!(
                accounts.held(subject(n), days(Every::Day, day)),
                Some(1 + n)
            );
            if day > 0 {
                let before = accounts.held(subject(n), days(Every::Day, day - 1));
                assert_eq!(before, Some(1 + n));
            }
        }
    }
    assert_eq!(came, 400 * 60);
    assert_eq!(accounts.turned_away(), 0);
}

#[test]
fn who_has_no_place_is_turned_away_and_nobody_is_forgotten() {
    let accounts = Accounts::new(1);
    let month = days(Every::Month, 0);
    let came = (0..).take_while(|n| accounts.take(finalize(*n), month, 70, 100).is_ok());
    let came = came.count() as u64;
    assert_eq!(came, BLOCK as u64, "all places of the smallest table");
    for n in 0..came {
        assert_eq!(
            accounts.take(finalize(n), month, 31, 100),
            Err(Short::Exhausted)
        );
        assert_eq!(accounts.held(finalize(n), month), Some(70), "{n}");
    }
    let turned_away = accounts.turned_away();
    assert_eq!(turned_away, 1);
    assert_eq!(
        accounts.fits(finalize(came), month, 1, 100),
        Err(Short::NoPlace)
    );
    assert_eq!(accounts.turned_away(), 2);
    // Days of this month do not make room in it; the month after the next does.
    assert_eq!(
        accounts.take(finalize(came), days(Every::Day, 20), 1, 100),
        Err(Short::NoPlace)
    );
    assert_eq!(
        accounts.take(finalize(came), days(Every::Month, 1), 1, 100),
        Err(Short::NoPlace)
    );
    assert_eq!(
        accounts.take(finalize(came), days(Every::Month, 2), 1, 100),
        Ok(())
    );
}

#[test]
fn amounts_are_bounded_by_what_a_word_holds() {
    let accounts = Accounts::new(1);
    let today = days(Every::Day, 0);
    assert_eq!(
        accounts.take(1, today, u64::MAX, u64::MAX),
        Err(Short::Exhausted)
    );
    assert_eq!(accounts.take(1, today, ACCOUNT_MAX, u64::MAX), Ok(()));
    assert_eq!(accounts.take(1, today, 1, u64::MAX), Err(Short::Exhausted));
    assert_eq!(accounts.add(1, today, u64::MAX), Ok(()));
    assert_eq!(accounts.held(1, today), Some(ACCOUNT_MAX));
    for (every, nth) in [
        (Every::Day, -40_000),
        (Every::Month, 4000),
        (Every::Week, i64::from(i32::MAX)),
    ] {
        let days = days(every, nth);
        assert_eq!(accounts.take(2, days, 5, 10), Ok(()), "{every:?} {nth}");
    }
}

/// All subjects are new at once on all threads, while the day before makes room: none has two places, nothing is lost
/// and nothing is let in above the amount.
#[test]
fn no_subject_has_more_than_its_amount_on_any_number_of_threads() {
    const SUBJECTS: u64 = 40;
    const AMOUNT: u64 = 100;
    let accounts = Accounts::new(1);
    for day in 0..60 {
        let taken: Vec<AtomicU64> = (0..SUBJECTS).map(|_| AtomicU64::new(0)).collect();
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let (accounts, taken) = (&accounts, &taken);
                scope.spawn(move || {
                    for call in 0..SUBJECTS * AMOUNT / 2 {
                        let n = (call + thread) % SUBJECTS;
                        let hash = finalize(n);
                        let days = days(Every::Day, day);
                        if accounts.take(hash, days, 3, AMOUNT).is_ok() {
                            // Settled for less: one unit of three.
                            accounts.settle(hash, days, 3, 1);
                            taken[n as usize].fetch_add(1, Ordering::Relaxed);
                        }
                    }
                });
            }
        });
        for (n, taken) in (0..).zip(&taken) {
            let taken = taken.load(Ordering::Relaxed);
            let held = accounts.held(finalize(n), days(Every::Day, day));
            assert_eq!(
                held,
                Some(taken),
                "day {day}, subject {n}: an update was lost"
            );
            assert!(
                (AMOUNT - 4 * 3..=AMOUNT).contains(&taken),
                "day {day}: {taken}"
            );
        }
    }
    assert_eq!(accounts.turned_away(), 0);
}

/// How many of these are given a place, each asked for once.
fn given(accounts: &Accounts, days: Days, subjects: impl Iterator<Item = u64>) -> usize {
    subjects
        .filter(|hash| {
            let fits = accounts.fits(*hash, days, 1, 1);
            let taken = accounts.take(*hash, days, 1, 1);
            assert_eq!(fits, taken);
            taken.is_ok()
        })
        .count()
}

#[test]
fn invented_users_of_one_workload_leave_places_for_keys_and_for_other_workloads() {
    let accounts = Accounts::new(1024);
    let today = days(Every::Day, 0);
    let users = |crowd, many| (0..many).map(move |n| user(crowd, n));
    let invented = given(&accounts, today, users(1, 20_000));
    // Of 8,192 places half.
    assert_eq!(invented, 4096);
    assert_eq!(given(&accounts, today, users(2, 1000)), 1000);
    // Others who invent have half of what is left, each in turn.
    for (crowd, places) in [(2, 1048), (3, 1024), (4, 512), (5, 256), (6, 0)] {
        assert_eq!(
            given(&accounts, today, users(crowd, 21_000).skip(1000)),
            places,
            "{crowd}"
        );
    }
    // Whatever users there are, a key has a place, and nobody loses his.
    assert_eq!(given(&accounts, today, (0..64).map(finalize)), 64);
    for n in 0..300 {
        assert_eq!(accounts.held(user(2, n), today), Some(1), "{n}");
    }
}

#[test]
fn users_of_one_workload_have_all_the_room_that_the_bound_says_beside_those_of_yesterday() {
    for subjects in [1024, 16_384] {
        let accounts = Accounts::new(subjects);
        for day in 0..4 {
            let users = (0..subjects as u64).map(|n| user(7, n));
            let given = given(&accounts, days(Every::Day, day), users);
            assert_eq!(given, subjects, "day {day}");
        }
    }
}

#[test]
fn keys_may_have_all_places() {
    let accounts = Accounts::new(1024);
    let month = days(Every::Month, 0);
    assert!(given(&accounts, month, (0..8192).map(finalize)) > 7900);
}
