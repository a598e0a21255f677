//! Keys of the gate's own: `tgk_ID_SECRET`, of which a file holds the SHA-256.
//!
//! The id is public: it stands in logs, reports and the file. The secret has 256 bits of chance, so that one plain hash
//! of it is enough, and a table by id tells a guesser nothing.
//! Invariant: a key is whole and good, or proves nothing; a file of keys is read whole or refused whole.
//! Not here: where the file is and who may read it (`tollgate`), the form of its lines (`file`).

mod file;
mod own;
mod table;

use std::fmt;

use policy::secret::Secret;
use ring::rand::{SecureRandom, SystemRandom};

pub use self::file::{Entry, FileFault, KeyFile, Previous};
pub use self::own::{BudgetPer, LimitOf, WrittenBudget, WrittenLimit};
pub use self::table::KeyTable;

/// How every key begins: what scanners for leaked secrets look for.
pub const PREFIX: &str = "tgk_";
/// Characters of an id: 50 bits.
const ID_CHARS: usize = 10;
/// Characters of a secret: 260 bits, of which 256 are chance.
const SECRET_CHARS: usize = 52;
/// Crockford's alphabet: no letter is taken for a digit.
const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

/// A key that was just made: the only time that its secret is known.
#[derive(Debug)]
pub struct NewKey {
    /// Its id.
    pub id: String,
    /// The whole key, as a client brings it.
    pub key: Secret,
    /// SHA-256 of the whole key.
    pub hash: KeyHash,
}

/// SHA-256 of a key.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct KeyHash([u8; 32]);

impl KeyHash {
    /// Of a whole key.
    #[must_use]
    pub fn of(key: &[u8]) -> Self {
        Self(crate::fingerprint(key))
    }

    /// Whether they are the same, in a time that does not depend on where they differ.
    #[must_use]
    pub fn is(&self, other: &Self) -> bool {
        let pairs = self.0.iter().zip(&other.0);
        pairs.fold(0, |found, (a, b)| std::hint::black_box(found | (a ^ b))) == 0
    }

    /// From 64 hexadecimal digits.
    fn parse(text: &str) -> Option<Self> {
        let digit = |b: u8| {
            char::from(b)
                .to_digit(16)
                .and_then(|d| u8::try_from(d).ok())
        };
        let (pairs, []) = text.as_bytes().as_chunks::<2>() else {
            return None;
        };
        let mut hash = [0; 32];
        if pairs.len() != hash.len() {
            return None;
        }
        for (byte, [high, low]) in hash.iter_mut().zip(pairs) {
            *byte = digit(*high)? << 4 | digit(*low)?;
        }
        Some(Self(hash))
    }
}

impl fmt::Debug for KeyHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("sha256:***")
    }
}

impl fmt::Display for KeyHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// The system gives no chance.
#[derive(Debug, thiserror::Error)]
#[error("the system's random numbers cannot be read")]
pub struct NoChance;

impl NewKey {
    /// A key with an id of its own.
    ///
    /// # Errors
    /// [`NoChance`].
    pub fn make() -> Result<Self, NoChance> {
        let mut bytes = [0; ID_CHARS];
        SystemRandom::new().fill(&mut bytes).map_err(|_| NoChance)?;
        let id: String = bytes.iter().map(|b| symbol(*b)).collect();
        Self::of_id(id)
    }

    /// Another key for an id that there is.
    ///
    /// # Errors
    /// [`NoChance`].
    pub fn of_id(id: String) -> Result<Self, NoChance> {
        let mut chance = [0; SECRET_CHARS];
        SystemRandom::new()
            .fill(&mut chance)
            .map_err(|_| NoChance)?;
        let mut key = Vec::with_capacity(PREFIX.len() + id.len() + 1 + SECRET_CHARS);
        key.extend_from_slice(PREFIX.as_bytes());
        key.extend_from_slice(id.as_bytes());
        key.push(b'_');
        key.extend(chance.iter().map(|b| symbol(*b) as u8));
        let hash = KeyHash::of(&key);
        Ok(Self {
            id,
            key: Secret::new(key),
            hash,
        })
    }
}

/// Five bits as a character.
fn symbol(byte: u8) -> char {
    let at = usize::from(byte & 31);
    char::from(ALPHABET.get(at).copied().unwrap_or(b'0'))
}

/// Whether it could be the id of a key.
fn is_id(id: &str) -> bool {
    id.len() == ID_CHARS && id.bytes().all(|b| ALPHABET.contains(&b))
}

/// The id in a key, whatever its secret.
fn id_of(key: &[u8]) -> Option<&str> {
    let rest = key.strip_prefix(PREFIX.as_bytes())?;
    let (id, rest) = rest.split_at_checked(ID_CHARS)?;
    let is_whole = rest.len() == SECRET_CHARS + 1 && rest.first() == Some(&b'_');
    let id = std::str::from_utf8(id).ok()?;
    (is_whole && is_id(id)).then_some(id)
}

#[cfg(test)]
mod tests;
