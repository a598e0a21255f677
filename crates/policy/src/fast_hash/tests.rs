//! The hash spreads.

use std::collections::HashSet;
use std::hash::{BuildHasher, Hasher};

use super::{Mix, Mixer};

#[test]
fn neighbouring_keys_do_not_collide() {
    let hash = |key: u64| {
        let mut mixer = Mixer::default();
        mixer.write_u64(key);
        mixer.finish()
    };
    for shift in [0, 15, 30, 48] {
        spread((0..4096).map(|k| hash(k << shift)), 3500);
    }
}

#[test]
fn names_of_all_lengths_are_told_apart() {
    for len in 0..40 {
        let name = |nth: u32| format!("{}{nth:04}", "n".repeat(len));
        let hashes = (0..4096).map(|nth| Mix::default().hash_one(name(nth).as_bytes()));
        // Names of one length differ in digits alone, and more of them meet than by chance.
        spread(hashes, 3200);
    }
    let lengths = (0..200).map(|len| Mix::default().hash_one(vec![0_u8; len]));
    assert_eq!(lengths.collect::<HashSet<_>>().len(), 200);
}

/// Each place of a short name counts.
#[test]
fn a_name_that_differs_in_one_byte_has_another_hash() {
    for len in 1..40 {
        let mut hashes = HashSet::new();
        for at in 0..len {
            let mut name = vec![b'a'; len];
            name[at] = b'b';
            hashes.insert(Mix::default().hash_one(name));
        }
        assert_eq!(hashes.len(), len);
    }
}

/// Of 4096 hashes, by chance 3971 have low halves of their own.
fn spread(hashes: impl Iterator<Item = u64>, least: usize) {
    let hashes: Vec<u64> = hashes.collect();
    // A table picks buckets by the low bits and tells entries apart by the high ones.
    let low: HashSet<u64> = hashes.iter().map(|h| h & 0xffff).collect();
    let high: HashSet<u64> = hashes.iter().map(|h| h >> 57).collect();
    assert!(low.len() > least, "{} low", low.len());
    assert_eq!(high.len(), 128, "high");
}
