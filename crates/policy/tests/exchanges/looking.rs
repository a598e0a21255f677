//! Who is refused before the body has come, and who is not.

use std::time::Duration;

use policy::budget::Unit;
use policy::id::{BudgetId, LimitId, RouteId};
use policy::limit::Kind::{Requests, Tokens};
use policy::model::ModelPattern;
use policy::operation::Operation::{self, Chat, CountTokens, Models};
use policy::refusal::Refusal;
use policy::subject::Whose;

use super::unread::{UPLOAD, file};
use crate::fixture::{RoutePlan, rate, snapshot};
use crate::world::{Asked, MONTH, NOW, World, budget, call, plan};

/// A moment in 2026, milliseconds since the Unix epoch.
const TODAY: u64 = 20_778 * 86_400_000 + 1;

fn looked(world: &mut World, operation: Operation) -> Asked {
    world.waiting(&call(operation, ""))
}

fn take(world: &World, limit: u32, units: u64) {
    let bucket = world.of.levels.bucket(LimitId(limit)).expect("a limit");
    bucket.take(units, NOW).expect("it has them");
}

#[test]
fn a_look_takes_nothing_and_refuses_what_no_body_could_change() {
    let limits = &[(Requests, rate(2, 60)), (Tokens, rate(100, 60))];
    let mut world = World::routes(&[RoutePlan { limits, ..plan() }]);
    for _ in 0..5 {
        assert_eq!(looked(&mut world, Chat).code(), "");
    }
    assert_eq!((world.left(0), world.left(1)), (2, 100));
    take(&world, 1, 99);
    assert_eq!(looked(&mut world, Chat).code(), "", "one may be enough");
    take(&world, 1, 1);
    let refused = looked(&mut world, Chat);
    assert_eq!(refused.refusal().limited(), Some(Tokens));
    assert_eq!(refused.record().route, Some(RouteId(0)));
    let free = looked(&mut world, CountTokens).code();
    assert_eq!(free, "", "what costs nothing does not wait for tokens");
    take(&world, 0, 2);
    let refused = looked(&mut world, CountTokens);
    let Refusal::Limited {
        kind: Requests,
        wait,
        ..
    } = refused.refusal()
    else {
        panic!("{:?}", refused.verdict);
    };
    assert_eq!(*wait, Duration::from_secs(30));
    assert_eq!(looked(&mut world, Models).code(), "", "names cost nothing");
}

#[test]
fn a_caller_with_another_route_is_let_in_while_that_one_takes_calls() {
    let limits = &[(Requests, rate(1, 60))];
    let [a, b] = [&["a"], &["b"]].map(|models| RoutePlan {
        models,
        limits,
        ..plan()
    });
    let mut world = World::routes(&[a, b]);
    take(&world, 0, 1);
    assert_eq!(looked(&mut world, Chat).code(), "", "the model may be b");
    take(&world, 1, 1);
    let refused = looked(&mut world, Chat);
    assert_eq!(refused.refusal().limited(), Some(Requests));
    assert_eq!(refused.record().route, Some(RouteId(0)));
}

#[test]
fn a_listed_call_is_looked_at_on_the_route_that_lists_it_alone() {
    let limits = &[(Requests, rate(1, 60))];
    let listing = RoutePlan {
        limits,
        unread: &[file(None, None)],
        ..plan()
    };
    let mut world = World::routes(&[plan(), listing]);
    assert_eq!(world.waiting(&UPLOAD).code(), "");
    take(&world, 0, 1);
    let refused = world.waiting(&UPLOAD);
    assert_eq!(refused.refusal().limited(), Some(Requests));
    assert_eq!(refused.record().route, Some(RouteId(1)));
}

#[test]
fn a_budget_that_counts_every_call_refuses_when_used_up() {
    for (models, code) in [
        (vec![], "insufficient_quota"),
        (vec![ModelPattern::Exact("m".into())], ""),
    ] {
        let mut s = snapshot(&[plan()]);
        budget(&mut s, Unit::Tokens, 10, Whose::Workload);
        s.budgets.list[0].models = models;
        let mut world = World::new(s);
        world.unix_ms = TODAY;
        for (units, code) in [(9, ""), (1, code)] {
            let spent = world.of.levels.spent(BudgetId(0)).expect("a budget");
            assert!(spent.take(MONTH.of(TODAY), units, 10));
            assert_eq!(looked(&mut world, Chat).code(), code);
        }
        assert_eq!(looked(&mut world, CountTokens).code(), "", "it is free");
        assert_eq!(world.held(0, None), 10);
    }
}
