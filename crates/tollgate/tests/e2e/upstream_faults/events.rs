//! U2: unusual event streams pass unchanged.
//!
//! Invariant: the gate withholds nothing of a stream but the usage event that it asked for itself.

use super::{case, one, record};
use crate::harness::answer::{DONE, counts, delta, events, usage_event};
use crate::harness::{Connection, Gate, Step, Upstream, post};

/// Names and streams.
fn streams() -> Vec<(&'static str, Vec<u8>)> {
    let one = delta("one");
    let text = |parts: &[&str]| parts.concat().into_bytes();
    vec![
        ("truncated", text(&[&one, "data: {\"choi"])),
        ("no-blank-line", text(&[&one, "data: [DONE]"])),
        ("huge", text(&[&one, &delta(&"x".repeat(3 << 20)), DONE])),
        ("tiny", text(&[&"data:\n\n".repeat(100_000), DONE])),
        ("comments", ": nothing\n\n".repeat(2000).into_bytes()),
        (
            "cr-only",
            text(&[&one.replace('\n', "\r"), &DONE.replace('\n', "\r")]),
        ),
        (
            "crlf",
            text(&[&one.replace('\n', "\r\n"), &DONE.replace('\n', "\r\n")]),
        ),
        ("bom", text(&["\u{feff}", &one, DONE])),
        (
            "no-space",
            text(&[&one.replace("data: ", "data:"), "data:[DONE]\n\n"]),
        ),
        ("done-twice", text(&[&one, DONE, DONE])),
        ("after-done", text(&[&one, DONE, &one])),
        ("no-done", text(&[&one])),
        ("empty", Vec::new()),
        (
            "error",
            text(&[
                &one,
                "data: {\"error\":{\"message\":\"out of memory\"}}\n\n",
            ]),
        ),
        (
            "not-utf8",
            [one.as_bytes(), b"data: \xff\xfe\x00\n\n", DONE.as_bytes()].concat(),
        ),
        (
            "fields",
            text(&["event: x\nid: 1\nretry: 9\n", &one, "data\n\n", DONE]),
        ),
    ]
}

/// A call of a client that asks for usage, or does not.
fn call(case: &str, asks: bool) -> Vec<u8> {
    let options = if asks {
        r#","stream_options":{"include_usage":true}"#
    } else {
        ""
    };
    let body = format!(r#"{{"model":"{case}","stream":true{options},"messages":[]}}"#);
    post("/v1/chat/completions", &["x-workload-app: w"], &body)
}

#[test]
fn strange_streams_pass_byte_for_byte() {
    let upstream = Upstream::start(|_, seen| {
        let case = case(seen);
        let stream = streams().into_iter().find(|(name, _)| *name == case);
        vec![Step::Send(events(&stream.expect("a case").1))]
    });
    let gate = Gate::start(&one(upstream.address), &[]);
    let mut connection = Connection::open(gate.data);
    let mut calls = 0;
    for asks in [true, false] {
        for (case, stream) in streams() {
            let response = connection.call(&call(case, asks));
            calls += 1;
            assert_eq!(
                (response.status, response.whole),
                (200, true),
                "{case}, {asks}"
            );
            assert!(
                response.body == stream,
                "{case}, asks {asks}: other bytes than were sent"
            );
        }
    }
    let records = gate.records(calls);
    assert_eq!(records.len(), calls);
    for record in records {
        let named = |(name, _): &(&str, Vec<u8>)| record["model"] == *name;
        let (name, stream) = streams().into_iter().find(named).expect("a case");
        let is_told = String::from_utf8_lossy(&stream).contains("[DONE]");
        // Whoever reads one that never tells its end has half an answer.
        let (outcome, code) = match (name, is_told) {
            ("error", _) => ("failed", "upstream_error_event"),
            (_, true) => ("completed", ""),
            (_, false) => ("failed", "upstream_cut"),
        };
        assert_eq!(record["outcome"], outcome, "{record}");
        assert_eq!(
            record["code"].as_str().unwrap_or_default(),
            code,
            "{record}"
        );
    }
}

#[test]
fn usage_in_a_last_event_without_its_blank_line_still_counts() {
    let upstream = Upstream::start(|_, _| {
        let usage = usage_event(&counts(11, 5));
        let stream = [&delta("one"), usage.trim_end()].concat();
        vec![Step::Send(events(stream.as_bytes()))]
    });
    let gate = Gate::start(&one(upstream.address), &[]);
    for (n, asks) in [true, false].into_iter().enumerate() {
        let name = format!("case{n}");
        assert_eq!(gate.call(&call(&name, asks)).status, 200);
        let record = record(&gate, n + 1, &name);
        assert_eq!(record["completion_tokens"], 5, "{record}");
        assert_eq!(record["completion_source"], "reported", "{record}");
    }
}

#[test]
fn usage_after_an_event_too_long_to_inspect_still_counts() {
    let upstream = Upstream::start(|_, _| {
        let huge = delta(&"y".repeat(2 << 20));
        let usage = usage_event(&counts(11, 5));
        vec![Step::Send(events(
            [huge.as_str(), &usage, DONE].concat().as_bytes(),
        ))]
    });
    let gate = Gate::start(&one(upstream.address), &[]);
    let response = gate.call(&call("m", false));
    assert_eq!(
        response.body.len(),
        delta("").len() + (2 << 20) + DONE.len()
    );
    let record = record(&gate, 1, "m");
    assert_eq!(record["prompt_tokens"], 11);
    assert_eq!(record["completion_source"], "reported");
}
