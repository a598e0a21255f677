//! Who is calling: from a credential, a certificate or a header to a workload.
//!
//! Sources are asked in the order configured. The first that the request brings something for decides: what is brought
//! and not good is refused, and never passed on to the next.
//! Invariant: one value or none; two values are an error, never a choice. An unknown identity is refused before
//! anything is spent on it. What a client says of itself can contradict what is proven, and never replace it.
//! Not here: which request headers hold a credential ([`crate::credential`]), keys and tokens themselves
//! ([`Verifier`]), what a caller may do ([`crate::route`]).

mod failures;
mod proofs;

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use wire::head::RequestHead;

pub use self::failures::Failures;
pub use self::proofs::Proofs;
use crate::caller::{Caller, Later, Peer, PeerCertificate};
use crate::client::Network;
use crate::credential::{self, Given};
use crate::fast_hash::Mix;
use crate::id::WorkloadId;
use crate::refusal::Refusal;
use crate::secret::Secret;
use crate::shard::Shard;
use crate::snapshot::Snapshot;

/// How callers are recognised.
#[derive(Debug, Clone)]
pub struct Identity {
    /// What is asked, in this order.
    pub sources: Vec<Source>,
    /// What holds of the users of each source's callers, in the order of the sources; what is missing is the default.
    pub users: Vec<UserRule>,
    /// The header that names a workload, in lower case: where it counts for nothing, it must not contradict what is
    /// proven.
    pub header: String,
}

impl Default for Identity {
    fn default() -> Self {
        Self {
            sources: vec![Source::Header(HeaderSource::default())],
            users: Vec::new(),
            header: "x-workload-app".to_owned(),
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
            Source::Credential(verifier) => verifier.budgeted(),
            Source::Certificate(known) => {
                let prefixes = known.prefixes.iter().map(|(_, caller)| caller);
                known.exact.values().chain(prefixes).cloned().collect()
            }
            Source::Header(_) => Vec::new(),
        });
        known.filter(|caller| !caller.budgets.is_empty()).collect()
    }
}

/// One way to recognise a caller.
#[derive(Debug, Clone)]
pub enum Source {
    /// By a credential.
    Credential(Arc<dyn Verifier>),
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
    fn caller(&self, certificate: &PeerCertificate) -> Option<&Arc<Caller>> {
        let names = || certificate.names.iter();
        names().find_map(|name| self.exact.get(name)).or_else(|| {
            let mut known = self.prefixes.iter();
            let is_of = |start: &str| names().any(|name| name.starts_with(start));
            known.find_map(|(start, caller)| is_of(start).then_some(caller))
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
    fn trusts(&self, address: IpAddr, certificate: Option<&PeerCertificate>) -> bool {
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
    /// SHA-256 of the credential, under which its proof is kept; `None` where a proof costs no more than that.
    fn fingerprint(&self, credential: &[u8]) -> Option<[u8; 32]>;
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
    /// Nobody could say whether it is.
    Unavailable(Cow<'static, str>),
    /// The world has to be asked ([`Verifier::ask`]).
    Ask,
    /// It is of an issuer that this source does not know: a later source may.
    Elsewhere,
}

/// Registered workloads by their names.
pub type Registered = HashMap<Box<[u8]>, WorkloadId, Mix>;

/// What is known of who calls.
#[derive(Debug)]
pub(crate) enum Identified {
    /// Who it is, without a caller where a header says it; and what holds of its user.
    As(WorkloadId, Option<Arc<Caller>>, UserRule),
    /// Somebody is to be asked.
    Asks(Box<Asking>),
}

/// A credential that somebody is asked about.
#[derive(Debug)]
pub(crate) struct Asking {
    pub verifier: Arc<dyn Verifier>,
    pub credential: Secret,
    fingerprint: Option<[u8; 32]>,
    generation: (usize, u64),
    users: UserRule,
}

impl Identified {
    /// The same, by a source with this rule.
    fn under(self, users: UserRule) -> Self {
        match self {
            Self::As(workload, caller, _) => Self::As(workload, caller, users),
            Self::Asks(mut asking) => {
                asking.users = users;
                Self::Asks(asking)
            }
        }
    }
}

/// Who calls is not known: the refusal, and why, for the log.
#[derive(Debug)]
pub(crate) struct Unidentified {
    pub refusal: Refusal,
    pub reason: Option<Cow<'static, str>>,
}

impl From<Refusal> for Unidentified {
    fn from(refusal: Refusal) -> Self {
        Self {
            refusal,
            reason: None,
        }
    }
}

/// Who sent this request.
///
/// # Errors
/// [`Refusal::IdentityRepeated`] for several values of the header; [`Refusal::WorkloadNotRegistered`] where a header
/// alone identifies and names nobody; else [`Refusal::CredentialMissing`], [`Refusal::CredentialInvalid`],
/// [`Refusal::IdentityUnavailable`], [`Refusal::IdentityContradicted`].
pub(crate) fn identify(
    head: &RequestHead,
    peer: &Peer,
    s: &Snapshot,
    shard: &mut Shard,
    unix_s: u64,
) -> Result<Identified, Unidentified> {
    let identity = &s.identity;
    let named = named(head, &identity.header)?;
    let certificate = peer.certificate.as_deref();
    let certificate = certificate.filter(|c| unix_s < c.until_unix_s);
    let mut given = None;
    let mut takes_credentials = false;
    for (place, source) in identity.sources.iter().enumerate() {
        let users = identity.users.get(place).copied().unwrap_or_default();
        match source {
            Source::Header(source) => {
                if let Some(found) = said(
                    named,
                    source,
                    (peer.address, certificate),
                    s,
                    &identity.header,
                ) {
                    return Ok(Identified::As(found?, None, users));
                }
            }
            Source::Certificate(known) => {
                takes_credentials = true;
                if let Some(caller) = certificate.and_then(|c| known.caller(c)) {
                    return of_caller(caller, named, s).map(|found| found.under(users));
                }
            }
            Source::Credential(verifier) => {
                takes_credentials = true;
                let given = *given.get_or_insert_with(|| credential::given(head));
                if let Given::Token(token) = given
                    && verifier.takes(token)
                    && let Some(found) = proven(
                        (place, verifier),
                        token,
                        named,
                        (head, peer),
                        s,
                        shard,
                        unix_s,
                    )
                {
                    return found.map(|found| found.under(users));
                }
            }
        }
    }
    let refusal = match given.unwrap_or_else(|| credential::given(head)) {
        _ if !takes_credentials => Refusal::WorkloadNotRegistered {
            header: identity.header.clone(),
        },
        Given::Nothing => Refusal::CredentialMissing,
        Given::Unusable | Given::Token(_) => {
            return Err(Unidentified {
                refusal: Refusal::CredentialInvalid,
                reason: Some("no source of identities takes a credential of this form".into()),
            });
        }
    };
    Err(refusal.into())
}

/// The one value of the header that names a workload.
fn named<'h>(head: &'h RequestHead, header: &str) -> Result<Option<&'h [u8]>, Refusal> {
    let mut values = head.fields.by_name(header.as_bytes());
    let value = values.next();
    if values.next().is_some() || value.is_some_and(|v| v.contains(&b',')) {
        return Err(Refusal::IdentityRepeated {
            header: header.to_owned(),
        });
    }
    Ok(value)
}

/// The workload that a header names, where its word counts and there is one.
fn said(
    named: Option<&[u8]>,
    source: &HeaderSource,
    (address, certificate): (IpAddr, Option<&PeerCertificate>),
    s: &Snapshot,
    header: &str,
) -> Option<Result<WorkloadId, Refusal>> {
    if !source.from.trusts(address, certificate) {
        return None;
    }
    let Some(name) = named else {
        return source.default.map(Ok);
    };
    let found = s.by_name.get(name).copied();
    Some(found.ok_or_else(|| Refusal::WorkloadNotRegistered {
        header: header.to_owned(),
    }))
}

/// Whose the credential is, by what is known of it already, by itself, or by asking.
fn proven(
    (place, verifier): (usize, &Arc<dyn Verifier>),
    token: &[u8],
    named: Option<&[u8]>,
    (head, peer): (&RequestHead, &Peer),
    s: &Snapshot,
    shard: &mut Shard,
    unix_s: u64,
) -> Option<Result<Identified, Unidentified>> {
    let fingerprint = verifier.fingerprint(token);
    if let Some(fingerprint) = &fingerprint {
        let generation = (place, verifier.generation());
        if let Some(caller) = shard.proofs.get(fingerprint, generation, unix_s) {
            return Some(of_caller(caller, named, s));
        }
        let address = s.clients.address(peer.address, head);
        if let Some(wait) = shard.failures.wait(address, unix_s) {
            return Some(Err(Refusal::CredentialFailures { wait }.into()));
        }
    }
    // Asked before, so that keys that change meanwhile count as changed.
    let generation = (place, verifier.generation());
    Some(match verifier.verify(token, unix_s) {
        Ok(proof) => {
            if let Some(fingerprint) = fingerprint {
                shard.proofs.keep(fingerprint, generation, &proof, unix_s);
            }
            of_caller(&proof.caller, named, s)
        }
        Err(Unproven::Ask) => Ok(Identified::Asks(Box::new(Asking {
            verifier: Arc::clone(verifier),
            credential: Secret::new(token.to_vec()),
            fingerprint,
            generation,
            users: UserRule::default(),
        }))),
        Err(Unproven::Elsewhere) => return None,
        Err(unproven) => Err(refused(unproven, (head, peer), s, shard, unix_s)),
    })
}

/// What an answer about a credential means.
pub(crate) fn answered(
    asking: &Asking,
    answer: Result<Proof, Unproven>,
    (head, peer): (&RequestHead, &Peer),
    s: &Snapshot,
    shard: &mut Shard,
    unix_s: u64,
) -> Result<Identified, Unidentified> {
    match answer {
        Ok(proof) if unix_s < proof.until_unix_s => {
            if let Some(fingerprint) = asking.fingerprint {
                let generation = asking.generation;
                shard.proofs.keep(fingerprint, generation, &proof, unix_s);
            }
            let found = of_caller(&proof.caller, named(head, &s.identity.header)?, s);
            found.map(|found| found.under(asking.users))
        }
        Ok(_) => {
            let unproven = Unproven::Invalid("expired while it was asked about".into());
            Err(refused(unproven, (head, peer), s, shard, unix_s))
        }
        Err(unproven) => Err(refused(unproven, (head, peer), s, shard, unix_s)),
    }
}

/// Refuses a credential that proves nothing.
#[cold]
fn refused(
    unproven: Unproven,
    (head, peer): (&RequestHead, &Peer),
    s: &Snapshot,
    shard: &mut Shard,
    unix_s: u64,
) -> Unidentified {
    let (refusal, reason) = match unproven {
        Unproven::Invalid(reason) => {
            let address = s.clients.address(peer.address, head);
            shard.failures.note(address, unix_s);
            (Refusal::CredentialInvalid, Some(reason))
        }
        Unproven::Unavailable(reason) => (Refusal::IdentityUnavailable, Some(reason)),
        Unproven::Ask | Unproven::Elsewhere => (Refusal::IdentityUnavailable, None),
    };
    Unidentified { refusal, reason }
}

/// The workload of a proven caller, which a header must not contradict.
fn of_caller(
    caller: &Arc<Caller>,
    named: Option<&[u8]>,
    s: &Snapshot,
) -> Result<Identified, Unidentified> {
    let name = caller.workload.as_bytes();
    if named.is_some_and(|named| named != name) {
        let header = s.identity.header.clone();
        return Err(Refusal::IdentityContradicted { header }.into());
    }
    match s.by_name.get(name) {
        Some(workload) => {
            let caller = Some(Arc::clone(caller));
            Ok(Identified::As(*workload, caller, UserRule::default()))
        }
        None => Err(Unidentified {
            refusal: Refusal::WorkloadUnknown,
            reason: Some(format!("no route is for the workload {:?}", caller.workload).into()),
        }),
    }
}

#[cfg(test)]
mod tests;
