//! The content of a message: a string, or a list of parts.
//!
//! Invariant: a part that is not text refuses the body; it never counts as nothing.
//! Not here: blocks that are messages of their own in another dialect (`messages`).

use crate::conversation::Content;
use crate::tree::Tree;
use crate::uncountable::{Uncountable, wrong};

/// Reads `content`; missing and null are no parts.
pub(super) fn read(content: Option<&Tree>) -> Result<Content, Uncountable> {
    match content {
        None => Ok(Content::default()),
        Some(Tree::Text(text)) => Ok(Content::of(text)),
        Some(Tree::List(parts)) => Ok(Content {
            parts: parts.iter().map(text_of).collect::<Result<_, _>>()?,
        }),
        Some(_) => Err(wrong("content", "a string or a list of parts")),
    }
}

/// The text of one part.
pub(super) fn text_of(part: &Tree) -> Result<String, Uncountable> {
    if let Tree::Text(text) = part {
        return Ok(text.clone());
    }
    let member = match part.get_text("type") {
        Some("text" | "input_text" | "output_text" | "reasoning_text" | "summary_text") => "text",
        Some("refusal") => "refusal",
        Some("thinking") => "thinking",
        Some(other) => return Err(Uncountable::Part(other.chars().take(40).collect())),
        None => return Err(wrong("content", "parts that have a type")),
    };
    let text = part.get_text(member);
    text.map(str::to_owned)
        .ok_or(wrong("content", "parts that hold their text"))
}
