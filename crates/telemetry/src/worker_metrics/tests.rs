//! Records land under the right names, also across reloads.

use std::sync::Arc;
use std::time::Duration;

use policy::attempt::Failure;
use policy::id::{EndpointId, PriceId};
use policy::limit::Kind;
use policy::operation::Operation;
use policy::price::{Charge, Payer};
use policy::record::{AttemptRecord, Count, Gauge, Outcome, Record, Sink, Trouble};
use policy::retry::Retry;
use policy::snapshot::Snapshot;

use super::{MetricsSnapshot, WorkerMetrics};
use crate::conditions::Conditions;
use crate::merge::{Gauges, Merged, WorkloadTotals, merge};
use crate::priced::price;
use crate::sample::{completed, limited, snapshot, unknown};

fn merged(facts: &WorkerMetrics) -> Merged {
    merge(vec![MetricsSnapshot::of(facts.copy()).unwrap()])
}

fn totals(facts: &WorkerMetrics, name: &str) -> WorkloadTotals {
    let found = merged(facts).by_workload();
    found
        .into_iter()
        .find(|t| &*t.name == name)
        .unwrap_or_default()
}

#[test]
fn facts_can_be_made_before_their_worker_starts() {
    fn moves<T: Send>() {}
    moves::<WorkerMetrics>();
    moves::<MetricsSnapshot>();
}

#[test]
fn an_absurd_usage_saturates_and_does_not_wrap() {
    let s = snapshot("v1", &["a"]);
    let mut facts = WorkerMetrics::new(None);
    for count in [
        Count::Reported(u64::MAX),
        Count::Reported(5),
        Count::Counted(u64::MAX),
    ] {
        let mut record = completed(0);
        record.tokens.prompt = count;
        facts.exchange(&s, &record);
    }
    assert_eq!(totals(&facts, "a").prompt_tokens, u64::MAX);
}

#[test]
fn another_sinks_copy_is_not_mistaken() {
    assert!(MetricsSnapshot::of(Box::new(3_u8)).is_none());
    assert!(MetricsSnapshot::of(WorkerMetrics::new(None).copy()).is_some());
}

#[test]
fn each_outcome_is_counted_under_its_workload() {
    let s = snapshot("v1", &["a", "b"]);
    let mut facts = WorkerMetrics::new(None);
    facts.exchange(&s, &completed(0));
    facts.exchange(&s, &completed(1));
    facts.exchange(&s, &limited(1, Kind::Requests));
    facts.exchange(&s, &unknown());
    let aborted = Record {
        outcome: Outcome::Aborted,
        status: 0,
        ..completed(1)
    };
    facts.exchange(&s, &aborted);
    let b = totals(&facts, "b");
    assert_eq!(
        (b.exchanges, b.completed, b.refused, b.aborted),
        (3, 1, 1, 1)
    );
    assert_eq!((b.prompt_tokens, b.completion_tokens), (200, 42));
    assert_eq!(totals(&facts, "a").completed, 1);
    assert_eq!(totals(&facts, "").refused, 1);
}

#[test]
fn a_record_of_an_older_snapshot_keeps_its_names() {
    let old = snapshot("v1", &["a", "b"]);
    let new = snapshot("v2", &["b", "a"]);
    let mut facts = WorkerMetrics::new(None);
    for _ in 0..10 {
        facts.exchange(&old, &completed(0));
        facts.exchange(&new, &completed(0));
        facts.exchange(&new, &completed(0));
    }
    assert_eq!(totals(&facts, "a").exchanges, 10);
    assert_eq!(totals(&facts, "b").exchanges, 20);
}

#[test]
fn many_reloads_with_records_in_flight_are_attributed_right() {
    let snapshots: Vec<Snapshot> = (0..40)
        .map(|i| snapshot(&format!("v{i}"), &[&format!("w{i}"), "steady"]))
        .collect();
    let mut facts = WorkerMetrics::new(None);
    for _ in 0..3 {
        for s in &snapshots {
            facts.exchange(s, &completed(0));
            facts.exchange(s, &completed(1));
        }
    }
    for i in 0..40 {
        assert_eq!(totals(&facts, &format!("w{i}")).exchanges, 3, "w{i}");
    }
    assert_eq!(totals(&facts, "steady").exchanges, 120);
}

#[test]
fn a_snapshot_at_the_same_address_is_told_apart_by_its_version() {
    let mut facts = WorkerMetrics::new(None);
    let mut place = Box::new(snapshot("v1", &["a"]));
    facts.exchange(&place, &completed(0));
    *place = snapshot("v2", &["z"]);
    facts.exchange(&place, &completed(0));
    assert_eq!(totals(&facts, "a").exchanges, 1);
    assert_eq!(totals(&facts, "z").exchanges, 1);
}

#[test]
fn a_model_that_the_configuration_does_not_name_is_other() {
    let s = snapshot("v1", &["a"]);
    let mut facts = WorkerMetrics::new(None);
    for i in 0..500 {
        let record = Record {
            model_sent: Some(Arc::from(format!("gpt-evil-{i}"))),
            ..completed(0)
        };
        facts.exchange(&s, &record);
    }
    for known in ["asked", "override", "gpt-oss-120b"] {
        let record = Record {
            model_sent: Some(Arc::from(known)),
            ..completed(0)
        };
        facts.exchange(&s, &record);
    }
    let page = merged(&facts).render(&[]);
    assert!(!page.contains("evil"));
    assert!(page.contains(&input_sum("other", 50_000)));
    for known in ["asked", "override", "gpt-oss-120b"] {
        assert!(page.contains(&input_sum(known, 100)), "{known}");
    }
}

#[test]
fn models_taken_in_turns_are_told_apart_wherever_their_text_lies() {
    let s = snapshot("v1", &["a"]);
    let own = [
        s.backends[0].models[0].clone(),
        s.routes[0].model.clone().unwrap(),
    ];
    let copy = Arc::from(&*own[0]);
    let foreign = Arc::from("foreign");
    let mut facts = WorkerMetrics::new(None);
    let [gpt, overriding] = &own;
    for model in [gpt, overriding, &copy, &foreign, gpt, gpt, &foreign] {
        let record = Record {
            model_sent: Some(Arc::clone(model)),
            ..completed(0)
        };
        facts.exchange(&s, &record);
    }
    let page = merged(&facts).render(&[]);
    for (model, n) in [("gpt-oss-120b", 400), ("override", 100), ("other", 200)] {
        let line = input_sum(model, n);
        assert!(page.contains(&line), "{line}{page}");
    }
}

/// The line that says how many input tokens the chats of a model came to.
fn input_sum(model: &str, n: u64) -> String {
    format!(
        "gen_ai_client_token_usage_token_sum{{gen_ai_operation_name=\"chat\",\
         gen_ai_provider_name=\"openai\",gen_ai_request_model=\"{model}\",\
         gen_ai_token_type=\"input\",workload=\"a\",route=\"all\",backend=\"on-prem\"}} {n}\n"
    )
}

#[test]
fn the_estimate_of_a_refused_call_is_no_usage() {
    let s = snapshot("v1", &["a"]);
    let mut facts = WorkerMetrics::new(None);
    facts.exchange(&s, &limited(0, Kind::Tokens));
    let a = totals(&facts, "a");
    assert_eq!((a.refused, a.prompt_tokens), (1, 0));
    let page = merged(&facts).render(&[]);
    assert!(!page.contains("gen_ai_client_token_usage_bucket"));
}

#[test]
fn every_witness_has_a_series_of_its_own() {
    let s = snapshot("v1", &["a"]);
    let mut facts = WorkerMetrics::new(None);
    let counts = [
        Count::Reported(1),
        Count::Counted(20),
        Count::Estimated(300),
    ];
    for count in counts {
        let mut record = completed(0);
        record.tokens.completion = count;
        facts.exchange(&s, &record);
    }
    let page = merged(&facts).render(&[]);
    for (source, n) in [("reported", 1), ("counted", 20), ("estimated", 300)] {
        let line = format!("type=\"output\",source=\"{source}\"}} {n}\n");
        assert!(page.contains(&line), "{line}{page}");
    }
}

#[test]
fn attempts_and_retries_are_counted_by_endpoint_and_backend() {
    let s = snapshot("v1", &["a"]);
    let mut facts = WorkerMetrics::new(None);
    let attempt = |result, retry| AttemptRecord {
        endpoint: EndpointId(0),
        result,
        retry,
    };
    facts.attempt(&s, &attempt(Err(Failure::Connect), Retry::Granted));
    facts.attempt(&s, &attempt(Err(Failure::Status(503)), Retry::Granted));
    facts.attempt(&s, &attempt(Ok(200), Retry::No));
    facts.attempt(&s, &attempt(Ok(429), Retry::Refused));
    let nowhere = AttemptRecord {
        endpoint: EndpointId(77),
        ..attempt(Ok(200), Retry::Refused)
    };
    facts.attempt(&s, &nowhere);
    let page = merged(&facts).render(&[]);
    let at = "tollgate_attempts_total{backend=\"on-prem\",endpoint=\"on-prem#0\",result=";
    for result in ["upstream_unreachable", "5xx", "2xx", "4xx"] {
        assert!(
            page.contains(&format!("{at}\"{result}\"}} 1\n")),
            "{result}"
        );
    }
    assert!(page.contains("tollgate_retries_total{backend=\"on-prem\"} 2\n"));
    assert!(page.contains("tollgate_retries_refused_total{backend=\"on-prem\"} 1\n"));
}

#[test]
fn an_endpoints_trouble_ends_with_an_answer_and_not_with_what_it_was_not_sent() {
    let s = snapshot("v1", &["a"]);
    let mut conditions = Conditions::default();
    let mut facts = WorkerMetrics::new(None).with_reporter(Some(conditions.reporter()));
    let of = EndpointId(0);
    facts.trouble(&s, Trouble::Credential(of), &"401");
    facts.tick();
    assert_eq!(conditions.look(Duration::ZERO).len(), 1);
    for (result, ends) in [(Err(Failure::Untranslatable), 0), (Ok(200), 1)] {
        let attempt = AttemptRecord {
            endpoint: of,
            result,
            retry: Retry::No,
        };
        facts.attempt(&s, &attempt);
        facts.tick();
        assert_eq!(
            conditions.look(Duration::from_secs(60)).len(),
            ends,
            "{result:?}"
        );
    }
}

#[test]
fn gauges_rise_and_fall() {
    let mut facts = WorkerMetrics::new(None);
    facts.gauge(Gauge::Streams, 1);
    facts.gauge(Gauge::Streams, 1);
    facts.gauge(Gauge::Streams, -1);
    facts.gauge(Gauge::Connections, 5);
    let gauges = Gauges {
        connections: 5,
        streams: 1,
        ..Gauges::default()
    };
    assert_eq!(merged(&facts).gauges(), gauges);
}

#[test]
fn a_call_that_reached_no_backend_has_no_server_duration() {
    let s = snapshot("v1", &["a"]);
    let mut facts = WorkerMetrics::new(None);
    let models = Record {
        operation: Some(Operation::Models),
        backend: None,
        endpoint: None,
        model_sent: None,
        ..completed(0)
    };
    facts.exchange(&s, &models);
    let page = merged(&facts).render(&[]);
    assert!(!page.contains("gen_ai_server_request_duration_seconds_count"));
    assert!(page.contains("tollgate_own_seconds_count{operation=\"models\"} 1\n"));
}

#[test]
fn costs_are_summed_by_currency_and_what_has_none_is_counted() {
    let mut s = snapshot("v1", &["a"]);
    s.prices
        .insert("dear", None, price("EUR", 2_000_000_000_000));
    s.prices.insert("gpt-oss-120b", None, price("USD", 1));
    let mut facts = WorkerMetrics::new(None);
    let mut of = |model: &str, outcome| {
        let mut record = completed(0);
        record.model_sent = Some(Arc::from(model));
        record.outcome = outcome;
        let nth = ["dear", "gpt-oss-120b"].iter().position(|of| *of == model);
        record.charge = nth
            .zip(s.prices.of(model, None, Payer::default()))
            .map(|(nth, price)| Charge {
                price: PriceId(u32::try_from(nth).unwrap()),
                cost: price.cost(&record.tokens),
            });
        facts.exchange(&s, &record);
    };
    of("gpt-oss-120b", Outcome::Completed);
    of("gpt-oss-120b", Outcome::Aborted);
    of("dear", Outcome::Completed);
    of("gpt-other", Outcome::Completed);
    of("gpt-other", Outcome::Refused);
    let mut nothing = completed(0);
    nothing.tokens = policy::record::Tokens::default();
    facts.exchange(&s, &nothing);
    let copies = [facts.copy(), facts.copy()];
    let page = merge(copies.into_iter().filter_map(MetricsSnapshot::of).collect()).render(&[]);
    let lines: Vec<&str> = page
        .lines()
        .filter(|l| l.starts_with("tollgate_cost_total") || l.starts_with("tollgate_unpriced"))
        .collect();
    assert_eq!(
        lines,
        [
            r#"tollgate_cost_total{workload="a",model="dear",currency="EUR"} 484"#,
            r#"tollgate_cost_total{workload="a",model="gpt-oss-120b",currency="USD"} 0.000000000484"#,
            r#"tollgate_unpriced_total{workload="a",model="dear"} 0"#,
            r#"tollgate_unpriced_total{workload="a",model="gpt-oss-120b"} 0"#,
            r#"tollgate_unpriced_total{workload="a",model="other"} 2"#,
        ]
    );
}

#[test]
fn without_prices_nothing_is_unpriced() {
    let s = snapshot("v1", &["a"]);
    let mut facts = WorkerMetrics::new(None);
    facts.exchange(&s, &completed(0));
    let page = merged(&facts).render(&[]);
    assert!(!page.contains("tollgate_unpriced_total{"), "{page}");
}
