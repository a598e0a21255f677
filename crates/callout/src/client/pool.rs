//! Connections that wait for their next request.
//!
//! Invariant: no more for one place than the bound, none longer than its idle time: what is over it is not used, and is
//! closed within one more. One connection of HTTP/2 serves all requests to its place.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::connection::Connection;
use crate::url::Origin;

pub(super) struct Pool {
    kept_max: usize,
    idle: Duration,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    places: HashMap<Origin, Vec<Kept>>,
    is_swept: bool,
}

struct Kept {
    connection: Connection,
    since: Instant,
}

impl Pool {
    pub(super) fn new(kept_max: usize, idle: Duration) -> Self {
        Self {
            kept_max,
            idle,
            state: Mutex::default(),
        }
    }

    /// The connection that was used last.
    pub(super) fn take(&self, origin: &Origin) -> Option<Connection> {
        let mut state = self.state();
        let kept = state.places.get_mut(origin)?;
        while let Some(last) = kept.pop() {
            if !last.is_usable(self.idle) {
                continue;
            }
            if let Connection::Http2(sender) = &last.connection {
                let shared = Connection::Http2(sender.clone());
                kept.push(Kept::new(shared));
            }
            return Some(last.connection);
        }
        None
    }

    pub(super) fn keep(pool: &Arc<Self>, origin: &Origin, connection: Connection) {
        let mut state = pool.state();
        let kept = state.places.entry(origin.clone()).or_default();
        let is_shared = |kept: &Kept| matches!(kept.connection, Connection::Http2(_));
        if kept.len() >= pool.kept_max || kept.iter().any(is_shared) {
            return;
        }
        kept.push(Kept::new(connection));
        if !std::mem::replace(&mut state.is_swept, true) {
            tokio::spawn(sweep(Arc::downgrade(pool), pool.idle));
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn new(connection: Connection) -> Self {
        let since = Instant::now();
        Self { connection, since }
    }

    fn is_usable(&self, idle: Duration) -> bool {
        self.since.elapsed() < idle && !self.connection.is_closed()
    }
}

/// Closes what was kept too long, until nothing is kept.
async fn sweep(pool: std::sync::Weak<Pool>, idle: Duration) {
    loop {
        tokio::time::sleep(idle).await;
        let Some(pool) = pool.upgrade() else { return };
        let mut state = pool.state();
        state.places.retain(|_, kept| {
            kept.retain(|kept| kept.is_usable(idle));
            !kept.is_empty()
        });
        state.is_swept = !state.places.is_empty();
        if !state.is_swept {
            return;
        }
    }
}
