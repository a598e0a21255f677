//! Which rows are asked for, by whose they are.
//!
//! Invariant: every part that is said must hold; a row without a key, user or tag is none that has that one, whatever
//! it is called.
//! Not here: which rows those are (`read`), sums (`report`).

use std::fmt;

/// What rows must be of.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Only {
    /// The workload that asked.
    pub workload: Option<String>,
    /// The id of the key that was brought.
    pub key: Option<String>,
    /// The user.
    pub user: Option<String>,
    /// Tags by name, each with its value.
    pub tags: Vec<(String, String)>,
}

impl Only {
    /// Whether it takes every row.
    #[must_use]
    pub fn is_all(&self) -> bool {
        *self == Self::default()
    }
}

/// The parts that are said, in words.
impl fmt::Display for Only {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = [
            ("workload", &self.workload),
            ("key", &self.key),
            ("user", &self.user),
        ];
        let named = named.into_iter();
        let mut said: Vec<String> = named
            .filter_map(|(what, of)| Some(format!("{what} {}", of.as_ref()?)))
            .collect();
        let tags = self.tags.iter();
        said.extend(tags.map(|(name, value)| format!("tag {name}={value}")));
        f.write_str(&said.join(", "))
    }
}
