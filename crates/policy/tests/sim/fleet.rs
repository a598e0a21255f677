//! The run: events in order of virtual time, several workers that share only the snapshot and its levels.
//!
//! Each worker has its own memory of endpoints and its own estimators, as in the host.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use policy::billing::Billing;
use policy::clock::Mono;
use policy::disconnect::{OnDisconnect, ReadBounds};
use policy::exchange::{Env, Exchange, Question, Verdict};
use policy::id::{EndpointId, LimitId, RouteId, WorkloadId};
use policy::limit::{Kind, Rate};
use policy::refusal::Refusal;
use policy::revision::Revision;
use policy::shard::Shard;
use policy::snapshot::Snapshot;
use policy::wire::call::CallHead;
use policy::wire::head::{RequestHead, ResponseHead};
use policy::wire::meter::Meter;

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
    /// No call runs before its row is on disk, and not every row gets there.
    pub(super) is_strict: bool,
    /// Responses whose client left are read to their end.
    pub(super) reads_on: bool,
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
    /// The ledger has written a row, or has not.
    Row(usize, bool),
    /// An attempt has a response, or failed.
    Head(usize, Answer),
    /// The client leaves while the response is waited for.
    Leave(usize),
    /// The response ends so.
    Body(usize, Answer, End),
    /// What a client left of its response has come, too.
    DisconnectOutcome(usize, Answer),
}

/// How the body of a response ends.
#[derive(Debug, Clone, Copy)]
enum End {
    Whole,
    Left,
    Broken,
    Stalled,
}

/// A call on its way.
struct Flight {
    exchange: Exchange,
    head: RequestHead,
    meter: Meter,
    cap: u64,
}

/// What is shared by the calls of one worker.
struct Worker {
    shard: Shard,
}

pub(super) struct Fleet<'s> {
    s: &'s Revision,
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
            is_strict: rng.chance(30),
            reads_on: rng.chance(50),
            forget_every: None,
        }
    }

    fn snapshot(&self) -> Snapshot {
        let backend = |name, weights| BackendPlan {
            name,
            weights,
            ..ONE
        };
        let mut s = snapshot(&[RoutePlan {
            workloads: &WORKLOADS,
            backends: &[backend("near", &[3, 1, 1]), backend("far", &[1])],
            limits: &[(Kind::Requests, self.requests), (Kind::Tokens, self.tokens)],
            ..RoutePlan::default()
        }]);
        if self.is_strict {
            s.routes[0].billing = Billing::Strict;
        }
        if self.reads_on {
            s.routes[0].abandon = OnDisconnect::ReadToEnd(ReadBounds {
                tokens: 1_000_000,
                time: Duration::from_secs(5),
            });
        }
        s
    }
}

impl Fleet<'_> {
    pub(super) fn run(seed: u64, scene: &Scene) -> Seen {
        let s = Revision::first(scene.snapshot());
        let worker = |n: usize| Worker {
            shard: Shard::new(&s.snapshot, None, seed.wrapping_add(n as u64)),
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
            engines: Engines::new(s.snapshot.endpoints.len()),
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
                Event::Row(call, is_written) => {
                    let event = if is_written {
                        Exchange::entered
                    } else {
                        Exchange::stalled
                    };
                    fleet.tell(call, event);
                }
                Event::Head(call, answer) => fleet.response_head(call, answer),
                Event::Leave(call) => fleet.leave(call),
                Event::Body(call, answer, end) => fleet.body(call, answer, end),
                Event::DisconnectOutcome(call, answer) => fleet.rest(call, answer),
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
        let s = self.s;
        let call = Call {
            workload: s
                .snapshot
                .workload_named(WORKLOADS[place].as_bytes())
                .expect("known"),
            worker,
            at_ns: self.now.0,
            order: self.order,
            refused: None,
            tries: Vec::new(),
            aborted: false,
            reserved: self.workers[worker]
                .shard
                .estimator(RouteId(0))
                .prompt(bytes)
                + cap,
            settled: Vec::new(),
        };
        let env = &mut env(s, &mut self.workers[worker], self.now);
        let peer = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let mut exchange = Exchange::begin(&head, peer, 0, env);
        let read = [
            exchange.read_head(&head, &peer.into(), Some(bytes), false, env),
            exchange.read_body(body.len(), env),
        ];
        assert!(
            read.iter()
                .all(|verdict| matches!(verdict, Verdict::Read { .. }))
        );
        let mut said = CallHead::read(body.as_bytes()).expect("a good body");
        let verdict = exchange.end_body(&head, Some(&mut said), &[], env);
        self.calls.push(call);
        self.flights.push(Some(Flight {
            exchange,
            head,
            meter: Meter::default(),
            cap,
        }));
        self.apply(self.calls.len() - 1, verdict);
    }

    /// Tells a call of an event, and applies what follows.
    fn tell(&mut self, call: usize, event: impl FnOnce(&mut Exchange, &mut Env<'_>) -> Verdict) {
        let verdict = self.judge(call, event);
        self.apply(call, verdict);
    }

    fn judge(
        &mut self,
        call: usize,
        event: impl FnOnce(&mut Exchange, &mut Env<'_>) -> Verdict,
    ) -> Verdict {
        let worker = &mut self.workers[self.calls[call].worker];
        let env = &mut env(self.s, worker, self.now);
        let flight = self.flights[call].as_mut().expect("on its way");
        event(&mut flight.exchange, env)
    }

    fn apply(&mut self, call: usize, verdict: Verdict) {
        match verdict {
            Verdict::Ask(ask) => match ask.question {
                Question::Enter {
                    is_durable: true, ..
                } => {
                    let is_written = !self.rng.chance(2);
                    let wait = i64::try_from(self.rng.between(0, 20_000_000)).expect("short");
                    self.plan(self.now.0 + wait, Event::Row(call, is_written));
                }
                Question::Enter { .. } => self.tell(call, Exchange::entered),
                other => panic!("nobody asks {other:?}"),
            },
            Verdict::Attempt(plan) => self.attempt(call, plan.endpoint),
            Verdict::Refuse(refusal) => {
                let is_policys = !matches!(
                    *refusal,
                    Refusal::Upstream(_) | Refusal::UpstreamBusy { .. }
                );
                if is_policys {
                    self.calls[call].refused = Some(refusal.reply().code);
                }
                self.tell(call, |exchange, _| exchange.sent_whole(false));
            }
            Verdict::Finish | Verdict::Cut | Verdict::Abandon => self.finish(call),
            Verdict::ReadToEnd { .. } | Verdict::Relay(_) => {}
            other => panic!("{other:?}"),
        }
    }

    fn attempt(&mut self, call: usize, endpoint: EndpointId) {
        self.calls[call].tries.push(endpoint);
        let now_ns = self.now.0;
        let flight = self.flights[call].as_ref().expect("on its way");
        flight.exchange.sent(true);
        let answer = self
            .engines
            .answer(endpoint.index(), now_ns, flight.cap, &mut self.rng);
        if self.rng.chance(3) {
            let early = i64::try_from(self.rng.next() % 1000).expect("small");
            return self.plan(now_ns + answer.head_ns * early / 1000, Event::Leave(call));
        }
        self.plan(now_ns + answer.head_ns, Event::Head(call, answer));
    }

    fn response_head(&mut self, call: usize, answer: Answer) {
        let before = self.ejected(call);
        let verdict = match answer.result {
            Ok(status) => {
                let mut head = ResponseHead {
                    status,
                    ..ResponseHead::default()
                };
                head.fields
                    .push(b"content-type", b"application/json")
                    .expect("a field");
                self.judge(call, |exchange, env| exchange.response_head(&head, env))
            }
            Err(failure) => self.judge(call, |exchange, env| {
                exchange.attempt_failed(failure.into(), env)
            }),
        };
        self.ejections += self.ejected(call).saturating_sub(before);
        if let Verdict::Relay(relay) = &verdict {
            let flight = self.flights[call].as_mut().expect("on its way");
            flight.meter = Meter::new(relay.form);
            let end = match self.rng.between(0, 100) {
                0..15 => End::Left,
                15..18 => End::Broken,
                18..20 => End::Stalled,
                _ => End::Whole,
            };
            let at_ns = match end {
                End::Whole => self.now.0 + answer.body_ns,
                End::Left | End::Broken | End::Stalled => self.now.0 + answer.body_ns / 2,
            };
            self.plan(at_ns, Event::Body(call, answer, end));
        }
        self.apply(call, verdict);
    }

    fn ejected(&self, call: usize) -> usize {
        let worker = &self.workers[self.calls[call].worker];
        worker.shard.upstreams.ejected(self.now).len()
    }

    /// The client leaves while its response is waited for.
    fn leave(&mut self, call: usize) {
        self.calls[call].aborted = true;
        let verdict = self.judge(call, |exchange, env| exchange.disconnected(None, 0, env));
        if matches!(verdict, Verdict::ReadToEnd { .. }) {
            // Nothing comes in time.
            self.now = self.now.after(Duration::from_secs(5));
            return self.tell(call, Exchange::stalled);
        }
        self.apply(call, verdict);
    }

    fn body(&mut self, call: usize, answer: Answer, end: End) {
        let flight = self.flights[call].as_mut().expect("on its way");
        if let End::Whole = end {
            flight.meter.observe(usage(answer).as_bytes());
        } else {
            flight.meter.observe(b"{\"choices\":[{\"text\":\"");
        }
        flight.exchange.forwarded(4 * answer.completion / 2);
        match end {
            End::Whole => self.tell(call, |exchange, _| exchange.sent_whole(false)),
            End::Broken => self.tell(call, |exchange, _| exchange.response_broke(false, false)),
            End::Stalled => self.tell(call, Exchange::stalled),
            End::Left => {
                self.calls[call].aborted = true;
                let verdict = self.judge(call, |exchange, env| exchange.disconnected(None, 0, env));
                if matches!(verdict, Verdict::ReadToEnd { .. }) {
                    let rest_ns = answer.body_ns / 2;
                    self.plan(self.now.0 + rest_ns, Event::DisconnectOutcome(call, answer));
                }
                self.apply(call, verdict);
            }
        }
    }

    /// The rest of a response that its client left.
    fn rest(&mut self, call: usize, answer: Answer) {
        let flight = self.flights[call].as_mut().expect("on its way");
        let rest = format!("\"}}],{}", &usage(answer)[1..]);
        flight.meter.observe(rest.as_bytes());
        let bytes = rest.len() as u64;
        self.tell(call, |exchange, env| {
            exchange.read_on(bytes, None, true, env)
        });
    }

    fn finish(&mut self, call: usize) {
        if self
            .scene
            .forget_every
            .is_some_and(|n| call.is_multiple_of(n))
        {
            return;
        }
        let mut flight = self.flights[call].take().expect("finished once");
        let worker = &mut self.workers[self.calls[call].worker];
        let env = &mut env(self.s, worker, self.now);
        let finished = flight.exchange.finish(&mut flight.meter, false, env);
        assert!(finished.settled.is_none() && flight.head.method_text() == "POST");
        let record = flight.exchange.record();
        if self.calls[call].admitted() {
            let used = record.tokens.sum();
            self.calls[call].settled.push((self.order, used));
        }
    }

    fn seen(self) -> Seen {
        let long_after = self.now.after(Duration::from_secs(365 * 86_400));
        let promised = self.s.snapshot.limits.iter().map(|limit| Promised {
            workload: limit.workload,
            kind: limit.kind,
            rate: limit.rate,
        });
        let limits = (0..).map(LimitId);
        let buckets = limits.map_while(|id| self.s.levels.bucket(id));
        let left = buckets.map(|bucket| bucket.level(long_after).remaining);
        Seen {
            promised: promised.collect(),
            left_at_the_end: left.collect(),
            calls: self.calls,
            ejections: self.ejections,
            workers: self.workers.len(),
        }
    }
}

fn env<'a>(s: &'a Revision, worker: &'a mut Worker, now: Mono) -> Env<'a> {
    Env {
        snapshot: &s.snapshot,
        levels: &s.levels,
        shard: &mut worker.shard,
        now,
    }
}

/// A whole response, which says what it came to.
fn usage(answer: Answer) -> String {
    let (prompt, completion) = (answer.prompt, answer.completion);
    format!(
        r#"{{"usage":{{"prompt_tokens":{prompt},"completion_tokens":{completion},"total_tokens":{}}}}}"#,
        prompt + completion
    )
}
