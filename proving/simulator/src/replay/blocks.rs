//! How many KV blocks the engine of a recording had.
//!
//! Invariant: the count says where it is from; a guess is never taken for a report.
//! Not here: reading the recording (`trace`).

use std::time::Duration;

use crate::kv::MOST_BLOCKS;
use crate::trace::{Sample, Trace};

/// A number of KV blocks and its origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blocks {
    /// As vLLM counts them.
    pub count: u32,
    /// Where the number is from.
    pub source: BlockSource,
}

/// Where a number of blocks is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockSource {
    /// The caller said so.
    Given,
    /// `meta.json` says so.
    Recorded,
    /// From the share in use beside the requests in flight.
    Estimated,
    /// Nothing is known: as many as all requests together could need.
    Ample,
}

impl BlockSource {
    /// For a person.
    #[must_use]
    pub fn explain(self) -> &'static str {
        match self {
            Self::Given => "as given",
            Self::Recorded => "from meta.json",
            Self::Estimated => "estimated from timeseries.csv: meta.json does not say",
            Self::Ample => "ample: neither meta.json nor timeseries.csv says",
        }
    }
}

impl Blocks {
    pub(super) fn settle(trace: &Trace, given: Option<u32>, block_size: u32, seqs: usize) -> Self {
        let source = |source| move |count| Self { count, source };
        given
            .map(source(BlockSource::Given))
            .or_else(|| trace.meta.blocks.map(source(BlockSource::Recorded)))
            .or_else(|| estimate(trace, block_size).map(source(BlockSource::Estimated)))
            .unwrap_or_else(|| Self {
                count: ample(trace, block_size, seqs),
                source: BlockSource::Ample,
            })
    }
}

fn ample(trace: &Trace, block_size: u32, seqs: usize) -> u32 {
    let longest = trace
        .requests
        .iter()
        .map(|r| (r.prompt_tokens + r.output_tokens).div_ceil(block_size));
    let most = longest
        .max()
        .unwrap_or(1)
        .saturating_mul(u32::try_from(seqs).unwrap_or(u32::MAX));
    most.saturating_add(2).min(MOST_BLOCKS)
}

/// The median over the seconds in which everything in flight was running, so that what it held is known.
fn estimate(trace: &Trace, block_size: u32) -> Option<u32> {
    let mut estimates: Vec<f64> = trace
        .timeseries
        .iter()
        .filter(|sample| sample.kv_percent > 2.0)
        .filter_map(|sample| {
            let (held, requests) = held(trace, sample, block_size);
            let alike = (requests as f64 - sample.running).abs() <= 1.0 && sample.waiting == 0.0;
            alike.then(|| held / (sample.kv_percent / 100.0))
        })
        .collect();
    estimates.sort_by(f64::total_cmp);
    let median = estimates.get(estimates.len() / 2)?;
    Some((*median as u32).saturating_add(1).min(MOST_BLOCKS))
}

/// Blocks that the requests in flight held then, and how many these are.
fn held(trace: &Trace, sample: &Sample, block_size: u32) -> (f64, usize) {
    let at = Duration::try_from_secs_f64(sample.at_s).unwrap_or(Duration::ZERO);
    let in_flight = trace
        .requests
        .iter()
        .filter(|r| r.times.first <= at && at < r.times.last);
    in_flight.fold((0.0, 0), |(blocks, n), r| {
        let span = (r.times.last - r.times.first).as_secs_f64();
        let share = (at - r.times.first).as_secs_f64() / span;
        let tokens = f64::from(r.prompt_tokens) + f64::from(r.output_tokens) * share;
        (blocks + (tokens / f64::from(block_size)).ceil(), n + 1)
    })
}
