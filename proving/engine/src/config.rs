//! What an engine is started with.
//!
//! Invariant: every field has a plain value; nothing is looked up in the environment.
//! Not here: reading it from a file or a command line, which is the caller's.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use experiment::random::Rng;
use simulator::bounds::Bounds;
use simulator::cost::{FrontendCost, StepCost};
use simulator::gpus::Gpus;
use simulator::preset::{Preset, PresetError};
use simulator::scheduler::SchedulerConfig;
use simulator::virtual_time::{MOST_RANKS, Parallelism};

use crate::ground_truth::GroundTruth;

/// The vLLM that is imitated: its paths, refusals, metrics and defaults.
pub const VLLM_VERSION: &str = "0.26.0";

/// Settings of one simulated engine.
#[derive(Clone, Debug)]
pub struct EngineConfig {
    /// Where to listen; port 0 lets the system choose.
    pub listen: SocketAddr,
    /// Model names served; a call for any other is answered 404. Names starting with `gpt-oss` (after an
    /// optional `owner/`) get o200k and Harmony, others cl100k and ChatML, unless `files` says otherwise.
    pub models: Vec<String>,
    /// Vocabulary and template of all models, in place of the built-in ones.
    pub files: Option<ModelFiles>,
    /// What templates are given unless a call says otherwise, a JSON object, as vLLM's option of this name.
    pub default_chat_template_kwargs: Option<String>,
    /// The machine to simulate. All models share it. Without one, each call goes at its own pace: `ttft` and
    /// `inter_token`.
    pub hardware: Option<Hardware>,
    /// Where to serve a DCGM exporter's page of the machine's GPUs. Empty without a machine.
    pub dcgm: Option<SocketAddr>,
    /// Tokens in an event of a stream, as vLLM's `--stream-interval`.
    pub stream_interval: usize,
    /// The date that system messages name, `YYYY-MM-DD`; today's if it is not given.
    pub date: Option<String>,
    /// Show metrics by the names that vLLM 0.26 no longer has.
    pub old_metric_names: bool,
    /// When set, `/v1/*` needs `Authorization: Bearer <api_key>`.
    pub api_key: Option<String>,
    /// Wait before the first token. Zero means that no timer is used at all.
    pub ttft: Duration,
    /// Wait between two tokens. Zero means that no timer is used at all.
    pub inter_token: Duration,
    /// How long an answer is when its call says nothing of it.
    pub output_tokens: OutputLength,
    /// Say in usage how much of a prompt was cached, as vLLM's option of this name. Responses say it always.
    pub enable_prompt_tokens_details: bool,
    /// Admit calls that leave it to the model whether a tool is called, as vLLM's option of this name. Harmony models
    /// admit them always.
    pub enable_auto_tool_choice: bool,
    /// Answer `/v1/*/render`, which else are refused with 403, as vLLM's option of this name.
    pub enable_scale_out: bool,
    /// Share of answers that call a tool when they may, from 0 to 1.
    pub tool_calls: f64,
    /// Most tokens that a prompt and its output may have together.
    pub max_model_len: usize,
    /// Seed of the generated text: the same seed and prompt give the same output.
    pub seed: u64,
    /// `owned_by` of the model cards.
    pub owned_by: String,
    /// Largest request body in bytes; a larger one is answered 413.
    pub max_body_bytes: usize,
    /// Keep what arrives, credentials included, for `GET /_engine/requests`. For tests only.
    pub inspect: bool,
    /// Where to note each sequence that ended, by its call's `x-request-id`.
    pub ground_truth: Option<Arc<GroundTruth>>,
}

impl Default for EngineConfig {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            models: vec!["gpt-oss-120b".to_owned()],
            files: None,
            default_chat_template_kwargs: None,
            hardware: None,
            dcgm: None,
            stream_interval: 1,
            date: None,
            old_metric_names: false,
            api_key: None,
            ttft: Duration::from_millis(20),
            inter_token: Duration::from_millis(5),
            output_tokens: OutputLength::default(),
            enable_prompt_tokens_details: false,
            enable_auto_tool_choice: true,
            enable_scale_out: false,
            tool_calls: 0.0,
            max_model_len: 131_072,
            seed: 0,
            owned_by: "vllm".to_owned(),
            max_body_bytes: 64 << 20,
            inspect: false,
            ground_truth: None,
        }
    }
}

/// How long answers are whose calls say nothing of it, in tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum OutputLength {
    /// 8 to 64, each as often; for Harmony 16 more, its marks.
    #[default]
    Short,
    /// Log-normal, reasoning and marks included; at least 1.
    LogNormal {
        /// The mean before a limit cuts.
        mean: f64,
        /// Standard deviation by mean; with 0 every answer has the mean.
        variation: f64,
    },
}

impl OutputLength {
    /// Most tokens that are ever drawn.
    const MOST: f64 = (1 << 20) as f64;

    pub(crate) fn draw(self, rng: &mut Rng, harmony: bool) -> usize {
        match self {
            Self::Short => 8 + (rng.bits() % 57) as usize + if harmony { 16 } else { 0 },
            Self::LogNormal { mean, variation } => rng
                .lognormal(mean, variation)
                .round()
                .clamp(1.0, Self::MOST) as usize,
        }
    }
}

/// The files of a model whose vocabulary is not built in, by content.
#[derive(Clone, Debug, Default)]
pub struct ModelFiles {
    /// `tokenizer.json`.
    pub tokenizer: String,
    /// `tokenizer_config.json`, which holds the marks and often the template.
    pub config: Option<String>,
    /// `chat_template.jinja`, when it is a file of its own.
    pub chat_template: Option<String>,
}

/// The simulated machine: limits and costs.
#[derive(Clone, Debug)]
pub struct Hardware {
    /// Limits of each engine's scheduler and size of its KV cache.
    pub scheduler: SchedulerConfig,
    /// How many engines there are.
    pub parallelism: Parallelism,
    /// What steps cost.
    pub cost: StepCost,
    /// What the server in front costs.
    pub frontend: FrontendCost,
    /// Within which lengths and batches the costs were measured; a step beyond them is told of once.
    pub bounds: Option<Bounds>,
    /// What it pretends to run on.
    pub gpus: Gpus,
}

impl Hardware {
    /// The machine of a preset that comes with the program.
    ///
    /// # Errors
    /// When there is none of that name.
    pub fn named(preset: &str) -> Result<Self, PresetError> {
        Preset::named(preset).map(|preset| Self::from(&preset))
    }
}

impl Hardware {
    /// How many engines there are.
    pub(crate) fn ranks(&self) -> usize {
        self.parallelism.data.clamp(1, MOST_RANKS) as usize
    }
}

impl From<&Preset> for Hardware {
    fn from(preset: &Preset) -> Self {
        Self {
            scheduler: preset.scheduler,
            parallelism: preset.parallelism,
            cost: preset.step.clone(),
            frontend: preset.frontend,
            bounds: preset.bounds,
            gpus: preset.gpus.clone(),
        }
    }
}
