//! Lanes in real time: requests as bytes of a corpus, sent by the client of all replays.
//!
//! A prompt begins with a message that only its play has, so that no two plays share a prefix; a primer has the same prompt and one token of output.
//! Invariant: bodies are made when the corpus is built; a request is slices of it, with the words of its play between.
//! Not here: when what is due (`experiment::lanes`), reading answers (`load::observer`).

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::Path;
use std::rc::Rc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use corpus::store::Corpus;
use corpus::unroll::tail;
use experiment::lanes::{Kind, Lanes, Phase, Sent};
use experiment::random::Rng;
use load::client::{Client, ConnectionSlot, Protocol, Reach};
use load::observer::{Answers, Live, Observations, ObserveOptions, ObserverBuffers, Window};
use load::source::{Head, Payload};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;

use super::summary::Row;
use super::{AgentX, AgentXError, trust, word};
use crate::host::process::run_own;
use crate::interrupt;
use crate::load::{target, traffic};
use crate::progress::Line;

const PROFILE: &str = "agentx";
/// Between two looks at whether somebody ended it.
const LOOK: Duration = Duration::from_millis(50);
const STREAM: u64 = 223;

/// Plays all lanes to their end, or until somebody ends it.
pub(super) fn play(options: &AgentX, lanes: Lanes) -> Result<(Vec<Row>, Lanes), AgentXError> {
    let home = tempfile::Builder::new().prefix("agentx-").tempdir()?;
    let dir = home.path().join("corpus");
    build(options, &dir)?;
    let corpus = Corpus::open(&dir).map_err(|error| AgentXError::Corpus(error.to_string()))?;
    let sender = Sender::new(options, corpus)?;
    let runtime = crate::runtime::make_local()?;
    runtime.block_on(run(Rc::new(sender), lanes))
}

fn build(options: &AgentX, out: &Path) -> Result<(), AgentXError> {
    let built = run_own(|prove| {
        prove
            .args(["corpus", "build", "--ignore-eos", "--keep-duplicates"])
            .args(["--max-context", &options.max_context.to_string()])
            .args(["--profile", PROFILE, "--reader", "agentx"])
            .args(&options.traces)
            .args(["--model", &options.model, "--out"])
            .arg(out);
    });
    built.map_err(AgentXError::Corpus)
}

/// What all requests need.
struct Sender {
    client: Client,
    head: Head,
    corpus: Corpus,
    /// Sessions of the corpus by their names.
    sessions: HashMap<String, u64>,
    seed: u64,
    start: Instant,
    seen: RefCell<Observations>,
    live: Live,
    /// Connections that nobody uses, each with its buffers.
    idle: RefCell<Vec<(ConnectionSlot, ObserverBuffers)>>,
    opened: RefCell<usize>,
}

/// An answer that has ended.
type Ended = (usize, u64, Row);

impl Sender {
    fn new(options: &AgentX, corpus: Corpus) -> Result<Self, AgentXError> {
        let url = options.target.as_deref().unwrap_or_default();
        let target = target::parse(url).map_err(crate::load::ReplayError::from)?;
        let reach = Reach {
            targets: vec![target],
            protocol: Protocol::Http1,
            trust: trust(options),
            timeout: options.timeout,
        };
        let client = Client::new(reach).map_err(|error| AgentXError::Usage(error.to_string()))?;
        let sessions = corpus
            .sessions()
            .map(|session| (session.id(), session.number()));
        Ok(Self {
            client,
            head: traffic::head_with(&options.header, PROFILE)?,
            sessions: sessions.collect(),
            corpus,
            seed: options.seed,
            start: Instant::now(),
            seen: RefCell::default(),
            live: Live::default(),
            idle: RefCell::default(),
            opened: RefCell::new(0),
        })
    }

    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    /// What is sent: the corpus's bytes, and between its head and its messages the words of this play.
    fn payload(&self, lanes: &Lanes, sent: &Sent) -> Option<Payload> {
        let stream = lanes.traces().get(sent.trace)?.streams.get(sent.stream)?;
        let session = self.corpus.session(*self.sessions.get(&stream.id)?)?;
        let [head, messages, end] = session.turn(sent.request)?.bytes();
        let end = if sent.kind == Kind::Primer {
            Bytes::from(tail(Some(1), true))
        } else {
            end
        };
        let name = Rng::stream(self.seed, &[STREAM, sent.play]).bits();
        let words = format!("{{\"role\":\"user\",\"content\":\"play {name:016x}\"}},");
        Payload::new(&[head, Bytes::from(words), messages, end]).ok()
    }

    /// Sends one, and hears it to its end.
    async fn exchange(&self, payload: Payload, sent: Sent, at: Duration) -> Row {
        let idle = self.idle.borrow_mut().pop();
        let (mut line, mut ear) = idle.unwrap_or_else(|| {
            let number = *self.opened.borrow();
            *self.opened.borrow_mut() += 1;
            (self.client.line(number), ObserverBuffers::default())
        });
        let window = Window {
            begin: self.start,
            end: self.start + Duration::from_secs(86_400 * 365),
        };
        let hears = ObserveOptions {
            answers: Answers::Events,
            expects: None,
            usage: true,
            window,
            counts: true,
        };
        let mut hearing = ear.hear(hears, &self.seen, &self.live);
        let outcome = self
            .client
            .exchange(&mut line, (&self.head, None), &payload, &mut hearing)
            .await;
        let (heard, outcome) = hearing.end(outcome);
        self.idle.borrow_mut().push((line, ear));
        let since = |moment: Instant| moment.saturating_duration_since(self.start).as_secs_f64();
        let ended = outcome.map_or_else(|_| Instant::now(), |answer| answer.last_byte);
        let usage = heard.usage;
        let failure = outcome.err().map(|failure| {
            let seen = self.seen.borrow();
            let said = seen.said.get(&failure);
            said.map_or_else(|| failure.to_string(), |said| format!("{failure}: {said}"))
        });
        Row {
            sent,
            at_s: heard.sent.map_or(at.as_secs_f64(), since),
            first_s: heard.first_token.map(since),
            ended_s: Some(since(
                heard
                    .last_token
                    .filter(|_| failure.is_none())
                    .unwrap_or(ended),
            )),
            prompt: usage.and_then(|usage| usage.prompt).unwrap_or(0),
            output: usage.and_then(|usage| usage.completion).unwrap_or(0),
            cached: usage.and_then(|usage| usage.cached()),
            failure,
        }
    }
}

async fn run(sender: Rc<Sender>, mut lanes: Lanes) -> Result<(Vec<Row>, Lanes), AgentXError> {
    let mut rows: Vec<Row> = Vec::new();
    let mut under_way = JoinSet::new();
    let (ends, mut ended) = unbounded_channel::<Ended>();
    let mut line = Line::new();
    while lanes.phase() != Phase::Over && !interrupt::was_heard() {
        while let Some(sent) = lanes.take(sender.now()) {
            let Some(payload) = sender.payload(&lanes, &sent) else {
                let stream = lanes
                    .traces()
                    .get(sent.trace)
                    .and_then(|trace| trace.streams.get(sent.stream));
                let stream = stream.map_or("", |stream| &stream.id);
                let says = format!(
                    "{stream} has no request {} in it: was it longer than --max-context?",
                    sent.request
                );
                return Err(AgentXError::Corpus(says));
            };
            let at = sender.now();
            rows.push(unanswered(sent, at));
            let place = rows.len() - 1;
            under_way.spawn_local(exchange(
                Rc::clone(&sender),
                payload,
                (place, sent, at),
                ends.clone(),
            ));
        }
        line.show(|| {
            let (at, phase) = (sender.now().as_secs(), word(lanes.phase()));
            format!("{at} s: {phase}, {} requests sent", rows.len())
        });
        let next = lanes
            .next_at()
            .map_or(LOOK, |at| at.saturating_sub(sender.now()));
        tokio::select! {
            one = ended.recv() => if let Some((place, number, row)) = one {
                lanes.ended(number, sender.now());
                if let Some(kept) = rows.get_mut(place) {
                    *kept = row;
                }
            },
            () = tokio::time::sleep(next.min(LOOK)) => {}
        }
        while under_way.try_join_next().is_some() {}
    }
    line.end();
    under_way.abort_all();
    Ok((rows, lanes))
}

async fn exchange(
    sender: Rc<Sender>,
    payload: Payload,
    (place, sent, at): (usize, Sent, Duration),
    ends: UnboundedSender<Ended>,
) {
    let row = sender.exchange(payload, sent, at).await;
    // Who is not there any more waits for no answer.
    drop(ends.send((place, sent.number, row)));
}

/// A request that has no answer yet.
fn unanswered(sent: Sent, at: Duration) -> Row {
    Row {
        sent,
        at_s: at.as_secs_f64(),
        first_s: None,
        ended_s: None,
        prompt: 0,
        output: 0,
        cached: None,
        failure: None,
    }
}
