//! A list's items by what somebody may call them: by their names, by how a name begins, of which a shortened one keeps no more, and by its
//! letters, of which a model that writes it wrong keeps most often all.
//!
//! Invariant: whoever looks for one looks at none that begins otherwise, or has other letters; it is ordered once all pages are in it, and what
//! nobody sees is left out.
//! Not here: what a name is shown as and what may be meant by one (`name`).

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::OnceLock;

use super::{Catalog, Item};
use crate::name::letters;

/// Places of items, ordered when one is first looked for so.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Called {
    /// By their names.
    by_name: OnceLock<Vec<usize>>,
    /// By a hash of their names' letters, with that.
    by_letters: OnceLock<Vec<(u64, usize)>>,
}

impl Catalog {
    /// The item of this name.
    #[must_use]
    pub fn find(&self, own: &str) -> Option<&Item> {
        let first = self.beginning(own).next();
        first.filter(|item| *item.name == *own)
    }

    /// The items whose names begin so, in the order of their names.
    pub(super) fn beginning<'c>(&'c self, start: &str) -> impl Iterator<Item = &'c Item> {
        let item = |at: &usize| self.items.get(*at);
        let by_name = self.called.by_name.get_or_init(|| {
            let mut places: Vec<usize> = (0..self.items.len()).collect();
            places.sort_unstable_by_key(|at| item(at).map(|item| &*item.name));
            places
        });
        let from = by_name.partition_point(|at| item(at).is_some_and(|of| *of.name < *start));
        let from = by_name.get(from..).unwrap_or_default();
        let items = from.iter().filter_map(item);
        items.take_while(move |item| item.name.starts_with(start))
    }

    /// The items whose names may have these letters, each once, in their own order.
    pub(super) fn lettered(
        &self,
        wanted: impl Iterator<Item = char>,
    ) -> impl Iterator<Item = &Item> {
        let by_letters = self.called.by_letters.get_or_init(|| {
            let hashes = self.items.iter().map(|item| hash(letters(&item.name)));
            let mut places: Vec<(u64, usize)> = hashes.zip(0..).collect();
            places.sort_unstable();
            places
        });
        let wanted = hash(wanted);
        let from = by_letters.partition_point(|(of, _)| *of < wanted);
        let from = by_letters.get(from..).unwrap_or_default();
        let same = from.iter().take_while(move |(of, _)| *of == wanted);
        same.filter_map(|(_, at)| self.items.get(*at))
    }
}

fn hash(letters: impl Iterator<Item = char>) -> u64 {
    let mut hasher = DefaultHasher::new();
    letters.for_each(|letter| letter.hash(&mut hasher));
    hasher.finish()
}
