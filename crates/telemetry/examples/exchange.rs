//! What policy and telemetry weigh in one exchange: build with `--release` and count with
//! `valgrind --tool=callgrind --toggle-collect=exchange::weighed exchange [file to log to]`.
//!
//! Invariant: everything inside [`weighed`] is what a worker calls of both for one unary exchange
//! that goes well, with limits, prices and an access log; the head and the body were read before.
//! Not here: reading them (`wire`), waiting and copying (`proxy`).

#[path = "../src/sample.rs"]
#[expect(dead_code, reason = "records are made here by policy")]
mod sample;

use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use policy::clock::Mono;
use policy::exchange::{Env, Exchange, Verdict};
use policy::levels::Levels;
use policy::price::{Pico, Price, Rates};
use policy::record::{Gauge, Sink};
use policy::shard::Shard;
use policy::snapshot::Snapshot;
use policy::wire::call::{CallHead, CallScanner};
use policy::wire::head::{RequestHead, ResponseHead};
use policy::wire::meter::Meter;
use telemetry::{AccessLog, Target, WorkerMetrics};

const EXCHANGES: i64 = 1000;
const BODY: &str = r#"{"model":"asked","messages":[],"max_tokens":100,"temperature":0.7}"#;

const ANSWER: &[u8] =
    br#"{"usage":{"prompt_tokens":245,"completion_tokens":64,"total_tokens":309}}"#;

fn main() {
    let target = std::env::args().nth(1);
    let log = target.map(|path| AccessLog::start(Target::File(path.into())));
    let log = log.map(|started| started.expect("the file can be opened for appending"));
    let snapshot = snapshot();
    let mut worker = Worker {
        shard: Shard::new(&snapshot, None, 1),
        facts: Box::new(WorkerMetrics::new(log.as_ref().map(AccessLog::lines))),
        levels: Levels::new(&snapshot),
        snapshot,
    };
    let (head, response) = (head(), response());
    for n in 0..=EXCHANGES {
        let call = call();
        if n == 0 {
            worker.exchange(&head, call, &response, Mono(n));
        } else {
            weighed(&mut worker, black_box(&head), call, &response, Mono(n));
        }
    }
    drop(worker);
    let lost = log.as_ref().map_or(0, AccessLog::dropped);
    println!("{EXCHANGES} exchanges, {lost} lines lost");
}

#[inline(never)]
fn weighed(
    worker: &mut Worker,
    head: &RequestHead,
    call: CallHead,
    response: &ResponseHead,
    now: Mono,
) {
    worker.exchange(head, call, response, now);
}

/// What a worker has of both.
struct Worker {
    snapshot: Snapshot,
    levels: Levels,
    shard: Shard,
    facts: Box<dyn Sink>,
}

impl Worker {
    fn exchange(
        &mut self,
        head: &RequestHead,
        mut call: CallHead,
        response: &ResponseHead,
        now: Mono,
    ) {
        self.facts.gauge(Gauge::Exchanges, 1);
        let env = &mut Env {
            snapshot: &self.snapshot,
            levels: &self.levels,
            shard: &mut self.shard,
            now,
        };
        let unix_ms = 1_785_585_600_123 + now.0.unsigned_abs();
        let peer = std::net::Ipv4Addr::LOCALHOST.into();
        let mut exchange = Exchange::begin(head, peer, unix_ms, env);
        let _read = exchange.read_head(head, &peer.into(), Some(1024), false, env);
        let _read = exchange.read_body(1024, env);
        let _entered = exchange.end_body(head, Some(&mut call), &[], env);
        let is_sent = matches!(exchange.entered(env), Verdict::Attempt(_));
        assert!(is_sent, "a good call");
        exchange.sent(true);
        exchange
            .timing
            .attempted(Some(now), now.after(Duration::from_nanos(376_543)));
        let Verdict::Relay(relay) = exchange.response_head(response, env) else {
            panic!("a good response");
        };
        let (attempt, _) = exchange.attempt_record().expect("an attempt");
        self.facts.attempt(env.snapshot, &attempt);
        let mut meter = Meter::new(relay.form);
        meter.pass(ANSWER, true);
        exchange.forwarded(ANSWER.len() as u64);
        let out = now.after(Duration::from_nanos(412_345));
        exchange.timing.first_byte(out, true);
        let finish = exchange.sent_whole(false);
        assert!(matches!(finish, Verdict::Finish));
        env.now = out;
        exchange.finish(&mut meter, false, env);
        self.facts.exchange(env.snapshot, exchange.record());
        self.facts.gauge(Gauge::Exchanges, -1);
    }
}

/// The sample's, with room in its limits and with a price; the client's model goes upstream.
fn snapshot() -> Snapshot {
    let mut s = sample::snapshot("0123456789abcdef", &["race"]);
    let per_token = |pico| Pico(pico);
    let price = Price {
        id: Arc::from("p"),
        whose: "".into(),
        currency: Arc::from("USD"),
        request: Pico(0),
        rates: Rates::flat(per_token(100_000), per_token(400_000)),
        tiers: Vec::new(),
    };
    s.prices.insert("asked", None, price);
    for route in &mut s.routes {
        route.model = None;
        route.models.clear();
    }
    for limit in &mut s.limits {
        limit.rate = policy::limit::Rate {
            amount: 1_000_000_000_000,
            per: Duration::from_secs(60),
            burst: 1_000_000_000_000,
        };
    }
    s
}

/// What a client of the OpenAI API sends.
fn head() -> RequestHead {
    let mut head = RequestHead::new();
    head.set_method("POST").expect("a method");
    head.set_target("/v1/chat/completions").expect("a target");
    for (name, value) in [
        ("host", "gate.example"),
        ("accept", "application/json"),
        ("content-type", "application/json"),
        ("user-agent", "OpenAI/Python 3.52.0"),
        ("x-workload-app", "race"),
        ("authorization", "Bearer client-key"),
        ("content-length", "1024"),
    ] {
        let pushed = head.fields.push(name.as_bytes(), value.as_bytes());
        pushed.expect("a field");
    }
    head
}

/// What an engine answers.
fn response() -> ResponseHead {
    let mut head = ResponseHead {
        status: 200,
        ..ResponseHead::default()
    };
    let pushed = head.fields.push(b"content-type", b"application/json");
    pushed.expect("a field");
    head
}

fn call() -> CallHead {
    let mut scanner = CallScanner::new();
    scanner.push(BODY.as_bytes()).expect("JSON");
    scanner.finish().expect("a call").clone()
}
