//! One worker's connections to one origin.
//!
//! Invariant: at most as many connections, of them at most as many idle, each idle for at most as long as its bounds
//! say, which the configuration in use sets; the same ones are taken first, so that surplus connections grow old and
//! close; one connection at a time is opened where it will be shared; a call goes to no connection whose address the
//! origin's name has no longer.
//! Not here: dialling (`connect`), health (`policy::attempt`).

use std::cell::{Cell, RefCell};
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;

use policy::snapshot::{Origin, PoolBounds, Protocol};
use rustls::ClientConfig;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::h2;
use super::names::Names;
use crate::stream::Stream;
use crate::timers::Timers;

/// A kept-alive HTTP/1.1 connection, counted while it lives.
pub(crate) struct Connection {
    pub(crate) stream: Stream,
    address: IpAddr,
    _open: Open,
}

/// Idle connections, and HTTP/2 connections with room.
pub(crate) struct Pool {
    pub(crate) origin: Origin,
    /// The addresses of the origin, or of the proxy before it.
    pub(crate) names: Names,
    trust: RefCell<Option<Arc<ClientConfig>>>,
    bounds: Cell<PoolBounds>,
    /// Each with the last pruning before it came to rest: near enough, and no look at the clock.
    idle: RefCell<Vec<(Connection, Instant)>>,
    pruned_at: Cell<Instant>,
    pub(crate) h2: RefCell<Vec<h2::Handle>>,
    /// Whoever opens a connection that may be shared holds it: the others wait for that one.
    pub(crate) opening: Semaphore,
    /// The connection opened last speaks HTTP/2; before the first, that is all it may speak.
    pub(crate) is_shared: Cell<bool>,
    open: Rc<Cell<usize>>,
    reported: Rc<Cell<usize>>,
    /// Connections that were closed as the name has their address no longer.
    moved: Cell<u64>,
}

/// How many connections of a pool are open, also of one that is gone.
pub(crate) struct Opened {
    open: Rc<Cell<usize>>,
    reported: Rc<Cell<usize>>,
}

impl Opened {
    /// How their number changed since the last call.
    pub(crate) fn change(&self) -> i64 {
        let count = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
        count(self.open.get()) - count(self.reported.replace(self.open.get()))
    }

    pub(crate) fn is_none(&self) -> bool {
        self.open.get() == 0
    }
}

/// One open connection in the count.
pub(crate) struct Open(Rc<Cell<usize>>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.set(self.0.get().saturating_sub(1));
    }
}

impl Pool {
    pub(crate) fn new(origin: Origin) -> Self {
        Self {
            opening: Semaphore::new(1),
            is_shared: Cell::new(origin.protocol == Protocol::Http2),
            origin,
            names: Names::default(),
            trust: RefCell::default(),
            bounds: Cell::default(),
            idle: RefCell::default(),
            pruned_at: Cell::new(Instant::now()),
            h2: RefCell::default(),
            open: Rc::default(),
            reported: Rc::default(),
            moved: Cell::default(),
        }
    }

    /// Sets the roots for connections to come.
    pub(crate) fn trust(&self, connector: Option<Arc<ClientConfig>>) {
        *self.trust.borrow_mut() = connector;
    }

    /// Sets the bounds from now on; connections beyond them are closed as they come to rest or grow old.
    pub(crate) fn bound(&self, bounds: PoolBounds) {
        self.bounds.set(bounds);
    }

    /// Calls on one HTTP/2 connection at one time.
    pub(crate) fn streams(&self) -> usize {
        self.bounds.get().streams
    }

    /// The roots for a new connection.
    pub(crate) fn connector(&self) -> Option<Arc<ClientConfig>> {
        self.trust.borrow().clone()
    }

    /// Whether a call that goes to `to`, or to any address of the name, may go to a connection to `address`.
    pub(super) fn fits(&self, address: IpAddr, to: Option<IpAddr>) -> bool {
        match to {
            Some(to) => to == address,
            None => self.names.may_use(address),
        }
    }

    /// An idle connection that still looks good, to that address, or else to any that the name has.
    pub(crate) fn take(&self, to: Option<IpAddr>) -> Option<Connection> {
        if self.names.is_one() {
            let mut idle = self.idle.borrow_mut();
            while let Some((connection, _)) = idle.pop() {
                if connection.stream.is_quiet() {
                    return Some(connection);
                }
            }
            return None;
        }
        self.take_fitting(to)
    }

    #[cold]
    fn take_fitting(&self, to: Option<IpAddr>) -> Option<Connection> {
        let mut idle = self.idle.borrow_mut();
        loop {
            let fits = |(kept, _): &(Connection, _)| self.fits(kept.address, to);
            let at = idle.iter().rposition(fits)?;
            let (connection, _) = idle.remove(at);
            if connection.stream.is_quiet() {
                return Some(connection);
            }
        }
    }

    /// Keeps a connection for the next attempt.
    pub(crate) fn put(&self, connection: Connection) {
        if !self.names.is_one() && !self.names.may_keep(connection.address) {
            return self.moved(1);
        }
        let mut idle = self.idle.borrow_mut();
        if idle.len() < self.bounds.get().idle {
            idle.push((connection, self.pruned_at.get()));
        }
    }

    /// Counts a new connection in, when there is room for it.
    pub(crate) fn admit(&self) -> Option<Open> {
        let room = self.open.get() < self.bounds.get().connections;
        room.then(|| {
            self.open.set(self.open.get() + 1);
            Open(Rc::clone(&self.open))
        })
    }

    /// Closes what was idle for too long, and what its peer has closed. Gives how the number of open
    /// connections changed since the last call.
    pub(crate) fn prune(&self) -> i64 {
        let now = Instant::now();
        self.pruned_at.set(now);
        let idle_time = self.bounds.get().idle_time;
        let is_stale = |since: &Instant| now.saturating_duration_since(*since) > idle_time;
        let mut moved = 0;
        let mut stays = |address: IpAddr| {
            let stays = self.names.may_keep(address);
            moved += u64::from(!stays);
            stays
        };
        let mut idle = self.idle.borrow_mut();
        idle.retain(|(kept, since)| {
            !is_stale(since) && kept.stream.is_quiet() && stays(kept.address)
        });
        drop(idle);
        let mut resting = 0;
        self.h2.borrow_mut().retain(|shared| {
            if !stays(shared.address) {
                // What runs on it ends there: it closes after the last.
                return false;
            }
            let rested = shared.rests_since(now);
            resting += usize::from(rested.is_some());
            let is_kept = |since: Instant| resting <= self.bounds.get().idle && !is_stale(&since);
            shared.is_open() && rested.is_none_or(is_kept)
        });
        self.moved(moved);
        self.opened().change()
    }

    /// Its count, which outlives it.
    pub(crate) fn opened(&self) -> Opened {
        Opened {
            open: Rc::clone(&self.open),
            reported: Rc::clone(&self.reported),
        }
    }

    /// Looks the name up again while connections are open, now and then.
    pub(crate) fn refresh(&self, timers: &Timers) {
        if self.open.get() > 0 {
            let (host, port) = self.dialled();
            self.names.refresh(host, port, timers);
        }
    }

    /// Who is dialled: the origin, or the proxy before it.
    pub(super) fn dialled(&self) -> (&str, u16) {
        match &self.origin.proxy {
            None => (&self.origin.host, self.origin.port),
            Some(proxy) => (&proxy.host, proxy.port),
        }
    }

    fn moved(&self, many: u64) {
        self.moved.set(self.moved.get() + many);
    }

    /// How many connections were closed since the last call as the name has their address no longer.
    pub(crate) fn take_moved(&self) -> u64 {
        self.moved.take()
    }
}

impl Connection {
    pub(crate) fn new(stream: Stream, open: Open) -> Self {
        Self {
            address: stream.peer_address(),
            stream,
            _open: open,
        }
    }
}

#[cfg(test)]
mod tests;
