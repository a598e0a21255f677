//! Usage as engines report it, wrongly in most cases here.

use serde_json::Value;

use crate::harness::answer::{DONE, chunk, counts, delta, events, json, usage_event};
use crate::harness::{Connection, Gate, Step, Upstream, post};
use crate::upstream_faults::{case, one, record};

/// What the record must contain.
#[derive(Debug, Clone, Copy)]
enum Expected {
    Reported(u64, u64),
    /// Part of it was dropped; a sum that was is estimated.
    Doubtful(Option<u64>, Option<u64>),
    Estimated,
    Invalid,
}

use Expected::{Doubtful, Estimated, Invalid, Reported};

/// Name, usage value, and the expected record.
const VALUES: [(&str, &str, Expected); 17] = [
    ("null", "null", Estimated),
    ("empty", "{}", Estimated),
    (
        "zero",
        r#"{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0}"#,
        Reported(0, 0),
    ),
    (
        "good",
        r#"{"prompt_tokens":9,"completion_tokens":4,"total_tokens":13}"#,
        Reported(9, 4),
    ),
    (
        "spaced",
        r#"{ "prompt_tokens" : 9 , "completion_tokens" : 4 }"#,
        Reported(9, 4),
    ),
    (
        "negative",
        r#"{"prompt_tokens":-1,"completion_tokens":4}"#,
        Doubtful(None, Some(4)),
    ),
    (
        "huge",
        r#"{"prompt_tokens":1000000000000000000,"completion_tokens":4}"#,
        Doubtful(None, Some(4)),
    ),
    (
        "string",
        r#"{"prompt_tokens":"9","completion_tokens":4}"#,
        Reported(9, 4),
    ),
    (
        "fraction",
        r#"{"prompt_tokens":9.5,"completion_tokens":4}"#,
        Doubtful(None, Some(4)),
    ),
    (
        "exponent",
        r#"{"prompt_tokens":0.9e1,"completion_tokens":4}"#,
        Reported(9, 4),
    ),
    (
        "with-point",
        r#"{"prompt_tokens":9.0,"completion_tokens":4.0}"#,
        Reported(9, 4),
    ),
    (
        "both-negative",
        r#"{"prompt_tokens":-9,"completion_tokens":-4}"#,
        Invalid,
    ),
    ("list", "[9,4]", Invalid),
    ("text", r#""9""#, Invalid),
    (
        "small-sum",
        r#"{"prompt_tokens":9,"completion_tokens":4,"total_tokens":3}"#,
        Doubtful(Some(9), Some(4)),
    ),
    (
        "more-cached",
        r#"{"prompt_tokens":9,"completion_tokens":4,"prompt_tokens_details":{"cached_tokens":10}}"#,
        Doubtful(Some(9), Some(4)),
    ),
    ("unnamed", r#"{"tokens":9}"#, Estimated),
];

fn value(case: &str) -> &'static str {
    let found = VALUES.iter().find(|(name, _, _)| *name == case);
    found.expect("a case").1
}

fn assert_usage(record: &Value, usage: Expected) {
    let sums = match usage {
        Reported(prompt, completion) => [Some(prompt), Some(completion)],
        Doubtful(prompt, completion) => [prompt, completion],
        Estimated | Invalid => [None; 2],
    };
    for (sum, name) in sums.into_iter().zip(["prompt", "completion"]) {
        let [tokens, source] = ["tokens", "source"].map(|what| &record[format!("{name}_{what}")]);
        match sum {
            Some(sum) => assert_eq!(
                (tokens, source),
                (&sum.into(), &"reported".into()),
                "{record}"
            ),
            None => {
                assert_eq!(source, "estimated", "{record}");
                assert!(tokens.as_u64() > Some(0), "never silently 0: {record}");
            }
        }
    }
    assert_eq!(
        (
            record["usage_invalid"] == true,
            record["usage_doubtful"] == true
        ),
        (matches!(usage, Invalid), matches!(usage, Doubtful(..))),
        "{record}"
    );
}

fn call(case: &str, stream: bool, asks: bool) -> Vec<u8> {
    let options = if asks {
        r#""stream_options":{"include_usage":true},"#
    } else {
        ""
    };
    let body = format!(r#"{{"model":"{case}",{options}"stream":{stream},"messages":[]}}"#);
    post("/v1/chat/completions", &["x-workload-app: w"], &body)
}

#[test]
fn usage_in_a_json_answer() {
    let body = |case: &str| {
        let choices = r#"[{"index":0,"message":{"role":"assistant","content":"Hello there"}}]"#;
        format!(
            r#"{{"id":"c","choices":{choices},"usage":{}}}"#,
            value(case)
        )
    };
    let upstream = Upstream::start(move |_, seen| vec![Step::Send(json(200, &body(&case(seen))))]);
    let gate = Gate::start(&one(upstream.address), &[]);
    let mut connection = Connection::open(gate.data);
    for (n, (case, _, usage)) in VALUES.into_iter().enumerate() {
        let response = connection.call(&call(case, false, false));
        assert_eq!(response.text(), body(case));
        assert_usage(&record(&gate, n + 1, case), usage);
    }
    for (metric, kind) in [
        ("tollgate_usage_invalid_total", |usage| {
            matches!(usage, Invalid)
        }),
        ("tollgate_usage_doubtful_total", |usage| {
            matches!(usage, Doubtful(..))
        }),
    ] as [(&str, fn(Expected) -> bool); 2]
    {
        let expected = VALUES.iter().filter(|(_, _, usage)| kind(*usage)).count();
        let counted = gate.metric(metric, &[]);
        let expected = f64::from(u32::try_from(expected).expect("few"));
        assert!((counted - expected).abs() < 0.5, "{metric} {counted}");
    }
}

#[test]
fn usage_in_a_stream() {
    let stream = |case: &str| [delta("Hi"), usage_event(value(case)), DONE.to_owned()].concat();
    let upstream =
        Upstream::start(move |_, seen| vec![Step::Send(events(stream(&case(seen)).as_bytes()))]);
    for asks in [true, false] {
        let gate = Gate::start(&one(upstream.address), &[]);
        let mut connection = Connection::open(gate.data);
        for (n, (case, value, usage)) in VALUES.into_iter().enumerate() {
            let response = connection.call(&call(case, true, asks));
            assert!(response.whole);
            let is_ours = !asks && value.starts_with('{');
            let expected = if is_ours {
                delta("Hi") + DONE
            } else {
                stream(case)
            };
            assert_eq!(response.text(), expected, "{case}, asks {asks}");
            assert_usage(&record(&gate, n + 1, case), usage);
        }
    }
}

/// Streams with usage where it is unusual: name, stream, withheld part, and the expected record.
fn strange() -> Vec<(&'static str, String, String, Expected)> {
    let with_choices = format!(
        "data: {{\"choices\":[{{\"index\":0,\"delta\":{{}},\"finish_reason\":\"stop\"}}],\"usage\":{}}}\n\n",
        counts(9, 4)
    );
    let ours = usage_event(&counts(8, 3));
    let later = usage_event(&counts(9, 4));
    let cumulative = "data: {\"choices\":[{\"index\":0,\"delta\":{}}],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":1}}\n\n";
    let start = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":9,\"output_tokens\":1}}}\n\n";
    let end = "event: message_delta\ndata: {\"type\":\"message_delta\",\"usage\":{\"output_tokens\":4}}\n\n";
    let done = || DONE.to_owned();
    vec![
        ("missing", delta("a") + DONE, String::new(), Estimated),
        (
            "beside-choices",
            delta("a") + &with_choices + DONE,
            String::new(),
            Reported(9, 4),
        ),
        (
            "twice",
            delta("a") + &ours + &later + DONE,
            ours.clone() + &later,
            Reported(9, 4),
        ),
        (
            "on-every-chunk",
            cumulative.to_owned() + &with_choices + DONE,
            String::new(),
            Reported(9, 4),
        ),
        (
            "named-in-text",
            delta("\\\"usage\\\":{}") + DONE,
            String::new(),
            Estimated,
        ),
        (
            "after-done",
            delta("a") + DONE + &later,
            later.clone(),
            Estimated,
        ),
        (
            "then-null",
            later.clone() + &usage_event("null") + DONE,
            later.clone(),
            Reported(9, 4),
        ),
        (
            "cumulative",
            start.to_owned() + end + &done(),
            String::new(),
            Reported(9, 4),
        ),
        (
            "good-then-bad",
            delta("a") + &later + &usage_event(r#"{"prompt_tokens":-4}"#) + DONE,
            later.clone() + &usage_event(r#"{"prompt_tokens":-4}"#),
            Doubtful(Some(9), Some(4)),
        ),
    ]
}

#[test]
fn usage_in_unexpected_places() {
    let upstream = Upstream::start(|_, seen| {
        let case = case(seen);
        let all = strange();
        let (_, stream, ..) = all.iter().find(|(name, ..)| *name == case).expect("a case");
        let halves = stream.as_bytes().split_at(stream.len() / 2);
        let chunks = [chunk(halves.0), chunk(halves.1)].concat();
        let end = crate::harness::answer::LAST_CHUNK.to_vec();
        vec![Step::Send(
            [crate::harness::answer::events_head(), chunks, end].concat(),
        )]
    });
    for asks in [true, false] {
        let gate = Gate::start(&one(upstream.address), &[]);
        let mut connection = Connection::open(gate.data);
        for (n, (case, stream, withheld, usage)) in strange().into_iter().enumerate() {
            let response = connection.call(&call(case, true, asks));
            assert!(response.whole, "{case}");
            let kept = stream.replace(&withheld, "");
            let expected = if asks || withheld.is_empty() {
                &stream
            } else {
                &kept
            };
            assert_eq!(response.text(), *expected, "{case}, asks {asks}");
            let record = record(&gate, n + 1, case);
            if case == "named-in-text" || case == "after-done" || case == "missing" {
                // The text of the one is ten bytes, which are more than a token.
                let is_longer = case == "named-in-text" || case == "after-done" && asks;
                assert_eq!(record["completion_tokens"], 1 + u64::from(is_longer));
            }
            assert_usage(&record, usage);
        }
    }
}

#[test]
fn detailed_token_counts_are_kept() {
    let usage = r#"{"prompt_tokens":9,"completion_tokens":4,"total_tokens":13,"prompt_tokens_details":{"cached_tokens":5},"completion_tokens_details":{"reasoning_tokens":2}}"#;
    let upstream = Upstream::start(move |_, _| {
        vec![Step::Send(json(
            200,
            &format!(r#"{{"choices":[],"usage":{usage}}}"#),
        ))]
    });
    let gate = Gate::start(&one(upstream.address), &[]);
    gate.call(&call("m", false, false));
    let record = record(&gate, 1, "m");
    assert_eq!(
        (&record["cached_tokens"], &record["reasoning_tokens"]),
        (&5.into(), &2.into())
    );
}

/// What was sent and what was cached of one prompt may stand in two events of a message, each of which looks odd alone.
#[test]
fn events_of_a_message_are_merged_before_they_are_judged() {
    let stream = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"content\":[],\"usage\":{\"input_tokens\":3602,\"output_tokens\":0}}}\n\n\
        event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"cache_creation_input_tokens\":0,\"cache_read_input_tokens\":3604,\"output_tokens\":878}}\n\n\
        event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n";
    let upstream = Upstream::start(move |_, _| vec![Step::Send(events(stream.as_bytes()))]);
    let gate = Gate::start(&one(upstream.address), &[]);
    let text = "word ".repeat(7000);
    let body = format!(
        r#"{{"model":"m","max_tokens":1000,"stream":true,"messages":[{{"role":"user","content":"{text}"}}]}}"#
    );
    let response = gate.call(&post("/v1/messages", &["x-workload-app: w"], &body));
    assert_eq!(response.text(), stream);
    let record = record(&gate, 1, "m");
    assert_usage(&record, Reported(7206, 878));
    assert_eq!(record["cached_tokens"], 3604, "{record}");
}
