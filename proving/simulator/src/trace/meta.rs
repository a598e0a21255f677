//! What the engine of a recording was set to.
//!
//! Invariant: what `meta.json` does not say is `None` here; the defaults are the caller's.
//! Not here: what is done without a KV cache size (`replay`).

use serde::Deserialize;

use super::At;
use crate::kv::MOST_BLOCKS;

/// The settings that a simulation needs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Meta {
    /// As served.
    pub model: String,
    /// As reported.
    pub vllm_version: Option<String>,
    /// Name of the accelerator.
    pub device: Option<String>,
    /// GPUs that share the model.
    pub tensor_parallel: Option<u32>,
    /// Most requests in a step.
    pub max_num_seqs: Option<usize>,
    /// Most tokens in a step.
    pub max_num_batched_tokens: Option<u32>,
    /// Most tokens of prompt and output.
    pub max_model_len: Option<u32>,
    /// KV blocks.
    pub blocks: Option<u32>,
    /// Tokens in a block.
    pub block_size: Option<u32>,
    /// Whether prompts share blocks.
    pub prefix_caching: Option<bool>,
    /// `scheduler_reserve_full_isl`.
    pub reserve_full_prompt: Option<bool>,
    /// `async_scheduling`.
    pub async_scheduling: Option<bool>,
}

#[derive(Deserialize)]
struct File {
    model: String,
    vllm_version: Option<String>,
    engine_kwargs: Kwargs,
    #[serde(default)]
    kv_cache: KvCache,
    #[serde(default)]
    hardware: Hardware,
    #[serde(default)]
    resolved_config: Resolved,
}

#[derive(Deserialize)]
struct Kwargs {
    tensor_parallel_size: Option<u32>,
    max_num_seqs: Option<usize>,
    max_num_batched_tokens: Option<u32>,
    max_model_len: Option<u32>,
}

#[derive(Default, Deserialize)]
struct KvCache {
    num_gpu_blocks: Option<u32>,
    block_size: Option<u32>,
    enable_prefix_caching: Option<bool>,
}

#[derive(Default, Deserialize)]
struct Hardware {
    device_name: Option<String>,
}

#[derive(Default, Deserialize)]
struct Resolved {
    #[serde(default)]
    scheduler_config: SchedulerConfig,
    #[serde(default)]
    model_config: ModelConfig,
}

#[derive(Default, Deserialize)]
struct SchedulerConfig {
    async_scheduling: Option<bool>,
    max_num_batched_tokens: Option<u32>,
    max_num_seqs: Option<usize>,
    scheduler_reserve_full_isl: Option<bool>,
}

#[derive(Default, Deserialize)]
struct ModelConfig {
    max_model_len: Option<u32>,
}

impl Meta {
    pub(super) fn parse(text: &str) -> Result<Self, At> {
        let file: File =
            serde_json::from_str(text).map_err(|error| (error.line(), error.to_string()))?;
        let (kwargs, scheduler) = (file.engine_kwargs, file.resolved_config.scheduler_config);
        let meta = Self {
            model: file.model,
            vllm_version: file.vllm_version,
            device: file.hardware.device_name,
            tensor_parallel: kwargs.tensor_parallel_size,
            max_num_seqs: scheduler.max_num_seqs.or(kwargs.max_num_seqs),
            max_num_batched_tokens: scheduler
                .max_num_batched_tokens
                .or(kwargs.max_num_batched_tokens),
            max_model_len: file
                .resolved_config
                .model_config
                .max_model_len
                .or(kwargs.max_model_len),
            blocks: file.kv_cache.num_gpu_blocks,
            block_size: file.kv_cache.block_size,
            prefix_caching: file.kv_cache.enable_prefix_caching,
            reserve_full_prompt: scheduler.scheduler_reserve_full_isl,
            async_scheduling: scheduler.async_scheduling,
        };
        let zero = meta.max_num_seqs == Some(0)
            || [
                meta.max_num_batched_tokens,
                meta.max_model_len,
                meta.blocks,
                meta.block_size,
            ]
            .contains(&Some(0));
        if zero {
            return Err((1, "a limit is 0".to_owned()));
        }
        if meta.blocks > Some(MOST_BLOCKS) {
            return Err((1, format!("num_gpu_blocks is more than {MOST_BLOCKS}")));
        }
        Ok(meta)
    }
}
