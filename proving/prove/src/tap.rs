//! A relay between a gateway and its upstream that says when the bytes of each exchange passed.
//!
//! Every connection of the gateway is one to the upstream, and bytes pass as they come: nothing is parsed on their way,
//! nothing waits for a whole message. (Of HTTP/2, which is told by how a connection begins, messages pass: `http2`.) Beside them, heads are read for the id of the exchange, and answers for where they
//! end. Times are of `CLOCK_MONOTONIC`, which every process of a machine shares: `in` as soon as bytes were read, `out`
//! just before they are written, so that the relay's own time counts as the upstream's.
//! Invariant: an exchange whose frame is not understood passes like any other; it is counted, and its connection gives no
//! stamps any more. Memory: 128 KiB a connection, at most [`MOST_CONNECTIONS`].
//! Not here: what follows from times (`overhead`).

pub(crate) mod command;
mod exchange;
mod http2;
#[cfg(test)]
mod tests;

use std::cell::RefCell;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use load::source::{IdHeader, RequestId};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};

use exchange::Exchanges;

/// Connections at once; others wait.
pub(crate) const MOST_CONNECTIONS: usize = 4096;
/// Stamps that may wait for whoever takes them: some 5 MB.
pub(crate) const WAITING: usize = 1 << 16;
/// A delay on purpose keeps the relay busy, and with it every other connection: it proves an instrument, nothing else.
pub(crate) const LONGEST_DELAY: Duration = Duration::from_millis(10);
/// Bytes that one read takes at most.
const BUFFER_BYTES: usize = 64 << 10;

/// When the bytes of one exchange passed, nanoseconds of `CLOCK_MONOTONIC`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    pub(crate) id: RequestId,
    /// The first bytes of the request came.
    pub(crate) in_ns: u64,
    /// Its last bytes came, or the last before an answer to its part.
    pub(crate) whole_in_ns: u64,
    /// The first bytes of the answer went.
    pub(crate) first_out_ns: u64,
    /// Its last bytes went.
    pub(crate) last_out_ns: u64,
    /// How long its first bytes stayed on purpose.
    pub(crate) delay_ns: u64,
    /// The relay's own time, as a gateway would count it: from the request's having come to its having been sent on, and
    /// the same of the first bytes of the answer.
    pub(crate) own_ns: u64,
}

/// How to relay.
#[derive(Debug, Clone)]
pub(crate) struct TapConfig {
    pub(crate) listen: SocketAddr,
    pub(crate) upstream: SocketAddr,
    /// The header that carries ids of [`RequestId`].
    pub(crate) id: IdHeader,
}

/// What gave no stamp.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Unstamped {
    /// Exchanges without an id of ours.
    pub(crate) without_id: u64,
    /// Connections on which something was not understood: from then on they gave none.
    pub(crate) not_understood: u64,
    /// Exchanges that ended in the middle.
    pub(crate) cut: u64,
    /// Stamps that found no room.
    pub(crate) lost: u64,
    /// Connections that the upstream did not take.
    pub(crate) refused: u64,
}

#[derive(Debug, Default)]
struct Counts {
    without_id: AtomicU64,
    not_understood: AtomicU64,
    cut: AtomicU64,
    lost: AtomicU64,
    refused: AtomicU64,
    delay_ns: AtomicU64,
    /// Every so many requests are delayed; 0 as 1.
    delay_every: AtomicU64,
    /// Requests that began.
    began: AtomicU64,
}

/// A thread that relays.
pub(crate) struct Tap {
    /// Where it listens.
    pub(crate) address: SocketAddr,
    thread: Option<JoinHandle<()>>,
    over: watch::Sender<bool>,
    counts: Arc<Counts>,
}

/// Now, nanoseconds of `CLOCK_MONOTONIC`.
pub(crate) fn monotonic_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let part = |part: i64, unit: u64| u64::try_from(part).unwrap_or(0).saturating_mul(unit);
    part(now.tv_sec, 1_000_000_000).saturating_add(part(now.tv_nsec, 1))
}

/// A moment on the same clock, right to some 100 ns.
pub(crate) fn monotonic_ns_of(moment: Instant) -> u64 {
    let now = Instant::now();
    let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let later = ns(moment.saturating_duration_since(now));
    let ago = ns(now.saturating_duration_since(moment));
    monotonic_ns().saturating_sub(ago).saturating_add(later)
}

impl Tap {
    /// Begins to relay; stamps come as exchanges end.
    ///
    /// # Errors
    /// The address cannot be listened on, or there is no thread or event queue.
    pub(crate) fn start(config: TapConfig) -> Result<(Self, Receiver<Stamp>), String> {
        let says = |error: io::Error| format!("tap on {}: {error}", config.listen);
        let listener = std::net::TcpListener::bind(config.listen).map_err(says)?;
        listener.set_nonblocking(true).map_err(says)?;
        let address = listener.local_addr().map_err(says)?;
        let (to, stamps) = sync_channel(WAITING);
        let (over, is_over) = watch::channel(false);
        let (ready, is_ready) = sync_channel(1);
        let counts = Arc::new(Counts::default());
        let relay = Relay {
            config: config.clone(),
            to,
            counts: Arc::clone(&counts),
        };
        let named = std::thread::Builder::new().name("tap".into());
        let thread = named
            .spawn(move || drop(ready.send(run(listener, relay, is_over, &ready))))
            .map_err(says)?;
        is_ready
            .recv()
            .map_err(|_| "bug: the tap's thread panicked".to_owned())?
            .map_err(says)?;
        let tap = Self {
            address,
            thread: Some(thread),
            over,
            counts,
        };
        Ok((tap, stamps))
    }

    /// From now on the first bytes of a request stay so long, before their time is taken: as if the gateway took it. At
    /// most [`LONGEST_DELAY`]; of all requests, each that is a multiple of `every`.
    pub(crate) fn delay(&self, delay: Duration, every: u32) {
        let delay = delay.min(LONGEST_DELAY);
        let ns = u64::try_from(delay.as_nanos()).unwrap_or(0);
        self.counts.delay_ns.store(ns, Ordering::Relaxed);
        let every = every.max(1).into();
        self.counts.delay_every.store(every, Ordering::Relaxed);
    }

    /// What gave no stamp so far.
    pub(crate) fn unstamped(&self) -> Unstamped {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Unstamped {
            without_id: read(&self.counts.without_id),
            not_understood: read(&self.counts.not_understood),
            cut: read(&self.counts.cut),
            lost: read(&self.counts.lost),
            refused: read(&self.counts.refused),
        }
    }
}

impl Drop for Tap {
    /// Ends every connection.
    fn drop(&mut self) {
        self.over.send_replace(true);
        if let Some(thread) = self.thread.take() {
            // One that panicked has nothing left to say.
            drop(thread.join());
        }
    }
}

/// What every connection needs.
struct Relay {
    config: TapConfig,
    to: SyncSender<Stamp>,
    counts: Arc<Counts>,
}

fn run(
    listener: std::net::TcpListener,
    relay: Relay,
    mut is_over: watch::Receiver<bool>,
    ready: &SyncSender<io::Result<()>>,
) -> io::Result<()> {
    crate::runtime::make_local()?.block_on(async {
        let listener = TcpListener::from_std(listener)?;
        drop(ready.send(Ok(())));
        let (relay, room) = (Rc::new(relay), Rc::new(Semaphore::new(MOST_CONNECTIONS)));
        let accepting = async {
            loop {
                let Ok(permit) = room.acquire().await else {
                    return;
                };
                permit.forget();
                let Ok((stream, _)) = listener.accept().await else {
                    // Out of descriptors, most likely: not a busy loop.
                    room.add_permits(1);
                    tokio::time::sleep(Duration::from_millis(10)).await;
                    continue;
                };
                let (relay, room) = (Rc::clone(&relay), Rc::clone(&room));
                tokio::task::spawn_local(async move {
                    connection(stream, relay).await;
                    room.add_permits(1);
                });
            }
        };
        tokio::select! {
            () = accepting => {}
            _ = is_over.wait_for(|is_over| *is_over) => {}
        }
        Ok(())
    })
}

/// One connection, to its end.
async fn connection(mut down: TcpStream, relay: Rc<Relay>) {
    let counts = &relay.counts;
    // The upstream is reached while the request is on its way; when that came is not to depend on it.
    let came = async {
        let is_http2 = speaks_http2(&down).await?;
        io::Result::Ok((!is_http2).then(|| relay.after_delay()))
    };
    let (up, came) = tokio::join!(TcpStream::connect(relay.config.upstream), came);
    let (Ok(mut up), Ok(came)) = (up, came) else {
        counts.refused.fetch_add(1, Ordering::Relaxed);
        return;
    };
    // Without it, small pieces wait; one that is refused it passes all the same.
    drop((down.set_nodelay(true), up.set_nodelay(true)));
    let Some(came) = came else {
        return http2::connection(down, up, relay).await;
    };
    let relay = &*relay;
    let exchanges = RefCell::new(Exchanges::new(relay.config.id.name().as_str()));
    let ((down_in, down_out), (up_in, up_out)) = (down.split(), up.split());
    let there = requests((down_in, up_out), &exchanges, relay, came);
    let back = answers((up_in, down_out), &exchanges, relay);
    tokio::pin!(back);
    tokio::select! {
        _ = &mut back => {}
        // A gateway that says no more may still listen.
        ended = there => if ended.is_ok() {
            drop(back.await);
        },
    }
    exchanges.borrow().ended(|what| relay.tell(what));
}

/// Whether a connection begins as one of HTTP/2 does. Not by `readable()`, which may say so before there is a byte.
async fn speaks_http2(down: &TcpStream) -> io::Result<bool> {
    let mut first = [0; http2::PREFACE.len()];
    loop {
        let count = down.peek(&mut first).await?;
        let known = first.get(..count).unwrap_or_default();
        if known.is_empty() || !http2::PREFACE.starts_with(known) {
            return Ok(false);
        }
        if known.len() == http2::PREFACE.len() {
            return Ok(true);
        }
        // The next byte is on its way, and a peek does not wait for it.
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

async fn requests(
    (mut from, mut to): (ReadHalf<'_>, WriteHalf<'_>),
    exchanges: &RefCell<Exchanges>,
    relay: &Relay,
    first: Arrival,
) -> io::Result<()> {
    let mut buffer = vec![0; BUFFER_BYTES];
    let mut first = Some(first);
    loop {
        let count = from.read(&mut buffer).await?;
        let bytes = buffer.get(..count).unwrap_or_default();
        if bytes.is_empty() {
            return to.shutdown().await;
        }
        let begins = exchanges.borrow().is_between();
        let came = first.take().unwrap_or_else(|| match begins {
            true => relay.after_delay(),
            false => Arrival::now(),
        });
        exchanges.borrow_mut().request(came, bytes);
        to.write_all(bytes).await?;
        let took = monotonic_ns().saturating_sub(came.at_ns);
        exchanges.borrow_mut().sent_on(took);
    }
}

async fn answers(
    (mut from, mut to): (ReadHalf<'_>, WriteHalf<'_>),
    exchanges: &RefCell<Exchanges>,
    relay: &Relay,
) -> io::Result<()> {
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        let count = from.read(&mut buffer).await?;
        let bytes = buffer.get(..count).unwrap_or_default();
        let now = monotonic_ns();
        if bytes.is_empty() {
            exchanges.borrow_mut().closed(now, |what| relay.tell(what));
            return to.shutdown().await;
        }
        // Bytes go before anything is thought about them.
        let written = match to.try_write(bytes) {
            Ok(written) => written,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
            Err(error) => return Err(error),
        };
        let went = Departure {
            at_ns: now,
            took_ns: monotonic_ns().saturating_sub(now),
        };
        exchanges
            .borrow_mut()
            .answer(went, bytes, |what| relay.tell(what));
        to.write_all(bytes.get(written..).unwrap_or_default())
            .await?;
    }
}

/// When bytes of a request came, after they stayed on purpose.
#[derive(Debug, Clone, Copy)]
struct Arrival {
    at_ns: u64,
    delay_ns: u64,
}

impl Arrival {
    fn now() -> Self {
        Self {
            at_ns: monotonic_ns(),
            delay_ns: 0,
        }
    }
}

/// When bytes of an answer went, and how long it took to write them.
#[derive(Debug, Clone, Copy)]
struct Departure {
    at_ns: u64,
    took_ns: u64,
}

/// What became of an exchange or a connection.
enum Ended {
    Stamp(Stamp),
    WithoutId,
    NotUnderstood,
    Cut,
}

impl Relay {
    /// Now, or once the delay on purpose is over.
    fn after_delay(&self) -> Arrival {
        let began = self.counts.began.fetch_add(1, Ordering::Relaxed);
        let every = self.counts.delay_every.load(Ordering::Relaxed).max(1);
        let mut came = Arrival::now();
        if began.is_multiple_of(every) {
            came.delay_ns = self.counts.delay_ns.load(Ordering::Relaxed);
        }
        let until = came.at_ns + came.delay_ns;
        while came.at_ns < until {
            std::hint::spin_loop();
            came.at_ns = monotonic_ns();
        }
        came
    }

    fn tell(&self, what: Ended) {
        let count = match what {
            Ended::Stamp(stamp) => match self.to.try_send(stamp) {
                Ok(()) => return,
                Err(_) => &self.counts.lost,
            },
            Ended::WithoutId => &self.counts.without_id,
            Ended::NotUnderstood => &self.counts.not_understood,
            Ended::Cut => &self.counts.cut,
        };
        count.fetch_add(1, Ordering::Relaxed);
    }
}
