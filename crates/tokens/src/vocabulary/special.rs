//! Harmony's special tokens as they may be spelled in a plain prompt.
//!
//! The names and numbers are those of the `o200k_harmony` encoding (openai-harmony 0.0.8).
//! Not here: Harmony's own use of them (`prompts`).

use crate::work;

const NAMES: &[&str] = &[
    "<|startoftext|>",
    "<|endoftext|>",
    "<|endofprompt|>",
    "<|return|>",
    "<|constrain|>",
    "<|channel|>",
    "<|start|>",
    "<|end|>",
    "<|message|>",
    "<|call|>",
];
const RESERVED: &str = "<|reserved_";

/// A stretch of a prompt.
pub(super) enum Part<'a> {
    Special,
    Plain(&'a str),
}

/// Cuts a prompt at its special tokens.
pub(super) fn parts(text: &str) -> impl Iterator<Item = Part<'_>> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let mut from = 0;
        while let Some(at) = rest.get(from..)?.find("<|").map(|at| from + at) {
            work::note(at - from + 1);
            let (before, special) = rest.split_at_checked(at)?;
            match length(special) {
                Some(length) if before.is_empty() => {
                    rest = special.get(length..)?;
                    return Some(Part::Special);
                }
                Some(_) => {
                    rest = special;
                    return Some(Part::Plain(before));
                }
                None => from = at + 2,
            }
        }
        Some(Part::Plain(std::mem::take(&mut rest)))
    })
}

/// How long the special token is that this text starts with.
fn length(text: &str) -> Option<usize> {
    if let Some(name) = NAMES.iter().find(|name| text.starts_with(**name)) {
        return Some(name.len());
    }
    let number = text.strip_prefix(RESERVED)?;
    let (digits, _) = number.split_at_checked(6)?;
    let is_reserved = number.get(6..)?.starts_with("|>")
        && digits.bytes().all(|byte| byte.is_ascii_digit())
        && matches!(
            digits.parse(),
            Ok(200_000 | 200_001 | 200_004 | 200_009..=200_011 | 200_013..=201_088)
        );
    is_reserved.then_some(RESERVED.len() + 8)
}
