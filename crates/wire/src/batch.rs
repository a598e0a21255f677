//! Files that a provider keeps, and batches: which calls of them there are, what a batch asks for, what its provider says of it, and what
//! its result tells of usage.
//!
//! Invariant: a call in a batch is read exactly as one that comes by itself, or the batch is refused; memory is bounded, whatever comes.
//! Not here: forms (`call::Upload`), who may ask for what, and what it costs (`policy`).

mod lines;
mod object;
mod path;
mod result;

pub use lines::{
    Calls, Creation, LINE_BYTES_MAX, LINES_MAX, LineFault, OneCall, Requests, creation,
};
pub use object::{OBJECT_BYTES_MAX, Object};
pub use path::{Asked, Named, asked};
pub use result::{ResultLines, Served, Told, told};

/// Whose files and batches they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Api {
    /// OpenAI's: a batch is a file of calls.
    OpenAi,
    /// Anthropic's: a batch has its calls in itself.
    Anthropic,
}

impl Api {
    /// The word in configurations and files.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::Anthropic => "anthropic",
        }
    }
}

/// The text of a string that needs no reading: without escapes.
fn plain_text(value: (crate::json::Kind, &[u8])) -> Option<&str> {
    let (crate::json::Kind::String, raw) = value else {
        return None;
    };
    let text = raw.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    let text = std::str::from_utf8(text).ok()?;
    (!text.contains('\\')).then_some(text)
}

#[cfg(test)]
mod tests;
