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
use crate::scheduler::{NeverFits, Request, RequestId, SchedulerConfig};
use crate::trace::{Sample, Times, Trace};
use crate::virtual_time::{Iteration, VirtualEngine};

/// What came out.
#[derive(Clone, Debug, Default)]
pub struct Replayed {
    /// One for each request of the recording, in its order.
    pub requests: Vec<Times>,
    /// Times that a running request lost its blocks.
    pub preemptions: u64,
    /// Steps that ran.
    pub steps: u64,
    /// What the engine held, each second.
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

/// The engine of a recording: what `meta.json` says, and vLLM's defaults for what it leaves out.
#[must_use]
pub fn engine_of(trace: &Trace, blocks: Option<u32>) -> (SchedulerConfig, Blocks) {
    let meta = &trace.meta;
    let block_size = meta.block_size.unwrap_or(16);
    let longest = trace
        .requests
        .iter()
        .map(|r| r.prompt_tokens + r.output_tokens)
        .max();
    let max_num_seqs = meta.max_num_seqs.unwrap_or(256);
    let blocks = Blocks::settle(trace, blocks, block_size, max_num_seqs);
    let config = SchedulerConfig {
        max_num_seqs,
        max_num_batched_tokens: meta.max_num_batched_tokens.unwrap_or(2048),
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
    (config, blocks)
}

/// Plays the whole run. `watch` sees every step.
///
/// # Errors
/// When a request of the recording could never run on this engine.
pub fn replay(
    trace: &Trace,
    config: SchedulerConfig,
    cost: StepCost,
    mut watch: impl FnMut(&Iteration),
) -> Result<Replayed, ReplayError> {
    let mut engine = VirtualEngine::new(config, cost);
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
    while let Some(iteration) = engine.iterate(Duration::MAX).map_err(refused)? {
        out.steps += 1;
        sample(&mut out.timeseries, iteration.began, &engine);
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

/// Adds what the engine holds for each second that has passed.
fn sample(series: &mut Vec<Sample>, now: Duration, engine: &VirtualEngine) {
    let stats = engine.stats();
    while now.as_secs() > series.len() as u64 {
        series.push(Sample {
            at_s: series.len() as f64 + 1.0,
            running: stats.running as f64,
            waiting: stats.waiting as f64,
            kv_percent: stats.kv_usage * 100.0,
        });
    }
}

#[cfg(test)]
mod tests;
