//! `prove corpus build`.
//!
//! Invariant: a plan follows from the command line and its file alone.
//! Not here: building (`::corpus::build`).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use ::corpus::build::{Plan, ProfilePlan};
use ::corpus::manifest::{Manifest, Profile, Skipped};
use ::corpus::reader::Reader;
use ::corpus::unroll::Output;
use clap::Args;
use serde::Deserialize;

use super::figures::bytes;
use super::groups::{Group, Groups};
use super::options;
use super::progress::{Bar, time};
use super::repairs::RepairOptions;
use super::target::TargetOptions;
use crate::files;
use crate::text::number;
use crate::text::printable;

/// Builds a corpus of recorded sessions, one request for each decision of the assistant.
///
/// A build that was interrupted goes on when the same command is given again.
#[derive(Debug, Args)]
pub(crate) struct Build {
    #[command(flatten)]
    groups: Groups,
    /// A file with profiles, `[[profile]]`, before those of the command line. May name model and seed too.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The model that requests name, which counts their tokens. gpt-oss-120b, if not given.
    #[arg(long)]
    model: Option<String>,
    /// Seed of samples and of made sessions. 1, if not given.
    #[arg(long)]
    seed: Option<u64>,
    /// Where the corpus is to be.
    #[arg(long)]
    out: PathBuf,
    /// How long answers may be: as recorded, free, or a number of tokens.
    #[arg(long, default_value = "recorded", value_parser = output)]
    output: Output,
    /// Answers must be as long as they may be (`ignore_eos`, which vLLM has).
    #[arg(long)]
    ignore_eos: bool,
    /// Answers come in one piece, and not as streams.
    #[arg(long)]
    no_stream: bool,
    /// Most tokens of a prompt and its answer: a session ends before the first request beyond it.
    #[arg(long, default_value_t = 131_072)]
    max_context: u32,
    /// Tokens in a block of the engine's prefix cache.
    #[arg(long, default_value_t = ::corpus::prefix::BLOCK_TOKENS)]
    block_tokens: u32,
    /// Keep sessions that say the same as one before.
    #[arg(long)]
    keep_duplicates: bool,
    /// Stop at the first broken record.
    #[arg(long)]
    strict: bool,
    /// Threads that count. As many as there are cores, if not given.
    #[arg(long)]
    threads: Option<usize>,
    #[command(flatten)]
    repair: RepairOptions,
    #[command(flatten)]
    target: TargetOptions,
}

/// A `corpus.toml`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    model: Option<String>,
    seed: Option<u64>,
    #[serde(default)]
    profile: Vec<Group>,
}

pub(super) fn build(options: &Build) -> super::Outcome {
    let config = options.config.as_deref().map(config).transpose()?;
    let mut config = config.unwrap_or_default();
    config.profile.extend(options.groups.0.iter().cloned());
    let seed = options.seed.or(config.seed).unwrap_or(1);
    let model = options.model.clone().or(config.model);
    let model = model.unwrap_or_else(|| "gpt-oss-120b".to_owned());
    let readers: Vec<Box<dyn Reader>> = config
        .profile
        .iter()
        .map(|group| {
            options::check_name(&group.name)?;
            options::check_media(group, options.repair.keeps_media())?;
            options::reader(group, seed)
        })
        .collect::<Result<_, _>>()?;
    let profiles = config.profile.iter().zip(&readers);
    let plan = Plan {
        out: options.out.clone(),
        tool: format!("prove {}", env!("CARGO_PKG_VERSION")),
        model,
        seed,
        output: options.output,
        ignore_eos: options.ignore_eos,
        stream: !options.no_stream,
        max_context: options.max_context,
        block_tokens: options.block_tokens,
        // Each arrival of a trace is its own.
        keep_duplicates: options.keep_duplicates || config.profile.iter().any(options::is_trace),
        strict: options.strict,
        threads: threads(options.threads),
        profiles: profiles
            .map(|(group, reader)| profile(group, &**reader))
            .collect(),
    };
    let target = options.target.target(&plan.model)?;
    let repairs = options.repair.repairs(&target.model)?;
    let mut bar = Bar::new();
    let mut new = 0;
    let manifest = ::corpus::build::build(&plan, &target, &repairs, &mut |progress| {
        new = progress.bytes_unrolled - progress.bytes_unrolled_before;
        bar.show(progress);
    });
    bar.end();
    let manifest = manifest?;
    let seconds = bar.elapsed().as_secs_f64();
    println!(
        "{}: {} sessions, {} requests; {} in the place of {}; {} records skipped, {} duplicates",
        super::shown(&options.out),
        number(manifest.sessions),
        number(manifest.requests),
        bytes(manifest.bytes_stored),
        bytes(manifest.bytes_unrolled),
        number(manifest.skipped),
        number(manifest.duplicates),
    );
    println!(
        "built in {} at {}/s of requests; predicted prefix-cache hits {:.1} %",
        time(seconds),
        bytes((new as f64 / seconds.max(1e-3)) as u64),
        manifest.prefix.hit_rate * 100.0
    );
    tell_skipped(&manifest);
    for line in fewer(&manifest) {
        println!("  {line}");
    }
    for profile in manifest
        .profiles
        .iter()
        .filter(|profile| profile.sessions == 0)
    {
        eprintln!("error: profile {} has no session", profile.name);
    }
    Ok(manifest.profiles.iter().all(|profile| profile.sessions > 0))
}

/// Why records were skipped, and the first of each reason.
fn tell_skipped(manifest: &Manifest) {
    let mut reasons: BTreeMap<&str, (u64, &Skipped)> = BTreeMap::new();
    for skipped in &manifest.skipped_list {
        let entry = reasons.entry(&skipped.reason).or_insert((0, skipped));
        entry.0 += 1;
    }
    for (reason, (count, first)) in reasons {
        println!(
            "  skipped {count} as {reason}; the first, {}: {}",
            printable(&first.place),
            printable(&first.says)
        );
    }
}

/// A line for each profile that has fewer sessions than were asked for.
pub(super) fn fewer(manifest: &Manifest) -> Vec<String> {
    let line = |profile: &Profile| {
        let asked = profile.asked.filter(|asked| *asked > profile.sessions)?;
        let sources = profile.candidates.unwrap_or_default();
        Some(format!(
            "profile {}: {} sessions were asked for, {} are there; its sources have {}",
            printable(&profile.name),
            number(asked),
            number(profile.sessions),
            number(sources),
        ))
    };
    manifest.profiles.iter().filter_map(line).collect()
}

fn profile<'a>(group: &Group, reader: &'a dyn Reader) -> ProfilePlan<'a> {
    ProfilePlan {
        name: group.name.clone(),
        reader,
        options: group.options.clone(),
        paths: group.paths.clone(),
        // A generator makes as many as it is asked for.
        sessions: group.sessions.filter(|_| !options::makes_sessions(group)),
        licence: group
            .licence
            .clone()
            .or_else(|| options::licence(group).map(str::to_owned)),
    }
}

/// Each thread has a memo of some 20 MB.
fn threads(asked: Option<usize>) -> usize {
    const MOST: usize = 64;
    let cores = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    asked.unwrap_or_else(cores).min(MOST)
}

fn config(path: &Path) -> Result<Config, Box<dyn std::error::Error>> {
    let mut config: Config = toml::from_str(&files::read(path)?)
        .map_err(|error| format!("{}: {error}", path.display()))?;
    let beside = path.parent().unwrap_or(Path::new("."));
    for group in &mut config.profile {
        for path in &mut group.paths {
            *path = beside.join(&*path);
        }
    }
    Ok(config)
}

pub(super) fn output(text: &str) -> Result<Output, String> {
    match text {
        "recorded" => Ok(Output::Recorded),
        "free" => Ok(Output::Free),
        number => match number.parse() {
            Ok(0) | Err(_) => Err("must be recorded, free or a number of tokens".to_owned()),
            Ok(tokens) => Ok(Output::Tokens(tokens)),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::Config;

    #[test]
    fn the_corpus_of_the_documentation_is_read() {
        for (page, text) in crate::pages::pieces("corpus") {
            let config: Config =
                toml::from_str(&text).unwrap_or_else(|error| panic!("{page}: {error}"));
            assert_eq!(config.profile.len(), 2, "{page}");
        }
    }
}
