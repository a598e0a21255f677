//! Tokens that a `tokenizer.json` adds to its vocabulary: wherever a text spells one, it is one.
//!
//! First those that are looked for in the text as it came, then, in what is between them, those of normalised text; the
//! leftmost, and of those that begin together the longest.
//! Not here: what lies between them (`pieced`).

use aho_corasick::{AhoCorasick, MatchKind};
use serde::Deserialize;

/// As a file has it.
#[derive(Deserialize)]
pub(super) struct AddedToken {
    content: String,
    #[serde(default)]
    single_word: bool,
    #[serde(default)]
    lstrip: bool,
    #[serde(default)]
    rstrip: bool,
    #[serde(default)]
    normalized: bool,
}

/// All of a file.
pub(super) struct Added {
    raw: Option<AhoCorasick>,
    normalized: Option<AhoCorasick>,
}

impl Added {
    /// `None` where one also takes what stands around it, or where normalising could change one.
    pub(super) fn new(tokens: &[AddedToken], is_nfc: bool) -> Option<Self> {
        let is_plain = |token: &AddedToken| !token.single_word && !token.lstrip && !token.rstrip;
        // What normalising would change is looked for in another form.
        let is_stable =
            |token: &AddedToken| !is_nfc || !token.normalized || token.content.is_ascii();
        if !tokens
            .iter()
            .all(|token| is_plain(token) && is_stable(token))
        {
            return None;
        }
        let finder = |normalized: bool| {
            let texts = tokens.iter().filter(|token| token.normalized == normalized);
            let texts: Vec<&str> = texts
                .map(|token| token.content.as_str())
                .filter(|text| !text.is_empty())
                .collect();
            if texts.is_empty() {
                return Some(None);
            }
            let mut builder = AhoCorasick::builder();
            builder
                .match_kind(MatchKind::LeftmostLongest)
                .build(texts)
                .ok()
                .map(Some)
        };
        Some(Self {
            raw: finder(false)?,
            normalized: finder(true)?,
        })
    }

    /// Cuts a text as it came: the number of tokens in it, and what is between them.
    pub(super) fn cut_raw<E>(
        &self,
        text: &str,
        between: impl FnMut(&str) -> Result<u64, E>,
    ) -> Result<u64, E> {
        cut(self.raw.as_ref(), text, between)
    }

    /// Cuts normalised text.
    pub(super) fn cut_normalized<E>(
        &self,
        text: &str,
        between: impl FnMut(&str) -> Result<u64, E>,
    ) -> Result<u64, E> {
        cut(self.normalized.as_ref(), text, between)
    }
}

/// Tokens of the text: one for each that is found, and what `between` says of the rest.
fn cut<E>(
    finder: Option<&AhoCorasick>,
    text: &str,
    mut between: impl FnMut(&str) -> Result<u64, E>,
) -> Result<u64, E> {
    let Some(finder) = finder else {
        return between(text);
    };
    let (mut tokens, mut from) = (0, 0);
    for found in finder.find_iter(text) {
        let plain = text.get(from..found.start()).unwrap_or_default();
        if !plain.is_empty() {
            tokens += between(plain)?;
        }
        tokens += 1;
        from = found.end();
    }
    let rest = text.get(from..).unwrap_or_default();
    if !rest.is_empty() {
        tokens += between(rest)?;
    }
    Ok(tokens)
}
