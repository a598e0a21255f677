//! Calls of plain HTTP: what they take, when they are tried again, and what of their answers is passed on.
//!
//! Not here: which route takes one, and which fields pass (unit tests of `policy::plain`).

use std::sync::Arc;

use policy::budget::Unit;
use policy::caller::Caller;
use policy::credential::UpstreamAuth;
use policy::exchange::Verdict;
use policy::limit::Kind::{Requests, Tokens};
use policy::model::ModelPattern;
use policy::plain::{PathPattern, Rule};
use policy::price::{Pico, Price, Rates};
use policy::record::Count;
use policy::secret::Secret;
use policy::snapshot::Snapshot;
use policy::subject::Whose;
use policy::unread::Listed;
use policy::wire::head::ResponseHead;
use policy::wire::meter::Meter;

use crate::fixture::{BackendPlan, RoutePlan, rate, snapshot};
use crate::world::{Asked, Call, ME, World, budget, knowing_callers, plan};

const GET: Call<'static> = Call::of("GET", "/echo", &[ME]);
const POST: Call<'static> = Call::of("POST", "/echo", &[ME]);

/// Of models and of plain HTTP, the latter to two addresses, with such a change.
fn world(change: impl FnOnce(&mut Snapshot)) -> World {
    let all = [Rule {
        route: policy::id::RouteId(0),
        host: None,
        path: PathPattern::read("/*").expect("a pattern"),
        methods: Vec::new(),
        headers: Vec::new(),
        query: Vec::new(),
        listeners: Vec::new(),
    }];
    let web = BackendPlan {
        name: "web",
        weights: &[1, 1],
        models: &[],
    };
    let mut s = snapshot(&[
        RoutePlan {
            limits: &[(Tokens, rate(10, 60))],
            ..plan()
        },
        RoutePlan {
            plain: &all,
            backends: &[web],
            limits: &[(Requests, rate(2, 60))],
            ..plan()
        },
    ]);
    change(&mut s);
    World::new(s)
}

fn head(status: u16, fields: &[(&str, &str)]) -> ResponseHead {
    let mut head = ResponseHead {
        status,
        ..ResponseHead::default()
    };
    for (name, value) in fields {
        let pushed = head.fields.push(name.as_bytes(), value.as_bytes());
        pushed.expect("a field");
    }
    head
}

/// A call whose first attempt is answered so.
fn answered(world: &mut World, status: u16, fields: &[(&str, &str)]) -> Asked {
    let mut asked = world.ask(&GET);
    let _plan = world.attempt(&mut asked);
    asked.exchange.sent(true);
    let head = head(status, fields);
    world.tell(&mut asked, |exchange, env| {
        exchange.response_head(&head, env)
    });
    asked
}

#[test]
fn a_plain_call_takes_requests_and_neither_tokens_nor_money() {
    let mut world = world(|s| {
        budget(s, Unit::Money("USD".into()), 1, Whose::Workload);
        budget(s, Unit::Tokens, 1, Whose::Workload);
    });
    let asked = world.ask(&GET);
    assert_eq!((world.left(0), world.left(1)), (10, 1));
    assert_eq!((asked.estimate().reserved, world.held(0, None)), (0, 0));
    let kinds: Vec<_> = asked
        .limits(&world)
        .iter()
        .map(|limit| limit.kind)
        .collect();
    assert_eq!(kinds, [Requests]);
    let mut asked = answered(&mut world, 200, &[("content-type", "text/html")]);
    let mut meter = Meter::new(asked.relay().form);
    meter.observe(b"{\"usage\":{\"prompt_tokens\":5}}");
    world.end(&mut asked, &mut meter, false);
    let record = asked.record();
    assert_eq!(
        (record.tokens.prompt, record.tokens.completion),
        (Count::Unknown, Count::Unknown)
    );
    assert_eq!((&record.model_asked, &record.model_sent), (&None, &None));
    assert_eq!(world.ask(&GET).code(), "rate_limit_exceeded");
    assert_eq!(world.left(0), 10, "models have limits of their own");
}

#[test]
fn what_each_call_is_charged_counts_in_budgets_of_money_where_it_is_answered_well_or_becomes_a_websocket()
 {
    let mut world = world(|s| {
        budget(s, Unit::Money("USD".into()), 100, Whose::Workload);
        budget(s, Unit::Tokens, 1, Whose::Workload);
        let price = s.prices.add(Price {
            id: "p".into(),
            whose: "".into(),
            currency: "USD".into(),
            request: Pico(60_000),
            rates: Rates::flat(Pico(0), Pico(0)),
            tiers: Vec::new(),
        });
        s.routes[1].unread = vec![Listed::each(price)];
    });
    for (status, held) in [(404, 0), (101, 60)] {
        let mut asked = answered(&mut world, status, &[("upgrade", "websocket")]);
        assert_eq!(world.held(0, None), 60);
        let form = match &asked.verdict {
            Verdict::Relay(relay) | Verdict::Tunnel(relay) => relay.form,
            other => panic!("{other:?}"),
        };
        world.end(&mut asked, &mut Meter::new(form), false);
        assert_eq!(world.held(0, None), held, "{status}");
    }
    world.now = policy::clock::Mono(world.now.0 + 1);
    world.now = policy::clock::Mono(world.now.0 + 60_000_000_000);
    assert_eq!(world.ask(&GET).code(), "insufficient_quota");
}

#[test]
fn only_what_is_safe_is_tried_again_once_it_was_sent() {
    for (call, is_sent, is_retried) in [
        (GET, true, true),
        (Call::of("HEAD", "/echo", &[ME]), true, true),
        (POST, true, false),
        (POST, false, true),
        (Call::of("DELETE", "/echo", &[ME]), true, false),
        (Call::of("PUT", "/echo", &[ME]), true, false),
    ] {
        let mut world = world(|_| {});
        let mut asked = world.ask(&call);
        let _plan = world.attempt(&mut asked);
        if is_sent {
            asked.exchange.sent(true);
        }
        let failure = policy::attempt::Failure::Reset;
        world.tell(&mut asked, |exchange, env| {
            exchange.attempt_failed(failure.into(), env)
        });
        let retried = matches!(asked.verdict, Verdict::Attempt(_));
        assert_eq!(retried, is_retried, "{:?}", asked.verdict);
    }
}

#[test]
fn a_wait_that_a_service_asks_of_one_client_is_passed_on_and_keeps_nobody_else() {
    let mut world = world(|s| s.routes[1].retries.attempts = 1);
    for _ in 0..2 {
        let asked = answered(&mut world, 429, &[("retry-after", "60")]);
        assert!(
            matches!(asked.verdict, Verdict::Relay(_)),
            "{:?}",
            asked.verdict
        );
        assert_eq!(asked.record().status, 429);
    }
}

#[test]
fn every_answer_passes_but_the_word_that_our_own_credential_is_bad() {
    let ours = |s: &mut Snapshot| {
        for endpoint in &mut s.endpoints {
            endpoint.auth = UpstreamAuth::Header {
                name: "authorization".to_owned(),
                value: Secret::new(b"Bearer ours".to_vec()),
            };
        }
    };
    for status in [200, 204, 302, 304, 401, 403, 404, 418] {
        let asked = answered(&mut world(|_| {}), status, &[]);
        assert!(
            matches!(asked.verdict, Verdict::Relay(_)),
            "{status}: {:?}",
            asked.verdict
        );
    }
    assert_eq!(
        answered(&mut world(ours), 401, &[]).code(),
        "upstream_credential_refused"
    );
    assert!(matches!(
        answered(&mut world(ours), 403, &[]).verdict,
        Verdict::Relay(_)
    ));
}

#[test]
fn a_switch_to_websocket_is_a_tunnel_and_to_anything_else_none() {
    let upgraded = answered(&mut world(|_| {}), 101, &[("upgrade", "WebSocket")]);
    assert!(
        matches!(upgraded.verdict, Verdict::Tunnel(_)),
        "{:?}",
        upgraded.verdict
    );
    let odd = answered(&mut world(|_| {}), 101, &[("upgrade", "h2c")]);
    assert_eq!(odd.code(), "upstream_bad_response");
}

#[test]
fn a_key_that_is_held_to_models_makes_no_plain_call() {
    let held = |models: Box<[ModelPattern]>| {
        Arc::new(Caller {
            workload: "ide".into(),
            models,
            ..Caller::default()
        })
    };
    let mut world = world(knowing_callers);
    let to_models = held(Box::new([ModelPattern::Exact("m".into())]));
    let refused = world.ask(&Call::of("GET", "/echo", &[]).by(&to_models));
    assert_eq!(refused.code(), "operation_not_allowed");
    let free = held(Box::default());
    assert_eq!(
        world.ask(&Call::of("GET", "/echo", &[]).by(&free)).code(),
        ""
    );
}
