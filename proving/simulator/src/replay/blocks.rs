//! How many KV blocks the engine of a recording had.
//!
//! Invariant: the count says where it is from; a guess is never taken for a report.
//! Not here: reading the recording (`trace`), finding the count from its times (`fit`).

use crate::kv::MOST_BLOCKS;
use crate::trace::Trace;

/// A number of KV blocks and its origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blocks {
    /// As vLLM counts them, in each engine.
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
    /// The preset says so.
    Preset,
    /// A fit found them: with fewer or more, the run would be another.
    Fitted,
    /// By arithmetic: the memory beside the model's weights.
    Memory,
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
            Self::Preset => "from the preset: meta.json does not say",
            Self::Fitted => "found by the fit: meta.json does not say",
            Self::Memory => "by the GPU's memory: neither meta.json nor the share says",
            Self::Ample => {
                "ample: meta.json does not say, and these requests do not show that there were fewer"
            }
        }
    }
}

impl Blocks {
    pub(super) fn settle(
        trace: &Trace,
        given: Option<u32>,
        otherwise: Option<u32>,
        block_size: u32,
        seqs: usize,
    ) -> Self {
        let source = |source| move |count| Self { count, source };
        given
            .map(source(BlockSource::Given))
            .or_else(|| trace.meta.blocks.map(source(BlockSource::Recorded)))
            .or_else(|| otherwise.map(source(BlockSource::Preset)))
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
        .saturating_mul(u32::try_from(seqs.min(trace.requests.len())).unwrap_or(u32::MAX));
    most.saturating_add(2).min(MOST_BLOCKS)
}
