//! The dialects that are translated, and what each is made of: one table.

use std::sync::Arc;

use wire::dialect::Operation;
use wire::filter::{Answering, Manner, Request};

use crate::answer::{Asked, Error, Reader, Writer};
use crate::call::Call;
use crate::fault::{Fault, Result};
use crate::json::Json;
use crate::raw::Raw;
use crate::{anthropic, azure, gemini, openai, responses};

/// What is made of a body before it is read: what a call says lies in the body, or here.
pub(crate) type Prepared = gemini::schema::Schemas;

/// An API that backends speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// OpenAI's and its kin's.
    OpenAi,
    /// Anthropic's.
    Anthropic,
    /// OpenAI's Responses, which its kin does not all have. Calls are read in it, and made into others.
    Responses,
    /// Google's, as its AI Studio has it.
    Gemini,
    /// The same, as Google Cloud's Vertex AI has it.
    Vertex,
    /// OpenAI's, as Azure has it: each deployment of a model has a path of its own.
    Azure,
}

impl Dialect {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::OpenAi,
        Self::Anthropic,
        Self::Responses,
        Self::Gemini,
        Self::Vertex,
        Self::Azure,
    ];

    /// Its name in a configuration.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::OpenAi => openai::write_call::SPEAKS,
            Self::Anthropic => anthropic::write_call::SPEAKS,
            Self::Responses => responses::SPEAKS,
            Self::Gemini => gemini::Place::Studio.as_str(),
            Self::Vertex => gemini::Place::Vertex.as_str(),
            Self::Azure => azure::SPEAKS,
        }
    }

    /// The header in which its API takes keys.
    #[must_use]
    pub const fn key_header(self) -> &'static str {
        match self {
            // Vertex AI takes the tokens of Google Cloud.
            Self::OpenAi | Self::Responses | Self::Vertex => "authorization",
            Self::Anthropic => "x-api-key",
            Self::Gemini => "x-goog-api-key",
            Self::Azure => azure::KEY_HEADER,
        }
    }

    /// The header that says which version of the API is spoken, where each call needs one.
    #[must_use]
    pub const fn version_header(self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::OpenAi | Self::Responses | Self::Gemini | Self::Vertex | Self::Azure => None,
            Self::Anthropic => Some(anthropic::VERSION),
        }
    }

    /// The one that a call is said in, where it is one of a conversation that can be said in another.
    pub(crate) const fn of(operation: Operation) -> Option<Self> {
        match operation {
            Operation::Chat => Some(Self::OpenAi),
            Operation::Messages => Some(Self::Anthropic),
            Operation::Responses => Some(Self::Responses),
            Operation::GenerateContent => Some(Self::Gemini),
            _ => None,
        }
    }

    /// Whether it has this call as the client says it.
    pub(crate) fn has(self, operation: Operation) -> bool {
        match operation {
            // The list of models is of the gate itself, and what a route lets through unread nobody reads.
            Operation::Models | Operation::Unread | Operation::Http => true,
            Operation::Messages => self == Self::Anthropic,
            Operation::Responses => self == Self::Responses,
            named if named.is_named_by_path() => self.is_of_google(),
            // Anthropic's and Responses' have one operation.
            Operation::CountTokens => matches!(self, Self::Anthropic | Self::Responses),
            _ => matches!(self, Self::OpenAi | Self::Azure),
        }
    }

    const fn is_of_google(self) -> bool {
        matches!(self, Self::Gemini | Self::Vertex)
    }

    /// Whether a call that it has goes to another path than the client's.
    pub(crate) fn moves(self, operation: Operation) -> bool {
        match self {
            Self::Azure => azure::moves(operation),
            _ => self.is_of_google() && operation.is_named_by_path(),
        }
    }

    /// Moves such a call; what is left filters its response.
    pub(crate) fn pass(
        self,
        asked: Operation,
        request: &mut Request,
    ) -> Result<Option<Box<dyn Answering>>> {
        match self {
            Self::Gemini => Ok(gemini::pass::pass(gemini::Place::Studio, asked, request)),
            Self::Vertex => Ok(gemini::pass::pass(gemini::Place::Vertex, asked, request)),
            Self::Azure => azure::pass(asked, request).map(|()| None),
            Self::OpenAi | Self::Anthropic | Self::Responses => Ok(None),
        }
    }

    /// Where its API embeds texts for clients of another, if it does.
    pub(crate) const fn embeds(self) -> Option<gemini::Place> {
        match self {
            Self::Gemini => Some(gemini::Place::Studio),
            Self::Vertex => Some(gemini::Place::Vertex),
            Self::OpenAi | Self::Azure | Self::Anthropic | Self::Responses => None,
        }
    }

    /// Whether clients speak it to the gate.
    #[cfg(test)]
    pub(crate) fn is_source(self) -> bool {
        Self::of(self.operation()) == Some(self)
    }

    /// Whether calls of others are made into it.
    pub(crate) const fn is_target(self) -> bool {
        !matches!(self, Self::Responses)
    }

    /// Its call of a conversation.
    pub(crate) const fn operation(self) -> Operation {
        match self {
            Self::OpenAi | Self::Azure => Operation::Chat,
            Self::Anthropic => Operation::Messages,
            Self::Responses => Operation::Responses,
            Self::Gemini | Self::Vertex => Operation::GenerateContent,
        }
    }

    /// What is made of a body before it is read.
    pub(crate) fn prepare(self, body: Raw<'_>) -> Result<Prepared> {
        match self {
            Self::Gemini | Self::Vertex => gemini::schema::Schemas::of(body),
            Self::OpenAi | Self::Azure | Self::Anthropic | Self::Responses => {
                Ok(Prepared::default())
            }
        }
    }

    /// The one that a call is said in which asks what a prompt comes to; `below` is what follows the API's root in its path.
    pub(crate) fn asking_for_count(asked: Operation, below: &str) -> Option<Self> {
        match asked {
            Operation::CountTokens if below == anthropic::COUNT_PATH => Some(Self::Anthropic),
            Operation::CountContent => Some(Self::Gemini),
            _ => None,
        }
    }

    /// Of the body of a call that asks what a prompt comes to, the call with that prompt.
    pub(crate) fn prompt_asked(self, body: Raw<'_>) -> Option<Raw<'_>> {
        match self {
            Self::Gemini => gemini::read_call::prompt_asked(body),
            _ => Some(body),
        }
    }

    /// Reads a call whose prompt alone counts.
    pub(crate) fn read_prompt<'a>(
        self,
        body: Raw<'a>,
        prepared: &'a Prepared,
        request: &'a Request,
    ) -> Result<Call<'a>> {
        match self {
            Self::Anthropic => anthropic::read_call::read_prompt(body),
            _ => self.read_call(body, prepared, request),
        }
    }

    pub(crate) fn read_call<'a>(
        self,
        body: Raw<'a>,
        prepared: &'a Prepared,
        request: &'a Request,
    ) -> Result<Call<'a>> {
        match self {
            Self::OpenAi | Self::Azure => openai::read_call::read(body),
            Self::Anthropic => anthropic::read_call::read(body),
            Self::Responses => responses::read_call::read(body),
            Self::Gemini | Self::Vertex => {
                let model = request.model.as_deref().unwrap_or_default();
                let is_streamed = request.manner != Manner::Whole;
                gemini::read_call::read(body, model, is_streamed, prepared)
            }
        }
    }

    pub(crate) fn write_call(self, call: Call<'_>, request: &mut Request) -> Result<()> {
        match self {
            Self::OpenAi => openai::write_call::write(call, request),
            Self::Azure => azure::write(call, request),
            Self::Anthropic => anthropic::write_call::write(call, request),
            Self::Gemini => gemini::write_call::write(call, gemini::Place::Studio, request),
            Self::Vertex => gemini::write_call::write(call, gemini::Place::Vertex, request),
            Self::Responses => {
                let speaks = self.as_str();
                let says =
                    format!("no call is translated for a backend that speaks {speaks} alone");
                Err(Fault::new(says))
            }
        }
    }

    /// A reader of its answers, where calls are made into it.
    pub(crate) fn reader(self) -> Option<Box<dyn Reader>> {
        match self {
            Self::OpenAi | Self::Azure => Some(Box::<openai::read_answer::ChatReader>::default()),
            Self::Anthropic => Some(Box::<anthropic::read_answer::MessagesReader>::default()),
            Self::Gemini | Self::Vertex => {
                Some(Box::<gemini::read_answer::GenerateReader>::default())
            }
            Self::Responses => None,
        }
    }

    /// A writer of an answer that was begun at this second of Unix time.
    pub(crate) fn writer(
        self,
        is_streamed: bool,
        created: u64,
        asked: &Arc<Asked>,
    ) -> Box<dyn Writer> {
        match (self, is_streamed) {
            (Self::OpenAi | Self::Azure, true) => Box::new(openai::write_answer::Chunks::new(
                created,
                asked.wants_usage,
            )),
            (Self::OpenAi | Self::Azure, false) => {
                Box::new(openai::write_answer::Whole::new(created))
            }
            (Self::Anthropic, true) => Box::new(anthropic::write_answer::Events::new(asked)),
            (Self::Anthropic, false) => Box::new(anthropic::write_answer::Whole::new(asked)),
            (Self::Responses, _) => Box::new(responses::write_answer::Response::new(
                is_streamed,
                created,
                asked,
            )),
            (Self::Gemini | Self::Vertex, _) => {
                Box::new(gemini::write_answer::Generated::new(is_streamed, asked))
            }
        }
    }

    pub(crate) fn read_error(self, status: u16, json: &[u8]) -> Option<Error> {
        match self {
            Self::OpenAi | Self::Azure | Self::Responses => openai::read_error(status, json),
            Self::Anthropic => anthropic::read_error(status, json),
            Self::Gemini | Self::Vertex => gemini::read_error(status, json),
        }
    }

    pub(crate) fn write_error(self, error: &Error, json: &mut Json) {
        match self {
            Self::OpenAi | Self::Azure | Self::Responses => openai::write_error(error, json),
            Self::Anthropic => anthropic::write_error(error, json),
            Self::Gemini | Self::Vertex => gemini::write_error(error, json),
        }
    }
}
