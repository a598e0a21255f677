//! Who sent a request: the sources of identities asked in order, by what the request brings.
//!
//! Invariant: one value or none; two values are an error, never a choice. An unknown identity is refused before
//! anything is spent on it.
//! Not here: what a source is ([`crate::identity`]), when somebody outside is asked (`exchange`).

use std::borrow::Cow;
use std::sync::Arc;

use wire::head::RequestHead;

use crate::caller::{Caller, Peer, PeerCertificate};
use crate::credential::{self, Given};
use crate::id::WorkloadId;
use crate::identity::{Proof, Running, Source, Unproven, UserRule, Verifier};
use crate::refusal::Refusal;
use crate::secret::Secret;
use crate::shard::Shard;
use crate::snapshot::Snapshot;
use crate::web;

/// What is known of who calls.
#[derive(Debug)]
pub(super) enum Identified {
    /// Who it is.
    As(Known),
    /// Somebody is to be asked.
    Asks(Box<CredentialQuestion>),
}

/// Who calls.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) workload: WorkloadId,
    /// The same as it was proven; none where a header says it.
    pub(super) caller: Option<Arc<Caller>>,
    /// What holds of its user.
    pub(super) users: UserRule,
}

/// A credential that somebody is asked about.
#[derive(Debug)]
pub(super) struct CredentialQuestion {
    pub(super) verifier: Arc<dyn Verifier>,
    pub(super) credential: Secret,
    fingerprint: Option<[u8; 32]>,
    generation: (usize, u64),
    users: UserRule,
    /// Of as many questions as its address may have.
    _running: Running,
}

impl Identified {
    /// The same, by a source with this rule.
    fn under(self, users: UserRule) -> Self {
        match self {
            Self::As(known) => Self::As(Known { users, ..known }),
            Self::Asks(mut asking) => {
                asking.users = users;
                Self::Asks(asking)
            }
        }
    }
}

/// Who calls is not known: the refusal, and why, for the log.
#[derive(Debug)]
pub(super) struct Unidentified {
    pub(super) refusal: Refusal,
    pub(super) reason: Option<Cow<'static, str>>,
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
/// [`Refusal::IdentityUnavailable`], [`Refusal::IdentityContradicted`]; [`Refusal::OriginNotAllowed`] for a session that
/// another site's page has a browser bring.
pub(super) fn identify(
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
    let mut brought = Brought::new(head);
    let mut takes_credentials = false;
    let mut default = None;
    for (place, source) in identity.sources.iter().enumerate() {
        let users = identity.users.get(place).copied().unwrap_or_default();
        match source {
            Source::Header(source) => {
                if !source.from.trusts(peer.address, certificate) {
                    continue;
                }
                if let Some(name) = named {
                    let found = s.by_name.get(name).copied();
                    let header = &identity.header;
                    return Ok(Identified::As(Known {
                        workload: found.ok_or_else(|| not_registered(header))?,
                        caller: None,
                        users,
                    }));
                }
                default = default.or(source.default.map(|default| (default, users)));
            }
            Source::Certificate(known) => {
                takes_credentials = true;
                if let Some(caller) = certificate.and_then(|c| known.caller(c)) {
                    let known = of_caller(&caller, named, s)?;
                    return Ok(Identified::As(Known { users, ..known }));
                }
            }
            Source::Credential(verifier) => {
                takes_credentials = true;
                if let Given::Token(token) = brought.given()
                    && verifier.takes(token)
                    && let Some(found) = proven(
                        (place, verifier),
                        (token, &mut brought),
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
            Source::Session(verifier) => {
                takes_credentials = true;
                if let Some(site) = &s.login
                    && let Some(session) = site.session(head)
                {
                    if !web::may_bring_session(head, &s.web, &site.origin) {
                        return Err(Refusal::OriginNotAllowed.into());
                    }
                    let found = proven(
                        (place, verifier),
                        (session, &mut Brought::new(head)),
                        named,
                        (head, peer),
                        s,
                        shard,
                        unix_s,
                    );
                    if let Some(found) = found {
                        return found.map(|found| found.under(users));
                    }
                }
            }
        }
    }
    // Who brings nothing is let in by default; a credential that no source took is not good.
    if let Some((workload, users)) = default
        && (!takes_credentials || brought.given() == Given::Nothing)
    {
        return Ok(Identified::As(Known {
            workload,
            caller: None,
            users,
        }));
    }
    if !takes_credentials {
        return Err(not_registered(&identity.header).into());
    }
    Err(match brought.given() {
        Given::Nothing => Unidentified {
            refusal: Refusal::CredentialMissing,
            reason: unbelieved(named, certificate, (head, peer), s).map(Cow::Owned),
        },
        Given::Unusable | Given::Token(_) => Unidentified {
            refusal: Refusal::CredentialInvalid,
            reason: brought.elsewhere.or(Some(Cow::Borrowed(
                "no source of identities takes a credential of this form",
            ))),
        },
    })
}

/// What a request brings to prove who sends it.
struct Brought<'h> {
    head: &'h RequestHead,
    given: Option<Given<'h>>,
    /// Of the token.
    fingerprint: Option<[u8; 32]>,
    /// Why a source that takes such tokens leaves this one to others.
    elsewhere: Option<Cow<'static, str>>,
}

impl<'h> Brought<'h> {
    fn new(head: &'h RequestHead) -> Self {
        Self {
            head,
            given: None,
            fingerprint: None,
            elsewhere: None,
        }
    }

    fn given(&mut self) -> Given<'h> {
        *self
            .given
            .get_or_insert_with(|| credential::given(self.head))
    }
}

#[cold]
fn not_registered(header: &str) -> Refusal {
    Refusal::WorkloadNotRegistered {
        header: header.to_owned(),
    }
}

/// What was brought, and does not count.
#[cold]
fn unbelieved(
    named: Option<&[u8]>,
    certificate: Option<&PeerCertificate>,
    (head, peer): (&RequestHead, &Peer),
    s: &Snapshot,
) -> Option<String> {
    if let Some(certificate) = certificate {
        let names = &certificate.names;
        return Some(format!(
            "the certificate's names {names:?} are of no workload"
        ));
    }
    let address = s.clients.address(peer.address, head);
    let header = &s.identity.header;
    named.map(|_| format!("the header {header} is not believed from {address}"))
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

/// Whose the credential is, by what is known of it already, by itself, or by asking.
fn proven(
    (place, verifier): (usize, &Arc<dyn Verifier>),
    (token, brought): (&[u8], &mut Brought<'_>),
    named: Option<&[u8]>,
    (head, peer): (&RequestHead, &Peer),
    s: &Snapshot,
    shard: &mut Shard,
    unix_s: u64,
) -> Option<Result<Identified, Unidentified>> {
    let print = &mut brought.fingerprint;
    let print = || *print.get_or_insert_with(|| verifier.fingerprint(token));
    let fingerprint = verifier.keeps_proofs().then(print);
    // Asked before it verifies, so that keys that change meanwhile count as changed.
    let generation = (place, verifier.generation());
    if let Some(fingerprint) = &fingerprint {
        match shard.proofs.get(fingerprint, unix_s) {
            Some((by, caller)) if by == generation => {
                return Some(of_caller(caller, named, s).map(Identified::As));
            }
            // This source has said before that the token is another's.
            Some((by, _)) if by.0 > place && is_current(by, s) => return None,
            _ => {}
        }
        let address = s.clients.address(peer.address, head);
        if let Some(wait) = shard.failures.wait(address, unix_s)
            && !shard.proofs.knew(fingerprint)
        {
            return Some(Err(Refusal::CredentialFailures { wait }.into()));
        }
    }
    Some(match verifier.verify(token, unix_s) {
        Ok(proof) => {
            if let Some(fingerprint) = fingerprint {
                shard.proofs.keep(fingerprint, generation, &proof, unix_s);
            }
            of_caller(&proof.caller, named, s).map(Identified::As)
        }
        Err(Unproven::Ask) => Ok(Identified::Asks(Box::new(CredentialQuestion {
            verifier: Arc::clone(verifier),
            credential: Secret::new(token.to_vec()),
            fingerprint,
            generation,
            users: UserRule::default(),
            _running: shard.failures.ask(s.clients.address(peer.address, head)),
        }))),
        Err(Unproven::Elsewhere(why)) => {
            brought.elsewhere = Some(why);
            return None;
        }
        Err(unproven) => Err(refused(unproven, (head, peer), s, shard, unix_s)),
    })
}

/// Whether a source still proves by what it proved by then.
fn is_current((place, generation): (usize, u64), s: &Snapshot) -> bool {
    let source = s.identity.sources.get(place);
    matches!(source, Some(Source::Credential(verifier)) if verifier.generation() == generation)
}

/// What an answer about a credential means.
pub(super) fn answered(
    asking: &CredentialQuestion,
    answer: Result<Proof, Unproven>,
    (head, peer): (&RequestHead, &Peer),
    s: &Snapshot,
    shard: &mut Shard,
    unix_s: u64,
) -> Result<Known, Unidentified> {
    match answer {
        Ok(proof) if unix_s < proof.until_unix_s => {
            if let Some(fingerprint) = asking.fingerprint {
                let generation = asking.generation;
                shard.proofs.keep(fingerprint, generation, &proof, unix_s);
            }
            let known = of_caller(&proof.caller, named(head, &s.identity.header)?, s)?;
            let users = asking.users;
            Ok(Known { users, ..known })
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
        Unproven::Unmapped(reason) => (Refusal::WorkloadUnknown, Some(reason)),
        Unproven::Elsewhere(reason) => (Refusal::CredentialInvalid, Some(reason)),
        Unproven::Ask => (Refusal::IdentityUnavailable, None),
    };
    Unidentified { refusal, reason }
}

/// The workload of a proven caller, which a header must not contradict.
fn of_caller(
    caller: &Arc<Caller>,
    named: Option<&[u8]>,
    s: &Snapshot,
) -> Result<Known, Unidentified> {
    let name = caller.workload.as_bytes();
    if named.is_some_and(|named| named != name) {
        let said = String::from_utf8_lossy(named.unwrap_or_default());
        let reason = format!(
            "the header says {said:?}, and {:?} is proven",
            caller.workload
        );
        let header = s.identity.header.clone();
        return Err(Unidentified {
            refusal: Refusal::IdentityContradicted { header },
            reason: Some(reason.into()),
        });
    }
    match s.by_name.get(name) {
        Some(workload) => Ok(Known {
            workload: *workload,
            caller: Some(Arc::clone(caller)),
            users: UserRule::default(),
        }),
        None => Err(Unidentified {
            refusal: Refusal::WorkloadUnknown,
            reason: Some(format!("no route is for the workload {:?}", caller.workload).into()),
        }),
    }
}
