//! The tokenizers that the configuration asks for, built once and kept.
//!
//! Invariant: a key means the same tokenizer for as long as the process lives; one whose files did not
//! change is not built again, and those of the configuration before stay for calls that began with it.
//! Not here: which model has which (`policy::counting`).

use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::{Arc, PoisonError, RwLock};

use serde_json::Value;
use tokens::{Counter, Memo, MemoStats, TemplateSettings};

/// Counters by key.
pub type Counters = HashMap<u64, Arc<Counter>>;

/// Memory for counts of texts that were counted before: some half a million.
const MEMO_BYTES: usize = 16 << 20;

/// Those of the present configuration and of the one before.
pub struct TokenizerCache {
    counters: RwLock<[Counters; 2]>,
    memo: Arc<Memo>,
}

impl Default for TokenizerCache {
    fn default() -> Self {
        // The one source of chance that the standard library has: keys of the operating system's.
        let key = || RandomState::new().build_hasher().finish();
        Self {
            counters: RwLock::default(),
            memo: Arc::new(Memo::new(MEMO_BYTES, [key(), key()])),
        }
    }
}

impl TokenizerCache {
    /// The counter of a key. Workers never ask.
    pub(crate) fn get(&self, key: u64) -> Option<Arc<Counter>> {
        let [now, before] = &*self.counters.read().unwrap_or_else(PoisonError::into_inner);
        now.get(&key).or_else(|| before.get(&key)).cloned()
    }

    /// What became of texts that may have been counted before.
    #[must_use]
    pub fn memo(&self) -> MemoStats {
        self.memo.stats()
    }

    /// Builds what is new, of sources with their keys, their places in the configuration, and how to build them.
    ///
    /// # Errors
    /// When the files are of no use, with their place.
    pub fn build<'s, F: FnOnce() -> Result<Counter, String>>(
        &self,
        sources: impl IntoIterator<Item = (u64, &'s str, F)>,
    ) -> Result<Counters, String> {
        let mut counters = Counters::new();
        for (key, place, build) in sources {
            if counters.contains_key(&key) {
                continue;
            }
            let counter = match self.get(key) {
                Some(counter) => counter,
                None => {
                    let built = build().map_err(|fault| {
                        format!("{place}: {fault}; the files have to be of one model")
                    })?;
                    Arc::new(built.remembering_in(Arc::clone(&self.memo)))
                }
            };
            counters.insert(key, counter);
        }
        Ok(counters)
    }

    /// Puts those of a configuration that is about to be published.
    pub fn put(&self, counters: Counters) {
        let mut cache = self
            .counters
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        let [now, before] = &mut *cache;
        *before = std::mem::replace(now, counters);
    }
}

/// A counter of a model's own files: `tokenizer.json`, the chat template, and `tokenizer_config.json`, which has the
/// special tokens, and the template where there is none.
///
/// # Errors
/// When they cannot be read, or there is no template.
pub fn from_files(
    tokenizer: &[u8],
    template: Option<&[u8]>,
    settings: Option<&[u8]>,
) -> Result<Counter, String> {
    let settings: Value = match settings {
        Some(settings) => serde_json::from_slice(settings)
            .map_err(|error| format!("`settings` is not JSON: {error}"))?,
        None => Value::Null,
    };
    let template = match template {
        Some(template) => String::from_utf8(template.to_vec())
            .map_err(|_| "`template` is not UTF-8".to_owned())?,
        None => own_template(&settings)
            .ok_or("`settings` holds no chat_template; give it as `template`")?
            .to_owned(),
    };
    let given = TemplateSettings {
        special_tokens: special_tokens(&settings),
        ..TemplateSettings::default()
    };
    Counter::from_template(tokenizer, &template, given).map_err(|error| error.to_string())
}

/// The template in a `tokenizer_config.json`: text, or several by name.
fn own_template(settings: &Value) -> Option<&str> {
    let template = settings.get("chat_template")?;
    if let Some(text) = template.as_str() {
        return Some(text);
    }
    let named = template.as_array()?.iter();
    let default = named
        .clone()
        .find(|one| one.get("name").and_then(Value::as_str) == Some("default"));
    default.or(named.clone().next())?.get("template")?.as_str()
}

/// `bos_token` and the like: text, or an object that holds it.
fn special_tokens(settings: &Value) -> Vec<(String, String)> {
    let members = settings.as_object().into_iter().flatten();
    let tokens = members.filter_map(|(name, value)| {
        let text = value.as_str().or_else(|| value.get("content")?.as_str())?;
        name.ends_with("_token")
            .then(|| (name.clone(), text.to_owned()))
    });
    tokens.collect()
}

#[cfg(test)]
mod tests;
