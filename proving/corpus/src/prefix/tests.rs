//! Predicted hits against a cache that keeps every prompt whole.

use proptest::prelude::*;

use super::*;
use crate::seeded::seeded;

const BLOCK: u32 = 4;

/// Every prefix of full blocks of every prompt so far.
#[derive(Default)]
struct Naive(HashSet<Vec<u32>>);

impl Naive {
    fn request(&mut self, ids: &[u32]) -> u64 {
        let block = BLOCK as usize;
        let most = ids.len().saturating_sub(1) / block;
        let known = (1..=most).take_while(|n| self.0.contains(&ids[..n * block]));
        let hit = known.count() * block;
        for n in 1..=ids.len() / block {
            self.0.insert(ids[..n * block].to_vec());
        }
        hit as u64
    }
}

fn sessions() -> impl Strategy<Value = Vec<Vec<Vec<u32>>>> {
    // Few different tokens, so that much is shared.
    let prompt = prop::collection::vec(0_u32..2, 0..24);
    prop::collection::vec(prop::collection::vec(prompt, 1..5), 1..8)
}

proptest! {
    #![proptest_config(seeded("prefix", 256))]

    #[test]
    fn hits_are_those_of_a_cache_that_keeps_everything(sessions in sessions()) {
        let (mut naive, mut known) = (Naive::default(), Known::new());
        for session in &sessions {
            let mut blocks = SessionBlocks::new(BLOCK);
            let mut before: &[u32] = &[];
            for ids in session {
                let turn = blocks.prompt(ids.clone());
                let common = before.iter().zip(ids).take_while(|(a, b)| a == b).count();
                prop_assert_eq!(turn.new_tokens as usize, ids.len() - common);
                let hits = known.request(&turn, BLOCK);
                prop_assert_eq!(hits.queries_tokens, ids.len() as u64);
                prop_assert_eq!(hits.hit_tokens, naive.request(ids));
                prop_assert!(hits.hit_tokens_own <= hits.hit_tokens);
                before = ids;
            }
        }
        let first: HashSet<&Vec<u32>> = naive.0.iter().filter(|prefix| prefix.len() == BLOCK as usize).collect();
        prop_assert_eq!(known.first_blocks(), first.len() as u64);
    }
}

#[test]
fn the_last_token_of_a_prompt_is_never_a_hit() {
    let (mut known, ids) = (Known::new(), vec![1; 8]);
    for _ in 0..2 {
        let turn = SessionBlocks::new(BLOCK).prompt(ids.clone());
        known.request(&turn, BLOCK);
    }
    let hits = known.request(&SessionBlocks::new(BLOCK).prompt(ids), BLOCK);
    assert_eq!((hits.queries_tokens, hits.hit_tokens), (8, 4));
}

#[test]
fn short_of_room_a_hit_is_too_small_by_less_than_the_stride() {
    let long = |session: u32| -> Vec<u32> {
        (0..4 * 3_000)
            .map(|i| if i < 4 * 2_500 { i } else { i ^ session << 20 })
            .collect()
    };
    let mut known = Known::with_room(2_000);
    known.request(&SessionBlocks::new(BLOCK).prompt(long(1)), BLOCK);
    assert!(known.stride() > 1);
    let second = SessionBlocks::new(BLOCK).prompt(long(2));
    let hit = known.request(&second, BLOCK).hit_tokens;
    let (exact, stride) = (4 * 2_500, u64::from(known.stride()));
    assert!(
        hit <= exact && hit + 4 * stride > exact,
        "{hit} of {exact}, stride {stride}"
    );
    assert!(known.names.len() <= 2_000);
}

#[test]
fn past_all_room_blocks_are_counted_and_not_kept() {
    let mut known = Known::with_room(100);
    let ids = (0..4 * 5_000).collect();
    known.request(&SessionBlocks::new(BLOCK).prompt(ids), BLOCK);
    assert!(known.not_kept() > 0);
    assert_eq!(known.names.len(), 100);
}
