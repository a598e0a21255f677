//! What steps must about cost, by the model's and the GPU's own numbers.
//!
//! A step reads the weights, and of every token attended to its keys and values, at most at the memory's bandwidth;
//! reading a prompt takes the operations that its tokens and pairs need. Where the GPU is not known, a usual one
//! is taken, unless the fastest request of the share shows a better.
//! Invariant: only figures of the setup and times of the share are used. A model that is not known has no prior, nor has
//! one on an unknown GPU whose share has no time between two tokens.
//! Not here: the figures themselves (`hardware`), how much they count against the recording (`solve`).

use std::ops::Range;

use super::{Line, PARAMETERS, least_tpot};
use crate::hardware::Gpu;
use crate::trace::Trace;

/// Share of a memory's bandwidth that a step gets.
const BANDWIDTH_USED: f64 = 0.85;
/// Share of a GPU's operations that matrix products get.
const OPERATIONS_USED: f64 = 0.65;
/// Operations for each byte of bandwidth, by which a GPU that is not known is taken (A100: 153, RTX 4090: 164,
/// H100: 295).
const OPERATIONS_PER_BYTE: f64 = 220.0;
/// Bandwidth of a GPU that is not known, bytes a second: those that serve models have 0.9 to 4.8 TB/s.
const USUAL_BANDWIDTH: f64 = 1.5e12;
/// Of the least time for a token, at most the part that reads weights.
const WEIGHTS_SHARE: f64 = 0.85;
/// Launching and sampling in each step, seconds.
const OVERHEAD_S: f64 = 1e-3;
/// A prompt's step runs without captured graphs, seconds.
const READS_S: f64 = 3e-3;
/// Bookkeeping for each sequence, seconds.
const SEQUENCE_S: f64 = 15e-6;
/// Bytes a second at which GPUs that share a model add up their parts: about PCIe's.
const EXCHANGE_BYTES_S: f64 = 20e9;
/// How much a distance of one standard deviation from the prior weighs, as a distance from the recording: a quarter of
/// a percent.
const WEIGHT: f64 = 0.0025;

/// Costs as they should be, and by which factor each may well differ.
#[derive(Clone, Copy, Debug)]
pub(super) struct Prior {
    pub(super) line: Line,
    /// Standard deviations of the logarithms.
    pub(super) sigma: Line,
}

impl Prior {
    pub(super) fn of(trace: &Trace, range: Range<usize>) -> Option<Self> {
        let meta = &trace.meta;
        let model = meta.known_model()?;
        let gpu = meta.device.as_deref().and_then(Gpu::named);
        let gpus = f64::from(meta.tensor_parallel.unwrap_or(1));
        let weights = model.weights_on_each(meta.gpus_of_a_copy());
        let bandwidth = match gpu {
            Some(gpu) => gpu.bandwidth_gb_s * 1e9 * BANDWIDTH_USED,
            None => {
                let least = weights / (least_tpot(trace, range)? * WEIGHTS_SHARE);
                least.max(USUAL_BANDWIDTH * BANDWIDTH_USED)
            }
        };
        let operations = match gpu {
            Some(gpu) => gpu.tflops * 1e12 * OPERATIONS_USED,
            None => bandwidth / BANDWIDTH_USED * OPERATIONS_PER_BYTE * OPERATIONS_USED,
        };
        let exchange = model.sums_bytes_per_token(gpus) / EXCHANGE_BYTES_S;
        let (known, experts) = (gpu.is_some(), model.has_experts());
        let within = |known_by: f64, else_by: f64| if known { known_by } else { else_by };
        Some(Self {
            line: [
                weights / bandwidth + OVERHEAD_S,
                READS_S,
                2.0 * model.active_b * 1e9 / gpus / operations + exchange,
                model.operations_per_pair() / gpus / operations,
                SEQUENCE_S + exchange,
                meta.kv_bytes_per_token(&model) / bandwidth,
            ],
            sigma: [
                if experts { 2.5 } else { within(1.25, 2.0) },
                4.0,
                if experts { 3.0 } else { within(1.5, 2.5) },
                4.0,
                4.0,
                within(1.5, 2.0),
            ]
            .map(f64::ln),
        })
    }

    /// How far these costs are from it.
    pub(super) fn penalty(&self, line: &Line) -> f64 {
        (0..PARAMETERS)
            .map(|i| {
                let factor = (line[i].max(self.line[i] * 1e-6) / self.line[i]).ln();
                WEIGHT * (factor / self.sigma[i]).powi(2)
            })
            .sum()
    }
}
