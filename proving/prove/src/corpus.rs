//! `prove corpus`: recorded agent traffic to requests that are ready to be sent.
//!
//! Invariant: what is meant for machines goes to stdout and is one JSON document; progress goes to stderr.
//! Not here: everything that does not speak of a command line (`::corpus`).

mod build;
mod export;
mod figures;
mod groups;
mod inspect;
mod options;
mod progress;
mod recipe;
mod repairs;
mod target;

use std::path::{Path, PathBuf};

use ::corpus::store::{Corpus, StoreError};
use clap::{Args, Subcommand};

use crate::text::printable;

/// What can be done with a corpus.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    #[command(before_help = "Examples:\n  \
        prove corpus build --profile swe --reader openhands swe-rebench.parquet --out corpus\n  \
        prove corpus build --profile mooncake --reader trace mooncake.jsonl --out mooncake")]
    Build(Box<build::Build>),
    #[command(before_help = "Examples:\n  \
        prove corpus recipe scenarios/paper-corpus/corpus.toml\n  \
        prove corpus recipe scenarios/paper-corpus/corpus.toml --data /data --out paper")]
    Recipe(recipe::Recipe),
    #[command(before_help = "Example:\n  prove corpus inspect corpus")]
    Inspect(inspect::Inspect),
    #[command(before_help = "Example:\n  prove corpus verify corpus")]
    Verify(Verify),
    #[command(
        before_help = "Example:\n  prove corpus export corpus --format aiperf --out sessions"
    )]
    Export(export::Export),
}

type Outcome = Result<bool, Box<dyn std::error::Error>>;

/// Does it. False where the corpus is damaged.
pub(crate) fn corpus(command: &Command) -> Outcome {
    let done = match command {
        Command::Build(options) => build::build(options),
        Command::Recipe(options) => recipe::recipe(options),
        Command::Inspect(options) => inspect::inspect(options),
        Command::Verify(options) => verify(options),
        Command::Export(options) => export::export(options),
    };
    match done {
        Err(error) if error.downcast_ref().is_some_and(StoreError::is_damage) => {
            eprintln!("error: {}", told(&*error));
            Ok(false)
        }
        Err(error) => Err(told(&*error).into()),
        done => done,
    }
}

/// What an error says, which may have names and texts of a dataset in it.
fn told(error: &dyn std::error::Error) -> String {
    let says = error.to_string();
    let lines: Vec<String> = says.lines().map(printable).collect();
    lines.join("\n")
}

/// A path as a page shows it.
fn shown(path: &Path) -> String {
    printable(&path.display().to_string())
}

/// Checks every byte of a corpus. Ends with 0 if it is whole, 1 if it is damaged, 2 if that cannot be said.
#[derive(Debug, Args)]
pub(crate) struct Verify {
    /// The corpus.
    dir: PathBuf,
}

fn verify(options: &Verify) -> Outcome {
    let corpus = Corpus::open(&options.dir)?;
    let all = corpus.len();
    let mut line = crate::progress::Line::new();
    let done = corpus.verify(|so_far| {
        line.show(|| format!("{} of {all} sessions", so_far.sessions));
    })?;
    line.end();
    println!(
        "{}: whole; {} sessions, {} requests, {}",
        shown(&options.dir),
        crate::text::number(done.sessions),
        crate::text::number(done.requests),
        figures::bytes(done.bytes)
    );
    Ok(true)
}

#[cfg(test)]
mod tests;
