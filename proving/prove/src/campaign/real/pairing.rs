//! The gateway's own time in a campaign: what a relay stamped before the engine, paired with the client's rows.
//!
//! Invariant: without a relay there is nothing to tell, and that is no fault.
//! Not here: pairs (`overhead`), stamping (`tap`).

use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::io::BufReader;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use experiment::telemetry::{Query, Span, Telemetry};
use load::client::Protocol;
use load::observer::Record;
use load::run::Shape;
use load::source::{Head, IdHeader};

use crate::campaign::queries;
use crate::host::ports;
use crate::overhead::ask::{ID_HEADER, NullGateway};
use crate::overhead::own::Recorded;
use crate::overhead::{Loopback, OwnMeans, Pair, Pairs, Unpaired, paired, pairs_file};
use crate::report::document::{Overhead, Series, Throttling};
use crate::scrape::cfs::Cfs;
use crate::tap::{Stamp, Tap, TapConfig, Unstamped, monotonic_ns_of};

/// Requests by which the price of the loopback is known.
const HOPS: u32 = 100;
/// Over which a point of Figure 6 is taken, seconds.
const POINT_S: u64 = 10;
/// Points at most.
const MOST_POINTS: usize = 1_800;

/// A relay before the engine.
pub(super) struct Relay {
    tap: Tap,
    stamps: Mutex<Receiver<Stamp>>,
    loopback: Option<Loopback>,
}

/// What becomes of its stamps.
pub(super) struct Pairing {
    relay: Option<Arc<Relay>>,
    pairs: Arc<Mutex<Option<Pairs>>>,
    log: Option<PathBuf>,
    quota_cores: Option<f64>,
}

/// What it came to.
#[derive(Default)]
pub(super) struct Found {
    pub(super) overhead: Option<Overhead>,
    /// Points over time.
    pub(super) series: BTreeMap<String, Series>,
    /// What is missing from both.
    pub(super) missing: Option<String>,
    /// Why the file of pairs is not whole.
    pub(super) fault: Option<String>,
}

impl Relay {
    /// Begins to relay to an engine, and learns the price of the way without a gateway.
    pub(super) fn start(engine: u16, model: &str, protocol: Protocol) -> Result<Self, String> {
        let id = IdHeader::new(ID_HEADER).map_err(|error| error.to_string())?;
        let (tap, stamps) = Tap::start(TapConfig {
            listen: ports::loopback(0),
            upstream: ports::loopback(engine),
            id,
        })?;
        // One user is asked for, who needs one connection.
        let protocol = match protocol {
            Protocol::Http1 => Protocol::Http1,
            Protocol::Http2 { .. } => Protocol::Http2 { connections: 1 },
        };
        let loopback = price((tap.address, protocol), model, &stamps)?;
        Ok(Self {
            tap,
            stamps: Mutex::new(stamps),
            loopback,
        })
    }

    /// What was stamped since.
    fn drain(&self) -> Vec<Stamp> {
        let stamps = self.stamps.lock().unwrap_or_else(PoisonError::into_inner);
        stamps.try_iter().collect()
    }

    /// Where it listens.
    pub(super) fn port(&self) -> u16 {
        self.tap.address.port()
    }
}

/// Short requests to the relay, one after another, without a gateway and with a relay in its place.
fn price(
    (address, protocol): (SocketAddr, Protocol),
    model: &str,
    stamps: &Receiver<Stamp>,
) -> Result<Option<Loopback>, String> {
    let head = Head::post("/v1/chat/completions")
        .and_then(|head| head.with("content-type", "application/json"))
        .map_err(|error| error.to_string())?;
    let body = serde_json::json!({
        "model": model,
        "messages": [{ "role": "user", "content": "Hello" }],
        "max_tokens": 1,
    });
    let body = Bytes::from(body.to_string());
    let shape = Shape::Closed {
        users: 1,
        think: Duration::from_millis(5),
    };
    let null = NullGateway::before(address, protocol)?;
    // The first open connections, and wake what slept.
    null.price((head.clone(), body.clone()), shape, HOPS / 4, stamps)?;
    let (loopback, _) = null.price((head, body), shape, HOPS, stamps)?;
    Ok(loopback)
}

impl Pairing {
    /// Before the load begins. `log`: the gate's own record of exchanges, if it keeps one.
    pub(super) fn new(
        relay: Option<Arc<Relay>>,
        log: Option<PathBuf>,
        cgroup: Option<&Cfs>,
    ) -> Self {
        Self {
            relay,
            pairs: Arc::default(),
            log,
            quota_cores: cgroup.and_then(Cfs::quota_cores),
        }
    }

    /// Hears rows as they come.
    pub(super) fn listener(&self) -> impl Fn(&[Record]) + Send + 'static {
        let pairs = Arc::clone(&self.pairs);
        move |rows: &[Record]| {
            if let Some(pairs) = &mut *lock(&pairs) {
                rows.iter().for_each(|row| pairs.row(row));
            }
        }
    }

    /// The load has begun.
    pub(super) fn begin(&self, start: Instant) {
        if let Some(relay) = &self.relay {
            relay.drain().into_iter().for_each(drop);
            *lock(&self.pairs) = Some(Pairs::new(monotonic_ns_of(start)));
        }
    }

    /// Takes what was stamped meanwhile.
    pub(super) fn tick(&self) {
        if let (Some(relay), Some(pairs)) = (&self.relay, &mut *lock(&self.pairs)) {
            relay
                .drain()
                .into_iter()
                .for_each(|stamp| pairs.stamp(stamp));
        }
    }

    /// What the requests of a span came to; all of them are written, with these names of profiles.
    pub(super) fn finish(
        self,
        span: Span,
        telemetry: &Telemetry,
        (file, profiles): (&Path, &[String]),
    ) -> Result<Found, String> {
        self.tick();
        let pairs = lock(&self.pairs).take();
        let (Some(relay), Some(pairs)) = (&self.relay, pairs) else {
            return Ok(Found::default());
        };
        let (all, unpaired) = pairs.finish();
        let fault = pairs_file::write(file, profiles, &all).err();
        let is_in = |pair: &&Pair| {
            let sent = Duration::from_nanos(pair.sent_ns);
            sent > span.from && sent <= span.to
        };
        let pairs: Vec<Pair> = all.iter().filter(is_in).copied().collect();
        let word = OwnMeans {
            histogram_s: own_histogram(span, telemetry),
            record_s: self.own_record(&pairs)?,
        };
        let overhead = paired(&pairs, relay.loopback, word).map(|overhead| Overhead {
            throttling: self.throttling(span, telemetry),
            ..overhead
        });
        Ok(Found {
            overhead,
            series: series(&all),
            missing: told(all.len(), unpaired, relay.tap.unstamped()),
            fault,
        })
    }

    fn own_record(&self, pairs: &[Pair]) -> Result<Option<f64>, String> {
        let Some(log) = self.log.as_ref().filter(|log| log.is_file()) else {
            return Ok(None);
        };
        let of_file = |error: std::io::Error| format!("{}: {error}", log.display());
        let ids: HashSet<_> = pairs.iter().map(|pair| pair.id).collect();
        let file = File::open(log).map_err(of_file)?;
        let recorded = Recorded::read(BufReader::new(file), &ids).map_err(of_file)?;
        Ok(recorded.mean_s())
    }

    fn throttling(&self, span: Span, telemetry: &Telemetry) -> Option<Throttling> {
        let quota_cores = self.quota_cores?;
        let asked = |query: &str| telemetry.ask(&query.parse().ok()?, span);
        let count = |query: &str| Some(asked(query)?.round() as u64);
        Some(Throttling {
            quota_cores: Some(quota_cores),
            periods: count(queries::PERIODS)?,
            throttled_periods: count(queries::THROTTLED)?,
            throttled_s: asked(queries::THROTTLED_S)?,
        })
    }
}

/// How many requests are in no pair, and why; `None` where all are.
fn told(paired: usize, unpaired: Unpaired, unstamped: Unstamped) -> Option<String> {
    let reasons = [
        (unpaired.failed, "failed"),
        (unpaired.repeated, "reached the engine more than once"),
        (unpaired.no_room, "are beyond what is kept"),
        (unpaired.halves, "were seen by one side alone"),
        (unstamped.without_id, "came to the relay without their id"),
        (unstamped.not_understood, "connections were not understood"),
        (unstamped.cut, "ended in the middle"),
        (unstamped.lost, "stamps found no room"),
    ];
    let some = reasons.iter().filter(|(count, _)| *count > 0);
    let some: Vec<String> = some.map(|(count, why)| format!("{count} {why}")).collect();
    (!some.is_empty()).then(|| {
        format!(
            "{paired} requests are paired; of others {}",
            some.join(", ")
        )
    })
}

fn own_histogram(span: Span, telemetry: &Telemetry) -> Option<f64> {
    let query: Query = queries::GATE_OWN.parse().ok()?;
    telemetry.ask(&query, span)
}

/// Means of ten seconds or more: with and without the gateway, and what lies between.
#[expect(clippy::cast_precision_loss, reason = "nanoseconds below 2^53")]
fn series(pairs: &[Pair]) -> BTreeMap<String, Series> {
    let last = pairs.iter().map(|pair| pair.sent_ns).max().unwrap_or(0) / 1_000_000_000;
    let width = POINT_S.max(last / MOST_POINTS as u64 + 1);
    let mut points: BTreeMap<u64, (f64, [f64; 3])> = BTreeMap::new();
    for pair in pairs {
        let point = points
            .entry(pair.sent_ns / 1_000_000_000 / width)
            .or_default();
        point.0 += 1.0;
        for (sum, ns) in
            point
                .1
                .iter_mut()
                .zip([pair.upstream_ns, pair.downstream_ns, pair.gate_ns()])
        {
            *sum += ns as f64 / 1e9;
        }
    }
    let names = [
        ("upstream_s", "relay: request whole to last byte, mean"),
        ("downstream_s", "client: request sent to last byte, mean"),
        (
            "gate_s",
            "paired stamps: to the upstream and first byte back, mean",
        ),
    ];
    let of = |at: usize, source: &str| Series {
        unit: "s".into(),
        source: source.to_owned(),
        points: points
            .iter()
            .map(|(bin, (count, sums))| {
                let middle = (*bin as f64 + 0.5) * width as f64;
                (middle, Some(sums[at] / count))
            })
            .collect(),
    };
    let series = names.iter().enumerate();
    series
        .map(|(at, (name, source))| ((*name).to_owned(), of(at, source)))
        .collect()
}

fn lock(pairs: &Mutex<Option<Pairs>>) -> MutexGuard<'_, Option<Pairs>> {
    pairs.lock().unwrap_or_else(PoisonError::into_inner)
}
