//! The content of a message: a string, or a list of parts.
//!
//! Invariant: a part that is not text refuses the body; it never counts as nothing.
//! Not here: blocks that are messages of their own in another dialect (`messages`).

use std::borrow::Cow;

use super::Reader;
use prompts::conversation::{Content, Part};
use prompts::tree::{Member, Tree};
use prompts::{Uncountable, wrong};

/// Reads `content`; missing and null are no parts.
pub(super) fn read<'t>(
    content: Option<&'t Tree<'t>>,
    reader: Reader,
) -> Result<Content<'t>, Uncountable> {
    match content {
        None => Ok(Content::default()),
        Some(Tree::Text(text)) => Ok(Content::of(&**text)),
        Some(Tree::List(parts)) => Ok(Content {
            parts: parts
                .iter()
                .map(|part| self::part(part, reader))
                .collect::<Result<_, _>>()?,
        }),
        Some(_) => Err(wrong("content", "a string or a list of parts")),
    }
}

fn part<'t>(part: &'t Tree<'t>, reader: Reader) -> Result<Part<'t>, Uncountable> {
    if reader == Reader::Harmony && part.text().is_some() {
        // What vLLM makes of one depends on the role, and is an error for most.
        return Err(wrong("content", "parts that have a type"));
    }
    let kind = part.get_text("type");
    if reader == Reader::Harmony && matches!(kind, Some("refusal" | "thinking")) {
        // vLLM reads their `text`, which they have none of.
        return Ok(Part::from(part.get_text("text").unwrap_or_default()));
    }
    let members: &[Member<'_>] = match (part, reader) {
        (Tree::Map(members), Reader::Template { .. }) => members,
        _ => &[],
    };
    Ok(Part {
        text: Cow::Borrowed(text_of(part)?),
        members,
        medium: None,
    })
}

/// The text of one part.
pub(super) fn text_of<'t>(part: &'t Tree<'_>) -> Result<&'t str, Uncountable> {
    if let Tree::Text(text) = part {
        return Ok(text);
    }
    let member = match part.get_text("type") {
        Some("text" | "input_text" | "output_text" | "reasoning_text" | "summary_text") => "text",
        Some("refusal") => "refusal",
        Some("thinking") => "thinking",
        Some(other) => return Err(Uncountable::Part(other.chars().take(40).collect())),
        None => return Err(wrong("content", "parts that have a type")),
    };
    part.get_text(member)
        .ok_or(wrong("content", "parts that hold their text"))
}
