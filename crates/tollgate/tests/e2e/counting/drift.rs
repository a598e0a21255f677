//! Drift alarms: what is flagged, and after how many calls.

use engine::EngineConfig;
use serde_json::{Value, json};

use super::{CountingGate, engine};

/// Calls that agree before anything is done to them: three make a prompt's shape exact.
const HONEST: usize = 3;
/// After so many calls the alarms are looked at.
const LOOK_EVERY: usize = 10;
const DIRECTIONS: [&str; 2] = ["input", "output"];

/// What came of up to a hundred calls.
struct Watched {
    /// After how many calls the alarm of each direction was seen.
    at: [Option<usize>; 2],
    log: String,
    /// By how many tokens prompts of chat completions differ, as a metric.
    differ_by: f64,
    /// Why the count of the last call's prompt is not exact.
    last_doubt: Value,
}

/// After how many calls, of at most a hundred, the alarm of each direction is seen.
fn flagged(counting: &str, model: &str, headers: &[&str]) -> [Option<usize>; 2] {
    let Watched { at, log, .. } = watched(counting, model, headers, HONEST);
    let messages = [
        "the engine's counts of tokens differ from the gate's",
        "the engine reports other counts than it makes",
    ];
    if at != [None; 2] {
        assert!(messages.iter().any(|message| log.contains(message)));
        assert!(log.contains("#the-engines-counts-of-tokens-differ-from-the-gates"));
    }
    at
}

/// Calls until the alarms of both directions are raised, or a hundred; the first `honest` of them have no headers.
fn watched(counting: &str, model: &str, headers: &[&str], honest: usize) -> Watched {
    let engine = engine(EngineConfig {
        models: vec![model.into()],
        ..EngineConfig::default()
    });
    let mut counted = CountingGate::start(engine.addr(), counting, &[]);
    let of = |gate: &crate::harness::Gate, name: &str| {
        DIRECTIONS.map(|direction| {
            let labels = [
                format!("model=\"{model}\""),
                format!("direction=\"{direction}\""),
            ];
            gate.metric(name, &[&labels[0], &labels[1]])
        })
    };
    let (mut at, mut last) = ([None; 2], 0);
    for n in 1..=100 {
        let question = format!("Why does the build fail in the third module, for the {n}th time?");
        let body = json!({"model": model, "stream": n % 2 == 0, "max_tokens": 40,
            "messages": [{"role": "user", "content": question}]});
        let headers = if n > honest { headers } else { &[] };
        counted.chat(&format!("c{n}"), headers, &body);
        last = n;
        if n % LOOK_EVERY != 0 {
            continue;
        }
        testing::eventually("they are counted", || {
            let counted = of(&counted.gate, "tollgate_token_drift_exchanges_total");
            counted.iter().all(|exchanges| *exchanges >= n as f64)
        });
        let alarms = of(&counted.gate, "tollgate_token_drift_alarm");
        for (at, alarm) in at.iter_mut().zip(alarms) {
            *at = at.or_else(|| (alarm == 1.0).then_some(n));
        }
        if at.iter().all(Option::is_some) {
            break;
        }
    }
    let raised = of(&counted.gate, "tollgate_token_drift_alarms_total");
    for (raised, at) in raised.into_iter().zip(at) {
        assert_eq!(raised, f64::from(u8::from(at.is_some())));
    }
    let labels = ["feature=\"chat\""];
    let differ_by = counted
        .gate
        .metric("tollgate_token_shape_difference", &labels);
    let log = counted.gate.log();
    let rows = counted.end();
    engine.stop();
    Watched {
        at,
        log,
        differ_by,
        last_doubt: rows[&format!("c{last}")]["prompt_doubt"].clone(),
    }
}

const HARMONY: &str = "tokenizers: { \"*\": harmony }\n";

#[test]
fn u7_an_engine_that_misreports_usage_is_flagged_within_a_hundred_calls() {
    for lie in ["x-fault: usage=x0.5", "x-fault: usage=x10"] {
        let counting = "tokenizers: { gpt-oss-120b: harmony }";
        let at = flagged(counting, "gpt-oss-120b", &[lie]);
        assert!(at.iter().all(Option::is_some), "{lie}: {at:?}");
    }
}

#[test]
fn u7_a_wrong_tokenizer_is_told_of_and_accuses_nobody() {
    // For any model but gpt-oss, the engine uses cl100k and ChatML.
    let told = watched("tokenizers: { other: harmony }", "other", &[], 0);
    let message = "the gate and the engine count such prompts differently";
    assert_eq!(told.log.matches(message).count(), 1, "{}", told.log);
    assert_eq!(told.at[0], None, "for its prompts");
    assert!(told.differ_by != 0.0);
    assert_eq!(told.last_doubt, "differs");
}

#[test]
fn a_prompt_is_exact_once_three_calls_like_it_agreed() {
    let engine = engine(EngineConfig::default());
    let counting = "tokenizers: { gpt-oss-120b: harmony }";
    let mut counted = CountingGate::start(engine.addr(), counting, &[]);
    for n in 0..5 {
        let body = json!({"model": "gpt-oss-120b", "max_tokens": 5,
            "messages": [{"role": "user", "content": format!("The {n}th question")}]});
        counted.chat(&format!("c{n}"), &[], &body);
    }
    let rows = counted.end();
    let doubts = (0..5).map(|n| rows[&format!("c{n}")]["prompt_doubt"].clone());
    let doubts: Vec<Value> = doubts.collect();
    assert!(doubts[3..].iter().all(Value::is_null), "{doubts:?}");
    let is_open = |doubt: &Value| doubt.is_null() || doubt == "not_compared";
    assert!(doubts.iter().all(is_open), "{doubts:?}");
    engine.stop();
}

#[test]
fn u7_an_honest_engine_is_not_flagged() {
    let counting = "tokenizers: { gpt-oss-120b: harmony }";
    assert_eq!(flagged(counting, "gpt-oss-120b", &[]), [None; 2]);
    // The template of another model stands in for one that is not public; for answers it is close enough.
    let other = flagged("tokenizers: { other: cl100k }", "other", &[]);
    assert_eq!(other[1], None);
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
    testing::eventually("both are counted", || {
        let labels = ["model=\"*\"", "direction=\"input\""];
        counted
            .gate
            .metric("tollgate_token_drift_exchanges_total", &labels)
            == 2.0
    });
    assert!(!counted.gate.metrics().contains("model=\"invented"));
    engine.stop();
}
