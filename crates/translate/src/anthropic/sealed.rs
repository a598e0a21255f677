//! What another provider signed, as clients of the Messages API carry it: in the signature of a thinking block, in what is redacted,
//! and in the id of a call.
//!
//! Invariant: what is opened is what was sealed, byte for byte; what another hand made (Anthropic's own) is not opened. An id has
//! none but the characters that the API takes in one.

use std::borrow::Cow;

use crate::call::{Said, Signature};

const MARK: &str = "tollgate:";
/// What stands between an id and what is sealed in it.
const IN_ID: &str = "_tollgate";

/// Characters of a signature that are no letter or digit, and what stands for each in an id.
const ESCAPES: [(char, char); 5] = [('+', 'p'), ('/', 's'), ('=', 'e'), ('-', 'm'), ('_', 'u')];

pub(super) fn thinking(by: &str, signature: &str) -> String {
    format!("{MARK}{by}:{signature}")
}

/// A thought with its signature: one that was sealed here is of whom signed it.
pub(super) fn open_thinking<'a>(text: Cow<'a, str>, signature: Option<Cow<'a, str>>) -> Said<'a> {
    let of = signature.as_deref().and_then(|sealed| {
        let (by, signature) = sealed.strip_prefix(MARK)?.split_once(':')?;
        Some((by.to_owned(), signature.to_owned()))
    });
    match of {
        None => Said::Thinking { text, signature },
        Some((by, signature)) => {
            let signature = Some(Cow::Owned(signature));
            Said::Of(by.into(), Box::new(Said::Thinking { text, signature }))
        }
    }
}

/// Thinking that only its provider can read.
pub(super) fn redacted(by: &str, data: &str) -> String {
    format!("{MARK}{by}:{data}")
}

/// The same again: what was sealed here is of whom made it.
pub(super) fn open_redacted(data: Cow<'_, str>) -> Said<'_> {
    let opened = data
        .strip_prefix(MARK)
        .and_then(|rest| rest.split_once(':'));
    match opened {
        None => Said::Redacted(data),
        Some((by, data)) => {
            let data = Said::Redacted(data.to_owned().into());
            Said::Of(by.to_owned().into(), Box::new(data))
        }
    }
}

/// The id of a call, with what its provider wants to see again beside it.
pub(super) fn id<'a>(by: &str, id: &'a str, signature: Option<&str>) -> Cow<'a, str> {
    let sealed = signature.and_then(|signature| {
        let mut sealed = format!("{id}{IN_ID}_{by}_");
        for c in signature.chars() {
            if c.is_ascii_alphanumeric() {
                sealed.push(c);
            } else {
                // No signature has others: they are base64.
                let (_, name) = ESCAPES.iter().find(|(escaped, _)| *escaped == c)?;
                sealed.extend(['-', *name]);
            }
        }
        Some(sealed)
    });
    sealed.map_or(Cow::Borrowed(id), Cow::Owned)
}

/// What an id was before it was sealed, and what was sealed in it.
pub(super) fn open_id(id: Cow<'_, str>) -> (Cow<'_, str>, Option<Signature<'_>>) {
    let Some((bare, by, text)) = opened(&id) else {
        return (id, None);
    };
    let signature = Signature {
        by: Some(by.to_owned().into()),
        text: text.into(),
    };
    (bare.to_owned().into(), Some(signature))
}

fn opened(id: &str) -> Option<(&str, &str, String)> {
    let (rest, sealed) = id.rsplit_once('_')?;
    let (rest, by) = rest.rsplit_once('_')?;
    let bare = rest.strip_suffix(IN_ID)?;
    let mut text = String::with_capacity(sealed.len());
    let mut left = sealed.chars();
    while let Some(c) = left.next() {
        let plain = match c {
            '-' => {
                let name = left.next()?;
                let (escaped, _) = ESCAPES.iter().find(|(_, known)| *known == name)?;
                *escaped
            }
            c => c,
        };
        text.push(plain);
    }
    Some((bare, by, text))
}

#[cfg(test)]
mod tests {
    //! Ids that are sealed, and such as look like it.

    use super::*;

    #[test]
    fn an_id_gives_back_what_was_sealed_in_it_and_has_no_character_that_the_api_refuses() {
        for (bare, signature) in [
            ("toolu_1", "EjQK+/a=="),
            ("", "A"),
            ("call_x_tollgate_y", "-_-"),
            ("a_b_", ""),
        ] {
            let sealed = id("gemini", bare, Some(signature)).into_owned();
            let is_good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
            assert!(sealed.chars().all(is_good), "{sealed}");
            let (opened, given) = open_id(sealed.into());
            let given = given.expect("a signature");
            assert_eq!((&*opened, &*given.text), (bare, signature));
            assert_eq!(given.of("gemini"), Some(signature));
            assert_eq!(given.of("openai"), None);
        }
        assert_eq!(id("gemini", "a", None), "a");
        assert_eq!(id("gemini", "a", Some("no base64!")), "a");
    }

    #[test]
    fn what_nobody_sealed_stays_as_it_is() {
        for id in [
            "toolu_1",
            "",
            "_",
            "a_tollgate_b",
            "a_tollgate_gemini_-x",
            "a_tollgate_gemini_x-",
        ] {
            let (bare, signature) = open_id(id.into());
            assert_eq!(bare, id);
            assert!(signature.is_none(), "{id}");
        }
    }
}
