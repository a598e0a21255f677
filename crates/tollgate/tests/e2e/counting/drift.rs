//! Drift alarms: what is flagged, and after how many calls.

use std::time::Duration;

use engine::EngineConfig;
use serde_json::json;

use super::{CountingGate, engine};
use crate::harness::eventually;

/// The number of the call at which the alarm of this direction is raised, of at most a hundred.
fn flagged(counting: &str, model: &str, headers: &[&str], direction: &str) -> Option<usize> {
    let engine = engine(EngineConfig {
        models: vec![model.into()],
        ..EngineConfig::default()
    });
    let mut counted = CountingGate::start(engine.addr(), counting, &[]);
    let labels = [
        format!("model=\"{model}\""),
        format!("direction=\"{direction}\""),
    ];
    let labels = [labels[0].as_str(), labels[1].as_str()];
    let mut at = None;
    for n in 1..=100 {
        let question = format!("Why does the build fail in the third module, for the {n}th time?");
        let body = json!({"model": model, "stream": n % 2 == 0, "max_tokens": 40,
            "messages": [{"role": "user", "content": question}]});
        counted.chat(&format!("c{n}"), headers, &body);
        let results = |gate: &crate::harness::Gate| {
            gate.metric("tollgate_token_drift_exchanges_total", &labels)
        };
        eventually("it is counted", Duration::from_secs(10), || {
            results(&counted.gate) >= n as f64
        });
        if counted.gate.metric("tollgate_token_drift_alarm", &labels) == 1.0 {
            at = Some(n);
            break;
        }
    }
    if at.is_some() {
        assert_eq!(
            counted
                .gate
                .metric("tollgate_token_drift_alarms_total", &labels),
            1.0
        );
        let message = "the engine's tokens are not those that the gate counts";
        assert!(counted.gate.log().contains(message));
    }
    engine.stop();
    at
}

const HARMONY: &str = "tokenizers: { \"*\": harmony }\n";

#[test]
fn u7_an_engine_that_misreports_usage_is_flagged_within_a_hundred_calls() {
    for lie in ["x-fault: usage=x0.5", "x-fault: usage=x10"] {
        for direction in ["input", "output"] {
            let counting = "tokenizers: { gpt-oss-120b: harmony }";
            let at = flagged(counting, "gpt-oss-120b", &[lie], direction);
            println!("{lie} {direction}: {at:?}");
            assert!(at.is_some(), "{lie} {direction}");
        }
    }
}

#[test]
fn u7_a_wrong_tokenizer_is_flagged_within_a_hundred_calls() {
    // For any model but gpt-oss, the engine uses cl100k and ChatML.
    let at = flagged("tokenizers: { other: harmony }", "other", &[], "input");
    println!("swapped: {at:?}");
    assert!(at.is_some());
}

#[test]
fn u7_an_honest_engine_is_not_flagged() {
    for direction in ["input", "output"] {
        let counting = "tokenizers: { gpt-oss-120b: harmony }";
        assert_eq!(flagged(counting, "gpt-oss-120b", &[], direction), None);
    }
    // The template of another model stands in for one that is not public; it is close enough.
    assert_eq!(
        flagged("tokenizers: { other: cl100k }", "other", &[], "output"),
        None
    );
}

#[test]
fn an_unconfigured_model_does_not_become_a_metric_label() {
    let engine = engine(EngineConfig {
        models: vec!["invented-1".into(), "invented-2".into()],
        ..EngineConfig::default()
    });
    let mut counted = CountingGate::start(engine.addr(), HARMONY, &[]);
    for model in ["invented-1", "invented-2"] {
        let body = json!({"model": model, "messages": [{"role": "user", "content": "Hi"}]});
        counted.chat(model, &[], &body);
    }
    eventually("both are counted", Duration::from_secs(10), || {
        let labels = ["model=\"*\"", "direction=\"input\""];
        counted
            .gate
            .metric("tollgate_token_drift_exchanges_total", &labels)
            == 2.0
    });
    assert!(!counted.gate.metrics().contains("model=\"invented"));
    engine.stop();
}
