//! The counter of one model: built once, shared by everyone who counts.
//!
//! Invariant: immutable; the same body at the same moment gives the same count on any thread.
//! Not here: which model has which counter (configuration), when a count is worth its time (the host).

use std::sync::Arc;

use wire::dialect::Operation;

use crate::conversation::Conversation;
use crate::count::{Count, Doubt};
use crate::dialect;
use crate::memo::Memo;
use crate::template::{Template, TemplateSettings};
use crate::tree::Tree;
use crate::uncountable::{Uncountable, UnusableModel};
use crate::vocabulary::Vocabulary;
use crate::{BODY_LIMIT_BYTES, harmony, overhead, prompt};

/// A vocabulary that is built in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BuiltIn {
    /// OpenAI's since GPT-4o.
    O200k,
    /// OpenAI's before that, and of its embedding models.
    Cl100k,
}

/// Counts the tokens of one model's prompts and outputs.
pub struct Counter {
    pub(crate) vocabulary: Vocabulary,
    pub(crate) rendering: Rendering,
}

pub(crate) enum Rendering {
    Harmony,
    Template(Box<Template>),
    /// No template is known: the documented overhead stands in for it.
    Overhead,
}

impl Counter {
    /// For gpt-oss: Harmony, as vLLM renders it.
    #[must_use]
    pub fn harmony() -> Self {
        Self {
            vocabulary: Vocabulary::o200k(),
            rendering: Rendering::Harmony,
        }
    }

    /// For a provider's model whose template is not public: conversations count as [`Doubt::TemplateUnknown`];
    /// embeddings and text completions are exact.
    #[must_use]
    pub fn without_template(vocabulary: BuiltIn) -> Self {
        let vocabulary = match vocabulary {
            BuiltIn::O200k => Vocabulary::o200k(),
            BuiltIn::Cl100k => Vocabulary::cl100k(),
        };
        Self {
            vocabulary,
            rendering: Rendering::Overhead,
        }
    }

    /// For any model with a `tokenizer.json` and a chat template, rendered as vLLM does.
    ///
    /// # Errors
    /// When either cannot be read.
    pub fn from_template(
        tokenizer_json: &[u8],
        template: &str,
        settings: TemplateSettings,
    ) -> Result<Self, UnusableModel> {
        Ok(Self {
            vocabulary: Vocabulary::own(tokenizer_json)?,
            rendering: Rendering::Template(Box::new(Template::new(template, settings)?)),
        })
    }

    /// The same counter, which looks longer texts up in `memo` and remembers them there.
    #[must_use]
    pub fn remembering_in(mut self, memo: Arc<Memo>) -> Self {
        self.vocabulary.remember_in(memo);
        self
    }

    /// Counts the prompt of a request body.
    ///
    /// `engine_clock_s`: seconds since 1970 on the wall clock of the engine's time zone. Harmony and many templates
    /// write the date into the prompt.
    ///
    /// # Errors
    /// When the body has no prompt that can be counted; see [`Uncountable`].
    pub fn prompt(
        &self,
        operation: Operation,
        body: &[u8],
        engine_clock_s: i64,
    ) -> Result<Count, Uncountable> {
        let body_bytes = body.len();
        let body = read(body)?;
        if matches!(operation, Operation::Completions | Operation::Embeddings)
            && body.get("messages").is_none()
        {
            let is_harmony = matches!(self.rendering, Rendering::Harmony);
            return prompt::count(operation, &body, &self.vocabulary, is_harmony).map(Count::exact);
        }
        let conversation = self.conversation(operation, &body, body_bytes)?;
        match &self.rendering {
            Rendering::Harmony => harmony::render(&conversation, engine_clock_s)?
                .count(&self.vocabulary)
                .map(Count::exact),
            Rendering::Template(template) => {
                let text = template.render(&conversation, engine_clock_s)?;
                self.vocabulary
                    .count_prompt(&text, false, conversation.adds_special_tokens)
                    .map(Count::exact)
            }
            Rendering::Overhead => overhead::count(&conversation, &self.vocabulary)
                .map(|tokens| Count::approximate(tokens, Doubt::TemplateUnknown)),
        }
    }

    fn conversation(
        &self,
        operation: Operation,
        body: &Tree,
        body_bytes: usize,
    ) -> Result<Conversation, Uncountable> {
        let for_template = matches!(self.rendering, Rendering::Template(_));
        let mut conversation = dialect::read(operation, body, for_template)?;
        conversation.body_bytes = body_bytes;
        Ok(conversation)
    }

    #[cfg(test)]
    pub(crate) fn rendered(
        &self,
        operation: Operation,
        body: &[u8],
        engine_clock_s: i64,
    ) -> Result<String, Uncountable> {
        let conversation = self.conversation(operation, &read(body)?, body.len())?;
        match &self.rendering {
            Rendering::Harmony => Ok(harmony::render(&conversation, engine_clock_s)?.shown()),
            Rendering::Template(template) => template.render(&conversation, engine_clock_s),
            Rendering::Overhead => Ok(String::new()),
        }
    }
}

fn read(body: &[u8]) -> Result<Tree, Uncountable> {
    if body.len() > BODY_LIMIT_BYTES {
        return Err(Uncountable::TooLong(body.len()));
    }
    serde_json::from_slice(body).map_err(|error| Uncountable::NotJson(error.to_string()))
}
