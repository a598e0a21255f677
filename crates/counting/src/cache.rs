//! The tokenizers that the configuration asks for, built once and kept.
//!
//! Invariant: a key means the same tokenizer for as long as the process lives; one whose files did not
//! change is not built again, and those that others took the place of stay for calls that began with them:
//! the last always, others for [`KEPT_FOR`], and of at most [`REPLACED_MAX`] replacements.
//! Not here: which model has which (`policy::counting`).

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use serde_json::Value;
use tokens::{Counter, Memo, MemoStats, TemplateSettings, Templates};

/// Counters by key.
pub type Counters = HashMap<u64, Arc<Counter>>;

/// Memory for counts of texts that were counted before: some half a million.
const MEMO_BYTES: usize = 16 << 20;

/// How long those that were replaced stay, beside the last: more than a call waits for its answer's head.
const KEPT_FOR: Duration = Duration::from_secs(60 * 60);
/// Replacements whose tokenizers stay: a directory whose files are written one after another is several.
const REPLACED_MAX: usize = 8;

/// Those of the present configuration and of the ones before.
pub struct TokenizerCache {
    counters: RwLock<Generations>,
    memo: Arc<Memo>,
}

#[derive(Default)]
struct Generations {
    now: Counters,
    /// Those of which some were replaced, and when; the newest comes first.
    before: VecDeque<(Instant, Counters)>,
}

impl Generations {
    fn get(&self, key: u64) -> Option<&Arc<Counter>> {
        let before = self.before.iter().map(|(_, counters)| counters);
        let mut all = std::iter::once(&self.now).chain(before);
        all.find_map(|counters| counters.get(&key))
    }

    fn put(&mut self, counters: Counters, at: Instant) {
        // A reload that changes no tokenizer puts none away.
        if self.now.keys().any(|key| !counters.contains_key(key)) {
            let replaced = std::mem::take(&mut self.now);
            self.before.push_front((at, replaced));
        }
        self.now = counters;
        self.before.truncate(REPLACED_MAX);
        self.drop_old(at);
    }

    fn drop_old(&mut self, at: Instant) {
        let is_old = |(replaced, _): &(Instant, Counters)| at.duration_since(*replaced) > KEPT_FOR;
        while self.before.len() > 1 && self.before.back().is_some_and(is_old) {
            self.before.pop_back();
        }
    }
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
    #[must_use]
    pub fn get(&self, key: u64) -> Option<Arc<Counter>> {
        let counters = self.counters.read().unwrap_or_else(PoisonError::into_inner);
        counters.get(key).cloned()
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

    /// Drops those that were replaced too long ago; to be called now and then.
    pub fn drop_old(&self) {
        let mut kept = self
            .counters
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        kept.drop_old(Instant::now());
    }

    /// Puts those of a configuration that is about to be published.
    pub fn put(&self, counters: Counters) {
        let mut kept = self
            .counters
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        kept.put(counters, Instant::now());
    }
}

/// A counter of a model's own files: `tokenizer.json`, the chat template, and `tokenizer_config.json`, which has the
/// special tokens, and the templates where none is given; `engine` says what the engine was started with.
///
/// # Errors
/// When they cannot be read, or there is no template.
pub fn from_files(
    tokenizer: &[u8],
    template: Option<&[u8]>,
    settings: Option<&[u8]>,
    engine: TemplateSettings,
) -> Result<Counter, String> {
    let tokenizer_config = match settings {
        Some(settings) => std::str::from_utf8(settings)
            .map_err(|_| "`settings` is not UTF-8".to_owned())?
            .to_owned(),
        None => String::new(),
    };
    let settings: Value = match settings {
        Some(settings) => serde_json::from_slice(settings)
            .map_err(|error| format!("`settings` is not JSON: {error}"))?,
        None => Value::Null,
    };
    let templates = match template {
        Some(template) => {
            let text = std::str::from_utf8(template);
            Templates::from(text.map_err(|_| "`template` is not UTF-8".to_owned())?)
        }
        None => own_templates(&settings)?,
    };
    let given = TemplateSettings {
        special_tokens: special_tokens(&settings),
        tokenizer_config,
        ..engine
    };
    Counter::from_template(tokenizer, templates, given).map_err(|error| error.to_string())
}

/// The templates in a `tokenizer_config.json`: one as text, or several by name, of which `tool_use` is for calls with
/// tools.
fn own_templates(settings: &Value) -> Result<Templates, String> {
    let template = settings.get("chat_template").unwrap_or(&Value::Null);
    if let Some(text) = template.as_str() {
        return Ok(Templates::from(text));
    }
    let all = template
        .as_array()
        .ok_or("`settings` holds no chat_template; give it as `template`")?;
    let named = |name: &str| {
        let mut all = all.iter();
        let one = all.find(|one| one.get("name").and_then(Value::as_str) == Some(name));
        one?.get("template")?.as_str().map(str::to_owned)
    };
    Ok(Templates {
        default: named("default").ok_or(
            "`settings` holds templates by name, and none of them is `default`; give one as `template`",
        )?,
        tool_use: named("tool_use"),
    })
}

/// `bos_token` and the like: text, or an object that holds it; `extra_special_tokens` may name more.
fn special_tokens(settings: &Value) -> Vec<(String, String)> {
    let named = settings
        .get("extra_special_tokens")
        .and_then(Value::as_object);
    let members = settings.as_object().into_iter().chain(named).flatten();
    let tokens = members.filter_map(|(name, value)| {
        let text = value.as_str().or_else(|| value.get("content")?.as_str())?;
        name.ends_with("_token")
            .then(|| (name.clone(), text.to_owned()))
    });
    tokens.collect()
}

#[cfg(test)]
mod tests;
