//! The counters that the configuration asks for, built and kept at hand.
//!
//! Invariant: a key means the same counter for as long as the process lives; one whose files did not
//! change is not built again, and those of the configuration before stay for calls that began with it.
//! Not here: which model has which (`policy::counting`).

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use config::{TokenizerSource, Vocabulary};
use serde_json::Value;
use tokens::{BuiltIn, Counter, TemplateSettings};

/// Counters by key.
pub(crate) type Counters = HashMap<u64, Arc<Counter>>;

/// Those of the present configuration and of the one before.
#[derive(Default)]
pub(crate) struct Shelf(RwLock<[Counters; 2]>);

impl Shelf {
    /// The counter of a key. Workers never ask.
    pub(super) fn get(&self, key: u64) -> Option<Arc<Counter>> {
        let [now, before] = &*self.0.read().unwrap_or_else(PoisonError::into_inner);
        now.get(&key).or_else(|| before.get(&key)).cloned()
    }

    /// Builds what is new.
    pub(crate) fn build(&self, sources: &[TokenizerSource]) -> Result<Counters, String> {
        let mut counters = Counters::new();
        for source in sources {
            if counters.contains_key(&source.key) {
                continue;
            }
            let counter = match self.get(source.key) {
                Some(counter) => counter,
                None => Arc::new(counter(&source.vocabulary).map_err(|fault| {
                    format!(
                        "{}: {fault}; the files have to be of one model",
                        source.place
                    )
                })?),
            };
            counters.insert(source.key, counter);
        }
        Ok(counters)
    }

    /// Puts those of a configuration that is about to be published.
    pub(crate) fn put(&self, counters: Counters) {
        let mut shelf = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let [now, before] = &mut *shelf;
        *before = std::mem::replace(now, counters);
    }
}

fn counter(vocabulary: &Vocabulary) -> Result<Counter, String> {
    let (tokenizer, template, settings) = match vocabulary {
        Vocabulary::Harmony => return Ok(Counter::harmony()),
        Vocabulary::O200k => return Ok(Counter::without_template(BuiltIn::O200k)),
        Vocabulary::Cl100k => return Ok(Counter::without_template(BuiltIn::Cl100k)),
        Vocabulary::Files {
            tokenizer,
            template,
            settings,
        } => (tokenizer, template, settings),
    };
    let settings: Value = match settings {
        Some(settings) => serde_json::from_slice(settings)
            .map_err(|error| format!("`settings` is not JSON: {error}"))?,
        None => Value::Null,
    };
    let template = match template {
        Some(template) => {
            String::from_utf8(template.clone()).map_err(|_| "`template` is not UTF-8".to_owned())?
        }
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
