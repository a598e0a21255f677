//! Two requests a minute admit two, and a refusal carries `retry-after`.

use serde_json::Value;

use super::{call, make};
use crate::harness::{Demo, Sdk};

const REFUSALS: &str = "http_local_rate_limit_rate_limited";

#[test]
fn six_rapid_requests_at_two_a_minute_are_two_answers_and_four_429() {
    for (sdk, stream) in Sdk::ways() {
        let demo = Demo::start();
        let all = |kind: &str| demo.metric(REFUSALS, &[r#"workload="swe-rebench-ide""#, kind]);
        let (requests, tokens) = (r#"kind="requests""#, r#"kind="tokens""#);
        assert_eq!((all(requests), all(tokens)), (0.0, 0.0));
        let calls = vec![call("swe-rebench-ide", stream); 6];
        let outcomes = make(sdk, &demo, &calls);
        let statuses: Vec<_> = outcomes.iter().map(|o| o["status"].as_u64()).collect();
        let expected: Vec<_> = [200, 200, 429, 429, 429, 429].map(Some).into();
        assert_eq!(statuses, expected, "{sdk:?} {stream} {outcomes:?}");
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
        assert_eq!((all(requests), all(tokens)), (4.0, 0.0), "{sdk:?} {stream}");
        let others = demo.metric(REFUSALS, &[r#"workload="terminal-bench-ci""#]);
        assert_eq!(others, 0.0);
        let records = demo.records(6);
        let limited = records
            .iter()
            .filter(|r| r["limited"] == "requests")
            .count();
        assert_eq!((records.len(), limited), (6, 4));
    }
}

fn refused_with_advice(refusal: &Value) {
    assert_eq!(refusal["error"], "RateLimitError", "{refusal}");
    assert_eq!(refusal["code"], "rate_limit_exceeded");
    assert_eq!(refusal["request_id"], header(refusal, "x-request-id"));
    let number = |name| header(refusal, name).parse::<u64>().expect("a number");
    let (seconds, ms) = (number("retry-after"), number("retry-after-ms"));
    // One request is refilled every half minute.
    assert!((1..=30_000).contains(&ms), "{refusal}");
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
    // The limit is full one interval after the next refill.
    assert!((reset - 30.0 - ms as f64 / 1000.0).abs() < 1.0, "{refusal}");
    assert!(header(refusal, "x-ratelimit-reset-tokens").ends_with('s'));
}

fn header<'a>(outcome: &'a Value, name: &str) -> &'a str {
    outcome["headers"][name]
        .as_str()
        .unwrap_or_else(|| panic!("no {name} in {outcome}"))
}
