//! One thread, one current-thread runtime, one listener: everything here belongs to one core.
//!
//! Invariant: nothing in a [`Worker`] is shared with another thread but the count of connections,
//! which is touched only as they come and go. The scratch buffer is
//! borrowed only between two polls' waits, never across one.
//! Not here: a connection's life (`downstream`), an exchange's (`exchange`).

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::fmt::Display;
use std::hash::{BuildHasher, RandomState};
use std::net::{IpAddr, TcpListener, TcpStream};
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use policy::book::Book;
use policy::clock::Mono;
use policy::counting::Counting;
use policy::record::{Closed, Gauge, Sink, Trouble};
use policy::snapshot::{Bounds, Origin};
use policy::trace::{Sampling, Trace};
use tokio::runtime::LocalOptions;
use tokio::sync::{Notify, mpsc};
use wire::head::{Known, RequestHead, ResponseHead};

use crate::buffer::{self, Held, Spare};
use crate::date;
use crate::downstream;
use crate::gate::{Command, Facts, Publication};
use crate::listener::Listener;
use crate::socket::Socket;
use crate::source::{Entered, Full, Source, Sources};
use crate::timers::Timers;
use crate::upstream::pool::Pool;
use crate::view::View;
use crate::wheel::{self, TICK, Wheel};

/// Connections beyond their bound that are told so at one time; others are closed without a word.
const TURNED_AWAY: usize = 64;
/// What a worker thread starts from.
pub(crate) struct Start {
    pub(crate) index: usize,
    pub(crate) listener: TcpListener,
    pub(crate) commands: mpsc::UnboundedReceiver<Command>,
    /// Rung at each tick.
    pub(crate) bell: Arc<Notify>,
    pub(crate) publication: Publication,
    pub(crate) sink: Box<dyn Sink + Send>,
    pub(crate) book: Option<Box<dyn Book + Send>>,
    pub(crate) counting: Option<Box<dyn Counting + Send>>,
    pub(crate) room: usize,
    /// Connections of all workers, which share the descriptors.
    pub(crate) taken: Arc<AtomicUsize>,
    pub(crate) base: Instant,
    pub(crate) timers: Timers,
    pub(crate) sampling: Option<Sampling>,
}

/// What the tasks of one worker share.
pub(crate) struct Worker {
    view: RefCell<Rc<View>>,
    pools: RefCell<HashMap<Origin, Rc<Pool>>>,
    sink: RefCell<Box<dyn Sink>>,
    book: RefCell<Option<Box<dyn Book + Send>>>,
    counting: RefCell<Option<Box<dyn Counting + Send>>>,
    scratch: RefCell<Box<[u8]>>,
    /// A buffer for a short request on its way out.
    pub(crate) sending: Spare,
    /// A buffer for a short piece of an answer.
    pub(crate) answering: Spare,
    /// Room for the head of an answer.
    pub(crate) answered: Cell<Option<Box<ResponseHead>>>,
    /// The timers, with the latest look at the clock.
    pub(crate) wheel: Rc<Wheel>,
    pub(crate) timers: Timers,
    ids: Cell<u64>,
    /// Which traces are kept, where any are.
    sampling: Option<Sampling>,
    /// The `date` line of this second.
    pub(crate) date: Cell<date::Line>,
    /// A moment on the monotonic clock, and the wall clock's milliseconds then.
    wall: Cell<(Mono, u64)>,
    connections: Cell<usize>,
    /// Those of them that are only told that there is no room.
    turned_away: Cell<usize>,
    sources: RefCell<Sources>,
    full: RefCell<Full>,
    /// Bytes of request bodies that are kept, and how many the gauge was told of.
    bodies: Cell<usize>,
    bodies_told: Cell<i64>,
    taken: Arc<AtomicUsize>,
    room: usize,
    exchanges: Cell<usize>,
    /// Answers being read on without a client.
    pub(crate) drains: Cell<usize>,
    draining: Cell<bool>,
    /// The drain is over: what still runs is cut.
    stopped: Cell<bool>,
    /// Wakes idle connections when a drain begins, and the drain when the last one ends.
    pub(crate) drained: Notify,
    ended: Notify,
}

impl Worker {
    /// The configuration for what begins now.
    pub(crate) fn view(&self) -> Rc<View> {
        Rc::clone(&self.view.borrow())
    }

    /// The monotonic clock.
    pub(crate) fn now(&self) -> Mono {
        self.wheel.look()
    }

    /// When what is dealt with now came in: the gate's own time begins there.
    pub(crate) fn arrival(&self) -> Mono {
        self.wheel.arrival()
    }

    /// The clock at its latest look, at most a tick ago.
    pub(crate) fn latest(&self) -> Mono {
        self.wheel.clock()
    }

    /// Facts go here.
    pub(crate) fn sink(&self, tell: impl FnOnce(&mut dyn Sink)) {
        tell(&mut **self.sink.borrow_mut());
    }

    /// The log tells of this, in few lines however often it happens.
    #[cold]
    pub(crate) fn trouble(&self, trouble: Trouble, detail: &dyn Display) {
        let view = self.view();
        self.sink(|s| s.trouble(&view.snapshot, trouble, detail));
    }

    /// Usage is entered here, where there is a book.
    pub(crate) fn book<T>(&self, enter: impl FnOnce(&mut dyn Book) -> T) -> Option<T> {
        let mut book = self.book.borrow_mut();
        book.as_mut().map(|book| enter(&mut **book))
    }

    /// What is to be counted is handed over here, where there is counting.
    pub(crate) fn counting<T>(&self, hand: impl FnOnce(&mut dyn Counting) -> T) -> Option<T> {
        let mut counting = self.counting.borrow_mut();
        counting.as_mut().map(|counting| hand(&mut **counting))
    }

    /// Lends the read buffer; must not be nested.
    pub(crate) fn scratch<T>(&self, with: impl FnOnce(&mut [u8]) -> T) -> T {
        with(&mut self.scratch.borrow_mut())
    }

    /// Hands on the read buffer for the part of it that holds a body, and reads on with another.
    pub(crate) fn hand_over(&self, range: Range<usize>) -> Bytes {
        buffer::lend(self.another(), range)
    }

    /// Keeps part of the read buffer as it is for a moment, and reads on with another.
    pub(crate) fn hold(&self, range: Range<usize>) -> Held {
        Held::new(self.another(), range)
    }

    fn another(&self) -> Box<[u8]> {
        std::mem::replace(&mut *self.scratch.borrow_mut(), buffer::take())
    }

    /// Whether connections should end when they can.
    pub(crate) fn is_draining(&self) -> bool {
        self.draining.get()
    }

    /// Whether exchanges that end now are cut by the gate.
    pub(crate) fn has_stopped(&self) -> bool {
        self.stopped.get()
    }

    /// The place of a request in a trace, where traces are kept.
    pub(crate) fn trace(&self, head: &RequestHead) -> Option<Trace> {
        let sampling = self.sampling?;
        let given = head.fields.of(Known::Traceparent);
        Some(Trace::begin(given, sampling, || self.fresh()))
    }

    /// Bits for the id of a trace or a span.
    pub(crate) fn fresh(&self) -> u64 {
        mix(self.step())
    }

    fn step(&self) -> u64 {
        let n = self.ids.get();
        self.ids.set(n.wrapping_add(0x9E37_79B9_7F4A_7C15));
        n
    }

    /// A request id: 32 hex digits, unique in practice, of no meaning.
    #[expect(clippy::cast_possible_truncation, reason = "the two halves")]
    pub(crate) fn mint_id(&self) -> Box<str> {
        let n = self.step();
        let words = [mix(n), mix(n ^ 0xD6E8_FEB8_6659_FD93)];
        let digits = words.map(|word| [hex((word >> 32) as u32), hex(word as u32)]);
        str::from_utf8(digits.as_flattened().as_flattened())
            .unwrap_or_default()
            .into()
    }

    /// Milliseconds since the Unix epoch at `now`. The wall clock is read at each tick.
    pub(crate) fn wall_ms(&self, now: Mono) -> u64 {
        let (at, ms) = self.wall.get();
        ms.saturating_add(u64::try_from(now.since(at).as_millis()).unwrap_or(u64::MAX))
    }

    /// Room for so many more bytes of a request body; false where there is none.
    #[inline]
    pub(crate) fn keep_body(&self, bytes: usize, bound: usize) -> bool {
        let kept = self.bodies.get() + bytes;
        let has_room = kept <= bound;
        if has_room {
            self.bodies.set(kept);
        }
        has_room
    }

    /// Gives back what [`Worker::keep_body`] gave.
    #[inline]
    pub(crate) fn drop_body(&self, bytes: usize) {
        self.bodies.set(self.bodies.get().saturating_sub(bytes));
    }

    /// Counts a connection that is refused or closed at a bound.
    #[cold]
    pub(crate) fn closed(&self, at: Closed) {
        self.sink(|s| s.closed(at));
    }

    /// Counts an exchange in.
    pub(crate) fn exchange_began(&self) {
        self.exchanges.set(self.exchanges.get() + 1);
        self.sink(|s| s.gauge(Gauge::Exchanges, 1));
    }

    /// Counts an exchange out.
    pub(crate) fn exchange_ended(&self) {
        self.exchanges.set(self.exchanges.get().saturating_sub(1));
        self.sink(|s| s.gauge(Gauge::Exchanges, -1));
    }
}

/// Milliseconds since the Unix epoch.
fn unix_ms() -> u64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// The digits of half a word, all at once: a nibble a byte first, then what each byte lacks to its digit.
fn hex(half: u32) -> [u8; 8] {
    const ONES: u64 = u64::MAX / 0xFF;
    let spread = u64::from(half);
    let spread = (spread | spread << 16) & 0x0000_FFFF_0000_FFFF;
    let spread = (spread | spread << 8) & 0x00FF_00FF_00FF_00FF;
    let nibbles = (spread | spread << 4) & (15 * ONES);
    let letters = (nibbles + 6 * ONES) >> 4 & ONES;
    (nibbles + u64::from(b'0') * ONES + letters * u64::from(b'a' - b'0' - 10)).to_be_bytes()
}

/// SplitMix64's finaliser.
fn mix(n: u64) -> u64 {
    let n = (n ^ (n >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let n = (n ^ (n >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    n ^ (n >> 31)
}

/// Runs a worker to its end: until drained, or its commands' other end is gone. Gives its last
/// facts, unless it could not start.
pub(crate) fn run(start: Start) -> Option<Facts> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .on_thread_unpark(wheel::woken)
        .build_local(LocalOptions::default());
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => {
            tracing::error!(%error, worker = start.index, "cannot start a worker's runtime");
            return None;
        }
    };
    let worker = runtime.block_on(serve(start))?;
    // Exchanges that are cut here leave their records too. A look-up that hangs is not waited for.
    runtime.shutdown_background();
    worker.tick();
    let facts = worker.sink.borrow().copy();
    Some(facts)
}

async fn serve(start: Start) -> Option<Rc<Worker>> {
    // Gates of a fleet may start in one millisecond with one process id: the system's chance is in it.
    let chance = RandomState::new().hash_one(start.index);
    let seed = mix(unix_ms() ^ chance);
    let mut pools = HashMap::new();
    let view = View::adopt(&start.publication, None, &mut pools, seed);
    let worker = Rc::new(Worker {
        view: RefCell::new(Rc::new(view)),
        pools: RefCell::new(pools),
        sink: RefCell::new(start.sink),
        book: RefCell::new(start.book),
        counting: RefCell::new(start.counting),
        scratch: RefCell::new(buffer::take()),
        sending: Spare::default(),
        answering: Spare::default(),
        answered: Cell::default(),
        wheel: Rc::new(Wheel::new(start.base)),
        timers: start.timers,
        ids: Cell::new(seed),
        sampling: start.sampling,
        date: Cell::new(date::line(unix_ms() / 1000)),
        wall: Cell::new((Mono(policy::clock::nanos(start.base.elapsed())), unix_ms())),
        connections: Cell::new(0),
        turned_away: Cell::new(0),
        sources: RefCell::default(),
        full: RefCell::default(),
        bodies: Cell::new(0),
        bodies_told: Cell::new(0),
        taken: start.taken,
        room: start.room,
        exchanges: Cell::new(0),
        drains: Cell::new(0),
        draining: Cell::new(false),
        stopped: Cell::new(false),
        drained: Notify::new(),
        ended: Notify::new(),
    });
    let mut commands = start.commands;
    let listener = match Listener::new(start.listener) {
        Ok(listener) => listener,
        Err(error) => {
            tracing::error!(%error, worker = start.index, "cannot use the listener");
            return None;
        }
    };
    let bell = start.bell;
    let grace = loop {
        tokio::select! {
            // Without room, clients wait in the kernel's queue; the tick looks again.
            accepted = listener.accept(), if worker.taken.load(Ordering::Relaxed) < start.room => match accepted {
                Ok((tcp, peer)) => worker.open(tcp, peer),
                Err(error) => {
                    worker.trouble(Trouble::AcceptFailed, &error);
                    accept_failed(&worker.timers).await;
                }
            },
            command = commands.recv() => match command {
                Some(Command::Publish(publication)) => worker.adopt(&publication, seed),
                Some(Command::Scrape(to)) => worker.scraped(to),
                Some(Command::Drain(grace)) => break grace,
                None => break Duration::ZERO,
            },
            () = bell.notified() => worker.tick(),
        }
    };
    worker.drain(listener, commands, &bell, grace).await;
    worker.stopped.set(true);
    Some(worker)
}

/// Running out of descriptors must not become a busy loop; live streams go on meanwhile.
async fn accept_failed(timers: &Timers) {
    timers.sleep(Duration::from_millis(50)).await;
}

impl Worker {
    fn open(self: &Rc<Self>, tcp: TcpStream, peer: IpAddr) {
        let view = self.view();
        // A trusted proxy's connections are those of many clients.
        let is_client = !view.snapshot.clients.trusts(peer);
        let source = is_client.then(|| Source::of(peer));
        let place = match self.has_room(source, &view.snapshot.bounds) {
            Ok(place) => Ok(place),
            Err(at) => match self.turn_away(at) {
                Some(away) => Err(away),
                None => return, // Dropped: the client sees the connection closed.
            },
        };
        let socket = match Socket::new(tcp, peer) {
            Ok(socket) => socket,
            Err(error) => return self.trouble(Trouble::AcceptFailed, &error),
        };
        let open = Open::begin(self);
        let worker = Rc::clone(self);
        tokio::task::spawn_local(async move {
            let _open = open;
            match place {
                Ok(_place) => downstream::serve(worker, view, socket).await,
                Err(_away) => downstream::turn_away(worker, view, socket).await,
            }
        });
    }

    /// Whether a connection from there may be one more, with its place among those of its source.
    fn has_room(
        self: &Rc<Self>,
        source: Option<Source>,
        bounds: &Bounds,
    ) -> Result<Option<Place>, Closed> {
        let served = self.connections.get() - self.turned_away.get();
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

    /// Counts a connection that there is no room for, and a place among those that are told so, if there
    /// is one.
    pub(crate) fn turn_away(self: &Rc<Self>, at: Closed) -> Option<Away> {
        self.closed(at);
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
                worker: Rc::clone(self),
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

    /// Tells the gauge how much is kept of request bodies.
    fn tell_bodies(&self) {
        let kept = i64::try_from(self.bodies.get()).unwrap_or(i64::MAX);
        let change = kept - self.bodies_told.replace(kept);
        if change != 0 {
            self.sink(|s| s.gauge(Gauge::BodyBytes, change));
        }
    }

    fn adopt(&self, publication: &Publication, seed: u64) {
        let old = self.view();
        let view = View::adopt(publication, Some(&old), &mut self.pools.borrow_mut(), seed);
        *self.view.borrow_mut() = Rc::new(view);
    }

    fn scraped(&self, to: tokio::sync::oneshot::Sender<Facts>) {
        self.tell_bodies();
        drop(to.send(self.sink.borrow().copy()));
    }

    fn tick(&self) {
        self.wheel.advance();
        let (_, before) = self.wall.get();
        let unix_ms = unix_ms();
        self.wall.set((self.now(), unix_ms));
        if unix_ms / 1000 != before / 1000 {
            self.date.set(date::line(unix_ms / 1000));
        }
        self.tell_bodies();
        if self.taken.load(Ordering::Relaxed) >= self.room {
            self.trouble(Trouble::AcceptPaused, &"half of the descriptors are taken");
        }
        self.sink(|s| s.tick());
        let opened: i64 = self.pools.borrow().values().map(|pool| pool.prune()).sum();
        if opened != 0 {
            self.sink(|s| s.gauge(Gauge::UpstreamConnections, opened));
        }
    }

    /// Stops accepting; exchanges go on until they end or `grace` is over.
    async fn drain(
        self: &Rc<Self>,
        listener: Listener,
        mut commands: mpsc::UnboundedReceiver<Command>,
        bell: &Notify,
        grace: Duration,
    ) {
        // Connections that the kernel has queued for this listener would be reset with it.
        while let Ok(Ok((tcp, peer))) = self
            .timers
            .timeout(Duration::from_millis(1), listener.accept())
            .await
        {
            self.open(tcp, peer);
        }
        drop(listener);
        self.draining.set(true);
        self.drained.notify_waiters();
        let over = self.timers.sleep(grace);
        tokio::pin!(over);
        // The last exchange of an HTTP/2 connection ends just after it.
        while self.connections.get() > 0 || self.exchanges.get() > 0 {
            tokio::select! {
                () = &mut over => {
                    let (connections, cut) = (self.connections.get(), self.exchanges.get());
                    tracing::warn!(connections, cut, "grace is over: exchanges are cut");
                    return;
                }
                command = commands.recv() => match command {
                    Some(Command::Scrape(to)) => self.scraped(to),
                    Some(Command::Drain(Duration::ZERO)) => return,
                    Some(Command::Publish(_) | Command::Drain(_)) => {}
                    None => self.timers.sleep(TICK).await,
                },
                () = self.ended.notified() => {}
                () = bell.notified() => self.tick(),
            }
        }
    }
}

/// A connection's place among those of its source, until it is dropped.
pub(crate) struct Place {
    worker: Rc<Worker>,
    source: Source,
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(refused) = self.worker.sources.borrow_mut().leave(self.source) {
            let source = self.source;
            tracing::info!(%source, refused, "connections from this source are taken again");
        }
    }
}

/// A connection's place among those that are only told that there is no room, until it is dropped.
pub(crate) struct Away(Rc<Worker>);

impl Drop for Away {
    fn drop(&mut self) {
        let away = &self.0.turned_away;
        away.set(away.get().saturating_sub(1));
    }
}

/// Counts a connection out, whatever ended it.
struct Open(Rc<Worker>);

impl Open {
    fn begin(worker: &Rc<Worker>) -> Self {
        worker.connections.set(worker.connections.get() + 1);
        worker.taken.fetch_add(1, Ordering::Relaxed);
        worker.sink(|s| s.gauge(Gauge::Connections, 1));
        Self(Rc::clone(worker))
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        let worker = &*self.0;
        let (connections, away) = (&worker.connections, &worker.turned_away);
        connections.set(connections.get().saturating_sub(1));
        let served = connections.get().saturating_sub(away.get());
        if let Some(refused) = worker.full.borrow_mut().eased(served) {
            tracing::info!(refused, "connections are taken again");
        }
        worker.taken.fetch_sub(1, Ordering::Relaxed);
        worker.sink(|s| s.gauge(Gauge::Connections, -1));
        worker.ended.notify_one();
    }
}

#[cfg(test)]
mod tests;
