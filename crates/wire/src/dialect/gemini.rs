//! Google's calls, which name their model in the path, and by its last word what is asked for
//! (<https://ai.google.dev/api/generate-content>, <https://ai.google.dev/api/tokens>, <https://ai.google.dev/api/embeddings>).
//!
//! A model is one of AI Studio's (`models/M`), or a publisher's, as Vertex AI has it (`publishers/google/models/M`, behind a project and a
//! location or without them).
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

/// A list of models, or what one of them is.
pub(super) const LISTED: Dialect = Dialect {
    name: "gemini_models",
    provider: "gcp.gemini",
    errors: ErrorFormat::Google,
    ..Dialect::UNREAD
};

/// Where the gate has Google's API, as Google has it: its SDKs use one or another.
const ROOTS: [&str; 3] = ["/v1beta/", "/v1beta1/", "/v1/"];
const MODELS: &str = "models/";
const PUBLISHERS: &str = "publishers/";
/// Whose models Vertex AI has when none is named.
const GOOGLE: &str = "google";
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
    /// What follows the API's root, with its slash, and a publisher's project and location, which are those of the backend.
    pub below: &'p str,
    /// The model's name, without its collection unless that is the one of tuned models or of another publisher than Google.
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
        let below = without_place(below);
        let (name, verb) = below.strip_prefix('/')?.rsplit_once(':')?;
        let model = match (name.strip_prefix(MODELS), name.strip_prefix(PUBLISHERS)) {
            (Some(model), _) => decoded(model)?,
            (None, Some(published)) => published_name(published)?,
            (None, None) => decoded(name.starts_with(TUNED).then_some(name)?)?,
        };
        let operation = match verb {
            "generateContent" | "streamGenerateContent" => Operation::GenerateContent,
            "countTokens" => Operation::CountContent,
            "embedContent" | "batchEmbedContents" => Operation::EmbedContent,
            _ => return None,
        };
        is_name(&model).then_some(Self {
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

/// What a path says that asks which models there are, or what one of them is. `/v1/models` is OpenAI's, and none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed<'p> {
    /// What follows the API's root, with its slash.
    pub below: &'p str,
    /// Whether it is of Vertex AI.
    pub is_published: bool,
    /// The one that is asked for.
    pub model: Option<Cow<'p, str>>,
}

impl<'p> Listed<'p> {
    /// Reads the path of a request.
    #[must_use]
    #[cold]
    pub fn of(path: &'p str) -> Option<Self> {
        let root = ROOTS.iter().find(|root| path.starts_with(**root))?;
        let below = without_place(path.get(root.len() - 1..)?);
        let rest = below.strip_prefix('/')?;
        let studio = rest
            .strip_prefix(super::MODELS)
            .filter(|_| *root == ROOTS[0]);
        let (is_published, model) = match (studio, rest.strip_prefix(PUBLISHERS)) {
            (Some(""), _) => (false, None),
            (Some(below), _) => (false, Some(decoded(below.strip_prefix('/')?)?)),
            (None, Some("google/models")) => (true, None),
            (None, published) => (true, Some(published_name(published?)?)),
        };
        let is_good = model.as_deref().is_none_or(is_name);
        is_good.then_some(Self {
            below,
            is_published,
            model,
        })
    }
}

/// What follows the root without the project and the location, where a publisher's model stands behind them.
fn without_place(below: &str) -> &str {
    let place = || {
        let rest = below.strip_prefix("/projects/")?;
        let (_project, rest) = rest.split_once("/locations/")?;
        let at = rest.find('/')?;
        rest.get(at..)
    };
    let is_published = |rest: &&str| {
        rest.get(1..)
            .is_some_and(|rest| rest.starts_with(PUBLISHERS))
    };
    place().filter(is_published).unwrap_or(below)
}

/// The name of a model that stands behind its publisher's, as `google/models/M` has it.
fn published_name(published: &str) -> Option<Cow<'_, str>> {
    let (publisher, model) = published.split_once("/models/")?;
    let is_one = |part: &str| !part.is_empty() && !part.contains(['/', '%']);
    if !is_one(publisher) || !is_one(model) {
        return None;
    }
    Some(match publisher {
        GOOGLE => model.into(),
        _ => format!("{publisher}/{model}").into(),
    })
}

fn decoded(name: &str) -> Option<Cow<'_, str>> {
    match name.contains('%') {
        false => Some(name.into()),
        true => String::from_utf8(percent_decoded(name))
            .ok()
            .map(Cow::Owned),
    }
}

fn is_name(model: &str) -> bool {
    model_name(model.as_bytes()).is_some() && !model.ends_with('/')
}

impl Named<'_> {
    /// What follows the API's root in the path of the same call of another model.
    #[must_use]
    pub fn path_of(&self, model: &str) -> String {
        match self.below.starts_with("/publishers/") {
            true => published_path(model, self.verb),
            false => path(model, self.verb),
        }
    }
}

/// The same at Vertex AI, behind a project and a location.
#[must_use]
pub fn published_path(model: &str, verb: &str) -> String {
    let model = model.strip_prefix(MODELS).unwrap_or(model);
    let said = model
        .strip_prefix(PUBLISHERS)
        .and_then(|published| published.split_once("/models/"));
    let (publisher, name) = said
        .or_else(|| model.split_once('/'))
        .unwrap_or((GOOGLE, model));
    format!(
        "/{PUBLISHERS}{}/{MODELS}{}:{verb}",
        escaped(publisher),
        escaped(name)
    )
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
