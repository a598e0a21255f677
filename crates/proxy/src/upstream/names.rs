//! The addresses of one name: looked up beside the worker, kept for a moment, and for longer where a look-up fails.
//!
//! Invariant: one look-up of a name runs at a time in a worker; addresses that were last found longer ago than
//! the configuration allows are never used.
//! Not here: connecting to them (`connect`).

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::time::{Duration, Instant};

use tokio::sync::Mutex;

use crate::timers::Timers;

/// New connections within this time share one look-up.
const FRESH_FOR: Duration = Duration::from_secs(5);
/// How long a look-up may take where the last good addresses can serve instead.
const PATIENCE: Duration = Duration::from_secs(2);
/// Addresses of a name that are used.
const MAX_ADDRESSES: usize = 8;

/// What one worker knows of one name.
#[derive(Default)]
pub(crate) struct Names {
    known: RefCell<Option<Known>>,
    /// Held while somebody asks.
    asking: Mutex<()>,
    failed: Cell<Option<Instant>>,
    /// How long addresses are used after they were last found.
    keep: Cell<Duration>,
}

struct Known {
    addresses: Rc<[SocketAddr]>,
    found: Instant,
    /// No look-up before then.
    fresh_until: Option<Instant>,
}

impl Names {
    /// How long addresses may be used after they were last found.
    pub(crate) fn keep_for(&self, keep: Duration) {
        self.keep.set(keep);
    }

    /// None of the addresses took a connection: the next one looks them up anew.
    pub(crate) fn doubt(&self) {
        if let Some(known) = &mut *self.known.borrow_mut() {
            known.fresh_until = None;
        }
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
        let look_up = || async {
            let found = tokio::net::lookup_host((host, port)).await?;
            Ok(found.collect())
        };
        self.found(host, timers, look_up).await
    }

    async fn found<F>(
        &self,
        host: &str,
        timers: &Timers,
        look_up: impl FnOnce() -> F,
    ) -> io::Result<Rc<[SocketAddr]>>
    where
        F: Future<Output = io::Result<Vec<SocketAddr>>>,
    {
        let came = Instant::now();
        if let Some(fresh) = self.fresh(came) {
            return Ok(fresh);
        }
        let _asking = self.asking.lock().await;
        if let Some(fresh) = self.fresh(Instant::now()) {
            return Ok(fresh);
        }
        let last = self.last_good();
        if last.is_none() && self.failed.get().is_some_and(|failed| failed >= came) {
            // It failed while this one waited for it.
            return Err(io::Error::other("the look-up failed"));
        }
        let looked_up = match &last {
            None => look_up().await,
            Some(_) => timers
                .timeout(PATIENCE, look_up())
                .await
                .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())),
        };
        let now = Instant::now();
        let error = match looked_up {
            Ok(addresses) if !addresses.is_empty() => {
                let addresses: Rc<[SocketAddr]> = interleaved(addresses).into();
                *self.known.borrow_mut() = Some(Known {
                    addresses: Rc::clone(&addresses),
                    found: now,
                    fresh_until: Some(now + FRESH_FOR),
                });
                self.failed.set(None);
                return Ok(addresses);
            }
            Ok(_) => io::Error::other("the name has no address"),
            Err(error) => error,
        };
        let was_failing = self.failed.replace(Some(now)).is_some();
        let Some(last) = last else { return Err(error) };
        if let Some(known) = &mut *self.known.borrow_mut() {
            known.fresh_until = Some(now + FRESH_FOR);
        }
        if !was_failing {
            tracing::warn!(host, %error, "cannot look up an upstream's name; its last addresses are used on");
        }
        Ok(last)
    }

    fn fresh(&self, now: Instant) -> Option<Rc<[SocketAddr]>> {
        let known = self.known.borrow();
        let known = known.as_ref()?;
        let is_fresh = known.fresh_until.is_some_and(|until| now < until);
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
