//! U5: streams whose head does not say that they are: the first bytes do.
//!
//! Not here: answers that are neither JSON nor events (`invalid_answers`), broken streams (`broken_streams`).

use super::{assert_error, call, case, one, record};
use crate::harness::answer::{DONE, LAST_CHUNK, chunk, counts, delta, usage_event};
use crate::harness::{Connection, Gate, Step, Upstream};

/// What the upstream's head says, where it says anything.
const TYPES: [(&str, &str); 5] = [
    ("missing", ""),
    ("empty", "content-type:\r\n"),
    ("text", "content-type: text/plain; charset=utf-8\r\n"),
    ("bytes", "content-type: application/octet-stream\r\n"),
    ("json", "content-type: application/json\r\n"),
];

fn head(case: &str) -> String {
    let (_, line) = TYPES
        .iter()
        .find(|(name, _)| case.starts_with(name))
        .expect("a case");
    format!("HTTP/1.1 200 OK\r\n{line}transfer-encoding: chunked\r\n\r\n")
}

fn steps(head: String, body: &str, piece: usize) -> Vec<Step> {
    let mut bytes = head.into_bytes();
    for part in body.as_bytes().chunks(piece) {
        bytes.extend(chunk(part));
    }
    bytes.extend_from_slice(LAST_CHUNK);
    // The head comes alone, and so do the first bytes.
    let rest = bytes.split_off(
        bytes
            .windows(4)
            .position(|w| w == b"\r\n\r\n")
            .expect("a head")
            + 4,
    );
    let mut steps = vec![Step::Send(bytes)];
    steps.extend(rest.chunks(7).take(9).map(|part| Step::Send(part.to_vec())));
    steps.push(Step::Send(rest.iter().skip(63).copied().collect()));
    steps
}

#[test]
fn a_stream_that_was_asked_for_is_read_as_one_whatever_its_head_calls_it() {
    let body = |opening: &str| [opening, &delta("Hi"), &usage_event(&counts(9, 4)), DONE].concat();
    let openings = ["", ": PROCESSING\n\n", "\r\n", "\u{feff}"];
    let upstream = Upstream::start(move |_, seen| {
        let case = case(seen);
        let nth: usize = case
            .rsplit('-')
            .next()
            .expect("a number")
            .parse()
            .expect("a number");
        steps(head(&case), &body(openings[nth]), 1 + nth)
    });
    let gate = Gate::start(&one(upstream.address), &[]);
    let mut connection = Connection::open(gate.data);
    let mut calls = 0;
    for (name, _) in TYPES {
        for (nth, opening) in openings.iter().enumerate() {
            calls += 1;
            let case = format!("{name}-{nth}");
            let response = connection.call(&call(&case, true));
            assert_eq!(
                (response.status, response.whole),
                (200, true),
                "{case}: {}",
                response.text()
            );
            assert_eq!(
                response.header("content-type"),
                Some("text/event-stream"),
                "{case}"
            );
            assert_eq!(
                response.text(),
                [opening, &*delta("Hi"), DONE].concat(),
                "{case}"
            );
            let record = record(&gate, calls, &case);
            assert_eq!(
                (
                    &record["outcome"],
                    &record["streamed"],
                    &record["prompt_source"]
                ),
                (&"completed".into(), &true.into(), &"reported".into()),
                "{case}"
            );
            assert_eq!(
                (&record["prompt_tokens"], &record["completion_tokens"]),
                (&9.into(), &4.into()),
                "{case}"
            );
        }
    }
}

#[test]
fn what_begins_no_stream_is_what_its_head_calls_it_and_passes_or_is_refused_as_before() {
    let answers = |case: &str| match case.rsplit('-').next() {
        Some("json") => r#"{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":4}}"#,
        Some("page") => "<html>data: x</html>",
        Some("nothing") => "",
        _ => "database is down",
    };
    let upstream = Upstream::start(move |_, seen| {
        let case = case(seen);
        let answer = answers(&case);
        let head = head(&case).replace(
            "transfer-encoding: chunked",
            &format!("content-length: {}", answer.len()),
        );
        vec![Step::Send(head.into_bytes()), Step::Send(answer.into())]
    });
    let gate = Gate::start(&one(upstream.address), &[]);
    for (name, _) in TYPES {
        for what in ["json", "page", "nothing", "words"] {
            let case = format!("{name}-{what}");
            let response = gate.call(&call(&case, true));
            if name == "json" {
                assert_eq!(
                    (response.status, response.text().as_str()),
                    (200, answers(&case))
                );
                assert_eq!(response.header("content-type"), Some("application/json"));
                let length = answers(&case).len().to_string();
                assert_eq!(response.header("content-length"), Some(&*length), "{case}");
            } else {
                assert_error(&response, 502, "upstream_bad_response", &case);
            }
        }
    }
    // Who asked for one document gets one.
    let response = gate.call(&call("text-words", false));
    assert_error(&response, 502, "upstream_bad_response", "text-words");
}
