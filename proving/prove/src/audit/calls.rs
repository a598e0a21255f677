//! Users who call a gate in a closed loop, each call under a request id of its own.
//!
//! Invariant: an id is sent once: a call that came to nothing is not sent again under its name. What each came to
//! is known at the end.
//! Not here: users who leave (`aborts`).

use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use load::client::{Client, Failure, Listener, Protocol, Reach, Said, Trust};
use load::source::{Head, HeadError, Payload};

use super::crowd::Crowd;

/// Most tokens that a call lets the engine generate.
pub(super) const OUTPUT_CAP: u64 = 128;
/// After a try to connect that failed, and after an answer that was none.
const PAUSE: Duration = Duration::from_millis(5);
/// A call that takes longer came to nothing.
const PATIENCE: Duration = Duration::from_secs(30);
/// Beyond the number of any call.
const NONE: u64 = u64::MAX;

/// What a call came to: 0 for nothing, else the status of a whole answer.
pub(super) type Status = u16;

/// A call that was sent.
#[derive(Debug)]
pub(super) struct Heard {
    pub(super) id: Box<str>,
    /// Its place among all calls; on one connection they were sent in this order, each after the answer before.
    pub(super) number: u64,
    pub(super) connection: u64,
    pub(super) status: Status,
}

/// Users at work.
pub(super) struct Callers {
    shared: Arc<Shared>,
    crowd: Crowd<Heard>,
}

struct Shared {
    workload: String,
    /// What every call has in common.
    head: Head,
    next: AtomicU64,
    /// The number of the call that each user waits for, or [`NONE`].
    under_way: Box<[AtomicU64]>,
    answered: AtomicU64,
    /// Answers that said that the ledger is unavailable.
    unavailable: AtomicU64,
    stop: AtomicBool,
}

impl Callers {
    /// So many users of a workload begin to call; they have a thread of their own.
    pub(super) fn start(target: SocketAddr, workload: &str, users: u16) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            workload: workload.to_owned(),
            head: head(workload).map_err(io::Error::other)?,
            next: AtomicU64::new(0),
            under_way: (0..users).map(|_| AtomicU64::new(NONE)).collect(),
            answered: AtomicU64::new(0),
            unavailable: AtomicU64::new(0),
            stop: AtomicBool::new(false),
        });
        let theirs = Arc::clone(&shared);
        let crowd = Crowd::start(users, move || {
            let client = Client::new(Reach {
                targets: vec![target.into()],
                protocol: Protocol::Http1,
                trust: Trust::System,
                timeout: PATIENCE,
            });
            let client = Rc::new(client.expect("without TLS no authority is read"));
            move |n| user(Arc::clone(&theirs), Rc::clone(&client), n)
        })?;
        Ok(Self { shared, crowd })
    }

    /// Answers of status 200 so far.
    pub(super) fn answered(&self) -> u64 {
        self.shared.answered.load(Ordering::Relaxed)
    }

    /// Refusals for want of a ledger so far.
    pub(super) fn unavailable(&self) -> u64 {
        self.shared.unavailable.load(Ordering::Relaxed)
    }

    /// How many calls have begun.
    pub(super) fn begun(&self) -> u64 {
        self.shared.next.load(Ordering::SeqCst)
    }

    /// Whether none of the first so many calls is under way.
    pub(super) fn have_ended(&self, first: u64) -> bool {
        let all = self.shared.under_way.iter();
        all.map(|call| call.load(Ordering::SeqCst))
            .all(|call| call >= first)
    }

    /// Lets calls under way end, and gives what each came to.
    pub(super) fn finish(self) -> io::Result<Vec<Heard>> {
        self.shared.stop.store(true, Ordering::Relaxed);
        self.crowd.join()
    }
}

async fn user(shared: Arc<Shared>, client: Rc<Client>, user: usize) -> Vec<Heard> {
    let (mut line, under_way) = (client.line(user), &shared.under_way[user]);
    let (payload, mut heard) = (body(), Vec::new());
    while !shared.stop.load(Ordering::Relaxed) {
        // Before it has a number it waits for none that is lower than this.
        under_way.store(shared.next.load(Ordering::SeqCst), Ordering::SeqCst);
        let number = shared.next.fetch_add(1, Ordering::SeqCst);
        let id = format!("{}-{number}", shared.workload);
        let Ok(head) = shared.head.clone().with("x-request-id", &id) else {
            break;
        };
        let mut said = Refusal::default();
        let answer = client.exchange(&mut line, (&head, None), &payload, &mut said);
        let answer = answer.await;
        under_way.store(NONE, Ordering::SeqCst);
        if answer != Err(Failure::Connect) {
            heard.push(Heard {
                id: id.into(),
                number,
                // Of which no user opens so many.
                connection: (user as u64) << 32 | line.opened,
                status: answer.map_or(0, |answer| answer.said.status),
            });
        }
        match answer {
            Ok(answer) if answer.said.status == 200 => {
                shared.answered.fetch_add(1, Ordering::Relaxed);
            }
            _ => {
                let unavailable = u64::from(answer.is_ok() && said.is_unavailable);
                shared.unavailable.fetch_add(unavailable, Ordering::Relaxed);
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
    heard
}

/// What an answer refuses for.
#[derive(Default)]
struct Refusal {
    is_unavailable: bool,
}

impl Listener for Refusal {
    fn on_send(&mut self, _now: Instant) {}

    fn on_first_byte(&mut self, _now: Instant) {}

    fn on_body(&mut self, _now: Instant, said: Said, bytes: &[u8]) {
        let needle = b"ledger_unavailable";
        self.is_unavailable |=
            said.status == 503 && bytes.windows(needle.len()).any(|part| part == needle);
    }
}

fn head(workload: &str) -> Result<Head, HeadError> {
    Head::post("/v1/chat/completions")?
        .with("host", "localhost")?
        .with("x-workload-app", workload)?
        .with("content-type", "application/json")
}

fn body() -> Payload {
    let body = format!(
        r#"{{"model":"audit","max_tokens":{OUTPUT_CAP},"messages":[{{"role":"user","content":"Say one of a thousand things."}}]}}"#
    );
    Bytes::from(body).into()
}
