//! The counter of one model: built once, shared by everyone who counts.
//!
//! Invariant: immutable; the same body at the same moment gives the same count on any thread.
//! Not here: which model has which counter (configuration), when a count is worth its time (the host).

use std::sync::Arc;

use prompts::harmony::{self, Piece, Script};
use prompts::rendered_limit;
use wire::dialect::Operation;

use crate::count::{Certainty, Count, Doubt, Prompt};
use crate::dialect::{self, Counted, Reader};
use crate::known_messages::KnownMessages;
use crate::memo::Memo;
use crate::prompt::Kept;
use crate::shape::{Feature, Shape};
use crate::vocabulary::Vocabulary;
use crate::words::Words;
use crate::{BODY_LIMIT_BYTES, features, media, overhead, prompt, tokenizer_settings};
use prompts::conversation::Conversation;
use prompts::template::{Shown, Template, TemplateSettings, Templates};
use prompts::tree::{Member, Tree};
use prompts::{Uncountable, UnusableModel, wrong};

/// Conversations of one body times the bytes of its template arguments: each of them is given all of those anew.
const GIVEN_LIMIT: usize = 256 << 20;

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
    /// What is doubtful of every prompt.
    doubt: Option<Doubt>,
    /// Calls whose tool choice is none are rendered without their tools.
    excludes_tools: bool,
    /// The most tokens of a prompt and its answer, where it is known.
    model_length: Option<u64>,
    /// Pictures are counted where the body's model has documented numbers.
    sees: bool,
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
            doubt: None,
            excludes_tools: false,
            model_length: None,
            sees: false,
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
        Self {
            sees: true,
            ..Self::new(vocabulary, Rendering::Overhead)
        }
    }

    /// For any model with a `tokenizer.json` and a chat template, or one more for tools, rendered as vLLM does.
    ///
    /// # Errors
    /// When either cannot be read.
    pub fn from_template(
        tokenizer_json: &[u8],
        templates: impl Into<Templates>,
        settings: TemplateSettings,
    ) -> Result<Self, UnusableModel> {
        let fitted = tokenizer_settings::fit(tokenizer_json, &settings.tokenizer_config)?;
        let vocabulary = Vocabulary::own(&fitted.json)?;
        let (excludes_tools, model_length) = (settings.excludes_tools, settings.model_length);
        let settings = TemplateSettings {
            special_tokens: fitted.named.unwrap_or(settings.special_tokens),
            ..settings
        };
        let template = Template::new(&templates.into(), settings)?;
        let rendering = Rendering::Template(Box::new(template));
        Ok(Self {
            doubt: fitted.doubt,
            excludes_tools,
            model_length,
            ..Self::new(vocabulary, rendering)
        })
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

    /// Counts a text by itself, without anything that a template would put around it.
    ///
    /// # Errors
    /// When the vocabulary cannot encode it; see [`Uncountable`].
    pub fn text(&self, text: &str) -> Result<u64, Uncountable> {
        self.vocabulary.count(text)
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
    ) -> Result<Prompt, Uncountable> {
        let operation = counted(operation)?;
        let body_bytes = body.len();
        if body_bytes > BODY_LIMIT_BYTES {
            return Err(Uncountable::TooLong(body_bytes));
        }
        if let Some(known) = &self.known
            && let Some(counted) = known.count(operation, body, &self.vocabulary, &self.words)
        {
            return Ok(self.prompt_with(
                Count::approximate(counted.tokens, Doubt::TemplateUnknown),
                features::of_operation(operation).and(counted.shape),
            ));
        }
        let mut tree = read(body)?;
        let seen = self.sees.then(|| media::take(&mut tree)).flatten();
        if seen.is_some() && handed_over_ids(&tree).is_some() {
            // An engine passes over ids beside a picture.
            return Err(Uncountable::Part("image".to_owned()));
        }
        let (count, shape) = self.prompt_of(operation, &tree, body_bytes, engine_clock_s)?;
        if let Some(tokens) = seen {
            let count = Count::approximate(count.tokens + tokens, Doubt::Media);
            return Ok(self.prompt_with(count, shape.with(Feature::Media)));
        }
        let count = match (self.doubt, count.certainty) {
            (Some(doubt), Certainty::Exact) => count.doubted(doubt),
            _ => count,
        };
        Ok(self.prompt_with(count, shape))
    }

    /// Whether the answer to a body begins with text of its prompt (`echo`), which is no output. A body that cannot be read
    /// has no such answer.
    #[must_use]
    pub fn echoes(operation: Operation, body: &[u8]) -> bool {
        matches!(operation, Operation::Chat | Operation::Completions)
            && memchr::memmem::find(body, b"echo\"").is_some()
            && read(body).is_ok_and(|body| dialect::echoes(&body))
    }

    /// Whether the body asks for an answer without the model's reasoning, which is output that nobody outside the engine
    /// can count. A body that cannot be read asks for nothing.
    #[must_use]
    pub fn hides_reasoning(operation: Operation, body: &[u8]) -> bool {
        let has = |name| memchr::memmem::find(body, name).is_some();
        operation == Operation::Chat
            && (has(b"include_reasoning\"") || has(b"exclude\""))
            && read(body).is_ok_and(|body| dialect::hides_reasoning(&body))
    }

    fn prompt_with(&self, count: Count, shape: Shape) -> Prompt {
        let shape = shape.and(features::of_length(count.tokens));
        let shape = match &self.rendering {
            Rendering::Overhead => shape.common(features::WITHOUT_TEMPLATE),
            Rendering::Harmony | Rendering::Template(_) => shape,
        };
        Prompt { count, shape }
    }

    fn prompt_of(
        &self,
        operation: Counted,
        body: &Tree<'_>,
        body_bytes: usize,
        engine_clock_s: i64,
    ) -> Result<(Count, Shape), Uncountable> {
        if prompt::is_plain(operation, body) {
            let is_harmony = matches!(self.rendering, Rendering::Harmony);
            let length = self.model_length;
            let count = prompt::count(operation, body, &self.vocabulary, is_harmony, length)?;
            return Ok((count, features::of_plain(operation, body)));
        }
        if let Some(count) = self.handed_over(operation, body)? {
            let shape = features::of_operation(operation).with(Feature::Numbers);
            return Ok((count, shape));
        }
        let is_whole = matches!(self.rendering, Rendering::Harmony) && operation == Counted::Chat;
        let kept = Kept::read(operation, body)?.filter(|_| !is_whole);
        let conversations = self.conversations(operation, body, body_bytes)?;
        let mut shape =
            features::of_body(operation, body).with_if(conversations.len() > 1, Feature::Several);
        let (mut sum, mut rendered_bytes) = (Count::exact(0), 0_usize);
        for conversation in &conversations {
            shape = shape.and(features::of_conversation(operation, conversation));
            let (count, bytes) = self.conversing(conversation, engine_clock_s)?;
            sum = sum.and(kept.map_or(count, |kept| kept.of(count, self.model_length)));
            rendered_bytes = rendered_bytes.saturating_add(bytes);
            if rendered_bytes > rendered_limit(body_bytes) {
                return Err(Uncountable::TooLong(rendered_bytes));
            }
        }
        if matches!(self.rendering, Rendering::Harmony) && body.has_wide_number() {
            sum = sum.and(Count::approximate(0, Doubt::Number));
        }
        Ok((sum, shape))
    }

    /// A prompt that another stage made already; vLLM does not look at the messages then.
    fn handed_over(
        &self,
        operation: Counted,
        body: &Tree<'_>,
    ) -> Result<Option<Count>, Uncountable> {
        let reads = match &self.rendering {
            Rendering::Template(_) => operation != Counted::Embeddings,
            Rendering::Harmony => matches!(operation, Counted::Chat | Counted::Messages),
            Rendering::Overhead => false,
        };
        let echoes = operation == Counted::Chat && dialect::echoes(body);
        let Some(ids) = handed_over_ids(body).filter(|_| reads && !echoes) else {
            return Ok(None);
        };
        // With a part that is no text they are passed over, and reading the conversation says why it is not counted.
        dialect::read(operation, body, self.reader())?;
        let is_id = |id: &Tree<'_>| matches!(id, Tree::Number(number) if number.is_u64());
        match ids.list() {
            Some(ids) if !ids.is_empty() && ids.iter().all(is_id) => {
                Ok(Some(Count::exact(ids.len() as u64)))
            }
            _ => Err(wrong(
                "kv_transfer_params",
                "given with a list of token numbers",
            )),
        }
    }

    /// The count, and the bytes of the text that a template made.
    fn conversing(
        &self,
        conversation: &Conversation<'_>,
        engine_clock_s: i64,
    ) -> Result<(Count, usize), Uncountable> {
        match &self.rendering {
            Rendering::Harmony => {
                let script = harmony::render(conversation, engine_clock_s)?;
                let tokens = self.count_script(&script)?;
                Ok((Count::exact(tokens), 0))
            }
            Rendering::Template(template) => {
                let rendered = template.render(conversation, engine_clock_s)?;
                let count = self.vocabulary.count_prompt(
                    &rendered.text,
                    false,
                    conversation.adds_special_tokens,
                )?;
                let count = Count::exact(count);
                let count = rendered.doubt.map_or(count, |doubt| count.doubted(doubt));
                Ok((count, rendered.text.len()))
            }
            Rendering::Overhead => overhead::count(conversation, &self.vocabulary, &self.words)
                .map(|tokens| (Count::approximate(tokens, Doubt::TemplateUnknown), 0)),
        }
    }

    /// Each piece is encoded on its own.
    fn count_script(&self, script: &Script<'_>) -> Result<u64, Uncountable> {
        let mut pieces = script.pieces().iter();
        pieces.try_fold(0, |sum, piece| match piece {
            Piece::Special(_) => Ok(sum + 1),
            Piece::Word(word) => Ok(sum + self.words.count(*word, &self.vocabulary)?),
            Piece::Text(text) => Ok(sum + self.vocabulary.count(text)?),
        })
    }

    fn conversations<'t>(
        &self,
        operation: Counted,
        body: &'t Tree<'t>,
        body_bytes: usize,
    ) -> Result<Vec<Conversation<'t>>, Uncountable> {
        let mut conversations = dialect::read(operation, body, self.reader())?;
        if self.excludes_tools && dialect::forbids_tools(body) {
            for conversation in &mut conversations {
                conversation.tools = None;
            }
        }
        if let [first, _, ..] = conversations.as_slice() {
            let bytes = |(name, value): &Member<'_>| name.len() + value.bytes();
            let given: usize = first.own_arguments.iter().map(bytes).sum();
            if given.saturating_mul(conversations.len()) > GIVEN_LIMIT {
                return Err(wrong(
                    "chat_template_kwargs",
                    "shorter, or given to fewer conversations",
                ));
            }
        }
        for conversation in &mut conversations {
            conversation.body_bytes = body_bytes;
        }
        Ok(conversations)
    }

    fn reader(&self) -> Reader {
        match &self.rendering {
            Rendering::Harmony => Reader::Harmony,
            Rendering::Template(template) => Reader::Template {
                merges_system: template.merges_system(),
            },
            Rendering::Overhead => Reader::Overhead,
        }
    }

    /// What a template is given for a body, and what it makes of it. None where there is no template, or several
    /// conversations.
    ///
    /// # Errors
    /// As [`Counter::prompt`].
    #[doc(hidden)]
    pub fn shown(
        &self,
        operation: Operation,
        body: &[u8],
        engine_clock_s: i64,
    ) -> Result<Option<Shown>, Uncountable> {
        let tree = read(body)?;
        let conversations = self.conversations(counted(operation)?, &tree, body.len())?;
        match (&self.rendering, conversations.as_slice()) {
            (Rendering::Template(template), [one]) => template.shown(one, engine_clock_s).map(Some),
            _ => Ok(None),
        }
    }

    #[cfg(test)]
    pub(crate) fn rendered(
        &self,
        operation: Operation,
        body: &[u8],
        engine_clock_s: i64,
    ) -> Result<String, Uncountable> {
        let tree = read(body)?;
        let conversations = self.conversations(counted(operation)?, &tree, body.len())?;
        let texts = conversations.iter().map(|one| match &self.rendering {
            Rendering::Harmony => Ok(harmony::render(one, engine_clock_s)?.shown()),
            Rendering::Template(template) => template.render(one, engine_clock_s).map(|it| it.text),
            Rendering::Overhead => Ok(String::new()),
        });
        texts.collect()
    }
}

/// The token numbers that a prefill stage hands over for the prompt (`kv_transfer_params`): they are the prompt.
fn handed_over_ids<'a, 't>(body: &'a Tree<'t>) -> Option<&'a Tree<'t>> {
    body.get("kv_transfer_params")?.get("prompt_token_ids")
}

/// What is counted of such a call.
fn counted(operation: Operation) -> Result<Counted, Uncountable> {
    Counted::of(operation).ok_or(Uncountable::Operation(operation.as_str()))
}

fn read(body: &[u8]) -> Result<Tree<'_>, Uncountable> {
    if body.len() > BODY_LIMIT_BYTES {
        return Err(Uncountable::TooLong(body.len()));
    }
    serde_json::from_slice(body).map_err(|error| Uncountable::NotJson(error.to_string()))
}
