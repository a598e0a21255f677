//! Label values as small numbers that outlive a snapshot.
//!
//! Invariant: a [`NameId`] means the same text for as long as its [`Names`] lives; at most
//! [`MAX_NAMES`] texts are kept, and any further one is [`NameId::OTHER`].
//! Not here: which texts may become labels (`view`).

use std::collections::HashMap;
use std::sync::Arc;

use policy::fast_hash::Mix;

/// Most texts one table of names holds: fourteen bits, so that four ids leave eight for an operation in a key.
pub(crate) const MAX_NAMES: usize = 16_384;

/// A label value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct NameId(u16);

impl NameId {
    /// The empty text: there was none.
    pub(crate) const NONE: Self = Self(0);
    /// The text `other`: there was one, and it is not kept.
    pub(crate) const OTHER: Self = Self(1);

    pub(crate) fn bits(self) -> u64 {
        u64::from(self.0)
    }

    pub(crate) fn from_bits(bits: u64) -> Self {
        Self(u16::try_from(bits % MAX_NAMES as u64).unwrap_or(Self::OTHER.0))
    }
}

/// Texts and their numbers.
#[derive(Debug, Clone)]
pub(crate) struct Names {
    texts: Vec<Arc<str>>,
    by_text: HashMap<Arc<str>, NameId, Mix>,
}

impl Default for Names {
    fn default() -> Self {
        let mut names = Self {
            texts: Vec::new(),
            by_text: HashMap::default(),
        };
        names.intern(&Arc::from(""));
        names.intern(&Arc::from("other"));
        names
    }
}

impl Names {
    /// The number of `text`, a new one if there is room.
    pub(crate) fn intern(&mut self, text: &Arc<str>) -> NameId {
        if let Some(id) = self.by_text.get(text) {
            return *id;
        }
        match u16::try_from(self.texts.len()) {
            Ok(next) if self.texts.len() < MAX_NAMES => {
                self.texts.push(Arc::clone(text));
                self.by_text.insert(Arc::clone(text), NameId(next));
                NameId(next)
            }
            Ok(_) | Err(_) => NameId::OTHER,
        }
    }

    /// The text of `id`.
    pub(crate) fn text(&self, id: NameId) -> &str {
        self.texts.get(usize::from(id.0)).map_or("other", |t| t)
    }

    /// The numbers that `other`'s names have here, indexed by their numbers there.
    pub(crate) fn adopt(&mut self, other: &Self) -> Adopted {
        Adopted(other.texts.iter().map(|t| self.intern(t)).collect())
    }
}

/// Numbers of one table of names in terms of another.
pub(crate) struct Adopted(Vec<NameId>);

impl Adopted {
    pub(crate) fn here(&self, there: NameId) -> NameId {
        let at = usize::from(there.0);
        self.0.get(at).copied().unwrap_or(NameId::OTHER)
    }
}

#[cfg(test)]
mod tests;
