//! Who spent it, as far as it may be kept: the key, the user and the tags of a record, bounded and plain.
//!
//! What is kept is the same everywhere: in the ledger, the access log and spans. A text has at most [`CHARS_MAX`]
//! characters, and the rest is cut off. Tags are one JSON object, ordered by the bytes of their names, the first of one
//! name; of more than [`TAGS_MAX`] the first are kept. A tag without a name, or with one longer than [`TAG_NAME_MAX`] bytes, is left
//! out; a value is cut at [`TAG_VALUE_MAX`] bytes, before the character that passes them. The object ends before the tag
//! that would make it longer than [`TAGS_BYTES_MAX`].
//! Invariant: no character that cannot be seen is kept (each becomes U+FFFD), so that a line stays a line and every database takes
//! it. The same tags in any order give the same text.
//! Not here: how a caller is proven ([`crate::identity`]), what may not be kept at all (`record`).

use std::borrow::Cow;
use std::sync::Arc;

pub use wire::unseen::is_unseen;

use crate::caller::Caller;

/// Most characters of a key's id and of a user.
pub const CHARS_MAX: usize = 256;
/// Most tags.
pub const TAGS_MAX: usize = 16;
/// Most bytes of a tag's name.
pub const TAG_NAME_MAX: usize = 64;
/// Most bytes of a tag's value.
pub const TAG_VALUE_MAX: usize = 256;
/// Most bytes of all tags as JSON.
pub const TAGS_BYTES_MAX: usize = 4096;

/// What takes the place of a character that cannot be seen.
const REPLACED: char = char::REPLACEMENT_CHARACTER;

/// Who spent it. What is not known is `None`, and never empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Attribution {
    /// The id of the gate's own key that was brought.
    pub key: Option<Box<str>>,
    /// The person or service behind the call.
    pub user: Option<Box<str>>,
    /// Tags, as one JSON object.
    pub tags: Option<Box<str>>,
}

impl Attribution {
    /// Of a caller; with `hides_user` its user is not kept.
    #[must_use]
    pub fn of(caller: Option<&Caller>, hides_user: bool) -> Self {
        let Some(caller) = caller else {
            return Self::default();
        };
        let owned = |text: Cow<'_, str>| text.into_owned().into_boxed_str();
        let user = caller.user.as_deref().filter(|_| !hides_user);
        Self {
            key: caller.key.as_deref().and_then(kept).map(owned),
            user: user.and_then(kept).map(owned),
            tags: tags(&caller.tags).map(String::into_boxed_str),
        }
    }

    /// Whether nothing is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.key.is_none() && self.user.is_none() && self.tags.is_none()
    }
}

/// A text as it is kept; `None` of an empty one.
#[must_use]
pub fn kept(text: &str) -> Option<Cow<'_, str>> {
    let end = match text.len() {
        ..=CHARS_MAX => None,
        _ => text.char_indices().nth(CHARS_MAX),
    };
    let text = end.map_or(text, |(at, _)| text.get(..at).unwrap_or_default());
    match text {
        "" => None,
        text if text.chars().any(is_unseen) => {
            Some(text.chars().map(plain).collect::<String>().into())
        }
        text => Some(text.into()),
    }
}

/// Tags as one JSON object; `None` where there are none.
#[must_use]
pub fn tags(tags: &[(Arc<str>, Arc<str>)]) -> Option<String> {
    if tags.is_empty() {
        return None;
    }
    let named = tags
        .iter()
        .filter(|(name, _)| (1..=TAG_NAME_MAX).contains(&name.len()));
    let mut named: Vec<(&str, &str)> = named.map(|(name, value)| (&**name, &**value)).collect();
    // Stable: the first of one name stays the first.
    named.sort_by_key(|(name, _)| *name);
    named.dedup_by_key(|(name, _)| *name);
    let mut out = String::new();
    for (name, value) in named.into_iter().take(TAGS_MAX) {
        let before = out.len();
        out.push(if before == 0 { '{' } else { ',' });
        quote(name, &mut out);
        out.push(':');
        quote(cut(value), &mut out);
        if out.len() >= TAGS_BYTES_MAX {
            out.truncate(before);
            break;
        }
    }
    if out.is_empty() {
        return None;
    }
    out.push('}');
    Some(out)
}

/// A tag's value as it is kept.
#[must_use]
pub fn kept_value(value: &str) -> String {
    cut(value).chars().map(plain).collect()
}

/// As much of a value as is kept.
fn cut(value: &str) -> &str {
    let mut end = value.len().min(TAG_VALUE_MAX);
    while !value.is_char_boundary(end) {
        end = end.saturating_sub(1);
    }
    value.get(..end).unwrap_or_default()
}

/// Adds a JSON string.
fn quote(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c => out.push(plain(c)),
        }
    }
    out.push('"');
}

fn plain(c: char) -> char {
    if is_unseen(c) { REPLACED } else { c }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pairs: &[(&str, &str)]) -> Vec<(Arc<str>, Arc<str>)> {
        let pair = |(name, value): &(&str, &str)| ((*name).into(), (*value).into());
        pairs.iter().map(pair).collect()
    }

    #[test]
    fn tags_are_one_object_whatever_their_order() {
        type Case<'a> = (&'a [(&'a str, &'a str)], Option<&'a str>);
        let cases: &[Case<'_>] = &[
            (&[], None),
            (&[("team", "search")], Some(r#"{"team":"search"}"#)),
            (&[("b", "2"), ("a", "1")], Some(r#"{"a":"1","b":"2"}"#)),
            (&[("a", "1"), ("a", "2")], Some(r#"{"a":"1"}"#)),
            (&[("", "1")], None),
            (&[("a", "")], Some(r#"{"a":""}"#)),
            (
                &[("a\"\\", "x\"\\\n\u{7f}é\0")],
                Some("{\"a\\\"\\\\\":\"x\\\"\\\\\u{fffd}\u{fffd}é\u{fffd}\"}"),
            ),
        ];
        for (pairs, expected) in cases {
            assert_eq!(tags(&of(pairs)).as_deref(), *expected, "{pairs:?}");
        }
    }

    #[test]
    fn each_bound_of_tags_cuts_where_it_says() {
        let name = |n: usize| "n".repeat(n);
        assert!(tags(&of(&[(&name(TAG_NAME_MAX), "v")])).is_some());
        assert_eq!(tags(&of(&[(&name(TAG_NAME_MAX + 1), "v")])), None);

        // A character of two bytes at the bound is not halved.
        let value = format!("{}é", "v".repeat(TAG_VALUE_MAX - 1));
        let expected = format!(r#"{{"a":"{}"}}"#, "v".repeat(TAG_VALUE_MAX - 1));
        assert_eq!(tags(&of(&[("a", &value)])), Some(expected));

        let many: Vec<String> = (0..20).map(|n| format!("t{n:02}")).collect();
        let pairs: Vec<(&str, &str)> = many.iter().rev().map(|name| (&**name, "v")).collect();
        let text = tags(&of(&pairs)).expect("tags");
        assert!(
            text.contains("\"t15\"") && !text.contains("\"t16\""),
            "{text}"
        );

        let value = "\"".repeat(TAG_VALUE_MAX);
        let pairs: Vec<(&str, &str)> = many.iter().map(|name| (&**name, &*value)).collect();
        let text = tags(&of(&pairs)).expect("tags");
        // Each takes 2 * 256 for its value and 9 for the rest.
        assert_eq!(text.len(), 1 + 7 * 521);
        assert!(text.len() <= TAGS_BYTES_MAX && text.ends_with("\"}"));
    }

    #[test]
    fn the_longest_object_is_as_long_as_may_be() {
        let value = |n: usize| "v".repeat(n);
        let full = value(TAG_VALUE_MAX);
        let names: Vec<String> = (10..26).map(|n| n.to_string()).collect();
        // Fifteen of 264 bytes each, comma included, and one that ends the object at the bound or passes it.
        for (last, fits) in [(127, true), (128, false)] {
            let last = value(last);
            let pairs: Vec<(&str, &str)> = names
                .iter()
                .enumerate()
                .map(|(at, name)| (&**name, if at == 15 { &*last } else { &*full }))
                .collect();
            let text = tags(&of(&pairs)).expect("tags");
            assert_eq!(text.contains("\"25\""), fits, "{}", text.len());
            assert!(!fits || text.len() == TAGS_BYTES_MAX, "{}", text.len());
        }
    }

    #[test]
    fn a_text_is_cut_and_plain_and_an_empty_one_is_none() {
        let long = "é".repeat(CHARS_MAX + 1);
        let whole = "é".repeat(CHARS_MAX);
        for (text, expected) in [
            ("", None),
            ("ada", Some("ada")),
            ("a\nb\u{0}", Some("a\u{fffd}b\u{fffd}")),
            (&whole, Some(&*whole)),
            (&long, Some(&*whole)),
        ] {
            assert_eq!(kept(text).as_deref(), expected, "{text:?}");
        }
    }

    #[test]
    fn a_hidden_user_is_nowhere_and_the_rest_is() {
        let caller = Caller {
            key: Some("k1".into()),
            user: Some("ada".into()),
            tags: of(&[("team", "search")]).into(),
            ..Caller::default()
        };
        let shown = Attribution::of(Some(&caller), false);
        assert_eq!(shown.user.as_deref(), Some("ada"));
        let hidden = Attribution::of(Some(&caller), true);
        assert_eq!((hidden.key.as_deref(), hidden.user), (Some("k1"), None));
        assert_eq!(hidden.tags.as_deref(), Some(r#"{"team":"search"}"#));
        assert!(Attribution::of(None, false).is_empty());
    }
}
