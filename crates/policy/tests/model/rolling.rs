//! Rolling windows against brute force: every admission is kept, and every window that ends with one is added up.
//!
//! Of requests the decision and the wait are the model's, to the nanosecond. Of tokens none is admitted that the model
//! refuses, and none is refused that it would admit if its window were one part longer.

use std::collections::VecDeque;
use std::time::Duration;

use policy::clock::Mono;
use policy::limit::rolling::{Rolling, Room, Share};
use policy::limit::{Denied, Kind, Rate};

const CALLS: u64 = 1_000_000;
/// Calls of one course, each with a rate of its own.
const COURSE: u64 = 5000;
/// Parts of a window that all share, and of one of a subject's.
const PARTS: [(Room, i64); 2] = [(Room::Ample, 126), (Room::Scant, 30)];

/// A generator of numbers (SplitMix64).
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end.max(1)
    }
}

/// Everything that counts, each with its moment; the earliest first.
#[derive(Default)]
struct Kept {
    taken: VecDeque<(i64, u64)>,
    /// Which the first is, of all that ever were.
    first: usize,
}

impl Kept {
    fn add(&mut self, at: i64, units: u64) -> usize {
        self.taken.push_back((at, units));
        self.first + self.taken.len() - 1
    }

    /// What of a window that ends now counts.
    fn sum(&self, now: i64, window: i64) -> u64 {
        let counting = self.taken.iter().filter(|(at, _)| at + window > now);
        counting.map(|(_, units)| units).sum()
    }

    /// How long it is until so many units fit.
    fn wait(&self, units: u64, amount: u64, now: i64, window: i64) -> i64 {
        let mut held = self.sum(now, window);
        for (at, its) in &self.taken {
            if held + units <= amount {
                break;
            }
            if at + window > now {
                held -= its;
                if held + units <= amount {
                    return at + window - now;
                }
            }
        }
        0
    }

    fn forget(&mut self, until: i64) {
        while self.taken.front().is_some_and(|(at, _)| *at <= until) {
            self.taken.pop_front();
            self.first += 1;
        }
    }
}

/// A call that runs: what it took and when, and where the model has it.
struct Open {
    share: Share,
    kept: usize,
}

#[test]
fn a_million_calls_are_decided_as_by_brute_force() {
    let mut numbers = Numbers(testing::seed("rolling"));
    let (mut calls, mut admitted) = (0, 0);
    while calls < CALLS {
        let kind = [Kind::Requests, Kind::Tokens][usize::from(calls / COURSE % 2 == 1)];
        let (room, parts) = PARTS[usize::from(calls / COURSE % 4 > 1)];
        admitted += course(kind, room, parts, &mut numbers);
        calls += COURSE;
    }
    // Neither all nor none.
    assert!(
        admitted > calls / 10 && admitted < calls * 9 / 10,
        "{admitted} of {calls}"
    );
}

/// One course of calls; says how many were admitted.
fn course(kind: Kind, room: Room, parts: i64, numbers: &mut Numbers) -> u64 {
    let seconds = [1, 60, 3600][usize::try_from(numbers.below(3)).expect("few")];
    let per = Duration::from_secs(seconds);
    let window = i64::try_from(per.as_nanos()).expect("short");
    let amount = match kind {
        Kind::Requests => 1 + numbers.below(60),
        Kind::Tokens => 1 + numbers.below(100_000),
    };
    let rate = Rate {
        amount,
        per,
        burst: amount,
    };
    let limit = Rolling::new(kind, rate, room);
    let mut course = Course {
        kind,
        amount,
        window,
        longer: window + (window + parts - 1) / parts,
        limit,
        kept: Kept::default(),
        open: Vec::new(),
        now: i64::try_from(numbers.below(1 << 40)).expect("short"),
        told: 0,
    };
    let gap = u64::try_from(window).expect("short") / (1 + numbers.below(80));
    let mut admitted = 0;
    for _ in 0..COURSE {
        course.moves_on(gap, numbers);
        let units = match kind {
            Kind::Requests => 1,
            Kind::Tokens if numbers.below(8) == 0 => 1 + numbers.below(amount + amount / 8),
            Kind::Tokens => 1 + numbers.below(amount / 20 + 1),
        };
        admitted += u64::from(course.calls(units));
        course.settles(numbers);
    }
    admitted
}

struct Course {
    kind: Kind,
    amount: u64,
    window: i64,
    /// The window with the part by which a unit may count too long.
    longer: i64,
    limit: Rolling,
    kept: Kept,
    open: Vec<Open>,
    now: i64,
    /// How long the last refusal said to wait.
    told: i64,
}

impl Course {
    fn moves_on(&mut self, gap: u64, numbers: &mut Numbers) {
        let by = match numbers.below(40) {
            0 => numbers.below(3 * gap.max(1) * 80),
            1..=4 => u64::try_from(std::mem::take(&mut self.told)).expect("to come"),
            5..=9 => 0,
            _ => numbers.below(2 * gap + 2),
        };
        self.now += i64::try_from(by).expect("short");
        self.kept.forget(self.now - self.longer);
    }

    /// One call; whether it was admitted.
    fn calls(&mut self, units: u64) -> bool {
        let now = Mono(self.now);
        let (amount, held) = (self.amount, self.kept.sum(self.now, self.window));
        match self.limit.take(units, now) {
            Ok(()) => {
                assert!(
                    held + units <= amount,
                    "{held} + {units} of {amount} admitted"
                );
                let share = Share {
                    reserved: units,
                    at: now,
                };
                let kept = self.kept.add(self.now, units);
                self.open.push(Open { share, kept });
                true
            }
            Err(Denied::Wait(wait)) => {
                self.told = i64::try_from(wait.as_nanos()).expect("short");
                self.refused(units);
                false
            }
            Err(Denied::Never) => {
                assert!(units > amount);
                false
            }
            Err(Denied::NoPlace) => panic!("it has a place"),
        }
    }

    fn refused(&self, units: u64) {
        let exact = self.kept.wait(units, self.amount, self.now, self.window);
        match self.kind {
            Kind::Requests => assert_eq!(self.told, exact),
            Kind::Tokens => {
                let held = self.kept.sum(self.now, self.longer);
                assert!(held + units > self.amount, "{units} refused beside {held}");
                let late = self.told - exact;
                assert!((0..=self.longer - self.window).contains(&late), "{late} ns");
            }
        }
        let would = |wait: i64| self.limit.would_take(units, Mono(self.now + wait));
        assert_eq!(would(self.told), Ok(()), "who waits as told");
        assert!(would(self.told - 1).is_err(), "a nanosecond less");
    }

    /// A call ends, or never was.
    fn settles(&mut self, numbers: &mut Numbers) {
        let open = u64::try_from(self.open.len()).expect("few");
        if open == 0 || numbers.below(3) == 0 {
            return;
        }
        let Open { share, kept } = self
            .open
            .swap_remove(usize::try_from(numbers.below(open)).expect("few"));
        let actual = match (self.kind, numbers.below(20)) {
            (Kind::Requests, 0) | (Kind::Tokens, 1) => 0,
            (Kind::Requests, _) | (Kind::Tokens, 2..=5) => share.reserved,
            (Kind::Tokens, 0) => share.reserved + numbers.below(self.amount / 4 + 1),
            (Kind::Tokens, _) => numbers.below(share.reserved + 1),
        };
        let now = Mono(self.now);
        self.limit.settle(share, share.reserved, actual, now);
        let nth = kept.checked_sub(self.kept.first);
        if let Some((_, units)) = nth.and_then(|nth| self.kept.taken.get_mut(nth)) {
            *units = actual.min(share.reserved);
        }
        if actual > share.reserved {
            self.kept.add(self.now, actual - share.reserved);
        }
    }
}

/// The model itself is checked: a limit of one more must not pass for the one meant.
#[test]
#[should_panic(expected = "admitted")]
fn a_window_that_gives_one_too_many_is_caught() {
    let rate = crate::fixture::rate(3, 60);
    let mut course = Course {
        kind: Kind::Requests,
        amount: 2,
        window: 60_000_000_000,
        longer: 60_000_000_000,
        limit: Rolling::new(Kind::Requests, rate, Room::Ample),
        kept: Kept::default(),
        open: Vec::new(),
        now: 0,
        told: 0,
    };
    for _ in 0..3 {
        course.calls(1);
    }
}
