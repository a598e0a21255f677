//! The APIs that the gate reads: one table, and what follows from it.
//!
//! A dialect is one file beside this one and one line of the table below. What its calls, answers and streams hold is
//! composed from the table when the crate is compiled, so that a body is still read by one scanner.
//! Invariant: one table from method and path to operation; routing, authorisation and forwarding use its result and
//! never look at the path again.
//! Not here: path hygiene (`http1`), what is made of a member (`call`, `usage`, `sse`).

mod anthropic_messages;
mod bedrock;
pub(crate) mod cohere;
mod count_tokens;
mod description;
mod embeddings;
pub mod gemini;
mod model_name;
mod openai_chat;
mod openai_completions;
mod openai_other;
mod openai_realtime;
mod openai_responses;
mod words;

pub(crate) use bedrock::USAGE_EVENT;
pub use description::ErrorFormat;
pub(crate) use description::Name;
use description::{Body, Dialect};
pub use model_name::model_name;

use crate::head::{Method, percent_decoded};
use crate::json::is_same;

macro_rules! operations {
    ($($(#[$doc:meta])* $name:ident = $dialect:expr,)*) => {
        /// The API call that a request makes.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Operation {
            $($(#[$doc])* $name,)*
        }

        /// All operations with what is known of each.
        const TABLE: &[(Operation, Dialect)] = &[$((Operation::$name, $dialect),)*];

        impl Operation {
            /// All operations, for metric tables.
            pub const ALL: [Self; TABLE.len()] = [$(Self::$name,)*];

            #[inline]
            const fn dialect(self) -> &'static Dialect {
                match self {
                    $(Self::$name => const { &$dialect },)*
                }
            }

            /// Whether a streamed answer reports usage only when `stream_options.include_usage` asks.
            #[inline]
            #[must_use]
            pub const fn usage_on_request(self) -> bool {
                match self {
                    $(Self::$name => const { $dialect.name_of(Name::IncludeUsage, 0).is_some() },)*
                }
            }
        }
    };
}

operations! {
    /// `POST /v1/chat/completions`
    Chat = openai_chat::DIALECT,
    /// `POST /v1/completions`
    Completions = openai_completions::DIALECT,
    /// `POST /v1/responses`
    Responses = openai_responses::DIALECT,
    /// `POST /v1/messages`, Anthropic's
    Messages = anthropic_messages::DIALECT,
    /// `POST /v1/embeddings`
    Embeddings = embeddings::DIALECT,
    /// `GET /v1/models` and `GET /v1/models/{id}`
    Models = Dialect { name: "models", ..Dialect::UNREAD },
    /// `POST /v1/messages/count_tokens`, Anthropic's, which costs nothing.
    CountTokens = count_tokens::MESSAGES,
    /// `POST /v1/responses/input_tokens`, which costs nothing.
    InputTokens = count_tokens::RESPONSES,
    /// `POST /v1/moderations`
    Moderations = openai_other::MODERATIONS,
    /// `POST /v1/rerank`, `POST /v2/rerank` and `POST /v1/score`, as Cohere, Jina and vLLM have them
    Rerank = openai_other::RERANK,
    /// `POST /v1/audio/speech`
    Speech = openai_other::SPEECH,
    /// `POST /v1/audio/transcriptions` and `POST /v1/audio/translations`: a form.
    Transcriptions = openai_other::TRANSCRIPTIONS,
    /// `POST /v1/images/generations`
    Images = openai_other::IMAGES,
    /// `POST /v1/images/edits` and `POST /v1/images/variations`: a form.
    ImageEdits = openai_other::IMAGE_EDITS,
    /// Google's `POST /v1beta/models/{model}:generateContent` and `:streamGenerateContent`
    GenerateContent = gemini::GENERATE,
    /// Google's `POST /v1beta/models/{model}:countTokens`, which costs nothing.
    CountContent = gemini::COUNT,
    /// Google's `POST /v1beta/models/{model}:embedContent` and `:batchEmbedContents`
    EmbedContent = gemini::EMBED,
    /// Google's `GET /v1beta/models` and `GET /v1beta/models/{model}`, and Vertex AI's of the models of publishers
    GeminiModels = gemini::LISTED,
    /// Amazon Bedrock's `Converse`, which a backend may be asked for in place of what the client says.
    Converse = bedrock::DIALECT,
    /// Cohere's chat, which a backend may be asked for in place of what the client says.
    CohereChat = cohere::CHAT,
    /// The same of texts that are to be embedded.
    CohereEmbed = cohere::EMBED,
    /// A call that a route lists and lets through unread.
    Unread = Dialect { name: "unread", ..Dialect::UNREAD },
    /// A call of plain HTTP, to a service that serves no model; no path of this table is one.
    Http = Dialect { name: "http", provider: "", ..Dialect::UNREAD },
    /// `GET /v1/responses` that becomes a WebSocket, each of whose calls is one of its own.
    ResponsesSocket = Dialect { name: "responses_socket", ..Dialect::UNREAD },
    /// `GET /v1/realtime` that becomes a WebSocket, each of whose answers is a call of its own.
    RealtimeSocket = openai_realtime::SOCKET,
    /// A response that the gate itself keeps is asked for, or removed; no path of this table is one.
    KeptResponse = Dialect { name: "kept_response", ..Dialect::UNREAD },
    /// An answer on such a WebSocket; no path of this table is one.
    Realtime = openai_realtime::RESPONSE,
    /// A message to servers of tools (the Model Context Protocol); no path of this table is one.
    Mcp = Dialect { name: "mcp", provider: "", ..Dialect::UNREAD },
}

/// Why a path and method name no operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unknown {
    /// Not under `/v1/`.
    Path,
    /// The path exists, with these methods (the `allow` header).
    Method(&'static str),
    /// Under `/v1/`, and not in the table.
    Operation,
}

/// The paths below `/v1/` that are known and take POST.
static POSTED: [(&str, Operation); PATHS] = {
    let mut posted = [("", Operation::Unread); PATHS];
    let (mut row, mut at) = (0, 0);
    while row < TABLE.len() {
        let mut paths = TABLE[row].1.paths;
        while let Some((path, rest)) = paths.split_first() {
            posted[at] = (*path, TABLE[row].0);
            at += 1;
            paths = rest;
        }
        row += 1;
    }
    posted
};

const PATHS: usize = {
    let (mut row, mut count) = (0, 0);
    while row < TABLE.len() {
        count += TABLE[row].1.paths.len();
        row += 1;
    }
    count
};

/// The path that matters most.
const CHAT: &str = openai_chat::DIALECT.paths[0];
/// Cohere's newest version of a call whose members are the same in all.
const RERANK_V2: &str = "/v2/rerank";
/// The path of the models; one of them is named below it.
pub const MODELS: &str = "models";

/// The paths below `/v1/` that are known and take POST.
pub fn posted_paths() -> impl Iterator<Item = &'static str> {
    POSTED.iter().map(|(path, _)| *path)
}

impl Operation {
    /// The name used in metrics (`gen_ai_operation_name`) and the access log.
    #[inline]
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.dialect().name
    }

    /// Whose API it is, as OpenTelemetry names providers.
    #[must_use]
    pub fn provider(self) -> &'static str {
        self.dialect().provider
    }

    /// Whether the body is JSON or a form that policy reads.
    #[inline]
    #[must_use]
    pub fn reads_body(self) -> bool {
        !matches!(self.dialect().body, Body::Unread)
    }

    /// Whether the path names the model, and how the answer is to come.
    #[inline]
    #[must_use]
    pub fn is_named_by_path(self) -> bool {
        self.dialect().body == Body::NamedJson
    }

    /// Whether the body is a form, or JSON in its place.
    #[inline]
    #[must_use]
    pub fn is_form(self) -> bool {
        self.dialect().body == Body::Form
    }

    /// Whether a good answer can only be JSON or a stream of events.
    #[inline]
    #[must_use]
    pub fn answers_json(self) -> bool {
        self.dialect().answers_json
    }

    /// Whether the answer may report its usage.
    #[inline]
    #[must_use]
    pub fn reports_usage(self) -> bool {
        self.dialect().reports_usage
    }

    /// Whether limits of tokens and budgets count it by what it says and what is reported of it.
    #[inline]
    #[must_use]
    pub fn is_metered(self) -> bool {
        self.dialect().is_metered
    }

    /// Whether the answer is generated text that costs completion tokens.
    #[inline]
    #[must_use]
    pub fn generates(self) -> bool {
        self.dialect().generates
    }

    /// Whether it asks which models there are, or what one of them is.
    #[inline]
    #[must_use]
    pub fn lists_models(self) -> bool {
        matches!(self, Self::Models | Self::GeminiModels)
    }

    /// Whether the gate alone answers it, whatever is configured.
    #[must_use]
    pub fn is_answered_here(self) -> bool {
        matches!(self, Self::KeptResponse | Self::ResponsesSocket)
    }

    /// The members of its body that say who is behind the call, the first that says it first.
    pub(crate) fn user_members(self) -> impl Iterator<Item = &'static str> {
        (0..).map_while(move |nth| self.dialect().name_of(Name::User, nth))
    }

    /// Whether its body may name what the upstream keeps of earlier calls.
    #[must_use]
    pub fn keeps_state(self) -> bool {
        let kept = [
            Name::PreviousResponse,
            Name::Conversation,
            Name::Container,
            Name::Cached,
        ];
        kept.into_iter()
            .any(|name| self.dialect().name_of(name, 0).is_some())
    }

    /// Reads method and path. [`Unread`](Self::Unread) is what a route may list and must, to be let
    /// through.
    ///
    /// # Errors
    /// [`Unknown`] when nothing here answers to them, and no route could.
    #[inline]
    pub fn of(method: Method, path: &str) -> Result<Self, Unknown> {
        let Some(rest) = path.strip_prefix("/v1/") else {
            return Self::of_named(method, path);
        };
        // The one that matters most, without a look through the others.
        if rest == CHAT && method == Method::Post {
            return Ok(Self::Chat);
        }
        Self::of_rest(method, rest)
    }

    #[cold]
    fn of_named(method: Method, path: &str) -> Result<Self, Unknown> {
        if path == RERANK_V2 {
            return match method {
                Method::Post => Ok(Self::Rerank),
                _ => Err(Unknown::Method("POST")),
            };
        }
        match (gemini::Named::of(path), method) {
            (Some(named), Method::Post) => return Ok(named.operation),
            (Some(_), _) => return Err(Unknown::Method("POST")),
            (None, _) => {}
        }
        let listed = gemini::Listed::of(path).ok_or(Unknown::Path)?;
        match method {
            Method::Get | Method::Head => Ok(Self::GeminiModels),
            // A call of Google's that the gate does not know.
            _ if listed.model.is_some_and(|model| model.contains(':')) => Err(Unknown::Path),
            _ => Err(Unknown::Method("GET, HEAD")),
        }
    }

    fn of_rest(method: Method, rest: &str) -> Result<Self, Unknown> {
        if rest.is_empty() {
            return Err(Unknown::Path);
        }
        let posted = POSTED.iter().find(|(known, _)| *known == rest);
        match (method, posted) {
            (Method::Post, Some((_, operation))) => Ok(*operation),
            (Method::Post, None) => Ok(named_below_root(rest).unwrap_or(Self::Unread)),
            (Method::Get | Method::Head, Some(_)) => Ok(Self::Unread),
            (_, Some(_)) => Err(Unknown::Method("POST")),
            (Method::Get | Method::Head, None) if is_models(rest) => Ok(Self::Models),
            (Method::Get | Method::Head, None) if is_listed_below_root(rest) => {
                Ok(Self::GeminiModels)
            }
            (Method::Options | Method::Other, None) if rest == MODELS => {
                Err(Unknown::Method("GET, HEAD"))
            }
            (Method::Options | Method::Other, None) => {
                Err(Unknown::Method("GET, HEAD, POST, PUT, PATCH, DELETE"))
            }
            _ => Ok(Self::Unread),
        }
    }

    /// Why a call that no route lists is refused.
    #[must_use]
    pub fn unlisted(path: &str) -> Unknown {
        let rest = path.strip_prefix("/v1/").unwrap_or_default();
        if posted_paths().any(|known| known == rest) {
            Unknown::Method("POST")
        } else if rest == MODELS {
            Unknown::Method("GET, HEAD")
        } else {
            Unknown::Operation
        }
    }
}

/// The call of Google's that stands below the root of both APIs.
#[cold]
fn named_below_root(rest: &str) -> Option<Operation> {
    if !rest.contains(':') {
        return None;
    }
    let below = format!("/{rest}");
    gemini::Named::below_root(&below).map(|named| named.operation)
}

/// Whether this is the list of a publisher's models at Vertex AI, or one of them.
#[cold]
fn is_listed_below_root(rest: &str) -> bool {
    is_of_vertex(rest) && gemini::Listed::of(&format!("/v1/{rest}")).is_some()
}

/// Whether what follows `/v1/` lies below one of Vertex AI's collections, which OpenAI's API does not have.
fn is_of_vertex(rest: &str) -> bool {
    rest.starts_with("publishers/") || rest.starts_with("projects/")
}

/// Whether this is the list of the models, or one of them.
fn is_models(rest: &str) -> bool {
    let Some(name) = rest.strip_prefix(MODELS) else {
        return false;
    };
    if name.is_empty() {
        return true;
    }
    let Some(name) = name.strip_prefix('/') else {
        return false;
    };
    let name = percent_decoded(name);
    let is_good =
        |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b':' | b'/' | b'@' | b'-');
    (1..=model_name::BYTES_MAX).contains(&name.len())
        && name.iter().all(is_good)
        && !name.ends_with(b"/")
}

impl ErrorFormat {
    /// What the callers of a path expect: that of the API whose path it is, or lies below.
    #[must_use]
    pub fn of(path: &str) -> Self {
        // The root that a base URL has already may stand before the one that an SDK adds.
        let path = match path.strip_prefix("/v1") {
            Some(rest) if rest.starts_with("/v1") => rest,
            _ => path,
        };
        match path.strip_prefix("/v1/") {
            Some(rest) => Self::below_root(rest),
            None if path.starts_with("/v1beta/") || path.starts_with("/v1beta1/") => Self::Google,
            None => Self::default(),
        }
    }

    /// The same of what follows `/v1/`.
    #[must_use]
    pub fn below_root(rest: &str) -> Self {
        if is_of_vertex(rest) {
            return Self::Google;
        }
        let is_below = |(known, _): &&(&str, Operation)| {
            let below = rest.strip_prefix(known);
            below.is_some_and(|below| below.is_empty() || below.starts_with('/'))
        };
        let api = POSTED
            .iter()
            .find(is_below)
            .map(|(_, operation)| *operation);
        let api = api.or_else(|| named_below_root(rest));
        api.map_or(Self::default(), |operation| operation.dialect().errors)
    }

    /// What stands before the member `error`. Anthropic's body is OpenAI's with a `type` around it, so that either
    /// kind of client finds what it looks for.
    #[must_use]
    pub fn opening(self) -> &'static str {
        match self {
            Self::OpenAi | Self::Google => "{",
            Self::Anthropic => "{\"type\":\"error\",",
        }
    }

    /// The type of an error with this status, which OpenAI calls `kind`.
    #[must_use]
    pub fn error_type(self, status: u16, kind: &'static str) -> &'static str {
        match self {
            Self::OpenAi => kind,
            Self::Anthropic => anthropic_messages::error_type(status),
            Self::Google => gemini::error_status(status),
        }
    }
}

/// The different names that dialects have for this, in the order of the table. `N` must be their number: a dialect
/// with a new name does not compile until its reader has a place for it.
pub(crate) const fn names<const N: usize>(of: Name) -> [&'static str; N] {
    let mut names = [""; N];
    let (mut row, mut count) = (0, 0);
    while row < TABLE.len() {
        let mut nth = 0;
        while let Some(name) = TABLE[row].1.name_of(of, nth) {
            let mut known = 0;
            while known < count && !is_same(names[known].as_bytes(), name.as_bytes()) {
                known += 1;
            }
            if known == count {
                names[count] = name;
                count += 1;
            }
            nth += 1;
        }
        row += 1;
    }
    assert!(count == N, "another number of names");
    names
}

/// What follows the API's root in the path of a call of the table.
#[inline]
#[must_use]
pub fn below_root(path: &str) -> &str {
    match path.strip_prefix("/v1") {
        Some(below) => below,
        None if path == RERANK_V2 => "/rerank",
        None => "",
    }
}

/// The only name that dialects have for this.
pub(crate) const fn name(of: Name) -> &'static str {
    let [name] = names(of);
    name
}

#[cfg(test)]
mod tests;
