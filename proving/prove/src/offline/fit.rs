//! `prove engine fit`: a preset from a recorded run.
//!
//! Invariant: the preset says which recording and which share of it its costs are from.
//! Not here: the fit (`simulator::fit`).

use std::path::PathBuf;

use clap::Args;
use simulator::cost::FrontendCost;
use simulator::fit::{FARTHEST, Fitted, Unsure};
use simulator::gpus::Gpus;
use simulator::preset::Preset;
use simulator::replay::Setup;
use simulator::score::Share;
use simulator::trace::{Meta, Trace};

use crate::files;
use crate::progress::Line;
use crate::text::wrapped;

/// Fits the step costs of a preset to a recorded run of a real vLLM.
///
/// Exits with 1 where the preset was written and is too far from the recording to be used.
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
    /// KV blocks of each engine, whatever the recording says.
    #[arg(long)]
    blocks: Option<u32>,
    /// Name of the GPU, such as "H100", where the recording does not say.
    #[arg(long)]
    gpu: Option<String>,
}

pub(super) fn fit(options: &Fit) -> Result<bool, Box<dyn std::error::Error>> {
    let mut trace = files::trace(&options.dir)?;
    if let Some(gpu) = &options.gpu {
        trace.meta.device = Some(gpu.clone());
    }
    let setup = Setup::of(&trace, options.blocks, None);
    let mut line = Line::new();
    let fitted = simulator::fit::fit(&trace, &setup, options.requests, &mut |runs| {
        line.show(|| format!("{runs} runs simulated"));
    });
    line.end();
    let fitted = fitted?;
    let (faults, doubts) = (faults(&fitted), doubts(&fitted));
    let mut preset = preset(options, &trace, &fitted);
    for said in faults.iter().chain(&doubts) {
        preset.source.push_str("; ");
        preset.source.push_str(said);
    }
    files::write(&options.out, &preset.to_toml())?;
    let written = format!("{}: {}", options.out.display(), preset.source);
    println!("{}", wrapped(&written, 2));
    print(&fitted);
    for (what, said) in [("warning", &doubts), ("error", &faults)] {
        for said in said {
            eprintln!("{}", wrapped(&format!("{what}: {said}"), 2));
        }
    }
    Ok(faults.is_empty())
}

fn preset(options: &Fit, trace: &Trace, fitted: &Fitted) -> Preset {
    let used = options.requests.of(trace.requests.len());
    let blocks = fitted.setup.blocks;
    let stem = options
        .out
        .file_stem()
        .map(|stem| stem.to_string_lossy().into_owned());
    let name = options.name.clone().or(stem);
    Preset {
        name: name.unwrap_or_else(|| "fitted".to_owned()),
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
        scheduler: fitted.setup.scheduler,
        parallelism: fitted.setup.parallelism,
        frontend: FrontendCost::default(),
        step: fitted.cost.clone(),
        bounds: Some(fitted.bounds),
        gpus: Gpus {
            name: trace
                .meta
                .device
                .clone()
                .unwrap_or_else(|| "unknown".to_owned()),
            count: trace.meta.tensor_parallel.unwrap_or(1),
            ..Gpus::default()
        },
    }
}

fn print(fitted: &Fitted) {
    println!(
        "on the requests it was fitted to:\n{:<22}{:>10}{:>10}{:>10}",
        "mean difference", "TTFT", "TPOT", "E2E"
    );
    for (name, distance) in [
        ("of this fit", &fitted.distance),
        ("of a constant step", &fitted.null_distance),
    ] {
        print!("{name:<22}");
        for apart in distance.of_means {
            print!("{:>+9.1}%", apart * 100.0);
        }
        println!();
        print!("{:<22}", "  of each request");
        for apart in distance.of_each {
            print!("{:>9.1}%", apart * 100.0);
        }
        println!();
    }
    let prior = if fitted.has_prior {
        "the model's own numbers speak where the recording is silent"
    } else {
        "the model is not known here, so that costs follow from the recording alone"
    };
    let bounds = fitted.bounds;
    let holds = format!(
        "{} runs simulated; holds for up to {} sequences at a time of up to {} tokens; {prior}",
        fitted.runs, bounds.sequences, bounds.context,
    );
    println!("{}", wrapped(&holds, 2));
}

/// What else is to be known of it.
fn doubts(fitted: &Fitted) -> Vec<String> {
    let mut doubts = Vec::new();
    if let Some(Unsure { least, most: None }) = fitted.unsure_blocks {
        doubts.push(format!(
            "whether there were more KV blocks than {least} these requests do not say, and others of the recording \
             depend on it: if you know their number, say --blocks"
        ));
    }
    if fitted.distance.total >= fitted.null_distance.total {
        doubts.push(
            "one constant step time explains these requests as well: they say nothing of what steps cost".to_owned(),
        );
    }
    doubts
}

/// Why the preset is not to be used, with what would help.
fn faults(fitted: &Fitted) -> Vec<String> {
    let mut faults = Vec::new();
    let worst = fitted.distance.worst();
    if worst > FARTHEST {
        faults.push(format!(
            "do not use this preset: the nearest run is {:.0} % from the recording, more than {:.0} %. Was the \
             engine what meta.json says: its parallelism, KV blocks, max_num_seqs, prefix caching, speculative \
             decoding? Were the GPUs its own? More requests help where it did",
            worst * 100.0,
            FARTHEST * 100.0,
        ));
    }
    if let Some(Unsure {
        least,
        most: Some(most),
    }) = fitted.unsure_blocks
    {
        faults.push(format!(
            "do not use this preset: its requests do not say how many KV blocks there were, {least} to {most} explain \
             them alike, and other requests of the recording depend on it. Say --blocks, or a larger share \
             with --requests"
        ));
    }
    faults
}

fn ran_on(meta: &Meta) -> String {
    let version = meta.vllm_version.as_deref().unwrap_or("of unknown version");
    let device = meta.device.as_deref().unwrap_or("an unnamed GPU");
    let (tensor, data) = (
        meta.tensor_parallel.unwrap_or(1),
        meta.data_parallel.unwrap_or(1),
    );
    format!(
        "vLLM {version} with {} on {} x {device}",
        meta.model,
        tensor * data
    )
}
