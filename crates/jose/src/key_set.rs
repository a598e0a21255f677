//! The keys of one issuer, found by the `kid` of a token.
//!
//! Invariant: a `kid` leads to one key or to none. A key that cannot be used is left out, with a reason, and the
//! others are used. A token without `kid` has a key only where no other would do.
//! Not here: fetching and keeping sets (the host).

mod jwk;

use std::collections::BTreeMap;
use std::fmt;

use serde_json::Value;
use thiserror::Error;

use crate::algorithm::Algorithm;
use crate::bounds::{KEYS_MAX, SET_BYTES_MAX};
use crate::json;
use crate::pem::{self, PemFault};
use crate::public_key::Key;
use crate::refused::Refused;
use crate::spki;
use crate::unusable::Unusable;

/// The keys of one issuer.
#[derive(Debug)]
pub struct KeySet {
    keys: Vec<Key>,
    named: BTreeMap<Box<str>, usize>,
    /// What a token without `kid` finds, for each algorithm.
    unnamed: [Fit; Algorithm::ALL.len()],
    /// Whether the one key is for every `kid`: PEM has no place for one.
    is_pinned: bool,
    left_out: Vec<LeftOut>,
}

/// How many keys are for an algorithm.
#[derive(Debug, Clone, Copy)]
enum Fit {
    None,
    One(usize),
    Several,
}

/// A key of a set that is not used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    /// Which key of `keys`, from zero.
    pub index: usize,
    /// Its `kid`, if it has one that is a text. Its issuer wrote it: it may be of any length and hold anything.
    pub kid: Option<Box<str>>,
    /// Why.
    pub why: Unusable,
}

/// Why there is no set of keys at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum KeySetFault {
    /// It has more bytes than are read.
    #[error("the set of keys has {bytes} bytes, at most {SET_BYTES_MAX} are read")]
    TooLong {
        /// What it has.
        bytes: usize,
    },
    /// It has more keys than are read.
    #[error("the set of keys has {keys} keys, at most {KEYS_MAX} are read")]
    TooMany {
        /// What it has.
        keys: usize,
    },
    /// It is not JSON.
    #[error("the set of keys is not JSON: line {line}, column {column}")]
    Json {
        /// From one.
        line: usize,
        /// From one.
        column: usize,
    },
    /// An object in it has a member twice.
    #[error("the set of keys is ambiguous: an object has a member twice")]
    Duplicate,
    /// It is JSON and no set of keys.
    #[error("the set of keys is not an object with an array `keys` (RFC 7517)")]
    NoKeys,
    /// PEM that gives no key.
    #[error("the public key in PEM: {0}")]
    Pem(PemFault),
    /// A key in PEM that cannot be used.
    #[error("the public key in PEM cannot be used: {0}")]
    Key(Unusable),
}

/// A key of a JWKS that can be used by itself.
struct Candidate {
    index: usize,
    kid: Option<Box<str>>,
    key: Key,
}

impl KeySet {
    /// Reads a JWK Set (RFC 7517). A key that cannot be used is left out: [`KeySet::left_out`] says which and why.
    /// A set of which none is left is one in which no key is found.
    ///
    /// # Errors
    /// It is no set of keys, or too large.
    pub fn parse(json: &[u8]) -> Result<Self, KeySetFault> {
        if json.len() > SET_BYTES_MAX {
            return Err(KeySetFault::TooLong { bytes: json.len() });
        }
        let mut members = json::object(json)?;
        let Some(Value::Array(written)) = members.remove("keys") else {
            return Err(KeySetFault::NoKeys);
        };
        if written.len() > KEYS_MAX {
            let keys = written.len();
            return Err(KeySetFault::TooMany { keys });
        }
        let mut left_out = Vec::new();
        let mut candidates = Vec::new();
        for (index, jwk) in written.iter().enumerate() {
            let kid = jwk.get("kid").and_then(Value::as_str).map(Box::from);
            match jwk::key(jwk) {
                Ok(key) => candidates.push(Candidate { index, kid, key }),
                Err(why) => left_out.push(LeftOut { index, kid, why }),
            }
        }
        Ok(Self::of(candidates, left_out))
    }

    /// Reads one public key in PEM: `PUBLIC KEY` (SubjectPublicKeyInfo) or `CERTIFICATE`, of which only the key is
    /// read. PEM has no `kid`, so the key is for tokens with any and with none.
    ///
    /// # Errors
    /// It is no such PEM, or the key cannot be used.
    pub fn from_pem(pem: &[u8]) -> Result<Self, KeySetFault> {
        let block = pem::block(pem).map_err(KeySetFault::Pem)?;
        let material = match block.label {
            "PUBLIC KEY" => spki::public_key(&block.der),
            "CERTIFICATE" => spki::certified_key(&block.der),
            _ => Err(spki::Fault::Pem(PemFault::Label("PUBLIC KEY, CERTIFICATE"))),
        };
        let key = Key::new(material?, None).map_err(KeySetFault::Key)?;
        let only = Candidate {
            index: 0,
            kid: None,
            key,
        };
        let mut set = Self::of(vec![only], Vec::new());
        set.is_pinned = true;
        Ok(set)
    }

    fn of(candidates: Vec<Candidate>, mut left_out: Vec<LeftOut>) -> Self {
        let fates = fates(&candidates);
        let mut set = Self {
            keys: Vec::new(),
            named: BTreeMap::new(),
            unnamed: [Fit::None; Algorithm::ALL.len()],
            is_pinned: false,
            left_out: Vec::new(),
        };
        for (candidate, fate) in candidates.into_iter().zip(fates) {
            let Candidate { index, kid, key } = candidate;
            match fate {
                Fate::Used => set.add(kid, key),
                Fate::Repeated => {}
                Fate::Contested => left_out.push(LeftOut {
                    index,
                    kid,
                    why: Unusable::SameKid,
                }),
            }
        }
        left_out.sort_by_key(|left_out| left_out.index);
        set.left_out = left_out;
        set
    }

    fn add(&mut self, kid: Option<Box<str>>, key: Key) {
        let index = self.keys.len();
        for (algorithm, fit) in Algorithm::ALL.into_iter().zip(&mut self.unnamed) {
            if key.is_for(algorithm) {
                *fit = match fit {
                    Fit::None => Fit::One(index),
                    Fit::One(_) | Fit::Several => Fit::Several,
                };
            }
        }
        if let Some(kid) = kid {
            self.named.insert(kid, index);
        }
        self.keys.push(key);
    }

    /// How many keys are used.
    #[must_use]
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether no key is used, so that no token is good.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// The keys that are not used, in the order of the set.
    #[must_use]
    pub fn left_out(&self) -> &[LeftOut] {
        &self.left_out
    }

    /// The key of a token with this `kid`, which is for this algorithm.
    pub(crate) fn key_for(&self, kid: Option<&str>, algorithm: Algorithm) -> Result<&Key, Refused> {
        let index = match kid {
            _ if self.is_pinned => 0,
            Some(kid) => *self.named.get(kid).ok_or(Refused::UnknownKey)?,
            None => match self.unnamed.get(algorithm as usize) {
                Some(Fit::One(index)) => *index,
                Some(Fit::Several) => return Err(Refused::SeveralKeysFit),
                Some(Fit::None) | None => return Err(Refused::NoKeyFits),
            },
        };
        let key = self.keys.get(index).ok_or(Refused::UnknownKey)?;
        if key.is_for(algorithm) {
            Ok(key)
        } else {
            Err(Refused::AlgorithmOfKey(algorithm))
        }
    }
}

/// What becomes of a key that can be used by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Used,
    /// The very same key stands before it.
    Repeated,
    /// Another key has its `kid`.
    Contested,
}

fn fates(candidates: &[Candidate]) -> Vec<Fate> {
    let mut first: BTreeMap<&str, (&Key, bool)> = BTreeMap::new();
    for Candidate { kid, key, .. } in candidates {
        if let Some(kid) = kid {
            let (same, is_contested) = first.entry(kid).or_insert((key, false));
            *is_contested |= *same != key;
        }
    }
    let fate = |Candidate { kid, key, .. }: &Candidate| {
        let of_kid = kid.as_ref().and_then(|kid| first.get(&**kid));
        match of_kid {
            Some((_, true)) => Fate::Contested,
            Some((used, false)) if !std::ptr::eq(*used, key) => Fate::Repeated,
            _ => Fate::Used,
        }
    };
    candidates.iter().map(fate).collect()
}

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "key {} of the set", self.index)?;
        if let Some(kid) = &self.kid {
            let shown = kid
                .chars()
                .take(KID_CHARS_SHOWN)
                .flat_map(char::escape_debug);
            write!(f, ", kid \"{}\"", shown.collect::<String>())?;
        }
        write!(f, ", is not used: {}", self.why)
    }
}

const KID_CHARS_SHOWN: usize = 80;

impl From<json::Fault> for KeySetFault {
    fn from(fault: json::Fault) -> Self {
        match fault {
            json::Fault::Syntax { line, column } => Self::Json { line, column },
            json::Fault::Duplicate => Self::Duplicate,
            json::Fault::NotAnObject => Self::NoKeys,
        }
    }
}

impl From<spki::Fault> for KeySetFault {
    fn from(fault: spki::Fault) -> Self {
        match fault {
            spki::Fault::Pem(fault) => Self::Pem(fault),
            spki::Fault::Key(why) => Self::Key(why),
        }
    }
}

#[cfg(test)]
mod tests;
