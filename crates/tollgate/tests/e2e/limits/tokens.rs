//! Token limits: reserve before, settle after, carry debt.

use std::time::Duration;

use testing::Began;

use super::{assert_refused, call, call_without_tokens, config, engine, number, refused};
use crate::harness::answer::{DONE, counts, delta, events, usage_event};
use crate::harness::{Connection, Gate, PartialUpstream, Step, Upstream, chat, post};

const LIMIT: &str = "{ tokens: 100000, per: 366d }";

/// Remaining tokens; asked on the connection of the earlier calls, so that those are settled.
fn remaining(connection: &mut Connection) -> u64 {
    number(
        &connection.call(&call_without_tokens("a")),
        "x-ratelimit-remaining-tokens",
    )
}

#[test]
fn unused_reserved_tokens_are_released() {
    let upstream = engine();
    let gate = Gate::start(&config(&upstream, LIMIT), &[]);
    let mut connection = Connection::open(gate.data);
    let mut left = 100_000;
    for (cap, prompt, completion) in [(5000, 7, 3), (90_000, 1000, 500), (1, 0, 0), (20, 300, 20)] {
        let response = connection.call(&call("a", cap, &format!("{prompt},{completion}")));
        assert_eq!(response.status, 200, "{}", response.text());
        let during = number(&response, "x-ratelimit-remaining-tokens");
        assert!(during <= left - cap, "the cap is reserved: {during}");
        left -= prompt + completion;
        assert_eq!(remaining(&mut connection), left);
    }
}

#[test]
fn the_usage_of_a_stream_is_settled() {
    let upstream = Upstream::start(|_, seen| {
        if seen.body.is_empty() {
            return vec![Step::Send(crate::harness::answer::json(200, "{}"))];
        }
        let stream = [delta("a"), usage_event(&counts(900, 100)), DONE.to_owned()].concat();
        vec![Step::Send(events(stream.as_bytes()))]
    });
    let gate = Gate::start(&config(&upstream, LIMIT), &[]);
    let mut connection = Connection::open(gate.data);
    let body = chat("m", true);
    for n in 1..=3 {
        let response =
            connection.call(&post("/v1/chat/completions", &["x-workload-app: a"], &body));
        assert!(response.whole);
        assert_eq!(remaining(&mut connection), 100_000 - n * 1000);
    }
}

#[test]
fn usage_beyond_the_reservation_becomes_debt_and_is_paid_back() {
    let upstream = engine();
    // Reserves about 30 and uses 2500 of 1000.
    let in_debt = |limit: &str| {
        let gate = Gate::start(&config(&upstream, limit), &[]);
        let mut connection = Connection::open(gate.data);
        assert_eq!(connection.call(&call("a", 10, "2490,10")).status, 200);
        (gate, connection)
    };
    // A thousand in a day: the debt is there for long, and it is said for how long.
    let (gate, mut connection) = in_debt("{ tokens: 1000, per: 24h }");
    let response = connection.call(&call("a", 10, "1,1"));
    assert_refused(&response, "in debt");
    assert_eq!(number(&response, "x-ratelimit-remaining-tokens"), 0);
    let days = number(&response, "retry-after-ms") as f64 / 86_400_000.0;
    assert!((1.45..=1.6).contains(&days), "{days}");
    assert!((refused(&gate, "a", "tokens") - 1.0).abs() < 0.1);
    assert_eq!(upstream.seen().len(), 1);
    // A thousand in a second: it is paid within two, and not sooner than in about one and a half.
    let began = Began::now();
    let (_gate, mut connection) = in_debt("{ tokens: 1000, per: 1s }");
    loop {
        let response = connection.call(&call("a", 10, "1,1"));
        if response.status == 200 {
            break;
        }
        assert_refused(&response, "not paid yet");
        testing::pace(Duration::from_millis(number(&response, "retry-after-ms")));
    }
    began.took_at_least(Duration::from_millis(1400));
}

#[test]
fn a_call_larger_than_the_limit_is_refused_without_retry_after() {
    let upstream = engine();
    let gate = Gate::start(&config(&upstream, "{ tokens: 1000, per: 1m }"), &[]);
    let mut connection = Connection::open(gate.data);
    let prompt = "x".repeat(8000);
    let long = format!(r#"{{"model":"m","max_tokens":1,"messages":["{prompt}"]}}"#);
    let several = r#"{"model":"m","max_tokens":300,"n":4,"messages":[]}"#;
    for request in [
        call("a", 1001, "1,1"),
        post("/v1/chat/completions", &["x-workload-app: a"], &long),
        post("/v1/chat/completions", &["x-workload-app: a"], several),
    ] {
        let response = connection.call(&request);
        assert_eq!(
            (response.status, response.code().as_str()),
            (429, "request_exceeds_limit")
        );
        assert_eq!(response.header("x-should-retry"), Some("false"));
        assert_eq!(response.header("retry-after"), None, "no wait would help");
        assert_eq!(
            number(&response, "x-ratelimit-remaining-tokens"),
            1000,
            "nothing was taken"
        );
    }
    assert_eq!(upstream.seen().len(), 0);
    assert!((refused(&gate, "a", "tokens") - 3.0).abs() < 0.1);
    assert_eq!(connection.call(&call("a", 900, "1,1")).status, 200);
}

#[test]
fn the_largest_of_several_output_caps_is_reserved() {
    let upstream = engine();
    let gate = Gate::start(&config(&upstream, "{ tokens: 10000, per: 366d }"), &[]);
    let mut connection = Connection::open(gate.data);
    let workload = &["x-workload-app: a"][..];
    let chat = |members: &str| {
        let body = format!(r#"{{"model":"m","messages":[],{members}}}"#);
        post("/v1/chat/completions", workload, &body)
    };
    let completion = |members: &str| {
        let body = format!(r#"{{"model":"m",{members}}}"#);
        post("/v1/completions", workload, &body)
    };
    for request in [
        chat(r#""max_completion_tokens":100000"#),
        chat(r#""max_completion_tokens":100000,"max_tokens":1"#),
        chat(r#""max_tokens":100000,"max_completion_tokens":1"#),
        chat(r#""max_completion_tokens":100000,"max_output_tokens":1"#),
        chat(r#""max_completion_tokens":5000,"n":1,"best_of":3"#),
        completion(r#""max_tokens":100000,"max_completion_tokens":1"#),
        completion(r#""max_tokens":100000,"max_output_tokens":1"#),
        completion(r#""max_tokens":6000,"prompt":["a","b"]"#),
        completion(r#""max_tokens":6000,"prompt":[[1],[2]]"#),
        completion(r#""max_tokens":2000,"prompt":["a","b"],"n":3"#),
        completion(r#""max_tokens":2000,"prompt":["a","b"],"best_of":3"#),
        post(
            "/v1/responses",
            workload,
            r#"{"model":"m","max_output_tokens":100000,"max_tokens":1}"#,
        ),
        post(
            "/v1/messages",
            workload,
            r#"{"model":"m","max_tokens":100000,"max_output_tokens":1}"#,
        ),
    ] {
        let response = connection.call(&request);
        let what = String::from_utf8_lossy(&request).into_owned();
        assert_eq!(response.status, 429, "{what}");
        // Anthropic's clients get an error in their own format, with the same code.
        assert_eq!(response.code(), "request_exceeds_limit", "{what}");
    }
    assert_eq!(upstream.seen().len(), 0);
    let several = completion(r#""max_tokens":2000,"prompt":["a","b"],"n":2"#);
    let response = connection.call(&several);
    assert_eq!(response.status, 200, "{}", response.text());
    let left = number(&response, "x-ratelimit-remaining-tokens");
    assert!(
        (1900..=2000).contains(&left),
        "four answers of 2000: {left}"
    );
    // The prompts of a long body, which arrives in several chunks, are counted the same.
    let prompts = vec!["[1]"; 5000].join(",");
    let user = "u".repeat(100_000);
    let many = completion(&format!(
        r#""max_tokens":2,"user":"{user}","prompt":[{prompts}]"#
    ));
    assert!(many.len() > 100_000);
    let response = connection.call(&many);
    assert_eq!(
        response.code(),
        "request_exceeds_limit",
        "{}",
        response.text()
    );
}

#[test]
fn an_upstream_error_settles_to_zero_tokens() {
    let upstream = Upstream::start(|n, seen| {
        if seen.body.is_empty() {
            return vec![Step::Send(crate::harness::answer::json(200, "{}"))];
        }
        let status = [400, 429, 500][n % 3];
        let error = crate::harness::answer::json(status, r#"{"error":{}}"#);
        vec![Step::Send(error)]
    });
    let gate = Gate::start(&config(&upstream, LIMIT), &[]);
    let mut connection = Connection::open(gate.data);
    for _ in 0..6 {
        assert_ne!(connection.call(&call("a", 5000, "1,1")).status, 200);
    }
    assert_eq!(remaining(&mut connection), 100_000);
}

#[test]
fn tokens_of_calls_in_flight_stay_reserved() {
    let upstream = PartialUpstream::start(Vec::new());
    let config = format!(
        "workers: 2\nbackends: {{ up: {{ url: http://{}/v1 }} }}\n\
         routes: [ {{ workload: a, backend: up, limits: [ {{ tokens: 1000, per: 366d }} ] }} ]\n",
        upstream.address
    );
    let gate = Gate::start(&config, &[]);
    let mut first = Connection::open(gate.data);
    // A stream, because a unary call may have run completely when its client disconnects.
    let stream = r#"{"model":"m","stream":true,"max_tokens":600,"messages":[]}"#;
    first.send(&post(
        "/v1/chat/completions",
        &["x-workload-app: a"],
        stream,
    ));
    upstream.reached();
    for _ in 0..8 {
        assert_refused(&gate.call(&call("a", 600, "1,1")), "600 of 1000 are held");
    }
    drop(first);
    upstream.closed();
    // What was held is free but for the prompt: a call is refused until that is so, and then reaches the upstream.
    let mut second = Connection::open(gate.data);
    let again = |second: &mut Connection| {
        second.send(&call("a", 600, "1,1"));
        let patience = Some(Duration::from_millis(50));
        second.tcp.set_read_timeout(patience).expect("an option");
    };
    again(&mut second);
    testing::eventually("it reaches the upstream", || {
        if second.more() {
            second.tcp.set_read_timeout(None).expect("an option");
            assert_refused(&second.response(), "it is not free yet");
            again(&mut second);
        }
        upstream.is_reached()
    });
}

#[test]
fn under_concurrency_admitted_tokens_stay_within_the_limit() {
    let upstream = engine();
    let gate = Gate::start(&config(&upstream, "{ tokens: 10000, per: 366d }"), &[]);
    let address = gate.data;
    let threads: Vec<_> = (0..40)
        .map(|_| {
            std::thread::spawn(move || {
                let mut connection = Connection::open(address);
                let call = call("a", 100, "50,100");
                (0..10)
                    .filter(|_| connection.call(&call).status == 200)
                    .count()
            })
        })
        .collect();
    let admitted: usize = threads
        .into_iter()
        .map(|t| t.join().expect("it ends"))
        .sum();
    // Each uses 150 and reserves slightly less, so that only calls in flight can exceed the limit.
    assert!(admitted * 150 <= 10_000 + 40 * 50, "{admitted} admitted");
    assert!(admitted >= 60, "{admitted} admitted");
    assert_eq!(upstream.seen().len(), admitted);
    assert!(
        (refused(&gate, "a", "tokens") - f64::from(u32::try_from(400 - admitted).expect("few")))
            .abs()
            < 0.1
    );
}
