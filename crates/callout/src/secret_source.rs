//! Where a secret of the gate's own comes from, each time that it is sent.
//!
//! Invariant: a file that is replaced is read again within [`READ_AGAIN_AFTER`]; one that cannot be read gives nothing,
//! and not what it once held.

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use policy::secret::Secret;
use tokio::time::Instant;
use zeroize::Zeroizing;

use crate::fault::Fault;

/// How long a file's contents are used before it is read again.
pub const READ_AGAIN_AFTER: Duration = Duration::from_secs(10);
/// The longest file.
const FILE_BYTES_MAX: u64 = 64 << 10;

type Giving = dyn Fn() -> Option<Secret> + Send + Sync;

/// Gives a secret when it is about to be sent.
#[derive(Clone)]
pub struct SecretSource(Option<Arc<Giving>>);

impl SecretSource {
    /// One that does not change.
    #[must_use]
    pub fn fixed(secret: Secret) -> Self {
        Self::with(move || Some(secret.clone()))
    }

    /// One that the host gives, or makes, each time; none where there is none now. It is called on the thread that
    /// asks, and must not wait.
    #[must_use]
    pub fn with(giving: impl Fn() -> Option<Secret> + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(giving)))
    }

    /// None is sent: the connection says who the gate is.
    #[must_use]
    pub fn none() -> Self {
        Self(None)
    }

    pub(crate) fn is_none(&self) -> bool {
        self.0.is_none()
    }

    /// The contents of a file without the white space around them, read again after [`READ_AGAIN_AFTER`].
    #[must_use]
    pub fn file(path: PathBuf) -> Self {
        let kept: Mutex<Option<(Instant, Option<Secret>)>> = Mutex::default();
        Self::with(move || {
            let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
            match &*kept {
                Some((at, secret)) if at.elapsed() < READ_AGAIN_AFTER => secret.clone(),
                _ => {
                    let read = read(&path);
                    *kept = Some((Instant::now(), read.clone()));
                    read
                }
            }
        })
    }

    pub(crate) fn give(&self) -> Result<Secret, Fault> {
        let giving = self.0.as_deref();
        let given = giving
            .and_then(|giving| giving())
            .filter(|secret| !secret.expose().is_empty());
        given.ok_or(Fault::Credential("there is none now"))
    }
}

impl fmt::Debug for SecretSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

fn read(path: &PathBuf) -> Option<Secret> {
    let mut text = Zeroizing::new(Vec::with_capacity(4096));
    let file = File::open(path).ok()?;
    let read = file.take(FILE_BYTES_MAX + 1).read_to_end(&mut text).ok()?;
    let fits = u64::try_from(read).is_ok_and(|read| read <= FILE_BYTES_MAX);
    fits.then(|| Secret::new(text.trim_ascii().to_vec()))
}

#[cfg(test)]
mod tests;
