//! What the engine of a recording was set to.
//!
//! Invariant: what `meta.json` does not say is `None` here; the defaults are the caller's.
//! Not here: what is done without a KV cache size (`replay`).

use serde::Deserialize;

use super::At;
use crate::hardware::Model;
use crate::kv::MOST_BLOCKS;
use crate::virtual_time::MOST_RANKS;

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
    /// Engines with the whole model (`data_parallel_size`).
    pub data_parallel: Option<u32>,
    /// Whether these engines share their experts, and so run every step together.
    pub shares_experts: bool,
    /// KV blocks of each engine. vLLM reports the sum over its data-parallel engines.
    pub blocks: Option<u32>,
    /// Type of the cached values, such as `auto` or `fp8`.
    pub kv_cache_dtype: Option<String>,
    /// Memory of each accelerator.
    pub memory_bytes: Option<u64>,
    /// Share of it that the engine may use.
    pub memory_utilization: Option<f64>,
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

/// What is set in a way that is not simulated: a value by its name.
type Unknown = (&'static str, String);

#[derive(Deserialize)]
struct Kwargs {
    tensor_parallel_size: Option<u32>,
    data_parallel_size: Option<u32>,
    pipeline_parallel_size: Option<u32>,
    enable_expert_parallel: Option<bool>,
    kv_cache_dtype: Option<String>,
    max_num_seqs: Option<usize>,
    max_num_batched_tokens: Option<u32>,
    max_model_len: Option<u32>,
}

#[derive(Default, Deserialize)]
struct KvCache {
    num_gpu_blocks: Option<u32>,
    block_size: Option<u32>,
    enable_prefix_caching: Option<bool>,
    gpu_memory_utilization: Option<f64>,
}

#[derive(Default, Deserialize)]
struct Hardware {
    device_name: Option<String>,
    device_total_memory_bytes: Option<u64>,
}

#[derive(Default, Deserialize)]
struct Resolved {
    #[serde(default)]
    scheduler_config: SchedulerConfig,
    #[serde(default)]
    model_config: ModelConfig,
    #[serde(default)]
    parallel_config: ParallelConfig,
    speculative_config: Option<serde_json::Value>,
    kv_transfer_config: Option<serde_json::Value>,
    lora_config: Option<serde_json::Value>,
}

#[derive(Default, Deserialize)]
struct ParallelConfig {
    tensor_parallel_size: Option<u32>,
    data_parallel_size: Option<u32>,
    pipeline_parallel_size: Option<u32>,
    decode_context_parallel_size: Option<u32>,
    prefill_context_parallel_size: Option<u32>,
    enable_expert_parallel: Option<bool>,
    is_moe_model: Option<bool>,
    enable_dbo: Option<bool>,
}

#[derive(Default, Deserialize)]
struct SchedulerConfig {
    async_scheduling: Option<bool>,
    max_num_batched_tokens: Option<u32>,
    max_num_seqs: Option<usize>,
    scheduler_reserve_full_isl: Option<bool>,
    enable_chunked_prefill: Option<bool>,
    policy: Option<String>,
    long_prefill_token_threshold: Option<u32>,
    prefill_schedule_interval: Option<u32>,
}

#[derive(Default, Deserialize)]
struct ModelConfig {
    max_model_len: Option<u32>,
}

impl Meta {
    /// GPUs that hold one copy of the weights: those of one engine, or of all where they share their experts.
    #[must_use]
    pub fn gpus_of_a_copy(&self) -> f64 {
        let sharing = if self.shares_experts {
            self.data_parallel.unwrap_or(1)
        } else {
            1
        };
        f64::from(self.tensor_parallel.unwrap_or(1)) * f64::from(sharing)
    }

    /// Bytes of keys and values for each token on each GPU of an engine.
    #[must_use]
    pub fn kv_bytes_per_token(&self, model: &Model) -> f64 {
        let kind = self.kv_cache_dtype.as_deref().unwrap_or_default();
        let of_16_bits = if kind.contains("fp8") { 0.5 } else { 1.0 };
        model.kv_bytes_per_token() * of_16_bits / f64::from(self.tensor_parallel.unwrap_or(1))
    }

    pub(super) fn parse(text: &str) -> Result<Self, At> {
        let file: File =
            serde_json::from_str(text).map_err(|error| (error.line(), error.to_string()))?;
        if let Some((name, value)) = file.not_simulated() {
            return Err((1, format!("{name} is {value}, which is not simulated")));
        }
        let (kwargs, resolved) = (file.engine_kwargs, file.resolved_config);
        let (scheduler, parallel) = (resolved.scheduler_config, resolved.parallel_config);
        let data_parallel = parallel.data_parallel_size.or(kwargs.data_parallel_size);
        let shares_experts = [
            parallel.is_moe_model,
            parallel.enable_expert_parallel,
            kwargs.enable_expert_parallel,
        ]
        .contains(&Some(true));
        let engines = data_parallel.unwrap_or(1).max(1);
        let meta = Self {
            model: file.model,
            vllm_version: file.vllm_version,
            device: file.hardware.device_name,
            tensor_parallel: parallel
                .tensor_parallel_size
                .or(kwargs.tensor_parallel_size),
            data_parallel,
            shares_experts,
            kv_cache_dtype: kwargs.kv_cache_dtype,
            max_num_seqs: scheduler.max_num_seqs.or(kwargs.max_num_seqs),
            max_num_batched_tokens: scheduler
                .max_num_batched_tokens
                .or(kwargs.max_num_batched_tokens),
            max_model_len: resolved.model_config.max_model_len.or(kwargs.max_model_len),
            blocks: file.kv_cache.num_gpu_blocks.map(|all| all / engines),
            memory_bytes: file.hardware.device_total_memory_bytes,
            memory_utilization: file.kv_cache.gpu_memory_utilization,
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
                meta.data_parallel,
                meta.tensor_parallel,
            ]
            .contains(&Some(0));
        if zero {
            return Err((1, "a limit is 0".to_owned()));
        }
        if meta.blocks > Some(MOST_BLOCKS) {
            return Err((1, format!("num_gpu_blocks is more than {MOST_BLOCKS}")));
        }
        if meta.data_parallel > Some(MOST_RANKS) {
            return Err((1, format!("data_parallel_size is more than {MOST_RANKS}")));
        }
        Ok(meta)
    }
}

impl File {
    /// The first setting that would make another schedule than the one that is simulated.
    fn not_simulated(&self) -> Option<Unknown> {
        let (kwargs, resolved) = (&self.engine_kwargs, &self.resolved_config);
        let (parallel, scheduler) = (&resolved.parallel_config, &resolved.scheduler_config);
        let above_one = |name, value: Option<u32>| {
            value
                .filter(|&value| value > 1)
                .map(|value| (name, value.to_string()))
        };
        let present = |name, value: &Option<serde_json::Value>| {
            let value = value.as_ref().filter(|value| !value.is_null())?;
            Some((name, value.to_string()))
        };
        let pipeline = parallel
            .pipeline_parallel_size
            .or(kwargs.pipeline_parallel_size);
        above_one("pipeline_parallel_size", pipeline)
            .or_else(|| {
                let size = parallel.decode_context_parallel_size;
                above_one("decode_context_parallel_size", size)
            })
            .or_else(|| {
                let size = parallel.prefill_context_parallel_size;
                above_one("prefill_context_parallel_size", size)
            })
            .or_else(|| {
                above_one(
                    "prefill_schedule_interval",
                    scheduler.prefill_schedule_interval,
                )
            })
            .or_else(|| {
                let threshold = scheduler.long_prefill_token_threshold;
                let threshold = threshold.filter(|&tokens| tokens > 0)?;
                Some(("long_prefill_token_threshold", threshold.to_string()))
            })
            .or_else(|| {
                let policy = scheduler.policy.clone().filter(|policy| policy != "fcfs")?;
                Some(("policy", policy))
            })
            .or_else(|| {
                let off = scheduler.enable_chunked_prefill == Some(false);
                off.then(|| ("enable_chunked_prefill", "false".to_owned()))
            })
            .or_else(|| {
                let on = parallel.enable_dbo == Some(true);
                on.then(|| ("enable_dbo", "true".to_owned()))
            })
            .or_else(|| present("speculative_config", &resolved.speculative_config))
            .or_else(|| present("kv_transfer_config", &resolved.kv_transfer_config))
            .or_else(|| present("lora_config", &resolved.lora_config))
    }
}
