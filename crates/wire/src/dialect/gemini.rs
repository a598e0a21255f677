//! Google's calls, which name their model in the path, and by its last word what is asked for
//! (<https://ai.google.dev/api/generate-content>, <https://ai.google.dev/api/tokens>, <https://ai.google.dev/api/embeddings>).
//!
//! What the model thought is beside `candidatesTokenCount`, and what its tools gave it beside `promptTokenCount`.
//! Invariant: a path of this form has one meaning; a name that no body could have is none.

use std::borrow::Cow;

use super::Operation;
use super::description::{Body, Dialect, ErrorFormat, Name};
use super::model_name::model_name;
use crate::head::percent_decoded;

/// `generateContent` and `streamGenerateContent`.
pub(super) const GENERATE: Dialect = Dialect {
    name: "generate_content",
    reports: &[
        (Name::Usage, "usageMetadata"),
        (Name::PromptTokens, "promptTokenCount"),
        (Name::PromptBeside, "toolUsePromptTokenCount"),
        (Name::CompletionTokens, "candidatesTokenCount"),
        (Name::ReasoningBeside, "thoughtsTokenCount"),
        (Name::TotalTokens, "totalTokenCount"),
        (Name::CachedBeside, "cachedContentTokenCount"),
        (Name::PromptModalities, "promptTokensDetails"),
        (Name::CompletionModalities, "candidatesTokensDetails"),
        (Name::EventUsage, "usageMetadata"),
        (Name::EventError, "error"),
    ],
    generates: true,
    ..NAMED
};

/// `countTokens`, which runs nothing.
pub(super) const COUNT: Dialect = Dialect {
    name: "count_content",
    is_metered: false,
    reports_usage: false,
    ..NAMED
};

/// `embedContent` and `batchEmbedContents`.
pub(super) const EMBED: Dialect = Dialect {
    name: "embed_content",
    members: &[],
    reports: &[
        (Name::Usage, "usageMetadata"),
        (Name::PromptTokens, "promptTokenCount"),
    ],
    ..NAMED
};

const NAMED: Dialect = Dialect {
    provider: "gcp.gemini",
    body: Body::NamedJson,
    members: &[
        (Name::Cached, "cachedContent"),
        (Name::Cached, "cached_content"),
    ],
    errors: ErrorFormat::Google,
    ..Dialect::JSON
};

/// Where the gate has Google's API, as Google has it: its SDKs use the one or the other.
const ROOTS: [&str; 2] = ["/v1beta/", "/v1/"];
const MODELS: &str = "models/";
/// Models that somebody tuned are a collection of their own, which belongs to their names.
const TUNED: &str = "tunedModels/";

/// How an answer is to come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Manner {
    /// In one document.
    #[default]
    Whole,
    /// As events.
    Events,
    /// As a list, whose items come one after the other.
    List,
}

/// What a path of Google's says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named<'p> {
    /// What follows the API's root, with its slash.
    pub below: &'p str,
    /// The model's name, without its collection unless that is the one of tuned models.
    pub model: Cow<'p, str>,
    /// What is asked for, as the path says it.
    pub verb: &'p str,
    /// The same.
    pub operation: Operation,
}

impl<'p> Named<'p> {
    /// Reads the path of a call.
    #[must_use]
    #[cold]
    pub fn of(path: &'p str) -> Option<Self> {
        let root = ROOTS.iter().find(|root| path.starts_with(**root))?;
        Self::below_root(path.get(root.len() - 1..)?)
    }

    /// Reads what follows the API's root in the path of a call.
    #[must_use]
    pub fn below_root(below: &'p str) -> Option<Self> {
        let (name, verb) = below.strip_prefix('/')?.rsplit_once(':')?;
        let model = match name.strip_prefix(MODELS) {
            Some(model) => model,
            None => name.starts_with(TUNED).then_some(name)?,
        };
        let operation = match verb {
            "generateContent" | "streamGenerateContent" => Operation::GenerateContent,
            "countTokens" => Operation::CountContent,
            "embedContent" | "batchEmbedContents" => Operation::EmbedContent,
            _ => return None,
        };
        let model = match model.contains('%') {
            false => Cow::Borrowed(model),
            true => Cow::Owned(String::from_utf8(percent_decoded(model)).ok()?),
        };
        let is_name = model_name(model.as_bytes()).is_some() && !model.ends_with('/');
        is_name.then_some(Self {
            below,
            model,
            verb,
            operation,
        })
    }

    /// Whether its answer comes piece by piece.
    #[must_use]
    pub fn streams(&self) -> bool {
        self.verb == "streamGenerateContent"
    }

    /// How its answer is to come, where this is its query.
    #[must_use]
    pub fn manner(&self, query: Option<&str>) -> Manner {
        let mut members = query.unwrap_or_default().split('&');
        match self.streams() {
            false => Manner::Whole,
            true if members.any(|member| member == "alt=sse") => Manner::Events,
            true => Manner::List,
        }
    }
}

/// What follows the API's root in the path of such a call of this model.
#[must_use]
pub fn path(model: &str, verb: &str) -> String {
    let (collection, name) = match model.strip_prefix(TUNED) {
        Some(name) => (TUNED, name),
        None => (MODELS, model.strip_prefix(MODELS).unwrap_or(model)),
    };
    format!("/{collection}{}:{verb}", escaped(name))
}

/// A model's name as one segment of a path: it goes nowhere else.
#[must_use]
pub fn escaped(name: &str) -> String {
    let mut path = String::with_capacity(name.len());
    for byte in name.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'@' => {
                path.push(byte.into());
            }
            other => path.push_str(&format!("%{other:02X}")),
        }
    }
    path
}

/// The status that Google calls an error of this HTTP status (<https://google.aip.dev/193>).
#[must_use]
pub const fn error_status(status: u16) -> &'static str {
    match status {
        400 => "INVALID_ARGUMENT",
        401 => "UNAUTHENTICATED",
        403 => "PERMISSION_DENIED",
        404 => "NOT_FOUND",
        409 => "ABORTED",
        429 => "RESOURCE_EXHAUSTED",
        503 | 529 => "UNAVAILABLE",
        504 => "DEADLINE_EXCEEDED",
        500.. => "INTERNAL",
        _ => "FAILED_PRECONDITION",
    }
}
