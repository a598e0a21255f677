//! What is remembered is what was counted, in bounded memory.

use std::convert::Infallible;
use std::sync::Arc;

use wire::dialect::Operation;

use super::{Memo, SHARDS, WAYS};
use crate::tests::random::Random;
use crate::{BuiltIn, Counter};

fn count(memo: &Memo, vocabulary: u64, text: &str, tokens: u64) -> u64 {
    let counted = memo.count(vocabulary, text, || Ok::<u64, Infallible>(tokens));
    counted.unwrap_or_else(|never| match never {})
}

#[test]
fn a_text_is_counted_once_for_each_vocabulary() {
    let memo = Memo::new(1 << 20, [1, 2]);
    let text = "x".repeat(200);
    assert_eq!(count(&memo, 0, &text, 7), 7);
    assert_eq!(count(&memo, 0, &text, 8), 7);
    assert_eq!(count(&memo, 1, &text, 9), 9);
    assert_eq!(count(&memo, 0, "short", 1), 1);
    assert_eq!(count(&memo, 0, "short", 2), 2);
    let stats = memo.stats();
    assert_eq!((stats.hits, stats.misses, stats.evictions), (1, 2, 0));
    assert_eq!((stats.hit_bytes, stats.missed_bytes), (200, 400));
}

#[test]
fn without_room_the_text_that_was_asked_for_least_lately_goes() {
    let memo = Memo::new(0, [1, 2]);
    let text = |n: usize| format!("{n:200}");
    for n in 0..10_000 {
        count(&memo, 0, &text(n), n as u64);
        // Asked for again and again, it stays.
        count(&memo, 0, &text(0), 99);
    }
    assert_eq!(count(&memo, 0, &text(0), 99), 0);
    let stats = memo.stats();
    assert_eq!(stats.misses, 10_000);
    assert!(
        stats.evictions >= 10_000 - (SHARDS * WAYS) as u64,
        "{stats:?}"
    );
}

#[test]
fn conversations_that_grow_count_as_they_do_without_a_memory() {
    let memo = Arc::new(Memo::new(1 << 16, [3, 4]));
    let pairs = [
        (Counter::harmony(), Counter::harmony()),
        (
            Counter::without_template(BuiltIn::Cl100k),
            Counter::without_template(BuiltIn::Cl100k),
        ),
    ];
    let pairs = pairs.map(|(with, without)| (with.remembering_in(Arc::clone(&memo)), without));
    let mut random = Random::of("conversations_that_grow_count_as_they_do_without_a_memory");
    for _ in 0..40 {
        let mut messages = Vec::new();
        for turn in 0..8 {
            let role = ["user", "assistant"][turn % 2];
            messages.push(serde_json::json!({"role": role, "content": random.text(100)}));
            let body = serde_json::json!({ "messages": messages }).to_string();
            for (with, without) in &pairs {
                let count = |counter: &Counter| counter.prompt(Operation::Chat, body.as_bytes(), 0);
                assert_eq!(count(with), count(without), "{body}");
            }
        }
    }
    assert!(memo.stats().hits > 500, "{:?}", memo.stats());
}
