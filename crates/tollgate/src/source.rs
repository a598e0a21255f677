//! Which configuration is meant: the file that was named, that of the current directory, or the
//! environment.
//!
//! Invariant: a file of the current directory comes before the environment, and what was chosen is
//! said first.
//! Not here: reading it (`running`).

use std::fmt;
use std::path::{Path, PathBuf};

/// The file that needs no `-c`.
const USUAL: &str = "tollgate.yaml";

/// Where the configuration comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Source {
    /// Named with `-c`.
    Named(PathBuf),
    /// There is one in the current directory.
    Here,
    /// Objects of a cluster, and the file beside them.
    Cluster(Option<PathBuf>),
    /// No file: providers' variables.
    Environment,
}

impl Source {
    /// That of a command with this `-c`.
    pub(crate) fn of(named: Option<&Path>) -> Self {
        match named {
            Some(file) => Self::Named(file.to_owned()),
            // Also one that cannot be read: that is a fault, and never a reason for another gate.
            None if std::fs::symlink_metadata(USUAL).is_ok() => Self::Here,
            None => Self::Environment,
        }
    }

    /// The file, where there is one.
    pub(crate) fn file(&self) -> Option<&Path> {
        match self {
            Self::Named(file) => Some(file),
            Self::Here => Some(Path::new(USUAL)),
            Self::Cluster(file) => file.as_deref(),
            Self::Environment => None,
        }
    }

    /// What faults are reported against.
    pub(crate) fn name(&self) -> &Path {
        self.file().unwrap_or(Path::new("environment"))
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Named(file) => write!(f, "configuration: {}", file.display()),
            Self::Here => write!(
                f,
                "configuration: {USUAL} of the current directory (-c FILE names another)"
            ),
            Self::Cluster(None) => write!(f, "configuration: objects of Kubernetes"),
            Self::Cluster(Some(file)) => write!(
                f,
                "configuration: objects of Kubernetes, and {} beside",
                file.display()
            ),
            Self::Environment => write!(
                f,
                "configuration: the environment (no {USUAL} here; -c FILE names a file)"
            ),
        }
    }
}
