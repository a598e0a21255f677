//! Merged as the rule says, whatever the way.

use super::super::pairs::{Merge, Pairs, write};
use super::{FEW, FEWER, FEWEST, count, encode_few, encode_many};
use crate::tests::random::Random;

const O200K: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/o200k.pairs"));
const CL100K: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/cl100k.pairs"));

fn whole(pairs: &Pairs<'_>, text: &[u8]) -> Vec<(u32, usize)> {
    let mut tokens = Vec::new();
    encode_many(pairs, text, &mut tokens);
    tokens
}

#[test]
fn few_symbols_merge_as_many_do() {
    let pairs = Pairs::read(O200K).expect("a block");
    let mut random = Random::of("few_symbols_merge_as_many_do");
    for round in 0..5_000 {
        let text = random.text(1 + round % 12);
        let text = &text.as_bytes()[..text.len().min(FEW)];
        let mut few = Vec::new();
        encode_few::<FEW>(&pairs, text, |token| few.push(token));
        if text.len() <= FEWER {
            let mut fewer = Vec::new();
            encode_few::<FEWER>(&pairs, text, |token| fewer.push(token));
            assert_eq!(fewer, few, "{text:?}");
        }
        if text.len() <= FEWEST {
            let mut fewest = Vec::new();
            encode_few::<FEWEST>(&pairs, text, |token| fewest.push(token));
            assert_eq!(fewest, few, "{text:?}");
        }
        assert_eq!(few, whole(&pairs, text), "{text:?}");
    }
}

#[test]
fn a_long_piece_in_windows_has_the_tokens_of_the_whole() {
    let pairs = Pairs::read(O200K).expect("a block");
    let mut random = Random::of("a_long_piece_in_windows_has_the_tokens_of_the_whole");
    for round in 0..120 {
        let mut text = Vec::new();
        while text.len() < 50 * (1 + round % 60) {
            match random.below(4) {
                0 => text.extend(random.text(3).bytes()),
                1 => text.extend([b'a' + random.below(26) as u8].repeat(random.below(300))),
                2 => text.extend((0..40).map(|_| b'a' + random.below(26) as u8)),
                _ => text.extend(b" ".repeat(random.below(400))),
            }
        }
        assert_eq!(
            count(&pairs, &text),
            whole(&pairs, &text).len() as u64,
            "{text:?}"
        );
    }
}

#[test]
fn a_merge_that_depends_on_the_far_end_is_found() {
    // Of `abab…`, pairs merge from the right: a rank lower than all before it for each place further right.
    let bytes = std::array::from_fn(|byte| byte as u32);
    let merge = |at| Merge {
        left: at,
        right: at + 1,
        rank: 1000 - at,
        token: 256 + at,
    };
    let merges: Vec<Merge> = (0..255).map(merge).collect();
    let tokens: Vec<[u8; 2]> = (0..255).map(|at| [at, at + 1]).collect();
    let block = write(&bytes, &merges, tokens.iter().map(<[u8; 2]>::as_slice)).expect("they fit");
    let pairs = Pairs::read(&block).expect("a block");
    for length in [100, 101, 254, 255] {
        let text: Vec<u8> = (0..length).collect();
        assert_eq!(count(&pairs, &text), u64::from(length).div_ceil(2));
        assert_eq!(
            whole(&pairs, &text).len() as u64,
            u64::from(length).div_ceil(2)
        );
    }
}

#[test]
fn every_token_is_that_of_the_reference() {
    let vocabularies = [
        (O200K, bpe_openai::o200k_base()),
        (CL100K, bpe_openai::cl100k_base()),
    ];
    for (block, reference) in vocabularies {
        let pairs = Pairs::read(block).expect("a block");
        let tokens = u32::try_from(reference.bpe.num_tokens()).expect("a vocabulary");
        assert!(tokens > 100_000, "{tokens}");
        for token in 0..tokens {
            let bytes = reference.bpe.token_bytes(token);
            assert_eq!(whole(&pairs, bytes), [(token, bytes.len())], "{bytes:?}");
        }
    }
}
