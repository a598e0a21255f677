//! Tools whose definitions are pinned, so that a server cannot change in silence what a model is told of them.
//!
//! What is pinned is written in the configuration, or is what this process saw first.
//! Invariant: each change is told once, however often a list is read; what is kept of servers is bounded by their lists.
//! Not here: how a definition becomes a digest, reading lists (`mcp`), who hides what (the host).

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};

/// SHA-256 of a definition.
pub type Digest = [u8; 32];

/// What becomes of a tool that is not as it is pinned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnChange {
    /// It is told in the log, and counted.
    Warn,
    /// It is hidden and refused, too.
    Refuse,
}

/// The pins of one server.
#[derive(Debug)]
pub struct Pins {
    /// What becomes of a tool that is not as pinned.
    pub on_change: OnChange,
    /// What is written, by the server's own names: a tool that is not among them is not as pinned. None: what was seen first.
    pub written: Option<BTreeMap<Box<str>, Digest>>,
    /// The server and where it is: what was seen of one at another address does not count.
    pub of: Box<str>,
}

/// A tool that is not as pinned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Odd {
    /// Its place in what was compared.
    pub at: usize,
    /// It was not known before: it is to be told.
    pub is_news: bool,
    /// No pin is written for it.
    pub is_unpinned: bool,
}

/// What this process saw of servers first, and which changes it told.
#[derive(Debug, Default)]
pub struct Seen(Mutex<HashMap<Box<str>, OfServer>>);

#[derive(Debug, Default)]
struct OfServer {
    first: HashMap<Box<str>, Digest>,
    told: HashMap<Box<str>, Digest>,
    /// Changes that were told.
    count: u64,
}

/// Most tools of one server that are known: as many as a list has, and those that it had before.
const TOOLS_MAX: usize = 20_000;

impl Seen {
    /// Compares what a server lists with its pins: what is not as pinned, in order. What is seen first is kept.
    pub fn compare<'t>(
        &self,
        pins: &Pins,
        tools: impl Iterator<Item = (&'t str, Digest)>,
    ) -> Vec<Odd> {
        let mut servers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = servers.entry(pins.of.clone()).or_default();
        let mut odd = Vec::new();
        for (at, (name, digest)) in tools.enumerate() {
            let pinned = match &pins.written {
                Some(written) => written.get(name).copied(),
                None => known.first_of(name, digest),
            };
            if pinned == Some(digest) {
                // Should it change again, that is told again.
                known.told.remove(name);
                continue;
            }
            let is_news = known.told.get(name) != Some(&digest) && known.told.len() < TOOLS_MAX;
            if is_news {
                known.told.insert(name.into(), digest);
                known.count += 1;
            }
            odd.push(Odd {
                at,
                is_news,
                is_unpinned: pinned.is_none(),
            });
        }
        odd
    }

    /// How many changes of a server were told.
    #[must_use]
    pub fn count(&self, pins: &Pins) -> u64 {
        let servers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        servers.get(&pins.of).map_or(0, |known| known.count)
    }

    /// The digest that counts for a tool, where it has one.
    #[must_use]
    pub fn pinned(&self, pins: &Pins, name: &str) -> Option<Digest> {
        if let Some(written) = &pins.written {
            return written.get(name).copied();
        }
        let servers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        servers.get(&pins.of)?.first.get(name).copied()
    }

    /// Forgets the servers that no configuration has any more.
    pub(crate) fn keep<'p>(&self, pins: impl Iterator<Item = &'p Pins>) {
        let mut servers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut kept = HashMap::new();
        for pins in pins {
            if let Some(known) = servers.remove(&pins.of) {
                kept.insert(pins.of.clone(), known);
            }
        }
        *servers = kept;
    }
}

impl OfServer {
    /// What was seen of a tool first, which is this where nothing was. Where there is no room for it, it has no pin.
    fn first_of(&mut self, name: &str, digest: Digest) -> Option<Digest> {
        if let Some(first) = self.first.get(name) {
            return Some(*first);
        }
        if self.first.len() >= TOOLS_MAX {
            return None;
        }
        self.first.insert(name.into(), digest);
        Some(digest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pins(written: Option<&[(&str, u8)]>) -> Pins {
        Pins {
            on_change: OnChange::Warn,
            written: written.map(|of| of.iter().map(|(n, d)| ((*n).into(), [*d; 32])).collect()),
            of: "a http://a".into(),
        }
    }

    fn odd(seen: &Seen, pins: &Pins, tools: &[(&str, u8)]) -> Vec<(usize, bool, bool)> {
        let tools = tools.iter().map(|(name, digest)| (*name, [*digest; 32]));
        let odd = seen.compare(pins, tools).into_iter();
        odd.map(|odd| (odd.at, odd.is_news, odd.is_unpinned))
            .collect()
    }

    #[test]
    fn what_was_seen_first_is_pinned_and_each_change_is_told_once() {
        let (seen, pins) = (Seen::default(), pins(None));
        assert_eq!(odd(&seen, &pins, &[("x", 1), ("y", 1)]), []);
        // Another tool may come; one that was there may not change.
        assert_eq!(odd(&seen, &pins, &[("z", 1), ("x", 2)]), [(1, true, false)]);
        assert_eq!(odd(&seen, &pins, &[("x", 2)]), [(0, false, false)]);
        assert_eq!(odd(&seen, &pins, &[("x", 3)]), [(0, true, false)]);
        assert_eq!(odd(&seen, &pins, &[("x", 1)]), []);
        assert_eq!(odd(&seen, &pins, &[("x", 3)]), [(0, true, false)]);
        assert_eq!(seen.count(&pins), 3);
        assert_eq!(seen.pinned(&pins, "x"), Some([1; 32]));
        // Elsewhere is another server.
        let moved = Pins {
            of: "a http://b".into(),
            ..self::pins(None)
        };
        assert_eq!(odd(&seen, &moved, &[("x", 2)]), []);
        seen.keep([&moved].into_iter());
        assert_eq!(seen.pinned(&pins, "x"), None);
        assert_eq!(seen.pinned(&moved, "x"), Some([2; 32]));
    }

    #[test]
    fn where_pins_are_written_a_tool_without_one_is_not_as_pinned() {
        let (seen, pins) = (Seen::default(), pins(Some(&[("x", 1)])));
        let told = odd(&seen, &pins, &[("x", 1), ("y", 1), ("x", 2)]);
        assert_eq!(told, [(1, true, true), (2, true, false)]);
    }
}
