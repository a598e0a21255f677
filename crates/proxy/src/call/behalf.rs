//! A call, as those who are asked for it are told of it.
//!
//! Not here: which tokens are taken (`tools::own_tokens`), how a request carries them (`tools::ask`).

use std::ops::Deref;

use policy::id::BackendId;
use policy::secret::Secret;

/// A token for a server.
#[derive(Debug)]
pub(crate) struct OwnToken {
    pub(crate) backend: BackendId,
    /// The header that its caller brought it in.
    pub(crate) brought_in: Box<str>,
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
    /// Servers for which it brought none and the gate has none either, with the header in which it might.
    pub(crate) missing: Vec<(BackendId, Box<str>)>,
    /// The token by which its caller is known, where a server is sent another one for it.
    pub(crate) token: Option<Secret>,
}

impl Deref for OnBehalf {
    type Target = str;

    fn deref(&self) -> &str {
        &self.id
    }
}
