//! How soon a fault is noticed, and how rarely none is. Random tests have fixed seeds: the bound is on an average.

use super::*;
use crate::{BuiltIn, Counter};
use wire::dialect::Operation;

/// The exchange at which the alarm goes off.
fn noticed(tolerance: Tolerance, mut exchange: impl FnMut(u64) -> (u64, u64)) -> Option<u64> {
    let mut drift = Drift::new(tolerance);
    (1..=1000).find(|number| {
        let (reported, counted) = exchange(*number);
        drift.observe(reported, counted) == Change::Raised
    })
}

#[test]
fn lies_are_noticed_within_ten_exchanges() {
    for tolerance in [Tolerance::EXACT, Tolerance::OUTPUT] {
        for (name, lie) in [
            ("half", (|n| n / 2) as fn(u64) -> u64),
            ("ten times", |n| n * 10),
            ("zero", |_| 0),
            ("a tenth more", |n| n + n / 10),
        ] {
            let at = noticed(tolerance, |number| (lie(200 + number), 200 + number));
            assert!(at.is_some_and(|at| at <= 10), "{name}: {at:?}");
        }
    }
}

#[test]
fn one_token_too_many_is_noticed_where_the_count_is_exact_and_allowed_where_it_is_not() {
    assert_eq!(noticed(Tolerance::EXACT, |_| (101, 100)), Some(4));
    assert_eq!(noticed(Tolerance::OUTPUT, |_| (101, 100)), None);
}

#[test]
fn another_tokenizer_is_noticed_within_a_hundred_exchanges() {
    let (engine, gate) = (
        Counter::without_template(BuiltIn::Cl100k),
        Counter::without_template(BuiltIn::O200k),
    );
    let count = |counter: &Counter, text: &str| {
        let body = serde_json::json!({ "prompt": text }).to_string();
        let count = counter.prompt(Operation::Completions, body.as_bytes(), 0);
        count.expect("countable").count.tokens
    };
    // English of a few words, where the two vocabularies agree most.
    let words = [
        "the", "build", "fails", "in", "third", "module", "again", "why", "symbol", "test",
    ];
    let mut random = Xorshift(9);
    let at = noticed(Tolerance::EXACT, |_| {
        let length = 5 + random.next() % 60;
        let text: Vec<_> = (0..length)
            .map(|_| words[(random.next() % 10) as usize])
            .collect();
        let text = format!("{}, naïvely!", text.join(" "));
        (count(&engine, &text), count(&gate, &text))
    });
    assert!(at.is_some_and(|at| at <= 100), "{at:?}");
}

#[test]
fn false_alarms_are_as_rare_as_stated() {
    let (mut alarms, mut random) = (0, Xorshift(4_242_424_243));
    let mut drift = Drift::new(Tolerance::EXACT);
    for _ in 0..5_000_000 {
        let reported = 100 + u64::from(random.next() % 100 == 0);
        alarms += u32::from(drift.observe(reported, 100) == Change::Raised);
    }
    // At most five on average.
    assert!(alarms <= 10, "{alarms}");
}

#[test]
fn an_alarm_ends_when_reports_agree_again() {
    let mut drift = Drift::new(Tolerance::EXACT);
    for _ in 0..1000 {
        drift.observe(5, 10);
    }
    assert!(drift.is_raised());
    let cleared = (1..=100).find(|_| drift.observe(10, 10) == Change::Cleared);
    assert!(cleared.is_some_and(|after| after <= 41), "{cleared:?}");
}

#[test]
fn sums_and_ratio_are_those_of_all_exchanges() {
    let mut drift = Drift::new(Tolerance::EXACT);
    assert_eq!(drift.ratio(), None);
    drift.observe(30, 20);
    drift.observe(20, 20);
    assert_eq!(drift.ratio(), Some(0.25));
    assert_eq!((drift.tokens(), drift.exchanges()), ((50, 40), (2, 1)));
}

struct Xorshift(u64);

impl Xorshift {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}
