//! Prompts that are no conversations: text completions and embeddings.
//!
//! Invariant: text and token numbers both count; several prompts in one body are summed, as engines report them.
//! Not here: what a tokenizer adds to plain text (`vocabulary`).

use crate::count::{Count, Doubt};
use crate::dialect::{self, Counted};
use crate::vocabulary::Vocabulary;
use prompts::tree::Tree;
use prompts::{Uncountable, wrong};

/// Whether the prompt is no conversation. Text completions know no messages; embeddings take both.
pub(crate) fn is_plain(operation: Counted, body: &Tree<'_>) -> bool {
    match operation {
        Counted::Completions => true,
        Counted::Embeddings => !dialect::has_messages(body),
        Counted::Chat | Counted::Responses | Counted::Messages => false,
    }
}

/// Where a body has such a prompt.
pub(crate) const fn member(operation: Counted) -> &'static str {
    match operation {
        Counted::Embeddings => "input",
        Counted::Chat | Counted::Completions | Counted::Responses | Counted::Messages => "prompt",
    }
}

/// Whether a list has nothing but token numbers.
pub(crate) fn are_numbers(items: &[Tree<'_>]) -> bool {
    items.iter().all(|item| matches!(item, Tree::Number(_)))
}

/// How much of a prompt the engine keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kept {
    /// No more tokens than this.
    Tokens(u64),
    /// What the model's length leaves, less so many tokens that the answer may have.
    ModelLength(u64),
}

impl Kept {
    /// What a body says of it; none: all of the prompt.
    ///
    /// # Errors
    /// When what it says is no number that the engine takes.
    pub(crate) fn read(operation: Counted, body: &Tree<'_>) -> Result<Option<Self>, Uncountable> {
        let most = match operation {
            Counted::Responses => {
                let says = body.get_text("truncation");
                let cuts = says.is_some_and(|says| says != "disabled");
                return Ok(cuts.then(|| Self::ModelLength(answer(operation, body))));
            }
            Counted::Messages => None,
            Counted::Chat | Counted::Completions | Counted::Embeddings => {
                body.get("truncate_prompt_tokens")
            }
        };
        let Some(most) = most else {
            return Ok(None);
        };
        match most.lax_integer() {
            Some(-1) => Ok(Some(Self::ModelLength(answer(operation, body)))),
            Some(most) if most >= 0 => Ok(Some(Self::Tokens(most.unsigned_abs()))),
            _ => Err(wrong(
                "truncate_prompt_tokens",
                "a whole number, or -1 for the model's length",
            )),
        }
    }

    /// What is counted of a prompt. Where the model's length is known, a shorter prompt is known to be whole.
    pub(crate) fn of(self, count: Count, model_length: Option<u64>) -> Count {
        match self {
            Self::Tokens(most) => Count {
                tokens: count.tokens.min(most),
                ..count
            },
            Self::ModelLength(answer)
                if model_length.is_some_and(|most| count.tokens < most.saturating_sub(answer)) =>
            {
                count
            }
            Self::ModelLength(_) => count.doubted(Doubt::Truncated),
        }
    }
}

/// The most tokens of the answer, for which vLLM leaves room when it cuts a prompt to the model's length; all of them where
/// the body says something that is no number.
fn answer(operation: Counted, body: &Tree<'_>) -> u64 {
    let members: &[&str] = match operation {
        Counted::Responses => &["max_output_tokens"],
        Counted::Chat => &["max_completion_tokens", "max_tokens"],
        Counted::Completions | Counted::Messages | Counted::Embeddings => &["max_tokens"],
    };
    let said = members.iter().filter_map(|name| body.get(name));
    let most = said.map(|most| match most {
        Tree::Null => 0,
        most => most
            .lax_integer()
            .and_then(|most| u64::try_from(most).ok())
            .unwrap_or(u64::MAX),
    });
    most.max().unwrap_or(0)
}

/// Counts the prompts of a body.
pub(crate) fn count(
    operation: Counted,
    body: &Tree<'_>,
    vocabulary: &Vocabulary,
    is_harmony: bool,
    model_length: Option<u64>,
) -> Result<Count, Uncountable> {
    let kept = Kept::read(operation, body)?;
    let cut = |tokens: u64| match kept {
        Some(Kept::Tokens(most)) => tokens.min(most),
        _ => tokens,
    };
    let tokens = sum(operation, body, vocabulary, is_harmony, cut)?;
    Ok(match kept {
        // Of several prompts the sum is longer than each.
        Some(kept @ Kept::ModelLength(_)) => kept.of(Count::exact(tokens), model_length),
        Some(Kept::Tokens(_)) | None => Count::exact(tokens),
    })
}

/// All prompts of a body, each cut to what is kept of it.
fn sum(
    operation: Counted,
    body: &Tree<'_>,
    vocabulary: &Vocabulary,
    is_harmony: bool,
    cut: impl Fn(u64) -> u64,
) -> Result<u64, Uncountable> {
    let member = member(operation);
    if body.get_text("suffix").is_some_and(|text| !text.is_empty()) {
        return Err(wrong("suffix", "absent: how it is placed differs by model"));
    }
    if body.get_text("padding") == Some("max_length") {
        return Err(wrong("padding", "absent: the model's length is not known"));
    }
    if body.get("prompt_embeds").is_some() {
        return Err(Uncountable::Part("prompt_embeds".to_owned()));
    }
    let adds_special = dialect::flag(body, "add_special_tokens", true)?;
    let count_text = |text: &str| {
        vocabulary
            .count_prompt(text, is_harmony, adds_special)
            .map(&cut)
    };
    match body.get(member) {
        Some(Tree::Text(text)) => count_text(text),
        Some(Tree::List(items)) if !items.is_empty() => {
            if are_numbers(items) {
                return Ok(cut(items.len() as u64));
            }
            items.iter().try_fold(0, |sum, item| match item {
                Tree::Text(text) => Ok(sum + count_text(text)?),
                Tree::List(numbers) if are_numbers(numbers) => Ok(sum + cut(numbers.len() as u64)),
                _ => Err(wrong(member, "text or lists of token numbers")),
            })
        }
        _ => Err(wrong(
            member,
            "text, or a list of texts or of token numbers",
        )),
    }
}
