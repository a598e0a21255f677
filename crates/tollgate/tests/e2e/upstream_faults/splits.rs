//! U3: where the upstream's bytes are cut makes no difference.
//!
//! Invariant: for every cut, client bytes and record are those of the uncut stream.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::Value;

use super::one;
use crate::harness::answer::{
    DONE, LAST_CHUNK, chunk, counts, delta, events, events_head, usage_event,
};
use crate::harness::{Connection, Gate, Step, Upstream, chat, post};

/// Long enough for the gate to have read what came before.
const PAUSE: Duration = Duration::from_micros(400);

/// A stream with everything that a cut could hurt: UTF-8, CRLF, numbers, usage, several chunks.
fn response() -> Vec<u8> {
    let events = [
        delta("Grüße, 世界 😀").replace('\n', "\r\n"),
        delta("1234567890"),
        usage_event(&counts(1234, 567)).replace("\n\n", "\r\n\r\n"),
        DONE.to_owned(),
    ];
    let (left, right) = (events[..2].concat(), events[2..].concat());
    let chunks = [chunk(left.as_bytes()), chunk(right.as_bytes())].concat();
    [events_head(), chunks, LAST_CHUNK.to_vec()].concat()
}

/// What the client must get, not having asked for usage.
fn expected() -> String {
    let events = [
        delta("Grüße, 世界 😀").replace('\n', "\r\n"),
        delta("1234567890"),
        DONE.to_owned(),
    ];
    events.concat()
}

/// The cuts of the nth call come in its `x-cuts` header.
fn cutting(response: Vec<u8>) -> Upstream {
    Upstream::start(move |_, seen| {
        let cuts = seen.header("x-cuts").concat();
        let cuts = cuts.split(' ').filter_map(|c| c.parse::<usize>().ok());
        let mut steps = Vec::new();
        let mut from = 0;
        for cut in cuts {
            steps.push(Step::Send(response[from..cut].to_vec()));
            steps.push(Step::Sleep(PAUSE));
            from = cut;
        }
        steps.push(Step::Send(response[from..].to_vec()));
        steps
    })
}

fn call(cuts: &[usize], body: &str) -> Vec<u8> {
    let cuts: Vec<String> = cuts.iter().map(usize::to_string).collect();
    let cuts = format!("x-cuts: {}", cuts.join(" "));
    post("/v1/chat/completions", &["x-workload-app: w", &cuts], body)
}

/// What a record says of the stream, without times and ids.
fn facts(record: &Value) -> Value {
    let names = [
        "outcome",
        "status",
        "prompt_tokens",
        "prompt_source",
        "completion_tokens",
    ];
    let more = [
        "completion_source",
        "bytes_out",
        "streamed",
        "attempts",
        "usage_invalid",
    ];
    names
        .into_iter()
        .chain(more)
        .map(|name| record[name].clone())
        .collect()
}

/// Calls once for each list of cuts; all answers and all records must be alike.
fn check(response: Vec<u8>, body: &str, expected: &[u8], all_cuts: &[Vec<usize>]) {
    let upstream = cutting(response);
    let gate = Gate::start(&one(upstream.address), &[]);
    let mut connection = Connection::open(gate.data);
    for cuts in all_cuts {
        let response = connection.call(&call(cuts, body));
        assert!(response.whole, "{cuts:?}");
        assert_eq!(response.body, expected, "{cuts:?}: {}", response.text());
    }
    let records = gate.records(all_cuts.len());
    assert_eq!(records.len(), all_cuts.len());
    let first = facts(&records[0]);
    assert_eq!(
        (&first[2], &first[4]),
        (&1234.into(), &567.into()),
        "{first}"
    );
    for (record, cuts) in records.iter().zip(all_cuts) {
        assert_eq!(facts(record), first, "{cuts:?}");
    }
}

#[test]
fn a_split_at_every_byte_changes_nothing() {
    let response = response();
    let cuts: Vec<_> = (0..response.len()).map(|at| vec![at]).collect();
    check(response, &chat("m", true), expected().as_bytes(), &cuts);
}

#[test]
fn random_splits_change_nothing() {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .expect("after 1970");
    let seed = since.as_secs();
    println!("seed {seed}");
    let mut state = seed | 1;
    let response = response();
    let mut cuts = Vec::new();
    for round in 0..150 {
        let mut list: Vec<usize> = (0..1 + round % 40)
            .map(|_| {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                usize::try_from(state >> 33).expect("31 bits") % response.len()
            })
            .collect();
        list.sort_unstable();
        cuts.push(list);
    }
    check(response, &chat("m", true), expected().as_bytes(), &cuts);
}

#[test]
fn recorded_dialects_pass_for_every_split() {
    let responses = concat!(
        "event: response.created\ndata: {\"type\":\"response.created\",\"response\":{\"usage\":null}}\n\n",
        "event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"usage\":",
        "{\"input_tokens\":1234,\"input_tokens_details\":{\"cached_tokens\":34},",
        "\"output_tokens\":567,\"total_tokens\":1801}}}\n\n",
    );
    let chat = [delta("a"), usage_event(&counts(1234, 567)), DONE.to_owned()].concat();
    for stream in [responses, &chat] {
        let response = events(stream.as_bytes());
        let cuts: Vec<_> = (0..response.len()).step_by(3).map(|at| vec![at]).collect();
        let asked =
            r#"{"model":"m","stream":true,"stream_options":{"include_usage":true},"messages":[]}"#;
        check(response, asked, stream.as_bytes(), &cuts);
    }
}
