//! Who is calling: from a credential, a certificate or a header to a workload.
//!
//! Sources are asked in the order configured. The first that the request brings something for decides: what is brought
//! and not good is refused, and never passed on to the next.
//! Invariant: what a client says of itself can contradict what is proven, and never replace it.
//! Not here: asking the sources about a request (`exchange`), which request headers hold a credential
//! ([`crate::credential`]), keys and tokens themselves ([`Verifier`]), what a caller may do ([`crate::route`]).

mod failures;
mod proofs;

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use wire::head::FieldName;

pub use self::failures::{FailureBounds, Failures, Running, Whose};
pub(crate) use self::proofs::Proofs;
use crate::caller::{Caller, Later, PeerCertificate};
use crate::client::Network;
use crate::fast_hash::Mix;
use crate::id::WorkloadId;
use crate::secret::Secret;

/// How callers are recognised.
#[derive(Debug, Clone)]
pub struct Identity {
    /// What is asked, in this order.
    pub sources: Vec<Source>,
    /// What holds of the users of each source's callers, in the order of the sources; what is missing is the default.
    pub users: Vec<UserRule>,
    /// The header that names a workload: where it counts for nothing, it must not contradict what is
    /// proven.
    pub header: FieldName,
    /// The header that names the user beside it.
    pub user_header: Option<FieldName>,
}

impl Default for Identity {
    fn default() -> Self {
        Self {
            sources: vec![Source::Header(HeaderSource::default())],
            users: Vec::new(),
            header: "x-workload-app".into(),
            user_header: None,
        }
    }
}

/// What holds of the users of a source's callers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct UserRule {
    /// A call itself is believed who is behind it, where what identifies it says nobody.
    pub from_call: bool,
    /// The user is for decisions alone and is not kept.
    pub is_hidden: bool,
}

impl Identity {
    /// Callers that are known before they call and bring budgets of their own, to be read back after a restart.
    #[must_use]
    pub fn budgeted(&self) -> Vec<Arc<Caller>> {
        let known = self.sources.iter().flat_map(|source| match source {
            Source::Credential(verifier) | Source::Session(verifier) => verifier.budgeted(),
            Source::Certificate(known) => {
                let prefixes = known.prefixes.iter().map(|(_, caller)| caller);
                known.exact.values().chain(prefixes).cloned().collect()
            }
            Source::Header(_) => Vec::new(),
        });
        known.filter(|caller| !caller.budgets.is_empty()).collect()
    }

    /// What holds of users who log in.
    pub(crate) fn users_of_sessions(&self) -> UserRule {
        let mut sources = self.sources.iter();
        let place = sources.position(|source| matches!(source, Source::Session(_)));
        let rule = place.and_then(|place| self.users.get(place));
        rule.copied().unwrap_or_default()
    }
}

/// One way to recognise a caller.
#[derive(Debug, Clone)]
pub enum Source {
    /// By a credential.
    Credential(Arc<dyn Verifier>),
    /// By the session of a browser, whose cookie [`crate::login::LoginSite`] names.
    Session(Arc<dyn Verifier>),
    /// By the certificate of its connection.
    Certificate(Certificates),
    /// By a header, where its peer is trusted to say it.
    Header(HeaderSource),
}

/// Callers by names of their certificates.
#[derive(Debug, Clone, Default)]
pub struct Certificates {
    /// By a whole name.
    pub exact: HashMap<Box<str>, Arc<Caller>>,
    /// By the beginning of a name; the first that fits.
    pub prefixes: Vec<(Box<str>, Arc<Caller>)>,
}

impl Certificates {
    /// Whose it is. The user of one that is known by the beginning of a name is that name.
    pub(crate) fn caller(&self, certificate: &PeerCertificate) -> Option<Arc<Caller>> {
        let names = || certificate.names.iter();
        if let Some(caller) = names().find_map(|name| self.exact.get(name)) {
            return Some(Arc::clone(caller));
        }
        self.prefixes.iter().find_map(|(start, caller)| {
            let name = names().find(|name| name.starts_with(&**start))?;
            Some(Arc::new(Caller {
                user: Some(Arc::from(&**name)),
                ..Caller::clone(caller)
            }))
        })
    }
}

/// A header that says who calls.
#[derive(Debug, Clone, Default)]
pub struct HeaderSource {
    /// The workload of a request without the header; an unregistered value is still refused.
    pub default: Option<WorkloadId>,
    /// Whose word counts.
    pub from: Trusted,
    /// Whether their word about the user counts, too.
    pub names_user: bool,
}

/// Peers whose word counts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Trusted {
    /// Everybody's.
    #[default]
    Anyone,
    /// Of these networks, and of those that prove one of these names by certificate.
    Peers {
        /// Networks.
        networks: Vec<Network>,
        /// Names of certificates.
        certificates: Vec<Box<str>>,
    },
}

impl Trusted {
    pub(crate) fn trusts(&self, address: IpAddr, certificate: Option<&PeerCertificate>) -> bool {
        match self {
            Self::Anyone => true,
            Self::Peers {
                networks,
                certificates,
            } => {
                let names = certificate.map_or(&[][..], |c| &c.names);
                networks.iter().any(|n| n.contains(address))
                    || names.iter().any(|name| certificates.contains(name))
            }
        }
    }
}

/// Proves whose a credential is.
pub trait Verifier: fmt::Debug + Send + Sync {
    /// Whether it is for this source to judge such a credential; decided by its form alone.
    fn takes(&self, credential: &[u8]) -> bool;
    /// Whether its proofs are kept, by [`Self::fingerprint`]; not where a proof costs no more than that.
    fn keeps_proofs(&self) -> bool {
        true
    }
    /// SHA-256 of the credential.
    fn fingerprint(&self, credential: &[u8]) -> [u8; 32];
    /// Changes with what it proves by, such as an issuer's keys: what was proven before has to be proven anew.
    fn generation(&self) -> u64 {
        0
    }
    /// Proves it without waiting. `unix_s`: the wall clock.
    ///
    /// # Errors
    /// Why it proves nothing, or [`Unproven::Ask`].
    fn verify(&self, credential: &[u8], unix_s: u64) -> Result<Proof, Unproven>;
    /// Callers that bring budgets of their own, as far as it knows them before they call: what these have spent is read
    /// back after a restart.
    fn budgeted(&self) -> Vec<Arc<Caller>> {
        Vec::new()
    }
    /// Asks whoever knows. Called after [`Unproven::Ask`] alone.
    fn ask(&self, credential: Secret) -> Later<Result<Proof, Unproven>> {
        drop(credential);
        let says = "nobody is asked";
        Box::pin(std::future::ready(Err(Unproven::Unavailable(says.into()))))
    }
}

/// That a credential is somebody's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proof {
    /// Whose.
    pub caller: Arc<Caller>,
    /// The first second since the Unix epoch in which it proves that no more.
    pub until_unix_s: u64,
}

/// Why a credential proves nothing. The text is for the log, and never repeats the credential.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unproven {
    /// It is not good.
    Invalid(Cow<'static, str>),
    /// It is good, and its bearer has no workload here.
    Unmapped(Cow<'static, str>),
    /// Nobody could say whether it is.
    Unavailable(Cow<'static, str>),
    /// The world has to be asked ([`Verifier::ask`]).
    Ask,
    /// It is of an issuer, or a key, that this source does not know: a later source may.
    Elsewhere(Cow<'static, str>),
}

/// Registered workloads by their names.
pub type Registered = HashMap<Box<[u8]>, WorkloadId, Mix>;
