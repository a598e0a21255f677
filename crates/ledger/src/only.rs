//! Which rows are asked for, by whose they are.
//!
//! Invariant: every part that is said must hold; a row without a key, user or tag is none that has that one, whatever
//! it is called.
//! Not here: periods, reading (`read`), sums (`report`).

use std::collections::BTreeMap;
use std::fmt;

use policy::attribution::{kept, kept_value};

use crate::read::Stored;

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
    /// Whether it takes a row.
    #[must_use]
    pub fn takes(&self, row: &Stored) -> bool {
        let is = |column, asked: &Option<String>| {
            asked
                .as_deref()
                .is_none_or(|asked| kept(asked).as_deref() == row.text(column))
        };
        is("workload", &self.workload)
            && is("key_id", &self.key)
            && is("user_id", &self.user)
            && (self.tags.is_empty() || self.has_tags(row))
    }

    fn has_tags(&self, row: &Stored) -> bool {
        let tags = row.tags();
        self.tags
            .iter()
            .all(|(name, value)| tags.get(name).is_some_and(|tag| *tag == *kept_value(value)))
    }

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

impl Stored {
    /// Its tags; none where the column holds none, or what no gate has written.
    #[must_use]
    pub fn tags(&self) -> BTreeMap<String, String> {
        let text = self.text("tags").unwrap_or("{}");
        serde_json::from_str(text).unwrap_or_default()
    }
}
