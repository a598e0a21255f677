//! Prompts that are no conversations: text completions and embeddings.
//!
//! Invariant: text and token numbers both count; several prompts in one body are summed, as engines report them.
//! Not here: what a tokenizer adds to plain text (`vocabulary`).

use wire::dialect::Operation;

use crate::tree::Tree;
use crate::uncountable::{Uncountable, wrong};
use crate::vocabulary::Vocabulary;

/// Counts the prompts of a body.
pub(crate) fn count(
    operation: Operation,
    body: &Tree<'_>,
    vocabulary: &Vocabulary,
    is_harmony: bool,
) -> Result<u64, Uncountable> {
    let member = match operation {
        Operation::Embeddings => "input",
        _ => "prompt",
    };
    if body.get_text("suffix").is_some_and(|text| !text.is_empty()) {
        return Err(wrong("suffix", "absent: how it is placed differs by model"));
    }
    if body.get("prompt_embeds").is_some() {
        return Err(Uncountable::Part("prompt_embeds".to_owned()));
    }
    let adds_special = !matches!(body.get("add_special_tokens"), Some(Tree::Bool(false)));
    let count_text = |text: &str| vocabulary.count_prompt(text, is_harmony, adds_special);
    match body.get(member) {
        Some(Tree::Text(text)) => count_text(text),
        Some(Tree::List(items)) if !items.is_empty() => {
            if items.iter().all(|item| matches!(item, Tree::Number(_))) {
                return Ok(items.len() as u64);
            }
            items.iter().try_fold(0, |sum, item| match item {
                Tree::Text(text) => Ok(sum + count_text(text)?),
                Tree::List(numbers) if numbers.iter().all(|n| matches!(n, Tree::Number(_))) => {
                    Ok(sum + numbers.len() as u64)
                }
                _ => Err(wrong(member, "text or lists of token numbers")),
            })
        }
        _ => Err(wrong(
            member,
            "text, or a list of texts or of token numbers",
        )),
    }
}
