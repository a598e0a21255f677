//! The dialects that are translated, and what each is made of: one table.

use std::sync::Arc;

use wire::dialect::Operation;
use wire::filter::{Answering, Manner, Request};
use wire::head::ResponseHead;

use crate::answer::{Asked, Error, Reader, Writer};
use crate::call::Call;
use crate::fault::{Fault, Result};
use crate::json::Json;
use crate::raw::Raw;
use crate::{anthropic, azure, bedrock, cohere, embeddings, gemini, openai, responses};

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
    /// Amazon Bedrock's `Converse`. Calls are made into it.
    Bedrock,
    /// OpenAI's, as Azure has it: each deployment of a model has a path of its own.
    Azure,
    /// Cohere's chat and embeddings. Calls are made into them.
    Cohere,
    /// Anthropic's, as Google Cloud's Vertex AI has it: each model has a path of its own.
    AnthropicOnVertex,
}

impl Dialect {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::OpenAi,
        Self::Anthropic,
        Self::Responses,
        Self::Gemini,
        Self::Vertex,
        Self::Bedrock,
        Self::Azure,
        Self::Cohere,
        Self::AnthropicOnVertex,
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
            Self::Azure => azure::SPEAKS,
            Self::Cohere => cohere::SPEAKS,
            Self::AnthropicOnVertex => anthropic::vertex::SPEAKS,
        }
    }

    /// How a model's name may begin in a path of its API where it stands for the one without that beginning; none where its bodies name
    /// the model, and paths do not.
    #[must_use]
    pub const fn path_spellings(self) -> Option<&'static [&'static str]> {
        match self {
            Self::Gemini => Some(&["models/"]),
            Self::Vertex => Some(&["models/", "publishers/", "google/"]),
            Self::AnthropicOnVertex => Some(&["models/", "publishers/", "anthropic/"]),
            Self::Azure | Self::Bedrock => Some(&[]),
            Self::OpenAi | Self::Anthropic | Self::Responses | Self::Cohere => None,
        }
    }

    /// Whether a model's name has no capitals of its own there: `GPT-5` is `gpt-5`.
    #[must_use]
    pub const fn knows_no_case(self) -> bool {
        matches!(self, Self::Azure)
    }

    /// The header in which its API takes keys.
    #[must_use]
    pub const fn key_header(self) -> &'static str {
        match self {
            // Vertex AI takes the tokens of Google Cloud, Bedrock signatures and keys of its own.
            Self::OpenAi
            | Self::Responses
            | Self::Vertex
            | Self::Bedrock
            | Self::Cohere
            | Self::AnthropicOnVertex => "authorization",
            Self::Anthropic => "x-api-key",
            Self::Gemini => "x-goog-api-key",
            Self::Azure => azure::KEY_HEADER,
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
            Self::OpenAi
            | Self::Responses
            | Self::Gemini
            | Self::Vertex
            | Self::Azure
            | Self::Cohere
            | Self::AnthropicOnVertex
            | Self::Bedrock => None,
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
            Operation::Models | Operation::Unread | Operation::Http | Operation::Mcp => true,
            Operation::GeminiModels => self == Self::Gemini,
            Operation::Messages | Operation::CountTokens => {
                matches!(self, Self::Anthropic | Self::AnthropicOnVertex)
            }
            Operation::Responses => self == Self::Responses,
            named if named.is_named_by_path() => self.is_of_google(),
            Operation::Converse => self == Self::Bedrock,
            Operation::CohereChat | Operation::CohereEmbed => self == Self::Cohere,
            Operation::Rerank => matches!(self, Self::OpenAi | Self::Azure | Self::Cohere),
            Operation::InputTokens => self == Self::Responses,
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
            Self::AnthropicOnVertex => anthropic::vertex::has(operation),
            _ => {
                let is_listing = operation == Operation::GeminiModels;
                self.is_of_google() && (is_listing || operation.is_named_by_path())
            }
        }
    }

    /// Moves such a call; what is left filters its response.
    pub(crate) fn pass(
        self,
        asked: Operation,
        request: &mut Request,
    ) -> Result<Option<Box<dyn Answering>>> {
        match self {
            Self::Gemini => gemini::pass::pass(gemini::Place::Studio, asked, request),
            Self::Vertex => gemini::pass::pass(gemini::Place::Vertex, asked, request),
            Self::Azure => azure::pass(asked, request).map(|()| None),
            Self::AnthropicOnVertex => anthropic::vertex::pass(asked, request).map(|()| None),
            Self::OpenAi | Self::Anthropic | Self::Responses | Self::Bedrock | Self::Cohere => {
                Ok(None)
            }
        }
    }

    /// What its API is asked for to embed the texts of clients of another, if it does.
    pub(crate) const fn embeds(self) -> Option<Operation> {
        match self {
            Self::Gemini | Self::Vertex => Some(Operation::EmbedContent),
            Self::Cohere => Some(Operation::CohereEmbed),
            Self::OpenAi
            | Self::Azure
            | Self::Anthropic
            | Self::AnthropicOnVertex
            | Self::Responses
            | Self::Bedrock => None,
        }
    }

    /// Writes a call that embeds texts; what reads its answer is left.
    pub(crate) fn write_embeddings(
        self,
        call: &embeddings::Call<'_>,
        request: &mut Request,
    ) -> Result<embeddings::Read> {
        match self {
            Self::Cohere => {
                cohere::embeddings::write(call, request);
                Ok(cohere::embeddings::read)
            }
            Self::Vertex => {
                gemini::embeddings::write(call, gemini::Place::Vertex, request)?;
                Ok(gemini::embeddings::read)
            }
            _ => {
                gemini::embeddings::write(call, gemini::Place::Studio, request)?;
                Ok(gemini::embeddings::read)
            }
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
            Self::Anthropic | Self::AnthropicOnVertex => Operation::Messages,
            Self::Responses => Operation::Responses,
            Self::Gemini | Self::Vertex => Operation::GenerateContent,
            Self::Bedrock => Operation::Converse,
            Self::Cohere => Operation::CohereChat,
        }
    }

    /// What is made of a body before it is read.
    pub(crate) fn prepare(self, body: Raw<'_>) -> Result<Prepared> {
        match self {
            Self::Gemini | Self::Vertex => gemini::schema::Schemas::of(body),
            _ => Ok(Prepared::default()),
        }
    }

    /// The one that a call is said in which asks what a prompt comes to.
    pub(crate) const fn asking_for_count(asked: Operation) -> Option<Self> {
        match asked {
            Operation::CountTokens => Some(Self::Anthropic),
            Operation::InputTokens => Some(Self::Responses),
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
            Self::Anthropic | Self::AnthropicOnVertex => anthropic::read_call::read_prompt(body),
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
            Self::Anthropic | Self::AnthropicOnVertex => anthropic::read_call::read(body),
            Self::Responses => responses::read_call::read(body, request.keeping.as_ref()),
            Self::Gemini | Self::Vertex => {
                let model = request.model.as_deref().unwrap_or_default();
                let is_streamed = request.manner != Manner::Whole;
                gemini::read_call::read(body, model, is_streamed, prepared)
            }
            Self::Bedrock | Self::Cohere => {
                let speaks = self.as_str();
                Err(Fault::new(format!("no call is read that speaks {speaks}")))
            }
        }
    }

    pub(crate) fn write_call(self, call: Call<'_>, request: &mut Request) -> Result<()> {
        match self {
            Self::OpenAi => openai::write_call::write(call, request),
            Self::Azure => azure::write(call, request),
            Self::Anthropic => anthropic::write_call::write(call, request),
            Self::AnthropicOnVertex => anthropic::vertex::write(call, request),
            Self::Gemini => gemini::write_call::write(call, gemini::Place::Studio, request),
            Self::Vertex => gemini::write_call::write(call, gemini::Place::Vertex, request),
            Self::Bedrock => bedrock::write_call::write(call, request),
            Self::Cohere => cohere::write_call::write(call, request),
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
            Self::OpenAi | Self::Azure => Some(Box::<openai::read_answer::ChatReader>::default()),
            Self::Anthropic | Self::AnthropicOnVertex => {
                Some(Box::<anthropic::read_answer::MessagesReader>::default())
            }
            Self::Gemini | Self::Vertex => {
                Some(Box::<gemini::read_answer::GenerateReader>::default())
            }
            Self::Bedrock => {
                let id = bedrock::id_of(head);
                let reader = bedrock::read_answer::ConverseReader::new(id, &asked.model);
                Some(Box::new(reader))
            }
            Self::Cohere => Some(Box::new(cohere::read_answer::ChatReader::new(&asked.model))),
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
            (Self::OpenAi | Self::Azure, true) => Box::new(openai::write_answer::Chunks::new(
                created,
                asked.wants_usage,
            )),
            (Self::OpenAi | Self::Azure, false) => {
                Box::new(openai::write_answer::Whole::new(created))
            }
            (Self::Anthropic | Self::AnthropicOnVertex, true) => {
                Box::new(anthropic::write_answer::Events::new(asked))
            }
            (Self::Anthropic | Self::AnthropicOnVertex, false) => {
                Box::new(anthropic::write_answer::Whole::new(asked))
            }
            (Self::Responses, _) => Box::new(responses::write_answer::Response::new(
                is_streamed,
                created,
                asked,
            )),
            (Self::Gemini | Self::Vertex, _) => {
                Box::new(gemini::write_answer::Generated::new(is_streamed, asked))
            }
            (Self::Bedrock | Self::Cohere, _) => return None,
        })
    }

    pub(crate) fn read_error(self, status: u16, json: &[u8]) -> Option<Error> {
        match self {
            Self::OpenAi | Self::Azure | Self::Responses => openai::read_error(status, json),
            // What Vertex AI itself refuses is in Google's form.
            Self::AnthropicOnVertex => {
                anthropic::read_error(status, json).or_else(|| gemini::read_error(status, json))
            }
            Self::Anthropic => anthropic::read_error(status, json),
            Self::Gemini | Self::Vertex => gemini::read_error(status, json),
            Self::Bedrock => bedrock::read_error(status, json),
            Self::Cohere => cohere::read_error(status, json),
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
            Self::Bedrock | Self::Cohere => call.model.clone().into_owned(),
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
            Self::OpenAi | Self::Azure | Self::Responses => openai::write_error(error, json),
            Self::Anthropic | Self::AnthropicOnVertex => anthropic::write_error(error, json),
            Self::Gemini | Self::Vertex => gemini::write_error(error, json),
            Self::Bedrock => bedrock::write_error(error, json),
            Self::Cohere => cohere::write_error(error, json),
        }
    }
}
