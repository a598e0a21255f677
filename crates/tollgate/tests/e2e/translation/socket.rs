//! Calls over a WebSocket of the Responses API: each admitted, held, settled and recorded by itself.
//!
//! Not here: frames (`wire::websocket`).

use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::{Value, json};
use testing::eventually;

use super::engine;
use crate::harness::answer::{chunk, events_head};
use crate::harness::{Gate, Sdk, Step, Upstream, chat, post};

#[test]
fn the_openai_sdk_calls_over_a_websocket_and_each_call_is_admitted_and_metered() {
    let engine = engine();
    let config = format!(
        "backends: {{ up: {{ url: http://{}/v1, dialect: openai }} }}\n\
         routes:\n  - {{ workload: open, match: {{ model: m }}, backend: up }}\n  \
         - {{ workload: tight, match: {{ model: m }}, backend: up, limits: [ {{ requests: 2, per: 1h }} ] }}\n",
        engine.addr()
    );
    let gate = Gate::start(&config, &[]);
    let input = json!({ "base_url": format!("http://{}", gate.data) });
    assert_eq!(
        Sdk::Python.run("responses_socket", &input),
        json!([
            "streamed",
            "goes_on",
            "loop_of_tools",
            "errors",
            "limited",
            "unknown",
            "closed"
        ])
    );
    let sockets = |r: &Value| r["operation"] == "responses_socket" && r["status"] == 101;
    eventually("the connections have their records", || {
        gate.records(1).iter().filter(|r| sockets(r)).count() == 3
    });
    let records = gate.records(1);
    let well = |r: &&Value| r["operation"] == "responses" && r["status"] == 200;
    let calls: Vec<&Value> = records.iter().filter(well).collect();
    assert!(calls.iter().all(|r| r["prompt_source"] == "reported"));
    assert!(calls.iter().all(|r| r["streamed"] == true));
    let stats = engine.stats();
    let sum = |name: &str| calls.iter().filter_map(|r| r[name].as_u64()).sum::<u64>();
    assert_eq!(
        (sum("prompt_tokens"), sum("completion_tokens")),
        (stats.prompt_tokens, stats.generation_tokens)
    );
    let limited = |r: &&Value| r["code"] == "rate_limit_exceeded";
    assert_eq!(records.iter().filter(limited).count(), 1, "{records:?}");
}

/// A connection whose frames are written by hand.
struct Socket(TcpStream);

impl Socket {
    fn open(gate: &Gate) -> Self {
        let mut tcp = TcpStream::connect(gate.data).expect("a connection");
        let request = "GET /v1/responses HTTP/1.1\r\nhost: a\r\nx-workload-app: open\r\nconnection: upgrade\r\n\
                       upgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
        tcp.write_all(request.as_bytes()).expect("it is taken");
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            tcp.read_exact(&mut byte).expect("a head");
            head.extend(byte);
        }
        assert!(
            head.starts_with(b"HTTP/1.1 101 "),
            "{}",
            head.escape_ascii()
        );
        Self(tcp)
    }

    /// A frame as a client sends it, with a mask that changes nothing.
    fn frame(opcode: u8, payload: &[u8]) -> Vec<u8> {
        let mut frame = vec![0x80 | opcode];
        // In the shortest form, as RFC 6455 has it.
        let length = payload.len();
        if let Ok(short @ ..126) = u8::try_from(length) {
            frame.push(0x80 | short);
        } else if let Ok(longer) = u16::try_from(length) {
            frame.push(0x80 | 126);
            frame.extend(longer.to_be_bytes());
        } else {
            frame.push(0x80 | 127);
            frame.extend((length as u64).to_be_bytes());
        }
        frame.extend([0; 4]);
        frame.extend(payload);
        frame
    }

    fn say(&mut self, event: &Value) {
        let frame = Self::frame(1, event.to_string().as_bytes());
        self.0.write_all(&frame).expect("it is taken");
    }

    /// The next frame: its opcode and what it carries.
    fn hear(&mut self) -> (u8, Vec<u8>) {
        let mut head = [0; 2];
        self.0.read_exact(&mut head).expect("a frame");
        let mut long = vec![
            0;
            match head[1] {
                126 => 2,
                127 => 8,
                _ => 0,
            }
        ];
        self.0.read_exact(&mut long).expect("its length");
        let length = match &*long {
            [] => usize::from(head[1]),
            digits => digits
                .iter()
                .fold(0, |sum, digit| sum << 8 | usize::from(*digit)),
        };
        let mut payload = vec![0; length];
        self.0.read_exact(&mut payload).expect("what it carries");
        (head[0] & 0x0f, payload)
    }

    fn event(&mut self) -> Value {
        let (opcode, payload) = self.hear();
        assert_eq!(opcode, 1, "{}", payload.escape_ascii());
        serde_json::from_slice(&payload).expect("JSON")
    }
}

fn create(input: &str) -> Value {
    json!({ "type": "response.create", "model": "m", "input": input })
}

fn served_by(upstream: &Upstream, bounds: &str) -> Gate {
    let config = format!(
        "workers: 1\nbounds: {bounds}\n\
         backends: {{ up: {{ url: http://{}/v1, dialect: responses }}, chat: {{ url: http://{}/v1 }} }}\n\
         routes:\n  - {{ workload: open, match: {{ model: m }}, backend: up }}\n  \
         - {{ workload: open, match: {{ model: c }}, backend: chat }}\n",
        upstream.address, upstream.address
    );
    Gate::start(&config, &[])
}

#[test]
fn a_long_message_is_served_in_its_order_and_goes_on_from_the_response_before_it() {
    let engine = engine();
    let gate = Gate::start(
        &format!(
            "backends: {{ up: {{ url: http://{}/v1, dialect: openai }} }}\n\
             routes:\n  - {{ workload: open, match: {{ model: m }}, backend: up }}\n",
            engine.addr()
        ),
        &[],
    );
    let mut socket = Socket::open(&gate);
    // Longer than what a worker looks through itself.
    let long = "x".repeat(80_000);
    let (mut previous, mut prompts) = (Value::Null, Vec::new());
    for input in ["hi", &long, "and?"] {
        socket.say(&json!({
            "type": "response.create", "model": "m", "input": input, "max_output_tokens": 4, "previous_response_id": previous,
        }));
        // What is said behind it waits.
        socket.say(&json!({ "type": "nonsense" }));
        let last = loop {
            let event = socket.event();
            match event["type"].as_str() {
                Some("response.completed" | "response.incomplete") => break event,
                _ => assert_ne!(event["type"], "error", "{event}"),
            }
        };
        assert_eq!(socket.event()["error"]["code"], "unknown_event");
        previous = last["response"]["id"].clone();
        prompts.push(last["response"]["usage"]["input_tokens"].as_u64());
    }
    assert!(
        prompts.is_sorted_by(|a, b| a.is_some() && a < b),
        "{prompts:?}"
    );
}

#[test]
fn what_idle_connections_sent_takes_no_room_from_others() {
    let upstream = Upstream::start(|_, _| {
        vec![Step::Send(crate::harness::answer::json(
            200,
            crate::harness::answer::COMPLETION,
        ))]
    });
    let gate = served_by(&upstream, "{ body: 1MiB, bodies: 2MiB }");
    let mut idle: Vec<Socket> = (0..6).map(|_| Socket::open(&gate)).collect();
    for socket in &mut idle {
        let long = "x".repeat(900_000);
        socket.say(&json!({ "type": "nonsense", "input": long }));
        assert_eq!(socket.event()["error"]["code"], "unknown_event");
    }
    let body = chat("c", false).replace("hi", &"x".repeat(900_000));
    let response = gate.call(&post(
        "/v1/chat/completions",
        &["x-workload-app: open"],
        &body,
    ));
    assert_eq!(response.status, 200, "{}", response.text());
    // A message that is refused as a call leaves nothing either: no memory stays with its connection.
    let before = gate.resident_kib();
    for socket in &mut idle {
        socket.say(
            &json!({ "type": "response.create", "model": "other", "input": "x".repeat(900_000) }),
        );
        assert_eq!(socket.event()["type"], "error");
    }
    let grown = gate.resident_kib() - before;
    assert!(grown < 4 << 10, "{grown} KiB");
    drop(idle);
}

#[test]
fn an_event_without_an_end_ends_its_call_with_an_error() {
    let line = [b"data: ".as_slice(), &[b'x'; 65_000], b"\n"].concat();
    let upstream = Upstream::start(move |_, _| {
        vec![
            Step::Send(events_head()),
            Step::Repeat(chunk(&line), 2_000),
            Step::silence(),
        ]
    });
    let gate = served_by(&upstream, "{ body: 8MiB, bodies: 64MiB }");
    let mut socket = Socket::open(&gate);
    socket.say(&create("hi"));
    let event = socket.event();
    assert_eq!(event["error"]["code"], "upstream_bad_response", "{event}");
    let records = gate.records(1);
    assert_eq!(records[0]["code"], "event_too_long", "{records:?}");
    // The connection goes on.
    socket
        .0
        .write_all(&Socket::frame(9, b"there?"))
        .expect("it is taken");
    assert_eq!(socket.hear(), (10, b"there?".to_vec()));
}

#[test]
fn a_fault_of_the_clients_while_its_call_runs_ends_the_connection_by_its_code() {
    let upstream = Upstream::start(|_, _| vec![Step::silence()]);
    let gate = served_by(&upstream, "{}");
    let mut socket = Socket::open(&gate);
    socket.say(&create("hi"));
    eventually("the call runs", || upstream.count() == 1);
    let written = socket.0.write_all(&Socket::frame(2, b"bytes"));
    written.expect("it is taken");
    assert_eq!(socket.hear(), (8, 1003_u16.to_be_bytes().to_vec()));
}

#[test]
fn a_message_that_is_not_ended_in_time_ends_the_connection() {
    let upstream = Upstream::start(|_, _| vec![Step::silence()]);
    let gate = served_by(&upstream, "{ body_idle: 1s }");
    let mut socket = Socket::open(&gate);
    let frame = Socket::frame(1, &[b'x'; 100]);
    let half = frame.get(..50).expect("it is longer");
    socket.0.write_all(half).expect("it is taken");
    assert_eq!(socket.hear(), (8, 1008_u16.to_be_bytes().to_vec()));
}
