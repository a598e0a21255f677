//! Calls whose body is not read, calls that cost nothing, and those that lean on what an upstream keeps.

use std::sync::Arc;

use policy::budget::Unit;
use policy::id::{BudgetId, LimitId, PriceId};
use policy::limit::Kind::{Requests, Tokens as TokenKind};
use policy::operation::Operation::{
    self, Chat, CountTokens, InputTokens, Messages, Models, Responses, Transcriptions,
};
use policy::price::{Pico, Price, Rates};
use policy::snapshot::Snapshot;
use policy::subject::Whose;
use policy::unread::{Listed, Template};
use policy::wire::filter::{Answering, Filter, Request, Unfit};
use policy::wire::head::Method;

use crate::fixture::{RoutePlan, rate, snapshot};
use crate::world::{Call, FORM_OF_M, ME, MONTH, NOW, World, budget, call, plan};

/// Asks an upstream that speaks another dialect.
#[derive(Debug)]
struct Elsewhere;

impl Filter for Elsewhere {
    fn operation(&self, _: Operation) -> Operation {
        Messages
    }

    fn request(&self, _: Operation, _: &mut Request) -> Result<Option<Box<dyn Answering>>, Unfit> {
        Ok(None)
    }
}

/// A call that a route lists.
pub(super) const UPLOAD: Call<'static> = Call::of("POST", "/v1/files", &[ME]);

/// How it is listed.
pub(super) fn file(tokens: Option<u64>, price: Option<PriceId>) -> Listed {
    Listed {
        method: Method::Post,
        path: Template::read("/v1/files").expect("a template"),
        tokens,
        price,
    }
}

/// With a limit of each kind and a budget of money, where an upload costs so much.
fn charging(tokens: u64, nanos: i128) -> World {
    let mut s = snapshot(&[RoutePlan {
        limits: &[(Requests, rate(50, 60)), (TokenKind, rate(1000, 60))],
        unread: &[file(Some(tokens), Some(PriceId(0)))],
        ..plan()
    }]);
    s.prices.add(Price {
        id: "p".into(),
        whose: "".into(),
        currency: "USD".into(),
        request: Pico(nanos * 1000),
        rates: Rates::flat(Pico(0), Pico(0)),
        tiers: Vec::new(),
    });
    budget(&mut s, Unit::Money("USD".into()), 1000, Whose::Workload);
    World::new(s)
}

#[test]
fn a_listed_call_is_charged_what_its_route_says() {
    let mut world = charging(300, 40);
    let asked = world.ask(&UPLOAD);
    assert_eq!((world.left(0), world.left(1)), (49, 700));
    let record = asked.record();
    assert_eq!((record.listed, &record.model_sent), (Some(0), &None));
    let estimate = asked.estimate();
    assert_eq!((estimate.reserved, estimate.at_most), (300, Some(300)));
    assert_eq!(world.held(0, None), 40);
    world.release(asked);
    assert_eq!((world.left(1), world.held(0, None)), (1000, 0));
}

#[test]
fn what_costs_nothing_is_not_refused_for_want_of_tokens_or_money() {
    let mut world = charging(0, 0);
    let levels = &world.of.levels;
    let spent = levels.spent(BudgetId(0)).expect("a budget");
    spent.settle(MONTH.of(0), 0, 5000);
    let bucket = levels.bucket(LimitId(1)).expect("a limit");
    bucket.settle(0, 9000, NOW);
    let body = r#"{"model":"m"}"#;
    for free in [UPLOAD, call(CountTokens, body), call(Models, "")] {
        let asked = world.ask(&free);
        assert_eq!(asked.estimate().reserved, 0);
        assert_eq!(world.held(0, None), 5000);
    }
    assert_eq!(world.left(0), 47, "requests count");
    assert_eq!(world.ask(&call(Chat, body)).code(), "rate_limit_exceeded");
}

#[test]
fn a_form_goes_by_its_model_and_counts_where_tokens_do() {
    let code = |plan: RoutePlan<'_>, change: fn(&mut Snapshot)| {
        let mut s = snapshot(&[plan]);
        change(&mut s);
        World::new(s).ask(&call(Transcriptions, FORM_OF_M)).code()
    };
    let as_it_is = |_: &mut Snapshot| {};
    let requests = RoutePlan {
        limits: &[(Requests, rate(5, 60))],
        ..plan()
    };
    assert_eq!(code(requests.clone(), as_it_is), "");
    let budgeted = |s: &mut Snapshot| budget(s, Unit::Tokens, 1000, Whose::Workload);
    assert_eq!(code(requests, budgeted), "");
    let counted = RoutePlan {
        limits: &[(TokenKind, rate(5, 60))],
        ..plan()
    };
    assert_eq!(code(counted, as_it_is), "");
    let by_model = |models| RoutePlan { models, ..plan() };
    assert_eq!(code(by_model(&["m"]), as_it_is), "");
    assert_eq!(code(by_model(&["n"]), as_it_is), "model_not_found");
}

#[test]
fn a_response_is_never_made_in_the_background() {
    let code = |operation, body| World::routes(&[plan()]).ask(&call(operation, body)).code();
    for body in [
        r#"{"background":true}"#,
        r#"{"background":"x"}"#,
        r#"{"background":1}"#,
    ] {
        assert_eq!(code(Responses, body), "background_not_served", "{body}");
        assert_eq!(code(Chat, body), "", "no such member there");
    }
    for body in [r#"{"deferred":true}"#, r#"{"background":1,"deferred":1}"#] {
        assert_eq!(code(Chat, body), "background_not_served", "{body}");
    }
    assert_eq!(code(Responses, r#"{"deferred":true}"#), "");
    for body in ["{}", r#"{"background":false}"#, r#"{"background":null}"#] {
        assert_eq!(code(Responses, body), "", "{body}");
    }
}

#[test]
fn what_the_upstream_keeps_is_for_a_workload_with_an_account_of_its_own() {
    let mut shared = World::routes(&[RoutePlan {
        workloads: &["ide", "ci"],
        limits: &[(Requests, rate(5, 60))],
        ..plan()
    }]);
    for (member, body) in [
        (
            "previous_response_id",
            r#"{"previous_response_id":"resp_1"}"#,
        ),
        (
            "conversation",
            r#"{"model":"m","conversation":{"id":"conv_1"}}"#,
        ),
        (
            "conversation",
            r#"{"conversation":"conv_1","previous_response_id":null}"#,
        ),
        ("container", r#"{"container":"c_1"}"#),
    ] {
        let operations = match member {
            "container" => [Messages, CountTokens],
            _ => [Responses, InputTokens],
        };
        for operation in operations {
            let refused = shared.ask(&call(operation, body)).refusal().reply();
            assert_eq!(
                (refused.code, refused.param),
                ("account_shared", Some(member))
            );
            let own = World::routes(&[plan()]).ask(&call(operation, body));
            assert_eq!(own.code(), "", "{body}");
        }
    }
    // No backend keeps responses where all are translated to: the translation says so.
    let mut s = snapshot(&[RoutePlan {
        workloads: &["ide", "other"],
        ..plan()
    }]);
    s.backends[0].filters.push(Arc::new(Elsewhere));
    let translated = World::new(s).ask(&call(
        Responses,
        r#"{"model":"m","previous_response_id":"resp_1"}"#,
    ));
    assert_eq!(translated.code(), "", "the account is not asked");
    let of_a_file = r#"{"messages":[{"content":[{"file":{"file_id":"file-1"}}]}]}"#;
    for (operation, body, member) in [
        (Chat, of_a_file, "file_id"),
        (Messages, of_a_file, "file_id"),
        (
            Responses,
            r#"{"input":[{"type":"item_reference","id":"msg_1"}]}"#,
            "input[].id",
        ),
    ] {
        let refused = shared.ask(&call(operation, body)).refusal().reply();
        assert_eq!(
            (refused.code, refused.param),
            ("account_shared", Some(member))
        );
        let own = World::routes(&[plan()]).ask(&call(operation, body));
        assert_eq!(own.code(), "", "{body}");
    }
    assert_eq!(shared.left(0), 5, "nothing is held");
    for (operation, body) in [
        (Chat, r#"{"messages":[{"content":"a file_id"}]}"#),
        (Responses, "{}"),
        (Responses, r#"{"previous_response_id":null}"#),
        (Chat, r#"{"conversation":"x"}"#),
    ] {
        assert_eq!(shared.ask(&call(operation, body)).code(), "", "{body}");
    }
}
