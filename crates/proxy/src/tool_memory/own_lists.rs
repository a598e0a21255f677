//! Lists of servers that are asked as their callers alone, each kept for whoever brings the token that it was listed to.
//!
//! Invariant: it is bounded, and past a bound what came first goes first; a token that its server refuses has no list there any more.
//! Not here: how long a list is good (`tool_memory`), whose token it is (`tools::own_tokens`).

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use mcp::catalog::{Catalog, Kind};
use mcp::index;
use mcp::session::OwnTokens;
use mcp::version::Version;

use super::{Kept, Key};

/// Most lists of a worker.
const LISTS_MAX: usize = 1024;
/// Most bytes of them all, and of one, with the words that may be cut of it.
const BYTES_MAX: usize = 32 << 20;
const LIST_BYTES_MAX: usize = 8 << 20;
/// Bytes of words for each byte of a list, at most.
const WORDS_OF_BYTE: usize = 4;

/// A list, and the token that it was listed to.
type Of = (Key, OwnTokens);

/// The lists, and in which order they came.
#[derive(Default)]
pub(super) struct OwnLists {
    lists: HashMap<Of, (u64, Kept)>,
    came: VecDeque<(u64, Of)>,
    next: u64,
    bytes: usize,
}

impl OwnLists {
    pub(super) fn get(&self, key: Key, token: OwnTokens) -> Option<&Kept> {
        self.lists.get(&(key, token)).map(|(_, kept)| kept)
    }

    /// Keeps it, and no more what is good no more by `is_good`.
    pub(super) fn keep(
        &mut self,
        key: Key,
        token: OwnTokens,
        kept: Kept,
        is_good: impl Fn(&Kept) -> bool,
    ) {
        let of = (key, token);
        self.remove(&of);
        let bytes = counted(&kept.list);
        if bytes > LIST_BYTES_MAX {
            return;
        }
        while let Some((number, first)) = self.came.front() {
            let its = self.lists.get(first).filter(|(of, _)| of == number);
            let has_room = self.lists.len() < LISTS_MAX
                && self.came.len() < 2 * LISTS_MAX
                && self.bytes + bytes <= BYTES_MAX;
            if has_room && its.is_some_and(|(_, kept)| is_good(kept)) {
                break;
            }
            let first = its.is_some().then_some(*first);
            self.came.pop_front();
            first.iter().for_each(|of| self.remove(of));
        }
        self.next += 1;
        self.bytes += bytes;
        self.came.push_back((self.next, of));
        self.lists.insert(of, (self.next, kept));
    }

    /// A server refuses this token.
    pub(super) fn forget(&mut self, server: usize, token: OwnTokens) {
        for kind in Kind::ALL {
            for version in Version::ALL {
                self.remove(&((server, kind, version), token));
            }
        }
    }

    fn remove(&mut self, of: &Of) {
        if let Some((_, kept)) = self.lists.remove(of) {
            self.bytes = self.bytes.saturating_sub(counted(&kept.list));
        }
    }
}

/// What a list counts, with the words that may be cut of it.
fn counted(list: &Arc<Catalog>) -> usize {
    let bytes = list.bytes();
    let words = (bytes * WORDS_OF_BYTE).min(index::BYTES_MAX);
    bytes + words + list.items().len() * size_of::<mcp::catalog::Item>()
}

#[cfg(test)]
mod tests {
    //! What is kept, and what goes.

    use std::sync::Arc;

    use mcp::catalog::{Catalog, Kind};
    use mcp::session::OwnTokens;
    use mcp::version::Version;
    use policy::clock::Mono;
    use policy::secret::Secret;

    use super::{BYTES_MAX, Kept, LISTS_MAX, OwnLists};

    fn token(of: usize) -> OwnTokens {
        let secret = Secret::new(of.to_string().into_bytes());
        OwnTokens::new([("", &secret)].into_iter()).expect("a token")
    }

    /// A list of one tool of so many bytes.
    fn list(bytes: usize) -> Kept {
        let mut list = Catalog::default();
        let long = "x".repeat(bytes);
        let page = format!(r#"{{"tools":[{{"name":"t","description":"{long}"}}]}}"#);
        list.add_page(Kind::Tools, page.as_bytes()).expect("a list");
        Kept {
            at: Mono::default(),
            changes: 0,
            list: Arc::new(list),
        }
    }

    const KEY: super::Key = (0, Kind::Tools, Version::V20251125);

    #[test]
    fn a_list_is_that_of_its_token_until_the_server_refuses_that() {
        let mut lists = OwnLists::default();
        lists.keep(KEY, token(1), list(1), |_| true);
        lists.keep(
            (1, Kind::Tools, Version::V20251125),
            token(1),
            list(1),
            |_| true,
        );
        lists.keep(
            (0, Kind::Prompts, Version::V20260728),
            token(1),
            list(1),
            |_| true,
        );
        lists.keep(KEY, token(2), list(1), |_| true);
        assert!(lists.get(KEY, token(1)).is_some() && lists.get(KEY, token(3)).is_none());
        lists.forget(0, token(1));
        assert!(lists.get(KEY, token(1)).is_none() && lists.get(KEY, token(2)).is_some());
        assert_eq!(lists.lists.len(), 2, "and that of another server");
        lists.forget(1, token(1));
        lists.forget(0, token(2));
        assert_eq!(lists.bytes, 0);
        // Of what was forgotten nothing stands in the order for long.
        lists.keep(KEY, token(4), list(1), |_| true);
        assert_eq!(lists.came.len(), 1);
    }

    #[test]
    fn past_a_bound_and_once_it_is_good_no_more_what_came_first_goes_first() {
        let mut lists = OwnLists::default();
        for of in 0..=LISTS_MAX {
            lists.keep(KEY, token(of), list(1), |_| true);
        }
        assert!(lists.get(KEY, token(0)).is_none() && lists.get(KEY, token(1)).is_some());
        assert_eq!(
            (lists.lists.len(), lists.came.len()),
            (LISTS_MAX, LISTS_MAX)
        );
        lists.keep(KEY, token(1), list(1), |_| false);
        assert_eq!(lists.lists.len(), 1);
        for of in 0..100 {
            lists.keep(KEY, token(of), list(1 << 20), |_| true);
            assert!(lists.bytes <= BYTES_MAX && lists.get(KEY, token(of)).is_some());
        }
        assert!(lists.lists.len() < 10);
        lists.keep(KEY, token(99), list(4 << 20), |_| true);
        assert!(lists.get(KEY, token(99)).is_none(), "it is too long");
    }
}
