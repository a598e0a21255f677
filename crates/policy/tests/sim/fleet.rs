//! The run: events in order of virtual time, several workers that share only the snapshot.
//!
//! Each worker has its own memory of endpoints and its own estimators, as in the host.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use policy::attempt::{Attempts, Failure, Upstreams, is_retryable};
use policy::clock::Mono;
use policy::exchange::{Decision, Hold, admit, open};
use policy::id::{EndpointId, WorkloadId};
use policy::limit::{Kind, Rate};
use policy::meter::Estimator;
use policy::record::{Count, Tokens};
use policy::snapshot::Snapshot;
use policy::wire::call::CallHead;

use super::engines::{Answer, Engines};
use super::rng::Rng;
use crate::fixture::{BackendPlan, IDENTITY, ONE, RoutePlan, request, snapshot};

const WORKLOADS: [&str; 3] = ["ide", "ci", "batch"];

/// The size of a run and its limits, drawn from the seed.
#[derive(Debug, Clone)]
pub(super) struct Scene {
    pub(super) workers: usize,
    pub(super) calls: usize,
    pub(super) mean_gap_ns: u64,
    pub(super) requests: Rate,
    pub(super) tokens: Rate,
    /// For the canary: how often the gate forgets to settle.
    pub(super) forget_every: Option<usize>,
}

/// All that happened, as seen from outside.
#[derive(Debug)]
pub(super) struct Seen {
    pub(super) calls: Vec<Call>,
    pub(super) promised: Vec<Promised>,
    pub(super) ejections: usize,
    pub(super) workers: usize,
    /// After all has ended and time enough has gone: what the gate says is left of each limit.
    pub(super) left_at_the_end: Vec<u64>,
}

/// A limit as it was promised to a workload.
#[derive(Debug, Clone, Copy)]
pub(super) struct Promised {
    pub(super) workload: WorkloadId,
    pub(super) kind: Kind,
    pub(super) rate: Rate,
}

/// One exchange as its client and the engines saw it.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) workload: WorkloadId,
    pub(super) worker: usize,
    /// When it was admitted or refused, and its place among all events.
    pub(super) at_ns: i64,
    pub(super) order: usize,
    pub(super) refused: Option<&'static str>,
    pub(super) tries: Vec<EndpointId>,
    pub(super) aborted: bool,
    /// Most tokens it may have asked for: what an honest gate reserves.
    pub(super) reserved: u64,
    /// Each settlement: its place and the tokens that were said to be used.
    pub(super) settled: Vec<(usize, u64)>,
}

impl Call {
    pub(super) fn admitted(&self) -> bool {
        self.refused.is_none()
    }
}

#[derive(Debug)]
enum Event {
    Arrive,
    Head(usize, EndpointId, Answer),
    End(usize, Tokens),
}

/// What a worker holds for a call on its way.
struct Flight {
    hold: Hold,
    attempts: Attempts,
    cap: u64,
    bytes: u64,
    prompt_estimate: u64,
}

struct Worker {
    upstreams: Upstreams,
    estimator: Estimator,
}

pub(super) struct Fleet<'s> {
    s: &'s Snapshot,
    scene: &'s Scene,
    rng: Rng,
    now: Mono,
    order: usize,
    queue: BinaryHeap<Reverse<(i64, usize)>>,
    events: Vec<Option<Event>>,
    workers: Vec<Worker>,
    engines: Engines,
    flights: Vec<Option<Flight>>,
    calls: Vec<Call>,
    ejections: usize,
}

impl Scene {
    pub(super) fn of(seed: u64) -> Self {
        let mut rng = Rng::new(seed ^ 0x5ce7e);
        let rate = |amount: u64, burst: u64, rng: &mut Rng| Rate {
            amount,
            per: Duration::from_secs(
                [1, 7, 60][usize::try_from(rng.between(0, 3)).expect("small")],
            ),
            burst,
        };
        let (requests, tokens) = (rng.between(2, 60), rng.between(2_000, 200_000));
        let bursts = (rng.between(2, 60), rng.between(2_000, 200_000));
        Self {
            workers: usize::try_from(rng.between(1, 6)).expect("small"),
            calls: 1500,
            mean_gap_ns: rng.between(10_000_000, 400_000_000),
            requests: rate(requests, bursts.0, &mut rng),
            tokens: rate(tokens, bursts.1, &mut rng),
            forget_every: None,
        }
    }

    fn snapshot(&self) -> Snapshot {
        let backend = |name, weights| BackendPlan {
            name,
            weights,
            ..ONE
        };
        snapshot(&[RoutePlan {
            workloads: &WORKLOADS,
            backends: &[backend("near", &[3, 1, 1]), backend("far", &[1])],
            limits: &[(Kind::Requests, self.requests), (Kind::Tokens, self.tokens)],
            ..RoutePlan::default()
        }])
    }
}

impl Fleet<'_> {
    pub(super) fn run(seed: u64, scene: &Scene) -> Seen {
        let s = scene.snapshot();
        let worker = |n: usize| Worker {
            upstreams: Upstreams::new(&s, seed.wrapping_add(n as u64)),
            estimator: Estimator::default(),
        };
        let mut fleet = Fleet {
            s: &s,
            scene,
            rng: Rng::new(seed),
            now: Mono(0),
            order: 0,
            queue: BinaryHeap::new(),
            events: Vec::new(),
            workers: (0..scene.workers).map(worker).collect(),
            engines: Engines::new(s.endpoints.len()),
            flights: Vec::new(),
            calls: Vec::new(),
            ejections: 0,
        };
        fleet.arrivals();
        while let Some(Reverse((at_ns, event))) = fleet.queue.pop() {
            fleet.now = Mono(at_ns);
            fleet.order += 1;
            match fleet.events[event].take().expect("each event once") {
                Event::Arrive => fleet.arrive(),
                Event::Head(call, endpoint, answer) => fleet.head(call, endpoint, answer),
                Event::End(call, tokens) => fleet.settle(call, &tokens),
            }
        }
        fleet.seen()
    }

    fn arrivals(&mut self) {
        let mut at_ns = 0;
        for _ in 0..self.scene.calls {
            // Crowds: a quarter of the calls come at one instant with the one before.
            if !self.rng.chance(25) {
                let gap = self.rng.between(0, 2 * self.scene.mean_gap_ns);
                at_ns += i64::try_from(gap).expect("short");
            }
            self.plan(at_ns, Event::Arrive);
        }
    }

    fn plan(&mut self, at_ns: i64, event: Event) {
        self.queue.push(Reverse((at_ns, self.events.len())));
        self.events.push(Some(event));
    }

    fn arrive(&mut self) {
        let place = usize::try_from(self.rng.next() % 3).expect("small");
        let head = request(
            "POST",
            "/v1/chat/completions",
            &[
                (IDENTITY, WORKLOADS[place]),
                ("content-type", "application/json"),
            ],
        );
        let cap = self.rng.between(1, 1500);
        let filler = "x".repeat(usize::try_from(self.rng.between(0, 2000)).expect("small"));
        let body = format!(r#"{{"model":"m","max_tokens":{cap},"user":"{filler}"}}"#);
        let bytes = body.len() as u64;
        let worker = usize::try_from(self.rng.next()).unwrap_or(0) % self.workers.len();
        let opened = open(&head, Some(bytes), self.s).expect("a good head");
        let call = CallHead::read(body.as_bytes()).expect("a good body");
        let estimator = self.workers[worker].estimator;
        let decision = admit(
            opened,
            Some(&call),
            bytes,
            |_| estimator,
            self.now,
            0,
            self.s,
        );
        let mut call = Call {
            workload: opened.workload,
            worker,
            at_ns: self.now.0,
            order: self.order,
            refused: None,
            tries: Vec::new(),
            aborted: false,
            reserved: estimator.prompt(bytes) + cap,
            settled: Vec::new(),
        };
        let flight = match decision {
            Ok(Decision::Forward(admitted)) => Some(Flight {
                attempts: self.workers[worker].upstreams.begin(admitted.route),
                hold: admitted.hold,
                cap,
                bytes,
                prompt_estimate: admitted.prompt_estimate,
            }),
            Ok(Decision::Models(_)) => panic!("no one asked for models"),
            Err(refusal) => {
                call.refused = Some(refusal.reply().code);
                None
            }
        };
        let admitted = flight.is_some();
        self.calls.push(call);
        self.flights.push(flight);
        if admitted {
            self.attempt(self.calls.len() - 1);
        }
    }

    fn attempt(&mut self, call: usize) {
        let worker = &mut self.workers[self.calls[call].worker];
        let flight = self.flights[call].as_mut().expect("on its way");
        let next = worker
            .upstreams
            .next(&mut flight.attempts, None, self.s, self.now);
        let endpoint = next.expect("begun, or may_retry said so");
        self.calls[call].tries.push(endpoint);
        let now_ns = self.now.0;
        let answer = self
            .engines
            .answer(endpoint.index(), now_ns, flight.cap, &mut self.rng);
        self.plan(now_ns + answer.head_ns, Event::Head(call, endpoint, answer));
    }

    fn head(&mut self, call: usize, endpoint: EndpointId, answer: Answer) {
        let upstreams = &mut self.workers[self.calls[call].worker].upstreams;
        let before = upstreams.ejected(self.now).len();
        upstreams.observe(endpoint, answer.result, self.now);
        self.ejections += upstreams.ejected(self.now).len().saturating_sub(before);
        let again = match answer.result {
            Ok(status) => is_retryable(status),
            Err(failure) => failure != Failure::Malformed,
        };
        let flight = self.flights[call].as_ref().expect("on its way");
        if again && upstreams.may_retry(&flight.attempts, None, self.s, self.now) {
            return self.attempt(call);
        }
        let mut tokens = Tokens::default();
        let mut body_ns = answer.body_ns;
        if answer.result == Ok(200) {
            tokens.prompt = Count::Reported(answer.prompt);
            tokens.completion = Count::Reported(answer.completion);
            if self.rng.chance(15) {
                // The client leaves in the middle: what it got is counted, the rest guessed.
                self.calls[call].aborted = true;
                body_ns /= 2;
                tokens.prompt = Count::Estimated(flight.prompt_estimate);
                tokens.completion = Count::Counted(answer.completion / 2);
            }
        }
        self.plan(self.now.0 + body_ns, Event::End(call, tokens));
    }

    fn settle(&mut self, call: usize, tokens: &Tokens) {
        if self
            .scene
            .forget_every
            .is_some_and(|n| call.is_multiple_of(n))
        {
            return;
        }
        let flight = self.flights[call].take().expect("settled once");
        let (prompt, completion) = (tokens.prompt.tokens(), tokens.completion.tokens());
        let worker = &mut self.workers[self.calls[call].worker];
        worker.estimator.learn(flight.bytes, prompt, completion);
        flight.hold.settle(tokens, None, self.now, self.s);
        let used = prompt.unwrap_or(0) + completion.unwrap_or(0);
        self.calls[call].settled.push((self.order, used));
    }

    fn seen(self) -> Seen {
        let long_after = self.now.after(Duration::from_secs(365 * 86_400));
        let promised = self.s.limits.iter().map(|limit| Promised {
            workload: limit.workload,
            kind: limit.kind,
            rate: limit.bucket.rate(),
        });
        let left = |limit: &policy::snapshot::Limit| limit.bucket.level(long_after).remaining;
        Seen {
            promised: promised.collect(),
            left_at_the_end: self.s.limits.iter().map(left).collect(),
            calls: self.calls,
            ejections: self.ejections,
            workers: self.workers.len(),
        }
    }
}
