//! The version, and of a build that is not what is shipped, which it is.
//!
//! Invariant: what is shipped (the profile `dist`) says the version alone.
//! Not here: the version of a configuration (`serve`).

/// What `tollgate version` and `tollgate --version` say behind the name.
pub(crate) const VERSION: &str = env!("TOLLGATE_VERSION");
