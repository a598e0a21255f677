//! `prove engine fit`: a preset from a recorded run.
//!
//! Invariant: the preset says which recording and which share of it its costs are from.
//! Not here: the fit (`simulator::fit`).

use std::path::PathBuf;

use clap::Args;
use simulator::cost::FrontendCost;
use simulator::gpus::Gpus;
use simulator::preset::Preset;
use simulator::replay::engine_of;
use simulator::score::Share;
use simulator::trace::Meta;
use simulator::virtual_time::Parallelism;

use crate::files;
use crate::text::wrapped;

/// Fits the step costs of a preset to a recorded run of a real vLLM.
#[derive(Debug, Args)]
pub(crate) struct Fit {
    /// Folder with requests.jsonl and meta.json.
    dir: PathBuf,
    /// Share of the requests, in order of arrival, whose times are used.
    #[arg(long, default_value = "0..1")]
    requests: Share,
    /// Where to write the preset.
    #[arg(long)]
    out: PathBuf,
    /// Name of the preset; the name of the file without its ending when not given.
    #[arg(long)]
    name: Option<String>,
    /// KV blocks, whatever the recording says.
    #[arg(long)]
    blocks: Option<u32>,
}

pub(super) fn fit(options: &Fit) -> super::Outcome {
    let trace = files::trace(&options.dir)?;
    let (scheduler, blocks) = engine_of(&trace, options.blocks);
    let fitted = simulator::fit::fit(&trace, scheduler, options.requests)?;
    let used = options.requests.of(trace.requests.len());
    let stem = options
        .out
        .file_stem()
        .map(|stem| stem.to_string_lossy().into_owned());
    let preset = Preset {
        name: options
            .name
            .clone()
            .or(stem)
            .unwrap_or_else(|| "fitted".to_owned()),
        model: trace.meta.model.clone(),
        source: format!(
            "fitted to requests {} to {} of {} of a recorded run of {}; {} KV blocks {}",
            used.start,
            used.end - 1,
            trace.requests.len(),
            ran_on(&trace.meta),
            blocks.count,
            blocks.source.explain(),
        ),
        scheduler,
        parallelism: Parallelism::default(),
        frontend: FrontendCost::default(),
        step: fitted.cost,
        gpus: Gpus {
            name: trace
                .meta
                .device
                .clone()
                .unwrap_or_else(|| "unknown".to_owned()),
            count: trace.meta.tensor_parallel.unwrap_or(1),
            ..Gpus::default()
        },
    };
    files::write(&options.out, &preset.to_toml())?;
    let written = format!("{}: {}", options.out.display(), preset.source);
    let distance = format!(
        "{} runs simulated; the nearest is {:.1} % from the recording, over TTFT, TPOT and E2E",
        fitted.runs,
        fitted.distance / 3.0 * 100.0,
    );
    println!("{}\n{}", wrapped(&written, 2), wrapped(&distance, 2));
    Ok(())
}

fn ran_on(meta: &Meta) -> String {
    let version = meta.vllm_version.as_deref().unwrap_or("of unknown version");
    let device = meta.device.as_deref().unwrap_or("an unnamed GPU");
    format!(
        "vLLM {version} with {} on {} x {device}",
        meta.model,
        meta.tensor_parallel.unwrap_or(1)
    )
}
