//! Who makes a call: the sources of identities asked in order, by what the call brings.
//!
//! Invariant: one value or none; two values are an error, never a choice. An unknown identity is refused before
//! anything is spent on it.
//! Not here: what a source is ([`crate::identity`]), what a call brings (`presented`), when somebody outside is asked (the host).

use std::borrow::Cow;
use std::sync::Arc;

use wire::head::FieldName;

use super::presented::Presented;
use crate::attribution::{CHARS_MAX, is_unseen};
use crate::caller::{Caller, PeerCertificate};
use crate::credential::Given;
use crate::id::WorkloadId;
use crate::identity::{Proof, Running, Source, Unproven, UserRule, Verifier};
use crate::refusal::Refusal;
use crate::secret::Secret;
use crate::shard::Shard;
use crate::snapshot::Snapshot;

/// What is known of who calls.
#[derive(Debug)]
pub(crate) enum Identified {
    /// Who it is.
    As(Identity),
    /// Somebody is to be asked.
    Asks(Box<CredentialQuestion>),
}

/// Who calls.
#[derive(Debug)]
pub(crate) struct Identity {
    pub(crate) workload: WorkloadId,
    /// The same as it was proven; none where a header says it.
    pub(crate) caller: Option<Arc<Caller>>,
    /// What holds of its user.
    pub(crate) users: UserRule,
}

/// A credential that somebody is asked about.
#[derive(Debug)]
pub(crate) struct CredentialQuestion {
    pub(crate) verifier: Arc<dyn Verifier>,
    pub(crate) credential: Secret,
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
            Self::As(identity) => Self::As(Identity { users, ..identity }),
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
    pub(crate) refusal: Refusal,
    pub(crate) reason: Option<Cow<'static, str>>,
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
/// [`Refusal::IdentityRepeated`] for several values of the header, [`Refusal::UserUnreadable`] for a user that cannot be one; [`Refusal::WorkloadNotRegistered`] where a header
/// alone identifies and names nobody; else [`Refusal::CredentialMissing`], [`Refusal::CredentialInvalid`],
/// [`Refusal::IdentityUnavailable`], [`Refusal::IdentityContradicted`]; [`Refusal::OriginNotAllowed`] for a session that
/// another site's page has a browser bring.
pub(crate) fn identify(
    who: &impl Presented,
    s: &Snapshot,
    shard: &mut Shard,
    unix_s: u64,
) -> Result<Identified, Unidentified> {
    let configured = &s.identity;
    let named = who.named(&configured.header)?;
    let certificate = who.certificate();
    let certificate = certificate.filter(|c| unix_s < c.until_unix_s);
    let mut brought = Brought::new(who);
    let mut takes_credentials = false;
    let mut default = None;
    for (place, source) in configured.sources.iter().enumerate() {
        let users = configured.users.get(place).copied().unwrap_or_default();
        match source {
            Source::Header(source) => {
                if !source.from.trusts(who.peer(), certificate) {
                    continue;
                }
                let user = match &configured.user_header {
                    Some(header) if source.names_user => said_user(who, header)?,
                    _ => None,
                };
                if let Some(name) = named {
                    let found = s.by_name.get(name).copied();
                    let header = &configured.header;
                    let workload = found.ok_or_else(|| not_registered(header))?;
                    return Ok(Identified::As(Identity {
                        workload,
                        caller: user.and_then(|user| with_user(user, workload, s)),
                        users,
                    }));
                }
                default = default.or(source.default.map(|default| (default, users, user)));
            }
            Source::Certificate(known) => {
                takes_credentials = true;
                if let Some(caller) = certificate.and_then(|c| known.caller(c)) {
                    let identity = of_caller(&caller, named, s)?;
                    return Ok(Identified::As(Identity { users, ..identity }));
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
                        who,
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
                if let Some(session) = who.session(s)? {
                    let found = proven(
                        (place, verifier),
                        (session, &mut Brought::new(who)),
                        named,
                        who,
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
    if let Some((workload, users, user)) = default
        && (!takes_credentials || brought.given() == Given::Nothing)
    {
        return Ok(Identified::As(Identity {
            workload,
            caller: user.and_then(|user| with_user(user, workload, s)),
            users,
        }));
    }
    if !takes_credentials {
        return Err(not_registered(&configured.header).into());
    }
    Err(match brought.given() {
        Given::Nothing => Unidentified {
            refusal: Refusal::CredentialMissing,
            reason: unbelieved(named, certificate, who, s).map(Cow::Owned),
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
struct Brought<'h, P> {
    who: &'h P,
    given: Option<Given<'h>>,
    /// Of the token.
    fingerprint: Option<[u8; 32]>,
    /// Why a source that takes such tokens leaves this one to others.
    elsewhere: Option<Cow<'static, str>>,
}

impl<'h, P: Presented> Brought<'h, P> {
    fn new(who: &'h P) -> Self {
        Self {
            who,
            given: None,
            fingerprint: None,
            elsewhere: None,
        }
    }

    fn given(&mut self) -> Given<'h> {
        *self.given.get_or_insert_with(|| self.who.credential())
    }
}

/// The user whom a header names; an empty one names nobody.
fn said_user(who: &impl Presented, header: &FieldName) -> Result<Option<Arc<str>>, Refusal> {
    let Some(value) = who.named(header)?.filter(|value| !value.is_empty()) else {
        return Ok(None);
    };
    let text = std::str::from_utf8(value).ok();
    let text = text.filter(|text| text.len() <= CHARS_MAX && !text.contains(is_unseen));
    let user = text.ok_or_else(|| Refusal::UserUnreadable {
        header: header.to_string(),
    })?;
    Ok(Some(user.into()))
}

/// A caller of this workload, whose user is known.
fn with_user(user: Arc<str>, workload: WorkloadId, s: &Snapshot) -> Option<Arc<Caller>> {
    Some(Arc::new(Caller {
        workload: Arc::clone(&s.workload(workload)?.name),
        user: Some(user),
        ..Caller::default()
    }))
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
    who: &impl Presented,
    s: &Snapshot,
) -> Option<String> {
    if let Some(certificate) = certificate {
        let names = &certificate.names;
        return Some(format!(
            "the certificate's names {names:?} are of no workload"
        ));
    }
    let address = who.source(s);
    let header = &*s.identity.header;
    named.map(|_| format!("the header {header} is not believed from {address}"))
}

/// Whose the credential is, by what is known of it already, by itself, or by asking.
fn proven<P: Presented>(
    (place, verifier): (usize, &Arc<dyn Verifier>),
    (token, brought): (&[u8], &mut Brought<'_, P>),
    named: Option<&[u8]>,
    who: &P,
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
        let address = who.source(s);
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
            _running: shard.failures.ask(who.source(s)),
        }))),
        Err(Unproven::Elsewhere(why)) => {
            brought.elsewhere = Some(why);
            return None;
        }
        Err(unproven) => Err(refused(unproven, who, s, shard, unix_s)),
    })
}

/// Whether a source still proves by what it proved by then.
fn is_current((place, generation): (usize, u64), s: &Snapshot) -> bool {
    let source = s.identity.sources.get(place);
    matches!(source, Some(Source::Credential(verifier)) if verifier.generation() == generation)
}

/// What an answer about a credential means.
pub(crate) fn answered(
    asking: &CredentialQuestion,
    answer: Result<Proof, Unproven>,
    who: &impl Presented,
    s: &Snapshot,
    shard: &mut Shard,
    unix_s: u64,
) -> Result<Identity, Unidentified> {
    match answer {
        Ok(proof) if unix_s < proof.until_unix_s => {
            if let Some(fingerprint) = asking.fingerprint {
                let generation = asking.generation;
                shard.proofs.keep(fingerprint, generation, &proof, unix_s);
            }
            let identity = of_caller(&proof.caller, who.named(&s.identity.header)?, s)?;
            let users = asking.users;
            Ok(Identity { users, ..identity })
        }
        Ok(_) => {
            let unproven = Unproven::Invalid("expired while it was asked about".into());
            Err(refused(unproven, who, s, shard, unix_s))
        }
        Err(unproven) => Err(refused(unproven, who, s, shard, unix_s)),
    }
}

/// Refuses a credential that proves nothing.
#[cold]
fn refused(
    unproven: Unproven,
    who: &impl Presented,
    s: &Snapshot,
    shard: &mut Shard,
    unix_s: u64,
) -> Unidentified {
    let (refusal, reason) = match unproven {
        Unproven::Invalid(reason) => {
            let address = who.source(s);
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
) -> Result<Identity, Unidentified> {
    let name = caller.workload.as_bytes();
    if named.is_some_and(|named| named != name) {
        let said = String::from_utf8_lossy(named.unwrap_or_default());
        let reason = format!(
            "the header says {said:?}, and {:?} is proven",
            caller.workload
        );
        let header = s.identity.header.to_string();
        return Err(Unidentified {
            refusal: Refusal::IdentityContradicted { header },
            reason: Some(reason.into()),
        });
    }
    match s.by_name.get(name) {
        Some(workload) => Ok(Identity {
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
