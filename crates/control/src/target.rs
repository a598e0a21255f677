//! A target of rules: where calls go, and how.
//!
//! Not here: which objects it is read of (`service`, `pool`), what a rule says of it (`refs`).

use crate::backend::Upstream;
use crate::credential::Credential;
use crate::findings::Spot;
use crate::tree::Tree;

/// Where calls of a target go, and how.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub(crate) name: String,
    pub(crate) spot: Spot,
    pub(crate) upstream: Upstream,
    pub(crate) path: Path,
    /// The API that it speaks; none of plain HTTP.
    pub(crate) dialect: Option<&'static str>,
    pub(crate) headers: Option<Tree>,
    /// How its addresses share its calls, where it says that itself.
    pub(crate) balancing: Option<Tree>,
    pub(crate) credential: Option<Credential>,
}

/// What stands before a call's path.
#[derive(Debug, Clone)]
pub(crate) enum Path {
    Is(String),
    /// Azure's, which has the deployment in it, and its version in the query.
    Deployment(String),
    /// Google's, which has the project and the region in it; the credential says them.
    Project,
}

/// What an object is called in our document.
pub(crate) fn called(namespace: &str, name: &str, home: &str) -> String {
    match namespace == home {
        true => name.to_owned(),
        false => format!("{namespace}.{name}"),
    }
}

impl Target {
    /// One of plain HTTP.
    pub(crate) fn plain(name: String, spot: Spot, upstream: Upstream) -> Self {
        Self {
            name,
            spot,
            upstream,
            path: Path::Is(String::new()),
            dialect: None,
            headers: None,
            balancing: None,
            credential: None,
        }
    }

    /// The same addresses, for calls of plain HTTP.
    pub(crate) fn of_plain_http(self) -> Self {
        Self {
            path: Path::Is(String::new()),
            dialect: None,
            credential: None,
            ..self
        }
    }

    pub(crate) fn is_fallback(&self) -> bool {
        self.upstream.is_fallback
    }

    /// Whether its address has the name of a deployment in it.
    pub(crate) fn needs_deployment(&self) -> bool {
        matches!(self.path, Path::Deployment(_))
    }
}
