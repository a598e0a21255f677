//! A document that is an error and no answer, though its status is good.
//!
//! Invariant: what is told does not depend on how the document was cut; an answer that has an error beside its text is an answer.
//! Not here: what such a document is charged (`policy`).

/// How documents begin that are an error alone, blanks left out: OpenAI's and Google's, Anthropic's, those of older engines. With what
/// follows where the error says nothing.
const BEGINNINGS: [(&[u8], u8); 4] = [
    (br#"{"error":{"#, b'}'),
    (br#"{"error":""#, b'"'),
    (br#"{"type":"error""#, 0),
    (br#"{"object":"error""#, 0),
];
/// Bytes of the longest of them.
const BYTES: usize = 17;

/// The first bytes of a document, without its blanks.
#[derive(Debug, Default)]
pub(crate) struct Beginning {
    bytes: [u8; BYTES],
    known: usize,
    is_in_text: bool,
}

impl Beginning {
    /// Looks at the next bytes.
    pub(crate) fn push(&mut self, chunk: &[u8]) {
        for byte in chunk {
            if !self.is_in_text && byte.is_ascii_whitespace() {
                continue;
            }
            let Some(place) = self.bytes.get_mut(self.known) else {
                return;
            };
            *place = *byte;
            self.known += 1;
            self.is_in_text ^= *byte == b'"';
        }
    }

    /// Whether the document is an error alone, as far as its beginning says it.
    pub(crate) fn is_error(&self) -> bool {
        let known = self.bytes.get(..self.known).unwrap_or_default();
        BEGINNINGS.iter().any(|(begins, nothing)| {
            let rest = known.strip_prefix(*begins);
            rest.is_some_and(|rest| rest.first() != Some(nothing))
        })
    }

    /// Whether nothing but blanks has come.
    pub(crate) const fn is_empty(&self) -> bool {
        self.known == 0
    }

    /// The same of a document of which this is the beginning, at least.
    #[cold]
    pub(crate) fn of(document: &[u8]) -> bool {
        let mut beginning = Self::default();
        beginning.push(document);
        beginning.is_error()
    }
}

#[cfg(test)]
mod tests {
    use super::Beginning;

    #[test]
    fn an_error_alone_is_told_from_an_answer_however_it_is_cut() {
        for (document, is_error) in [
            (r#"{"error":{"message":"no"}}"#, true),
            ("\n{ \"error\" :\t\"no credits\" }", true),
            (
                r#"{"type":"error","error":{"type":"overloaded_error"}}"#,
                true,
            ),
            (r#"{"object": "error", "message": "no", "code": 400}"#, true),
            (r#"{"error":null,"choices":[]}"#, false),
            (r#"{"error":"","choices":[]}"#, false),
            (r#"{"error": { },"choices":[]}"#, false),
            (
                r#"{"id":"r","error":{"code":"server_error"},"output":[]}"#,
                false,
            ),
            (r#"{"er ror":{}}"#, false),
            (r#"{"type":"message"}"#, false),
            (r#"{"error"#, false),
            ("", false),
        ] {
            assert_eq!(Beginning::of(document.as_bytes()), is_error, "{document}");
            let mut cut = Beginning::default();
            for byte in document.as_bytes().chunks(1) {
                cut.push(byte);
            }
            assert_eq!(cut.is_error(), is_error, "{document}");
        }
    }
}
