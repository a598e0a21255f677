//! A client that left after its call went upstream: the upstream is told, or read to its end.
//!
//! Invariant: nothing more is forwarded or tried again; a drain ends by itself, at its route's
//! bounds or with its worker, and a worker runs no more of them than the configuration allows.
//! Not here: noticing that a client left (`downstream`), what is read for usage (`wire`).

use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use policy::abandon::{Abandon, Drain, Rest};
use policy::clock::Mono;
use policy::exchange::{Ending, tokens_of};
use policy::record::Gauge;

use super::open::Open;
use crate::deadline::Deadline;
use crate::downstream::Downstream;
use crate::stint::Stint;
use crate::upstream::{Body, Piece};
use crate::worker::Worker;

/// What is done about an exchange whose client left.
pub(crate) struct Leaving {
    pub(crate) rest: Rest,
    pub(crate) at: Mono,
    drain: Option<Draining>,
}

/// A place among the worker's drains, until it is dropped.
struct Draining {
    bounds: Drain,
    deadline: Deadline,
    worker: Rc<Worker>,
}

impl Leaving {
    /// The client left now.
    fn begin(worker: &Rc<Worker>, drains_max: usize, abandon: Abandon) -> Self {
        let drain = match abandon {
            Abandon::Cancel => None,
            Abandon::Drain(bounds) => Some(bounds),
        };
        let has_room = worker.drains.get() < drains_max;
        Self {
            rest: match drain {
                None => Rest::Cancelled,
                Some(_) if has_room => Rest::CutShort,
                Some(_) => Rest::NoRoom,
            },
            at: worker.now(),
            drain: drain
                .filter(|_| has_room)
                .map(|bounds| Draining::begin(worker, bounds)),
        }
    }
}

impl Draining {
    fn begin(worker: &Rc<Worker>, bounds: Drain) -> Self {
        worker.drains.set(worker.drains.get() + 1);
        worker.sink(|sink| sink.gauge(Gauge::Drains, 1));
        let mut deadline = Deadline::new(&worker.wheel);
        deadline.set(bounds.time);
        Self {
            bounds,
            deadline,
            worker: Rc::clone(worker),
        }
    }
}

impl Drop for Draining {
    fn drop(&mut self) {
        self.worker
            .drains
            .set(self.worker.drains.get().saturating_sub(1));
        self.worker.sink(|sink| sink.gauge(Gauge::Drains, -1));
    }
}

/// What the wait for an answer also waits for: that the client has left, and that nobody reads on for it.
pub(super) fn watch<'a, D: Downstream>(
    client: &'a mut D,
    worker: &'a Rc<Worker>,
    (abandon, drains_max): (Abandon, usize),
    leaving: &'a mut Option<Box<Leaving>>,
) -> impl FnMut(&mut Context<'_>) -> Poll<()> + 'a {
    move |cx| {
        if leaving.is_none() {
            ready!(client.poll_gone(worker, cx));
        }
        let leaving =
            leaving.get_or_insert_with(|| Box::new(Leaving::begin(worker, drains_max, abandon)));
        match &mut leaving.drain {
            Some(drain) => drain.deadline.poll(cx),
            None => Poll::Ready(()),
        }
    }
}

/// The client left in the middle of the answer. Gives whether the rest of it is read.
pub(super) fn reads_on(open: &mut Open) -> bool {
    if open.leaving.is_none() {
        let (abandon, drains_max) = policy_of(open);
        let leaving = Leaving::begin(&open.worker, drains_max, abandon);
        open.leaving = Some(Box::new(leaving));
    }
    open.leaving.as_ref().is_some_and(|l| l.drain.is_some())
}

/// What the route does when its client leaves, and how many answers may be read on at once.
pub(super) fn policy_of(open: &Open) -> (Abandon, usize) {
    let snapshot = &open.view.snapshot;
    let route = open.record.route.and_then(|id| snapshot.route(id));
    let abandon = route.map_or(Abandon::Cancel, |route| route.abandon);
    (abandon, snapshot.bounds.drains)
}

/// Reads the rest of an answer in a task of its own, then ends the exchange.
pub(super) fn read_on(mut open: Open, mut body: Box<Body>) {
    open.forwarded_events = open.meter.events();
    tokio::task::spawn_local(async move {
        let rest = rest(&mut open, &mut body).await;
        // Told before the record, so that whoever reads that finds nothing running.
        drop(body);
        if let Some(leaving) = &mut open.leaving {
            leaving.rest = rest;
        }
        open.ended(Ending::Left);
    });
}

/// Reads until the answer ends, breaks off or comes to a bound.
async fn rest(open: &mut Open, body: &mut Body) -> Rest {
    let worker = Rc::clone(&open.worker);
    let (meter, drained_bytes) = (&mut open.meter, &mut open.drained_bytes);
    let Some(leaving) = open.leaving.as_mut() else {
        return Rest::CutShort;
    };
    let Some(drain) = &mut leaving.drain else {
        return Rest::CutShort;
    };
    let due = leaving.at.after(drain.bounds.time);
    let before = meter.events().unwrap_or(0);
    let mut stint = Stint::default();
    loop {
        stint.pass().await;
        let piece = poll_fn(|cx| {
            let piece = worker.scratch(|scratch| {
                body.poll_piece(cx, scratch).map(|piece| {
                    let Piece { data, is_over } = piece.ok()?;
                    meter.observe(data);
                    stint.add(data.len());
                    Some((data.len() as u64, is_over))
                })
            });
            match piece {
                Poll::Ready(piece) => Poll::Ready(piece),
                Poll::Pending => drain.deadline.poll(cx).map(|()| None),
            }
        });
        let Some((length, is_over)) = piece.await else {
            return Rest::CutShort;
        };
        body.taken();
        *drained_bytes += length;
        if is_over {
            meter.finish();
            return Rest::Drained;
        }
        let tokens = meter
            .events()
            .map_or(tokens_of(*drained_bytes), |events| events - before);
        // A stream that never pauses must come to its time too.
        if tokens > drain.bounds.tokens || worker.latest() >= due {
            return Rest::CutShort;
        }
    }
}
