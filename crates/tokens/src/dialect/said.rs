//! What the model said before, as the Responses API gives it back (`output_text`).
//!
//! vLLM takes a message for one of the model's only where all of it is as the API has it: then its text is the first part's,
//! else a template sees the members as they are.
//! Invariant: a message that may be taken for another is refused.

use prompts::tree::Tree;
use prompts::{Uncountable, wrong};

/// The kinds of annotations, with their members of text and those of whole numbers.
const ANNOTATIONS: [(&str, &[&str], &[&str]); 4] = [
    ("file_citation", &["file_id", "filename"], &["index"]),
    (
        "url_citation",
        &["title", "url"],
        &["end_index", "start_index"],
    ),
    (
        "container_file_citation",
        &["container_id", "file_id", "filename"],
        &["end_index", "start_index"],
    ),
    ("file_path", &["file_id"], &["index"]),
];

/// Refuses an item of which it is not certain whether it is a message of the model's.
pub(super) fn check(item: &Tree<'_>) -> Result<(), Uncountable> {
    let parts = item.get("content").and_then(Tree::list).unwrap_or_default();
    let is_said = |part: &&Tree<'_>| part.get_text("type") == Some("output_text");
    if item.get_text("role") != Some("assistant") {
        return Ok(());
    }
    parts.iter().filter(is_said).try_for_each(part)
}

fn part(part: &Tree<'_>) -> Result<(), Uncountable> {
    let is_whole = match part.member("annotations") {
        None => true,
        Some(Tree::List(annotations)) => annotations.iter().all(is_annotation),
        Some(_) => false,
    };
    if !is_whole {
        return Err(wrong("annotations", "a list of citations"));
    }
    match part.get("logprobs") {
        None => Ok(()),
        Some(Tree::List(list)) if list.iter().all(is_logprob) => Ok(()),
        Some(_) => Err(wrong("logprobs", "a list of tokens with their numbers")),
    }
}

fn is_annotation(annotation: &Tree<'_>) -> bool {
    let kind = annotation.get_text("type");
    let known = ANNOTATIONS.iter().find(|(known, ..)| kind == Some(known));
    known.is_some_and(|(_, texts, numbers)| {
        texts.iter().all(|name| annotation.get_text(name).is_some())
            && numbers.iter().all(|name| is_index(annotation.get(name)))
    })
}

fn is_index(number: Option<&Tree<'_>>) -> bool {
    matches!(number, Some(Tree::Number(number)) if number.is_i64())
}

/// One token, or one in its place.
fn is_token(token: &Tree<'_>) -> bool {
    let bytes = token.get("bytes").and_then(Tree::list);
    token.get_text("token").is_some()
        && matches!(token.get("logprob"), Some(Tree::Number(_)))
        && bytes.is_some_and(|bytes| bytes.iter().all(|byte| is_index(Some(byte))))
}

fn is_logprob(token: &Tree<'_>) -> bool {
    let others = token.get("top_logprobs").and_then(Tree::list);
    is_token(token) && others.is_some_and(|others| others.iter().all(is_token))
}
