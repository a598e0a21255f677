//! Subjects that come, stay, and make room.

use std::sync::atomic::AtomicU64;
use std::time::Duration;

use super::*;
use crate::fast_hash::finalize;
use crate::fixture::rate;
use crate::limit::Rate;

const NOW: Mono = Mono(5_000_000_000);
const SECOND: i64 = 1_000_000_000;

fn at(seconds: i64) -> Mono {
    Mono(NOW.0 + seconds * SECOND)
}

fn left(slots: &Slots, hash: u64, terms: &SlotTerms, now: Mono) -> u64 {
    slots.level(hash, terms, now).remaining
}

#[test]
fn each_subject_has_its_bucket_and_a_whole_burst_in_single_units() {
    let slots = Slots::new(64);
    for (amount, per) in [(2, 60), (7, 60), (1000, 1), (3, 86_400), (1, 1)] {
        let terms = SlotTerms::of(rate(amount, per));
        for subject in [1 << 20, 2 << 20, 3 << 20].map(|n| finalize(n + amount)) {
            // Also at a moment that is no whole grain.
            let now = Mono(NOW.0 + 3);
            for _ in 0..amount {
                assert_eq!(slots.take(subject, &terms, 1, now), Ok(()), "{amount}");
            }
            let Err(Denied::Wait(wait)) = slots.take(subject, &terms, 1, now) else {
                panic!("more than {amount} a {per} s");
            };
            assert!(wait <= Duration::from_secs(per), "{wait:?}");
            let later = now.after(wait).after(Duration::from_nanos(8));
            assert_eq!(slots.take(subject, &terms, 1, later), Ok(()));
        }
    }
    assert_eq!(slots.evicted(), 0);
}

#[test]
fn a_settlement_finds_its_bucket_and_carries_debt() {
    let slots = Slots::new(8);
    let terms = SlotTerms::of(rate(1000, 1000));
    let subject = finalize(1);
    assert_eq!(slots.take(subject, &terms, 400, NOW), Ok(()));
    slots.settle(subject, &terms, 400, 100, NOW);
    assert_eq!(left(&slots, subject, &terms, NOW), 900);
    slots.settle(subject, &terms, 100, 1300, NOW);
    assert_eq!(left(&slots, subject, &terms, NOW), 0);
    let wait = slots.take(subject, &terms, 1, NOW);
    assert_eq!(wait, Err(Denied::Wait(Duration::from_secs(301))));
    assert_eq!(slots.take(subject, &terms, 1001, NOW), Err(Denied::Never));
    assert_eq!(slots.active(NOW), 1);
    assert_eq!(slots.active(at(2000)), 0);
}

#[test]
fn a_full_bucket_makes_room_uncounted_and_the_one_nearest_to_full_is_given_up() {
    // One set: whoever comes shares it.
    let slots = Slots::new(8);
    let terms = SlotTerms::of(rate(10, 10));
    let subject = |n: u64| finalize(n);
    for n in 0..8 {
        assert_eq!(slots.take(subject(n), &terms, 1 + n, NOW), Ok(()));
    }
    // The first is full again, and is forgotten.
    assert_eq!(slots.take(subject(8), &terms, 10, at(1)), Ok(()));
    assert_eq!(slots.evicted(), 0);
    // Nobody is: the second is the nearest.
    assert_eq!(slots.take(subject(9), &terms, 10, at(1)), Ok(()));
    assert_eq!(slots.evicted(), 1);
    assert_eq!(left(&slots, subject(1), &terms, at(1)), 10);
    for n in 2..8 {
        assert_eq!(left(&slots, subject(n), &terms, at(1)), 10 - n, "{n}");
    }
    // What is settled for whoever has no bucket changes nobody's.
    slots.settle(subject(1), &terms, 2, 50, at(1));
    assert_eq!(left(&slots, subject(9), &terms, at(1)), 0);
    assert_eq!(left(&slots, subject(1), &terms, at(1)), 10);
}

/// Threads that hammer few subjects: none has more than its burst and what refilled, though all of them are new to the
/// table at once.
#[test]
fn no_subject_has_more_than_its_rate_on_any_number_of_threads() {
    const SUBJECTS: u64 = 6;
    const BURST: u64 = 500;
    let terms = SlotTerms::of(Rate {
        amount: BURST,
        per: Duration::from_secs(1_000_000),
        burst: BURST,
    });
    for round in 0..200 {
        let slots = Slots::new(8);
        let given: [AtomicU64; SUBJECTS as usize] = std::array::from_fn(|_| AtomicU64::new(0));
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let (slots, given, terms) = (&slots, &given, &terms);
                scope.spawn(move || {
                    for call in 0..SUBJECTS * BURST / 2 {
                        let subject = (call + thread) % SUBJECTS;
                        let hash = finalize(subject + round * SUBJECTS);
                        if slots.take(hash, terms, 1, NOW).is_ok() {
                            given[subject as usize].fetch_add(1, Ordering::Relaxed);
                        }
                    }
                });
            }
        });
        assert_eq!(slots.evicted(), 0);
        let given = given.map(AtomicU64::into_inner);
        assert_eq!(given, [BURST; SUBJECTS as usize], "round {round}");
    }
}

/// More subjects than slots, on many threads: what each is given is at most a burst, and one more for each time that
/// somebody was given up; nobody has two slots, and no bucket is another's.
#[test]
fn subjects_that_push_each_other_out_gain_a_burst_at_most_each_time() {
    const SUBJECTS: u64 = 24;
    const BURST: u64 = 20;
    let terms = SlotTerms::of(Rate {
        amount: BURST,
        per: Duration::from_secs(1_000_000),
        burst: BURST,
    });
    for round in 0..20 {
        let slots = Slots::new(8);
        let given = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let (slots, given, terms) = (&slots, &given, &terms);
                scope.spawn(move || {
                    for call in 0..4000 {
                        let hash = finalize((call * 7 + thread * 5) % SUBJECTS);
                        if slots.take(hash, terms, 1, NOW).is_ok() {
                            given.fetch_add(1, Ordering::Relaxed);
                            if call % 3 == 0 {
                                slots.settle(hash, terms, 1, 1, NOW);
                            }
                        }
                    }
                });
            }
        });
        let most = BURST * (SUBJECTS + slots.evicted());
        let given = given.into_inner();
        assert!(given <= most, "round {round}: {given} of {most}");
        assert!(slots.evicted() > 0);
        let set = slots.set(0).expect("one set");
        let mut tags = set
            .owners
            .each_ref()
            .map(|owner| owner.load(Ordering::Relaxed) >> PLACE_BITS);
        tags.sort_unstable();
        let twice = tags
            .windows(2)
            .filter(|pair| pair[0] == pair[1] && pair[0] != 0);
        assert_eq!(twice.count(), 0, "round {round}: a subject has two slots");
        for (owner, bucket) in set.owners.iter().zip(&set.buckets) {
            let [owner, bucket] = [owner, bucket].map(|word| word.load(Ordering::Relaxed) & COUNT);
            assert_eq!(owner, bucket, "round {round}");
        }
        assert_eq!(set.claim.load(Ordering::Relaxed) & PENDING, 0);
    }
}

#[test]
fn a_claim_that_stands_still_is_completed_by_whoever_comes() {
    let slots = Slots::new(8);
    let terms = SlotTerms::of(rate(10, 10));
    assert_eq!(slots.take(finalize(1), &terms, 3, NOW), Ok(()));
    let set = slots.set(0).expect("one set");
    let (stalled, other) = (tag(finalize(2)), finalize(3));
    let way = set.victim();
    let turn = set.claim.load(Ordering::Relaxed) + 1;
    let claim = stalled << PLACE_BITS | way << WAY_SHIFT | PENDING | turn & TURN;
    set.claim.store(claim, Ordering::Release);
    assert_eq!(slots.take(other, &terms, 4, NOW), Ok(()));
    assert!(set.find(stalled).is_some() && set.find(tag(other)).is_some());
    // Whoever comes back to it late changes nothing.
    slots.complete(set, claim, NOW);
    assert_eq!(left(&slots, other, &terms, NOW), 6);
    assert_eq!(left(&slots, finalize(1), &terms, NOW), 7);
}

#[test]
fn arrival_times_at_the_ends_of_what_a_word_holds() {
    for (arrival_ns, kept) in [
        (-5, 0),
        (0, 0),
        (7, 0),
        (8, 8),
        (i64::MAX, (i64::MAX >> 4) / 8 * 8),
    ] {
        let word = word(arrival_ns, 0xab);
        assert_eq!(word & COUNT, 0xab);
        assert_eq!(arrival(word).min(kept.max(0)), kept.max(0), "{arrival_ns}");
    }
    let slots = Slots::new(8);
    let terms = SlotTerms::of(Rate {
        amount: 1,
        per: Duration::from_secs(1 << 40),
        burst: u64::MAX,
    });
    assert_eq!(slots.take(1, &terms, 1, Mono(i64::MAX)), Ok(()));
    slots.settle(1, &terms, 0, u64::MAX, Mono(i64::MIN));
    let _level = slots.level(1, &terms, Mono(0));
}

/// Takes, settlements and levels at random moments give what a bucket of its own would, while other subjects come and go.
#[test]
fn a_slot_decides_as_a_bucket_does() {
    let mut random = testing::Draw::new(testing::seed("a_slot_decides_as_a_bucket_does"));
    let mut draw = |below: u64| random.next() % below;
    // Whole grains, so that nothing is rounded.
    let rate = rate(1000, 8);
    let terms = SlotTerms::of(rate);
    let (slots, bucket) = (Slots::new(64), crate::limit::Bucket::new(rate));
    let (subject, mut now) = (finalize(77), NOW);
    let mut admitted = 0;
    for step in 0..20_000 {
        now = Mono(now.0 + i64::try_from(draw(40_000_000)).expect("small") / 8 * 8);
        let units = 1 + draw(300);
        // Never all eight of a set at once.
        let other = finalize(draw(4));
        let _taken = slots.take(other, &terms, units, now);
        let given = slots.take(subject, &terms, units, now);
        assert_eq!(given, bucket.take(units, now), "step {step}");
        if given.is_ok() {
            admitted += 1;
            let actual = draw(400);
            slots.settle(subject, &terms, units, actual, now);
            bucket.settle(units, actual, now);
        }
        assert_eq!(
            slots.level(subject, &terms, now),
            bucket.level(now),
            "step {step}"
        );
        assert_eq!(
            slots.would_take(subject, &terms, units, now),
            bucket.would_take(units, now)
        );
    }
    assert!((200..19_000).contains(&admitted), "{admitted}");
    assert_eq!(slots.evicted(), 0);
}
