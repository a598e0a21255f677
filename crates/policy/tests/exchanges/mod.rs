//! Whole exchanges, one at a time: which answers are tried elsewhere, and what a record says of the charge.
//!
//! Not here: many of them over time (`sim`), what is reserved (`model`).

use std::time::Duration;

use policy::attempt::Failure;
use policy::clock::Mono;
use policy::disconnect::{OnDisconnect, ReadBounds};
use policy::exchange::{Answer, Env, Event, Exchange, Lost, Verdict};
use policy::id::PriceId;
use policy::levels::Levels;
use policy::price::{Charge, Pico, Price, Rates};
use policy::record::{Names, Record};
use policy::retry::{Retry, Statuses};
use policy::shard::Shard;
use policy::snapshot::Snapshot;
use policy::wire::head::ResponseHead;
use policy::wire::meter::{Form, Meter};

use crate::fixture::{BackendPlan, ONE, RoutePlan, snapshot};
use crate::model::holds::ask;

const NOW: Mono = Mono(5_000_000_000);
const ANSWER: &str = r#"{"usage":{"prompt_tokens":30,"completion_tokens":7}}"#;

/// One route to two backends.
fn two() -> Snapshot {
    let far = BackendPlan { name: "far", ..ONE };
    snapshot(&[RoutePlan {
        workloads: &["w"],
        backends: &[ONE, far],
        ..RoutePlan::default()
    }])
}

/// What exchanges are judged by.
struct World {
    snapshot: Snapshot,
    levels: Levels,
    shard: Shard,
}

impl World {
    fn new(snapshot: Snapshot) -> Self {
        Self {
            levels: Levels::new(&snapshot),
            shard: Shard::new(&snapshot, None, 1),
            snapshot,
        }
    }

    fn env(&mut self) -> Env<'_> {
        Env {
            snapshot: &self.snapshot,
            levels: &self.levels,
            shard: &mut self.shard,
            now: NOW,
        }
    }
}

/// The head of a response.
fn response(status: u16, content_type: &[u8]) -> ResponseHead {
    let mut head = ResponseHead {
        status,
        ..ResponseHead::default()
    };
    let pushed = head.fields.push(b"content-type", content_type);
    pushed.expect("a field");
    head
}

/// The record of a call that is answered with these statuses, one try after the other.
fn answered(statuses: &[u16], s: &Snapshot) -> Record {
    attempted(statuses, s).0
}

/// The same, and for each try whether another one follows.
fn attempted(statuses: &[u16], s: &Snapshot) -> (Record, Vec<Retry>) {
    let mut shard = Shard::new(s, None, 1);
    let levels = Levels::new(s);
    let env = &mut Env {
        snapshot: s,
        levels: &levels,
        shard: &mut shard,
        now: NOW,
    };
    let (mut exchange, _, _) = ask(10, env);
    let mut meter = Meter::default();
    let mut verdict = exchange.handle(Event::Answer(Answer::Entered), env);
    let mut retries = Vec::new();
    for status in statuses {
        assert!(
            matches!(verdict, Verdict::Attempt(_)),
            "{status}: {verdict:?}"
        );
        exchange.sent(true);
        let head = response(*status, b"application/json");
        verdict = exchange.handle(Event::ResponseHead(&head), env);
        let (attempt, _) = exchange.attempt_record().expect("an attempt");
        retries.push(attempt.retry);
    }
    let Verdict::Relay(relay) = verdict else {
        panic!("not forwarded: {verdict:?}");
    };
    if exchange.record().status < 400 {
        meter = Meter::new(relay.form);
        meter.observe(ANSWER.as_bytes());
    }
    (end(&mut exchange, &mut meter, env), retries)
}

fn end(exchange: &mut Exchange, meter: &mut Meter, env: &mut Env<'_>) -> Record {
    let finish = exchange.handle(Event::End { told_error: false }, env);
    assert!(matches!(finish, Verdict::Finish), "{finish:?}");
    exchange.finish(meter, false, env);
    exchange.record().clone()
}

#[test]
fn a_status_is_tried_elsewhere_where_its_route_says_so_and_forwarded_where_not() {
    let mut s = two();
    let tried = |statuses: &[u16], s: &Snapshot| {
        let record = answered(statuses, s);
        assert_eq!(Some(record.status), statuses.last().copied());
        record.attempts
    };
    assert_eq!(tried(&[503, 200], &s), 2);
    assert_eq!(tried(&[404], &s), 1);
    s.routes[0].retries.statuses = Statuses::NONE.with(404).with(429);
    assert_eq!(tried(&[503], &s), 1);
    assert_eq!(tried(&[404, 200], &s), 2);
    assert_eq!(tried(&[429, 503], &s), 2);
}

#[test]
fn a_stream_with_any_good_status_is_read_for_its_usage() {
    let mut world = World::new(two());
    let env = &mut world.env();
    for (status, is_read) in [(200, true), (201, true), (206, true), (404, false)] {
        let mut exchange = begun(true, env);
        let head = response(status, b"text/event-stream");
        let verdict = exchange.handle(Event::ResponseHead(&head), env);
        let Verdict::Relay(relay) = verdict else {
            panic!("{status} is not forwarded: {verdict:?}");
        };
        let reads = matches!(relay.form, Form::Events { .. });
        assert_eq!(reads, is_read, "{status}: {relay:?}");
    }
}

/// An exchange that has begun its first attempt, whose request has left so far.
fn begun(is_whole: bool, env: &mut Env<'_>) -> Exchange {
    let (mut exchange, _, _) = ask(10, env);
    let verdict = exchange.handle(Event::Answer(Answer::Entered), env);
    assert!(matches!(verdict, Verdict::Attempt(_)), "{verdict:?}");
    exchange.sent(is_whole);
    exchange
}

#[test]
fn an_unusable_response_to_a_request_that_did_not_leave_whole_is_not_charged() {
    let mut world = World::new(two());
    let env = &mut world.env();
    for (is_whole, charged) in [(false, false), (true, true)] {
        let mut exchange = begun(is_whole, env);
        let head = ResponseHead {
            status: 204,
            ..ResponseHead::default()
        };
        let verdict = exchange.handle(Event::ResponseHead(&head), env);
        assert!(matches!(verdict, Verdict::Refuse(_)), "{verdict:?}");
        let record = end(&mut exchange, &mut Meter::default(), env);
        assert_eq!(record.tokens.sum() > 0, charged, "{record:?}");
    }
}

#[test]
fn no_request_is_sent_again_for_a_client_that_has_left() {
    let mut s = two();
    s.routes[0].abandon = OnDisconnect::ReadToEnd(ReadBounds {
        tokens: 100,
        time: Duration::from_secs(5),
    });
    let mut world = World::new(s);
    let env = &mut world.env();
    let refused = Lost {
        was_kept: true,
        ..Lost::UNTAKEN
    };
    for lost in [refused, Failure::Reset.into()] {
        let mut exchange = begun(true, env);
        let left = Event::Disconnected {
            events: None,
            reading_on: 0,
        };
        let verdict = exchange.handle(left, env);
        assert!(matches!(verdict, Verdict::ReadToEnd { .. }), "{verdict:?}");
        let verdict = exchange.handle(Event::AttemptFailed(lost), env);
        assert!(matches!(verdict, Verdict::Abandon), "{verdict:?}");
    }
}

#[test]
fn a_route_of_one_attempt_never_retries() {
    let mut s = two();
    s.routes[0].retries.attempts = 1;
    assert_eq!(answered(&[503], &s).attempts, 1);
}

#[test]
fn an_attempt_says_whether_the_retry_budget_refused_another_one() {
    let mut s = two();
    let retries = |statuses: &[u16], s: &Snapshot| attempted(statuses, s).1;
    assert_eq!(retries(&[503, 200], &s), [Retry::Granted, Retry::No]);
    assert_eq!(retries(&[503, 503], &s), [Retry::Granted, Retry::No]);
    s.routes[0].retries.share_millionths = 0;
    s.routes[0].retries.burst = 0;
    assert_eq!(retries(&[503], &s), [Retry::Refused]);
    assert_eq!(retries(&[404], &s), [Retry::No], "nothing calls for one");
    s.routes[0].retries.attempts = 1;
    assert_eq!(retries(&[503], &s), [Retry::No], "there is none to refuse");
}

#[test]
fn a_record_says_what_its_exchange_is_charged() {
    let mut s = two();
    assert_eq!(answered(&[200], &s).charge, None, "nobody knows a price");
    let price = |nanos: i128| Price {
        id: format!("p{nanos}").into(),
        currency: "USD".into(),
        request: Pico(1),
        rates: Rates::flat(Pico(1000 * nanos), Pico(1000 * nanos)),
        tiers: Vec::new(),
    };
    s.prices.insert("other", None, price(1));
    assert_eq!(answered(&[200], &s).charge, None, "nobody knows its price");
    s.prices.insert("m", None, price(2));
    s.prices
        .insert("m", Some(s.routes[0].backends[1]), price(3));
    for (statuses, nth, nanos, backend) in [(&[200][..], 1, 2, "one"), (&[503, 200], 2, 3, "far")] {
        let record = answered(statuses, &s);
        let cost = Some(Pico(1 + 37 * 1000 * nanos));
        let price = PriceId(nth);
        assert_eq!(record.charge, Some(Charge { price, cost }));
        let names = Names::of(&s, &record);
        assert_eq!(names.backend.map(|name| &**name), Some(backend));
        assert_eq!(
            names.price.map(|price| &*price.id),
            Some(&*format!("p{nanos}"))
        );
    }
    let refused = answered(&[400], &s).charge.expect("a price");
    assert_eq!(refused.cost, None, "no tokens are known");
}

#[test]
fn what_a_record_does_not_know_has_no_name() {
    let s = two();
    let names = Names::of(&s, &Record::default());
    assert!(names.workload.is_none() && names.route.is_none() && names.backend.is_none());
    assert!(names.endpoint.is_none() && names.group.is_none() && names.price.is_none());
    let strange = Record {
        workload: Some(policy::id::WorkloadId(9)),
        endpoint: Some(policy::id::EndpointId(9)),
        ..Record::default()
    };
    let names = Names::of(&s, &strange);
    assert!(names.workload.is_none() && names.endpoint.is_none());
}
