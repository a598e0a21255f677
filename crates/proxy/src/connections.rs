//! The connections of one worker: how many, from where, and which are one too many.
//!
//! Invariant: a connection is counted until its place is dropped, whatever ends it.
//! Not here: accepting (`acceptor`), what is said on them (`downstream`).

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use policy::record::Closed;
use policy::snapshot::Bounds;
use tokio::sync::Notify;

use crate::source::{Entered, Full, Source, Sources};

/// Connections beyond their bound that are told so at one time; others are closed without a word.
const TURNED_AWAY: usize = 64;

/// One worker's connections.
#[derive(Default)]
pub(crate) struct Connections {
    open: Cell<usize>,
    /// Those of them that are only told that there is no room.
    turned_away: Cell<usize>,
    sources: RefCell<Sources>,
    full: RefCell<Full>,
    /// Those of all workers, which share the descriptors.
    of_all: Arc<AtomicUsize>,
    /// One has ended.
    pub(crate) ended: Notify,
}

impl Connections {
    /// None yet; `of_all` counts those of all workers.
    pub(crate) fn new(of_all: Arc<AtomicUsize>) -> Rc<Self> {
        Rc::new(Self {
            of_all,
            ..Self::default()
        })
    }

    /// How many are open.
    pub(crate) fn open(&self) -> usize {
        self.open.get()
    }

    /// How many all workers have.
    pub(crate) fn of_all(&self) -> usize {
        self.of_all.load(Ordering::Relaxed)
    }

    /// Counts one in.
    pub(crate) fn begin(self: &Rc<Self>) -> Open {
        self.open.set(self.open.get() + 1);
        self.of_all.fetch_add(1, Ordering::Relaxed);
        Open(Rc::clone(self))
    }

    /// Whether a connection from there may be one more, with its place among those of its source.
    pub(crate) fn admit(
        self: &Rc<Self>,
        source: Option<Source>,
        bounds: &Bounds,
    ) -> Result<Option<Place>, Closed> {
        let served = self.open.get() - self.turned_away.get();
        if served >= bounds.connections {
            if self.full.borrow_mut().refuse(bounds.connections) {
                tracing::warn!(
                    bound = bounds.connections,
                    "connections are refused: a worker has as many as bounds.connections allows"
                );
            }
            return Err(Closed::Connections);
        }
        source
            .map(|source| self.place(source, bounds.source_connections))
            .transpose()
    }

    /// A place among those that are told that there is no room, if there is one.
    pub(crate) fn turn_away(self: &Rc<Self>) -> Option<Away> {
        let away = self.turned_away.get();
        (away < TURNED_AWAY).then(|| {
            self.turned_away.set(away + 1);
            Away(Rc::clone(self))
        })
    }

    /// A place among the connections of this source, if it has fewer than `bound`.
    pub(crate) fn place(self: &Rc<Self>, source: Source, bound: usize) -> Result<Place, Closed> {
        match self.sources.borrow_mut().enter(source, bound) {
            Entered::Within => Ok(Place {
                connections: Rc::clone(self),
                source,
            }),
            Entered::Beyond { is_first } => {
                if is_first {
                    tracing::warn!(
                        %source,
                        bound,
                        "connections are refused: a worker has as many from this source as \
                         bounds.source_connections allows"
                    );
                }
                Err(Closed::SourceConnections)
            }
        }
    }
}

/// A connection's place among those of its source, until it is dropped.
pub(crate) struct Place {
    connections: Rc<Connections>,
    source: Source,
}

impl Drop for Place {
    fn drop(&mut self) {
        let left = self.connections.sources.borrow_mut().leave(self.source);
        if let Some(refused) = left {
            let source = self.source;
            tracing::info!(%source, refused, "connections from this source are taken again");
        }
    }
}

/// A connection's place among those that are only told that there is no room, until it is dropped.
pub(crate) struct Away(Rc<Connections>);

impl Drop for Away {
    fn drop(&mut self) {
        let away = &self.0.turned_away;
        away.set(away.get().saturating_sub(1));
    }
}

/// A connection in the count, whatever ends it.
pub(crate) struct Open(Rc<Connections>);

impl Drop for Open {
    fn drop(&mut self) {
        let Connections {
            open,
            turned_away,
            full,
            of_all,
            ended,
            ..
        } = &*self.0;
        open.set(open.get().saturating_sub(1));
        let served = open.get().saturating_sub(turned_away.get());
        if let Some(refused) = full.borrow_mut().eased(served) {
            tracing::info!(refused, "connections are taken again");
        }
        of_all.fetch_sub(1, Ordering::Relaxed);
        ended.notify_one();
    }
}
