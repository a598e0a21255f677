//! What a batch may ask for, and what it is charged.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use wire::batch::{Api, Calls};
use wire::usage::{Reading, Usage};

use super::{Checker, Late, Used, allowed, caller, charge_late, maker, price_of, unkept_user};
use crate::batch_store::{Batches, Owner};
use crate::caller::Caller;
use crate::clock::Mono;
use crate::fixture::{ONE, RoutePlan, rate, snapshot};
use crate::front::Env;
use crate::id::EndpointId;
use crate::levels::Levels;
use crate::limit::Kind;
use crate::model::ModelPattern;
use crate::operation::Operation;
use crate::price::{Pico, Price, Rates, Tier, WHOLE};
use crate::record::Record;
use crate::refusal::{BatchRefusal, Refusal};
use crate::revision::Revision;
use crate::shard::Shard;
use crate::snapshot::Snapshot;

/// A snapshot in which `a` and `b` share an account; `b` may use `m1` alone.
fn shared() -> Snapshot {
    let mut s = snapshot(&[
        RoutePlan {
            workloads: &["a"],
            models: &["m1", "m2"],
            backends: &[ONE],
            limits: &[(Kind::Tokens, rate(1000, 60))],
            ..RoutePlan::default()
        },
        RoutePlan {
            workloads: &["b"],
            models: &["m1"],
            backends: &[ONE],
            ..RoutePlan::default()
        },
        RoutePlan {
            workloads: &["b"],
            models: &["elsewhere"],
            backends: &[ONE],
            ..RoutePlan::default()
        },
    ]);
    for route in &mut s.routes[..2] {
        route.is_exclusive = false;
        route.batches = Some(Box::new(Batches {
            api: Api::OpenAi,
            unsettled: 1,
            price_share: WHOLE / 2,
            every: Duration::from_secs(60),
        }));
    }
    for workload in &mut s.workloads {
        workload.shares_account = true;
    }
    s
}

fn line(url: &str, body: &str) -> String {
    format!(r#"{{"custom_id":"a","method":"POST","url":"{url}","body":{body}}}"#)
}

fn checked(
    s: &Snapshot,
    workload: &str,
    caller: Option<&Arc<Caller>>,
    file: &str,
) -> Result<Vec<(Operation, String)>, String> {
    let id = s.workload_named(workload.as_bytes()).expect("a workload");
    let (chosen, ..) = allowed(s, id, |of, _| of.api == Api::OpenAi).expect("a rule");
    let checker = Checker {
        s,
        workload: id,
        caller,
        chosen,
    };
    let file = Bytes::copy_from_slice(file.as_bytes());
    let checked = checker.all(Calls::of(&file), &file);
    let checked = checked.map_err(|refusal| match refusal {
        Refusal::Batches(BatchRefusal::Call { line, .. }) => format!("{line}: {refusal}"),
        other => panic!("{other}"),
    })?;
    let calls = checked.calls.iter();
    Ok(calls
        .map(|(operation, model)| (*operation, model.to_string()))
        .collect())
}

#[test]
fn a_batch_asks_for_what_its_callers_calls_may() {
    let s = shared();
    let chat = |model: &str| {
        line(
            "/v1/chat/completions",
            &format!(r#"{{"model":"{model}","messages":[]}}"#),
        )
    };
    let both = format!("{}\n{}\n{}", chat("m1"), chat("m2"), chat("m1"));
    let asked = |models: &[&str]| {
        let of = models
            .iter()
            .map(|model| (Operation::Chat, (*model).to_owned()));
        Ok(of.collect::<Vec<_>>())
    };
    assert_eq!(checked(&s, "a", None, &both), asked(&["m1", "m2"]));
    let refused = checked(&s, "b", None, &both).expect_err("another's model");
    assert!(
        refused.starts_with("2: call 2 of the batch is refused: ") && refused.contains("m2"),
        "{refused}"
    );
    let stream = r#"{"model":"m1","stream":true,"messages":[]}"#;
    let stream = checked(&s, "a", None, &line("/v1/chat/completions", stream));
    assert!(stream.expect_err("no stream").contains("`stream`"));
    // Its own, by a route that takes no batches.
    let refused = checked(&s, "b", None, &chat("elsewhere")).expect_err("another route");
    assert!(refused.starts_with("1: "), "{refused}");
    let held = Arc::new(Caller {
        workload: "a".into(),
        models: Box::new([ModelPattern::Exact("m2".into())]),
        ..Caller::default()
    });
    assert_eq!(checked(&s, "a", Some(&held), &chat("m2")), asked(&["m2"]));
    let refused = checked(&s, "a", Some(&held), &both).expect_err("not its key's");
    assert!(refused.starts_with("1: "), "{refused}");
    for (url, body) in [
        (
            "/v1/chat/completions",
            r#"{"model":"m1","messages":[{"role":"user","content":[{"type":"file","file":{"file_id":"file-1"}}]}]}"#,
        ),
        (
            "/v1/chat/completions",
            r#"{"model":"m1","messages":[{"role":"user","content":[{"type":"file","file":{"fil\u0065_id":"file-1"}}]}]}"#,
        ),
        (
            "/v1/responses",
            r#"{"model":"m1","input":"a","previous_response_id":"resp_1"}"#,
        ),
        (
            "/v1/responses",
            r#"{"model":"m1","input":"a","background":true}"#,
        ),
        (
            "/v1/responses",
            r#"{"model":"m1","input":"a","tools":[{"type":"image_generation","model":"m9"}]}"#,
        ),
    ] {
        let refused = checked(&s, "a", None, &line(url, body)).expect_err(body);
        assert!(refused.starts_with("1: "), "{refused}");
    }
}

fn told(prompt: u64, completion: u64) -> Reading {
    Reading::Valid(Usage {
        prompt: Some(prompt),
        completion: Some(completion),
        ..Usage::default()
    })
}

#[test]
fn a_batch_is_charged_call_by_call_and_owed_to_limits() {
    let mut s = shared();
    let flat = |of: i128| Rates::flat(Pico(of), Pico(of * 10));
    let price = Price {
        id: "p".into(),
        whose: "".into(),
        currency: "USD".into(),
        request: Pico(4),
        rates: flat(2),
        tiers: vec![Tier {
            above: 150,
            rates: flat(200),
        }],
    };
    let half = price.share(WHOLE / 2).expect("whole units");
    assert_eq!(price.share(1), None, "no whole number of units");
    s.prices.insert("m1", None, price);
    let all = crate::id::PriceId(0);
    s.prices.add_share(all, WHOLE / 2, half);
    let revision = Revision::first(s);
    let Revision {
        snapshot: s,
        levels,
    } = &revision;
    let workload = s.workload_named(b"a").expect("a workload");
    let (chosen, batches, _) = allowed(s, workload, |_, _| true).expect("a rule");
    let model: Arc<str> = "m1".into();
    let late = Late {
        id: "batch_1",
        workload,
        caller: None,
        hides_user: false,
        chosen,
        batches,
        endpoint: EndpointId(0),
        model: &model,
        unix_ms: 1_700_000_000_000,
    };
    let mut used = Used::default();
    let price = price_of(&late, s, levels);
    // Two short calls: their sum is above the tier, and neither is.
    for reading in [told(100, 10), told(100, 10), Reading::Absent] {
        used.add(&reading, None, price, s);
    }
    assert_eq!((used.calls, used.untold), (2, 1));
    // The third says nothing of tokens, and was a call all the same.
    assert_eq!(used.cost, Some(Pico(2 * (2 + 100 + 10 * 10) + 2)));
    let left = |levels: &Levels| {
        let who = s.who(workload, None);
        let hold = levels.hold(
            chosen.grant.limits[0],
            &who,
            &crate::subject::Subjects::default(),
        );
        hold.expect("a limit").level(Mono(1)).remaining
    };
    let mut shard = Shard::new(s, None, 1);
    let mut env = Env {
        snapshot: s,
        levels,
        shard: &mut shard,
        now: Mono(1),
    };
    assert_eq!(left(levels), 1000);
    let record = charge_late(&late, &used, true, &mut env);
    assert_eq!(left(levels), 1000, "it was charged before");
    let again = charge_late(&late, &used, false, &mut env);
    assert_eq!(record, again);
    assert_eq!(left(levels), 780);
    let charge = record.charge.expect("a charge");
    assert_eq!(
        (charge.cost, record.operation),
        (used.cost, Some(Operation::BatchUsage))
    );
    assert_eq!(record.tokens.sum(), 220);
    for _ in 0..10 {
        let _owed = charge_late(&late, &used, false, &mut env);
    }
    assert_eq!(left(levels), 0);
}

#[test]
fn a_user_that_no_disk_may_have_is_charged_all_the_same() {
    let s = shared();
    let owner = Owner {
        workload: "a".into(),
        issuer: None,
    };
    let record = |user: &str, hides_user| Record {
        caller: Some(Arc::new(Caller {
            user: Some(user.into()),
            ..Caller::default()
        })),
        hides_user,
        ..Record::default()
    };
    let long = "a".repeat(300);
    for (user, hides_user) in [("eve", true), (&*long, false), ("e\u{7}ve", false)] {
        let record = record(user, hides_user);
        let maker = maker(&record);
        assert_eq!(maker.user, None, "it would be written down");
        let charged = caller(&maker, &owner, unkept_user(&record), &s).expect("somebody");
        assert_eq!(charged.user.as_deref(), Some(user));
    }
    let plain = record("eve", false);
    assert_eq!(unkept_user(&plain), None);
    assert_eq!(maker(&plain).user.as_deref(), Some("eve"));
    assert_eq!(caller(&maker(&Record::default()), &owner, None, &s), None);
}

#[test]
fn a_call_of_a_batch_for_images_costs_each_that_came() {
    let mut s = shared();
    let price = Price {
        id: "p".into(),
        whose: "".into(),
        currency: "USD".into(),
        request: Pico(5),
        rates: Rates::flat(Pico(0), Pico(0)),
        tiers: Vec::new(),
    };
    let price = Some(s.prices.add(price));
    let mut used = Used::default();
    used.add(&Reading::Absent, Some(3), price, &s);
    assert_eq!(used.cost, Some(Pico(15)));
    used.add(&told(5, 7), Some(2), price, &s);
    assert_eq!(used.cost, Some(Pico(25)));
    used.add(&Reading::Absent, None, price, &s);
    assert_eq!(used.cost, Some(Pico(30)));
    assert_eq!(used.tokens.units, 5);
}

#[test]
fn a_row_of_a_batch_has_its_searches_and_the_price_that_its_cost_goes_by() {
    let mut s = shared();
    let price = |id: &str, request| Price {
        id: id.into(),
        whose: "".into(),
        currency: "USD".into(),
        request: Pico(request),
        rates: Rates::flat(Pico(0), Pico(0)),
        tiers: Vec::new(),
    };
    let first = s.prices.add(price("first", 5));
    s.prices.insert("m1", None, price("by now", 1));
    let searched = Reading::Valid(Usage {
        searches: 2,
        ..Usage::default()
    });
    let mut used = Used::default();
    for _ in 0..2 {
        used.add(&searched, None, Some(first), &s);
    }
    let revision = Revision::first(s);
    let (s, levels) = (&revision.snapshot, &revision.levels);
    let workload = s.workload_named(b"a").expect("a workload");
    let (chosen, batches, _) = allowed(s, workload, |_, _| true).expect("a rule");
    let model: Arc<str> = "m1".into();
    let late = Late {
        id: "batch_1",
        workload,
        caller: None,
        hides_user: false,
        chosen,
        batches,
        endpoint: EndpointId(0),
        model: &model,
        unix_ms: 1_700_000_000_000,
    };
    let mut shard = Shard::new(s, None, 1);
    let mut env = Env {
        snapshot: s,
        levels,
        shard: &mut shard,
        now: Mono(1),
    };
    let record = charge_late(&late, &used, false, &mut env);
    let charge = record.charge.expect("a charge");
    assert_eq!((charge.price, charge.cost), (first, Some(Pico(20))));
    assert_eq!(record.tokens.units, 4);
}

/// A result takes its time, and the configuration may be another one by its end.
#[test]
fn what_was_summed_is_charged_by_a_newer_configuration_unless_its_price_is_another() {
    let revision = |unrelated: i128, of_m1: Option<i128>| {
        let mut s = shared();
        let price = |request| Price {
            id: format!("of {request}").into(),
            whose: "".into(),
            currency: "USD".into(),
            request: Pico(request),
            rates: Rates::flat(Pico(0), Pico(0)),
            tiers: Vec::new(),
        };
        // Each price has another place than before.
        for nth in 0..unrelated {
            s.prices
                .insert(&format!("other {nth}"), None, price(100 + nth));
        }
        if let Some(of) = of_m1 {
            s.prices.insert("m1", None, price(of));
        }
        Revision::first(s)
    };
    let late_in = |of: &Revision, then: &mut dyn FnMut(&Late<'_>)| {
        let s = &of.snapshot;
        let workload = s.workload_named(b"a").expect("a workload");
        let (chosen, batches, _) = allowed(s, workload, |_, _| true).expect("a rule");
        then(&Late {
            id: "batch_1",
            workload,
            caller: None,
            hides_user: false,
            chosen,
            batches,
            endpoint: EndpointId(0),
            model: &"m1".into(),
            unix_ms: 1_700_000_000_000,
        });
    };
    for (was, is, stays) in [
        (Some(5), Some(5), true),
        (None, None, true),
        (Some(5), Some(6), false),
        (None, Some(5), false),
        (Some(5), None, false),
    ] {
        let (from, to) = (revision(0, was), revision(3, is));
        let mut used = Used::default();
        late_in(&from, &mut |late| {
            let price = price_of(late, &from.snapshot, &from.levels);
            used.add(&told(10, 1), None, price, &from.snapshot);
        });
        late_in(&to, &mut |late| {
            let carried = used.carried(&from.snapshot, late, &to);
            assert_eq!(carried.is_some(), stays, "{was:?} {is:?}");
            let Some(carried) = carried else { return };
            let mut shard = Shard::new(&to.snapshot, None, 1);
            let mut env = Env {
                snapshot: &to.snapshot,
                levels: &to.levels,
                shard: &mut shard,
                now: Mono(1),
            };
            let record = charge_late(late, &carried, false, &mut env);
            let by = record.charge.map(|charge| {
                to.snapshot
                    .prices
                    .get(charge.price)
                    .expect("a price")
                    .request
            });
            assert_eq!(by, is.map(Pico));
            assert_eq!(record.tokens.sum(), 11);
        });
    }
}
