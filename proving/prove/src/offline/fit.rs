//! `prove engine fit`: a preset from a recorded run.
//!
//! Invariant: the preset says which recording and which share of it its costs are from.
//! Not here: the fit (`simulator::fit`).

use std::path::PathBuf;

use clap::Args;
use simulator::cost::FrontendCost;
use simulator::fit::{FARTHEST, Fitted, Unsure};
use simulator::gpus::Gpus;
use simulator::hardware::Gpu;
use simulator::kv::MOST_BLOCKS;
use simulator::preset::Preset;
use simulator::replay::{BlockSource, Setup};
use simulator::score::Share;
use simulator::trace::{Meta, Trace};

use crate::files;
use crate::progress::Line;
use crate::report::plain;
use crate::text::{add, say, wrapped};

/// With fewer requests a fit says that they are few.
const FEW: usize = 20;

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
    #[arg(long, value_parser = clap::value_parser!(u32).range(2..=i64::from(MOST_BLOCKS)))]
    blocks: Option<u32>,
    /// Name of the GPU, such as "H100", whatever the recording says.
    #[arg(long)]
    gpu: Option<String>,
}

pub(super) fn fit(options: &Fit) -> Result<bool, Box<dyn std::error::Error>> {
    let mut trace = files::trace(&options.dir)?;
    files::check_out(&options.out, &options.dir)?;
    if let Some(gpu) = &options.gpu {
        if Gpu::named(gpu).is_none() {
            let known = Gpu::names().collect::<Vec<_>>().join(", ");
            return Err(
                format!("--gpu {gpu}: no figures of it are known; they are of {known}").into(),
            );
        }
        trace.meta.device = Some(gpu.clone());
    }
    let setup = Setup::of(&trace, options.blocks, None);
    let mut line = Line::new();
    let fitted = simulator::fit::fit(&trace, &setup, options.requests, &mut |runs| {
        line.show(|| format!("{runs} runs simulated"));
    });
    line.end();
    let fitted = fitted?;
    let used = options.requests.of(trace.requests.len());
    if !trace.requests[used.clone()]
        .iter()
        .any(|r| r.output_tokens > 1)
    {
        return Err("no request in this share has more than one output token".into());
    }
    let (faults, doubts) = (faults(&fitted), doubts(&fitted, used.len()));
    let mut preset = preset(options, &trace, &fitted);
    for said in faults.iter().chain(&doubts) {
        preset.source.push_str("; ");
        preset.source.push_str(said);
    }
    let text = preset.to_toml();
    Preset::parse(&text, "the preset of this recording")?;
    files::write(&options.out, &text)?;
    let written = format!("{}: {}", options.out.display(), preset.source);
    say(&format!(
        "{}\n{}",
        wrapped(&written, 2),
        page(&trace, &fitted)
    ))?;
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
        gpus: gpus(&trace.meta, &fitted.setup),
    }
}

/// The GPUs of one engine, as far as the recording and the model's size say what they hold.
fn gpus(meta: &Meta, setup: &Setup) -> Gpus {
    let mut gpus = Gpus {
        name: meta.device.clone().unwrap_or_else(|| "unknown".to_owned()),
        count: meta.tensor_parallel.unwrap_or(1),
        ..Gpus::default()
    };
    let mib = |bytes: f64| (bytes / f64::from(1 << 20)) as u64;
    if let Some(model) = meta.known_model() {
        gpus.layers = model.layers as u32;
        gpus.hidden = model.hidden as u32;
        gpus.weights_mib = mib(model.weights_on_each(meta.gpus_of_a_copy()));
        if setup.blocks.source != BlockSource::Ample {
            let tokens = f64::from(setup.blocks.count) * f64::from(setup.scheduler.kv.block_size);
            gpus.kv_mib = mib(tokens * meta.kv_bytes_per_token(&model));
        }
    }
    let least = gpus.weights_mib + gpus.kv_mib;
    let told = meta.memory_bytes.map(|bytes| mib(bytes as f64));
    gpus.memory_mib = told.unwrap_or(gpus.memory_mib).max(least);
    gpus
}

fn page(trace: &Trace, fitted: &Fitted) -> String {
    let mut page = String::new();
    add!(page, "on the requests it was fitted to:");
    let head = ["mean difference", "TTFT", "TPOT", "E2E"];
    let mut lines = vec![head.map(str::to_owned).to_vec()];
    for (name, distance) in [
        ("of this fit", &fitted.distance),
        ("of a constant step", &fitted.null_distance),
    ] {
        let means = distance
            .of_means
            .map(|apart| format!("{:+.1}%", apart * 100.0));
        let each = distance
            .of_each
            .map(|apart| format!("{:.1}%", apart * 100.0));
        lines.push([vec![name.to_owned()], means.to_vec()].concat());
        lines.push([vec!["  of each request".to_owned()], each.to_vec()].concat());
    }
    page.push_str(&plain::table(lines));
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
    add!(page, "{}", wrapped(&holds, 2));
    if trace.meta.max_model_len.is_none() {
        let longest = format!(
            "the recording does not say max_model_len: {} is its longest request",
            fitted.setup.scheduler.max_model_len
        );
        add!(page, "{}", wrapped(&longest, 2));
    }
    page
}

/// What else is to be known of it.
fn doubts(fitted: &Fitted, used: usize) -> Vec<String> {
    let mut doubts = Vec::new();
    if let Some(Unsure { least, most: None }) = fitted.unsure_blocks {
        doubts.push(format!(
            "whether there were more KV blocks than {least} these requests do not say, and others of the recording \
             depend on it: if you know their number, say --blocks"
        ));
    }
    if used < FEW {
        doubts.push(format!("{used} requests are few to tell six costs by"));
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
