//! The sources of identities that take credentials: verifiers, made of what the document says and files hold.
//!
//! Invariant: keys that cannot be trusted let nobody in: a gate does not start with them, and one that runs answers 503
//! until they are well again.
//! Not here: what is written (`config`), what a credential proves (`identity`), which source decides
//! (`policy::identity`).

mod asked;
mod issuers;

use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use config::{
    ClaimNames, CredentialKind, CredentialSource, JwksSource, JwtSource, Sources, WorkloadFrom,
};
use identity::claims::{Mapping, Workload};
use identity::jwt::{FixedKeys, Issuer, IssuerKeys, JwtVerifier};
use identity::keys::{KeyFile, KeyTable};
use jose::{Algorithm, KeySet, Rules};
use policy::identity::{Source, Verifier};
use policy::snapshot::Snapshot;

pub(crate) use self::issuers::Services;

/// Most of a file of keys, bytes: a million keys.
const KEY_FILE_BYTES_MAX: usize = 512 << 20;

/// Who asks for verifiers.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Moment<'s> {
    /// Nothing is asked of anybody, and what is wrong is a fault.
    Check,
    /// A gate that starts: what is wrong is a fault.
    Start(&'s Services),
    /// A gate that runs: what is wrong closes the source, and is logged.
    Reload(&'s Services),
}

impl<'s> Moment<'s> {
    /// The thread that asks others, where anybody may be asked.
    pub(crate) fn services(self) -> Option<&'s Services> {
        match self {
            Self::Check => None,
            Self::Start(services) | Self::Reload(services) => Some(services),
        }
    }
}

/// Puts a verifier for each source that takes credentials into its place. All issuers of signed tokens are one
/// source, which stands where the first of them does.
pub(crate) fn complete(
    snapshot: &mut Snapshot,
    written: &[CredentialSource],
    sources: &dyn Sources,
    moment: Moment<'_>,
) -> Result<(), String> {
    let mut issuers = Vec::new();
    for source in written {
        if let CredentialKind::Jwt(jwt) = &source.kind {
            let at = |fault| format!("{}.jwt: {fault}", source.place);
            issuers.push(issuer(jwt, moment).map_err(at)?);
        }
    }
    if let Some(services) = moment.services() {
        services.keep_only(written);
    }
    let mut issuers = Some(issuers);
    let mut left_out = 0;
    for source in written {
        let verifier: Arc<dyn Verifier> = match &source.kind {
            CredentialKind::Keys(path) => Arc::new(keys(path, &source.place, sources, moment)?),
            CredentialKind::Jwt(_) => match issuers.take() {
                Some(issuers) => Arc::new(JwtVerifier::new(issuers, now_s)),
                None => {
                    left_out += 1;
                    continue;
                }
            },
            CredentialKind::Introspection(asked) => {
                let at = |fault| format!("{}.introspection: {fault}", source.place);
                asked::verifier(asked, moment.services()).map_err(at)?
            }
        };
        let known = &mut snapshot.identity.sources;
        let position = source.position.saturating_sub(left_out).min(known.len());
        known.insert(position, Source::Credential(verifier));
    }
    Ok(())
}

fn issuer(written: &JwtSource, moment: Moment<'_>) -> Result<Issuer, String> {
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
        (fetched, Some(services)) => services.issuer(&written.issuer, fetched)?,
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

/// Seconds since the Unix epoch.
pub(crate) fn now_s() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

fn keys(
    path: &Path,
    place: &str,
    sources: &dyn Sources,
    moment: Moment<'_>,
) -> Result<KeyTable, String> {
    match read_keys(path, sources) {
        Ok(file) => Ok(KeyTable::new(&file)),
        Err(fault) if matches!(moment, Moment::Reload(_)) => {
            tracing::error!(%fault, "the keys cannot be trusted: nobody is let in by a key until they can");
            Ok(KeyTable::unavailable(&fault))
        }
        Err(fault) => Err(format!("{place}.keys.file: {fault}")),
    }
}

/// Reads a file of keys.
pub(crate) fn read_keys(path: &Path, sources: &dyn Sources) -> Result<KeyFile, String> {
    let shown = path.display();
    let bytes = sources.read(path).map_err(|error| {
        if error.kind() == std::io::ErrorKind::NotFound {
            return format!(
                "{shown} does not exist; `tollgate keys create --config FILE --workload NAME` makes it with its first key"
            );
        }
        format!("{shown} cannot be read: {error}")
    })?;
    let is_private = sources
        .is_private(path)
        .map_err(|error| format!("{shown}: {error}"))?;
    if !is_private {
        return Err(format!(
            "others than its owner can read or change {shown}; chmod 600 {shown}"
        ));
    }
    if bytes.len() > KEY_FILE_BYTES_MAX {
        let mib = KEY_FILE_BYTES_MAX >> 20;
        return Err(format!("{shown} is larger than {mib} MiB"));
    }
    KeyFile::parse(&bytes).map_err(|fault| {
        format!("{shown} is damaged at {fault}; restore it from a copy, or take that line out")
    })
}
