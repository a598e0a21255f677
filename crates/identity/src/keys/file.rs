//! A file of keys: one JSON object a line, in the order made.
//!
//! Invariant: a line that is not understood to its last member refuses the file: what a newer version wrote there could
//! be a bound.
//! Not here: reading and writing the file (`tollgate`).

use std::collections::{BTreeMap, HashSet};

use policy::attribution::is_unseen;
use serde::{Deserialize, Serialize};

use super::own::{self, WrittenBudget, WrittenLimit};
use super::{KeyHash, is_id};

/// Most keys of a file.
const KEYS_MAX: usize = 1_000_000;
/// Most bytes of a line.
const LINE_BYTES_MAX: usize = 16 << 10;
/// Most bytes of a name, a user, a tag or a model.
const TEXT_BYTES_MAX: usize = 256;
/// Most tags of a key, and most models.
const LIST_MAX: usize = 64;

/// All keys of a file.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct KeyFile {
    /// In the order written.
    pub entries: Vec<Entry>,
}

/// One key, without its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// Its id.
    pub id: String,
    /// SHA-256 of the whole key, hexadecimal.
    pub sha256: String,
    /// Whose it is.
    pub workload: String,
    /// When it was made, seconds since the Unix epoch.
    pub created_unix_s: u64,
    /// A name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The person or service that it was given to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// What else is recorded of each of its calls.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tags: BTreeMap<String, String>,
    /// Models that it may ask for; a `*` at the end fits any rest; none given: all of its workload's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub models: Vec<String>,
    /// Limits of its own, on all routes together.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<WrittenLimit>,
    /// Budgets of its own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub budgets: Vec<WrittenBudget>,
    /// The first second in which it proves nothing any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_unix_s: Option<u64>,
    /// When it was revoked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked_unix_s: Option<u64>,
    /// The key that it took the place of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<Previous>,
}

/// A key that was rotated out, and is good for a while yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Previous {
    /// SHA-256 of the whole key, hexadecimal.
    pub sha256: String,
    /// The first second in which it proves nothing any more.
    pub until_unix_s: u64,
}

/// What is wrong with a file of keys; no text of it is repeated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {says}")]
pub struct FileFault {
    /// Which line, from 1.
    pub line: usize,
    /// What is wrong.
    pub says: String,
}

impl KeyFile {
    /// Reads a file.
    ///
    /// # Errors
    /// The first line that is damaged, is not understood, or says an id twice.
    pub fn parse(bytes: &[u8]) -> Result<Self, FileFault> {
        let mut entries = Vec::new();
        Self::each(bytes, |entry| entries.push(entry))?;
        Ok(Self { entries })
    }

    /// Gives the entries of a file one by one, so that who wants something else of them keeps one at a time. What was
    /// given before a fault is to be forgotten.
    pub(super) fn each(bytes: &[u8], mut take: impl FnMut(Entry)) -> Result<(), FileFault> {
        let mut ids = HashSet::new();
        if bytes.last().is_some_and(|last| *last != b'\n') {
            let line = bytes.split(|b| *b == b'\n').count();
            let says = "the file ends in the middle of a line".to_owned();
            return Err(FileFault { line, says });
        }
        for (nth, line) in bytes.split(|b| *b == b'\n').enumerate() {
            if line.is_empty() {
                continue;
            }
            let fault = |says: String| FileFault {
                line: nth + 1,
                says,
            };
            if line.len() > LINE_BYTES_MAX || ids.len() == KEYS_MAX {
                return Err(fault(format!(
                    "more than {LINE_BYTES_MAX} bytes, or more than {KEYS_MAX} keys"
                )));
            }
            let entry: Entry = serde_json::from_slice(line).map_err(|error| {
                // The text of serde's error can quote what stands there.
                let column = error.column();
                fault(format!(
                    "it is not a key that this version can read, at column {column}"
                ))
            })?;
            entry.check().map_err(|says| fault(says.to_owned()))?;
            if !ids.insert(entry.id.clone()) {
                return Err(fault("its id stands in an earlier line, too".to_owned()));
            }
            take(entry);
        }
        Ok(())
    }

    /// The file's text.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        for entry in &self.entries {
            // Nothing of an entry can fail to be written: its maps have text for keys.
            if let Ok(line) = serde_json::to_string(entry) {
                text.push_str(&line);
                text.push('\n');
            }
        }
        text
    }

    /// The key of an id.
    pub fn entry(&mut self, id: &str) -> Option<&mut Entry> {
        self.entries.iter_mut().find(|entry| entry.id == id)
    }
}

impl Entry {
    /// Whether it can be what it says it is.
    ///
    /// # Errors
    /// What is wrong, in words.
    pub fn check(&self) -> Result<(), &'static str> {
        let is_hash = |text: &str| KeyHash::parse(text).is_some();
        let is_text = |text: &str| {
            !text.is_empty() && text.len() <= TEXT_BYTES_MAX && !text.chars().any(char::is_control)
        };
        let optional = |text: &Option<String>| text.as_deref().is_none_or(is_text);
        if !is_id(&self.id) {
            return Err("the id is not one of a key");
        }
        if !is_hash(&self.sha256) || !self.previous.as_ref().is_none_or(|p| is_hash(&p.sha256)) {
            return Err("`sha256` is not 64 hexadecimal digits");
        }
        if !is_text(&self.workload) || !optional(&self.name) || !optional(&self.user) {
            return Err("workload, name and user are 1 to 256 bytes without control characters");
        }
        let are_tags = self
            .tags
            .iter()
            .all(|(name, value)| is_text(name) && is_text(value));
        if self.tags.len() > LIST_MAX || !are_tags {
            return Err("there are at most 64 tags, of 1 to 256 bytes each");
        }
        own::check(&self.limits, &self.budgets)?;
        if self.models.len() > LIST_MAX || !self.models.iter().all(|model| is_text(model)) {
            return Err("there are at most 64 models, of 1 to 256 bytes each");
        }
        Ok(())
    }

    /// Whether people can read its names and tell them apart, and its models fit any: asked of a key that is made. One
    /// that is in a file already stays what it is.
    ///
    /// # Errors
    /// What is wrong, in words.
    pub fn check_new(&self) -> Result<(), &'static str> {
        let tags = self.tags.iter().flat_map(|(name, value)| [name, value]);
        let mut names = [&self.workload]
            .into_iter()
            .chain(&self.name)
            .chain(&self.user)
            .chain(tags)
            .chain(&self.models);
        if names.clone().any(|name| name.contains(is_unseen)) {
            return Err(
                "a name has a character that nobody sees, or that turns how the rest is read; write it without",
            );
        }
        if names.any(|name| name.trim() != name) {
            return Err("a name begins or ends with a blank, which nobody sees; write it without");
        }
        let has_blank = |model: &String| model.contains(char::is_whitespace);
        if self.models.iter().any(has_blank) {
            return Err("a model has a blank, which no model has; write each model by itself");
        }
        let is_inside = |model: &String| model.strip_suffix('*').unwrap_or(model).contains('*');
        if self.models.iter().any(is_inside) {
            return Err(
                "a model has a * that is not at its end, which no model fits; write a model, or the start of one and a single *",
            );
        }
        Ok(())
    }
}
