//! The thread that talks to the master: it waits, and gives what happens to the machine.
//!
//! Invariant: the load run and this thread share one outbox box of bounded content and one bounded channel of events;
//! a queue to the master that is full, or events that nobody takes, end the connection or the worker and never grow.
//! Not here: what is said when (`machine`), the load run.

mod link;

use std::collections::VecDeque;
use std::future::pending;
use std::io;
use std::pin::Pin;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime};

use ring::rand::{SecureRandom, SystemRandom};
use tokio::net::TcpStream;
use tokio::select;
use tokio::sync::Notify;
use tokio::time::{sleep_until, timeout};

use super::delivery::{Delivered, Ending};
use super::health::Meter;
use super::machine::{Action, Event, Machine, Pace};
use super::message::{self, MOST_CLASSES, Users};
use super::stats::LocustStats;
use super::zmtp::PeerEvent;
use link::Link;

/// Events that wait for the load run.
const MOST_EVENTS: usize = 64;
/// Bytes of a worker's name: with what is added it stays below the 255 of an identity.
const MOST_NAME_BYTES: usize = 128;
/// For a connection and its handshake.
const CONNECT: Duration = Duration::from_secs(5);
/// Between two tries to connect: at first, and at most; it doubles in between.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));
/// For the last messages of a worker that ends.
const FAREWELL: Duration = Duration::from_secs(2);

/// Who joins what.
#[derive(Debug, Clone)]
pub(crate) struct Options {
    /// `HOST:PORT` of the master, whose own default port is 5557.
    pub(crate) master: String,
    /// How the worker is called at the master; a random part is added.
    pub(crate) name: String,
    /// The classes of users that the load run can have.
    pub(crate) classes: Vec<String>,
    pub(crate) pace: Pace,
}

/// A worker that cannot even begin.
#[derive(Debug, thiserror::Error)]
pub(crate) enum JoinError {
    #[error("a worker's name has 1 to {MOST_NAME_BYTES} bytes; {0:?} has not")]
    Name(String),
    #[error("a worker has 1 to {MOST_CLASSES} classes of users, each by one name; these are {0}")]
    Classes(usize),
    #[error("{0:?} is no HOST:PORT of a Locust master")]
    Master(String),
    #[error("the worker's thread could not be started: {0}")]
    Start(#[source] io::Error),
}

/// A worker of a Locust master. Dropped, it leaves without waiting.
pub(crate) struct Worker {
    mailbox: Arc<Mailbox>,
    events: Receiver<Event>,
    thread: Option<JoinHandle<Delivered>>,
}

impl Worker {
    /// Begins to join; [`Event::Joined`] says that the master knows the worker, [`Event::Lost`] that none was found.
    pub(crate) fn join(options: Options) -> Result<Self, JoinError> {
        let Options {
            master,
            name,
            mut classes,
            pace,
        } = options;
        if name.is_empty() || name.len() > MOST_NAME_BYTES {
            return Err(JoinError::Name(name));
        }
        classes.sort();
        classes.dedup();
        if classes.is_empty() || classes.len() > MOST_CLASSES {
            return Err(JoinError::Classes(classes.len()));
        }
        let port = master.rsplit_once(':').map(|(_, port)| port.parse::<u16>());
        if !matches!(port, Some(Ok(_))) {
            return Err(JoinError::Master(master));
        }
        let id = format!("{name}_{}", random()?);
        let mailbox = Arc::new(Mailbox::new());
        let (told, events) = sync_channel(MOST_EVENTS);
        let (begun, ours) = (Instant::now(), mailbox.clone());
        let machine = Machine::new(id, classes, pace, begun, SystemTime::now());
        let runtime = crate::runtime::make().map_err(JoinError::Start)?;
        let shell = Shell::new(master, machine, ours, told, begun);
        let thread = thread::Builder::new()
            .name("locust".into())
            .spawn(move || runtime.block_on(shell.run()))
            .map_err(JoinError::Start)?;
        Ok(Self {
            mailbox,
            events,
            thread: Some(thread),
        })
    }

    /// The next event, if one comes within `patience`.
    pub(crate) fn next(&self, patience: Duration) -> Option<Event> {
        self.events.recv_timeout(patience).ok()
    }

    /// Whether no event will come any more: the master was lost, or nobody took the events.
    pub(crate) fn is_over(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Takes all that `stats` counted into the next report; it is empty then.
    pub(crate) fn add(&self, tally: &mut LocustStats) {
        let tally = tally.take(SystemTime::now());
        self.mailbox.write(|outbox| outbox.tally.merge(tally));
    }

    /// The users that the load run has now: the answer to [`Event::Spawn`], and to be said whenever it changes.
    pub(crate) fn users_are(&self, users: Users) {
        self.mailbox.write(|outbox| outbox.users = Some(users));
    }

    /// The load run has no users any more: the answer to [`Event::Stop`], after the last [`Self::add`].
    pub(crate) fn stopped(&self) {
        self.mailbox.write(|outbox| {
            outbox.users = None;
            outbox.stopped = true;
        });
    }

    /// Sends what was added, tells the master, and ends; what became of all that was added.
    pub(crate) fn leave(mut self) -> Delivered {
        self.mailbox.write(|outbox| outbox.leave = true);
        let thread = self.thread.take();
        let ended = thread.map(JoinHandle::join).transpose();
        ended
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            .unwrap_or_default()
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.mailbox.write(|outbox| outbox.leave = true);
    }
}

fn random() -> Result<String, JoinError> {
    let mut bytes = [0; 16];
    let filled = SystemRandom::new().fill(&mut bytes);
    filled.map_err(|_| JoinError::Start(io::Error::other("the system gives no random bytes")))?;
    Ok(format!("{:032x}", u128::from_be_bytes(bytes)))
}

/// What the load run says.
struct Outbox {
    tally: LocustStats,
    users: Option<Users>,
    stopped: bool,
    leave: bool,
}

struct Mailbox {
    outbox: Mutex<Outbox>,
    tick: Notify,
}

impl Mailbox {
    fn new() -> Self {
        Self {
            outbox: Mutex::new(Outbox::empty(false)),
            tick: Notify::new(),
        }
    }

    fn write(&self, write: impl FnOnce(&mut Outbox)) {
        write(&mut self.lock());
        self.tick.notify_one();
    }

    fn take(&self) -> Outbox {
        let mut outbox = self.lock();
        let left = Outbox::empty(outbox.leave);
        std::mem::replace(&mut outbox, left)
    }

    fn lock(&self) -> MutexGuard<'_, Outbox> {
        self.outbox.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Outbox {
    fn empty(leave: bool) -> Self {
        Self {
            tally: LocustStats::new(SystemTime::now()),
            users: None,
            stopped: false,
            leave,
        }
    }
}

type Opening = Pin<Box<dyn Future<Output = io::Result<TcpStream>> + Send>>;

struct Shell {
    master: String,
    machine: Machine,
    mailbox: Arc<Mailbox>,
    events: SyncSender<Event>,
    meter: Meter,
    link: Option<Link>,
    opening: Option<Opening>,
    retry_at: Instant,
    backoff: Duration,
}

enum Woke {
    Opened(io::Result<TcpStream>),
    Link,
    Outbox,
    Time,
}

impl Shell {
    fn new(
        master: String,
        machine: Machine,
        mailbox: Arc<Mailbox>,
        events: SyncSender<Event>,
        now: Instant,
    ) -> Self {
        Self {
            master,
            machine,
            mailbox,
            events,
            meter: Meter::new(now),
            link: None,
            opening: None,
            retry_at: now,
            backoff: BACKOFF.0,
        }
    }

    async fn run(mut self) -> Delivered {
        loop {
            let woke = self.wait().await;
            let now = Instant::now();
            self.apply(woke, now);
            if self.perform(now) {
                break;
            }
        }
        if let Some(mut link) = self.link.take() {
            let how = link.finish(FAREWELL).await;
            self.machine.down(how, link.messages_written());
        }
        self.machine.finish(SystemTime::now())
    }

    async fn wait(&mut self) -> Woke {
        let retry_at = (self.link.is_none() && self.opening.is_none()).then_some(self.retry_at);
        let deadline = self.link.as_ref().and_then(Link::deadline);
        let until = [self.machine.wakes_at(), retry_at, deadline];
        let until = until.into_iter().flatten().min();
        let time = async {
            match until {
                Some(until) => sleep_until(until.into()).await,
                None => pending().await,
            }
        };
        let opened = async {
            match &mut self.opening {
                Some(opening) => opening.await,
                None => pending().await,
            }
        };
        let ready = async {
            match &self.link {
                Some(link) => link.ready().await,
                None => pending().await,
            }
        };
        select! {
            opened = opened => Woke::Opened(opened),
            () = ready => Woke::Link,
            () = self.mailbox.tick.notified() => Woke::Outbox,
            () = time => Woke::Time,
        }
    }

    fn apply(&mut self, woke: Woke, now: Instant) {
        let outbox = self.mailbox.take();
        self.machine.add(outbox.tally);
        match woke {
            Woke::Opened(opened) => {
                self.opening = None;
                let id = self.machine.id();
                match opened {
                    Ok(stream) => self.link = Some(Link::new(stream, &id, now + CONNECT)),
                    Err(_) => self.try_later(now),
                }
            }
            Woke::Link => self.read(now),
            Woke::Outbox | Woke::Time => {}
        }
        let wall = SystemTime::now();
        if outbox.stopped {
            self.machine.stopped(now, wall);
        }
        if let Some(users) = outbox.users {
            self.machine.users_are(users);
        }
        if outbox.leave {
            self.machine.leave(now, wall);
        }
        let deadline = self.link.as_ref().and_then(Link::deadline);
        if deadline.is_some_and(|deadline| deadline <= now) {
            self.lose(Ending::Broken, now);
        }
        if self.link.is_none() && self.opening.is_none() && self.retry_at <= now {
            let connect = TcpStream::connect(self.master.clone());
            self.opening = Some(Box::pin(async move { timeout(CONNECT, connect).await? }));
        }
        let health = self.meter.health(now);
        self.machine.tick(now, wall, health);
    }

    fn read(&mut self, now: Instant) {
        let Some(link) = &mut self.link else {
            return;
        };
        let mut heard = Vec::new();
        let ended = link.turn(&mut heard);
        for heard in heard {
            match heard {
                PeerEvent::Ready { .. } => {
                    self.backoff = BACKOFF.0;
                    self.machine.up(now);
                }
                PeerEvent::Message(bytes) => match message::decode(&bytes) {
                    Ok(message) => self.machine.hear(message, now, SystemTime::now()),
                    Err(damage) => self.machine.damaged(damage.to_string()),
                },
            }
        }
        match ended {
            Ok(()) => {}
            Err(link::Ended::How(how)) => self.lose(how, now),
            Err(link::Ended::Zmtp(error)) => {
                let says = format!("{}: {error}", self.master);
                self.tell(Event::Warning(says));
                self.lose(Ending::Broken, now);
            }
        }
    }

    /// Does what the machine wants; whether the worker is over.
    fn perform(&mut self, now: Instant) -> bool {
        let mut actions: VecDeque<Action> = self.machine.take_actions();
        while let Some(action) = actions.pop_front() {
            match action {
                Action::Send(message) => {
                    let bytes = message::encode(&message, &self.machine.id());
                    let full = self.link.as_mut().is_some_and(|link| !link.send(&bytes));
                    if full {
                        self.lose(Ending::Broken, now);
                    }
                }
                Action::Tell(event) => {
                    if !self.tell(event) {
                        return true;
                    }
                }
                Action::Reconnect => {
                    self.opening = None;
                    self.lose(Ending::Broken, now);
                }
                Action::End => return true,
            }
            actions.extend(self.machine.take_actions());
        }
        false
    }

    /// Whether there is somebody to tell. What only warns is left out where the queue is full.
    fn tell(&self, event: Event) -> bool {
        match self.events.try_send(event) {
            Ok(()) | Err(TrySendError::Full(Event::Warning(_))) => true,
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => false,
        }
    }

    fn lose(&mut self, how: Ending, now: Instant) {
        if let Some(link) = self.link.take() {
            self.machine.down(how, link.messages_written());
        }
        self.try_later(now);
    }

    fn try_later(&mut self, now: Instant) {
        self.retry_at = now + self.backoff;
        self.backoff = (self.backoff * 2).min(BACKOFF.1);
    }
}

#[cfg(test)]
mod tests;
