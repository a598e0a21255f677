//! The sources of identities that take credentials: verifiers, made of what the document says and files hold.
//!
//! Invariant: keys that cannot be trusted let nobody in: a gate does not start with them, and one that runs answers 503
//! until they are well again.
//! Not here: what is written (`config`), what a credential proves (`identity`), which source decides
//! (`policy::identity`).

use std::path::Path;
use std::sync::Arc;

use config::{CredentialKind, CredentialSource, Sources};
use identity::keys::{KeyFile, KeyTable};
use policy::identity::{Source, Verifier};
use policy::snapshot::Snapshot;

/// Most of a file of keys, bytes: a million keys.
const KEY_FILE_BYTES_MAX: usize = 512 << 20;

/// Who asks for verifiers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moment {
    /// A gate that starts, or a check: what is wrong is a fault.
    Start,
    /// A gate that runs: what is wrong closes the source, and is logged.
    Reload,
}

/// Puts a verifier for each source that takes credentials into its place.
pub(crate) fn complete(
    snapshot: &mut Snapshot,
    written: &[CredentialSource],
    sources: &dyn Sources,
    moment: Moment,
) -> Result<(), String> {
    for source in written {
        let verifier: Arc<dyn Verifier> = match &source.kind {
            CredentialKind::Keys(path) => Arc::new(keys(path, &source.place, sources, moment)?),
            CredentialKind::Jwt(_) => return Err(format!("{}: jwt", source.place)),
        };
        let known = &mut snapshot.identity.sources;
        known.insert(source.position.min(known.len()), Source::Credential(verifier));
    }
    Ok(())
}

fn keys(
    path: &Path,
    place: &str,
    sources: &dyn Sources,
    moment: Moment,
) -> Result<KeyTable, String> {
    match read_keys(path, sources) {
        Ok(file) => Ok(KeyTable::new(&file)),
        Err(fault) if moment == Moment::Start => Err(format!("{place}.keys.file: {fault}")),
        Err(fault) => {
            tracing::error!(%fault, "the keys cannot be trusted: nobody is let in by a key until they can");
            Ok(KeyTable::unavailable(&fault))
        }
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
