//! `prove corpus export`.
//!
//! Not here: the forms (`::corpus::export`).

use std::path::PathBuf;

use ::corpus::export::Format;
use ::corpus::store::Corpus;
use clap::{Args, ValueEnum};

use super::figures::bytes;
use super::target::TargetOptions;
use crate::text::number;

/// Writes a corpus in a form that another tool reads.
#[derive(Debug, Args)]
pub(crate) struct Export {
    /// The corpus.
    dir: PathBuf,
    /// The form.
    #[arg(long, value_enum)]
    format: Form,
    /// Where to; a directory that is not there, or empty.
    #[arg(long)]
    out: PathBuf,
    #[command(flatten)]
    target: TargetOptions,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Form {
    /// A line for each request, in a thin envelope
    Paper,
    /// AIPerf's raw payloads: a file for each session
    Aiperf,
    /// `vllm bench serve --dataset-name custom --skip-chat-template`: prompts as text
    Vllm,
}

pub(super) fn export(options: &Export) -> super::Outcome {
    let corpus = Corpus::open(&options.dir)?;
    let format = match options.format {
        Form::Paper => Format::Paper,
        Form::Aiperf => Format::AiPerf,
        Form::Vllm => Format::Vllm,
    };
    let target = options.target.target(&corpus.manifest().model)?;
    let prompt = |body: &[u8]| target.model.text(&target.model.prompt(body)?);
    let done = ::corpus::export::export(&corpus, format, &options.out, &prompt)?;
    println!(
        "{}: {} requests in {} files, {}",
        super::shown(&options.out),
        number(done.requests),
        number(done.files),
        bytes(done.bytes)
    );
    Ok(true)
}
