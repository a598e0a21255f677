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
    /// How the weights were made smaller, if they were.
    pub quantization: Option<String>,
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

/// No context, no step and no block is longer.
const MOST_TOKENS: u32 = 1 << 28;
/// No engine runs more sequences at a time.
const MOST_SEQS: usize = 1 << 20;

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
    decode_context_parallel_size: Option<u32>,
    prefill_context_parallel_size: Option<u32>,
    enable_chunked_prefill: Option<bool>,
    enable_dbo: Option<bool>,
    enable_lora: Option<bool>,
    long_prefill_token_threshold: Option<u32>,
    scheduling_policy: Option<String>,
    speculative_config: Option<serde_json::Value>,
    speculative_model: Option<serde_json::Value>,
    num_speculative_tokens: Option<u32>,
    kv_transfer_config: Option<serde_json::Value>,
    quantization: Option<String>,
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
    quantization: Option<String>,
}

impl Meta {
    /// The model's own numbers, if they are known and are those of what ran.
    #[must_use]
    pub fn known_model(&self) -> Option<Model> {
        let as_published = |model: &Model| match self.quantization.as_deref() {
            None => true,
            Some(kind) => kind == "mxfp4" && model.bytes_per_weight < 1.0,
        };
        Model::named(&self.model).filter(as_published)
    }

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
        let file: File = serde_json::from_str(text.trim_start_matches('\u{feff}'))
            .map_err(|error| (error.line(), error.to_string()))?;
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
            quantization: resolved.model_config.quantization.or(kwargs.quantization),
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
        let tokens = [
            meta.max_num_batched_tokens,
            meta.max_model_len,
            meta.block_size,
        ];
        if tokens.iter().any(|&tokens| tokens > Some(MOST_TOKENS)) {
            return Err((1, format!("a limit is more than {MOST_TOKENS} tokens")));
        }
        if meta.max_num_seqs > Some(MOST_SEQS) {
            return Err((1, format!("max_num_seqs is more than {MOST_SEQS}")));
        }
        if meta.tensor_parallel > Some(MOST_RANKS) {
            return Err((1, format!("tensor_parallel_size is more than {MOST_RANKS}")));
        }
        if u64::from(meta.blocks.unwrap_or(0)) * u64::from(engines) > u64::from(MOST_BLOCKS) {
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
        let above = |most: u32| {
            move |name, value: Option<u32>| {
                let value = value.filter(|&value| value > most)?;
                Some((name, value.to_string()))
            }
        };
        let is = |unknown: bool| {
            move |name, value: Option<bool>| {
                let value = value.filter(|&value| value == unknown)?;
                Some((name, value.to_string()))
            }
        };
        let present = |name, value: &Option<serde_json::Value>| {
            let value = value.as_ref().filter(|value| !value.is_null())?;
            Some((name, value.to_string()))
        };
        let policy = |value: &Option<String>| {
            let value = value.clone().filter(|policy| policy != "fcfs")?;
            Some(("the scheduling policy", value))
        };
        // Both what was asked for and what became of it: either may be all that a recording says.
        [
            above(1)("pipeline_parallel_size", parallel.pipeline_parallel_size),
            above(1)("pipeline_parallel_size", kwargs.pipeline_parallel_size),
            above(1)(
                "decode_context_parallel_size",
                parallel.decode_context_parallel_size,
            ),
            above(1)(
                "decode_context_parallel_size",
                kwargs.decode_context_parallel_size,
            ),
            above(1)(
                "prefill_context_parallel_size",
                parallel.prefill_context_parallel_size,
            ),
            above(1)(
                "prefill_context_parallel_size",
                kwargs.prefill_context_parallel_size,
            ),
            above(1)(
                "prefill_schedule_interval",
                scheduler.prefill_schedule_interval,
            ),
            above(0)(
                "long_prefill_token_threshold",
                scheduler.long_prefill_token_threshold,
            ),
            above(0)(
                "long_prefill_token_threshold",
                kwargs.long_prefill_token_threshold,
            ),
            above(0)("num_speculative_tokens", kwargs.num_speculative_tokens),
            is(false)("enable_chunked_prefill", scheduler.enable_chunked_prefill),
            is(false)("enable_chunked_prefill", kwargs.enable_chunked_prefill),
            is(true)("enable_dbo", parallel.enable_dbo),
            is(true)("enable_dbo", kwargs.enable_dbo),
            is(true)("enable_lora", kwargs.enable_lora),
            policy(&scheduler.policy),
            policy(&kwargs.scheduling_policy),
            present("speculative_config", &resolved.speculative_config),
            present("speculative_config", &kwargs.speculative_config),
            present("speculative_model", &kwargs.speculative_model),
            present("kv_transfer_config", &resolved.kv_transfer_config),
            present("kv_transfer_config", &kwargs.kv_transfer_config),
            present("lora_config", &resolved.lora_config),
        ]
        .into_iter()
        .flatten()
        .next()
    }
}
