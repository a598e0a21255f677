//! Keys as calls are checked against them.
//!
//! Not here: the file (`file`).

use std::collections::HashMap;
use std::sync::Arc;

use policy::caller::{Caller, OwnBudget, Proven};
use policy::fast_hash::Mix;
use policy::identity::{Proof, Unproven, Verifier};
use policy::model::ModelPattern;

use super::{Entry, FileFault, KeyFile, KeyHash, PREFIX, WrittenBudget, WrittenLimit, id_of};

/// The keys of a gate; or why there are none that could be trusted.
#[derive(Debug)]
pub struct KeyTable(Result<HashMap<Box<str>, Known, Mix>, Box<str>>);

#[derive(Debug)]
struct Known {
    hash: KeyHash,
    caller: Arc<Caller>,
    until_unix_s: u64,
    is_revoked: bool,
    previous: Option<(KeyHash, u64)>,
}

impl KeyTable {
    /// Of the entries of a file.
    #[must_use]
    pub fn new(file: &KeyFile) -> Self {
        Self(Ok(file.entries.iter().filter_map(pair).collect()))
    }

    /// Of a file's content, of which one entry at a time is kept.
    ///
    /// # Errors
    /// As [`KeyFile::parse`].
    pub fn parse(bytes: &[u8]) -> Result<Self, FileFault> {
        let mut known = HashMap::default();
        KeyFile::each(bytes, |entry| known.extend(pair(&entry)))?;
        known.shrink_to_fit();
        Ok(Self(Ok(known)))
    }

    /// The file is damaged or gone: nobody is let in by a key until it is well again.
    #[must_use]
    pub fn unavailable(why: &str) -> Self {
        Self(Err(why.into()))
    }

    /// Takes keys with a budget of their own away that is not kept, but for those that are revoked; how many.
    pub fn leave_out_budgeted(&mut self, mut is_kept: impl FnMut(&OwnBudget) -> bool) -> usize {
        let before = self.len();
        if let Ok(known) = &mut self.0 {
            known.retain(|_, known| {
                known.is_revoked || known.caller.budgets.iter().all(&mut is_kept)
            });
        }
        before - self.len()
    }

    /// How many keys there are, revoked ones included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.as_ref().map_or(0, HashMap::len)
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

fn pair(entry: &Entry) -> Option<(Box<str>, Known)> {
    Some((entry.id.as_str().into(), Known::of(entry)?))
}

impl Entry {
    /// Who brings it.
    #[must_use]
    pub fn caller(&self) -> Caller {
        let tags = self.tags.iter();
        Caller {
            workload: self.workload.as_str().into(),
            by: Proven::Key,
            key: Some(self.id.as_str().into()),
            user: self.user.as_deref().map(Arc::from),
            tags: tags
                .map(|(n, v)| (Arc::from(&**n), Arc::from(&**v)))
                .collect(),
            models: self.models.iter().map(|model| pattern(model)).collect(),
            limits: self.limits.iter().map(WrittenLimit::lowered).collect(),
            // What is no budget was refused with its line.
            budgets: self
                .budgets
                .iter()
                .filter_map(WrittenBudget::lowered)
                .collect(),
            ..Caller::default()
        }
    }
}

impl Known {
    fn of(entry: &Entry) -> Option<Self> {
        let previous = entry.previous.as_ref();
        Some(Self {
            hash: KeyHash::parse(&entry.sha256)?,
            caller: Arc::new(entry.caller()),
            until_unix_s: entry.expires_unix_s.unwrap_or(u64::MAX),
            is_revoked: entry.revoked_unix_s.is_some(),
            previous: previous.and_then(|p| Some((KeyHash::parse(&p.sha256)?, p.until_unix_s))),
        })
    }
}

fn pattern(model: &str) -> ModelPattern {
    match model.strip_suffix('*') {
        Some(start) => ModelPattern::Prefix(start.into()),
        None => ModelPattern::Exact(model.into()),
    }
}

impl Verifier for KeyTable {
    fn takes(&self, credential: &[u8]) -> bool {
        credential.starts_with(PREFIX.as_bytes())
    }

    fn keeps_proofs(&self) -> bool {
        false
    }

    fn fingerprint(&self, credential: &[u8]) -> [u8; 32] {
        crate::fingerprint(credential)
    }

    fn budgeted(&self) -> Vec<Arc<Caller>> {
        let known = self.0.iter().flat_map(HashMap::values);
        let budgeted = known.filter(|known| !known.caller.budgets.is_empty());
        budgeted.map(|known| Arc::clone(&known.caller)).collect()
    }

    fn verify(&self, credential: &[u8], unix_s: u64) -> Result<Proof, Unproven> {
        let keys = self.0.as_ref().map_err(|why| {
            Unproven::Unavailable(format!("the keys cannot be read: {why}").into())
        })?;
        // The same work for every key, known or not.
        let given = KeyHash::of(credential);
        let Some(id) = id_of(credential) else {
            return Err(Unproven::Invalid("it has not the form of a key".into()));
        };
        let Some(known) = keys.get(id) else {
            return Err(Unproven::Invalid("there is no key of this id".into()));
        };
        let is_current = known.hash.is(&given);
        let previous = known.previous.as_ref();
        let previous = previous.filter(|(hash, _)| hash.is(&given));
        let invalid = |says: &str| Err(Unproven::Invalid(format!("the key {id} {says}").into()));
        if !is_current && previous.is_none() {
            return invalid("has another secret");
        }
        if known.is_revoked {
            return invalid("is revoked");
        }
        if unix_s >= known.until_unix_s {
            return invalid("has expired");
        }
        if !is_current && previous.is_some_and(|(_, until)| unix_s >= *until) {
            return invalid("was rotated out");
        }
        Ok(Proof {
            caller: Arc::clone(&known.caller),
            until_unix_s: known.until_unix_s,
        })
    }
}
