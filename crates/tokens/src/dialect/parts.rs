//! The content of a message: a string, or a list of parts.
//!
//! Invariant: a part that is not text refuses the body; it never counts as nothing.
//! Not here: blocks that are messages of their own in another dialect (`messages`).

use super::Reader;
use crate::conversation::{Content, Part};
use crate::tree::Tree;
use crate::uncountable::{Uncountable, wrong};

/// Members of a part that vLLM knows; a template sees all others.
const KNOWN: [&str; 18] = [
    "audio_embeds",
    "audio_url",
    "closed",
    "data",
    "file",
    "image_embeds",
    "image_pil",
    "image_url",
    "input_audio",
    "name",
    "prompt_cache_breakpoint",
    "refusal",
    "text",
    "thinking",
    "type",
    "uuid",
    "video_embeds",
    "video_url",
];

/// Reads `content`; missing and null are no parts.
pub(super) fn read(content: Option<&Tree>, reader: Reader) -> Result<Content, Uncountable> {
    match content {
        None => Ok(Content::default()),
        Some(Tree::Text(text)) => Ok(Content::of(text.as_str())),
        Some(Tree::List(parts)) => Ok(Content {
            parts: parts
                .iter()
                .map(|part| self::part(part, reader))
                .collect::<Result<_, _>>()?,
        }),
        Some(_) => Err(wrong("content", "a string or a list of parts")),
    }
}

fn part(part: &Tree, reader: Reader) -> Result<Part, Uncountable> {
    let kind = part.get_text("type");
    if reader == Reader::Harmony && matches!(kind, Some("refusal" | "thinking")) {
        // vLLM reads their `text`, which they have none of.
        return Ok(Part::from(part.get_text("text").unwrap_or_default()));
    }
    let rest = match (part, reader) {
        (Tree::Map(members), Reader::Template { .. }) => members
            .iter()
            .filter(|(name, _)| !KNOWN.contains(&name.as_str()))
            .cloned()
            .collect(),
        _ => Vec::new(),
    };
    Ok(Part {
        text: text_of(part)?,
        rest,
    })
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
