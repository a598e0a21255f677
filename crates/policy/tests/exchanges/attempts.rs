//! Which answers are tried elsewhere, and what a record says of the charge.
//!
//! Not here: many of them over time (`sim`), what is reserved (`model`).

use std::sync::Arc;
use std::time::Duration;

use policy::attempt::Failure;
use policy::caller::{Caller, Proven};
use policy::disconnect::{OnDisconnect, ReadBounds};
use policy::exchange::{Exchange, Lost, Verdict};
use policy::id::{BackendId, EndpointId, PriceId, WorkloadId};
use policy::limit::Kind::Tokens;
use policy::operation::Operation::{Chat, Completions, Models};
use policy::price::{Charge, Pico, Price, Rates};
use policy::record::{Names, Outcome, Record};
use policy::retry::{Retry, Statuses};
use policy::revision::Revision;
use policy::snapshot::Snapshot;
use policy::wire::meter::{Form, Meter};

use crate::fixture::{BackendPlan, ONE, RoutePlan, rate, snapshot};
use crate::world::{Asked, Call, NOW, World, call, knowing_callers, plan, usage};

const BODY: &str = r#"{"model":"m","max_tokens":10}"#;
const JSON: &str = "application/json";

/// One route to two backends, with such a change.
fn two(change: impl FnOnce(&mut Snapshot)) -> Arc<Revision> {
    let far = BackendPlan { name: "far", ..ONE };
    let mut s = snapshot(&[RoutePlan {
        backends: &[ONE, far],
        ..plan()
    }]);
    change(&mut s);
    Arc::new(Revision::first(s))
}

/// A price of so much for any token, and of 1 for a call.
fn price(nanos: i128) -> Price {
    Price {
        id: format!("p{nanos}").into(),
        whose: "".into(),
        currency: "USD".into(),
        request: Pico(1),
        rates: Rates::flat(Pico(1000 * nanos), Pico(1000 * nanos)),
        tiers: Vec::new(),
    }
}

/// The record of a call that is answered with these statuses, one try after the other, and for each whether another one
/// follows.
fn answered(statuses: &[u16], of: &Arc<Revision>) -> (Record, Vec<Retry>) {
    let mut world = World::of(Arc::clone(of));
    let mut asked = world.ask(&call(Completions, BODY));
    world.tell(&mut asked, Exchange::entered);
    let mut retries = Vec::new();
    for status in statuses {
        let verdict = &asked.verdict;
        assert!(
            matches!(verdict, Verdict::Attempt(_)),
            "{status}: {verdict:?}"
        );
        asked.exchange.sent(true);
        world.response(&mut asked, *status, JSON);
        let (attempt, _) = asked.exchange.attempt_record().expect("an attempt");
        retries.push(attempt.retry);
    }
    let mut meter = Meter::new(asked.relay().form);
    if asked.record().status < 400 {
        meter.observe(usage(30, 7).as_bytes());
    }
    world.end(&mut asked, &mut meter, false);
    (asked.record().clone(), retries)
}

#[test]
fn a_status_is_tried_elsewhere_where_its_route_says_so_and_forwarded_where_not() {
    let other = Statuses::NONE.with(404).with(429);
    for (retried, statuses) in [
        (None, &[503, 200][..]),
        (None, &[400]),
        (None, &[404, 200]),
        (Some(other), &[503]),
        (Some(other), &[404, 200]),
        (Some(other), &[429, 503]),
    ] {
        let of = two(|s| {
            let retries = &mut s.routes[0].retries;
            retries.statuses = retried.unwrap_or(retries.statuses);
        });
        let record = answered(statuses, &of).0;
        assert_eq!(Some(record.status), statuses.last().copied());
        assert_eq!(record.attempts as usize, statuses.len(), "{statuses:?}");
    }
}

#[test]
fn a_stream_with_any_good_status_is_read_for_its_usage() {
    let mut world = World::of(two(|_| {}));
    for (status, is_read) in [(200, true), (201, true), (206, true), (400, false)] {
        let mut asked = begun(&mut world, true);
        world.response(&mut asked, status, "text/event-stream");
        let reads = matches!(asked.relay().form, Form::Events { .. });
        assert_eq!(reads, is_read, "{status}");
    }
}

/// A call that has begun its first attempt, whose request has left so far.
fn begun(world: &mut World, is_whole: bool) -> Asked {
    let mut asked = world.ask(&call(Completions, BODY));
    let _plan = world.attempt(&mut asked);
    asked.exchange.sent(is_whole);
    asked
}

#[test]
fn an_unusable_response_to_a_request_that_did_not_leave_whole_is_not_charged() {
    let mut world = World::routes(&[plan()]);
    for (is_whole, charged) in [(false, false), (true, true)] {
        let mut asked = begun(&mut world, is_whole);
        world.response(&mut asked, 200, "text/plain");
        assert!(!asked.code().is_empty());
        world.end(&mut asked, &mut Meter::default(), false);
        let record = asked.record();
        assert_eq!(record.tokens.sum() > 0, charged, "{record:?}");
    }
}

#[test]
fn no_request_is_sent_again_for_a_client_that_has_left() {
    let bounds = ReadBounds {
        tokens: 100,
        time: Duration::from_secs(5),
    };
    let reads_on = |s: &mut Snapshot| s.routes[0].abandon = OnDisconnect::ReadToEnd(bounds);
    let mut world = World::of(two(reads_on));
    let refused = Lost {
        was_kept: true,
        ..Lost::UNTAKEN
    };
    for lost in [refused, Failure::Reset.into()] {
        let mut asked = begun(&mut world, true);
        world.tell(&mut asked, |exchange, env| {
            exchange.disconnected(None, 0, env)
        });
        assert!(matches!(asked.verdict, Verdict::ReadToEnd { .. }));
        world.tell(&mut asked, |exchange, env| {
            exchange.attempt_failed(lost, env)
        });
        assert!(matches!(asked.verdict, Verdict::Abandon));
    }
}

#[test]
fn an_attempt_says_whether_the_retry_budget_refused_another_one() {
    let retries = |statuses: &[u16], of: &Arc<Revision>| answered(statuses, of).1;
    let of = two(|_| {});
    assert_eq!(retries(&[503, 200], &of), [Retry::Granted, Retry::No]);
    assert_eq!(retries(&[503, 503], &of), [Retry::Granted, Retry::No]);
    let without = |s: &mut Snapshot| {
        s.routes[0].retries.share_millionths = 0;
        s.routes[0].retries.burst = 0;
    };
    assert_eq!(retries(&[503], &two(without)), [Retry::Refused]);
    let unasked = retries(&[400], &two(without));
    assert_eq!(unasked, [Retry::No], "nothing calls for one");
    let only = two(|s| s.routes[0].retries.attempts = 1);
    assert_eq!(
        retries(&[503], &only),
        [Retry::No],
        "there is none to refuse"
    );
}

#[test]
fn a_record_says_what_its_exchange_is_charged() {
    let charge = |statuses: &[u16], of: &Arc<Revision>| answered(statuses, of).0.charge;
    assert_eq!(charge(&[200], &two(|_| {})), None, "nobody knows a price");
    let of = two(|s| s.prices.insert("other", None, price(1)));
    assert_eq!(charge(&[200], &of), None, "nobody knows its price");
    let of = two(|s| {
        s.prices.insert("other", None, price(1));
        s.prices.insert("m", None, price(2));
        let far = s.routes[0].backends[1];
        s.prices.insert("m", Some(far), price(3));
    });
    for (statuses, nth, nanos, backend) in [(&[200][..], 1, 2, "one"), (&[503, 200], 2, 3, "far")] {
        let record = answered(statuses, &of).0;
        let cost = Some(Pico(1 + 37 * 1000 * nanos));
        let price = PriceId(nth);
        assert_eq!(record.charge, Some(Charge { price, cost }));
        let names = Names::of(&of.snapshot, &record);
        assert_eq!(names.backend.map(|name| &**name), Some(backend));
        let id = names.price.map(|price| &*price.id);
        assert_eq!(id, Some(&*format!("p{nanos}")));
    }
    let refused = charge(&[400], &of).expect("a price");
    assert_eq!(refused.cost, None, "no tokens are known");
}

#[test]
fn what_a_record_does_not_know_has_no_name() {
    let of = two(|_| {});
    let names = Names::of(&of.snapshot, &Record::default());
    assert!(names.workload.is_none() && names.route.is_none() && names.backend.is_none());
    assert!(names.endpoint.is_none() && names.group.is_none() && names.price.is_none());
    let strange = Record {
        workload: Some(WorkloadId(9)),
        endpoint: Some(EndpointId(9)),
        ..Record::default()
    };
    let names = Names::of(&of.snapshot, &strange);
    assert!(names.workload.is_none() && names.endpoint.is_none());
}

#[test]
fn a_response_that_stalls_behind_its_head_is_one_that_did_not_come_in_time() {
    let limits = &[(Tokens, rate(1000, 60))];
    let far = BackendPlan { name: "far", ..ONE };
    let backends = &[ONE, far];
    let mut world = World::routes(&[RoutePlan {
        backends,
        limits,
        ..plan()
    }]);
    let mut asked = begun(&mut world, true);
    world.tell(&mut asked, Exchange::stalled);
    let (first, _) = asked.exchange.attempt_record().expect("an attempt");
    assert_eq!(first.result, Err(Failure::FirstByteTimeout));
    assert_eq!(first.retry, Retry::Granted);
    assert!(matches!(asked.verdict, Verdict::Attempt(_)), "elsewhere");
    asked.exchange.sent(true);
    world.tell(&mut asked, Exchange::stalled);
    assert_eq!(asked.code(), "upstream_timeout");
    let (second, _) = asked.exchange.attempt_record().expect("an attempt");
    assert_ne!(first.endpoint, second.endpoint);
    world.end(&mut asked, &mut Meter::default(), false);
    let record = asked.record();
    let charged = record.tokens.sum();
    assert!(charged > 0 && record.unconfirmed.attempts == 1);
    assert_eq!(world.left(0), 1000 - charged, "what is said is charged");
}

/// The record of a call that may have run at the first backend, and got this status at the second.
fn after_one_that_may_have_run(status: u16, of: Arc<Revision>) -> Record {
    let mut world = World::of(of);
    let mut asked = begun(&mut world, true);
    world.tell(&mut asked, |exchange, env| {
        exchange.attempt_failed(Failure::FirstByteTimeout.into(), env)
    });
    let (first, _) = asked.exchange.attempt_record().expect("an attempt");
    assert_eq!(first.retry, Retry::Granted);
    asked.exchange.sent(true);
    world.response(&mut asked, status, JSON);
    let mut meter = Meter::new(asked.relay().form);
    if status < 400 {
        meter.observe(usage(30, 7).as_bytes());
    }
    world.end(&mut asked, &mut meter, false);
    asked.record().clone()
}

#[test]
fn what_may_have_run_elsewhere_costs_what_it_costs_there() {
    let priced = |far: Price| {
        two(move |s| {
            s.prices.insert("m", None, price(100));
            let backend = s.routes[0].backends[1];
            s.prices.insert("m", Some(backend), far);
        })
    };
    let at = |tokens: u64, nanos: i128| 1 + i128::from(tokens) * 1000 * nanos;

    let record = after_one_that_may_have_run(200, priced(price(2)));
    let unconfirmed = record.unconfirmed.tokens();
    assert!(unconfirmed > 0);
    assert_eq!(record.tokens.sum(), 37 + unconfirmed);
    let cost = Pico(at(37, 2) + at(unconfirmed, 100));
    let charge = record.charge.expect("a price");
    assert_eq!((charge.price, charge.cost), (PriceId(1), Some(cost)));

    // Where the last one did not run, all that is charged is the other's.
    let record = after_one_that_may_have_run(400, priced(price(2)));
    let charge = record.charge.expect("a price");
    let cost = Pico(at(record.unconfirmed.tokens(), 100));
    assert_eq!((charge.price, charge.cost), (PriceId(0), Some(cost)));

    // Money of two currencies has no sum.
    let euros = Price {
        currency: "EUR".into(),
        ..price(2)
    };
    let record = after_one_that_may_have_run(200, priced(euros));
    let cost = Pico(at(record.tokens.sum(), 2));
    let charge = record.charge.expect("a price");
    assert_eq!((charge.price, charge.cost), (PriceId(1), Some(cost)));
}

#[test]
fn a_call_larger_than_its_providers_quota_goes_elsewhere_and_holds_up_nobody() {
    let of = two(|_| {});
    let second = of.snapshot.routes[0].backends[1];
    let (limit, remaining) = ("x-ratelimit-limit-tokens", "x-ratelimit-remaining-tokens");
    for (fields, then) in [
        (&[(limit, "5"), (remaining, "5")][..], false),
        (&[(limit, "30000"), (remaining, "29000")], true),
        (&[(limit, "5"), (remaining, "0")], true),
        (&[("retry-after", "60")], true),
        (&[("retry-after", "60"), (limit, "5")], false),
    ] {
        let mut world = World::of(Arc::clone(&of));
        let mut asked = begun(&mut world, true);
        world.response_with(&mut asked, 429, JSON, fields);
        assert!(matches!(asked.verdict, Verdict::Attempt(_)), "{fields:?}");
        assert_eq!(asked.record().backend, Some(second), "elsewhere");
        let next = begun(&mut world, true);
        let is_elsewhere = next.record().backend == Some(second);
        assert_eq!(is_elsewhere, then, "{fields:?}");
    }
    // A prompt is counted otherwise there, of pictures above all; what a call without a cap takes is a guess.
    let picture = format!(
        r#"{{"model":"m","max_tokens":10,"prompt":"{}"}}"#,
        "A".repeat(4000)
    );
    for (body, then) in [
        (&*picture, Some(second)),
        (r#"{"model":"m"}"#, Some(second)),
    ] {
        let mut world = World::of(Arc::clone(&of));
        let mut asked = world.ask(&call(Completions, body));
        let _plan = world.attempt(&mut asked);
        let fields = &[("retry-after", "60"), (limit, "15")];
        world.response_with(&mut asked, 429, JSON, fields);
        assert_eq!(goes_to(&mut world, &call(Completions, BODY)), then);
    }
}

/// A call whose first attempt is answered so: how that attempt ended, and whether another one is under way.
fn first_answer(
    world: &mut World,
    (status, kind): (u16, &str),
) -> (Asked, Result<u16, Failure>, bool) {
    let mut asked = begun(world, true);
    world.response(&mut asked, status, kind);
    let (attempt, _) = asked.exchange.attempt_record().expect("an attempt");
    let goes_on = matches!(asked.verdict, Verdict::Attempt(_));
    (asked, attempt.result, goes_on)
}

#[test]
fn what_is_no_answer_of_the_api_is_a_failed_attempt_and_the_next_backend_has_the_call() {
    let page = "text/html; charset=utf-8";
    for (status, kind, may_have_run) in [
        (200, page, false),
        (200, "", true),
        (200, "text/plain", true),
        (204, "", false),
        (302, page, false),
        (307, JSON, false),
        (304, "", false),
    ] {
        let mut world = World::of(two(|_| {}));
        let (mut asked, result, goes_on) = first_answer(&mut world, (status, kind));
        let case = format!("{status} {kind}");
        assert_eq!(result, Err(Failure::BadResponse), "{case}");
        assert!(goes_on, "{case}");
        let unconfirmed = asked.record().unconfirmed.attempts;
        assert_eq!(unconfirmed, u32::from(may_have_run), "{case}");
        // For a moment others come first for such calls.
        let second = asked.record().backend;
        let next = begun(&mut world, true);
        assert_eq!(next.record().backend, second, "{case}");
        // The last one's is the client's to hear of, and costs what may have run.
        asked.exchange.sent(true);
        world.response(&mut asked, status, kind);
        assert_eq!(
            (asked.code(), asked.record().status),
            ("upstream_bad_response", 502)
        );
        world.end(&mut asked, &mut Meter::default(), false);
        assert_eq!(asked.record().tokens.sum() > 0, may_have_run, "{case}");
    }
}

#[test]
fn a_model_or_a_credential_that_is_missing_at_one_backend_is_looked_for_at_the_next() {
    for status in [401, 402, 403, 404] {
        let mut world = World::of(two(|_| {}));
        let (mut asked, result, goes_on) = first_answer(&mut world, (status, JSON));
        assert_eq!((result, goes_on), (Ok(status), true));
        let second = asked.record().backend;
        let next = begun(&mut world, true);
        assert_eq!(next.record().backend, second, "{status}");
        asked.exchange.sent(true);
        world.response(&mut asked, status, JSON);
        // The last one's is the client's, but for what the gate has to mend.
        match status {
            401 | 403 => assert_eq!(asked.code(), "upstream_credential_refused"),
            _ => assert!(matches!(asked.verdict, Verdict::Relay(_)), "{status}"),
        }
    }
    // Whoever asks for models that are nowhere takes no failover from others.
    let mut world = World::of(two(|s| {
        s.routes[0].retries.burst = 1;
        s.routes[0].retries.share_millionths = 0;
    }));
    for _ in 0..3 {
        let (mut asked, _, goes_on) = first_answer(&mut world, (404, JSON));
        assert!(goes_on);
        asked.exchange.sent(true);
        world.response(&mut asked, 404, JSON);
        world.now = world.now.after(Duration::from_secs(20));
    }
    assert!(first_answer(&mut world, (503, JSON)).2);
    // A list of statuses is the whole list.
    let none = |s: &mut Snapshot| s.routes[0].retries.after_unserved = false;
    let mut world = World::of(two(none));
    let (_, result, goes_on) = first_answer(&mut world, (404, JSON));
    assert_eq!((result, goes_on), (Ok(404), false));
}

#[test]
fn a_good_status_before_nothing_or_an_error_alone_is_charged_nothing_and_failed() {
    let error = r#"{"error":{"message":"no credits","code":402}}"#;
    for (body, code) in [
        ("", "upstream_no_answer"),
        (error, "upstream_no_answer"),
        (r#"{"choices":[]}"#, ""),
    ] {
        let limits = &[(Tokens, rate(1000, 60))];
        let mut world = World::routes(&[RoutePlan { limits, ..plan() }]);
        let (mut asked, ..) = first_answer(&mut world, (200, JSON));
        let mut meter = Meter::new(asked.relay().form);
        for piece in body.as_bytes().chunks(3) {
            meter.observe(piece);
        }
        asked.exchange.forwarded(body.len() as u64);
        world.end(&mut asked, &mut meter, false);
        let record = asked.record();
        let is_answer = code.is_empty();
        assert_eq!(
            (record.code, record.outcome == Outcome::Completed),
            (code, is_answer)
        );
        assert_eq!(record.tokens.sum() > 0, is_answer, "{body}");
        assert_eq!(world.left(0) < 1000, is_answer, "{body}");
    }
}

/// The backend that such a call is sent to first.
fn goes_to(world: &mut World, call: &Call<'_>) -> Option<BackendId> {
    let mut asked = world.ask(call);
    let _plan = world.attempt(&mut asked);
    asked.record().backend
}

#[test]
fn a_rest_is_one_of_the_operation_that_was_not_served() {
    for (status, kind) in [(404, JSON), (403, JSON), (302, ""), (200, "text/html")] {
        let mut world = World::of(two(|_| {}));
        let first = world.of.snapshot.routes[0].backends[0];
        let (asked, ..) = first_answer(&mut world, (status, kind));
        let second = asked.record().backend;
        assert_ne!(second, Some(first), "{status}");
        let same = goes_to(&mut world, &call(Completions, BODY));
        assert_eq!(same, second, "{status}");
        let chat = goes_to(&mut world, &call(Chat, BODY));
        assert_eq!(chat, Some(first), "{status}: chat is served there");
    }
    // A quota is the model's, whatever it is asked for by.
    let mut world = World::of(two(|_| {}));
    let second = first_answer(&mut world, (429, JSON)).0.record().backend;
    assert_eq!(goes_to(&mut world, &call(Chat, BODY)), second);
}

#[test]
fn nothing_rests_where_its_route_would_not_have_gone_on() {
    let listed = |s: &mut Snapshot| {
        s.routes[0].retries.statuses = Statuses::NONE.with(503);
        s.routes[0].retries.after_unserved = false;
    };
    let once = |s: &mut Snapshot| s.routes[0].retries.attempts = 1;
    for (of, statuses) in [
        (two(listed), &[404, 402, 429][..]),
        (two(once), &[404, 429, 200]),
    ] {
        for status in statuses {
            let mut world = World::of(Arc::clone(&of));
            let kind = if *status == 200 { "text/html" } else { JSON };
            let (asked, _, goes_on) = first_answer(&mut world, (*status, kind));
            assert!(!goes_on, "{status}");
            let next = goes_to(&mut world, &call(Completions, BODY));
            assert_eq!(next, asked.record().backend, "{status}");
        }
    }
}

#[test]
fn a_status_with_a_time_holds_for_its_caller_until_another_one_gets_it() {
    let body_of = |model: &str| BODY.replace("\"m\"", &format!("\"{model}\""));
    let (m, n) = (body_of("m"), body_of("n"));
    let user = |name: &str| {
        Arc::new(Caller {
            workload: "ide".into(),
            by: Proven::Token,
            user: Some(name.into()),
            ..Caller::default()
        })
    };
    for (status, is_of_the_model) in [(500, false), (502, false), (503, true), (529, true)] {
        let (ann, bob, cy) = (user("ann"), user("bob"), user("cy"));
        let of = two(knowing_callers);
        let [first, second] = of.snapshot.routes[0].backends[..] else {
            panic!("two backends")
        };
        let mut world = World::of(of);
        let refused = |world: &mut World, by: &Arc<Caller>| {
            let mut asked = world.ask(&call(Completions, &m).by(by));
            let _plan = world.attempt(&mut asked);
            assert_eq!(asked.record().backend, Some(first), "{status}");
            asked.exchange.sent(true);
            world.response_with(&mut asked, status, JSON, &[("retry-after", "60")]);
        };
        let to = |world: &mut World, by: &Arc<Caller>, body: &str| {
            goes_to(world, &call(Completions, body).by(by))
        };
        refused(&mut world, &ann);
        assert_eq!(to(&mut world, &ann, &m), Some(second), "{status}");
        assert_eq!(to(&mut world, &bob, &m), Some(first), "{status}");
        refused(&mut world, &bob);
        for caller in [&ann, &bob, &cy] {
            assert_eq!(to(&mut world, caller, &m), Some(second), "{status}");
            let other = if is_of_the_model { first } else { second };
            assert_eq!(to(&mut world, caller, &n), Some(other), "{status}");
        }
    }
}

#[test]
fn a_redirect_of_what_is_no_inference_ejects_nothing() {
    for (operation, body, is_counted) in [(Completions, BODY, true), (Models, "", false)] {
        let mut world = World::routes(&[plan()]);
        for _ in 0..5 {
            let mut asked = world.ask(&call(operation, body));
            let _plan = world.attempt(&mut asked);
            world.response(&mut asked, 302, "");
            assert_eq!(asked.code(), "upstream_bad_response");
        }
        let ejected = world.env().shard.upstreams.ejected(NOW);
        assert_eq!(!ejected.is_empty(), is_counted, "{operation:?}");
    }
}

#[test]
fn a_value_of_anthropic_beta_that_is_left_out_is_told_once() {
    let mut world = World::of(two(|_| {}));
    let mut asked = begun(&mut world, true);
    let dropped = |asked: &Asked| {
        let extra = asked.record().extra.as_deref();
        extra.map_or(Vec::new(), |extra| extra.dropped.to_vec())
    };
    asked.exchange.left_betas_out();
    // A kept connection that was closed: the same attempt goes over another one.
    let closed = Lost {
        was_kept: true,
        ..Lost::UNTAKEN
    };
    world.tell(&mut asked, |exchange, env| {
        exchange.attempt_failed(closed, env)
    });
    asked.exchange.left_betas_out();
    assert_eq!(dropped(&asked), ["anthropic-beta"]);
    // The next backend may have them all.
    asked.exchange.sent(true);
    world.response(&mut asked, 503, JSON);
    assert!(matches!(asked.verdict, Verdict::Attempt(_)));
    assert!(dropped(&asked).is_empty());
}
