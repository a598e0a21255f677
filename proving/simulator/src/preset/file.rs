//! The file form of a preset.
//!
//! Invariant: lowering refuses what makes no sense, by member; what is written reads back the same.
//! Not here: finding files (`preset`).

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Preset;
use crate::bounds::Bounds;
use crate::cost::{DecodeCost, DecodeTable, Experts, FrontendCost, PrefillCost, StepCost};
use crate::gpus::Gpus;
use crate::kv::{KvConfig, MOST_BLOCKS};
use crate::scheduler::SchedulerConfig;
use crate::virtual_time::{MOST_RANKS, Parallelism};

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    name: String,
    model: String,
    source: String,
    scheduler: Scheduler,
    #[serde(default, skip_serializing_if = "Parallel::is_one")]
    parallel: Parallel,
    kv: Kv,
    #[serde(default)]
    frontend: Frontend,
    step: Step,
    #[serde(skip_serializing_if = "Option::is_none")]
    bounds: Option<Bounds>,
    #[serde(default)]
    gpus: Gpus,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Scheduler {
    max_num_seqs: usize,
    max_num_batched_tokens: u32,
    max_model_len: u32,
    #[serde(default = "yes")]
    reserve_full_prompt: bool,
    #[serde(default = "yes")]
    async_scheduling: bool,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Parallel {
    data_parallel_size: u32,
    #[serde(default)]
    lockstep: bool,
}

impl Default for Parallel {
    fn default() -> Self {
        Self {
            data_parallel_size: 1,
            lockstep: false,
        }
    }
}

impl Parallel {
    fn is_one(&self) -> bool {
        self.data_parallel_size == 1
    }

    /// Of engines with so many blocks each.
    fn lower(&self, blocks: u32) -> Result<Parallelism, Fault> {
        let data = self.data_parallel_size;
        if data == 0 || data > MOST_RANKS {
            let says = format!("{data} is not between 1 and {MOST_RANKS}");
            return fault("parallel.data_parallel_size", says);
        }
        check_blocks(data, blocks)?;
        Ok(Parallelism {
            data,
            lockstep: self.lockstep,
        })
    }
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Kv {
    block_size: u32,
    blocks: u32,
    #[serde(default = "yes")]
    prefix_caching: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    sliding_window: Option<u32>,
}

#[derive(Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Frontend {
    before_queue_ms: f64,
    per_token_us: f64,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Step {
    #[serde(default)]
    overhead_ms: f64,
    prefill: Prefill,
    decode: Decode,
    #[serde(skip_serializing_if = "Option::is_none")]
    experts: Option<ExpertsRead>,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct ExpertsRead {
    share: f64,
    chance: f64,
}

impl ExpertsRead {
    fn lower(&self) -> Result<Experts, Fault> {
        for (member, value) in [("share", self.share), ("chance", self.chance)] {
            if !(0.0..=1.0).contains(&value) {
                let says = format!("{value} is not between 0 and 1");
                return fault(&format!("step.experts.{member}"), says);
            }
        }
        Ok(Experts {
            share: self.share,
            chance: self.chance,
        })
    }
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Prefill {
    base_ms: f64,
    per_token_us: f64,
    per_pair_ns: f64,
}

#[derive(Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Decode {
    #[serde(skip_serializing_if = "Option::is_none")]
    base_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    per_sequence_us: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    per_context_token_ns: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    table: Option<Table>,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Table {
    sequences: Vec<f64>,
    contexts: Vec<f64>,
    ms: Vec<Vec<f64>>,
}

fn yes() -> bool {
    true
}

/// A member and what is wrong with it.
type Fault = (String, String);

fn fault<T>(member: &str, says: impl Into<String>) -> Result<T, Fault> {
    Err((member.to_owned(), says.into()))
}

impl File {
    pub(super) fn lower(self) -> Result<Preset, Fault> {
        let scheduler = SchedulerConfig {
            max_num_seqs: self.scheduler.max_num_seqs,
            max_num_batched_tokens: self.scheduler.max_num_batched_tokens,
            max_model_len: self.scheduler.max_model_len,
            reserve_full_prompt: self.scheduler.reserve_full_prompt,
            async_scheduling: self.scheduler.async_scheduling,
            kv: KvConfig {
                block_size: self.kv.block_size,
                blocks: self.kv.blocks,
                prefix_caching: self.kv.prefix_caching,
                sliding_window: self.kv.sliding_window,
            },
        };
        check(&scheduler)?;
        let amounts = [
            ("frontend.before_queue_ms", self.frontend.before_queue_ms),
            ("frontend.per_token_us", self.frontend.per_token_us),
            ("step.overhead_ms", self.step.overhead_ms),
            ("step.prefill.base_ms", self.step.prefill.base_ms),
            ("step.prefill.per_token_us", self.step.prefill.per_token_us),
            ("step.prefill.per_pair_ns", self.step.prefill.per_pair_ns),
        ];
        for (member, amount) in amounts {
            not_negative(member, amount)?;
        }
        self.gpus
            .check()
            .or_else(|(member, says)| fault(&format!("gpus.{member}"), says))?;
        Ok(Preset {
            name: self.name,
            model: self.model,
            source: self.source,
            scheduler,
            parallelism: self.parallel.lower(scheduler.kv.blocks)?,
            frontend: FrontendCost {
                before_queue: Duration::from_secs_f64(self.frontend.before_queue_ms / 1e3),
                per_token: Duration::from_secs_f64(self.frontend.per_token_us / 1e6),
            },
            step: StepCost {
                overhead_ms: self.step.overhead_ms,
                prefill: PrefillCost {
                    base_ms: self.step.prefill.base_ms,
                    per_token_us: self.step.prefill.per_token_us,
                    per_pair_ns: self.step.prefill.per_pair_ns,
                },
                decode: self.step.decode.lower()?,
                experts: self
                    .step
                    .experts
                    .as_ref()
                    .map(ExpertsRead::lower)
                    .transpose()?,
            },
            bounds: self.bounds,
            gpus: self.gpus,
        })
    }
}

fn check_blocks(data: u32, blocks: u32) -> Result<(), Fault> {
    if u64::from(data) * u64::from(blocks) > u64::from(MOST_BLOCKS) {
        let says = format!("of all engines together are more than {MOST_BLOCKS}");
        return fault("kv.blocks", says);
    }
    Ok(())
}

/// Whether engines with these limits can be.
pub(super) fn check_limits(
    config: &SchedulerConfig,
    parallelism: Parallelism,
) -> Result<(), Fault> {
    check(config)?;
    check_blocks(parallelism.data, config.kv.blocks)
}

fn check(config: &SchedulerConfig) -> Result<(), Fault> {
    let limits = [
        ("scheduler.max_num_seqs", config.max_num_seqs as u64),
        (
            "scheduler.max_num_batched_tokens",
            config.max_num_batched_tokens.into(),
        ),
        ("scheduler.max_model_len", config.max_model_len.into()),
        ("kv.block_size", config.kv.block_size.into()),
        (
            "kv.sliding_window",
            config.kv.sliding_window.unwrap_or(1).into(),
        ),
    ];
    if let Some((member, _)) = limits.iter().find(|(_, limit)| *limit == 0) {
        return fault(member, "is 0 and has to be at least 1");
    }
    if config.kv.blocks < 2 {
        return fault("kv.blocks", "is less than 2: one block is never given out");
    }
    let most = [
        ("kv.blocks", config.kv.blocks, MOST_BLOCKS),
        ("kv.block_size", config.kv.block_size, 1 << 16),
        (
            "kv.sliding_window",
            config.kv.sliding_window.unwrap_or(1),
            MOST_TOKENS,
        ),
        ("scheduler.max_model_len", config.max_model_len, MOST_TOKENS),
        (
            "scheduler.max_num_batched_tokens",
            config.max_num_batched_tokens,
            MOST_TOKENS,
        ),
    ];
    if let Some((member, _, most)) = most.iter().find(|(_, value, most)| value > most) {
        return fault(member, format!("is more than {most}"));
    }
    if config.max_num_seqs > config.max_num_batched_tokens as usize {
        return fault(
            "scheduler.max_num_batched_tokens",
            "is less than max_num_seqs",
        );
    }
    Ok(())
}

/// No context and no step is longer: sums of two such lengths still fit.
const MOST_TOKENS: u32 = 1 << 28;

/// One day in milliseconds: no step takes longer.
const MOST: f64 = 86_400_000.0;

fn not_negative(member: &str, amount: f64) -> Result<(), Fault> {
    if (0.0..=MOST).contains(&amount) {
        return Ok(());
    }
    fault(member, format!("{amount} is not between 0 and {MOST}"))
}

impl Decode {
    fn lower(self) -> Result<DecodeCost, Fault> {
        let line = (
            self.base_ms,
            self.per_sequence_us,
            self.per_context_token_ns,
        );
        match (line, self.table) {
            ((None, None, None), Some(table)) => {
                DecodeTable::new(table.sequences, table.contexts, table.ms)
                    .map(DecodeCost::Table)
                    .or_else(|says| fault("step.decode.table", says))
            }
            ((Some(base_ms), Some(per_sequence_us), Some(per_context_token_ns)), None) => {
                not_negative("step.decode.base_ms", base_ms)?;
                not_negative("step.decode.per_sequence_us", per_sequence_us)?;
                not_negative("step.decode.per_context_token_ns", per_context_token_ns)?;
                Ok(DecodeCost::Line {
                    base_ms,
                    per_sequence_us,
                    per_context_token_ns,
                })
            }
            _ => fault(
                "step.decode",
                "needs either a table or all of base_ms, per_sequence_us and per_context_token_ns",
            ),
        }
    }
}

pub(super) fn write(preset: &Preset) -> String {
    let decode = match &preset.step.decode {
        DecodeCost::Line {
            base_ms,
            per_sequence_us,
            per_context_token_ns,
        } => Decode {
            base_ms: Some(*base_ms),
            per_sequence_us: Some(*per_sequence_us),
            per_context_token_ns: Some(*per_context_token_ns),
            table: None,
        },
        DecodeCost::Table(table) => {
            let (sequences, contexts, ms) = table.parts();
            Decode {
                table: Some(Table {
                    sequences,
                    contexts,
                    ms,
                }),
                ..Decode::default()
            }
        }
    };
    let (config, step) = (&preset.scheduler, &preset.step);
    let file = File {
        name: preset.name.clone(),
        model: preset.model.clone(),
        source: preset.source.clone(),
        scheduler: Scheduler {
            max_num_seqs: config.max_num_seqs,
            max_num_batched_tokens: config.max_num_batched_tokens,
            max_model_len: config.max_model_len,
            reserve_full_prompt: config.reserve_full_prompt,
            async_scheduling: config.async_scheduling,
        },
        parallel: Parallel {
            data_parallel_size: preset.parallelism.data,
            lockstep: preset.parallelism.lockstep,
        },
        kv: Kv {
            block_size: config.kv.block_size,
            blocks: config.kv.blocks,
            prefix_caching: config.kv.prefix_caching,
            sliding_window: config.kv.sliding_window,
        },
        frontend: Frontend {
            before_queue_ms: preset.frontend.before_queue.as_secs_f64() * 1e3,
            per_token_us: preset.frontend.per_token.as_secs_f64() * 1e6,
        },
        step: Step {
            overhead_ms: step.overhead_ms,
            prefill: Prefill {
                base_ms: step.prefill.base_ms,
                per_token_us: step.prefill.per_token_us,
                per_pair_ns: step.prefill.per_pair_ns,
            },
            decode,
            experts: step
                .experts
                .map(|Experts { share, chance }| ExpertsRead { share, chance }),
        },
        bounds: preset.bounds,
        gpus: preset.gpus.clone(),
    };
    toml::to_string(&file).unwrap_or_default()
}
