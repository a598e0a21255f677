//! The sessions of one command: who may begin one, which one ends for whom, and what waits in them.
//!
//! Invariant: a process counts until it has ended, also where nobody knows its session any more; a message counts as long as it is kept.
//! Not here: requests (`bridge`), one session (`session`).

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::{Instant, timeout};

use super::Bridge;
use super::session::Session;
use super::share::{Full, Held, Share};
use crate::seldom::Seldom;

/// Most processes of one command.
const SESSIONS_MAX: usize = 64;
/// Most of them that one caller has: the others are left to others.
const EACH_MAX: usize = 48;
/// How long a process may wait for its client.
const IDLE_MAX: Duration = Duration::from_secs(30 * 60);
/// One that was not used for so long may end for a client that begins.
const LEFT_AFTER: Duration = Duration::from_secs(60);
/// How long a client that begins waits for one that ends.
const PLACE_WITHIN: Duration = Duration::from_secs(5);
/// Most bytes of messages that processes have not taken yet, of all commands.
const WAITING_BYTES_MAX: usize = 128 << 20;
/// Most of them of one caller.
const WAITING_BYTES_EACH: usize = 96 << 20;
/// Most bytes that processes have said and their clients have not taken yet, of all commands, but for answers.
const UNREAD_BYTES_MAX: usize = 128 << 20;
/// Most of them of one caller.
const UNREAD_BYTES_EACH: usize = 96 << 20;

/// Bytes that wait, of all commands.
#[derive(Clone)]
pub(super) struct Room {
    /// For processes to take them.
    pub(super) waiting: Rc<Share>,
    /// For clients to take them.
    pub(super) unread: Rc<Share>,
}

impl Room {
    pub(super) fn new() -> Self {
        Self {
            waiting: Share::new(WAITING_BYTES_MAX, WAITING_BYTES_EACH),
            unread: Share::new(UNREAD_BYTES_MAX, UNREAD_BYTES_EACH),
        }
    }
}

/// The sessions of one command.
pub(super) struct Sessions {
    pub(super) bridge: Arc<Bridge>,
    pub(super) room: Room,
    open: RefCell<HashMap<String, Rc<Session>>>,
    processes: Rc<Share>,
    /// Lines of the log: no place for a process, no room for a message, no answer to a first message.
    no_place: Seldom,
    no_room: Seldom,
    no_answer: Seldom,
}

impl Sessions {
    pub(super) fn new(bridge: Arc<Bridge>, room: Room) -> Rc<Self> {
        Rc::new(Self {
            bridge,
            room,
            open: RefCell::default(),
            processes: Share::new(SESSIONS_MAX, EACH_MAX),
            no_place: Seldom::default(),
            no_room: Seldom::default(),
            no_answer: Seldom::default(),
        })
    }

    pub(super) fn is_over(&self) -> bool {
        self.bridge.is_over.load(Ordering::Acquire)
    }

    /// The session of this id, while it is open.
    pub(super) fn get(&self, id: &str) -> Option<Rc<Session>> {
        let session = self.open.borrow().get(id).cloned();
        session.filter(|session| !session.is_ending())
    }

    /// Its client ends it.
    pub(super) fn end(&self, id: &str) {
        if let Some(session) = self.open.borrow_mut().remove(id) {
            session.end();
        }
    }

    pub(super) fn end_all(&self) {
        for session in self.open.borrow().values() {
            session.end();
        }
    }

    /// Ends what nobody uses.
    pub(super) fn tidy(&self) {
        self.open.borrow_mut().retain(|_, session| {
            let is_idle = !session.is_busy() && session.used.get().elapsed() > IDLE_MAX;
            if is_idle {
                session.end();
            }
            !is_idle && !session.is_ending()
        });
    }

    /// A place for a process of this caller. Where there is none, one that ends is waited for.
    pub(super) async fn place(&self, caller: &Rc<str>) -> Result<Held, Full> {
        let last = Cell::new(Full::Whole);
        let waits = async {
            loop {
                let freed = self.processes.freed();
                let full = match self.processes.take(caller, 1) {
                    Ok(place) => return Ok(place),
                    Err(full) => full,
                };
                last.set(full);
                if !self.ends_one(caller, full) {
                    return Err(full);
                }
                freed.await;
            }
        };
        let place = timeout(PLACE_WITHIN, waits).await;
        let place = place.unwrap_or_else(|_| Err(last.get()));
        if let Err(full) = &place
            && let Some(times) = self.no_place.came(Instant::now().into_std())
        {
            let server = &*self.bridge.server;
            match full {
                Full::Whole => tracing::warn!(
                    server,
                    SESSIONS_MAX,
                    times,
                    "a server of tools has as many processes as it may have: new sessions are refused"
                ),
                Full::Caller => tracing::warn!(
                    server,
                    EACH_MAX,
                    times,
                    "one caller has as many processes of a server of tools as one may have: new sessions of that caller are refused"
                ),
            }
        }
        place
    }

    /// Whether a process ends by which there is a place: one that does already, or the one that has waited the longest for its client, and
    /// at least a minute.
    fn ends_one(&self, caller: &str, full: Full) -> bool {
        self.tidy();
        let mut open = self.open.borrow_mut();
        // Whoever has his share makes room of his own.
        let counts = |session: &Session| full == Full::Whole || *session.caller == *caller;
        let live = open.values().filter(|session| counts(session)).count();
        if self.processes.taken(full, caller) > live {
            return true;
        }
        // Nobody's process ends for another client while it is in use.
        let idle = open.iter().filter(|(_, session)| {
            let is_left = !session.is_busy() && session.used.get().elapsed() >= LEFT_AFTER;
            is_left && counts(session)
        });
        let oldest = idle.min_by_key(|(_, session)| session.used.get());
        let oldest = oldest.map(|(id, _)| id.clone());
        let ends = oldest.and_then(|id| open.remove(&id));
        if let Some(session) = &ends {
            session.end();
        }
        ends.is_some()
    }

    /// Room for a message of so many bytes until its process has it: as much as all may keep, and its session.
    pub(super) fn waits(
        &self,
        caller: &Rc<str>,
        session: Option<&Session>,
        bytes: usize,
    ) -> Option<Waiting> {
        let of_all = self.room.waiting.take(caller, bytes);
        let of_session = session.map(|session| session.waiting.take(caller, bytes));
        match (of_all, of_session.transpose()) {
            (Ok(of_all), Ok(of_session)) => Some((of_all, of_session)),
            _ => {
                if let Some(times) = self.no_room.came(Instant::now().into_std()) {
                    let server = &*self.bridge.server;
                    tracing::warn!(
                        server,
                        bytes,
                        times,
                        "a server of tools takes its messages too slowly: there is no room for more, and they are refused"
                    );
                }
                None
            }
        }
    }
}

/// What is held for a message that waits: of all that may wait, and of its session.
pub(super) type Waiting = (Held, Option<Held>);

/// A session whose client does not know its id yet: where the client does not wait, its process ends.
pub(super) struct Begun<'a> {
    id: String,
    session: Rc<Session>,
    sessions: &'a Sessions,
    began: Instant,
    is_answered: Cell<bool>,
    is_known: Cell<bool>,
}

impl<'a> Begun<'a> {
    pub(super) fn new(id: String, session: Rc<Session>, sessions: &'a Sessions) -> Self {
        let mut open = sessions.open.borrow_mut();
        open.insert(id.clone(), Rc::clone(&session));
        Self {
            id,
            session,
            sessions,
            began: Instant::now(),
            is_answered: Cell::new(false),
            is_known: Cell::new(false),
        }
    }

    /// Its client hears, and knows the session by then or never.
    pub(super) fn answered(&self, is_known: bool) {
        self.is_answered.set(true);
        self.is_known.set(is_known);
    }
}

impl Drop for Begun<'_> {
    fn drop(&mut self) {
        if self.is_known.get() {
            return;
        }
        if !self.is_answered.get()
            && !self.session.is_ending()
            && let Some(times) = self.sessions.no_answer.came(Instant::now().into_std())
        {
            let server = &*self.sessions.bridge.server;
            let waited_ms = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
            let says = self.session.complaint();
            tracing::warn!(
                server,
                waited_ms,
                says,
                times,
                "a server of tools gave no answer to its first message: nobody waits for it any more"
            );
        }
        self.session.end();
        self.sessions.open.borrow_mut().remove(&self.id);
    }
}

#[cfg(test)]
mod tests;
