//! U1: upstream responses that break.
//!
//! Invariant: received bytes are forwarded, and missing ones are not invented: no final chunk, no `[DONE]`.

use super::{assert_error, call, case, one, record};
use crate::harness::answer::{
    COMPLETION, DONE, LAST_CHUNK, chunk, delta, events_head, usage_event,
};
use crate::harness::{Connection, Gate, Response, Signal, Step, Upstream};

/// The chunks of a stream up to where it breaks, by case.
fn chunks(case: &str) -> Vec<String> {
    let whole = delta("one");
    match case {
        "after-headers" => vec![],
        "mid-event" => vec![whole, delta("two")[..30].to_owned()],
        "mid-usage" => vec![whole, usage_event("{\"prompt_tokens\":4,")],
        _ => vec![whole.clone(), whole],
    }
}

const CASES: [&str; 4] = ["after-headers", "mid-event", "mid-usage", "before-done"];

/// An upstream whose nth answer breaks when the client has what came before.
struct Breaking {
    upstream: Upstream,
    seen: [Signal; CASES.len()],
}

impl Breaking {
    fn start(end: Step) -> Self {
        let seen: [Signal; CASES.len()] = Default::default();
        let until = seen.clone();
        let upstream = Upstream::start(move |n, request| {
            let chunks = chunks(&case(request)).into_iter();
            let chunks = chunks.flat_map(|part| chunk(part.as_bytes()));
            vec![
                Step::Send(events_head().into_iter().chain(chunks).collect()),
                Step::Until(until[n].clone()),
                end.clone(),
            ]
        });
        Self { upstream, seen }
    }

    /// The nth call. A head alone is taken back while nobody has it, and an event that is not whole is sent on at the end.
    fn call(&self, gate: &Gate, n: usize, case: &str) -> Response {
        let mut connection = Connection::open(gate.data);
        connection.send(&call(case, true));
        let mark = if chunks(case).is_empty() {
            "\r\n\r\n".to_owned()
        } else {
            delta("one")
        };
        while !String::from_utf8_lossy(connection.unread()).contains(&mark) {
            assert!(connection.more(), "what the upstream has sent comes");
        }
        self.seen[n].give();
        connection.response()
    }
}

#[test]
fn a_broken_stream_is_visibly_incomplete() {
    for end in [Step::Reset, Step::Close] {
        let breaking = Breaking::start(end.clone());
        let gate = Gate::start(&one(breaking.upstream.address), &[]);
        for (n, case) in CASES.into_iter().enumerate() {
            let response = breaking.call(&gate, n, case);
            let sent = chunks(case).concat();
            assert_eq!(response.status, 200, "{case}, {end:?}");
            assert!(!response.whole, "{case}, {end:?}: a made-up end");
            assert_eq!(response.text(), sent, "{case}, {end:?}");
            let record = record(&gate, n + 1, case);
            assert_eq!(record["outcome"], "failed", "{record}");
            assert_eq!(record["code"], "upstream_cut", "{record}");
            assert_eq!(record["completion_source"], "estimated", "{record}");
        }
        assert_eq!(gate.records(CASES.len()).len(), CASES.len());
    }
}

#[test]
fn a_stream_with_an_error_event_passes_whole_and_is_recorded_as_failed() {
    let error_events = [
        "data: {\"error\":{\"message\":\"out of memory\",\"code\":500}}\n\n",
        "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\"}}\n\n",
    ];
    let upstream = Upstream::start(move |_, seen| {
        let mut steps = vec![Step::Send(events_head())];
        steps.push(Step::Send(chunk(delta("one").as_bytes())));
        let nth: usize = case(seen).parse().expect("a number");
        steps.push(Step::Send(chunk(error_events[nth].as_bytes())));
        steps.push(Step::Send(LAST_CHUNK.to_vec()));
        steps
    });
    let gate = Gate::start(&one(upstream.address), &[]);
    for (n, event) in error_events.into_iter().enumerate() {
        let response = gate.call(&call(&n.to_string(), true));
        assert!(response.whole && response.status == 200);
        assert_eq!(response.text(), [&delta("one"), event].concat());
        let record = record(&gate, n + 1, &n.to_string());
        assert_eq!(record["outcome"], "failed", "{record}");
        assert_eq!(record["code"], "upstream_error_event", "{record}");
        assert_eq!(record["completion_source"], "estimated", "{record}");
    }
}

#[test]
fn a_break_after_the_head_is_never_retried() {
    let bad = Breaking::start(Step::Reset);
    let good =
        Upstream::start(|_, _| vec![Step::Send(crate::harness::answer::json(200, COMPLETION))]);
    let config = format!(
        "backends: {{ bad: {{ url: http://{}/v1 }}, good: {{ url: http://{}/v1 }} }}\n\
         routes: [ {{ workload: w, backend: [bad, good] }} ]\n",
        bad.upstream.address, good.address
    );
    let gate = Gate::start(&config, &[]);
    let response = bad.call(&gate, 0, "mid-event");
    assert!(!response.whole);
    assert_eq!(
        good.seen().len(),
        0,
        "what the client has seen cannot be taken back"
    );
    assert_eq!(gate.records(1)[0]["attempts"], 1);
}

#[test]
fn a_reset_before_the_head_is_a_typed_error() {
    let upstream = Upstream::start(|_, seen| match case(seen).as_str() {
        "at-once" => vec![Step::Reset],
        "fin" => vec![Step::Close],
        _ => vec![
            Step::Send(b"HTTP/1.1 200 OK\r\ncontent-ty".to_vec()),
            Step::Close,
        ],
    });
    let gate = Gate::start(&one(upstream.address), &[]);
    for (n, case) in ["at-once", "fin", "mid-head"].into_iter().enumerate() {
        let response = gate.call(&call(case, true));
        assert_error(&response, 502, "upstream_reset", case);
        let record = record(&gate, n + 1, case);
        assert_eq!(record["outcome"], "failed");
        assert_eq!(record["code"], "upstream_reset");
        // Its request was sent whole, so it may have run.
        assert_eq!(record["prompt_source"], "estimated", "{record}");
        assert_eq!(record["estimate_reason"], "upstream_reset", "{record}");
    }
    assert_eq!(upstream.seen().len(), 3, "each was tried once");
}

#[test]
fn a_body_shorter_than_declared_is_incomplete() {
    let upstream = Upstream::start(|_, _| {
        let head =
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 900\r\n\r\n";
        vec![
            Step::Send(format!("{head}{COMPLETION}").into()),
            Step::Close,
        ]
    });
    let gate = Gate::start(&one(upstream.address), &[]);
    let response = gate.call(&call("m", false));
    assert!(!response.whole);
    assert_eq!(response.text(), COMPLETION);
    assert_eq!(record(&gate, 1, "m")["code"], "upstream_cut");
}

#[test]
fn malformed_chunks_make_a_response_incomplete() {
    let seen = Signal::default();
    let until = seen.clone();
    let upstream = Upstream::start(move |_, _| {
        let good = chunk(delta("one").as_bytes());
        let bad = b"zz\r\nnot a chunk\r\n".to_vec();
        let end = [chunk(DONE.as_bytes()), LAST_CHUNK.to_vec()].concat();
        vec![
            Step::Send([events_head(), good].concat()),
            Step::Until(until.clone()),
            Step::Send([bad, end].concat()),
        ]
    });
    let gate = Gate::start(&one(upstream.address), &[]);
    let mut connection = Connection::open(gate.data);
    connection.send(&call("m", true));
    while !String::from_utf8_lossy(connection.unread()).contains("one") {
        assert!(connection.more(), "the good chunk comes");
    }
    seen.give();
    let response = connection.response();
    assert!(!response.whole);
    assert_eq!(response.text(), delta("one"));
    assert_eq!(record(&gate, 1, "m")["code"], "upstream_cut");
}
