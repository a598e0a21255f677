//! Which special tokens the settings beside a tokenizer name, and what templates call them.
//!
//! Follows `from_pretrained` and `PreTrainedTokenizerBase.__init__` of `transformers` 5.19: the older
//! `additional_special_tokens` stands in for an `extra_special_tokens` that is empty, and stands beside one that is an
//! object, but not beside a list; names found in the settings themselves replace `model_specific_special_tokens`.
//! Not here: what becomes of the tokens (`tokenizer_settings`).

use serde_json::{Map, Value};

use super::content;

/// Special tokens that every tokenizer may have.
const NAMED: [&str; 7] = [
    "bos_token",
    "eos_token",
    "unk_token",
    "sep_token",
    "pad_token",
    "cls_token",
    "mask_token",
];

/// The special tokens that settings name.
#[derive(Default)]
pub(super) struct Special<'s> {
    /// By the name that templates know each by.
    named: Vec<(&'s str, &'s Value)>,
    nameless: &'s [Value],
}

impl<'s> Special<'s> {
    pub(super) fn read(settings: &'s Value) -> Self {
        let mut special = Self::default();
        let named = NAMED
            .iter()
            .filter_map(|name| settings.as_object()?.get_key_value(*name));
        special.name_all(named);
        let additional = settings.get("additional_special_tokens");
        let extra = settings
            .get("extra_special_tokens")
            .filter(|it| !is_empty(it));
        let (extra, beside) = match extra {
            None => (additional, None),
            Some(extra) => (Some(extra), additional.filter(|_| extra.is_object())),
        };
        for tokens in [beside, extra].into_iter().flatten() {
            match tokens {
                Value::Array(tokens) => special.nameless = tokens,
                Value::Object(tokens) => special.name_all(tokens),
                _ => {}
            }
        }
        let own = || of_the_model(settings);
        special.name_all(own().filter(|(_, token)| is_typed(token)));
        let (texts, extra) = (
            own().filter(|(_, token)| token.is_string()),
            extra.and_then(Value::as_object),
        );
        if texts.clone().next().is_none() && extra.is_none_or(Map::is_empty) {
            let given = settings.get("model_specific_special_tokens");
            special.name_all(given.and_then(Value::as_object).into_iter().flatten());
        } else {
            special.name_all(texts);
            special.name_all(extra.into_iter().flatten());
        }
        special
    }

    fn name_all(&mut self, tokens: impl IntoIterator<Item = (&'s String, &'s Value)>) {
        for (name, token) in tokens {
            if content(token).is_none() {
                continue;
            }
            match self.named.iter_mut().find(|(other, _)| *other == name) {
                Some((_, before)) => *before = token,
                None => self.named.push((name.as_str(), token)),
            }
        }
    }

    /// All of them.
    pub(super) fn tokens(&self) -> impl Iterator<Item = &'s Value> {
        let named = self.named.iter().map(|(_, token)| *token);
        named.chain(self.nameless)
    }

    /// Those that have no name.
    pub(super) const fn nameless(&self) -> &'s [Value] {
        self.nameless
    }

    /// Those that have a name, with their text.
    pub(super) fn names(&self) -> Vec<(String, String)> {
        let named = self.named.iter();
        named
            .filter_map(|(name, token)| Some(((*name).to_owned(), content(token)?.to_owned())))
            .collect()
    }
}

/// Members of the settings that name a token which not every tokenizer has.
fn of_the_model(settings: &Value) -> impl Iterator<Item = (&String, &Value)> + Clone {
    let members = settings.as_object().into_iter().flatten();
    members.filter(|(name, _)| name.ends_with("_token") && !NAMED.contains(&name.as_str()))
}

/// Whether it is an object that says of itself that it is a token: no other is one.
fn is_typed(token: &Value) -> bool {
    token.get("__type").and_then(Value::as_str) == Some("AddedToken")
}

/// What Python takes for false.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        Value::String(text) => text.is_empty(),
        Value::Bool(flag) => !flag,
        Value::Number(number) => number.as_f64() == Some(0.0),
    }
}
