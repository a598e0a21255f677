//! Whom a limit or a budget counts apart, in words.
//!
//! Not here: what tells one subject from another ([`crate::subject`]).

/// Whom a limit or a budget has an amount of its own for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Whose {
    /// Of a limit, each workload; of a budget, all whom it counts together.
    #[default]
    Workload,
    /// Each key of a workload.
    Key,
    /// Each user of a workload.
    User,
}

impl Whose {
    /// The word in configuration, logs and messages.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Workload => "workload",
            Self::Key => "key",
            Self::User => "user",
        }
    }
}

/// Whose an amount is that was used up, in the words of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holder {
    /// The workload's.
    Workload,
    /// The key's.
    Key,
    /// The user's.
    User,
    /// That of all callers of the workload without a key.
    Keyless,
    /// That of all callers of the workload without a user.
    Userless,
}

impl Holder {
    /// In a message, after "for".
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Workload => "this workload",
            Self::Key => "this key",
            Self::User => "this user",
            Self::Keyless => "callers of this workload without a key",
            Self::Userless => "callers of this workload without a user",
        }
    }
}
