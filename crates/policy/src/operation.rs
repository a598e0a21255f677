//! What a path asks for.
//!
//! Invariant: one table from path to operation; routing, authorisation and forwarding use its
//! result and never look at the path again.
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
    /// Any other `/v1/*`: passed to the route's backend as it is.
    PassThrough,
}

/// Why a path and method name no operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unknown {
    /// No such path.
    Path,
    /// The path exists, with these methods (the `allow` header).
    Method(&'static str),
}

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
            Self::PassThrough => "pass_through",
        }
    }

    /// All operations, for metric tables.
    pub const ALL: [Self; 7] = [
        Self::Chat,
        Self::Completions,
        Self::Responses,
        Self::Messages,
        Self::Embeddings,
        Self::Models,
        Self::PassThrough,
    ];

    /// Whether the body is JSON that policy reads.
    #[must_use]
    pub fn reads_body(self) -> bool {
        matches!(
            self,
            Self::Chat | Self::Completions | Self::Responses | Self::Messages | Self::Embeddings
        )
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

    /// Reads method and path.
    ///
    /// # Errors
    /// [`Unknown`] when nothing here answers to them.
    pub fn of(method: Method, path: &str) -> Result<Self, Unknown> {
        let Some(rest) = path.strip_prefix("/v1/") else {
            return Err(Unknown::Path);
        };
        let post = |operation| match method {
            Method::Post => Ok(operation),
            Method::Get
            | Method::Head
            | Method::Put
            | Method::Patch
            | Method::Delete
            | Method::Options
            | Method::Other => Err(Unknown::Method("POST")),
        };
        match rest {
            "chat/completions" if method == Method::Get => Ok(Self::PassThrough),
            "chat/completions" => post(Self::Chat),
            "completions" => post(Self::Completions),
            "responses" => post(Self::Responses),
            "messages" => post(Self::Messages),
            "embeddings" => post(Self::Embeddings),
            "models" => match method {
                Method::Get | Method::Head => Ok(Self::Models),
                Method::Post
                | Method::Put
                | Method::Patch
                | Method::Delete
                | Method::Options
                | Method::Other => Err(Unknown::Method("GET, HEAD")),
            },
            "" => Err(Unknown::Path),
            rest if is_near_miss(rest) => Err(Unknown::Path),
            _ => match method {
                Method::Other | Method::Options => {
                    Err(Unknown::Method("GET, HEAD, POST, PUT, PATCH, DELETE"))
                }
                Method::Get | Method::Head if rest.starts_with("models/") => Ok(Self::Models),
                Method::Get
                | Method::Head
                | Method::Post
                | Method::Put
                | Method::Patch
                | Method::Delete => Ok(Self::PassThrough),
            },
        }
    }
}

/// Whether a lenient server could take this for a path that is read here. Passed through, it would
/// reach the engine round the route's model and the token limits.
fn is_near_miss(rest: &str) -> bool {
    let plain = percent_decoded(rest).to_ascii_lowercase();
    let is_edge = |b: &u8| !b.is_ascii_alphanumeric();
    let start = plain
        .iter()
        .position(|b| !is_edge(b))
        .unwrap_or(plain.len());
    let end = plain
        .iter()
        .rposition(|b| !is_edge(b))
        .map_or(start, |last| last + 1);
    let read: [&[u8]; 6] = [
        b"chat/completions",
        b"completions",
        b"responses",
        b"messages",
        b"embeddings",
        b"models",
    ];
    plain
        .get(start..end)
        .is_some_and(|core| read.contains(&core))
}

#[cfg(test)]
mod tests;
