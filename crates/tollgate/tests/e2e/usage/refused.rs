//! Providers that refuse calls which ask for usage.

use crate::harness::answer::{DONE, counts, delta, events, json, usage_event};
use crate::harness::{Connection, Gate, Seen, Step, Upstream, chat, post};
use crate::upstream_faults::{case, record};

const STREAM_OPTIONS: &str = r#"{"error":{"message":"Extra inputs are not permitted: body.stream_options","type":"invalid_request_error"}}"#;
const OTHER: &str =
    r#"{"error":{"message":"temperature must be below 2","type":"invalid_request_error"}}"#;

fn asks(seen: &Seen) -> bool {
    seen.json()["stream_options"].is_object()
}

/// Takes streams that do not ask for their usage; refuses others as the model's name says.
fn provider() -> Upstream {
    Upstream::start(|_, seen| {
        let case = case(seen);
        let answer = match case.split('-').next() {
            Some("400") if asks(seen) => json(400, STREAM_OPTIONS),
            Some("422") if asks(seen) => json(422, STREAM_OPTIONS),
            Some("other") => json(400, OTHER),
            // It has more to say against the call than that.
            Some("both") => json(400, if asks(seen) { STREAM_OPTIONS } else { OTHER }),
            _ if asks(seen) => events(
                [&delta("Hi"), &usage_event(&counts(9, 4)), DONE]
                    .concat()
                    .as_bytes(),
            ),
            _ => events((delta("Hi") + DONE).as_bytes()),
        };
        vec![Step::Send(answer)]
    })
}

/// A gate with one worker, which remembers for itself, and this member of its backend.
fn gate(upstream: &Upstream, member: &str) -> Gate {
    let config = format!(
        "workers: 1\nbackends: {{ up: {{ url: http://{}/v1{member} }} }}\n\
         routes: [ {{ workload: w, backend: up }} ]\n",
        upstream.address
    );
    Gate::start(&config, &[])
}

fn stream(model: &str) -> Vec<u8> {
    post(
        "/v1/chat/completions",
        &["x-workload-app: w"],
        &chat(model, true),
    )
}

/// Which of the calls that arrived asked for usage.
fn asked(upstream: &Upstream) -> Vec<bool> {
    upstream.seen().iter().map(asks).collect()
}

#[test]
fn a_provider_that_refuses_stream_options_is_sent_the_call_without_them_and_is_not_asked_again() {
    for status in ["400", "422"] {
        let upstream = provider();
        let gate = gate(&upstream, "");
        let mut connection = Connection::open(gate.data);
        let model = format!("{status}-1");
        // One such call may be refused for something of its own: three in a row are not.
        for n in 1..=5 {
            let response = connection.call(&stream(&model));
            assert_eq!(
                (response.status, response.whole),
                (200, true),
                "{}",
                response.text()
            );
            assert_eq!(response.text(), delta("Hi") + DONE);
            let record = gate.records(n).pop().expect("a record");
            assert_eq!(record["completion_source"], "estimated", "{record}");
            assert_eq!(record["outcome"], "completed", "{record}");
            assert_eq!(record["attempts"], if n <= 3 { 2 } else { 1 }, "{record}");
        }
        let twice = [true, false];
        let expected = [&twice[..], &twice, &twice, &[false], &[false]].concat();
        assert_eq!(asked(&upstream), expected, "{status}");
        // Of another model nobody has learned it.
        let other = connection.call(&stream(&format!("{status}-2")));
        assert_eq!(other.status, 200);
        assert_eq!(asked(&upstream)[8..], twice);
    }
}

#[test]
fn a_refusal_that_names_something_else_passes_and_nothing_is_sent_twice() {
    let upstream = provider();
    let gate = gate(&upstream, "");
    let mut connection = Connection::open(gate.data);
    let response = connection.call(&stream("other-1"));
    assert_eq!((response.status, response.text().as_str()), (400, OTHER));
    assert_eq!(
        response.header("content-length"),
        Some(&*OTHER.len().to_string())
    );
    // What was refused for something else as well says nothing of the provider.
    let response = connection.call(&stream("both-1"));
    assert_eq!((response.status, response.text().as_str()), (400, OTHER));
    let response = connection.call(&stream("good-1"));
    assert_eq!(response.text(), delta("Hi") + DONE);
    assert_eq!(asked(&upstream), [true, true, false, true]);
    assert_eq!(record(&gate, 3, "good-1")["prompt_tokens"], 9);
}

#[test]
fn what_the_client_asks_for_itself_is_its_own_to_be_refused() {
    let upstream = provider();
    let gate = gate(&upstream, "");
    let body =
        r#"{"model":"400-1","stream":true,"stream_options":{"include_usage":true},"messages":[]}"#;
    let response = gate.call(&post("/v1/chat/completions", &["x-workload-app: w"], body));
    assert_eq!(
        (response.status, response.text().as_str()),
        (400, STREAM_OPTIONS)
    );
    assert_eq!(asked(&upstream), [true]);
}

#[test]
fn a_backend_says_whether_its_streams_are_asked() {
    let upstream = provider();
    let gate = gate(&upstream, ", ask_usage: never");
    let response = gate.call(&stream("good-1"));
    assert_eq!(response.text(), delta("Hi") + DONE);
    assert_eq!(asked(&upstream), [false]);
    let upstream = provider();
    let gate = self::gate(&upstream, ", ask_usage: always");
    let response = gate.call(&stream("400-1"));
    assert_eq!(
        (response.status, response.text().as_str()),
        (400, STREAM_OPTIONS)
    );
    assert_eq!(asked(&upstream), [true]);
}
