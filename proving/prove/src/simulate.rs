//! `prove engine`: a simulated inference engine in the foreground.
//!
//! Invariant: the API key comes from a file, never from the command line, where others could read it.
//! Not here: the engine (`engine`), what can be done without a socket (`offline`).

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use engine::{Engine, EngineConfig, Hardware, ModelFiles, OutputLength};

use crate::files;
use crate::numbers::within;

/// Serves a simulated engine until it is interrupted.
#[derive(Debug, Args)]
pub(crate) struct Simulate {
    /// Address to listen on.
    #[arg(long, default_value = "127.0.0.1:8000")]
    listen: SocketAddr,
    /// Machine to simulate: the name of a preset, or its file. Without one, each call goes at its own pace.
    #[arg(long)]
    preset: Option<String>,
    /// Address for a DCGM exporter's page of the simulated GPUs.
    #[arg(long, requires = "preset")]
    dcgm: Option<SocketAddr>,
    /// A model to serve; may be given more than once. The preset's, if there is one, else gpt-oss-120b.
    #[arg(long = "model")]
    models: Vec<String>,
    /// File that holds the key which clients must present.
    #[arg(long)]
    api_key_file: Option<PathBuf>,
    /// Time to the first token, in milliseconds, without a preset.
    #[arg(long, conflicts_with = "preset", default_value_t = 20)]
    ttft_ms: u64,
    /// Time between two tokens, in milliseconds, without a preset.
    #[arg(long, conflicts_with = "preset", default_value_t = 5)]
    itl_ms: u64,
    /// Tokens in an event of a stream.
    #[arg(long, default_value_t = 1)]
    stream_interval: usize,
    /// Most tokens of prompt and output together, without a preset.
    #[arg(long, conflicts_with = "preset")]
    max_model_len: Option<usize>,
    /// Mean length in tokens, reasoning and marks included, of answers whose calls say nothing of it. Without it they
    /// are short: 8 to 64.
    #[arg(long, value_parser = |text: &str| within(text, 1.0, 1e6))]
    output_tokens: Option<f64>,
    /// Standard deviation of that length by its mean; lengths are log-normal, and with 0 all the same.
    #[arg(long, requires = "output_tokens", value_parser = |text: &str| within(text, 0.0, 10.0), default_value_t = 0.5)]
    output_tokens_variation: f64,
    /// Say in usage how many tokens of a prompt were cached.
    #[arg(long)]
    enable_prompt_tokens_details: bool,
    /// Whether calls may leave it to the model if a tool is called. With false such calls are refused, as by a vLLM that
    /// was started without this flag; Harmony models take them always.
    #[arg(long, num_args = 0..=1, default_missing_value = "true", default_value_t = true, action = clap::ArgAction::Set)]
    enable_auto_tool_choice: bool,
    /// Answer `/v1/*/render` with the tokens of a call's prompt, as a vLLM that was started with this flag.
    #[arg(long)]
    enable_scale_out: bool,
    /// Share of answers that call a tool when they may, from 0 to 1.
    #[arg(long, value_parser = |text: &str| within(text, 0.0, 1.0), default_value_t = 0.0)]
    tool_calls: f64,
    /// Seed of the generated text.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// A `tokenizer.json`, for models whose vocabulary is not built in.
    #[arg(long)]
    tokenizer: Option<PathBuf>,
    /// The `tokenizer_config.json` beside it, with its marks and its chat template.
    #[arg(long, requires = "tokenizer")]
    tokenizer_config: Option<PathBuf>,
    /// A chat template in a file of its own.
    #[arg(long, requires = "tokenizer")]
    chat_template: Option<PathBuf>,
    /// What templates are given unless a call says otherwise, a JSON object, as vLLM's option of this name.
    #[arg(long, requires = "tokenizer")]
    default_chat_template_kwargs: Option<String>,
    /// Date that system messages name, YYYY-MM-DD. Today's, if not given.
    #[arg(long)]
    date: Option<String>,
    /// Show metrics by the names that vLLM no longer has.
    #[arg(long)]
    old_metric_names: bool,
    /// Keep what arrives, credentials included, for `GET /_engine/requests`.
    #[arg(long)]
    inspect: bool,
}

/// Serves until SIGINT or SIGTERM.
pub(crate) fn simulate(options: &Simulate) -> io::Result<()> {
    let config = config(options)?;
    let runtime = crate::runtime::make()?;
    runtime.block_on(async {
        let engine = Engine::bind(config)?;
        eprintln!("engine: listening on http://{}/v1", engine.local_addr());
        if let Some(address) = engine.dcgm_addr() {
            eprintln!("engine: GPUs at http://{address}/metrics");
        }
        engine.serve(crate::interrupt::asked_to_end()?).await
    })
}

fn config(options: &Simulate) -> io::Result<EngineConfig> {
    let default = EngineConfig::default();
    let preset = options.preset.as_deref().map(files::preset).transpose()?;
    let models = match &preset {
        _ if !options.models.is_empty() => options.models.clone(),
        Some(preset) => vec![preset.model.clone()],
        None => default.models.clone(),
    };
    let of_preset = preset.as_ref().map(|p| p.scheduler.max_model_len as usize);
    Ok(EngineConfig {
        listen: options.listen,
        models,
        hardware: preset.as_ref().map(Hardware::from),
        dcgm: options.dcgm,
        files: files(options)?,
        default_chat_template_kwargs: options.default_chat_template_kwargs.clone(),
        api_key: options.api_key_file.as_deref().map(read_key).transpose()?,
        ttft: Duration::from_millis(options.ttft_ms),
        inter_token: Duration::from_millis(options.itl_ms),
        stream_interval: options.stream_interval,
        max_model_len: of_preset
            .or(options.max_model_len)
            .unwrap_or(default.max_model_len),
        output_tokens: match options.output_tokens {
            Some(mean) => OutputLength::LogNormal {
                mean,
                variation: options.output_tokens_variation,
            },
            None => default.output_tokens,
        },
        enable_prompt_tokens_details: options.enable_prompt_tokens_details,
        enable_auto_tool_choice: options.enable_auto_tool_choice,
        enable_scale_out: options.enable_scale_out,
        tool_calls: options.tool_calls,
        seed: options.seed,
        date: options.date.clone(),
        old_metric_names: options.old_metric_names,
        inspect: options.inspect,
        ..default
    })
}

fn files(options: &Simulate) -> io::Result<Option<ModelFiles>> {
    let Some(tokenizer) = &options.tokenizer else {
        return Ok(None);
    };
    Ok(Some(ModelFiles {
        tokenizer: files::read(tokenizer)?,
        config: options
            .tokenizer_config
            .as_deref()
            .map(files::read)
            .transpose()?,
        chat_template: options
            .chat_template
            .as_deref()
            .map(files::read)
            .transpose()?,
    }))
}

fn read_key(path: &Path) -> io::Result<String> {
    let key = files::read(path)?.trim().to_owned();
    if key.is_empty() {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            format!("{}: empty", path.display()),
        ));
    }
    Ok(key)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::Simulate;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        options: Simulate,
    }

    fn read(words: &str) -> Result<Simulate, String> {
        let line = Line::try_parse_from(words.split(' '));
        line.map(|line| line.options).map_err(|why| why.to_string())
    }

    #[test]
    fn what_a_preset_decides_cannot_be_said_beside_it() {
        for option in ["--max-model-len 100", "--ttft-ms 5", "--itl-ms 5"] {
            let why = read(&format!("engine --preset instant {option}")).expect_err(option);
            assert!(why.contains("cannot be used with"), "{why}");
            read(&format!("engine {option}")).expect(option);
        }
        let options = read("engine --preset instant").expect("defaults are no conflict");
        assert_eq!((options.ttft_ms, options.itl_ms), (20, 5));
    }
}
