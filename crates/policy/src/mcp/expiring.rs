//! A table of what is kept by session, bounded, where each entry is good until a time of its own.
//!
//! Invariant: past a bound what expires first is forgotten first, and nothing walks the table to find it.
//! Not here: what is kept (`ended`, `held`, `kept`), the lock around it.

use std::collections::{BTreeSet, HashMap};

use super::Mark;

/// The table.
#[derive(Debug)]
pub(super) struct Expiring<V> {
    entries_max: usize,
    bytes_max: usize,
    entries: HashMap<Mark, Entry<V>>,
    by_end: BTreeSet<(u64, Mark)>,
    bytes: usize,
}

#[derive(Debug)]
struct Entry<V> {
    until_unix_s: u64,
    /// What it counts against the bound of bytes.
    bytes: usize,
    value: V,
}

impl<V> Expiring<V> {
    /// One of so many entries, and of so many bytes in all that are counted.
    pub(super) fn new(entries_max: usize, bytes_max: usize) -> Self {
        Self {
            entries_max,
            bytes_max,
            entries: HashMap::new(),
            by_end: BTreeSet::new(),
            bytes: 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn has(&self, mark: &Mark) -> bool {
        self.entries.contains_key(mark)
    }

    pub(super) fn get(&self, mark: &Mark) -> Option<&V> {
        self.entries.get(mark).map(|entry| &entry.value)
    }

    pub(super) fn get_mut(&mut self, mark: &Mark) -> Option<&mut V> {
        self.entries.get_mut(mark).map(|entry| &mut entry.value)
    }

    /// The entry, which is good until then from now on. Where there is none, `make` makes one, for which others go where there is no room.
    pub(super) fn entry(
        &mut self,
        mark: Mark,
        until_unix_s: u64,
        unix_s: u64,
        make: impl FnOnce() -> V,
    ) -> &mut V {
        match self.entries.get(&mark) {
            Some(entry) => {
                self.by_end.remove(&(entry.until_unix_s, mark));
            }
            None => {
                self.purge(unix_s);
                while self.entries.len() >= self.entries_max && self.forget_first(None) {}
            }
        }
        self.by_end.insert((until_unix_s, mark));
        let entry = self.entries.entry(mark).or_insert_with(|| Entry {
            until_unix_s,
            bytes: 0,
            value: make(),
        });
        entry.until_unix_s = until_unix_s;
        &mut entry.value
    }

    /// An entry is good until then, too.
    pub(super) fn renew(&mut self, mark: &Mark, until_unix_s: u64) {
        let entry = self.entries.get_mut(mark);
        if let Some(entry) = entry.filter(|entry| entry.until_unix_s < until_unix_s) {
            self.by_end.remove(&(entry.until_unix_s, *mark));
            self.by_end.insert((until_unix_s, *mark));
            entry.until_unix_s = until_unix_s;
        }
    }

    /// An entry counts so many bytes from now on, for which others go where there is no room.
    pub(super) fn count(&mut self, mark: &Mark, bytes: usize) {
        let Some(entry) = self.entries.get_mut(mark) else {
            return;
        };
        self.bytes = self.bytes.saturating_sub(entry.bytes).saturating_add(bytes);
        entry.bytes = bytes;
        while self.bytes > self.bytes_max && self.forget_first(Some(mark)) {}
    }

    /// It is there no more.
    pub(super) fn forget(&mut self, mark: &Mark) -> Option<V> {
        let entry = self.entries.remove(mark)?;
        self.by_end.remove(&(entry.until_unix_s, *mark));
        self.bytes = self.bytes.saturating_sub(entry.bytes);
        Some(entry.value)
    }

    /// Forgets what is good no more.
    pub(super) fn purge(&mut self, unix_s: u64) {
        while let Some(&(until, first)) = self.by_end.first() {
            if until > unix_s {
                break;
            }
            self.forget(&first);
        }
    }

    /// Forgets what expires first, but for one; false where there is nothing to forget.
    fn forget_first(&mut self, but: Option<&Mark>) -> bool {
        let mut all = self.by_end.iter().map(|(_, mark)| *mark);
        let first = all.find(|mark| but != Some(mark));
        first.is_some_and(|first| self.forget(&first).is_some())
    }
}

#[cfg(test)]
mod tests {
    //! Against a table that is walked, and what it forgets.

    use super::{Expiring, Mark};

    fn mark(n: u8) -> Mark {
        [n; 12]
    }

    #[test]
    fn what_expires_first_goes_first_and_what_was_good_longer_stays() {
        let mut table = Expiring::new(3, usize::MAX);
        for (n, until) in [(1, 30), (2, 20), (3, 10)] {
            table.entry(mark(n), until, 0, || n);
        }
        // It is good for longer now.
        assert_eq!(
            *table.entry(mark(3), 40, 0, || unreachable!("it is there")),
            3
        );
        table.entry(mark(4), 50, 0, || 4);
        assert!(!table.has(&mark(2)) && table.has(&mark(3)));
        table.entry(mark(5), 1, 30, || 5);
        assert!(!table.has(&mark(1)), "it was good no more");
        assert_eq!(table.len(), 3);
        assert_eq!(table.forget(&mark(4)), Some(4));
        table.purge(40);
        assert_eq!((table.len(), table.by_end.len()), (0, 0));
    }

    #[test]
    fn bytes_have_a_bound_that_the_one_which_grows_has_before_the_others() {
        let mut table = Expiring::new(10, 100);
        for n in 1..=4 {
            table.entry(mark(n), n.into(), 0, || ());
            table.count(&mark(n), 25);
        }
        table.count(&mark(1), 50);
        assert!(table.has(&mark(1)) && !table.has(&mark(2)) && table.has(&mark(3)));
        table.forget(&mark(1));
        assert_eq!(table.bytes, 50);
        table.count(&mark(3), 0);
        table.count(&mark(9), 70);
        assert_eq!(table.bytes, 25);
    }
}
