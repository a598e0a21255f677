//! U3: it makes no difference where the upstream's bytes are split.
//!
//! Invariant: for every split, client bytes and record are those of the unsplit stream.

use std::time::Duration;

use serde_json::Value;
use testing::{Draw, seed};

use super::one;
use crate::harness::answer::{
    DONE, LAST_CHUNK, chunk, counts, delta, events, events_head, usage_event,
};
use crate::harness::{Connection, Gate, Step, Upstream, chat, post};

/// Long enough for the gate to read the bytes before the split.
const PAUSE: Duration = Duration::from_micros(400);

/// A stream with everything that a split could break: UTF-8, CRLF, numbers, usage, several chunks.
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

/// Splits the response where the `x-splits` header of the call says.
fn splitting_upstream(response: Vec<u8>) -> Upstream {
    Upstream::start(move |_, seen| {
        let splits = seen.header("x-splits").concat();
        let splits = splits.split(' ').filter_map(|c| c.parse::<usize>().ok());
        let mut steps = Vec::new();
        let mut from = 0;
        for split in splits {
            steps.push(Step::Send(response[from..split].to_vec()));
            steps.push(Step::Sleep(PAUSE));
            from = split;
        }
        steps.push(Step::Send(response[from..].to_vec()));
        steps
    })
}

fn call(splits: &[usize], body: &str) -> Vec<u8> {
    let splits: Vec<String> = splits.iter().map(usize::to_string).collect();
    let splits = format!("x-splits: {}", splits.join(" "));
    post(
        "/v1/chat/completions",
        &["x-workload-app: w", &splits],
        body,
    )
}

/// The fields of a record that must be equal for every split: no times and no ids.
fn comparable(record: &Value) -> Value {
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

/// Calls once for each list of splits; all answers and all records must be equal.
fn check(response: Vec<u8>, body: &str, expected: &[u8], all_splits: &[Vec<usize>]) {
    let upstream = splitting_upstream(response);
    let gate = Gate::start(&one(upstream.address), &[]);
    let mut connection = Connection::open(gate.data);
    for splits in all_splits {
        let response = connection.call(&call(splits, body));
        assert!(response.whole, "{splits:?}");
        assert_eq!(response.body, expected, "{splits:?}: {}", response.text());
    }
    let records = gate.records(all_splits.len());
    assert_eq!(records.len(), all_splits.len());
    let first = comparable(&records[0]);
    assert_eq!(
        (&first[2], &first[4]),
        (&1234.into(), &567.into()),
        "{first}"
    );
    for (record, splits) in records.iter().zip(all_splits) {
        assert_eq!(comparable(record), first, "{splits:?}");
    }
}

#[test]
fn a_split_at_every_byte_changes_nothing() {
    let response = response();
    let splits: Vec<_> = (0..response.len()).map(|at| vec![at]).collect();
    check(response, &chat("m", true), expected().as_bytes(), &splits);
}

#[test]
fn random_splits_change_nothing() {
    let mut draw = Draw::new(seed("random_splits_change_nothing"));
    let response = response();
    let mut splits = Vec::new();
    for round in 0..80 {
        let mut list: Vec<usize> = (0..1 + round % 40)
            .map(|_| draw.below(response.len()))
            .collect();
        list.sort_unstable();
        splits.push(list);
    }
    check(response, &chat("m", true), expected().as_bytes(), &splits);
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
        let splits: Vec<_> = (0..response.len()).step_by(3).map(|at| vec![at]).collect();
        let asked =
            r#"{"model":"m","stream":true,"stream_options":{"include_usage":true},"messages":[]}"#;
        check(response, asked, stream.as_bytes(), &splits);
    }
}
