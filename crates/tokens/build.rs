//! Writes the built-in vocabularies and the classes of characters in the form in which they are read: as they lie in the
//! program's file, without a copy in memory.
//!
//! The vocabularies are the rank files of `vocabularies/`, the classes those of `regex-syntax`, whose tables the reference
//! tokenizers' patterns are compiled with.
//!
//! Invariant: no tokenizer is compiled or built for this. It runs without optimisation, and before anything that counts
//! can be compiled.

#[path = "src/vocabulary/pairs.rs"]
#[expect(dead_code, reason = "a part of the module is for reading")]
mod pairs;

use std::collections::HashMap;
use std::env;
use std::fs;
use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use pairs::Merge;
use regex_syntax::hir::{Class, HirKind};

/// Characters that share a row of the second table.
const ROW: usize = 256;

#[expect(
    clippy::disallowed_methods,
    reason = "a build script is told by the environment where to write"
)]
fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=src/vocabulary/pairs.rs");
    println!("cargo::rerun-if-changed=vocabularies");
    let dir = PathBuf::from(env::var_os("OUT_DIR").expect("cargo says where"));
    let write = |name: &str, bytes: &[u8]| {
        fs::write(dir.join(name), bytes).expect("cargo's directory can be written");
    };
    write("o200k.pairs", &pairs_of(&ranked("o200k_base")));
    write("cl100k.pairs", &pairs_of(&ranked("cl100k_base")));
    let (rows, characters) = classes();
    write("rows.classes", &rows);
    write("characters.classes", &characters);
}

/// The bytes of a vocabulary's tokens by their rank, out of a file that names them in order.
fn ranked(name: &str) -> Vec<Vec<u8>> {
    let path = format!("vocabularies/{name}.tiktoken");
    let text = fs::read_to_string(&path).unwrap_or_else(|cause| panic!("{path}: {cause}"));
    let token = |(rank, line): (usize, &str)| {
        let (bytes, number) = line.split_once(' ')?;
        (number.parse() == Ok(rank)).then(|| STANDARD.decode(bytes).ok())?
    };
    let tokens = text.lines().enumerate().map(|numbered| {
        let fault = numbered.0 + 1;
        token(numbered).unwrap_or_else(|| panic!("{path}:{fault}: not the next token and its rank"))
    });
    tokens.collect()
}

/// The merges of a vocabulary in which a token's number is its rank.
///
/// Two neighbours merge where together they are a token, lowest number first. Whatever stands around it, a token comes
/// about by the merges that its own bytes undergo alone, so one pair a token is all there is.
fn pairs_of(tokens: &[Vec<u8>]) -> Vec<u8> {
    let count = u32::try_from(tokens.len()).expect("a vocabulary");
    let numbers: HashMap<&[u8], u32> = tokens.iter().map(Vec::as_slice).zip(0..count).collect();
    let long = tokens
        .iter()
        .zip(0..count)
        .filter(|(bytes, _)| bytes.len() > 1);
    let merges = long.map(|(bytes, id)| {
        let (left, right) = last_merge(bytes, &numbers);
        Merge {
            left,
            right,
            rank: id,
            token: id,
        }
    });
    let merges: Vec<_> = merges.collect();
    let bytes = std::array::from_fn(|byte| {
        let byte = u8::try_from(byte).expect("as many as bytes");
        numbers[&[byte][..]]
    });
    let tokens = tokens.iter().map(Vec::as_slice);
    pairs::write(&bytes, &merges, tokens).expect("numbers that fit")
}

/// The two parts that a token's bytes merge to before they are one.
fn last_merge(bytes: &[u8], numbers: &HashMap<&[u8], u32>) -> (u32, u32) {
    let mut cuts: Vec<usize> = (0..=bytes.len()).collect();
    while cuts.len() > 3 {
        let merges = cuts.windows(3).enumerate();
        let lowest =
            merges.filter_map(|(at, cut)| Some((*numbers.get(&bytes[cut[0]..cut[2]])?, at)));
        let (_, at) = lowest
            .min()
            .unwrap_or_else(|| panic!("no merges lead to the token {bytes:?}"));
        cuts.remove(at + 1);
    }
    let part = |from: usize, to: usize| numbers[&bytes[cuts[from]..cuts[to]]];
    (part(0, 1), part(1, 2))
}

/// A table of rows and the class of each character in them.
fn classes() -> (Vec<u8>, Vec<u8>) {
    let mut of = vec![0u8; 0x11_0000];
    // As `classes.rs` names them.
    let names = [
        (r"\s", 1),
        (r"\p{Lu}", 3),
        (r"\p{Lt}", 3),
        (r"\p{Ll}", 4),
        (r"\p{Lm}", 5),
        (r"\p{Lo}", 5),
        (r"\p{M}", 6),
        (r"\p{N}", 7),
        (r"[\p{P}\p{S}]", 8),
        (r"[\r\n]", 2),
    ];
    for (pattern, class) in names {
        let parsed = regex_syntax::parse(pattern).expect("a pattern");
        let HirKind::Class(Class::Unicode(ranges)) = parsed.kind() else {
            panic!("{pattern} is no class");
        };
        for range in ranges.ranges() {
            of[range.start() as usize..=range.end() as usize].fill(class);
        }
    }
    let (mut rows, mut characters, mut places) = (Vec::new(), Vec::new(), HashMap::new());
    for row in of.chunks(ROW) {
        let next = u8::try_from(places.len()).expect("few distinct rows");
        let place = *places.entry(row).or_insert_with(|| {
            characters.extend_from_slice(row);
            next
        });
        rows.push(place);
    }
    (rows, characters)
}
