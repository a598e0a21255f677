//! OpenAI's vocabulary as the `tokenizers` crate counts with it: as a published `tokenizer.json` would have it.
//!
//! Not here: how fast that is (`main`).

use std::collections::HashMap;

use serde_json::{Map, Value, json};
use tokenizers::Tokenizer;

const PATTERN: &str = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+";

pub(crate) fn tokenizer(of: &bpe_openai::Tokenizer) -> Tokenizer {
    let bpe = &of.bpe;
    let count = u32::try_from(bpe.num_tokens()).expect("a vocabulary");
    let numbers: HashMap<&[u8], u32> = (0..count).map(|id| (bpe.token_bytes(id), id)).collect();
    let (mut vocab, mut merges): (Map<String, Value>, Vec<Value>) = (Map::new(), Vec::new());
    for id in 0..count {
        let bytes = bpe.token_bytes(id);
        vocab.insert(shown(bytes), id.into());
        let ways = (1..bytes.len()).filter_map(|at| {
            let (left, right) = bytes.split_at(at);
            Some((*numbers.get(left)?, *numbers.get(right)?))
        });
        let mut ways: Vec<(u32, u32)> = ways.collect();
        ways.sort_unstable();
        let text = |id| shown(bpe.token_bytes(id));
        merges.extend(
            ways.into_iter()
                .map(|(left, right)| json!([text(left), text(right)])),
        );
    }
    let file = json!({
        "version": "1.0",
        "added_tokens": [],
        "normalizer": null,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
            {"type": "Split", "pattern": {"Regex": PATTERN}, "behavior": "Isolated", "invert": false},
            {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false},
        ]},
        "post_processor": null,
        "decoder": null,
        "model": {"type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,
            "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false, "ignore_merges": true,
            "vocab": vocab, "merges": merges},
    });
    Tokenizer::from_bytes(file.to_string()).unwrap_or_else(|error| panic!("{error}"))
}

/// The letters that stand for bytes.
fn shown(bytes: &[u8]) -> String {
    let letter = |byte: &u8| match *byte {
        byte @ (b'!'..=b'~' | 0xA1..=0xAC | 0xAE..=0xFF) => char::from(byte),
        // The others in turn, from U+0100 on.
        byte @ 0..=b' ' => char::from_u32(0x100 + u32::from(byte)).unwrap_or(' '),
        byte @ 0x7F..=0xA0 => char::from_u32(0x121 + u32::from(byte - 0x7F)).unwrap_or(' '),
        0xAD => '\u{143}',
    };
    bytes.iter().map(letter).collect()
}
