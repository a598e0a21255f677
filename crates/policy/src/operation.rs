//! What a path asks for.
//!
//! Invariant: one table from method and path to operation; routing, authorisation and forwarding use
//! its result and never look at the path again. What is not in the table goes nowhere, unless a
//! route lists it ([`crate::unread`]).
//! Not here: path hygiene (`wire::http1`), which backend serves it (`route`).

use wire::head::Method;

use crate::credential::percent_decoded;

/// The API call that a request makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Operation {
    /// `POST /v1/chat/completions`
    Chat,
    /// `POST /v1/completions`
    Completions,
    /// `POST /v1/responses`
    Responses,
    /// `POST /v1/messages`, Anthropic's
    Messages,
    /// `POST /v1/embeddings`
    Embeddings,
    /// `GET /v1/models` and `GET /v1/models/{id}`
    Models,
    /// `POST /v1/messages/count_tokens` and `POST /v1/responses/input_tokens`: cost nothing.
    CountTokens,
    /// `POST /v1/moderations`
    Moderations,
    /// `POST /v1/rerank` and `POST /v1/score`, as vLLM has them
    Rerank,
    /// `POST /v1/audio/speech`
    Speech,
    /// `POST /v1/audio/transcriptions` and `POST /v1/audio/translations`: a form, not read.
    Transcriptions,
    /// `POST /v1/images/generations`
    Images,
    /// `POST /v1/images/edits` and `POST /v1/images/variations`: a form, not read.
    ImageEdits,
    /// A call that a route lists and lets through unread.
    Unread,
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
const POSTED: [(&str, Operation); 16] = [
    ("chat/completions", Operation::Chat),
    ("completions", Operation::Completions),
    ("responses", Operation::Responses),
    ("messages", Operation::Messages),
    ("embeddings", Operation::Embeddings),
    ("messages/count_tokens", Operation::CountTokens),
    ("responses/input_tokens", Operation::CountTokens),
    ("moderations", Operation::Moderations),
    ("rerank", Operation::Rerank),
    ("score", Operation::Rerank),
    ("audio/speech", Operation::Speech),
    ("audio/transcriptions", Operation::Transcriptions),
    ("audio/translations", Operation::Transcriptions),
    ("images/generations", Operation::Images),
    ("images/edits", Operation::ImageEdits),
    ("images/variations", Operation::ImageEdits),
];

/// The path of a call that takes POST and that this path ends with, without a `/` before it. An API's root never
/// does.
#[must_use]
pub fn call_at_end(path: &str) -> Option<&'static str> {
    let at_end = |call: &&'static str| {
        let root = path.strip_suffix(*call);
        root.is_some_and(|root| root.ends_with('/'))
    };
    POSTED.iter().map(|(call, _)| *call).find(at_end)
}

/// The path of the models; one of them is named below it.
const MODELS: &str = "models";
/// Longest name of a model in a path, decoded.
const MODEL_BYTES: usize = 256;

impl Operation {
    /// The name used in metrics (`gen_ai_operation_name`) and the access log.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Completions => "text_completion",
            Self::Responses => "responses",
            Self::Messages => "messages",
            Self::Embeddings => "embeddings",
            Self::Models => "models",
            Self::CountTokens => "count_tokens",
            Self::Moderations => "moderations",
            Self::Rerank => "rerank",
            Self::Speech => "speech",
            Self::Transcriptions => "transcriptions",
            Self::Images => "images",
            Self::ImageEdits => "image_edits",
            Self::Unread => "unread",
        }
    }

    /// All operations, for metric tables.
    pub const ALL: [Self; 14] = [
        Self::Chat,
        Self::Completions,
        Self::Responses,
        Self::Messages,
        Self::Embeddings,
        Self::Models,
        Self::CountTokens,
        Self::Moderations,
        Self::Rerank,
        Self::Speech,
        Self::Transcriptions,
        Self::Images,
        Self::ImageEdits,
        Self::Unread,
    ];

    /// Whether the body is JSON that policy reads.
    #[must_use]
    pub fn reads_body(self) -> bool {
        match self {
            Self::Chat
            | Self::Completions
            | Self::Responses
            | Self::Messages
            | Self::Embeddings
            | Self::CountTokens
            | Self::Moderations
            | Self::Rerank
            | Self::Speech
            | Self::Images => true,
            Self::Models | Self::Transcriptions | Self::ImageEdits | Self::Unread => false,
        }
    }

    /// Whether the body is a form, whose model policy does not read.
    #[must_use]
    pub fn is_form(self) -> bool {
        matches!(self, Self::Transcriptions | Self::ImageEdits)
    }

    /// Whether a good answer can only be JSON or a stream of events.
    #[must_use]
    pub fn answers_json(self) -> bool {
        self.reads_body() && self != Self::Speech
    }

    /// Whether the answer may report its usage.
    #[must_use]
    pub fn reports_usage(self) -> bool {
        !matches!(self, Self::Models | Self::CountTokens | Self::Unread)
    }

    /// Whether limits of tokens and budgets count it by what it says and what is reported of it.
    #[must_use]
    pub fn is_metered(self) -> bool {
        self.reads_body() && self != Self::CountTokens
    }

    /// Whether its body may name what the upstream keeps of earlier calls.
    #[must_use]
    pub fn keeps_state(self) -> bool {
        matches!(self, Self::Responses | Self::Messages | Self::CountTokens)
    }

    /// Whether a streamed answer reports usage only when `stream_options.include_usage` asks.
    #[must_use]
    pub fn usage_on_request(self) -> bool {
        matches!(self, Self::Chat | Self::Completions)
    }

    /// Whether the answer is generated text that costs completion tokens.
    #[must_use]
    pub fn generates(self) -> bool {
        matches!(
            self,
            Self::Chat | Self::Completions | Self::Responses | Self::Messages
        )
    }

    /// Reads method and path. [`Unread`](Self::Unread) is what a route may list and must, to be let
    /// through.
    ///
    /// # Errors
    /// [`Unknown`] when nothing here answers to them, and no route could.
    pub fn of(method: Method, path: &str) -> Result<Self, Unknown> {
        let Some(rest) = path.strip_prefix("/v1/") else {
            return Err(Unknown::Path);
        };
        // The one that matters most, without a look through the others.
        if rest == "chat/completions" && method == Method::Post {
            return Ok(Self::Chat);
        }
        if rest.is_empty() {
            return Err(Unknown::Path);
        }
        let posted = POSTED.iter().find(|(known, _)| *known == rest);
        match (method, posted) {
            (Method::Post, Some((_, operation))) => Ok(*operation),
            (Method::Get | Method::Head, Some(_)) => Ok(Self::Unread),
            (_, Some(_)) => Err(Unknown::Method("POST")),
            (Method::Get | Method::Head, None) if is_models(rest) => Ok(Self::Models),
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
    pub(crate) fn unlisted(path: &str) -> Unknown {
        let rest = path.strip_prefix("/v1/").unwrap_or_default();
        if POSTED.iter().any(|(known, _)| *known == rest) {
            Unknown::Method("POST")
        } else if rest == MODELS {
            Unknown::Method("GET, HEAD")
        } else {
            Unknown::Operation
        }
    }
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
    (1..=MODEL_BYTES).contains(&name.len()) && name.iter().all(is_good) && !name.ends_with(b"/")
}

/// Whether a segment of a path stands in the path of an operation that is known, in any case, or says
/// the version of an API.
pub(crate) fn is_taken(segment: &str) -> bool {
    let known = POSTED.iter().map(|(known, _)| *known).chain([MODELS]);
    let is_word = known
        .flat_map(|known| known.split('/'))
        .any(|word| word.eq_ignore_ascii_case(segment));
    is_word || is_version(segment)
}

/// `v1`, `v1beta`, `V2`.
pub(crate) fn is_version(segment: &str) -> bool {
    matches!(segment.as_bytes(), [b'v' | b'V', digit, ..] if digit.is_ascii_digit())
}

/// The paths below `/v1/` that are known and take POST.
#[cfg(test)]
pub(crate) fn known_paths() -> Vec<String> {
    POSTED.iter().map(|(path, _)| (*path).to_owned()).collect()
}

#[cfg(test)]
mod tests;
