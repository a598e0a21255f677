//! Answers that are kept, each until its own end.
//!
//! Invariant: no more entries and no more weight than the bounds. Where there is no room, those that were kept first go
//! first, whether or not they are still asked for.

use std::collections::{HashMap, VecDeque};

use tokio::time::Instant;

use super::{Found, Key};

pub(super) struct Cache<V> {
    entries_max: usize,
    weight_max: usize,
    entries: HashMap<Key, Entry<V>>,
    /// In the order in which they were kept; those of which the number is not the entry's are gone.
    order: VecDeque<(Key, u64)>,
    weight: usize,
    next: u64,
}

struct Entry<V> {
    value: V,
    until: Instant,
    weight: usize,
    number: u64,
}

impl<V: Clone> Cache<V> {
    pub(super) fn new(entries_max: usize, weight_max: usize) -> Self {
        Self {
            entries_max,
            weight_max,
            entries: HashMap::new(),
            order: VecDeque::new(),
            weight: 0,
            next: 0,
        }
    }

    pub(super) fn get(&mut self, key: &Key, now: Instant) -> Option<V> {
        let entry = self.entries.get(key)?;
        if entry.until > now {
            return Some(entry.value.clone());
        }
        self.forget(key);
        None
    }

    pub(super) fn keep(&mut self, key: Key, found: &Found<V>, now: Instant) {
        self.forget(&key);
        let Some(until) = now.checked_add(found.good_for).filter(|until| *until > now) else {
            return;
        };
        let number = self.next;
        self.next += 1;
        self.weight = self.weight.saturating_add(found.weight);
        let entry = Entry {
            value: found.value.clone(),
            until,
            weight: found.weight,
            number,
        };
        self.entries.insert(key, entry);
        self.order.push_back((key, number));
        self.shrink();
    }

    pub(super) fn forget(&mut self, key: &Key) {
        if let Some(gone) = self.entries.remove(key) {
            self.weight = self.weight.saturating_sub(gone.weight);
        }
    }

    fn shrink(&mut self) {
        while self.entries.len() > self.entries_max || self.weight > self.weight_max {
            let Some((key, number)) = self.order.pop_front() else {
                return;
            };
            if self.is_live(&key, number) {
                self.forget(&key);
            }
        }
        if self.order.len() > self.entries.len() * 2 + 64 {
            let mut order = std::mem::take(&mut self.order);
            order.retain(|(key, number)| self.is_live(key, *number));
            self.order = order;
        }
    }

    fn is_live(&self, key: &Key, number: u64) -> bool {
        let entry = self.entries.get(key);
        entry.is_some_and(|entry| entry.number == number)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn found(value: u64, weight: usize) -> Found<u64> {
        let good_for = Duration::from_secs(10);
        Found {
            value,
            is_yes: true,
            good_for,
            weight,
        }
    }

    fn key(number: u64) -> Key {
        let mut key = [0; 32];
        key[24..].copy_from_slice(&number.to_be_bytes());
        key
    }

    #[test]
    fn those_that_were_kept_first_go_first() {
        let (mut cache, now) = (Cache::new(3, 100), Instant::now());
        for number in [1, 2, 3, 1, 4] {
            cache.keep(key(number), &found(number, 1), now);
        }
        // 1 was kept anew after 3, so that 2 is the oldest.
        let held = |cache: &mut Cache<u64>| [1, 2, 3, 4, 5].map(|n| cache.get(&key(n), now));
        assert_eq!(held(&mut cache), [Some(1), None, Some(3), Some(4), None]);
        cache.keep(key(5), &found(5, 99), now);
        assert_eq!(held(&mut cache), [None, None, None, Some(4), Some(5)]);
        cache.keep(key(6), &found(6, 101), now);
        assert_eq!((cache.entries.len(), cache.weight), (0, 0));
    }

    #[test]
    fn an_entry_ends_and_the_order_stays_bounded() {
        let (mut cache, mut now) = (Cache::new(3, 100), Instant::now());
        for number in 0..10_000 {
            cache.keep(key(number % 2), &found(number, 1), now);
            assert!(cache.order.len() <= 3 * 2 + 65, "{}", cache.order.len());
        }
        now += Duration::from_millis(9_999);
        assert_eq!(cache.get(&key(0), now), Some(9_998));
        now += Duration::from_millis(1);
        assert_eq!(cache.get(&key(0), now), None);
        let gone = Found {
            good_for: Duration::ZERO,
            ..found(1, 1)
        };
        cache.keep(key(9), &gone, now);
        assert_eq!(cache.get(&key(9), now), None);
    }
}
