//! Small texts that a browser keeps for the gate, sealed: unreadable, and good only as they were made.
//!
//! `base64url(version ‖ nonce ‖ AES-256-GCM(text) ‖ tag)`. The key of each purpose and scope is derived from one secret
//! by HKDF-SHA256 (RFC 5869), so that what was sealed for one opens as nothing else.
//! Invariant: whatever is wrong with a text, who sent it learns only that it is not good; the reason is for the log.
//! Not here: what the texts say (`session`, `login`), where the secret and the nonces come from (the host).

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use policy::secret::Secret;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use ring::hkdf::{HKDF_SHA256, Salt};
use zeroize::Zeroizing;

/// Most bytes of a sealed text: with its name and attributes a cookie of it stays below the 4,096 bytes that browsers
/// keep (RFC 6265, 6.1).
pub const SEALED_BYTES_MAX: usize = 3500;
/// Fewest bytes of a secret: as many as the key has.
pub const SECRET_BYTES_MIN: usize = 32;
/// Bytes of a nonce: at random, so that a key is good for 2³² texts (NIST SP 800-38D, 8.3).
pub const NONCE_BYTES: usize = 12;

/// The form of what is sealed.
const VERSION: u8 = 1;
const TAG_BYTES: usize = 16;
/// What tells keys that are derived here from all others of the secret.
const SALT: &[u8] = b"tollgate sealed cookie";

/// What a text is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Somebody is logged in.
    Session,
    /// Somebody is about to.
    LoginState,
}

/// A secret is too short to derive keys from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "it has {0} bytes, and needs {SECRET_BYTES_MIN} or more; make one with: openssl rand -hex 32"
)]
pub struct ShortSecret(pub usize);

/// A text is too long to be sealed; how many bytes it would come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0} bytes sealed, and a cookie holds at most {SEALED_BYTES_MAX}")]
pub struct TooLong(pub usize);

/// What was brought was not sealed here, for this, or by a key that is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotSealed {
    /// Too long, too short or not base64url.
    Form,
    /// Of another version.
    Version,
    /// Changed, for another purpose, or by another key.
    Key,
}

impl NotSealed {
    /// For the log.
    #[must_use]
    pub const fn reason(self) -> &'static str {
        match self {
            Self::Form => "it has not the form of a sealed cookie",
            Self::Version => "it is of another version of the gate",
            Self::Key => "it was changed, or sealed by another key or for something else",
        }
    }
}

/// Seals texts of one purpose, and opens them.
pub struct Sealer {
    key: LessSafeKey,
    /// The key before it: opens, and seals nothing.
    previous: Option<LessSafeKey>,
}

impl Sealer {
    /// With keys of these secrets. `scope` tells one gate, listener or client of a provider from another.
    ///
    /// # Errors
    /// [`ShortSecret`].
    pub fn new(
        purpose: Purpose,
        scope: &str,
        secret: &Secret,
        previous: Option<&Secret>,
    ) -> Result<Self, ShortSecret> {
        let derived = |secret: &Secret| derive(purpose, scope, secret);
        Ok(Self {
            key: derived(secret)?,
            previous: previous.map(derived).transpose()?,
        })
    }

    /// Seals a text. The nonce must be of good chance, and another one each time.
    ///
    /// # Errors
    /// [`TooLong`].
    pub fn seal(&self, text: &[u8], nonce: [u8; NONCE_BYTES]) -> Result<String, TooLong> {
        let whole = 1 + NONCE_BYTES + text.len() + TAG_BYTES;
        let length = base64::encoded_len(whole, false).unwrap_or(usize::MAX);
        if length > SEALED_BYTES_MAX {
            return Err(TooLong(length));
        }
        let mut bytes = Zeroizing::new(Vec::with_capacity(whole));
        bytes.push(VERSION);
        bytes.extend(nonce);
        bytes.extend(text);
        let (_, within) = bytes.split_at_mut(1 + NONCE_BYTES);
        let nonce = Nonce::assume_unique_for_key(nonce);
        let tag = self
            .key
            .seal_in_place_separate_tag(nonce, Aad::from([VERSION]), within);
        // It fails for texts of 64 GiB alone.
        let tag = tag.map_err(|_| TooLong(length))?;
        bytes.extend(tag.as_ref());
        Ok(URL_SAFE_NO_PAD.encode(&*bytes))
    }

    /// What was sealed, by this key or the one before it.
    ///
    /// # Errors
    /// [`NotSealed`].
    pub fn open(&self, sealed: &[u8]) -> Result<Zeroizing<Vec<u8>>, NotSealed> {
        if sealed.len() > SEALED_BYTES_MAX {
            return Err(NotSealed::Form);
        }
        let bytes = URL_SAFE_NO_PAD.decode(sealed);
        let bytes = bytes.map_err(|_| NotSealed::Form)?;
        let (version, rest) = bytes.split_first().ok_or(NotSealed::Form)?;
        if *version != VERSION {
            return Err(NotSealed::Version);
        }
        let (nonce, within) = rest
            .split_first_chunk::<NONCE_BYTES>()
            .ok_or(NotSealed::Form)?;
        let keys = [Some(&self.key), self.previous.as_ref()];
        let mut opened = keys.into_iter().flatten().filter_map(|key| {
            let nonce = Nonce::assume_unique_for_key(*nonce);
            let mut within = Zeroizing::new(within.to_vec());
            let text = key.open_in_place(nonce, Aad::from([VERSION]), &mut within);
            let length = text.ok()?.len();
            within.truncate(length);
            Some(within)
        });
        opened.next().ok_or(NotSealed::Key)
    }
}

/// Keys are not shown.
impl fmt::Debug for Sealer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sealer").finish_non_exhaustive()
    }
}

fn derive(purpose: Purpose, scope: &str, secret: &Secret) -> Result<LessSafeKey, ShortSecret> {
    let secret = secret.expose();
    if secret.len() < SECRET_BYTES_MIN {
        return Err(ShortSecret(secret.len()));
    }
    let purpose: &[u8] = match purpose {
        Purpose::Session => b"session\0",
        Purpose::LoginState => b"login state\0",
    };
    let info = [purpose, scope.as_bytes()];
    let of_secret = Salt::new(HKDF_SHA256, SALT).extract(secret);
    let key = of_secret.expand(&info, &AES_256_GCM);
    // It fails for keys of more than 8,160 bytes alone; this one has 32.
    let key = key.map_err(|_| ShortSecret(secret.len()))?;
    Ok(LessSafeKey::new(UnboundKey::from(key)))
}

#[cfg(test)]
mod tests;
