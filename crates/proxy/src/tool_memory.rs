//! What a worker keeps of servers of tools beside the snapshot: the key of sessions, and lists for a while.
//!
//! Invariant: a list is kept no longer than the configuration says, and not beyond it; what somebody may see of it is asked anew each time.
//! Not here: what is in a list (`mcp::catalog`), asking for one (`tools`).

mod own_lists;

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use mcp::catalog::{Catalog, Kind};
use mcp::handshake::Answered;
use mcp::session::{OwnTokens, Place, Sealer};
use mcp::version::Version;
use policy::clock::Mono;
use policy::mcp::Mark;
use policy::snapshot::Snapshot;

use self::own_lists::OwnLists;
use crate::tool_failure::Failed;

/// Most bytes of all answers of servers of tools that a worker reads at one time: what one server floods it with leaves room for
/// calls of others, and for calls to models.
const ANSWERS_BYTES_MAX: usize = 128 << 20;

/// What a worker keeps.
pub(crate) struct Tools {
    pub(crate) sealer: Sealer,
    /// By rule: what its sessions are bound to.
    pub(crate) places: Vec<Place>,
    lists: RefCell<HashMap<Key, Kept>>,
    own_lists: RefCell<OwnLists>,
    pub(crate) failures: Failures,
    /// What servers speak, as far as they were asked without a session.
    speaks: RefCell<HashMap<Spoken, (Mono, Speaks)>>,
    /// Bytes of answers that are being read.
    answers: Cell<usize>,
    pub(crate) unopened: Unopened,
}

/// What came last of opening a server for a caller, where that was nothing: it is so for all who waited for it, and they do not fail one
/// after the other.
#[derive(Default)]
pub(crate) struct Unopened(RefCell<HashMap<Mark, (Mono, Failed)>>);

/// Of so many callers and servers; who waits for one that was forgotten asks it himself.
const UNOPENED_MAX: usize = 1024;

impl Unopened {
    pub(crate) fn keep(&self, mark: Mark, now: Mono, failed: &Failed) {
        let mut kept = self.0.borrow_mut();
        if kept.len() >= UNOPENED_MAX {
            kept.clear();
        }
        kept.insert(mark, (now, failed.clone()));
    }

    /// Why it was not opened since then.
    pub(crate) fn since(&self, mark: &Mark, began: Mono) -> Option<Failed> {
        let kept = self.0.borrow();
        let (at, failed) = kept.get(mark)?;
        (*at >= began).then(|| failed.clone())
    }
}

/// How long it is kept what a server speaks.
const SPEAKS_FOR: Duration = Duration::from_secs(5 * 60);

/// Of so many servers and callers it is kept: 32 MiB, where each server tells each caller something else of itself, and all that is passed on.
const SPEAKS_MAX: usize = 4096;

/// A server; and the caller, where it is asked as him alone: what it says to him says nothing of what others hear.
pub(crate) type Spoken = (usize, Option<Mark>);

/// What a server speaks with whoever brings no session.
#[derive(Clone)]
pub(crate) enum Speaks {
    /// The version without sessions, in which it said this of itself.
    Modern(Rc<Answered>),
    /// Versions with sessions alone.
    Legacy,
}

/// A list, when it came, and how often its server had told of a change when it was asked for.
struct Kept {
    at: Mono,
    changes: u64,
    list: Arc<Catalog>,
}

/// A server, what is listed, and the version that it is spoken to in.
pub(crate) type Key = (usize, Kind, Version);

/// How long it is kept that a server gave no list.
const FAILED_FOR: Duration = Duration::from_secs(1);

/// Which servers gave no list a moment ago, so that they are not asked with each message. In which of their sessions that was is kept with
/// it: what is wrong with one is no reason to ask nobody in another.
#[derive(Default)]
pub(crate) struct Failures(RefCell<HashMap<Key, Failure>>);

/// When a server gave no list, and in which of its sessions.
type Failure = (Mono, Option<Box<str>>);

impl Failures {
    /// It gave none in this session of its own.
    pub(crate) fn keep(&self, key: Key, now: Mono, session: Option<&str>) {
        let failed = (now, session.map(Box::from));
        self.0.borrow_mut().insert(key, failed);
    }

    /// Whether it just did that.
    pub(crate) fn has(&self, key: Key, now: Mono, session: Option<&str>) -> bool {
        let failures = self.0.borrow();
        failures
            .get(&key)
            .is_some_and(|(at, of)| of.as_deref() == session && now.since(*at) < FAILED_FOR)
    }
}

/// How long a list is kept: no longer than its server says.
fn kept_for(config: &policy::mcp::Mcp, list: &Catalog) -> Duration {
    let said = list.fresh.map(|fresh| Duration::from_millis(fresh.ttl_ms));
    said.map_or(config.lists, |said| said.min(config.lists))
}

impl Tools {
    /// What belongs to this snapshot, where it has servers of tools.
    pub(crate) fn of(snapshot: &Snapshot) -> Option<Self> {
        let config = snapshot.mcp.as_deref()?;
        let address = |server: &policy::mcp::Server| {
            let backend = snapshot.backend(server.backend);
            let endpoint = backend.and_then(|b| b.endpoints.first());
            let endpoint = endpoint.and_then(|id| snapshot.endpoint(*id));
            endpoint.map_or_else(String::new, |endpoint| {
                let scheme = if endpoint.origin.tls { "https" } else { "http" };
                format!("{scheme}://{}{}", endpoint.authority, endpoint.base_path)
            })
        };
        let places = config.routes.iter().map(|of| {
            let name = snapshot.route(of.route).map_or("", |route| &route.name);
            let servers = config.servers_of(of);
            Place::new(name, servers.map(|server| (&*server.name, address(server))))
        });
        Some(Self {
            sealer: Sealer::new(&config.secret, config.previous.as_ref())?,
            places: places.collect(),
            lists: RefCell::default(),
            own_lists: RefCell::default(),
            failures: Failures::default(),
            speaks: RefCell::default(),
            answers: Cell::default(),
            unopened: Unopened::default(),
        })
    }

    /// Room for so many bytes of an answer in place of so many; false where there is none.
    pub(crate) fn hold(&self, before: usize, bytes: usize) -> bool {
        let held = self.answers.get().saturating_sub(before) + bytes;
        let has_room = held <= ANSWERS_BYTES_MAX || bytes <= before;
        if has_room {
            self.answers.set(held);
        }
        has_room
    }

    /// So many bytes of an answer wait for its client: they count, whether there is room or not.
    pub(crate) fn waits(&self, bytes: usize) {
        self.answers.set(self.answers.get().saturating_add(bytes));
    }

    /// So many wait no more.
    pub(crate) fn waits_no_more(&self, bytes: usize) {
        self.answers.set(self.answers.get().saturating_sub(bytes));
    }

    /// A server's list, where it is at hand, not older than it may be, and not from before a change that the server told of; with how much
    /// longer it may be kept. `token`: of a server that is asked as its caller alone.
    pub(crate) fn list(
        &self,
        key: Key,
        token: Option<OwnTokens>,
        now: Mono,
        config: &policy::mcp::Mcp,
    ) -> Option<(Arc<Catalog>, Duration)> {
        let changes = config.servers.get(key.0)?.changes.count();
        let (lists, own) = (self.lists.borrow(), self.own_lists.borrow());
        let kept = match token {
            None => lists.get(&key),
            Some(token) => own.get(key, token),
        };
        let kept = kept.filter(|kept| kept.changes == changes)?;
        let left = kept_for(config, &kept.list).saturating_sub(now.since(kept.at));
        (!left.is_zero()).then(|| (Arc::clone(&kept.list), left))
    }

    /// What a server speaks, where that is known.
    pub(crate) fn speaks(&self, of: Spoken, now: Mono) -> Option<Speaks> {
        let speaks = self.speaks.borrow();
        let (at, speaks) = speaks.get(&of)?;
        (now.since(*at) < SPEAKS_FOR).then(|| speaks.clone())
    }

    /// It speaks this. What there is no room for is asked again.
    pub(crate) fn has_spoken(&self, of: Spoken, now: Mono, speaks: Speaks) {
        let mut kept = self.speaks.borrow_mut();
        if of.1.is_some() {
            if kept.len() >= SPEAKS_MAX {
                kept.retain(|_, (at, _)| now.since(*at) < SPEAKS_FOR);
            }
            if kept.len() >= SPEAKS_MAX {
                return;
            }
        }
        kept.insert(of, (now, speaks));
    }

    /// It does not, any more.
    pub(crate) fn ask_again(&self, of: Spoken) {
        self.speaks.borrow_mut().remove(&of);
    }

    /// Keeps it; `changes` as they were before it was asked for. How long.
    pub(crate) fn keep(
        &self,
        key: Key,
        token: Option<OwnTokens>,
        (now, changes): (Mono, u64),
        list: &Arc<Catalog>,
        config: &policy::mcp::Mcp,
    ) -> Duration {
        let kept = Kept {
            at: now,
            changes,
            list: Arc::clone(list),
        };
        let good_for = |list: &Catalog| kept_for(config, list);
        match token {
            None => drop(self.lists.borrow_mut().insert(key, kept)),
            Some(token) => {
                let is_good = |kept: &Kept| now.since(kept.at) < good_for(&kept.list);
                self.own_lists.borrow_mut().keep(key, token, kept, is_good);
            }
        }
        good_for(list)
    }

    /// A server refuses a token: what it listed to that is nobody's.
    pub(crate) fn forget_lists(&self, server: usize, token: OwnTokens) {
        self.own_lists.borrow_mut().forget(server, token);
    }
}

#[cfg(test)]
mod tests {
    //! What is kept of servers that gave no list.

    use std::time::Duration;

    use mcp::catalog::Kind;
    use mcp::version::Version;
    use policy::clock::Mono;

    use super::{FAILED_FOR, Failures};

    #[test]
    fn a_server_that_gave_no_list_is_not_asked_again_at_once_in_the_same_session() {
        let (failures, key) = (Failures::default(), (0, Kind::Tools, Version::V20251125));
        let at = |after: Duration| Mono::default().after(after);
        failures.keep(key, at(Duration::ZERO), Some("a"));
        let short = FAILED_FOR - Duration::from_millis(1);
        assert!(failures.has(key, at(short), Some("a")));
        assert!(!failures.has(key, at(FAILED_FOR), Some("a")));
        for other in [Some("b"), None] {
            assert!(!failures.has(key, at(short), other));
        }
        let prompts = (0, Kind::Prompts, Version::V20251125);
        assert!(!failures.has(prompts, at(short), Some("a")));
    }
}
