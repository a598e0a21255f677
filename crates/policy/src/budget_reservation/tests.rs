//! Budgets in cases that can be checked in the head, against a plain model, and under threads.

use std::collections::HashMap;
use std::sync::Arc;

use proptest::prelude::*;

use super::{Asked, BudgetReservation, reserve, reserve_call};
use crate::budget::{Budget, Calendar, Every, Level, Period, Scope, Unit, nano_units};
use crate::fixture::{BackendPlan, ONE, RoutePlan, snapshot};
use crate::id::{BudgetId, PriceId, WorkloadId};
use crate::mcp::Glob;
use crate::model::ModelPattern;
use crate::price::{Charge, Payer, Pico, Price, Rates};
use crate::refusal::Refusal;
use crate::revision::Revision;
use crate::snapshot::Snapshot;
use crate::tokens::{Count, Tokens};

const DAY: u64 = 86_400_000;
/// A moment in 2026.
const NOW: u64 = 20_778 * DAY + 1;
const TWO: BackendPlan<'static> = BackendPlan {
    name: "two",
    weights: &[1],
    models: &[],
};

fn budget(name: &str, unit: Unit, amount: u64, workloads: &[&str]) -> Budget {
    let scope = if workloads.is_empty() {
        Scope::Everyone
    } else {
        Scope::Workloads(workloads.iter().map(|name| Arc::from(*name)).collect())
    };
    let calendar = Calendar {
        every: Every::Day,
        east_min: 0,
    };
    Budget {
        name: name.into(),
        unit,
        amount,
        calendar,
        scope,
        whose: policy::subject::Whose::Workload,
        models: Vec::new(),
        tools: Vec::new(),
    }
}

/// Workloads `a` and `b` on two backends, counted by these budgets.
fn counted_by(budgets: Vec<Budget>) -> Revision {
    Revision::first(configured(budgets))
}

fn configured(budgets: Vec<Budget>) -> Snapshot {
    let mut s = snapshot(&[RoutePlan {
        workloads: &["a", "b"],
        backends: &[ONE, TWO],
        ..RoutePlan::default()
    }]);
    let counting = |name: &str| {
        (0..)
            .map(BudgetId)
            .zip(&budgets)
            .filter(|(_, budget)| match &budget.scope {
                Scope::Everyone => true,
                Scope::Workloads(names) => names.iter().any(|n| **n == *name),
            })
            .map(|(id, _)| id)
            .collect()
    };
    s.budgets.of = vec![counting("a"), counting("b")];
    s.budgets.list = budgets;
    s
}

fn take(asked: &Asked<'_>, at: u64, s: &Revision) -> Result<BudgetReservation, Refusal> {
    let Revision { snapshot, levels } = s;
    reserve(asked, at, snapshot, levels)
}

fn ask(s: &Revision, workload: u32, tokens: u64, at: u64) -> Result<BudgetReservation, Refusal> {
    let asked = Asked {
        workload: WorkloadId(workload),
        caller: None,
        model: Some("m"),
        backends: &s.snapshot.routes[0].backends,
        prompt: tokens / 2,
        completion: tokens - tokens / 2,
        pieces: 0,
        fixed: None,
    };
    take(&asked, at, s)
}

fn refused_by(s: &Revision, workload: u32, tokens: u64, at: u64) -> Option<String> {
    match ask(s, workload, tokens, at) {
        Ok(reservation) => {
            reservation.release(&s.levels);
            None
        }
        Err(Refusal::BudgetExhausted { budget, .. } | Refusal::LargerThanBudget { budget, .. }) => {
            budget.map(|name| name.to_string())
        }
        Err(other) => panic!("{other}"),
    }
}

fn level(s: &Revision, id: BudgetId, period: Period) -> Level {
    s.levels.spent(id).expect("a budget").level(period)
}

fn held(s: &Revision, at: u64) -> Vec<u64> {
    let of = |(b, id): (&Budget, u32)| level(s, BudgetId(id), b.calendar.of(at)).held;
    s.snapshot.budgets.list.iter().zip(0..).map(of).collect()
}

fn used(tokens: u64) -> Tokens {
    Tokens {
        prompt: Count::Reported(tokens),
        completion: Count::Counted(0),
        ..Tokens::default()
    }
}

/// Waiting for another period would not help.
#[test]
fn a_call_that_a_budget_never_holds_says_what_it_needs_and_what_there_is() {
    let s = counted_by(vec![
        budget("small", Unit::Tokens, 1000, &[]),
        budget("of a", Unit::Tokens, 4000, &["a"]),
    ]);
    let message = |refused: Result<BudgetReservation, Refusal>| {
        let refusal = refused.expect_err("refused");
        (refusal.reply().code, refusal.to_string())
    };
    let too_large = "this call may come to 1001 tokens, more than the 1000 tokens of each day that \
        the budget \"small\" ever has; set a lower max_tokens, shorten the prompt, or ask for a larger budget";
    let never = ("request_exceeds_budget", too_large.to_owned());
    assert_eq!(message(ask(&s, 1, 1001, NOW)), never);
    let _held = ask(&s, 1, 900, NOW).expect("fits");
    assert_eq!(message(ask(&s, 1, 1001, NOW)), never);
    // One that fits on another day waits for that.
    let (code, says) = message(ask(&s, 1, 101, NOW));
    assert_eq!(code, "insufficient_quota");
    assert!(says.contains("its next day begins 2026-"), "{says}");
    // Of several that are short, the one that is so for good is told.
    let s = counted_by(vec![
        budget("a", Unit::Tokens, 2000, &["a"]),
        budget("b", Unit::Tokens, 1000, &[]),
    ]);
    let _held = ask(&s, 0, 1000, NOW).expect("fits");
    assert_eq!(refused_by(&s, 0, 1500, NOW).as_deref(), Some("b"));
    let (code, _) = message(ask(&s, 0, 1500, NOW));
    assert_eq!(code, "request_exceeds_budget");
}

#[test]
fn amounts_are_shown_as_they_are_written() {
    let usd = Unit::Money("USD".into());
    for (unit, units, shown) in [
        (&Unit::Tokens, 1, "1 token"),
        (&Unit::Tokens, 5000, "5000 tokens"),
        (&usd, 5_000_000_000, "5 USD"),
        (&usd, 250_000_000, "0.25 USD"),
        (&usd, 1, "0.000000001 USD"),
        (&usd, 12_500_000_001, "12.500000001 USD"),
    ] {
        assert_eq!(unit.shown(units), shown);
    }
}

#[test]
fn a_call_must_fit_in_every_budget_that_counts_it_and_takes_from_all_or_none() {
    let s = counted_by(vec![
        budget("company", Unit::Tokens, 100, &[]),
        budget("a alone", Unit::Tokens, 60, &["a"]),
    ]);
    let first = ask(&s, 0, 50, NOW).expect("fits in both");
    assert_eq!(held(&s, NOW), [50, 50]);
    assert_eq!(refused_by(&s, 0, 11, NOW).as_deref(), Some("a alone"));
    assert_eq!(
        held(&s, NOW),
        [50, 50],
        "nothing is held for a refused call"
    );
    assert_eq!(refused_by(&s, 1, 51, NOW).as_deref(), Some("company"));
    let second = ask(&s, 1, 50, NOW).expect("exactly what is left");
    assert_eq!(refused_by(&s, 1, 1, NOW).as_deref(), Some("company"));
    let _settled = first.settle(&used(70), None, &s.snapshot, &s.levels);
    assert_eq!(held(&s, NOW), [120, 70], "an overspend counts");
    second.release(&s.levels);
    assert_eq!(held(&s, NOW), [70, 70]);
    let day = s.snapshot.budgets.list[0].calendar.of(NOW);
    assert_eq!(level(&s, BudgetId(0), day).refused, 2);
}

#[test]
fn a_call_that_seems_free_is_not_let_into_a_used_up_budget() {
    let s = counted_by(vec![budget("company", Unit::Tokens, 10, &[])]);
    let one = ask(&s, 0, 10, NOW).expect("fits");
    assert_eq!(refused_by(&s, 0, 0, NOW).as_deref(), Some("company"));
    let _settled = one.settle(&Tokens::default(), None, &s.snapshot, &s.levels);
    assert_eq!(held(&s, NOW), [0], "no answer that costs tokens came");
}

#[test]
fn a_call_belongs_to_the_period_in_which_it_began() {
    let s = counted_by(vec![budget("company", Unit::Tokens, 10, &[])]);
    let before = ask(&s, 0, 10, NOW).expect("fits");
    let tomorrow = ask(&s, 0, 10, NOW + DAY).expect("a new day");
    let _settled = before.settle(&used(25), None, &s.snapshot, &s.levels);
    assert_eq!((held(&s, NOW), held(&s, NOW + DAY)), (vec![25], vec![10]));
    let _settled = tomorrow.settle(&used(4), None, &s.snapshot, &s.levels);
    assert_eq!(held(&s, NOW + DAY), [4]);
    assert_eq!(
        refused_by(&s, 0, 1, NOW).as_deref(),
        Some("company"),
        "a clock set back finds what was spent"
    );
}

#[test]
fn a_budget_for_models_counts_those_and_the_calls_that_name_none() {
    let mut only = budget("gpt", Unit::Tokens, 10, &[]);
    only.models = vec![ModelPattern::Prefix("gpt-".into())];
    let s = counted_by(vec![only]);
    let ask = |model: Option<&str>| {
        let asked = Asked {
            workload: WorkloadId(0),
            caller: None,
            model,
            backends: &[],
            prompt: 11,
            completion: 0,
            pieces: 0,
            fixed: None,
        };
        take(&asked, NOW, &s).map(|reservation| reservation.release(&s.levels))
    };
    assert!(ask(Some("llama")).is_ok());
    assert!(ask(Some("gpt-4")).is_err());
    assert!(ask(None).is_err());
    let gpt = &s.snapshot.budgets.list[0];
    assert!(gpt.counts(None, Some("gpt-4")) && !gpt.counts(Some("a"), Some("llama")));
    let a = budget("a", Unit::Tokens, 1, &["a"]);
    assert!(a.counts(Some("a"), None) && !a.counts(Some("b"), None) && !a.counts(None, None));
}

fn priced(of_input: i128, currency: &str) -> Price {
    let rate = Pico(of_input);
    Price {
        id: "p".into(),
        whose: "".into(),
        currency: currency.into(),
        request: Pico(0),
        rates: Rates::flat(rate, rate),
        tiers: Vec::new(),
    }
}

#[test]
fn money_is_reserved_at_the_dearest_backend_and_settled_at_what_it_cost() {
    let mut s = configured(vec![budget("dollars", Unit::Money("USD".into()), 100, &[])]);
    let backends = s.routes[0].backends.clone();
    s.prices
        .insert("m", Some(backends[0]), priced(2_000, "USD"));
    s.prices
        .insert("m", Some(backends[1]), priced(5_000, "USD"));
    let s = Revision::first(s);
    let reservation = ask(&s, 0, 10, NOW).expect("fits");
    assert_eq!(held(&s, NOW), [50], "ten tokens at five nano-dollars");
    assert_eq!(refused_by(&s, 0, 11, NOW).as_deref(), Some("dollars"));
    let price = s
        .snapshot
        .prices
        .of("m", Some(backends[0]), Payer::default())
        .expect("there");
    let tokens = used(7);
    let charge = Charge {
        price: PriceId(0),
        cost: price.cost(&tokens),
    };
    let _settled = reservation.settle(&tokens, Some(charge), &s.snapshot, &s.levels);
    assert_eq!(held(&s, NOW), [14]);
    let unknown = ask(&s, 0, 10, NOW).expect("fits");
    let _settled = unknown.settle(&tokens, None, &s.snapshot, &s.levels);
    assert_eq!(held(&s, NOW), [64], "where the cost is not known it stands");
}

#[test]
fn a_call_that_may_have_no_price_is_refused_where_money_counts() {
    let s = |at_two: Option<Price>| {
        let mut s = configured(vec![budget("usd", Unit::Money("USD".into()), 100, &["a"])]);
        let backends = s.routes[0].backends.clone();
        s.prices.insert("m", Some(backends[0]), priced(1, "USD"));
        if let Some(price) = at_two {
            s.prices.insert("m", Some(backends[1]), price);
        }
        Revision::first(s)
    };
    let unpriced = |s: &Revision| matches!(ask(s, 0, 1, NOW), Err(Refusal::Unpriced { .. }));
    assert!(unpriced(&s(None)));
    assert!(unpriced(&s(Some(priced(1, "EUR")))));
    assert!(!unpriced(&s(Some(priced(1, "USD")))));
    assert!(ask(&s(None), 1, 1, NOW).is_ok(), "nobody counts it");
}

#[test]
fn parts_of_a_nano_are_rounded_up() {
    assert_eq!(
        [0, 1, 1000, 1001].map(|pico| nano_units(Pico(pico))),
        [0, 1, 1, 2]
    );
    assert_eq!(nano_units(Pico(i128::MAX)), u64::MAX);
}

#[test]
fn absurd_numbers_neither_overflow_nor_pass() {
    let s = counted_by(vec![budget("company", Unit::Tokens, u64::MAX, &[])]);
    let some = ask(&s, 0, 1000, NOW).expect("fits");
    let _settled = some.settle(&used(u64::MAX), None, &s.snapshot, &s.levels);
    assert!(ask(&s, 0, u64::MAX, NOW).is_err());
    assert!(ask(&s, 0, 1, u64::MAX).is_ok(), "the last period there is");
}

/// What a plain budget holds: by day.
type Plain = HashMap<u64, i128>;

proptest! {
    /// One call after another: admitted exactly when every budget that counts it has room, and the
    /// sums are those of the model.
    #[test]
    fn in_turn_it_does_what_the_plain_model_does(
        amounts in prop::array::uniform3(1..200_u64),
        steps in prop::collection::vec((0..2_u32, 0..60_u64, 0..3_u64, any::<u8>(), 0..120_u64), 1..120),
    ) {
        let s = counted_by(vec![
            budget("company", Unit::Tokens, amounts[0], &[]),
            budget("a", Unit::Tokens, amounts[1], &["a"]),
            budget("b", Unit::Tokens, amounts[2], &["b"]),
        ]);
        let mut plain: [Plain; 3] = Default::default();
        let mut open: Vec<(BudgetReservation, u32, u64, u64)> = Vec::new();
        for (workload, tokens, day, choice, actual) in steps {
            let at = NOW + day * DAY;
            let mine = [0, 1 + workload as usize];
            let asked = i128::from(tokens.max(1));
            let fits = mine.iter().all(|i| {
                plain[*i].get(&day).copied().unwrap_or(0) + asked <= i128::from(amounts[*i])
            });
            match ask(&s, workload, tokens, at) {
                Ok(reservation) => {
                    prop_assert!(fits);
                    for i in mine {
                        *plain[i].entry(day).or_default() += asked;
                    }
                    open.push((reservation, workload, day, tokens.max(1)));
                }
                Err(_) => prop_assert!(!fits),
            }
            if choice < 140 && !open.is_empty() {
                let at = usize::from(choice) % open.len();
                let (reservation, workload, day, reserved) = open.swap_remove(at);
                let really = if choice % 5 == 0 { 0 } else { actual };
                if choice % 5 == 0 {
                    reservation.release(&s.levels);
                } else {
                    let _settled = reservation.settle(&used(actual), None, &s.snapshot, &s.levels);
                }
                for i in [0, 1 + workload as usize] {
                    *plain[i].entry(day).or_default() += i128::from(really) - i128::from(reserved);
                }
            }
            for day in 0..3 {
                let model = plain.each_ref().map(|p| p.get(&day).copied().unwrap_or(0));
                let real = held(&s, NOW + day * DAY);
                prop_assert_eq!(real.iter().map(|n| i128::from(*n)).collect::<Vec<_>>(), model);
            }
        }
    }
}

#[test]
fn calls_of_tools_are_counted_by_the_budgets_of_their_tool_and_by_no_other() {
    let of_tool = |name: &str, amount, tool: &str| Budget {
        tools: vec![Glob(tool.into())],
        ..budget(name, Unit::Calls, amount, &[])
    };
    let mut s = configured(vec![
        of_tool("reads", 1, "*__read"),
        of_tool("a", 2, "a__*"),
        budget("tokens", Unit::Tokens, 1, &[]),
    ]);
    let of_calls = vec![BudgetId(0), BudgetId(1)];
    s.budgets.of_tools = vec![of_calls.clone(), of_calls];
    s.budgets.of = vec![vec![BudgetId(2)]; 2];
    let s = Revision::first(s);
    let call = |tool: &str| reserve_call((WorkloadId(0), None), tool, NOW, &s.snapshot, &s.levels);
    let ran = |tool: &str| match call(tool) {
        Ok(held) => {
            let _settled = held.settle(&Tokens::default(), None, &s.snapshot, &s.levels);
            None
        }
        Err(Refusal::BudgetExhausted { budget, .. }) => budget.map(|name| name.to_string()),
        Err(other) => panic!("{other:?}"),
    };
    assert_eq!(ran("a__read"), None);
    assert_eq!(ran("b__read").as_deref(), Some("reads"));
    assert_eq!(ran("b__write"), None, "nobody counts it");
    // One that never was is given back, and one that is refused by the second holds nothing of the first.
    call("a__write").expect("room").release(&s.levels);
    assert_eq!(ran("a__write"), None);
    assert_eq!(ran("a__write").as_deref(), Some("a"));
    let held = |id| {
        let spent = s.levels.spent(BudgetId(id)).expect("a budget");
        let calendar = s.snapshot.budgets.list[0].calendar;
        spent.level(calendar.of(NOW)).held
    };
    assert_eq!((held(0), held(1), held(2)), (1, 2, 0));
    assert_eq!(
        refused_by(&s, 0, 1, NOW),
        None,
        "calls to models are no calls of tools"
    );
}
