//! A `tokenizer.json` whose kind is known here: byte-level merges behind a published pattern.
//!
//! Invariant: what is not understood to the last member is no known kind, and the `tokenizers` crate counts it. One that
//! is known counts a sample as that crate does, before it is believed.
//! Not here: finding the tokens that a text spells out (`added`).

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;
use tokenizers::Tokenizer;
use unicode_normalization_alignments::{IsNormalized, UnicodeNormalization, is_nfc_quick};

use super::added::{Added, AddedToken};
use super::bpe;
use super::pairs::{self, Merge, Pairs};
use super::pieced::{Pieced, Wholes};
use super::pieces::Grammar;
use crate::memo::Memo;
use prompts::Uncountable;

/// The patterns as files have them.
pub(super) const PATTERNS: [(&str, Grammar); 3] = [
    (
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
        Grammar::Cl100k,
    ),
    (
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
        Grammar::Qwen2,
    ),
    (
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
        Grammar::O200k,
    ),
];

/// DeepSeek's since V3, in this order. The third has the line ends themselves.
pub(super) const DEEPSEEK: [&str; 3] = [
    r"\p{N}{1,3}",
    "[一-龥\u{3040}-ゟ゠-ヿ]+",
    "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+",
];

/// What is counted by both before a file is believed: scripts, contractions, numbers, white space, signs, marks that
/// NFC would join, and text that looks like special tokens.
const SAMPLE: &str = include_str!("sample.txt");

#[derive(Deserialize)]
struct File {
    added_tokens: Option<Vec<AddedToken>>,
    normalizer: Option<Value>,
    pre_tokenizer: Option<Value>,
    model: Model,
}

#[derive(Deserialize)]
struct Model {
    r#type: Option<String>,
    dropout: Option<f32>,
    unk_token: Option<String>,
    continuing_subword_prefix: Option<String>,
    end_of_word_suffix: Option<String>,
    #[serde(default)]
    byte_fallback: bool,
    #[serde(default)]
    ignore_merges: bool,
    vocab: HashMap<String, u32>,
    merges: Vec<MergeText>,
}

/// As files had it, and as they have it now.
#[derive(Deserialize)]
#[serde(untagged)]
enum MergeText {
    Line(String),
    Pair(String, String),
}

/// A vocabulary of such a file.
pub(crate) struct HuggingFace {
    pieced: Pieced,
    added: Added,
    is_nfc: bool,
    /// Tokens that the file puts around a text, where it is asked to.
    around: u64,
}

impl HuggingFace {
    /// That of a file which is of a known kind, and counts the sample as `tokenizer` does.
    pub(super) fn read(tokenizer_json: &[u8], tokenizer: &Tokenizer) -> Option<Self> {
        let file: File = serde_json::from_slice(tokenizer_json).ok()?;
        let (pairs, wholes) = merges(&file.model)?;
        let grammar = grammar(file.pre_tokenizer.as_ref()?)?;
        let is_nfc = normalizer(file.normalizer.as_ref())?;
        let vocabulary = Self {
            pieced: Pieced::new(grammar, Cow::Owned(pairs), wholes),
            added: Added::new(&file.added_tokens.unwrap_or_default(), is_nfc)?,
            is_nfc,
            around: tokenizer.encode_fast("", true).ok()?.len() as u64,
        };
        vocabulary.agrees(tokenizer).then_some(vocabulary)
    }

    fn agrees(&self, tokenizer: &Tokenizer) -> bool {
        let mut texts = SAMPLE.split("\n\n").chain([SAMPLE]);
        texts.all(|text| {
            [false, true].into_iter().all(|adds_special| {
                let reference = tokenizer.encode_fast(text, adds_special);
                let reference = reference.map(|encoding| encoding.len() as u64);
                reference.ok() == self.count(text, adds_special).ok()
            })
        })
    }

    /// As [`Pieced::remember_in`].
    pub(super) fn remember_in(&mut self, memo: Arc<Memo>) {
        self.pieced.remember_in(memo);
    }

    /// As [`Pieced::on_any_processor`].
    #[cfg(test)]
    pub(super) const fn on_any_processor(&mut self) {
        self.pieced.on_any_processor();
    }

    /// The tokens of a text, with those that are spelled in it, and with those around it or not.
    pub(super) fn count(&self, text: &str, adds_special: bool) -> Result<u64, Uncountable> {
        let tokens = self.added.cut_raw(text, |text| {
            let text = self.normalized(text);
            self.added
                .cut_normalized(&text, |text| self.pieced.count(text))
        })?;
        Ok(tokens + if adds_special { self.around } else { 0 })
    }

    fn normalized<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let is_so =
            !self.is_nfc || text.is_ascii() || is_nfc_quick(text.chars()) == IsNormalized::Yes;
        if is_so {
            return Cow::Borrowed(text);
        }
        Cow::Owned(text.nfc().map(|(letter, _)| letter).collect())
    }
}

/// Whether text is made NFC; `None` for anything else.
fn normalizer(normalizer: Option<&Value>) -> Option<bool> {
    let Some(normalizer) = normalizer else {
        return Some(false);
    };
    match normalizer.get("type")?.as_str()? {
        "NFC" => Some(true),
        "Sequence" => {
            let all = normalizer.get("normalizers")?.as_array()?;
            let mut is_nfc = false;
            for one in all {
                is_nfc |= self::normalizer(Some(one))?;
            }
            Some(is_nfc)
        }
        _ => None,
    }
}

fn grammar(pre_tokenizer: &Value) -> Option<Grammar> {
    let is = |value: &Value, member: &str, expected: bool| {
        value.get(member).and_then(Value::as_bool) == Some(expected)
    };
    match pre_tokenizer.get("type")?.as_str()? {
        // Before it could be switched off, the pattern was always used.
        "ByteLevel" => {
            let uses = pre_tokenizer
                .get("use_regex")
                .is_none_or(|uses| uses == &Value::Bool(true));
            (is(pre_tokenizer, "add_prefix_space", false) && uses).then_some(Grammar::Gpt2)
        }
        "Sequence" => {
            let all = pre_tokenizer.get("pretokenizers")?.as_array()?;
            let (bytes, splits) = all.split_last()?;
            let is_bytes = bytes.get("type")? == "ByteLevel"
                && is(bytes, "add_prefix_space", false)
                && is(bytes, "use_regex", false);
            if !is_bytes {
                return None;
            }
            let pattern = |split: &Value| {
                let is_split = split.get("type")? == "Split"
                    && split.get("behavior")? == "Isolated"
                    && is(split, "invert", false);
                let pattern = split.get("pattern")?.get("Regex")?.as_str()?;
                is_split.then(|| pattern.to_owned())
            };
            let patterns: Option<Vec<String>> = splits.iter().map(pattern).collect();
            match patterns?.as_slice() {
                [pattern] => {
                    let mut known = PATTERNS.into_iter();
                    known
                        .find(|(text, _)| text == pattern)
                        .map(|(_, grammar)| grammar)
                }
                patterns => (patterns == DEEPSEEK).then_some(Grammar::DeepSeek3),
            }
        }
        _ => None,
    }
}

/// The table of merges, and the tokens that a piece is as a whole though its bytes do not merge to them.
fn merges(model: &Model) -> Option<(Vec<u8>, Wholes)> {
    let absent = |text: &Option<String>| text.as_ref().is_none_or(String::is_empty);
    let is_plain = model.r#type.as_deref().is_none_or(|kind| kind == "BPE")
        && model.dropout.is_none()
        && model.unk_token.is_none()
        && absent(&model.continuing_subword_prefix)
        && absent(&model.end_of_word_suffix)
        && !model.byte_fallback;
    if !is_plain {
        return None;
    }
    let letters = byte_letters();
    let bytes: Option<Vec<u32>> = letters
        .iter()
        .map(|letter| model.vocab.get(letter.encode_utf8(&mut [0; 4])).copied())
        .collect();
    let bytes: [u32; 256] = bytes?.try_into().ok()?;
    let mut merges = Vec::with_capacity(model.merges.len());
    for (rank, merge) in model.merges.iter().enumerate() {
        let (left, right) = match merge {
            MergeText::Line(line) => line.split_once(' ')?,
            MergeText::Pair(left, right) => (left.as_str(), right.as_str()),
        };
        let of = |text: &str| model.vocab.get(text).copied();
        merges.push(Merge {
            left: of(left)?,
            right: of(right)?,
            rank: u32::try_from(rank).ok()?,
            token: of(&format!("{left}{right}"))?,
        });
    }
    let by_letter: HashMap<char, u8> = letters.into_iter().zip(0..=255).collect();
    let raw = |text: &str| {
        let bytes: Option<Vec<u8>> = text
            .chars()
            .map(|letter| by_letter.get(&letter).copied())
            .collect();
        bytes
    };
    let tokens: Vec<Vec<u8>> = model.vocab.keys().filter_map(|text| raw(text)).collect();
    let block = pairs::write(&bytes, &merges, tokens.iter().map(Vec::as_slice))?;
    let pairs = Pairs::read(&block)?;
    let is_apart = |token: &Vec<u8>| !token.is_empty() && bpe::count(&pairs, token) != 1;
    let wholes = tokens
        .into_iter()
        .filter(|token| model.ignore_merges && is_apart(token));
    let wholes = wholes.map(Vec::into_boxed_slice).collect();
    Some((block, wholes))
}

/// The letter that stands for each byte in a byte-level vocabulary: its own where that can be seen, else one of those
/// from U+0100 on, in turn.
pub(super) fn byte_letters() -> Vec<char> {
    let mut next = 0x100;
    let letters = (0..=255u8).map(|byte| match byte {
        b'!'..=b'~' | 0xA1..=0xAC | 0xAE..=0xFF => char::from(byte),
        _ => {
            next += 1;
            char::from_u32(next - 1).unwrap_or('\u{100}')
        }
    });
    letters.collect()
}

#[cfg(test)]
mod tests;
