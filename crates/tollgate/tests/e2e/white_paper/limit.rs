//! Two requests a minute admit two, and a refusal carries `retry-after`.

use serde_json::Value;

use super::runs;
use crate::harness::Demo;

const REFUSALS: &str = "http_local_rate_limit_rate_limited";

/// Refusals by limits.
#[derive(Debug, PartialEq)]
pub(super) struct Refusals {
    requests: f64,
    tokens: f64,
    others: f64,
}

impl Refusals {
    pub(super) fn of(demo: &Demo) -> Self {
        let all = |kind: &str| demo.metric(REFUSALS, &[r#"workload="swe-rebench-ide""#, kind]);
        Self {
            requests: all(r#"kind="requests""#),
            tokens: all(r#"kind="tokens""#),
            others: demo.metric(REFUSALS, &[r#"workload="terminal-bench-ci""#]),
        }
    }
}

#[test]
fn six_rapid_requests_at_two_a_minute_are_two_answers_and_four_429() {
    for run in runs() {
        let (what, outcomes) = (run.what(), &run.limited);
        let statuses: Vec<_> = outcomes.iter().map(|o| o["status"].as_u64()).collect();
        let expected: Vec<_> = [200, 200, 429, 429, 429, 429].map(Some).into();
        assert_eq!(statuses, expected, "{what} {outcomes:?}");
        for (n, answer) in outcomes[..2].iter().enumerate() {
            assert_eq!(answer["model"], "gpt-oss-120b");
            assert!(
                answer["text"].as_str().is_some_and(|t| !t.is_empty()),
                "{answer}"
            );
            assert_eq!(header(answer, "x-ratelimit-limit-requests"), "2");
            assert_eq!(
                header(answer, "x-ratelimit-remaining-requests"),
                (1 - n).to_string()
            );
        }
        outcomes[2..].iter().for_each(refused_with_advice);
        let refusals = [0.0, 4.0].map(|requests| Refusals {
            requests,
            tokens: 0.0,
            others: 0.0,
        });
        assert_eq!(run.refusals, refusals, "{what}");
        let limited = |outcome| run.record(outcome)["limited"] == "requests";
        let limited: Vec<_> = outcomes.iter().map(limited).collect();
        assert_eq!(limited, [false, false, true, true, true, true], "{what}");
        let records = run.records.iter();
        let of = |r: &&Value| r["limited"] == "requests";
        assert_eq!(records.filter(of).count(), 4, "{what}");
    }
}

fn refused_with_advice(refusal: &Value) {
    assert_eq!(refusal["error"], "RateLimitError", "{refusal}");
    assert_eq!(refusal["code"], "rate_limit_exceeded");
    assert_eq!(refusal["request_id"], header(refusal, "x-request-id"));
    let number = |name| header(refusal, name).parse::<u64>().expect("a number");
    let (seconds, ms) = (number("retry-after"), number("retry-after-ms"));
    // Both went a moment ago: the window lets go of the first a minute after it.
    assert!((1..=60_000).contains(&ms), "{refusal}");
    assert_eq!(seconds, ms.div_ceil(1000));
    assert_eq!(number("x-ratelimit-limit-requests"), 2);
    assert_eq!(number("x-ratelimit-remaining-requests"), 0);
    assert_eq!(number("x-ratelimit-limit-tokens"), 100_000);
    assert!(number("x-ratelimit-remaining-tokens") <= 100_000);
    let reset = header(refusal, "x-ratelimit-reset-requests");
    let reset: f64 = reset
        .strip_suffix('s')
        .and_then(|s| s.replace("1m0", "60").parse().ok())
        .unwrap_or_else(|| panic!("not a duration of OpenAI's: {reset}"));
    // The limit is full when it has let go of the second as well.
    assert!(
        reset >= ms as f64 / 1000.0 - 1.0 && reset <= 61.0,
        "{refusal}"
    );
    assert!(header(refusal, "x-ratelimit-reset-tokens").ends_with('s'));
}

fn header<'a>(outcome: &'a Value, name: &str) -> &'a str {
    outcome["headers"][name]
        .as_str()
        .unwrap_or_else(|| panic!("no {name} in {outcome}"))
}
