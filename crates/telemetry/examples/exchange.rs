//! What policy and telemetry weigh in one exchange: build with `--release` and count with
//! `valgrind --tool=callgrind --toggle-collect=exchange::weighed exchange [file to log to]`.
//!
//! Invariant: everything inside [`weighed`] is what a worker calls of both for one unary exchange
//! that goes well, with limits, prices and an access log; the head and the body were read before.
//! Not here: reading them (`wire`), waiting and copying (`proxy`).

#[path = "../src/sample.rs"]
#[expect(dead_code, reason = "records are made here as a worker makes them")]
mod sample;

use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use policy::attempt::Upstreams;
use policy::clock::Mono;
use policy::exchange::{Admitted, Decision, Hold, Opened, admit, open};
use policy::id::RouteId;
use policy::meter::Estimator;
use policy::price::{Pico, Price, Rates};
use policy::record::{AttemptRecord, Gauge, Record, Sink};
use policy::snapshot::Snapshot;
use policy::wire::call::{CallHead, CallScanner};
use policy::wire::head::RequestHead;
use telemetry::{AccessLog, Facts, Target};

const EXCHANGES: i64 = 1000;
const BODY: &str = r#"{"model":"asked","messages":[],"max_tokens":100,"temperature":0.7}"#;

fn main() {
    let target = std::env::args().nth(1);
    let log = target.map(|path| AccessLog::start(Target::File(path.into())));
    let log = log.map(|started| started.expect("the file can be opened for appending"));
    let snapshot = snapshot();
    let mut worker = Worker {
        upstreams: Upstreams::new(&snapshot, 1),
        facts: Box::new(Facts::new(log.as_ref().map(AccessLog::lines))),
        estimator: Estimator::default(),
        snapshot,
    };
    let (head, call) = (head(), call());
    for n in 0..=EXCHANGES {
        let record = Record {
            id: "3f0c9d5e7a1b4c2d8e6f0a1b2c3d4e5f".into(),
            model_asked: call.model.clone(),
            streamed: false,
            started_unix_ms: 1_785_585_600_123 + n.unsigned_abs(),
            client: Some(std::net::Ipv4Addr::LOCALHOST.into()),
            duration: Duration::from_nanos(412_345),
            first_byte: Some(Duration::from_nanos(398_765)),
            own: Some(Duration::from_nanos(18_765)),
            upstream: Some(Duration::from_nanos(376_543)),
            ..sample::completed(0)
        };
        if n == 0 {
            worker.exchange(&head, &call, record, Mono(n));
        } else {
            weighed(
                &mut worker,
                black_box(&head),
                black_box(&call),
                record,
                Mono(n),
            );
        }
    }
    drop(worker);
    let lost = log.as_ref().map_or(0, AccessLog::dropped);
    println!("{EXCHANGES} exchanges, {lost} lines lost");
}

#[inline(never)]
fn weighed(worker: &mut Worker, head: &RequestHead, call: &CallHead, record: Record, now: Mono) {
    worker.exchange(head, call, record, now);
}

/// What a worker has of both.
struct Worker {
    snapshot: Snapshot,
    upstreams: Upstreams,
    facts: Box<dyn Sink>,
    estimator: Estimator,
}

impl Worker {
    fn exchange(&mut self, head: &RequestHead, call: &CallHead, mut record: Record, now: Mono) {
        self.facts.gauge(Gauge::Exchanges, 1);
        let opened = self.open(head);
        let admitted = self.admit(opened, call, record.started_unix_ms, now);
        record.model_sent = admitted.model;
        self.attempt(admitted.route, now);
        self.settle(admitted.hold, &record, now);
        self.facts.exchange(&self.snapshot, &record);
        self.facts.gauge(Gauge::Exchanges, -1);
        std::mem::forget(record);
    }

    #[inline(never)]
    fn open(&self, head: &RequestHead) -> Opened {
        open(head, Some(1024), &self.snapshot).expect("a good head")
    }

    #[inline(never)]
    fn admit(&self, opened: Opened, call: &CallHead, began: u64, now: Mono) -> Admitted {
        let estimator = |_| self.estimator;
        match admit(
            opened,
            Some(call),
            1024,
            estimator,
            now,
            began,
            &self.snapshot,
        ) {
            Ok(Decision::Forward(admitted)) => admitted,
            refused => panic!("a good call: {refused:?}"),
        }
    }

    #[inline(never)]
    fn attempt(&mut self, route: RouteId, now: Mono) {
        let mut attempts = self.upstreams.begin(route);
        let endpoint = self
            .upstreams
            .next(&mut attempts, None, &self.snapshot, now);
        let endpoint = endpoint.expect("an endpoint");
        self.upstreams.observe(endpoint, Ok(200), now);
        let attempt = AttemptRecord {
            endpoint,
            result: Ok(200),
            retried: false,
        };
        self.facts.attempt(&self.snapshot, &attempt);
    }

    #[inline(never)]
    fn settle(&mut self, hold: Hold, record: &Record, now: Mono) {
        let charge = policy::price::charge(&self.snapshot, record);
        hold.settle(&record.tokens, charge, now, &self.snapshot);
        self.estimator.learn(1024, Some(245), Some(64));
    }
}

/// The sample's, with room in its limits and with a price; the client's model goes upstream.
fn snapshot() -> Snapshot {
    let mut s = sample::snapshot("0123456789abcdef", &["race"]);
    let per_token = |pico| Pico(pico);
    let price = Price {
        id: Arc::from("p"),
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
        limit.bucket = Arc::new(policy::limit::Bucket::new(policy::limit::Rate {
            amount: 1_000_000_000_000,
            per: Duration::from_secs(60),
            burst: 1_000_000_000_000,
        }));
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

fn call() -> CallHead {
    let mut scanner = CallScanner::new();
    scanner.push(BODY.as_bytes()).expect("JSON");
    scanner.finish().expect("a call")
}
