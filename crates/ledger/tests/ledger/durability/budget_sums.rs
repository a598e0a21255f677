//! Sums that budgets start with: every row counts in exactly one of them.

use std::path::Path;
use std::sync::Arc;

use ledger::{Known, Ledger, Period, Price, Reader, Spent, Unsure};
use policy::budget::{Calendar, Every, Unit};
use policy::caller::{Caller, OwnBudget};
use policy::clock::Mono;
use policy::identity::{Proof, Source, Unproven, Verifier};
use policy::price::Pico;
use policy::revision::Revision;
use policy::snapshot::Snapshot;
use policy::subject::Who;

use crate::rows::{admission, admitted, flushed, now_ms, opened, options, settlement};

const FROM: u64 = 1_700_000_000_000;

fn read(dir: &Path, from: u64, to: u64) -> (Vec<Spent>, Vec<Unsure>) {
    let (mut sums, mut unsure) = (Vec::new(), Vec::new());
    let period = Period {
        from_ms: FROM + from,
        to_ms: FROM + to,
    };
    let reader = Reader::open(&options(dir).path).expect("a ledger");
    let read = reader.spent(period, false, |sum| sums.push(sum), |row| unsure.push(row));
    read.expect("reads");
    (sums, unsure)
}

#[test]
fn rows_count_in_the_period_they_started_in_and_uncertain_ones_are_listed() {
    let dir = tempfile::tempdir().expect("a directory");
    let ledger = opened(options(dir.path()));
    let intake = ledger.intake();
    let costing = |n: u64, currency: &str, pico: Option<i128>| {
        let mut row = settlement(n);
        row.price = Some(Price {
            id: "p".into(),
            currency: currency.into(),
            cost: pico.map(Pico),
        });
        intake.settle(row);
    };
    costing(10, "USD", Some(1));
    costing(11, "USD", Some(2001));
    costing(12, "EUR", Some(5000));
    costing(13, "USD", None);
    // One exchange started after the period, and one before it.
    costing(900, "USD", Some(7000));
    costing(1, "USD", Some(9000));
    admitted(&intake, 20).expect("on disk");
    flushed(&intake).expect("on disk");
    let (mut sums, unsure) = read(dir.path(), 10, 900);
    sums.sort_by_key(|sum| sum.nanos);
    let sums: Vec<_> = sums
        .iter()
        .map(|s| (s.currency.as_deref(), s.tokens, s.nanos))
        .collect();
    let expected = [(Some("USD"), 10 + 11 + 13, 1 + 3), (Some("EUR"), 12, 5)];
    assert_eq!(sums, expected, "each cost rounded up by itself");
    let known: Vec<_> = unsure.iter().map(|row| row.tokens).collect();
    assert_eq!(known, [Known::Counts(0, 13), Known::Held(1000)]);
    assert_eq!(
        unsure[1].workload,
        admission(20).named.workload.map(String::from)
    );

    // An exchange that was open when the process ended keeps its reservation.
    let copy = tempfile::tempdir().expect("a directory");
    for entry in std::fs::read_dir(dir.path()).expect("lists").flatten() {
        std::fs::copy(entry.path(), copy.path().join(entry.file_name())).expect("copies");
    }
    drop(opened(options(copy.path())));
    let (_, unsure) = read(copy.path(), 10, 900);
    assert_eq!(unsure.len(), 2);
    assert!(unsure.iter().any(|row| row.tokens == Known::Held(1000)));
}

/// Keys that are known before they call.
#[derive(Debug)]
struct Keys(Vec<Arc<Caller>>);

impl Verifier for Keys {
    fn takes(&self, _: &[u8]) -> bool {
        false
    }

    fn fingerprint(&self, _: &[u8]) -> [u8; 32] {
        [0; 32]
    }

    fn verify(&self, _: &[u8], _: u64) -> Result<Proof, Unproven> {
        Err(Unproven::Invalid("nobody calls".into()))
    }

    fn budgeted(&self) -> Vec<Arc<Caller>> {
        self.0.clone()
    }
}

/// The key `k1` with a budget of this unit, or with none.
fn key(unit: Option<Unit>) -> Arc<Caller> {
    let calendar = Calendar {
        every: Every::Month,
        east_min: 0,
    };
    let budget = |unit| OwnBudget {
        unit,
        amount: 1_000_000,
        calendar,
    };
    Arc::new(Caller {
        workload: "swe-rebench-ide".into(),
        key: Some("k1".into()),
        budgets: unit.map(budget).into_iter().collect(),
        ..Caller::default()
    })
}

fn of_keys(keys: &[&Arc<Caller>]) -> Snapshot {
    let mut snapshot = Snapshot::default();
    let keys = keys.iter().map(|key| Arc::clone(key)).collect();
    snapshot.identity.sources = vec![Source::Credential(Arc::new(Keys(keys)))];
    snapshot
}

/// The key uses so much, whether or not a budget counts it.
fn uses(ledger: &Ledger, n: u64, tokens: u64) {
    let mut row = settlement(n);
    row.record.started_unix_ms = now_ms();
    row.ended_unix_ms = now_ms();
    row.named.who.key = Some("k1".into());
    row.record.tokens.completion = policy::record::Count::Reported(tokens);
    row.completion.reported = Some(tokens);
    ledger.intake().settle(row);
    flushed(&ledger.intake()).expect("on disk");
}

#[test]
fn a_keys_budget_that_was_taken_away_and_is_given_again_counts_what_was_used_between() {
    let dir = tempfile::tempdir().expect("a directory");
    let ledger = opened(options(dir.path()));
    let (with, without) = (key(Some(Unit::Tokens)), key(None));
    let other = key(Some(Unit::Money("USD".into())));
    let budget = &with.budgets[0];
    let who = Who {
        workload: &with.workload,
        caller: Some(&with),
    };
    let period = budget.calendar.of(now_ms());
    let seed = |revision: &Revision, before: &Revision| {
        // Rows without a cost in the other unit: a doubt that is not looked at here.
        let seeded = ledger.seed_budgets(revision, Some(before), drop);
        seeded.expect("it is read");
    };
    let first = Revision::first(of_keys(&[&with]));
    uses(&ledger, 1, 30);
    let counts = |revision: &Revision, tokens| {
        assert!(revision.levels.restore_own(budget, period, &who, tokens));
    };
    counts(&first, 30);
    let mut before = first;
    let mut sum = 30;
    // Without one, with one of another unit, and without the key.
    for (nth, meanwhile) in [&[&without][..], &[&other], &[]].into_iter().enumerate() {
        let between = before.next(of_keys(meanwhile), Mono(0));
        seed(&between, &before);
        uses(&ledger, 2 + nth as u64, 300);
        sum += 300;
        let again = between.next(of_keys(&[&with]), Mono(0));
        seed(&again, &between);
        let held = || again.levels.own_held(budget, period, &who);
        assert_eq!(held(), Some(sum), "{meanwhile:?}");
        // One that stays goes on.
        uses(&ledger, 12 + nth as u64, 7);
        counts(&again, 7);
        sum += 7;
        let same = again.next(of_keys(&[&with]), Mono(0));
        seed(&same, &again);
        assert_eq!(same.levels.own_held(budget, period, &who), Some(sum));
        before = same;
    }
}
