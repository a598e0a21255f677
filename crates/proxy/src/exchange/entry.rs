//! An admitted exchange in the book: entered before it goes upstream, marked as it comes along.
//!
//! Invariant: on a strict route nothing goes upstream until the book has said that the entry is on
//! disk. Elsewhere nobody waits; without a book nothing happens here at all.
//! Not here: settling, which is the end of every exchange (`open`).

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use policy::book::{Billing, Told};
use policy::clock::Mono;
use policy::refusal::Refusal;
use tokio::sync::oneshot;
use wire::usage::Reading;

use super::open::{Meter, Open};
use super::{Stop, watch};
use crate::deadline::Deadline;
use crate::downstream::Downstream;

/// How long a call waits for its entry to reach the disk.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often a stream notes how far it has come.
const MARK_EVERY: Duration = Duration::from_secs(5);

/// Enters an admitted exchange, and waits for the disk where the route says so.
pub(super) async fn enter<D: Downstream>(
    open: &mut Open,
    client: &mut D,
    deadline: &mut Deadline,
) -> Result<(), Stop> {
    let snapshot = &open.view.snapshot;
    let route = open.record.route.and_then(|id| snapshot.route(id));
    if route.is_some_and(|route| route.billing == Billing::Strict) {
        // Boxed: its state would make every exchange larger.
        return Box::pin(entered(open, client, deadline)).await;
    }
    admit(open, None);
    Ok(())
}

/// Enters and waits: until the entry is on disk, will not be, or takes too long.
async fn entered<D: Downstream>(
    open: &mut Open,
    client: &mut D,
    deadline: &mut Deadline,
) -> Result<(), Stop> {
    let (tell, mut told) = oneshot::channel();
    admit(
        open,
        Some(Box::new(move |is_kept| {
            // Nobody listens any more when the client has left.
            let _gone = tell.send(is_kept);
        })),
    );
    let worker = Rc::clone(&open.worker);
    open.own_ns += worker.now().0 - open.mark.0;
    deadline.set(PATIENCE);
    let mut gone = watch(client, &worker);
    let is_kept = poll_fn(|cx| {
        if let Poll::Ready(told) = Pin::new(&mut told).poll(cx) {
            return Poll::Ready(Ok(Some(told.unwrap_or(false))));
        }
        if gone(cx).is_ready() {
            return Poll::Ready(Err(Stop::Gone));
        }
        deadline.poll(cx).map(|()| Ok(None))
    });
    let is_kept = is_kept.await?;
    deadline.clear();
    open.mark = worker.now();
    if is_kept == Some(true) {
        return Ok(());
    }
    if let (None, Some(entry)) = (is_kept, open.entry) {
        // It may reach the disk yet.
        worker.book(|book| book.withdraw(entry));
    }
    open.withdrawn();
    Err(Refusal::LedgerUnavailable.into())
}

fn admit(open: &mut Open, told: Option<Told>) {
    let Some(calling) = &open.admitted else {
        return;
    };
    let (snapshot, record, held) = (&open.view.snapshot, &open.record, calling.held);
    let worker = &open.worker;
    open.entry = worker.book(|book| book.admit(snapshot, record, held, told));
}

/// When an open stream next notes how far it has come.
pub(super) struct Marks {
    /// `None` where there is nothing to note.
    due: Option<Mono>,
}

impl Marks {
    /// The first is due one interval from now.
    pub(super) fn of(open: &Open) -> Self {
        let is_stream = open.meter.events().is_some() && open.entry.is_some();
        Self {
            due: is_stream.then(|| open.worker.latest().after(MARK_EVERY)),
        }
    }

    /// Notes it when it is time.
    pub(super) fn pass(&mut self, open: &Open) {
        let (Some(due), Some(entry)) = (self.due, open.entry) else {
            return;
        };
        let now = open.worker.latest();
        if now < due {
            return;
        }
        self.due = Some(now.after(MARK_EVERY));
        let (tokens, bytes) = (certain(&open.meter), open.record.bytes_out);
        open.worker.book(|book| book.progress(entry, tokens, bytes));
    }
}

/// Tokens that a stream has certainly come to: what the engine said so far, or else one for every
/// second event, because some events begin, end or only describe.
fn certain(meter: &Meter) -> u64 {
    let scanner = match meter {
        Meter::Stream(scanner) => scanner,
        Meter::Coded(coded) => return certain(&coded.meter),
        Meter::Nothing | Meter::Unary(_) | Meter::Blind | Meter::Error(_) => return 0,
    };
    let tally = scanner.tally();
    match tally.usage {
        Reading::Valid(usage) => {
            let told = |count: Option<u64>| count.unwrap_or(0);
            told(usage.prompt).saturating_add(told(usage.completion))
        }
        Reading::Absent | Reading::Invalid(_) => tally.data_events / 2,
    }
}
