//! JSON without the blanks between its parts: Google's documents are indented, and the arguments of a call are a text to other clients.

use std::borrow::Cow;

use crate::raw::Raw;

/// Where in a JSON value one stands.
#[derive(Default)]
struct Place {
    in_text: bool,
    is_escaped: bool,
}

impl Place {
    /// Whether this says something, and is not just there to be looked at.
    fn says(&mut self, c: char) -> bool {
        if self.in_text {
            self.in_text = self.is_escaped || c != '"';
            self.is_escaped = c == '\\' && !self.is_escaped;
            return true;
        }
        self.in_text = c == '"';
        !matches!(c, ' ' | '\n' | '\r' | '\t')
    }
}

/// The same value, as short as it can be written; numbers, texts and the order of members stay as they are.
pub(super) fn compact(value: Raw<'_>) -> Cow<'_, str> {
    let json = value.json();
    let mut place = Place::default();
    if json.chars().all(|c| place.says(c)) {
        return Cow::Borrowed(json);
    }
    let mut place = Place::default();
    Cow::Owned(json.chars().filter(|c| place.says(*c)).collect())
}

#[cfg(test)]
mod tests {
    //! Blanks between parts, and in texts.

    use super::*;

    #[test]
    fn blanks_between_parts_go_and_those_in_texts_stay() {
        for (long, short) in [
            ("{}", "{}"),
            ("{\n  \"a b\" : [ 1.0,\t2 ]\r\n}", r#"{"a b":[1.0,2]}"#),
            (r#"{ "a": "\\", "b": " \" " }"#, r#"{"a":"\\","b":" \" "}"#),
            (r#"{"a":"\\\" "}"#, r#"{"a":"\\\" "}"#),
        ] {
            assert_eq!(compact(Raw::literal(long)), short);
        }
    }
}
