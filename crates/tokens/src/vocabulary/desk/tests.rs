//! What one vocabulary knows is no other's, and no thread's is another's.

use super::super::Vocabulary;
use super::super::known::{Key, VOCABULARIES};
use super::Desk;
use crate::tests::random::Random;

fn known(desk: &mut Desk, vocabulary: u8, tokens: u64) -> u64 {
    let key = Key::of(b"a piece of text.", 7, vocabulary);
    desk.known.second(key, || tokens)
}

#[test]
fn a_piece_is_known_to_the_vocabulary_that_counted_it() {
    let mut desk = Desk::default();
    let (one, other) = (desk.vocabulary(7), desk.vocabulary(9));
    assert_eq!(known(&mut desk, one, 3), 3);
    assert_eq!(known(&mut desk, other, 4), 4);
    assert_eq!(known(&mut desk, one, 5), 3);
    assert_eq!(known(&mut desk, other, 5), 4);
    let piece = "twenty bytes of text";
    desk.known.keep_long(piece.as_bytes(), one, 6);
    assert_eq!(desk.known.long(piece.as_bytes(), one), Some(6));
    assert_eq!(desk.known.long(piece.as_bytes(), other), None);
}

#[test]
fn more_vocabularies_than_can_be_told_apart_begin_anew() {
    let mut desk = Desk::default();
    let first = desk.vocabulary(0);
    assert_eq!(known(&mut desk, first, 3), 3);
    for number in 1..VOCABULARIES as u64 {
        desk.vocabulary(number);
    }
    assert_eq!(desk.vocabulary(0), first);
    assert_eq!(known(&mut desk, first, 5), 3);
    let another = desk.vocabulary(VOCABULARIES as u64);
    assert_eq!(another, first);
    assert_eq!(known(&mut desk, another, 5), 5);
}

#[test]
fn many_threads_at_once_count_as_one() {
    let vocabularies = [Vocabulary::o200k(), Vocabulary::cl100k()];
    let mut random = Random::of("many_threads_at_once_count_as_one");
    let texts: Vec<String> = (0..50).map(|_| random.text(40)).collect();
    let counts = || -> Vec<u64> {
        let counts = texts.iter().flat_map(|text| {
            let count = |vocabulary: &Vocabulary| vocabulary.count(text).expect("countable");
            vocabularies.each_ref().map(count)
        });
        counts.collect()
    };
    let expected = counts();
    std::thread::scope(|scope| {
        let all: Vec<_> = (0..40).map(|_| scope.spawn(counts)).collect();
        for one in all {
            assert_eq!(one.join().expect("no panic"), expected);
        }
    });
}
