//! Vocabularies beside their references, on texts of files and on random strings, as many as are asked for:
//!
//! `TOLLGATE_DIFFERENTIAL_KB=1000000 TOLLGATE_DIFFERENTIAL_STRINGS=10000000 TOLLGATE_DIFFERENTIAL_TOKENS=1000000
//! TOLLGATE_DIFFERENTIAL_FILES=DIR cargo test --release -p tokens differential`
//!
//! Most of a run is reading files of a hundred thousand tokens. So one of them is read whole, and the others have their
//! first tokens alone unless more are asked for: to merge fewer is no other way to merge.
//! Not here: small vocabularies with merges of their own (`huggingface`).

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use bpe_openai::Tokenizer as OpenAi;
use serde_json::{Map, Value, json};
use testing::number_of;
use tokenizers::Tokenizer;

use super::super::Vocabulary;
use super::super::huggingface::{DEEPSEEK, HuggingFace, PATTERNS, byte_letters};
use super::super::pieces::Grammar;
use crate::tests::random::Random;

/// The longest slice of a file, bytes.
const LONGEST: usize = 64 << 10;

/// Tokens of a file that is not read whole: all bytes, and most words of few letters.
const TOKENS: u64 = 10_000;

/// What is counted: slices of files, some of them damaged, then random strings.
struct Texts {
    random: Random,
    files: Vec<PathBuf>,
    bytes: u64,
    strings: u64,
}

impl Texts {
    #[expect(clippy::disallowed_methods, reason = "who runs the test says of what")]
    fn asked_for(test: &str) -> Self {
        let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let folder = std::env::var_os("TOLLGATE_DIFFERENTIAL_FILES").map_or(own, PathBuf::from);
        let mut files = Vec::new();
        collect(&folder, &mut files);
        assert!(!files.is_empty(), "{}: no files", folder.display());
        files.sort();
        Self {
            random: Random::of(test),
            files,
            bytes: number_of("TOLLGATE_DIFFERENTIAL_KB", 100) * 1_000,
            strings: number_of("TOLLGATE_DIFFERENTIAL_STRINGS", 800),
        }
    }

    /// Hands every text to `check`.
    fn each(mut self, check: impl Fn(&str)) {
        let mut left = self.bytes;
        while left > 0 {
            let path = &self.files[self.random.below(self.files.len())];
            let Ok(file) = std::fs::read(path) else {
                continue;
            };
            let file = String::from_utf8_lossy(&file);
            // A few slices of each, so that reading is not what takes the time.
            for _ in 0..1 + file.len() / LONGEST {
                let text = self.slice(&file);
                left = left.saturating_sub(text.len().max(1) as u64);
                check(&text);
            }
        }
        for round in 0..self.strings {
            let round = usize::try_from(round).expect("few");
            let text = match round % 4 {
                0 => self.random.text(1 + round % 60),
                1 => self.random.ascii(1 + round % 200),
                2 => self.characters(1 + round % 24),
                _ => self.repeated(),
            };
            check(&text);
        }
    }

    fn slice(&mut self, file: &str) -> String {
        let length = (1 << self.random.below(17)) + self.random.below(256);
        let from = self.random.below(file.len() + 1);
        let from = file.floor_char_boundary(from);
        let to = file.ceil_char_boundary((from + length.min(LONGEST)).min(file.len()));
        let mut text = file[from..to].to_owned();
        for _ in 0..self.random.below(4) {
            let at = self.random.below(text.len() + 1);
            let at = text.floor_char_boundary(at);
            let noise = self.random.text(3);
            text.insert_str(at, &noise);
        }
        text
    }

    /// Any characters at all.
    fn characters(&mut self, count: usize) -> String {
        let mut text = String::new();
        while text.chars().count() < count {
            let most = [0x80, 0x800, 0x3000, 0x1_0000, 0x11_0000][self.random.below(5)];
            text.extend(
                u32::try_from(self.random.below(most))
                    .ok()
                    .and_then(char::from_u32),
            );
        }
        text
    }

    /// One short text over and over: pieces as long as they get.
    fn repeated(&mut self) -> String {
        let pieces = 1 + self.random.below(3);
        let unit = self.random.text(pieces);
        unit.repeat(1 + self.random.below(120))
    }
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => collect(&path, files),
            Ok(kind) if kind.is_file() => files.push(path),
            _ => {}
        }
    }
}

/// Counts all texts by the processor at hand, as any processor would, and by the reference.
fn differential(test: &str, vocabulary: impl Fn() -> Vocabulary, reference: impl Fn(&str) -> u64) {
    let (at_hand, mut any) = (vocabulary(), vocabulary());
    any.on_any_processor();
    Texts::asked_for(test).each(|text| {
        let expected = reference(text);
        for vocabulary in [&at_hand, &any] {
            let count = vocabulary.count(text).expect("countable");
            assert_eq!(count, expected, "{text:?}");
        }
    });
}

#[test]
fn differential_o200k() {
    let reference = bpe_openai::o200k_base();
    differential("differential_o200k", Vocabulary::o200k, |text| {
        reference.count(text) as u64
    });
}

#[test]
fn differential_cl100k() {
    let reference = bpe_openai::cl100k_base();
    differential("differential_cl100k", Vocabulary::cl100k, |text| {
        reference.count(text) as u64
    });
}

/// A `tokenizer.json` of a vocabulary's first tokens, as published models have theirs: made of ranks, with every way in
/// which two tokens make a third.
fn file(of: &OpenAi, tokens: u64, pre_tokenizer: &Value, normalizer: &Value) -> Value {
    let letters = byte_letters();
    let shown = |bytes: &[u8]| -> String {
        bytes
            .iter()
            .map(|byte| letters[usize::from(*byte)])
            .collect()
    };
    let count = (of.bpe.num_tokens() as u64).min(tokens);
    let count = u32::try_from(count).expect("a vocabulary");
    let numbers: HashMap<&[u8], u32> = (0..count).map(|id| (of.bpe.token_bytes(id), id)).collect();
    let (mut vocab, mut merges) = (Map::new(), Vec::new());
    for id in 0..count {
        let bytes = of.bpe.token_bytes(id);
        vocab.insert(shown(bytes), id.into());
        let mut ways: Vec<(u32, u32, usize)> = (1..bytes.len())
            .filter_map(|at| {
                let (left, right) = bytes.split_at(at);
                Some((*numbers.get(left)?, *numbers.get(right)?, at))
            })
            .collect();
        ways.sort_unstable();
        let ways = ways.into_iter().map(|(_, _, at)| bytes.split_at(at));
        merges.extend(ways.map(|(left, right)| json!([shown(left), shown(right)])));
    }
    let special = |id: u32, content: &str| {
        json!({"id": id, "content": content, "single_word": false, "lstrip": false, "rstrip": false,
            "normalized": false, "special": true})
    };
    json!({
        "version": "1.0",
        "added_tokens": [special(count, "<|start|>"), special(count + 1, "<|end|>")],
        "normalizer": normalizer,
        "pre_tokenizer": pre_tokenizer,
        "post_processor": null,
        "decoder": {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true},
        "model": {"type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,
            "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false, "ignore_merges": true,
            "vocab": vocab, "merges": merges},
    })
}

fn split(grammar: Grammar) -> Value {
    let pattern = PATTERNS.iter().find(|(_, of)| *of == grammar);
    let (pattern, _) = pattern.expect("it has a pattern in files");
    splits(&[pattern])
}

fn splits(patterns: &[&str]) -> Value {
    let split = |pattern| json!({"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": false});
    let mut all: Vec<Value> = patterns.iter().map(split).collect();
    all.push(json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false}));
    json!({"type": "Sequence", "pretokenizers": all})
}

/// What a file puts before its merges.
struct Kind {
    pre_tokenizer: Value,
    normalizer: Value,
}

fn kind(pre_tokenizer: Value) -> Kind {
    Kind {
        pre_tokenizer,
        normalizer: Value::Null,
    }
}

fn differential_file(test: &str, of: &OpenAi, tokens: u64, kind: &Kind) {
    let file = file(of, tokens, &kind.pre_tokenizer, &kind.normalizer).to_string();
    let reference = Tokenizer::from_bytes(&file).unwrap_or_else(|error| panic!("{error}"));
    let vocabulary = || {
        let known = HuggingFace::read(file.as_bytes(), &reference);
        Vocabulary::HuggingFace(Box::new(known.expect("known")))
    };
    differential(test, vocabulary, |text| {
        let encoding = reference.encode_fast(text, false);
        encoding.expect("a count").len() as u64
    });
}

/// The same of the first tokens.
fn differential_part(test: &str, of: &OpenAi, kind: &Kind) {
    let tokens = number_of("TOLLGATE_DIFFERENTIAL_TOKENS", TOKENS);
    differential_file(test, of, tokens, kind);
}

#[test]
fn differential_llama_3_whole() {
    let kind = kind(split(Grammar::Cl100k));
    let of = bpe_openai::cl100k_base();
    differential_file("differential_llama_3_whole", of, u64::MAX, &kind);
}

#[test]
fn differential_qwen_2() {
    let kind = Kind {
        pre_tokenizer: split(Grammar::Qwen2),
        normalizer: json!({"type": "NFC"}),
    };
    let of = bpe_openai::cl100k_base();
    differential_part("differential_qwen_2", of, &kind);
}

#[test]
fn differential_gpt_2() {
    let kind = kind(
        json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true}),
    );
    let of = bpe_openai::cl100k_base();
    differential_part("differential_gpt_2", of, &kind);
}

#[test]
fn differential_o200k_as_a_file() {
    let kind = kind(split(Grammar::O200k));
    let of = bpe_openai::o200k_base();
    differential_part("differential_o200k_as_a_file", of, &kind);
}

#[test]
fn differential_deepseek_3() {
    let kind = kind(splits(&DEEPSEEK));
    let of = bpe_openai::cl100k_base();
    differential_part("differential_deepseek_3", of, &kind);
}
