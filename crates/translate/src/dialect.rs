//! The dialects that are translated, and what each is made of: one table.

use std::sync::Arc;

use wire::dialect::Operation;
use wire::filter::Request;
use wire::head::ResponseHead;

use crate::answer::{Asked, Error, Reader, Writer};
use crate::call::Call;
use crate::fault::{Fault, Result};
use crate::json::Json;
use crate::raw::Raw;
use crate::{anthropic, bedrock, gemini, openai, responses};

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
    /// Amazon Bedrock's `Converse`. Calls are made into it.
    Bedrock,
}

impl Dialect {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::OpenAi,
        Self::Anthropic,
        Self::Responses,
        Self::Gemini,
        Self::Vertex,
        Self::Bedrock,
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
            Self::Bedrock => bedrock::SPEAKS,
        }
    }

    /// The header in which its API takes keys.
    #[must_use]
    pub const fn key_header(self) -> &'static str {
        match self {
            // Vertex AI takes the tokens of Google Cloud, Bedrock signatures and keys of its own.
            Self::OpenAi | Self::Responses | Self::Vertex | Self::Bedrock => "authorization",
            Self::Anthropic => "x-api-key",
            Self::Gemini => "x-goog-api-key",
        }
    }

    /// Whether its API is at the root of the service's address.
    #[must_use]
    pub const fn is_at_root(self) -> bool {
        matches!(self, Self::Bedrock)
    }

    /// The header that says which version of the API is spoken, where each call needs one.
    #[must_use]
    pub const fn version_header(self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::OpenAi | Self::Responses | Self::Gemini | Self::Vertex | Self::Bedrock => None,
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
            Operation::Models | Operation::Unread | Operation::Http => true,
            Operation::Messages => self == Self::Anthropic,
            Operation::Responses => self == Self::Responses,
            Operation::GenerateContent => self.is_of_google(),
            Operation::Converse => self == Self::Bedrock,
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
            Self::Bedrock => Operation::Converse,
        }
    }

    pub(crate) fn read_call(self, body: Raw<'_>) -> Result<Call<'_>> {
        match self {
            Self::OpenAi => openai::read_call::read(body),
            Self::Anthropic => anthropic::read_call::read(body),
            Self::Responses => responses::read_call::read(body),
            Self::Gemini | Self::Vertex | Self::Bedrock => {
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
            Self::Bedrock => bedrock::write_call::write(call, request),
            Self::Responses => {
                let speaks = self.as_str();
                let says =
                    format!("no call is translated for a backend that speaks {speaks} alone");
                Err(Fault::new(says))
            }
        }
    }

    /// A reader of the answer that begins with this head, where calls are made into it.
    pub(crate) fn reader(self, head: &ResponseHead, asked: &Asked) -> Option<Box<dyn Reader>> {
        match self {
            Self::OpenAi => Some(Box::<openai::read_answer::ChatReader>::default()),
            Self::Anthropic => Some(Box::<anthropic::read_answer::MessagesReader>::default()),
            Self::Gemini | Self::Vertex => {
                Some(Box::<gemini::read_answer::GenerateReader>::default())
            }
            Self::Bedrock => {
                let id = bedrock::id_of(head);
                let reader = bedrock::read_answer::ConverseReader::new(id, &asked.model);
                Some(Box::new(reader))
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
            (Self::Gemini | Self::Vertex | Self::Bedrock, _) => return None,
        })
    }

    pub(crate) fn read_error(self, status: u16, json: &[u8]) -> Option<Error> {
        match self {
            Self::OpenAi | Self::Responses => openai::read_error(status, json),
            Self::Anthropic => anthropic::read_error(status, json),
            Self::Gemini | Self::Vertex => gemini::read_error(status, json),
            Self::Bedrock => bedrock::read_error(status, json),
        }
    }

    /// Which error an answer with this head is, where its document does not say it.
    pub(crate) fn error_of(self, head: &ResponseHead) -> Option<&str> {
        match self {
            Self::Bedrock => bedrock::error_of(head),
            _ => None,
        }
    }

    /// An error that its head names.
    pub(crate) fn named(self, error: Error, kind: &str) -> Error {
        match self {
            Self::Bedrock => bedrock::named(error, kind),
            _ => error,
        }
    }

    /// The model of this call, where its answer will not tell it.
    pub(crate) fn untold_model(self, call: &Call<'_>) -> String {
        match self {
            Self::Bedrock => call.model.clone().into_owned(),
            _ => String::new(),
        }
    }

    /// Whether the client of this call is shown what signs a thought, to send it again.
    pub(crate) fn shows_thinking(self, call: &Call<'_>) -> bool {
        // Models of Anthropic's sign thoughts that they do not show.
        let thinking = call.of_anthropic.and_then(|said| said.thinking);
        call.shows_thinking || (self == Self::Bedrock && thinking.is_some())
    }

    pub(crate) fn write_error(self, error: &Error, json: &mut Json) {
        match self {
            Self::OpenAi | Self::Responses => openai::write_error(error, json),
            Self::Anthropic => anthropic::write_error(error, json),
            Self::Gemini | Self::Vertex => gemini::write_error(error, json),
            Self::Bedrock => bedrock::write_error(error, json),
        }
    }
}
