//! A call, as those who are asked for it are told of it.
//!
//! Not here: which tokens are taken (`tools::own_tokens`), how a request carries them (`tools::ask`).

use std::ops::Deref;

use policy::id::BackendId;
use policy::secret::Secret;

/// A token that a caller brings for a server.
#[derive(Debug)]
pub(crate) struct OwnToken {
    pub(crate) backend: BackendId,
    /// The header that carries it, in lower case.
    pub(crate) header: Box<str>,
    /// The whole value.
    pub(crate) value: Secret,
}

/// A call's id, and the tokens that came with it.
#[derive(Debug)]
pub(crate) struct OnBehalf {
    pub(crate) id: Box<str>,
    pub(crate) own: Vec<OwnToken>,
}

impl Deref for OnBehalf {
    type Target = str;

    fn deref(&self) -> &str {
        &self.id
    }
}

impl OnBehalf {
    /// The token that its caller brought for a server.
    pub(crate) fn of(&self, backend: BackendId) -> Option<&OwnToken> {
        self.own.iter().find(|own| own.backend == backend)
    }
}
