//! Names, reuse and room, in a cache of a few blocks.

use super::*;

fn cache(blocks: u32) -> KvCache {
    KvCache::new(KvConfig {
        block_size: 4,
        blocks: blocks + 1,
        prefix_caching: true,
        sliding_window: None,
    })
}

fn tokens(from: u32, n: u32) -> Vec<u32> {
    (from..from + n).collect()
}

#[test]
fn a_block_hash_covers_its_whole_prefix() {
    let a = Chain::of_tokens(&tokens(0, 12), 4, 1);
    let b = Chain::of_tokens(&[&tokens(9, 4)[..], &tokens(4, 8)].concat(), 4, 1);
    assert_ne!(a.block(0), b.block(0));
    assert_ne!(
        a.block(1),
        b.block(1),
        "same tokens after another beginning"
    );
    let longer = Chain::of_tokens(&tokens(0, 15), 4, 2);
    assert_eq!(a.block(2), longer.block(2));
    assert_ne!(
        a.block(3),
        longer.block(3),
        "beyond the full blocks nothing is shared"
    );
}

#[test]
fn turns_of_one_conversation_share_what_both_have_and_nothing_else() {
    let system = vec![BlockHash(1), BlockHash(2)];
    let first = Chain::of_turn(system.clone(), 7, 5, 100);
    let second = Chain::of_turn(system.clone(), 7, 9, 101);
    let other = Chain::of_turn(system, 8, 9, 102);
    let alike = |a: &Chain, b: &Chain| -> Vec<u32> {
        (0..12).filter(|&i| a.block(i) == b.block(i)).collect()
    };
    assert_eq!(alike(&first, &second), [0, 1, 2, 3, 4]);
    assert_eq!(alike(&second, &other), [0, 1]);
    assert_eq!((first.shareable(), second.shareable()), (5, 9));
}

#[test]
fn released_blocks_are_evicted_oldest_first_and_the_end_of_a_prefix_before_its_start() {
    let mut kv = cache(4);
    let old = Chain::of_tokens(&tokens(0, 16), 4, 1);
    let mut table = Table::default();
    assert!(kv.admit(&mut table, &old, Hit::default(), 16, None));
    kv.release(&mut table);
    assert_eq!(kv.look_up(&old, 17).blocks, 4);
    let new = Chain::unshared(2);
    assert!(kv.admit(&mut table, &new, Hit::default(), 5, None));
    assert_eq!(
        kv.look_up(&old, 17).blocks,
        2,
        "its last two blocks went first"
    );
    kv.audit([&table].into_iter()).unwrap();
}

#[test]
fn a_cached_free_block_counts_against_the_free_blocks() {
    let mut kv = cache(4);
    let chain = Chain::of_tokens(&tokens(0, 8), 4, 1);
    let mut first = Table::default();
    assert!(kv.admit(&mut first, &chain, Hit::default(), 8, None));
    kv.release(&mut first);
    let (mut table, hit) = (Table::default(), kv.look_up(&chain, 20));
    assert_eq!(hit.tokens, 8);
    assert!(
        !kv.admit(&mut table, &chain, hit, 12, None),
        "2 cached and 3 new, of 4"
    );
    assert_eq!(kv.free(), 4);
    assert!(kv.admit(&mut table, &chain, hit, 8, None));
    assert_eq!(kv.free(), 0);
}

#[test]
fn with_a_window_a_hit_needs_the_window_too() {
    let mut kv = KvCache::new(KvConfig {
        block_size: 4,
        blocks: 40,
        prefix_caching: true,
        sliding_window: Some(8),
    });
    let chain = Chain::of_tokens(&tokens(0, 40), 4, 1);
    let mut table = Table::default();
    assert!(kv.admit(&mut table, &chain, Hit::default(), 40, None));
    assert!(kv.grow(&mut table, &chain, 40, 1));
    kv.audit([&table].into_iter()).unwrap();
    kv.release(&mut table);
    assert_eq!(kv.look_up(&chain, 41).blocks, 10);
    // Half of a cached prompt: its window was given back but not used for anything else yet.
    assert_eq!(kv.look_up(&chain, 21).blocks, 5);
}

#[test]
fn the_audit_sees_a_block_that_went_missing() {
    let mut kv = cache(4);
    let mut table = Table::default();
    assert!(kv.admit(&mut table, &Chain::unshared(1), Hit::default(), 8, None));
    assert!(kv.audit(std::iter::empty()).is_err());
}
