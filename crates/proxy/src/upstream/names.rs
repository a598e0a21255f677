//! The addresses of one name: looked up beside the worker, kept for a moment, and for longer where a look-up fails;
//! looked up again on their own clock while connections are open.
//!
//! Invariant: one look-up of a name runs at a time in a worker, to its own end, whoever waits for it or gives up;
//! addresses that were last found longer ago than the configuration allows are never used.
//! Not here: connecting to them (`connect`), which of them is next (`spread`).

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use super::spread::Spread;
use crate::timers::Timers;

/// New connections within this time share one look-up, and open ones ask again after it.
const FRESH_FOR: Duration = Duration::from_secs(5);
/// How long a look-up may take where the last good addresses can serve instead.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long any look-up may take: what glibc takes to ask three silent servers twice, 5 s each. The system's call
/// cannot be ended and keeps its thread beyond it, so that a shorter bound would pile up threads.
const DEADLINE: Duration = Duration::from_secs(30);
/// Addresses of a name that are used.
const MAX_ADDRESSES: usize = 64;

/// What one worker knows of one name.
#[derive(Clone, Default)]
pub(crate) struct Names(Rc<State>);

#[derive(Default)]
struct State {
    known: RefCell<Option<Known>>,
    /// Why the last look-up failed, until one succeeds.
    failed: RefCell<Option<io::Error>>,
    /// When the look-up that runs began.
    running: Cell<Option<Instant>>,
    /// Wakes those who wait for the look-up that runs.
    ended: Notify,
    /// How long addresses are used after they were last found.
    keep: Cell<Duration>,
    spread: Spread,
}

struct Known {
    addresses: Rc<[SocketAddr]>,
    found: Instant,
    /// No look-up before then.
    fresh_until: Option<Instant>,
}

/// A look-up that runs: however its task ends, the next one may begin.
struct Running(Rc<State>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.running.set(None);
        self.0.ended.notify_waiters();
    }
}

impl Names {
    /// How long addresses may be used after they were last found.
    pub(crate) fn keep_for(&self, keep: Duration) {
        self.0.keep.set(keep);
    }

    /// None of the addresses took a connection: the next one looks them up anew.
    pub(crate) fn doubt(&self) {
        if let Some(known) = &mut *self.0.known.borrow_mut() {
            known.fresh_until = None;
        }
    }

    /// Whether the name has had one address only, so that nothing has to be asked of addresses.
    #[inline]
    pub(crate) fn is_one(&self) -> bool {
        self.0.spread.is_one()
    }

    /// The address to which the next call goes, where the name has several.
    #[inline]
    pub(crate) fn turn(&self) -> Option<IpAddr> {
        self.0.spread.turn(Instant::now)
    }

    /// Another address took the connection that this one was to have.
    pub(crate) fn avoid(&self, ip: IpAddr) {
        self.0.spread.avoid(ip, Instant::now());
    }

    /// Whether a call may go to a connection to this address.
    pub(crate) fn may_use(&self, ip: IpAddr) -> bool {
        self.0.spread.may_use(ip)
    }

    /// Whether a connection to this address is kept.
    pub(crate) fn may_keep(&self, ip: IpAddr) -> bool {
        self.0.spread.may_keep(ip)
    }

    /// Looks a name up again whose addresses are no longer fresh, if it was looked up at all.
    pub(crate) fn refresh(&self, host: &str, port: u16, timers: &Timers) {
        let state = &*self.0;
        let is_known = state.known.borrow().is_some();
        if is_known && state.running.get().is_none() && state.fresh().is_none() {
            self.begin(host, timers, look_up(host, port));
        }
    }

    /// What a look-up would have found.
    #[cfg(test)]
    pub(crate) fn apply(&self, host: &str, addresses: Vec<SocketAddr>) {
        self.0.apply(host, Ok(addresses));
    }

    /// The addresses of a host, in the order in which to try them.
    pub(crate) async fn addresses(
        &self,
        host: &str,
        port: u16,
        timers: &Timers,
    ) -> io::Result<Rc<[SocketAddr]>> {
        if let Ok(ip) = host.parse::<IpAddr>() {
            return Ok(Rc::new([SocketAddr::new(ip, port)]));
        }
        self.found(host, timers, || look_up(host, port)).await
    }

    async fn found<F>(
        &self,
        host: &str,
        timers: &Timers,
        look_up: impl FnOnce() -> F,
    ) -> io::Result<Rc<[SocketAddr]>>
    where
        F: Future<Output = io::Result<Vec<SocketAddr>>> + 'static,
    {
        let state = &*self.0;
        if let Some(fresh) = state.fresh() {
            return Ok(fresh);
        }
        let mut ended = pin!(state.ended.notified());
        let began = state.running.get();
        let began = began.unwrap_or_else(|| self.begin(host, timers, look_up()));
        let has_ended = state.last_good().is_some() && {
            // Counted from its beginning: what was slow for one is not waited for by the next.
            let patience = PATIENCE.saturating_sub(began.elapsed());
            timers.timeout(patience, ended.as_mut()).await.is_ok()
        };
        if !has_ended {
            if let Some(last) = state.last_good() {
                return Ok(last);
            }
            ended.await;
        }
        state.outcome()
    }

    /// Begins a look-up in a task of its own, so that it outlives whoever asked for it.
    fn begin<F>(&self, host: &str, timers: &Timers, look_up: F) -> Instant
    where
        F: Future<Output = io::Result<Vec<SocketAddr>>> + 'static,
    {
        let now = Instant::now();
        self.0.running.set(Some(now));
        let running = Running(Rc::clone(&self.0));
        let host = host.to_owned();
        let look_up = timers.timeout(DEADLINE, look_up);
        tokio::task::spawn_local(async move {
            let looked_up = look_up.await;
            let looked_up = looked_up.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
            running.0.apply(&host, looked_up);
        });
        now
    }
}

fn look_up(host: &str, port: u16) -> impl Future<Output = io::Result<Vec<SocketAddr>>> + use<> {
    let host = host.to_owned();
    async move {
        let found = tokio::net::lookup_host((host, port)).await?;
        Ok(found.collect())
    }
}

impl State {
    /// Keeps what was found; after a failure the last good addresses are fresh once more.
    fn apply(&self, host: &str, looked_up: io::Result<Vec<SocketAddr>>) {
        let now = Instant::now();
        let error = match looked_up {
            Ok(addresses) if !addresses.is_empty() => {
                let addresses = interleaved(addresses);
                self.spread.apply(host, &addresses, now);
                *self.known.borrow_mut() = Some(Known {
                    addresses: addresses.into(),
                    found: now,
                    fresh_until: Some(now + FRESH_FOR),
                });
                *self.failed.borrow_mut() = None;
                return;
            }
            Ok(_) => io::Error::other("the name has no address"),
            Err(error) => error,
        };
        let was_failing = self.failed.borrow().is_some();
        let young = |known: &&mut Known| self.is_young(known);
        if let Some(known) = self.known.borrow_mut().as_mut().filter(young) {
            known.fresh_until = Some(now + FRESH_FOR);
            if !was_failing {
                tracing::warn!(host, %error, "cannot look up an upstream's name; its last known addresses stay in use");
            }
        }
        *self.failed.borrow_mut() = Some(error);
    }

    /// What a look-up that ended has for those who waited for it.
    fn outcome(&self) -> io::Result<Rc<[SocketAddr]>> {
        self.last_good().ok_or_else(|| {
            let failed = self.failed.borrow();
            let cut_off = || io::Error::other("the look-up was cut off");
            failed.as_ref().map_or_else(cut_off, again)
        })
    }

    fn fresh(&self) -> Option<Rc<[SocketAddr]>> {
        let known = self.known.borrow();
        let known = known.as_ref()?;
        let is_fresh = known
            .fresh_until
            .is_some_and(|until| Instant::now() < until);
        (is_fresh && self.is_young(known)).then(|| Rc::clone(&known.addresses))
    }

    fn last_good(&self) -> Option<Rc<[SocketAddr]>> {
        let known = self.known.borrow();
        let known = known.as_ref().filter(|known| self.is_young(known))?;
        Some(Rc::clone(&known.addresses))
    }

    /// Whether it may still be used; what was just found always may.
    fn is_young(&self, known: &Known) -> bool {
        known.found.elapsed() < self.keep.get().max(FRESH_FOR)
    }
}

/// The same error for one more who waited; the system's number says whose fault it is.
fn again(error: &io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(number) => io::Error::from_raw_os_error(number),
        None => io::Error::new(error.kind(), error.to_string()),
    }
}

/// The first addresses, families in turn, beginning with the one that the system would take first (RFC 8305, 4).
fn interleaved(addresses: Vec<SocketAddr>) -> Vec<SocketAddr> {
    let begins_v6 = addresses.first().is_some_and(SocketAddr::is_ipv6);
    let (first, second): (Vec<_>, Vec<_>) = addresses
        .into_iter()
        .partition(|address| address.is_ipv6() == begins_v6);
    let (mut first, mut second) = (first.into_iter(), second.into_iter());
    let mut all = Vec::new();
    loop {
        let before = all.len();
        all.extend(first.next());
        all.extend(second.next());
        if all.len() == before || all.len() >= MAX_ADDRESSES {
            all.truncate(MAX_ADDRESSES);
            return all;
        }
    }
}

#[cfg(test)]
mod tests;
