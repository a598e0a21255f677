//! Looks by example: who is refused before the body, and who is not.

use std::time::Duration;

use super::look;
use crate::budget::{Budget, Calendar, Every, Scope, Unit};
use crate::clock::Mono;
use crate::exchange::admission::Opened;
use crate::fixture::{ONE, RoutePlan, rate, snapshot};
use crate::id::{BudgetId, LimitId, RouteId, WorkloadId};
use crate::limit::Bucket;
use crate::limit::Kind::{Requests, Tokens};
use crate::model::ModelPattern;
use crate::operation::Operation::{self, Chat, CountTokens, Models};
use crate::refusal::Refusal;
use crate::revision::Revision;

const NOW: Mono = Mono(1_000_000_000_000);
/// A moment in 2026, milliseconds since the Unix epoch.
const TODAY: u64 = 20_778 * 86_400_000 + 1;

fn revision(plans: &[RoutePlan<'_>]) -> Revision {
    Revision::first(snapshot(plans))
}

fn looked(s: &Revision, operation: Operation) -> Option<(RouteId, Refusal)> {
    let opened = Opened {
        workload: WorkloadId(0),
        operation,
        listed: None,
    };
    look(opened, None, NOW, TODAY, &s.snapshot, &s.levels)
}

fn plan() -> RoutePlan<'static> {
    RoutePlan {
        workloads: &["ide"],
        backends: &[ONE],
        ..RoutePlan::default()
    }
}

fn bucket(s: &Revision, limit: u32) -> &Bucket {
    s.levels.bucket(LimitId(limit)).expect("a limit")
}

fn take(s: &Revision, limit: u32, units: u64) {
    bucket(s, limit).take(units, NOW).expect("it has them");
}

fn left(s: &Revision, limit: u32) -> u64 {
    bucket(s, limit).level(NOW).remaining
}

#[test]
fn a_look_takes_nothing_and_refuses_what_no_body_could_change() {
    let limits = &[(Requests, rate(2, 60)), (Tokens, rate(100, 60))];
    let s = revision(&[RoutePlan { limits, ..plan() }]);
    for _ in 0..5 {
        assert!(looked(&s, Chat).is_none());
    }
    assert_eq!((left(&s, 0), left(&s, 1)), (2, 100));
    take(&s, 1, 99);
    assert!(looked(&s, Chat).is_none(), "one token may be enough");
    take(&s, 1, 1);
    let (route, refusal) = looked(&s, Chat).expect("no token is left");
    assert_eq!((route, refusal.limited()), (RouteId(0), Some(Tokens)));
    assert!(
        looked(&s, CountTokens).is_none(),
        "what costs nothing does not wait for tokens"
    );
    take(&s, 0, 2);
    let (_, refusal) = looked(&s, CountTokens).expect("no request is left");
    let Refusal::Limited {
        kind: Requests,
        wait,
        ..
    } = refusal
    else {
        panic!("{refusal:?}");
    };
    assert_eq!(wait, Duration::from_secs(30));
    assert!(looked(&s, Models).is_none(), "names cost nothing");
}

#[test]
fn a_caller_with_another_route_is_let_in_while_that_one_takes_calls() {
    let limits = &[(Requests, rate(1, 60))];
    let s = revision(&[
        RoutePlan {
            models: &["a"],
            limits,
            ..plan()
        },
        RoutePlan {
            models: &["b"],
            limits,
            ..plan()
        },
    ]);
    take(&s, 0, 1);
    assert!(looked(&s, Chat).is_none(), "the model may be b");
    take(&s, 1, 1);
    let (route, refusal) = looked(&s, Chat).expect("neither takes a call");
    assert_eq!((route, refusal.limited()), (RouteId(0), Some(Requests)));
}

#[test]
fn a_budget_that_counts_every_call_refuses_when_used_up() {
    for (models, refuses) in [
        (vec![], true),
        (vec![ModelPattern::Exact("m".into())], false),
    ] {
        let mut s = snapshot(&[plan()]);
        let calendar = Calendar {
            every: Every::Day,
            east_min: 0,
        };
        s.budgets.list.push(Budget {
            name: "company".into(),
            unit: Unit::Tokens,
            amount: 10,
            scope: Scope::Everyone,
            whose: policy::subject::Whose::Workload,
            models,
            calendar,
        });
        s.budgets.of = vec![vec![BudgetId(0)]];
        let s = Revision::first(s);
        let spent = s.levels.spent(BudgetId(0)).expect("a budget");
        assert!(spent.take(calendar.of(TODAY), 9, 10));
        assert!(looked(&s, Chat).is_none());
        assert!(spent.take(calendar.of(TODAY), 1, 10));
        let code = looked(&s, Chat).map(|(_, refusal)| refusal.reply().code);
        let expected = refuses.then_some("insufficient_quota");
        assert_eq!(code, expected);
        assert!(looked(&s, CountTokens).is_none(), "it costs nothing");
        assert_eq!(spent.level(calendar.of(TODAY)).held, 10);
    }
}
