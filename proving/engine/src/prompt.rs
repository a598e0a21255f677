//! The prompts of chat requests, for those who count them without a server: made by the code that the server runs.
//!
//! Invariant: the ids of a prompt are those for which a running engine of that model would report usage, whether
//! the body is read whole ([`PromptModel::prompt`]) or message by message ([`PromptModel::session`]).
//! Not here: the formats (`render`), what comes out of a model (`turn`).

use std::borrow::Cow;

use crate::chat::{self, ChatRequest};
use crate::config::{EngineConfig, ModelFiles};
use crate::error::Refusal;
use crate::json::Json;
use crate::model::Model;
use crate::render::encoder::Encoder;
pub use crate::render::encoder::Memo;
use crate::render::{Conversation, Format};
use crate::tokenizer::TokenId;
use crate::validate::{self, MEDIA_TOKENS};

/// A model whose prompts are made, never answered. Cheap to clone.
#[derive(Clone, Debug)]
pub struct PromptModel {
    model: Model,
}

impl PromptModel {
    /// The model that an engine would serve under this name: with `files`, theirs; else a built-in one. `date`
    /// (`YYYY-MM-DD`) is the one that system messages name.
    ///
    /// # Errors
    /// What is wrong with the files.
    pub fn new(name: &str, files: Option<ModelFiles>, date: &str) -> Result<Self, String> {
        let config = EngineConfig {
            models: vec![name.to_owned()],
            files,
            ..EngineConfig::default()
        };
        let model = Model::all(&config, date)?.pop();
        Ok(Self {
            model: model.ok_or("no model")?,
        })
    }

    /// The prompt of the body of a chat request.
    ///
    /// # Errors
    /// What the engine would answer with status 400.
    pub fn prompt(&self, body: &[u8]) -> Result<Vec<TokenId>, String> {
        let body: Json = serde_json::from_slice(body).map_err(|error| error.to_string())?;
        let mut request: ChatRequest = body.into_typed().map_err(|error| error.to_string())?;
        let asked = request.asked(&self.model).map_err(text)?;
        asked.prompt(&self.model).map_err(text)
    }

    /// The text of a prompt, marks included, as a call of plain completions would bring it.
    ///
    /// # Errors
    /// When an id is none of the vocabulary.
    pub fn text(&self, prompt: &[TokenId]) -> Result<String, String> {
        let text = self.model.tokenizer().decode(prompt);
        text.map_err(|id| format!("the vocabulary has no token {id}"))
    }

    /// Number of tokens of a text, in which nothing is a mark.
    pub fn count(&self, text: &str) -> u64 {
        self.model.tokenizer().count(text)
    }

    /// Names the format of its prompts.
    pub fn format(&self) -> &'static str {
        match self.model.format {
            Format::Harmony { .. } => "Harmony",
            Format::ChatMl => "ChatML",
            Format::Template(_) => "template",
        }
    }

    /// Prompts that share their messages. `tools` is the list of tools as JSON, `messages` has one message each.
    /// A message is read when a prompt first needs it.
    ///
    /// # Errors
    /// What is wrong with the tools.
    pub fn session<'a>(
        &'a self,
        tools: Option<&str>,
        messages: Vec<Cow<'a, str>>,
    ) -> Result<SessionPrompts<'a>, String> {
        let tools: Option<Vec<Json>> = tools
            .map(serde_json::from_str)
            .transpose()
            .map_err(|error| format!("tools: {error}"))?;
        Ok(SessionPrompts {
            model: &self.model,
            read: messages.iter().map(|_| None).collect(),
            messages,
            conversation: Conversation {
                tools: chat::given(tools.as_deref()).map_err(text)?,
                ..Conversation::default()
            },
            shown: Vec::new(),
        })
    }
}

/// The prompts of one session.
#[derive(Debug)]
pub struct SessionPrompts<'a> {
    model: &'a Model,
    messages: Vec<Cow<'a, str>>,
    /// The messages that were read, each with how many of its parts are no text.
    read: Vec<Option<(Json, usize)>>,
    conversation: Conversation,
    /// Which messages the conversation has now.
    shown: Vec<usize>,
}

impl SessionPrompts<'_> {
    /// The prompt of these messages, by their places.
    ///
    /// # Errors
    /// What the engine would answer with status 400, and which message it is about.
    pub fn prompt(&mut self, places: &[usize], memo: &mut Memo) -> Result<Vec<TokenId>, String> {
        if places.is_empty() {
            return Err("a prompt needs at least one message".to_owned());
        }
        let kept = self.shown.iter().zip(places).take_while(|(a, b)| a == b);
        let kept = kept.count();
        self.shown.truncate(kept);
        self.conversation.messages.truncate(kept);
        for &place in &places[kept..] {
            let (message, _) = self.message(place)?;
            let message = message.clone();
            self.conversation.messages.push(message);
            self.shown.push(place);
        }
        let media: usize = places
            .iter()
            .filter_map(|&place| self.read[place].as_ref())
            .map(|(_, media)| media)
            .sum();
        let mut out = Encoder::with_memo(self.model.tokenizer(), memo);
        self.model.format.write(&mut out, &self.conversation)?;
        let mut ids = out.into_ids();
        ids.extend(std::iter::repeat_n(0, media * MEDIA_TOKENS));
        Ok(ids)
    }

    /// Tokens that the model generates for this message to be its answer, its marks included; at least one.
    ///
    /// # Errors
    /// What is wrong with the message.
    pub fn answer_tokens(&mut self, place: usize, memo: &mut Memo) -> Result<usize, String> {
        let format = self.model.format.clone();
        let mut out = Encoder::with_memo(self.model.tokenizer(), memo);
        format.write_answer(&mut out, &self.message(place)?.0);
        // Harmony's `<|start|>assistant` stands in the prompt.
        let of_prompt = if format.is_harmony() { 2 } else { 0 };
        Ok(out.into_ids().len().saturating_sub(of_prompt).max(1))
    }

    fn message(&mut self, place: usize) -> Result<&(Json, usize), String> {
        let harmony = self.model.format.is_harmony();
        let text = self
            .messages
            .get(place)
            .ok_or_else(|| format!("there is no message {place}"))?;
        let slot = &mut self.read[place];
        if slot.is_none() {
            *slot = Some(read(text, harmony).map_err(|why| format!("messages[{place}]: {why}"))?);
        }
        slot.as_ref().ok_or_else(|| "unread".to_owned())
    }
}

fn read(message: &str, harmony: bool) -> Result<(Json, usize), String> {
    let json: Json = serde_json::from_str(message).map_err(|error| error.to_string())?;
    let mut parsed = validate::messages(vec![json], harmony).map_err(text)?;
    let message = parsed.messages.pop().unwrap_or_default();
    Ok((message, parsed.media))
}

fn text(refusal: Refusal) -> String {
    refusal.message().to_owned()
}

#[cfg(test)]
mod tests;
