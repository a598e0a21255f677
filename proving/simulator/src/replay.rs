//! A recorded run played again on the simulated engine, in virtual time.
//!
//! Requests arrive when they did, with the lengths they had; when tokens come is the simulation's.
//! Invariant: of the recording's times only the arrivals are used.
//! Not here: how near the outcome is (`score`), costs from a recording (`fit`).

mod blocks;

pub use blocks::{BlockSource, Blocks};

use std::time::Duration;

use crate::cost::StepCost;
use crate::kv::{Chain, KvConfig};
use crate::scheduler::{NeverFits, Request, RequestId, SchedulerConfig, SchedulerStats};
use crate::trace::{Sample, Times, Trace};
use crate::virtual_time::{Iteration, Parallelism, VirtualEngine};

/// What came out.
#[derive(Clone, Debug, Default)]
pub struct Replayed {
    /// One for each request of the recording, in its order.
    pub requests: Vec<Times>,
    /// Times that a running request lost its blocks.
    pub preemptions: u64,
    /// Steps that ran.
    pub steps: u64,
    /// Greatest number of blocks in use, by all engines.
    pub most_blocks: u32,
    /// What the engines held, each second.
    pub timeseries: Vec<Sample>,
}

/// A recording that this engine cannot play.
#[derive(Debug, thiserror::Error)]
#[error("request {id} of the recording never fits: {reason}")]
pub struct ReplayError {
    /// Which.
    pub id: String,
    /// Why.
    pub reason: NeverFits,
}

/// The engines of a recording, without what their steps cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setup {
    /// Limits and KV cache of each.
    pub scheduler: SchedulerConfig,
    /// How many there are.
    pub parallelism: Parallelism,
    /// KV blocks of each, and who says so.
    pub blocks: Blocks,
}

impl Setup {
    /// What `meta.json` says, and vLLM's defaults for what it leaves out. Where it leaves out the KV blocks of an
    /// engine, there are those that were `given`, else `otherwise`, else as many as the requests could need.
    #[must_use]
    pub fn of(trace: &Trace, given: Option<u32>, otherwise: Option<u32>) -> Self {
        let meta = &trace.meta;
        let block_size = meta.block_size.unwrap_or(16);
        let longest = trace
            .requests
            .iter()
            .map(|r| r.prompt_tokens + r.output_tokens)
            .max();
        let max_num_seqs = meta.max_num_seqs.unwrap_or(256);
        let blocks = Blocks::settle(trace, given, otherwise, block_size, max_num_seqs);
        let scheduler = SchedulerConfig {
            max_num_seqs,
            max_num_batched_tokens: meta
                .max_num_batched_tokens
                .unwrap_or(2048)
                .max(u32::try_from(max_num_seqs).unwrap_or(u32::MAX)),
            max_model_len: meta.max_model_len.or(longest).unwrap_or(1),
            reserve_full_prompt: meta.reserve_full_prompt.unwrap_or(true),
            async_scheduling: meta.async_scheduling.unwrap_or(true),
            kv: KvConfig {
                block_size,
                blocks: blocks.count,
                prefix_caching: meta.prefix_caching.unwrap_or(true),
                sliding_window: None,
            },
        };
        let data = meta.data_parallel.unwrap_or(1);
        Self {
            scheduler,
            parallelism: Parallelism {
                data,
                lockstep: data > 1 && meta.shares_experts,
            },
            blocks,
        }
    }

    /// The same with so many KV blocks in each engine.
    #[must_use]
    pub fn with_blocks(mut self, blocks: Blocks) -> Self {
        self.blocks = blocks;
        self.scheduler.kv.blocks = blocks.count;
        self
    }
}

/// Plays the whole run. `watch` sees every step.
///
/// # Errors
/// When a request of the recording could never run on these engines.
pub fn replay(
    trace: &Trace,
    setup: &Setup,
    cost: StepCost,
    mut watch: impl FnMut(&Iteration),
) -> Result<Replayed, ReplayError> {
    let mut engine = VirtualEngine::parallel(setup.scheduler, cost, setup.parallelism);
    let mut out = Replayed::default();
    for (number, recorded) in (0..).zip(&trace.requests) {
        let arrival = recorded.times.arrival;
        out.requests.push(Times {
            arrival,
            ..Times::default()
        });
        let request = Request {
            id: RequestId(number),
            prompt_tokens: recorded.prompt_tokens,
            output_tokens: recorded.output_tokens,
            chain: Chain::unshared(number),
        };
        engine.post(arrival, request);
    }
    let refused = |(id, reason): (RequestId, NeverFits)| ReplayError {
        id: trace
            .requests
            .get(id.0 as usize)
            .map_or_else(String::new, |r| r.id.clone()),
        reason,
    };
    // As the last step left the engines: so they stayed until the next began.
    let mut held = engine.stats();
    while let Some(iteration) = engine.iterate(Duration::MAX).map_err(refused)? {
        out.steps += 1;
        sample(&mut out.timeseries, iteration.began, &held);
        held = engine.stats();
        out.most_blocks = out.most_blocks.max(held.kv_blocks_used);
        for admitted in &iteration.admitted {
            if let Some(times) = out.requests.get_mut(admitted.id.0 as usize) {
                (times.queued, times.scheduled) = (admitted.queued, admitted.scheduled);
            }
        }
        for token in &iteration.emitted {
            if let Some(times) = out.requests.get_mut(token.id.0 as usize) {
                if token.index == 0 {
                    times.first = iteration.at;
                }
                times.last = iteration.at;
            }
        }
        watch(&iteration);
    }
    out.preemptions = engine.stats().totals.preemptions;
    Ok(out)
}

/// A series is at most so long: 46 days.
const MOST_SAMPLES: usize = 4_000_000;

/// Adds what the engine holds for each second that has passed.
fn sample(series: &mut Vec<Sample>, now: Duration, stats: &SchedulerStats) {
    while now.as_secs() > series.len() as u64 && series.len() < MOST_SAMPLES {
        series.push(Sample {
            at_s: series.len() as f64 + 1.0,
            running: stats.running as f64,
            waiting: stats.waiting as f64,
            kv_percent: stats.kv_usage * 100.0,
        });
    }
}
