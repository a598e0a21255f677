//! What an API server of Kubernetes is asked: whose a token is, and what a caller may do.
//!
//! Not here: asking (`callout`), what its answers mean for a call (the host).

use std::path::PathBuf;
use std::time::Duration;

use super::ClaimNames;

/// An API server, and who the gate is to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiServer {
    /// Its address.
    pub url: String,
    /// Roots to trust there in place of the system's, PEM.
    pub ca_pem: Option<Vec<u8>>,
    /// The file of the gate's own token, which is replaced while the gate runs.
    pub token: PathBuf,
}

/// Tokens that it is asked about.
#[derive(Debug, Clone)]
pub struct TokenReviewSource {
    /// Who is asked.
    pub server: ApiServer,
    /// Whom tokens must be for: one of these; empty asks for the API server's own.
    pub audiences: Vec<String>,
    /// How long an answer is used.
    pub cache: Duration,
    /// How the answer becomes a caller.
    pub claims: ClaimNames,
}

/// What it is asked of callers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccessReviewSource {
    /// Who is asked.
    pub server: ApiServer,
    /// What callers would do.
    pub action: ReviewedAction,
    /// Names that begin with `system:` are believed of any source.
    pub trusts_system_names: bool,
    /// How long a call waits.
    pub timeout: Duration,
    /// How long a yes is used.
    pub cache: Duration,
    /// How long a no is used.
    pub cache_denied: Duration,
    /// A call goes on where it does not answer.
    pub fails_open: bool,
}

/// What a call does, as Kubernetes sees it. A member without pieces is left out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReviewedAction {
    /// The kind of an object, in the plural; without one it is the call's path that is asked about.
    pub resource: Vec<Piece>,
    /// The object's group.
    pub group: Vec<Piece>,
    /// Its version.
    pub version: Vec<Piece>,
    /// Its part.
    pub subresource: Vec<Piece>,
    /// Its namespace.
    pub namespace: Vec<Piece>,
    /// Its name.
    pub name: Vec<Piece>,
    /// What is done with it; by the method where it is not said.
    pub verb: Vec<Piece>,
}

/// A piece of a text that is made for each call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// As written.
    Text(Box<str>),
    /// A fact of the call; nothing where the call does not have it.
    Fact(Fact),
}

/// A fact of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fact {
    /// The calling application.
    Workload,
    /// The model, as the client names it.
    Model,
    /// Each backend that the call could go to: it is asked about each of them.
    Backend,
    /// The route.
    Route,
    /// The method, in capitals.
    Method,
}

impl ReviewedAction {
    /// All members.
    #[must_use]
    pub fn members(&self) -> [&[Piece]; 7] {
        let Self {
            resource,
            group,
            version,
            subresource,
            namespace,
            name,
            verb,
        } = self;
        [resource, group, version, subresource, namespace, name, verb].map(Vec::as_slice)
    }

    /// Whether a fact stands in it.
    #[must_use]
    pub fn names(&self, fact: Fact) -> bool {
        let mut pieces = self.members().into_iter().flatten();
        pieces.any(|piece| *piece == Piece::Fact(fact))
    }
}
