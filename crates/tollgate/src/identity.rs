//! The sources of identities that take credentials: verifiers, made of what the document says and files hold.
//!
//! Invariant: keys that cannot be trusted let nobody in: neither a start nor a reload takes them, and where those of the
//! configuration in force go bad, the gate answers 503 until they are well again.
//! Not here: what is written (`config`), what a credential proves (`identity`), which source decides
//! (`policy::identity`).

mod introspection;
mod token_review;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use config::{
    ClaimNames, CredentialKind, CredentialSource, JwksSource, JwtSource, LoginSource, Sources,
    StaticKey, WorkloadFrom,
};
use identity::claims::{Mapping, Workload};
use identity::jwt::{FixedKeys, Issuer, IssuerKeys, JwtVerifier};
use identity::keys::{FileFault, KeyFile, KeyTable};
use identity::static_keys::StaticKeys;
use jose::{Algorithm, KeySet, Rules};
use policy::caller::{Caller, Later, Proven};
use policy::identity::{Proof, Source, Unproven, Verifier};
use policy::login::LoginSite;
use policy::secret::Secret;
use policy::snapshot::Snapshot;

use crate::issuers;
use crate::login::{self, Listener, Logins};
use crate::services::{Moment, now_s};

/// How long a call waits for an answer about its token: less than policy does.
const ANSWER_WITHIN: Duration = Duration::from_millis(1800);
/// A worker keeps an answer to the end of a second: what all of them share ends so much earlier.
const KEPT_BY_WORKERS: Duration = Duration::from_secs(1);
/// Most of a file of keys, bytes: a million keys.
const KEY_FILE_BYTES_MAX: usize = 512 << 20;

/// A file of keys as it was last read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeysState {
    /// Which source it is of, as the document has it: `identity[0]`.
    pub(crate) source: String,
    pub(crate) path: PathBuf,
    /// Keys in it, revoked ones included; 0 where it is not well.
    pub(crate) keys: usize,
    /// The beginning of its SHA-256; none where it is not well, and nobody is let in by it.
    pub(crate) version: Option<String>,
}

/// Puts a verifier for each source that takes credentials into its place, and gives the files of keys. Issuers of signed
/// tokens that follow one another, under the same rule for users, are one source: which of them is meant, a token says.
pub(crate) fn complete(
    snapshot: &mut Snapshot,
    written: &[CredentialSource],
    ledger: Option<&config::Ledger>,
    sources: &dyn Sources,
    moment: Moment<'_>,
) -> Result<Vec<KeysState>, String> {
    let mut files = Vec::new();
    let mut left_out = 0;
    let mut rest = written.iter().peekable();
    while let Some(source) = rest.next() {
        let position = source.position - left_out;
        let verifier: Arc<dyn Verifier> = match &source.kind {
            CredentialKind::Keys(path) => {
                let (mut keys, version) = keys(path, &source.place, sources, moment)?;
                with_kept_budgets(&mut keys, &source.place, ledger, moment)?;
                files.push(KeysState {
                    source: source.place.clone(),
                    path: path.clone(),
                    keys: keys.len(),
                    version,
                });
                Arc::new(keys)
            }
            CredentialKind::Static(keys) => Arc::new(static_keys(keys)),
            CredentialKind::Introspection(asked) => {
                let at = |fault| format!("{}.introspection: {fault}", source.place);
                introspection::verifier(asked, moment.services()).map_err(at)?
            }
            CredentialKind::Login(login) => {
                let at = |fault| format!("{}.login: {fault}", source.place);
                let verifier = sessions(login, snapshot, moment).map_err(at)?;
                let known = &mut snapshot.identity.sources;
                known.insert(position.min(known.len()), Source::Session(verifier));
                continue;
            }
            CredentialKind::TokenReview(reviewed) => {
                let at = |fault| format!("{}.token_review: {fault}", source.place);
                token_review::verifier(reviewed, moment.services()).map_err(at)?
            }
            CredentialKind::Jwt(first) => {
                let mut issuers = vec![issuer(first, &source.place, moment)?];
                let identity = &mut snapshot.identity;
                let rule = identity.users.get(position).copied();
                while let Some(next) = rest.peek()
                    && let CredentialKind::Jwt(jwt) = &next.kind
                    && next.position - left_out == position + 1
                    && identity.users.get(position + 1).copied() == rule
                {
                    issuers.push(issuer(jwt, &next.place, moment)?);
                    identity.users.remove(position + 1);
                    left_out += 1;
                    rest.next();
                }
                Arc::new(JwtVerifier::new(issuers, now_s))
            }
        };
        let known = &mut snapshot.identity.sources;
        known.insert(position.min(known.len()), Source::Credential(verifier));
    }
    Ok(files)
}

fn static_keys(written: &[StaticKey]) -> StaticKeys {
    let caller = |key: &StaticKey| Caller {
        workload: key.workload.as_str().into(),
        by: Proven::Key,
        user: Some(key.user.as_str().into()),
        ..Caller::default()
    };
    let pairs = written.iter().map(|key| (key.secret.expose(), caller(key)));
    StaticKeys::new(pairs)
}

fn issuer(written: &JwtSource, place: &str, moment: Moment<'_>) -> Result<Issuer, String> {
    issuer_of(written, moment).map_err(|fault| format!("{place}.jwt: {fault}"))
}

fn issuer_of(written: &JwtSource, moment: Moment<'_>) -> Result<Issuer, String> {
    let algorithms = written.algorithms.iter();
    let text = |text: &String| Box::from(text.as_str());
    let rules = Rules {
        issuer: text(&written.issuer),
        audiences: written.audiences.iter().map(text).collect(),
        types: written.types.iter().map(text).collect(),
        algorithms: algorithms
            .filter_map(|name| Algorithm::named(name))
            .collect(),
        leeway_s: written.leeway_s,
        requires_expiry: true,
    };
    let keys: Arc<dyn IssuerKeys> = match (&written.keys, moment.services()) {
        (JwksSource::File(bytes), _) => {
            let set = KeySet::parse(bytes).or_else(|fault| {
                // A single key may stand there in PEM.
                KeySet::from_pem(bytes).map_err(|_| format!("jwks.file: {fault}"))
            })?;
            issuers::tell_of(&set, &written.issuer);
            Arc::new(FixedKeys::new(set))
        }
        (fetched, Some(services)) => issuers::issuer(services, &written.issuer, fetched)?,
        (fetched, None) => {
            issuers::source(&written.issuer, fetched)?;
            let none = KeySet::parse(br#"{"keys":[]}"#).map_err(|fault| fault.to_string())?;
            Arc::new(FixedKeys::new(none))
        }
    };
    Ok(Issuer {
        rules: Arc::new(rules),
        mapping: Arc::new(mapping(&written.claims)),
        keys,
    })
}

/// What takes sessions, and where browsers begin them.
fn sessions(
    written: &LoginSource,
    snapshot: &mut Snapshot,
    moment: Moment<'_>,
) -> Result<Arc<dyn Verifier>, String> {
    let LoginSource { client, claims } = written;
    let mapping = mapping(claims);
    let Some(services) = moment.services() else {
        return Ok(Arc::new(login::checked(Listener::Data, client, mapping)?));
    };
    let logins = Logins::of(services, Listener::Data, client)?;
    let verifier = logins.verifier(mapping);
    let (origin, callback) = client.origin_and_path();
    snapshot.login = Some(LoginSite {
        login: Arc::new(logins),
        callback: callback.into(),
        origin: origin.into(),
    });
    Ok(Arc::new(verifier))
}

/// What a source that asks somebody says of every credential at first: a key that no source of keys took is not told to
/// others.
fn before_asking(credential: &[u8]) -> Unproven {
    if credential.starts_with(identity::keys::PREFIX.as_bytes()) {
        return Unproven::Elsewhere("a key of this gateway's is not told to others".into());
    }
    Unproven::Ask
}

/// A source that asks somebody about every token, unless it was asked a moment ago; none where nobody is asked.
#[derive(Debug)]
struct Asking<A>(Option<A>);

/// Who is asked.
trait Asked: std::fmt::Debug + Send + Sync {
    fn ask(&self, credential: &Secret) -> Later<Result<Proof, Unproven>>;
}

impl<A: Asked> Verifier for Asking<A> {
    fn takes(&self, _: &[u8]) -> bool {
        true
    }

    fn fingerprint(&self, credential: &[u8]) -> [u8; 32] {
        identity::fingerprint(credential)
    }

    fn verify(&self, credential: &[u8], _: u64) -> Result<Proof, Unproven> {
        Err(before_asking(credential))
    }

    fn ask(&self, credential: Secret) -> Later<Result<Proof, Unproven>> {
        let nobody = || -> Later<Result<Proof, Unproven>> {
            let nobody = Unproven::Unavailable("nobody is asked".into());
            Box::pin(std::future::ready(Err(nobody)))
        };
        let asked = self.0.as_ref();
        asked.map_or_else(nobody, |asked| asked.ask(&credential))
    }
}

/// What an answer about a token proves: for as long as answers are kept from when it was `asked`, and not past its end.
fn proof_of(
    caller: Caller,
    (asked_s, cache): (u64, Duration),
    exp: Option<u64>,
) -> Result<Proof, Unproven> {
    let now = now_s();
    if exp.is_some_and(|exp| exp <= now) {
        return Err(Unproven::Invalid(
            "the answer says that it has expired".into(),
        ));
    }
    // Counted from the question, which may be another worker's: two caches in a row would be twice as long.
    let until = asked_s.saturating_add(cache.as_secs());
    Ok(Proof {
        caller: Arc::new(caller),
        // At least this call's own second.
        until_unix_s: exp.map_or(until, |exp| exp.min(until)).max(now + 1),
    })
}

fn mapping(written: &ClaimNames) -> Mapping {
    Mapping {
        workload: match &written.workload {
            WorkloadFrom::Fixed(name) => Workload::Fixed(name.as_str().into()),
            WorkloadFrom::Claim(claim, table) => {
                let pairs = table.iter().map(|(v, w)| (v.clone(), w.as_str().into()));
                Workload::Claim(claim.clone(), pairs.collect())
            }
        },
        user: written.user.clone(),
        tags: written.tags.clone(),
    }
}

fn keys(
    path: &Path,
    place: &str,
    sources: &dyn Sources,
    moment: Moment<'_>,
) -> Result<(KeyTable, Option<String>), String> {
    let read = key_bytes(path, sources).and_then(|bytes| {
        let table = KeyTable::parse(&bytes).map_err(damaged(path))?;
        Ok((table, Some(version(&bytes))))
    });
    match read {
        Ok(read) => Ok(read),
        Err(fault) if matches!(moment, Moment::Keys(_)) => {
            tracing::error!(%fault, see = "docs/troubleshooting.md#the-file-of-keys-cannot-be-used", "the file of keys cannot be used: every key is refused until it is repaired");
            Ok((KeyTable::unavailable(&fault), None))
        }
        Err(fault) => Err(format!("{place}.keys.file: {fault}")),
    }
}

/// Leaves out keys with budgets of which nobody would know after a restart what was spent, where keys alone are read anew; else they
/// are a fault.
fn with_kept_budgets(
    keys: &mut KeyTable,
    place: &str,
    ledger: Option<&config::Ledger>,
    moment: Moment<'_>,
) -> Result<(), String> {
    let most = ledger.map_or(0, config::Ledger::period_days_max);
    let mut longest = 0;
    let left_out = keys.leave_out_budgeted(|budget| {
        let days = budget.calendar.every.days_max();
        longest = longest.max(days);
        days <= most
    });
    if left_out == 0 {
        return Ok(());
    }
    let says = match ledger {
        None => {
            "keys have budgets, which need a ledger; write ledger: { path: usage.db }".to_owned()
        }
        Some(_) => format!(
            "rows of the ledger do not last for the budgets of keys; write ledger.retention: {}d or more",
            longest + 1
        ),
    };
    let says = format!("{place}.keys.file: {says}");
    if !matches!(moment, Moment::Keys(_)) {
        return Err(says);
    }
    tracing::error!(keys = left_out, "{says}; these keys are refused");
    Ok(())
}

/// Tells a file from others: 48 bits of its SHA-256, as many as the version of a configuration has.
fn version(bytes: &[u8]) -> String {
    let digest = identity::fingerprint(bytes);
    digest
        .iter()
        .take(6)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// Reads a file of keys.
pub(crate) fn read_keys(path: &Path, sources: &dyn Sources) -> Result<KeyFile, String> {
    KeyFile::parse(&key_bytes(path, sources)?).map_err(damaged(path))
}

/// The permissions of all but the owner of a file.
const OTHERS: u32 = 0o077;

/// The file's content, where nobody but its owner can see or change it.
fn key_bytes(path: &Path, sources: &dyn Sources) -> Result<Vec<u8>, String> {
    let shown = path.display();
    let bytes = sources.read(path, KEY_FILE_BYTES_MAX).map_err(|error| {
        if error.kind() == std::io::ErrorKind::FileTooLarge {
            let mib = KEY_FILE_BYTES_MAX >> 20;
            return format!("{shown} is larger than {mib} MiB");
        }
        if error.kind() == std::io::ErrorKind::NotFound {
            return format!(
                "{shown} does not exist; `tollgate keys create --config FILE --workload NAME` makes it with its first key"
            );
        }
        format!("{shown} cannot be read: {error}")
    })?;
    let mode = sources
        .mode(path)
        .map_err(|error| format!("{shown}: {error}"))?;
    if mode & OTHERS != 0 {
        return Err(format!(
            "others than its owner can read or change {shown}; chmod 600 {shown}"
        ));
    }
    Ok(bytes)
}

/// What is said of a file with a fault.
fn damaged(path: &Path) -> impl Fn(FileFault) -> String {
    let shown = path.display().to_string();
    move |fault| {
        format!("{shown} is damaged at {fault}; restore it from a copy, or take that line out")
    }
}

#[cfg(test)]
mod tests;
