//! The model that will answer, as far as counting needs it: the engine's own prompts.
//!
//! Invariant: a prompt has the tokens for which the engine of this project reports usage.
//! Not here: formats and vocabularies (`engine`).

use std::borrow::Cow;
use std::io;
use std::path::PathBuf;

use ::corpus::geometry::{PromptCounter, TargetTokenizer};
use clap::Args;
use engine::ModelFiles;
use engine::prompt::{Memo, PromptModel, SessionPrompts};
use ring::digest::{SHA256, digest};

use crate::files;

/// The vocabulary of the target.
#[derive(Debug, Args)]
pub(super) struct TargetOptions {
    /// A `tokenizer.json`, for models whose vocabulary is not built in.
    #[arg(long)]
    tokenizer: Option<PathBuf>,
    /// The `tokenizer_config.json` beside it, with its marks and its chat template.
    #[arg(long, requires = "tokenizer")]
    tokenizer_config: Option<PathBuf>,
    /// A chat template in a file of its own.
    #[arg(long, requires = "tokenizer")]
    template: Option<PathBuf>,
    /// Date that system messages name, YYYY-MM-DD; all dates have the same number of tokens.
    #[arg(long, default_value = "2026-01-01")]
    date: String,
}

/// A model whose prompts are counted.
pub(super) struct Target {
    pub(super) model: PromptModel,
    name: String,
}

impl TargetOptions {
    /// The model of that name.
    pub(super) fn target(&self, model: &str) -> io::Result<Target> {
        let read = |path: &Option<PathBuf>| path.as_deref().map(files::read).transpose();
        let files = match read(&self.tokenizer)? {
            None => None,
            Some(tokenizer) => Some(ModelFiles {
                tokenizer,
                config: read(&self.tokenizer_config)?,
                chat_template: read(&self.template)?,
            }),
        };
        let vocabulary = match &files {
            Some(files) => format!("tokenizer.json {}", digest_of(files)),
            None => "built-in vocabulary".to_owned(),
        };
        let prompts = PromptModel::new(model, files, &self.date).map_err(io::Error::other)?;
        Ok(Target {
            name: format!("{}, {vocabulary}", prompts.format()),
            model: prompts,
        })
    }
}

/// The first digits of a digest of all files.
fn digest_of(files: &ModelFiles) -> String {
    let whole = [
        files.tokenizer.as_str(),
        files.config.as_deref().unwrap_or_default(),
        files.chat_template.as_deref().unwrap_or_default(),
    ]
    .join("\0");
    let digest = digest(&SHA256, whole.as_bytes());
    let digits = digest.as_ref().iter().take(8);
    digits.map(|byte| format!("{byte:02x}")).collect()
}

impl TargetTokenizer for Target {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn counter(&self) -> Box<dyn PromptCounter + '_> {
        Box::new(Counter {
            model: &self.model,
            memo: Memo::default(),
            session: None,
        })
    }
}

struct Counter<'a> {
    model: &'a PromptModel,
    memo: Memo,
    session: Option<SessionPrompts<'a>>,
}

impl PromptCounter for Counter<'_> {
    fn start(&mut self, tools: Option<&str>, messages: &[String]) -> Result<(), String> {
        self.session = None;
        let messages = messages.iter().cloned().map(Cow::Owned).collect();
        self.session = Some(self.model.session(tools, messages)?);
        Ok(())
    }

    fn prompt(&mut self, places: &[usize]) -> Result<Vec<u32>, String> {
        let session = self.session.as_mut().ok_or("no session was begun")?;
        session.prompt(places, &mut self.memo)
    }

    fn answer(&mut self, place: usize) -> Result<u32, String> {
        let session = self.session.as_mut().ok_or("no session was begun")?;
        let tokens = session.answer_tokens(place, &mut self.memo)?;
        u32::try_from(tokens).map_err(|_| "the answer has too many tokens".to_owned())
    }
}
