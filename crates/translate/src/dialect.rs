//! The dialects that are translated, and what each is made of: one table.

use wire::dialect::Operation;
use wire::filter::Request;

use crate::answer::{Error, Reader, Writer};
use crate::call::Call;
use crate::fault::Result;
use crate::json::Json;
use crate::raw::Raw;
use crate::{anthropic, openai};

/// An API that backends speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// OpenAI's and its kin's.
    OpenAi,
    /// Anthropic's.
    Anthropic,
}

impl Dialect {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::OpenAi, Self::Anthropic];

    /// Its name in a configuration.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::OpenAi => openai::write_call::SPEAKS,
            Self::Anthropic => anthropic::write_call::SPEAKS,
        }
    }

    /// The header in which its API takes keys.
    #[must_use]
    pub const fn key_header(self) -> &'static str {
        match self {
            Self::OpenAi => "authorization",
            Self::Anthropic => "x-api-key",
        }
    }

    /// The one that a call is said in, where it is one of a conversation that can be said in another.
    pub(crate) const fn of(operation: Operation) -> Option<Self> {
        match operation {
            Operation::Chat => Some(Self::OpenAi),
            Operation::Messages => Some(Self::Anthropic),
            _ => None,
        }
    }

    /// Whether it has this call as the client says it.
    pub(crate) fn has(self, operation: Operation) -> bool {
        match operation {
            // The list of models is of the gate itself, and what a route lets through unread nobody reads.
            Operation::Models | Operation::Unread | Operation::Http | Operation::Mcp => true,
            Operation::Messages => self == Self::Anthropic,
            // Counting has one operation for both.
            Operation::CountTokens => true,
            _ => self == Self::OpenAi,
        }
    }

    /// Its call of a conversation.
    pub(crate) const fn operation(self) -> Operation {
        match self {
            Self::OpenAi => Operation::Chat,
            Self::Anthropic => Operation::Messages,
        }
    }

    pub(crate) fn read_call(self, body: Raw<'_>) -> Result<Call<'_>> {
        match self {
            Self::OpenAi => openai::read_call::read(body),
            Self::Anthropic => anthropic::read_call::read(body),
        }
    }

    pub(crate) fn write_call(self, call: Call<'_>, request: &mut Request) -> Result<()> {
        match self {
            Self::OpenAi => openai::write_call::write(call, request),
            Self::Anthropic => anthropic::write_call::write(call, request),
        }
    }

    pub(crate) fn reader(self) -> Box<dyn Reader> {
        match self {
            Self::OpenAi => Box::<openai::read_answer::ChatReader>::default(),
            Self::Anthropic => Box::<anthropic::read_answer::MessagesReader>::default(),
        }
    }

    /// A writer of an answer that was begun at this second of Unix time.
    pub(crate) fn writer(
        self,
        is_streamed: bool,
        created: u64,
        wants_usage: bool,
    ) -> Box<dyn Writer> {
        match (self, is_streamed) {
            (Self::OpenAi, true) => {
                Box::new(openai::write_answer::Chunks::new(created, wants_usage))
            }
            (Self::OpenAi, false) => Box::new(openai::write_answer::Whole::new(created)),
            (Self::Anthropic, true) => Box::<anthropic::write_answer::Events>::default(),
            (Self::Anthropic, false) => Box::<anthropic::write_answer::Whole>::default(),
        }
    }

    pub(crate) fn read_error(self, status: u16, json: &[u8]) -> Option<Error> {
        match self {
            Self::OpenAi => openai::read_error(status, json),
            Self::Anthropic => anthropic::read_error(status, json),
        }
    }

    pub(crate) fn write_error(self, error: &Error, json: &mut Json) {
        match self {
            Self::OpenAi => openai::write_error(error, json),
            Self::Anthropic => anthropic::write_error(error, json),
        }
    }
}
