//! Positions stay, and the hash spreads.

use std::collections::HashSet;
use std::hash::Hasher;

use super::{Mixer, Table};

#[test]
fn a_key_keeps_its_place() {
    let mut table = Table::<u64>::default();
    let (a, b) = (table.place(7), table.place(9));
    *table.at(b) += 2;
    assert_eq!(table.place(7), a);
    assert_eq!(table.find(9), Some(b));
    assert_eq!(table.find(8), None);
    assert_eq!(table.rows().collect::<Vec<_>>(), [(7, &0), (9, &2)]);
}

#[test]
fn neighbouring_keys_do_not_collide() {
    let hash = |key: u64| {
        let mut mixer = Mixer::default();
        mixer.write_u64(key);
        mixer.finish()
    };
    for shift in [0, 15, 30, 48] {
        let hashes: Vec<u64> = (0..4096).map(|k| hash(k << shift)).collect();
        // A table picks buckets by the low bits and tells entries apart by the high ones.
        let low: HashSet<u64> = hashes.iter().map(|h| h & 0xffff).collect();
        let high: HashSet<u64> = hashes.iter().map(|h| h >> 57).collect();
        assert!(low.len() > 3500, "{} low at {shift}", low.len());
        assert_eq!(high.len(), 128, "high at {shift}");
    }
}
