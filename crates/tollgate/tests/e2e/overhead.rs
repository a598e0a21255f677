//! The gate's overhead excludes the time of the upstream and of the client.

use std::time::Duration;

use testing::found;

use crate::harness::{Connection, Gate, Step, Upstream, chat, post};

const HEAD: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
const PAUSE: Duration = Duration::from_millis(400);

#[test]
fn waiting_for_the_first_event_is_not_gate_overhead() {
    let upstream = Upstream::start(|_, _| {
        let event =
            "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"x\"}}]}\n\ndata: [DONE]\n\n";
        let body = format!("{:x}\r\n{event}\r\n0\r\n\r\n", event.len());
        vec![
            Step::Send(HEAD.into()),
            Step::Sleep(PAUSE),
            Step::Send(body.into()),
        ]
    });
    let config = format!(
        "backends: {{ up: {{ url: \"http://{}/v1\" }} }}\nroutes: [ {{ workload: w, backend: up }} ]\n",
        upstream.address
    );
    let gate = Gate::start(&config, &[]);
    let request = post(
        "/v1/chat/completions",
        &["x-workload-app: w"],
        &chat("m", true),
    );
    let mut calls = 0;
    // Where the gate stands still for so long, that counts too, and another call is made.
    found("the gate's own time is less than the upstream's", || {
        assert_eq!(Connection::open(gate.data).call(&request).status, 200);
        calls += 1;
        let record = gate.records(calls).pop().expect("a record");
        let us = |name: &str| Duration::from_micros(record[name].as_u64().expect("a time"));
        assert!(us("first_byte_us") >= PAUSE, "{record}");
        println!("{record}");
        (us("own_us") < PAUSE / 2).then_some(())
    });
}
