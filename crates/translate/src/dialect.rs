//! The dialects that are translated, and what each is made of: one table.

use std::sync::Arc;

use wire::dialect::Operation;
use wire::filter::Request;

use crate::answer::{Asked, Error, Reader, Writer};
use crate::call::Call;
use crate::fault::{Fault, Result};
use crate::json::Json;
use crate::raw::Raw;
use crate::{anthropic, gemini, openai, responses};

/// An API that backends speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// OpenAI's and its kin's.
    OpenAi,
    /// Anthropic's.
    Anthropic,
    /// OpenAI's Responses, which its kin does not all have. Calls are read in it, and made into others.
    Responses,
    /// Google's, as its AI Studio has it. Calls are made into it.
    Gemini,
    /// The same, as Google Cloud's Vertex AI has it.
    Vertex,
}

impl Dialect {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::OpenAi,
        Self::Anthropic,
        Self::Responses,
        Self::Gemini,
        Self::Vertex,
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
        }
    }

    /// The header that says which version of the API is spoken, where each call needs one.
    #[must_use]
    pub const fn version_header(self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::OpenAi | Self::Responses | Self::Gemini | Self::Vertex => None,
            Self::Anthropic => Some(anthropic::VERSION),
        }
    }

    /// The one that a call is said in, where it is one of a conversation that can be said in another.
    pub(crate) const fn of(operation: Operation) -> Option<Self> {
        match operation {
            Operation::Chat => Some(Self::OpenAi),
            Operation::Messages => Some(Self::Anthropic),
            Operation::Responses => Some(Self::Responses),
            _ => None,
        }
    }

    /// Whether it has this call as the client says it.
    pub(crate) fn has(self, operation: Operation) -> bool {
        match operation {
            // The list of models is of the gate itself, and what a route lets through unread nobody reads.
            Operation::Models | Operation::Unread | Operation::Http | Operation::Mcp => true,
            Operation::Messages => self == Self::Anthropic,
            Operation::Responses => self == Self::Responses,
            Operation::GenerateContent => self.is_of_google(),
            // Anthropic's and Responses' have one operation.
            Operation::CountTokens => matches!(self, Self::Anthropic | Self::Responses),
            _ => self == Self::OpenAi,
        }
    }

    const fn is_of_google(self) -> bool {
        matches!(self, Self::Gemini | Self::Vertex)
    }

    /// Whether clients speak it to the gate.
    #[cfg(test)]
    pub(crate) const fn is_source(self) -> bool {
        Self::of(self.operation()).is_some()
    }

    /// Whether calls of others are made into it.
    pub(crate) const fn is_target(self) -> bool {
        !matches!(self, Self::Responses)
    }

    /// Its call of a conversation.
    pub(crate) const fn operation(self) -> Operation {
        match self {
            Self::OpenAi => Operation::Chat,
            Self::Anthropic => Operation::Messages,
            Self::Responses => Operation::Responses,
            Self::Gemini | Self::Vertex => Operation::GenerateContent,
        }
    }

    pub(crate) fn read_call(self, body: Raw<'_>) -> Result<Call<'_>> {
        match self {
            Self::OpenAi => openai::read_call::read(body),
            Self::Anthropic => anthropic::read_call::read(body),
            Self::Responses => responses::read_call::read(body),
            Self::Gemini | Self::Vertex => {
                let speaks = self.as_str();
                Err(Fault::new(format!("no call is read that speaks {speaks}")))
            }
        }
    }

    pub(crate) fn write_call(self, call: Call<'_>, request: &mut Request) -> Result<()> {
        match self {
            Self::OpenAi => openai::write_call::write(call, request),
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
            Self::OpenAi => Some(Box::<openai::read_answer::ChatReader>::default()),
            Self::Anthropic => Some(Box::<anthropic::read_answer::MessagesReader>::default()),
            Self::Gemini | Self::Vertex => {
                Some(Box::<gemini::read_answer::GenerateReader>::default())
            }
            Self::Responses => None,
        }
    }

    /// A writer of an answer that was begun at this second of Unix time, where clients speak it.
    pub(crate) fn writer(
        self,
        is_streamed: bool,
        created: u64,
        asked: &Arc<Asked>,
    ) -> Option<Box<dyn Writer>> {
        Some(match (self, is_streamed) {
            (Self::OpenAi, true) => Box::new(openai::write_answer::Chunks::new(
                created,
                asked.wants_usage,
            )),
            (Self::OpenAi, false) => Box::new(openai::write_answer::Whole::new(created)),
            (Self::Anthropic, true) => Box::new(anthropic::write_answer::Events::new(asked)),
            (Self::Anthropic, false) => Box::new(anthropic::write_answer::Whole::new(asked)),
            (Self::Responses, _) => Box::new(responses::write_answer::Response::new(
                is_streamed,
                created,
                asked,
            )),
            (Self::Gemini | Self::Vertex, _) => return None,
        })
    }

    pub(crate) fn read_error(self, status: u16, json: &[u8]) -> Option<Error> {
        match self {
            Self::OpenAi | Self::Responses => openai::read_error(status, json),
            Self::Anthropic => anthropic::read_error(status, json),
            Self::Gemini | Self::Vertex => gemini::read_error(status, json),
        }
    }

    pub(crate) fn write_error(self, error: &Error, json: &mut Json) {
        match self {
            Self::OpenAi | Self::Responses => openai::write_error(error, json),
            Self::Anthropic => anthropic::write_error(error, json),
            Self::Gemini | Self::Vertex => gemini::write_error(error, json),
        }
    }
}
