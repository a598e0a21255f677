//! What of a key can be changed once it is made: all that says how much it may, and until when.
//!
//! Invariant: what is said takes the place of all that was there of its kind, what is not said stays; whose the key is
//! stays, and so does what is spent of its budgets.
//! Not here: a key's secret, which is rotated, and its end for good, which is revocation (`keyring`).

use std::collections::BTreeMap;

use admin::KeyFault;
use identity::keys::{Entry, WrittenBudget, WrittenLimit};
use serde::Deserialize;
use serde::de::{Deserializer, Error as _};

use super::Time;

/// What is to change. `Some(None)`, which JSON says by `null`, takes away what there is.
#[derive(Debug, Default, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Change {
    /// A name for people.
    #[serde(default, deserialize_with = "said")]
    pub(crate) name: Option<Option<String>>,
    /// What else is recorded of each of its calls.
    #[serde(default, deserialize_with = "said")]
    pub(crate) tags: Option<Option<BTreeMap<String, String>>>,
    /// Models that it may ask for.
    #[serde(default, deserialize_with = "said_some")]
    pub(crate) models: Option<Option<Vec<String>>>,
    /// Limits of its own.
    #[serde(default, deserialize_with = "said")]
    pub(crate) limits: Option<Option<Vec<WrittenLimit>>>,
    /// Budgets of its own.
    #[serde(default, deserialize_with = "said")]
    pub(crate) budgets: Option<Option<Vec<WrittenBudget>>>,
    /// How long it is good from now on.
    #[serde(default, deserialize_with = "said")]
    pub(crate) expires: Option<Option<Time>>,
}

/// A member that is there, `null` too.
fn said<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    from: D,
) -> Result<Option<Option<T>>, D::Error> {
    Option::deserialize(from).map(Some)
}

/// A list that is written has something in it: `null` means all models, an empty one would be taken for none.
fn said_some<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Option<Vec<String>>>, D::Error> {
    let models = Option::<Vec<String>>::deserialize(from)?;
    if models.as_ref().is_some_and(Vec::is_empty) {
        return Err(D::Error::custom(
            "`models` is empty: name at least one, or write null for all of the workload's",
        ));
    }
    Ok(Some(models))
}

impl Change {
    /// Whether nothing is said.
    pub(super) fn is_nothing(&self) -> bool {
        let Self {
            name,
            tags,
            models,
            limits,
            budgets,
            expires,
        } = self;
        let lists = limits.is_none() && budgets.is_none() && models.is_none();
        lists && name.is_none() && tags.is_none() && expires.is_none()
    }

    /// The key as it is then, `now` in seconds since the Unix epoch.
    ///
    /// # Errors
    /// What of it cannot be, in words.
    pub(super) fn applied(self, before: &Entry, now: u64) -> Result<Entry, KeyFault> {
        let wrong = |says: &str| KeyFault::Wrong(says.to_owned());
        let mut next = before.clone();
        // Names that stay are not judged: one that is in the file already stays what it is.
        let mut new = Entry {
            name: None,
            user: None,
            tags: BTreeMap::new(),
            models: Vec::new(),
            workload: "-".to_owned(),
            ..before.clone()
        };
        if let Some(name) = self.name {
            new.name.clone_from(&name);
            next.name = name;
        }
        if let Some(tags) = self.tags {
            next.tags = tags.unwrap_or_default();
            new.tags.clone_from(&next.tags);
        }
        if let Some(models) = self.models {
            next.models = models.unwrap_or_default();
            new.models.clone_from(&next.models);
        }
        if let Some(limits) = self.limits {
            next.limits = limits.unwrap_or_default();
        }
        if let Some(budgets) = self.budgets {
            next.budgets = budgets.unwrap_or_default();
        }
        if let Some(expires) = self.expires {
            next.expires_unix_s = expires.map(|expires| expires.after(now));
        }
        next.check().and_then(|()| new.check_new()).map_err(wrong)?;
        Ok(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(text: &str) -> Result<Change, String> {
        serde_json::from_str(text).map_err(|error| error.to_string())
    }

    fn key() -> Entry {
        let line = format!(
            r#"{{"id":"0123456789","sha256":"{}","workload":"w","created_unix_s":1,"name":" old","user":"ada",
            "tags":{{"team":"a"}},"models":["m"],"limits":[{{"of":"requests","amount":1,"per_s":60}}],
            "budgets":[{{"unit":"USD","amount":"1","per":"day"}}],"expires_unix_s":100}}"#,
            "0".repeat(64)
        );
        serde_json::from_str(&line).expect("a key")
    }

    #[test]
    fn what_is_said_takes_the_place_of_what_was_and_the_rest_stays() {
        let before = key();
        let said =
            change(r#"{"budgets":[{"unit":"USD","amount":"2","per":"day"}],"expires":"1h"}"#);
        let next = said.expect("a change").applied(&before, 50).expect("good");
        assert_eq!(next.budgets[0].amount, "2");
        assert_eq!(next.expires_unix_s, Some(50 + 3600));
        let rest = Entry {
            budgets: before.budgets.clone(),
            expires_unix_s: before.expires_unix_s,
            ..next
        };
        assert_eq!(rest, before);
    }

    #[test]
    fn null_takes_away_and_an_empty_list_of_models_is_refused() {
        let all = r#"{"name":null,"tags":null,"models":null,"limits":null,"budgets":null,"expires":null}"#;
        let next = change(all).expect("a change").applied(&key(), 50);
        let next = next.expect("good");
        assert!(next.name.is_none() && next.expires_unix_s.is_none() && next.tags.is_empty());
        assert!(next.models.is_empty() && next.limits.is_empty() && next.budgets.is_empty());
        assert_eq!(next.user.as_deref(), Some("ada"));
        let refused = change(r#"{"models":[]}"#).expect_err("would be none");
        assert!(refused.contains("write null"), "{refused}");
        for text in [r#"{"workload":"x"}"#, r#"{"user":"x"}"#, r#"{"sha256":""}"#] {
            assert!(change(text).is_err(), "{text}");
        }
        assert!(change("{}").expect("nothing").is_nothing());
        assert!(!change(r#"{"name":null}"#).expect("one").is_nothing());
    }

    #[test]
    fn names_that_change_are_judged_and_those_that_stay_are_not() {
        let plain = change(r#"{"limits":[]}"#).expect("a change");
        assert!(
            plain.applied(&key(), 50).is_ok(),
            "its name begins with a blank"
        );
        for text in [
            r#"{"name":" new"}"#,
            r#"{"tags":{"team":"a\u200b"}}"#,
            r#"{"models":["a*b"]}"#,
            r#"{"budgets":[{"unit":"usd","amount":"2","per":"day"}]}"#,
        ] {
            let refused = change(text).expect("a change").applied(&key(), 50);
            assert!(matches!(refused, Err(KeyFault::Wrong(_))), "{text}");
        }
    }
}
