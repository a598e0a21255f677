//! A gateway's own time, of each request: what lies between a client's clock and an upstream's.
//!
//! `paired`: client and relay stamp the same request on one clock. Of one request, with the client's `sent`, `head` (first
//! byte) and `ended`, and the relay's `whole_in`, `first_out` and `last_out`:
//!
//! - to the upstream: `whole_in − sent`; first byte back: `head − first_out`; last byte back: `ended − last_out`;
//! - the gateway's time: to the upstream and first byte back.
//!
//! That time holds two hops of loopback each way (client to gateway, gateway to relay), where a path without a gateway
//! has one. What they take is known by another relay of ours in the gateway's place, whose own time is known ([`Loopback`]):
//! without them it is the *isolated* time, and what the gateway's own histogram and records (`own`) are of. A difference
//! of a direct hop would not do: a hop's price depends on who else runs, and two threads are not three.
//! Invariant: a request counts once, with both its clocks, or not at all and is counted as that; an id that an upstream
//! saw twice (a retry) is not paired, for its time is not the gateway's alone.
//! Not here: stamping (`tap`, `load`).

pub(crate) mod ask;
pub(crate) mod command;
pub(crate) mod interleaved;
pub(crate) mod own;
pub(crate) mod pairs_file;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use load::observer::Record;
use load::source::RequestId;

use crate::report::document::{Isolated, Overhead, Quantiles};
use crate::tap::Stamp;

/// Requests of which one half may wait for the other: some 70 MB.
const MOST_WAITING: usize = 200_000;
/// Requests that are kept: some 160 MB. Those that come later are counted, and their times are not.
const MOST_PAIRS: usize = 2_000_000;
/// Points of a distribution.
const POINTS: usize = 200;

/// One request's times, nanoseconds; below 0 where clocks of different cores disagree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pair {
    pub(crate) id: RequestId,
    /// When it was sent, since the start of the run.
    pub(crate) sent_ns: u64,
    pub(crate) to_upstream_ns: i64,
    pub(crate) first_back_ns: i64,
    pub(crate) last_back_ns: i64,
    /// From the request at the relay to the last byte from it.
    pub(crate) upstream_ns: i64,
    /// From the request at the client to its last byte.
    pub(crate) downstream_ns: i64,
    /// What the relay delayed it on purpose.
    pub(crate) delay_ns: u64,
}

/// Halves as they come, in any order.
#[derive(Debug)]
pub(crate) struct Pairs {
    /// The start of the run on the relay's clock.
    start_ns: u64,
    waiting: HashMap<RequestId, Half>,
    pairs: Vec<Pair>,
    unpaired: Unpaired,
}

/// Why requests are in no pair.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Unpaired {
    /// No whole, good answer at the client.
    pub(crate) failed: u64,
    /// Seen by the upstream more than once.
    pub(crate) repeated: u64,
    /// Beyond what is kept.
    pub(crate) no_room: u64,
    /// One half alone, so far.
    pub(crate) halves: u64,
}

#[derive(Debug, Clone, Copy)]
enum Half {
    Stamp(Stamp),
    Row(Record),
    /// What comes of it later is not counted again.
    Done,
}

/// What the way takes by itself, medians in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Loopback {
    /// One hop each way: requests to the relay without a gateway.
    pub(crate) one_hop_s: f64,
    /// Two hops each way: requests through a relay in the gateway's place, less its own time.
    pub(crate) two_hops_s: f64,
}

/// What the gateway says of itself, means in seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct OwnMeans {
    pub(crate) histogram_s: Option<f64>,
    pub(crate) record_s: Option<f64>,
}

impl Pair {
    /// The gateway's time, and two hops each way.
    pub(crate) const fn gate_ns(&self) -> i64 {
        self.to_upstream_ns.saturating_add(self.first_back_ns)
    }
}

impl Pairs {
    /// `start_ns`: the start of the run, by [`crate::tap::monotonic_ns_of`].
    pub(crate) fn new(start_ns: u64) -> Self {
        Self {
            start_ns,
            waiting: HashMap::new(),
            pairs: Vec::new(),
            unpaired: Unpaired::default(),
        }
    }

    /// Takes what the relay saw.
    pub(crate) fn stamp(&mut self, stamp: Stamp) {
        match self.waiting.entry(stamp.id) {
            Entry::Vacant(entry) => {
                entry.insert(Half::Stamp(stamp));
                self.bound(stamp.id);
            }
            Entry::Occupied(mut entry) => match entry.get() {
                Half::Row(row) => {
                    let row = *row;
                    entry.insert(Half::Done);
                    self.pair(&stamp, &row);
                }
                Half::Stamp(_) => {
                    entry.insert(Half::Done);
                    self.unpaired.repeated += 1;
                }
                Half::Done => {}
            },
        }
    }

    /// Takes what the client saw.
    pub(crate) fn row(&mut self, row: &Record) {
        let id = row.request_id();
        match self.waiting.entry(id) {
            Entry::Vacant(entry) => {
                entry.insert(Half::Row(*row));
                self.bound(id);
            }
            Entry::Occupied(mut entry) => {
                if let Half::Stamp(stamp) = entry.get() {
                    let stamp = *stamp;
                    entry.insert(Half::Done);
                    self.pair(&stamp, row);
                }
            }
        }
    }

    /// How many have both their halves, or failed.
    pub(crate) fn settled(&self) -> u64 {
        self.pairs.len() as u64 + self.unpaired.failed + self.unpaired.no_room
    }

    /// Those that are whole, and why others are not.
    pub(crate) fn finish(mut self) -> (Vec<Pair>, Unpaired) {
        let halves = self.waiting.values();
        self.unpaired.halves += halves.filter(|half| !matches!(half, Half::Done)).count() as u64;
        (self.pairs, self.unpaired)
    }

    /// What is done is forgotten first; with that a retry that comes much later is a half, and no pair.
    fn bound(&mut self, last: RequestId) {
        if self.waiting.len() <= MOST_WAITING {
            return;
        }
        self.waiting.retain(|_, half| !matches!(half, Half::Done));
        if self.waiting.len() > MOST_WAITING {
            self.waiting.remove(&last);
            self.unpaired.halves += 1;
        }
    }

    fn pair(&mut self, stamp: &Stamp, row: &Record) {
        let (Some(sent), Some(head), None) = (row.sent_ns, row.head_ns, row.failure) else {
            self.unpaired.failed += 1;
            return;
        };
        if self.pairs.len() >= MOST_PAIRS {
            self.unpaired.no_room += 1;
            return;
        }
        let at = |since_start: u64| self.start_ns.saturating_add(since_start);
        self.pairs.push(Pair {
            id: stamp.id,
            sent_ns: sent,
            to_upstream_ns: between(at(sent), stamp.whole_in_ns),
            first_back_ns: between(stamp.first_out_ns, at(head)),
            last_back_ns: between(stamp.last_out_ns, at(row.ended_ns)),
            upstream_ns: between(stamp.whole_in_ns, stamp.last_out_ns),
            downstream_ns: between(sent, row.ended_ns),
            delay_ns: stamp.delay_ns,
        });
    }
}

fn between(from: u64, to: u64) -> i64 {
    i64::try_from(i128::from(to) - i128::from(from)).unwrap_or(i64::MAX)
}

impl Loopback {
    /// Of requests without a gateway, and of those through a relay in its place with what that stamped of them; `None`
    /// where there are none.
    pub(crate) fn of(direct: &[Pair], relayed: &[Pair], stamps: &[Stamp]) -> Option<Self> {
        let mut own: Vec<f64> = stamps
            .iter()
            .map(|stamp| stamp.own_ns as f64 / 1e9)
            .collect();
        own.sort_by(f64::total_cmp);
        let two_hops_s = median(relayed, Pair::gate_ns)? - quantile(&own, 0.5);
        Some(Self {
            one_hop_s: median(direct, Pair::gate_ns)?,
            two_hops_s,
        })
        .filter(|_| !own.is_empty())
    }

    /// What is left of a time at the median.
    pub(crate) fn isolate(self, gate_s: f64) -> Isolated {
        Isolated {
            net_of_one_hop_s: gate_s - self.one_hop_s,
            own_s: gate_s - self.two_hops_s,
        }
    }
}

/// What `pairs` come to, by the method `paired`; `None` where there are none.
pub(crate) fn paired(
    pairs: &[Pair],
    loopback: Option<Loopback>,
    own: OwnMeans,
) -> Option<Overhead> {
    let of = |read: fn(&Pair) -> i64| mean(pairs, read);
    let mut gate: Vec<f64> = pairs.iter().map(|pair| seconds(pair.gate_ns())).collect();
    gate.sort_by(f64::total_cmp);
    let (there, first) = (
        of(|pair| pair.to_upstream_ns)?,
        of(|pair| pair.first_back_ns)?,
    );
    let last = of(|pair| pair.last_back_ns)?;
    let parts = vec![
        ("client to gate and upstream".to_owned(), there),
        ("first byte back".to_owned(), first),
        ("last byte back".to_owned(), last),
    ];
    let middle = quantile(&gate, 0.5);
    let spread = |read: fn(&Pair) -> i64| {
        let mut all: Vec<f64> = pairs.iter().map(|pair| seconds(read(pair))).collect();
        all.sort_by(f64::total_cmp);
        Some(quantiles(&all))
    };
    Some(Overhead {
        last_byte: spread(|pair| pair.last_back_ns),
        drawn_out: spread(|pair| pair.last_back_ns.saturating_sub(pair.first_back_ns)),
        method: "paired".into(),
        requests: pairs.len() as u64,
        upstream_s: of(|pair| pair.upstream_ns)?,
        downstream_s: of(|pair| pair.downstream_ns)?,
        cdf: cdf(&gate),
        gate: quantiles(&gate),
        parts,
        isolated: loopback.map(|hop| hop.isolate(middle)),
        own_histogram_s: own.histogram_s,
        own_record_s: own.record_s,
        throttling: None,
    })
}

fn median(pairs: &[Pair], read: impl Fn(&Pair) -> i64) -> Option<f64> {
    let mut all: Vec<f64> = pairs.iter().map(|pair| seconds(read(pair))).collect();
    all.sort_by(f64::total_cmp);
    (!all.is_empty()).then(|| quantile(&all, 0.5))
}

fn mean(pairs: &[Pair], read: impl Fn(&Pair) -> i64) -> Option<f64> {
    let sum: i128 = pairs.iter().map(|pair| i128::from(read(pair))).sum();
    #[expect(
        clippy::cast_precision_loss,
        reason = "nanoseconds of two million requests, told in seconds"
    )]
    let mean = |sum: i128, count: usize| sum as f64 / count as f64 / 1e9;
    (!pairs.is_empty()).then(|| mean(sum, pairs.len()))
}

#[expect(
    clippy::cast_precision_loss,
    reason = "nanoseconds below 2^53 are 104 days"
)]
fn seconds(ns: i64) -> f64 {
    ns as f64 / 1e9
}

/// The value that a share of `sorted` is at or below; the nearest rank, 0 where there is none.
pub(crate) fn quantile(sorted: &[f64], share: f64) -> f64 {
    let rank = (share * sorted.len() as f64).ceil() as usize;
    let at = rank.clamp(1, sorted.len().max(1)) - 1;
    sorted.get(at).copied().unwrap_or(0.0)
}

fn quantiles(sorted: &[f64]) -> Quantiles {
    let of = |share| quantile(sorted, share);
    Quantiles {
        count: sorted.len() as u64,
        mean: sorted.iter().sum::<f64>() / sorted.len().max(1) as f64,
        p50: of(0.5),
        p90: of(0.9),
        p95: of(0.95),
        p99: of(0.99),
        p999: of(0.999),
        max: of(1.0),
    }
}

/// Values and the share at or below, the tail as finely as the rest.
fn cdf(sorted: &[f64]) -> Vec<(f64, f64)> {
    let points = POINTS.min(sorted.len());
    let share = |at: usize| (at + 1) as f64 / points as f64;
    (0..points)
        .map(|at| (quantile(sorted, share(at)), share(at)))
        .collect()
}
