//! A broken rule: where, and what is wrong.

use std::fmt;

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) place: String,
    pub(super) says: String,
}

impl Fault {
    pub(super) fn new(place: impl Into<String>, says: impl Into<String>) -> Self {
        Self {
            place: place.into(),
            says: says.into(),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.says)
    }
}
