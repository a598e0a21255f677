//! What the exchanges of one worker share: the configuration, clocks, buffers, and the ways out.
//!
//! Invariant: nothing in a [`Worker`] is shared with another thread.
//! Not here: accepting (`acceptor`), a connection's life (`downstream`), an exchange's (`exchange`).

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::fmt::Display;
use std::rc::Rc;

use policy::attempt::Failure;
use policy::clock::Mono;
use policy::counting::Counting;
use policy::record::{AttemptRecord, Closed, Gauge, Sink, Trouble};
use policy::snapshot::Origin;
use policy::trace::Sampling;
use policy::usage_ledger::UsageLedger;
use tokio::sync::Notify;

use crate::beside::Places;
use crate::buffer::Buffers;
use crate::clock::Clock;
use crate::connections::Connections;
use crate::runtime_config::{Ports, RuntimeConfig, WorkerMetrics};
use crate::timers::Timers;
use crate::turns::Turns;
use crate::upstream::pool::{Opened, Pool};
use crate::why;
use crate::worker_snapshot::WorkerSnapshot;

/// Most bytes made of answers that wait for their clients, of all exchanges of a worker.
const UNTAKEN_BYTES_MAX: usize = 128 << 20;

/// What the tasks of one worker share.
pub(crate) struct Worker {
    view: RefCell<Rc<WorkerSnapshot>>,
    pools: RefCell<HashMap<Origin, Rc<Pool>>>,
    /// Connections of pools that no endpoint has any more, until the last has ended.
    retired: RefCell<Vec<Opened>>,
    pub(crate) clock: Clock,
    pub(crate) timers: Timers,
    pub(crate) buffers: Buffers,
    pub(crate) connections: Rc<Connections>,
    sink: RefCell<Box<dyn Sink>>,
    ledger: RefCell<Option<Box<dyn UsageLedger + Send>>>,
    counting: RefCell<Option<Box<dyn Counting + Send>>>,
    /// Whether there is counting.
    pub(crate) counts: bool,
    load: Load,
    /// Where what takes long is done.
    pub(crate) beside: Places,
    /// Of its own for what is looked at of batches, so that the calls of others wait for none of it.
    pub(crate) looks: Places,
    /// Copies of calls that are on their way to mirrors.
    pub(crate) mirrors: Cell<usize>,
    /// It looks for batches that are to be charged.
    pub(crate) charges_batches: Cell<bool>,
    /// Whose turn it is to begin an exchange of HTTP/2.
    pub(crate) h2_turns: Turns,
    draining: Cell<bool>,
    /// The drain is over: what still runs is cut.
    stopped: Cell<bool>,
    /// Wakes idle connections when a drain begins.
    pub(crate) drained: Notify,
}

/// What runs and what is kept, in numbers.
#[derive(Default)]
struct Load {
    exchanges: Cell<usize>,
    /// Answers being read on without a client.
    reading_on: Cell<usize>,
    /// Bytes of request bodies that are kept, and how many the gauge was told of.
    bodies: Cell<usize>,
    /// Bytes made of answers that their clients have not taken yet.
    untaken: Cell<usize>,
    bodies_told: Cell<i64>,
}

/// A long answer of the gate's own counts among those that wait for their clients.
pub(crate) struct Untaken(Rc<Worker>, usize);

impl Untaken {
    /// `None` where there is no room for so many bytes.
    pub(crate) fn new(worker: &Rc<Worker>, bytes: usize) -> Option<Self> {
        let has_room = bytes == 0 || worker.keep_made(bytes);
        has_room.then(|| Self(Rc::clone(worker), bytes))
    }
}

impl Drop for Untaken {
    fn drop(&mut self) {
        self.0.drop_made(self.1);
    }
}

impl Worker {
    /// A worker that serves `runtime_config`; all that it leaves to chance follows from `seed`.
    pub(crate) fn new(
        publication: &RuntimeConfig,
        ports: Ports,
        (clock, timers): (Clock, Timers),
        connections: Rc<Connections>,
        sampling: Option<Sampling>,
        seed: u64,
    ) -> Rc<Self> {
        let mut pools = HashMap::new();
        let none = &mut Vec::new();
        let view = WorkerSnapshot::adopt(publication, None, &mut pools, none, sampling, seed);
        Rc::new(Self {
            view: RefCell::new(Rc::new(view)),
            pools: RefCell::new(pools),
            retired: RefCell::default(),
            clock,
            timers,
            buffers: Buffers::default(),
            connections,
            sink: RefCell::new(ports.sink),
            ledger: RefCell::new(ports.ledger),
            counts: ports.counting.is_some(),
            counting: RefCell::new(ports.counting),
            load: Load::default(),
            beside: Places::default(),
            looks: Places::default(),
            mirrors: Cell::new(0),
            charges_batches: Cell::new(false),
            h2_turns: Turns::default(),
            draining: Cell::new(false),
            stopped: Cell::new(false),
            drained: Notify::new(),
        })
    }

    /// The configuration for what begins now.
    pub(crate) fn view(&self) -> Rc<WorkerSnapshot> {
        Rc::clone(&self.view.borrow())
    }

    /// What begins from now on is served by this configuration.
    pub(crate) fn adopt(&self, publication: &RuntimeConfig) {
        let old = self.view();
        let view = WorkerSnapshot::adopt(
            publication,
            Some(&old),
            &mut self.pools.borrow_mut(),
            &mut self.retired.borrow_mut(),
            None,
            0,
        );
        *self.view.borrow_mut() = Rc::new(view);
    }

    /// The monotonic clock.
    pub(crate) fn now(&self) -> Mono {
        self.clock.now()
    }

    /// WorkerMetrics go here.
    pub(crate) fn sink(&self, tell: impl FnOnce(&mut dyn Sink)) {
        tell(&mut **self.sink.borrow_mut());
    }

    /// The log tells of this, in few lines however often it happens.
    #[cold]
    pub(crate) fn trouble(&self, trouble: Trouble, detail: &dyn Display) {
        let view = self.view();
        self.sink(|s| s.trouble(view.snapshot(), trouble, detail));
    }

    /// The log tells of an attempt that says something of its endpoint or of our credential there.
    pub(crate) fn trouble_of(&self, attempt: &AttemptRecord) {
        if let Some(trouble) = attempt.trouble() {
            let detail = match attempt.result {
                Ok(status @ (401 | 403)) => format!("status {status}"),
                Ok(status) => why::of(Failure::Status(status)),
                Err(failure) => why::of(failure),
            };
            self.trouble(trouble, &detail);
        }
    }

    /// Usage is entered here, where there is a ledger.
    pub(crate) fn ledger<T>(&self, enter: impl FnOnce(&mut dyn UsageLedger) -> T) -> Option<T> {
        let mut ledger = self.ledger.borrow_mut();
        ledger.as_mut().map(|ledger| enter(&mut **ledger))
    }

    /// What is to be counted is handed over here, where there is counting.
    pub(crate) fn counting<T>(&self, hand: impl FnOnce(&mut dyn Counting) -> T) -> Option<T> {
        let mut counting = self.counting.borrow_mut();
        counting.as_mut().map(|counting| hand(&mut **counting))
    }

    /// Whether connections should end when they can.
    pub(crate) fn is_draining(&self) -> bool {
        self.draining.get()
    }

    /// Whether exchanges that end now are cut by the gate.
    pub(crate) fn has_stopped(&self) -> bool {
        self.stopped.get()
    }

    /// Connections end when they can from now on.
    pub(crate) fn begin_drain(&self) {
        self.draining.set(true);
        self.drained.notify_waiters();
    }

    /// What still runs is cut from now on.
    pub(crate) fn stop(&self) {
        self.stopped.set(true);
    }

    /// Room for so many more bytes of a request body; false where there is none.
    #[inline]
    pub(crate) fn keep_body(&self, bytes: usize, bound: usize) -> bool {
        let kept = self.load.bodies.get() + bytes;
        let has_room = kept <= bound;
        if has_room {
            self.load.bodies.set(kept);
        }
        has_room
    }

    /// Whether it keeps no other bodies than these bytes of them.
    pub(crate) fn keeps_only(&self, bytes: usize) -> bool {
        self.load.bodies.get() == bytes
    }

    /// Gives back what [`Worker::keep_body`] gave.
    #[inline]
    pub(crate) fn drop_body(&self, bytes: usize) {
        let bodies = &self.load.bodies;
        bodies.set(bodies.get().saturating_sub(bytes));
    }

    /// Room for so many more bytes made of an answer, until its client takes them; false where there is none.
    pub(crate) fn keep_made(&self, bytes: usize) -> bool {
        let untaken = self.load.untaken.get() + bytes;
        let has_room = untaken <= UNTAKEN_BYTES_MAX;
        if has_room {
            self.load.untaken.set(untaken);
        }
        has_room
    }

    /// Gives back what [`Worker::keep_made`] gave.
    pub(crate) fn drop_made(&self, bytes: usize) {
        let untaken = &self.load.untaken;
        untaken.set(untaken.get().saturating_sub(bytes));
    }

    /// Counts a connection that is refused or closed at a bound.
    #[cold]
    pub(crate) fn closed(&self, at: Closed) {
        self.sink(|s| s.closed(at));
    }

    /// Exchanges that run.
    pub(crate) fn exchanges(&self) -> usize {
        self.load.exchanges.get()
    }

    /// Counts an exchange in.
    pub(crate) fn exchange_began(&self) {
        self.load.exchanges.set(self.load.exchanges.get() + 1);
        self.sink(|s| s.gauge(Gauge::Exchanges, 1));
    }

    /// Counts an exchange out.
    pub(crate) fn exchange_ended(&self) {
        let exchanges = &self.load.exchanges;
        exchanges.set(exchanges.get().saturating_sub(1));
        self.sink(|s| s.gauge(Gauge::Exchanges, -1));
    }

    /// Answers that are read on without a client.
    pub(crate) fn reading_on(&self) -> usize {
        self.load.reading_on.get()
    }

    /// Counts such an answer in.
    pub(crate) fn read_on_began(&self) {
        self.load.reading_on.set(self.load.reading_on.get() + 1);
        self.sink(|sink| sink.gauge(Gauge::ReadsToEnd, 1));
    }

    /// Counts it out.
    pub(crate) fn read_on_ended(&self) {
        let reading_on = &self.load.reading_on;
        reading_on.set(reading_on.get().saturating_sub(1));
        self.sink(|sink| sink.gauge(Gauge::ReadsToEnd, -1));
    }

    /// A copy of what the sink holds.
    pub(crate) fn facts(&self) -> WorkerMetrics {
        self.tell_bodies();
        self.sink.borrow().copy()
    }

    /// Tells the gauge how much is kept of request bodies.
    fn tell_bodies(&self) {
        let kept = i64::try_from(self.load.bodies.get()).unwrap_or(i64::MAX);
        let change = kept - self.load.bodies_told.replace(kept);
        if change != 0 {
            self.sink(|s| s.gauge(Gauge::BodyBytes, change));
        }
    }

    /// To be called ten times a second.
    pub(crate) fn tick(&self) {
        self.clock.tick();
        self.tell_bodies();
        self.sink(|s| s.tick());
        let (mut opened, mut moved) = (0, 0);
        for pool in self.pools.borrow().values() {
            pool.refresh(&self.timers);
            opened += pool.prune();
            moved += pool.take_moved();
        }
        self.retired.borrow_mut().retain(|retired| {
            opened += retired.change();
            !retired.is_none()
        });
        if moved != 0 {
            self.sink(|s| s.moved(moved));
        }
        if opened != 0 {
            self.sink(|s| s.gauge(Gauge::UpstreamConnections, opened));
        }
    }
}
