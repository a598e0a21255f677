//! The counter of one model: built once, shared by everyone who counts.
//!
//! Invariant: immutable; the same body at the same moment gives the same count on any thread.
//! Not here: which model has which counter (configuration), when a count is worth its time (the host).

use std::sync::Arc;

use wire::dialect::Operation;

use crate::conversation::Conversation;
use crate::count::{Count, Doubt};
use crate::dialect;
use crate::known_messages::KnownMessages;
use crate::memo::Memo;
use crate::template::{Template, TemplateSettings};
use crate::tree::Tree;
use crate::uncountable::{Uncountable, UnusableModel};
use crate::vocabulary::Vocabulary;
use crate::words::Words;
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
    words: Words,
    pub(crate) rendering: Rendering,
    /// Where a message counts the same wherever it stands.
    known: Option<KnownMessages>,
}

pub(crate) enum Rendering {
    Harmony,
    Template(Box<Template>),
    /// No template is known: the documented overhead stands in for it.
    Overhead,
}

impl Counter {
    fn new(vocabulary: Vocabulary, rendering: Rendering) -> Self {
        Self {
            words: Words::of(&vocabulary),
            vocabulary,
            rendering,
            known: None,
        }
    }

    /// For gpt-oss: Harmony, as vLLM renders it.
    #[must_use]
    pub fn harmony() -> Self {
        Self::new(Vocabulary::o200k(), Rendering::Harmony)
    }

    /// For a provider's model whose template is not public: conversations count as [`Doubt::TemplateUnknown`];
    /// embeddings and text completions are exact.
    #[must_use]
    pub fn without_template(vocabulary: BuiltIn) -> Self {
        let vocabulary = match vocabulary {
            BuiltIn::O200k => Vocabulary::o200k(),
            BuiltIn::Cl100k => Vocabulary::cl100k(),
        };
        Self::new(vocabulary, Rendering::Overhead)
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
        let vocabulary = Vocabulary::own(tokenizer_json)?;
        let template = Template::new(template, settings)?;
        Ok(Self::new(
            vocabulary,
            Rendering::Template(Box::new(template)),
        ))
    }

    /// The same counter, which looks messages and longer texts up in `memo` and remembers them there.
    #[must_use]
    pub fn remembering_in(mut self, memo: Arc<Memo>) -> Self {
        if matches!(self.rendering, Rendering::Overhead) {
            self.known = Some(KnownMessages::new(Arc::clone(&memo)));
        }
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
        if body_bytes > BODY_LIMIT_BYTES {
            return Err(Uncountable::TooLong(body_bytes));
        }
        if let Some(known) = &self.known
            && let Some(tokens) = known.count(operation, body, &self.vocabulary, &self.words)
        {
            return Ok(Count::approximate(tokens, Doubt::TemplateUnknown));
        }
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
                .count(&self.vocabulary, &self.words)
                .map(Count::exact),
            Rendering::Template(template) => {
                let text = template.render(&conversation, engine_clock_s)?;
                self.vocabulary
                    .count_prompt(&text, false, conversation.adds_special_tokens)
                    .map(Count::exact)
            }
            Rendering::Overhead => overhead::count(&conversation, &self.vocabulary, &self.words)
                .map(|tokens| Count::approximate(tokens, Doubt::TemplateUnknown)),
        }
    }

    fn conversation<'t>(
        &self,
        operation: Operation,
        body: &'t Tree<'t>,
        body_bytes: usize,
    ) -> Result<Conversation<'t>, Uncountable> {
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
        let tree = read(body)?;
        let conversation = self.conversation(operation, &tree, body.len())?;
        match &self.rendering {
            Rendering::Harmony => Ok(harmony::render(&conversation, engine_clock_s)?.shown()),
            Rendering::Template(template) => template.render(&conversation, engine_clock_s),
            Rendering::Overhead => Ok(String::new()),
        }
    }
}

fn read(body: &[u8]) -> Result<Tree<'_>, Uncountable> {
    serde_json::from_slice(body).map_err(|error| Uncountable::NotJson(error.to_string()))
}
