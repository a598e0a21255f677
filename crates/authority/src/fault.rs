//! What is wrong with a rule, and what would be right.

use std::fmt;

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The name of the rule, or of the file.
    pub rule: String,
    /// Where in it, what is wrong, and what would be right.
    pub says: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.rule, self.says)
    }
}
