//! A model that is served: its vocabulary, and how it wants its prompts.
//!
//! Invariant: prompt and output are counted by the same vocabulary. A name that starts with `gpt-oss` (after an
//! optional `owner/`) gets o200k and Harmony; any other gets what was configured, or else cl100k and ChatML.
//! Not here: weights. There are none.

use std::sync::Arc;

use crate::config::{EngineConfig, ModelFiles};
use crate::error::Refusal;
use crate::json::Json;
use crate::render::template::Template;
use crate::render::{Conversation, Format};
use crate::text::{self, Composer};
use crate::tokenizer::{TokenId, Tokenizer};

/// One served model.
#[derive(Clone, Debug)]
pub(crate) struct Model {
    pub(crate) format: Format,
    /// How `/tokenize` writes a conversation: by a template, of Harmony's models too.
    pub(crate) templated: Format,
    pub(crate) composer: Composer,
    /// The date in its prompts, where that is the day's and was not given.
    pub(crate) today: Vec<TokenId>,
}

impl Model {
    /// Every model of a configuration. Fails with what is wrong with its files.
    pub(crate) fn all(config: &EngineConfig, date: &str) -> Result<Vec<Self>, String> {
        let given = config
            .files
            .as_ref()
            .map(|files| from_files(files, config, date))
            .transpose()?;
        config
            .models
            .iter()
            .map(|name| {
                let (composer, format) = match &given {
                    Some((composer, format)) => (composer.clone(), format.clone()),
                    None if is_gpt_oss(name) => (
                        Composer::new(&Tokenizer::o200k())?,
                        Format::Harmony {
                            date: date.to_owned(),
                        },
                    ),
                    None => (Composer::new(&Tokenizer::cl100k())?, Format::ChatMl),
                };
                let today = match (&config.date, &format) {
                    (None, Format::Harmony { date }) => composer.tokenizer().encode(date),
                    _ => Vec::new(),
                };
                Ok(Self {
                    templated: match &format {
                        Format::Harmony { date } => {
                            Format::Template(Arc::new(Template::of_gpt_oss(date)?))
                        }
                        other => other.clone(),
                    },
                    format,
                    composer,
                    today,
                })
            })
            .collect()
    }

    /// The prompt of a conversation. Refused where the template refuses it.
    pub(crate) fn prompt(&self, conversation: &Conversation) -> Result<Vec<TokenId>, Refusal> {
        self.format
            .prompt(self.tokenizer(), conversation)
            .map_err(|why| Refusal::bad_request(why).about("messages"))
    }

    /// Whether system messages among Anthropic's are put before all others: by Harmony's template, too, which is not
    /// what its calls are written by, and fails where vLLM tries it.
    pub(crate) fn merges_system(&self) -> bool {
        match &self.format {
            Format::Harmony { .. } => true,
            Format::ChatMl => false,
            Format::Template(template) => template.merges_system(),
        }
    }

    /// What `/tokenize` makes of a conversation. Refused where the template refuses it.
    pub(crate) fn templated(&self, conversation: &Conversation) -> Result<Vec<TokenId>, Refusal> {
        self.templated
            .prompt(self.tokenizer(), conversation)
            .map_err(|why| Refusal::bad_request(why).about("messages"))
    }

    /// What an answer to this prompt follows from: not from the day on which it is asked.
    pub(crate) fn seed(&self, seed: u64, prompt: &[TokenId]) -> u64 {
        let length = self.today.len();
        let mut places = prompt.windows(length.max(1));
        let at = places.position(|tokens| length > 0 && tokens == self.today);
        let (before, behind) = match at {
            Some(at) => (&prompt[..at], &prompt[at + length..]),
            None => (prompt, &[][..]),
        };
        let tokens = before.iter().chain(behind);
        tokens.fold(seed ^ 0xcbf2_9ce4_8422_2325, |h, id| {
            text::hash(h, &id.to_le_bytes())
        })
    }

    pub(crate) fn tokenizer(&self) -> &Tokenizer {
        self.composer.tokenizer()
    }
}

fn from_files(
    files: &ModelFiles,
    config: &EngineConfig,
    date: &str,
) -> Result<(Composer, Format), String> {
    let tokenizer = Tokenizer::from_json(&files.tokenizer).map_err(|error| error.to_string())?;
    let format = format(files, config, date)?;
    Ok((Composer::new(&tokenizer)?, format))
}

/// What the files say of prompts, whatever the vocabulary.
pub(crate) fn format(
    files: &ModelFiles,
    config: &EngineConfig,
    date: &str,
) -> Result<Format, String> {
    let defaults = defaults(config)?;
    let template = match (&files.config, &files.chat_template) {
        (Some(settings), own) => Template::from_config(settings, own.as_deref(), defaults, date)?,
        (None, Some(own)) => Template::of_file(own, defaults, date)?,
        (None, None) => return Ok(Format::ChatMl),
    };
    Ok(Format::Template(Arc::new(template)))
}

/// What `chat_template_kwargs` are given to every template.
fn defaults(config: &EngineConfig) -> Result<&str, String> {
    let Some(text) = &config.default_chat_template_kwargs else {
        return Ok("");
    };
    match serde_json::from_str(text) {
        Ok(Json::Object(_)) => Ok(text),
        _ => Err("default_chat_template_kwargs: must be a JSON object".to_owned()),
    }
}

fn is_gpt_oss(name: &str) -> bool {
    name.rsplit('/')
        .next()
        .is_some_and(|name| name.starts_with("gpt-oss"))
}
