//! What a table hands on to the next one.

use super::*;
use crate::budget::{Calendar, Every, Scope, Unit};
use crate::fixture::{ONE, RoutePlan, rate, snapshot};
use crate::limit::{Kind, Rate};

const NOW: Mono = Mono(5_000_000_000);

/// One workload on one route, with limits of these keys.
fn limited(limits: &[(&str, Rate)]) -> Snapshot {
    let rates: Vec<_> = limits
        .iter()
        .map(|(_, rate)| (Kind::Tokens, *rate))
        .collect();
    let mut s = snapshot(&[RoutePlan {
        workloads: &["w"],
        backends: &[ONE],
        limits: &rates,
        ..RoutePlan::default()
    }]);
    for (limit, (key, _)) in s.limits.iter_mut().zip(limits) {
        (*key).clone_into(&mut limit.key);
    }
    s
}

/// The same, counted by budgets of these names, units and calendars.
fn budgeted(budgets: &[(&str, Unit, Every)]) -> Snapshot {
    let mut s = limited(&[]);
    let budgets = budgets.iter().map(|(name, unit, every)| Budget {
        name: (*name).into(),
        unit: unit.clone(),
        amount: 100,
        calendar: Calendar {
            every: *every,
            east_min: 0,
        },
        scope: Scope::Everyone,
        whose: policy::subject::Whose::Workload,
        models: Vec::new(),
        tools: Vec::new(),
    });
    s.budgets.list = budgets.collect();
    s
}

fn left(levels: &Levels, limit: u32) -> u64 {
    let bucket = levels.bucket(LimitId(limit)).expect("a limit");
    bucket.level(NOW).remaining
}

#[test]
fn a_limit_that_stays_keeps_its_bucket_wherever_it_stands() {
    let (a, b) = (("a", rate(60, 60)), ("b", rate(60, 60)));
    let old = limited(&[a, b]);
    let levels = Levels::new(&old);
    levels
        .bucket(LimitId(0))
        .expect("a")
        .take(10, NOW)
        .expect("full");
    let new = limited(&[("c", rate(60, 60)), b, a]);
    let carried = Levels::carried(&new, &old, &levels, NOW);
    assert_eq!([0, 1, 2].map(|limit| left(&carried, limit)), [60, 60, 50]);
    // It is the same one: a call that began before the reload still settles it.
    levels.bucket(LimitId(0)).expect("a").settle(10, 0, NOW);
    assert_eq!(left(&carried, 2), 60);
}

#[test]
fn a_limit_with_another_rate_or_window_keeps_what_it_owes() {
    let old = limited(&[("a", rate(60, 60))]);
    let levels = Levels::new(&old);
    levels
        .bucket(LimitId(0))
        .expect("a")
        .take(60, NOW)
        .expect("full");
    for changed in [rate(120, 60), rate(60, 3600)] {
        let new = limited(&[("a", changed)]);
        let carried = Levels::carried(&new, &old, &levels, NOW);
        assert_eq!(left(&carried, 0), changed.burst - 60, "{changed:?}");
        assert_eq!(carried.bucket(LimitId(0)).expect("a").rate(), changed);
    }
}

#[test]
fn a_limit_that_counts_another_way_from_now_on_keeps_what_it_owes() {
    let rolling = |rates: &[(&str, Rate)]| {
        let mut s = limited(rates);
        s.limits[0].window = Window::Rolling;
        s
    };
    let level = |levels: &Levels, seconds: i64| {
        let now = Mono(NOW.0 + seconds * 1_000_000_000);
        levels.level(LimitId(0), now).expect("a limit").remaining
    };
    let bucket = limited(&[("a", rate(60, 60))]);
    let levels = Levels::new(&bucket);
    let first = levels.bucket(LimitId(0)).expect("a bucket");
    first.take(40, NOW).expect("full");
    let window = rolling(&[("a", rate(60, 60))]);
    let carried = Levels::carried(&window, &bucket, &levels, NOW);
    assert_eq!(
        [0, 59, 60].map(|second| level(&carried, second)),
        [20, 20, 60]
    );
    // It is the same one where it stays, and another amount keeps what was taken when.
    let same = Levels::carried(&window, &window, &carried, NOW);
    let first = same.window(LimitId(0)).expect("a window");
    assert!(std::ptr::eq(
        first,
        carried.window(LimitId(0)).expect("a window")
    ));
    let raised = rolling(&[("a", rate(100, 60))]);
    let raised_levels = Levels::carried(&raised, &window, &same, NOW);
    assert_eq!(
        [0, 59, 60].map(|second| level(&raised_levels, second)),
        [60, 60, 100]
    );
    let back = Levels::carried(&bucket, &window, &same, NOW);
    assert_eq!([0, 10, 40].map(|second| level(&back, second)), [20, 30, 60]);
}

#[test]
fn a_call_that_was_open_while_the_rate_changed_settles_what_the_new_one_owes() {
    let old = limited(&[("a", rate(1000, 60))]);
    let levels = Levels::new(&old);
    let bucket = levels.bucket(LimitId(0)).expect("a");
    bucket.take(900, NOW).expect("full");
    let once = limited(&[("a", rate(1200, 60))]);
    let carried = Levels::carried(&once, &old, &levels, NOW);
    assert_eq!(left(&carried, 0), 300);
    let twice = limited(&[("a", rate(1500, 60))]);
    let carried = Levels::carried(&twice, &once, &carried, NOW);
    bucket.settle(900, 2, NOW);
    assert_eq!(left(&carried, 0), 1498, "given back");
    bucket.settle(0, 500, NOW);
    assert_eq!(left(&carried, 0), 998, "owed");
}

#[test]
fn the_exact_window_is_matched_before_a_rewritten_one() {
    let (minute, hour) = (rate(10, 60), rate(20, 3600));
    let old = limited(&[("a", minute), ("a", hour)]);
    let levels = Levels::new(&old);
    levels
        .bucket(LimitId(0))
        .expect("a")
        .take(3, NOW)
        .expect("full");
    levels
        .bucket(LimitId(1))
        .expect("a")
        .take(5, NOW)
        .expect("full");
    let new = limited(&[("a", rate(30, 86_400)), ("a", minute)]);
    let carried = Levels::carried(&new, &old, &levels, NOW);
    assert_eq!([0, 1].map(|limit| left(&carried, limit)), [25, 7]);
}

#[test]
fn a_budget_keeps_what_was_spent_while_it_counts_the_same_units_in_the_same_periods() {
    let old = budgeted(&[("a", Unit::Tokens, Every::Day)]);
    let levels = Levels::new(&old);
    let a = (BudgetId(0), old.budgets.list[0].calendar.of(0));
    levels.spent(a.0).expect("a budget").settle(a.1, 0, 30);
    for (name, unit, every, is_kept) in [
        ("a", Unit::Tokens, Every::Day, true),
        ("b", Unit::Tokens, Every::Day, false),
        ("a", Unit::Money("USD".into()), Every::Day, false),
        ("a", Unit::Tokens, Every::Week, false),
    ] {
        let mut new = budgeted(&[("other", Unit::Tokens, Every::Day), (name, unit, every)]);
        new.budgets.list[1].amount = 7;
        let carried = Levels::carried(&new, &old, &levels, NOW);
        let (id, period) = (BudgetId(1), new.budgets.list[1].calendar.of(0));
        let held = carried.spent(id).expect("a budget").level(period).held;
        assert_eq!(held, if is_kept { 30 } else { 0 }, "{name} {every:?}");
        assert_eq!(carried.has_from(&levels, id), is_kept, "{name} {every:?}");
        assert!(!carried.has_from(&levels, BudgetId(0)));
    }
}
