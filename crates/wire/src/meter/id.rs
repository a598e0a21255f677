//! The id of an answer, by which a later call may name it: the first member `id` near its beginning.
//!
//! Invariant: nothing is kept beyond the first 2 KiB of an answer.
//! Not here: what is made of an id (`policy`).

use memchr::memmem;

/// An id stands within so many bytes of the beginning, and is no longer than [`ID_BYTES_MAX`].
const LOOKED_AT_BYTES: usize = 2 << 10;
/// Longer ones are none that a call could name.
const ID_BYTES_MAX: usize = 256;

/// Looks for an id as an answer passes.
#[derive(Debug, Default)]
pub(super) enum IdReader {
    /// Nothing came.
    #[default]
    Start,
    /// It is not in what came so far.
    Begun(Vec<u8>),
    Told(Box<[u8]>),
    /// There is none.
    Nameless,
}

impl IdReader {
    pub(super) fn push(&mut self, chunk: &[u8]) {
        let begun = match self {
            Self::Told(_) | Self::Nameless => return,
            Self::Start => &mut Vec::new(),
            Self::Begun(begun) => begun,
        };
        let room = LOOKED_AT_BYTES.saturating_sub(begun.len());
        begun.extend_from_slice(chunk.get(..room).unwrap_or(chunk));
        *self = match id_in(begun) {
            Some(id) => Self::Told(id.into()),
            None if begun.len() < LOOKED_AT_BYTES => Self::Begun(std::mem::take(begun)),
            None => Self::Nameless,
        };
    }

    pub(super) fn told(&self) -> Option<&[u8]> {
        match self {
            Self::Told(id) => Some(id),
            Self::Start | Self::Begun(_) | Self::Nameless => None,
        }
    }
}

/// The value of the first member `id` that is a whole string without escapes.
fn id_in(text: &[u8]) -> Option<&[u8]> {
    const NAME: &[u8] = b"\"id\"";
    let mut rest = text;
    while let Some(at) = memmem::find(rest, NAME) {
        rest = rest.get(at + NAME.len()..)?;
        let value = rest.trim_ascii_start().strip_prefix(b":");
        let value = value.and_then(|value| value.trim_ascii_start().strip_prefix(b"\""));
        if let Some(value) = value {
            let end = memchr::memchr(b'"', value)?;
            let id = value.get(..end)?;
            if (1..=ID_BYTES_MAX).contains(&id.len()) && !id.contains(&b'\\') {
                return Some(id);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    //! Beginnings of answers, in pieces of any length.

    use super::IdReader;

    fn told(text: &str, piece: usize) -> Option<String> {
        let mut reader = IdReader::default();
        for piece in text.as_bytes().chunks(piece) {
            reader.push(piece);
        }
        let told = reader.told()?;
        Some(String::from_utf8_lossy(told).into_owned())
    }

    #[test]
    fn an_id_is_read_whatever_the_pieces_it_comes_in() {
        for text in [
            r#"{"id": "resp_1", "object": "response", "output": [{"id": "msg_1"}]}"#,
            "event: response.created\ndata: {\"type\":\"response.created\",\"response\":{\"id\":\"resp_1\"}}\n\n",
            r#"{"a":"id","id" : "resp_1"}"#,
            r#"{"id":null,"id":"resp_1"}"#,
        ] {
            for piece in 1..=text.len() {
                assert_eq!(
                    told(text, piece).as_deref(),
                    Some("resp_1"),
                    "{text} {piece}"
                );
            }
        }
    }

    #[test]
    fn what_is_no_id_or_stands_too_far_is_none() {
        let far = format!(r#"{{"a":"{}","id":"resp_1"}}"#, "a".repeat(2048));
        let long = format!(r#"{{"id":"{}"}}"#, "a".repeat(257));
        for text in [
            r#"{"id":7}"#,
            r#"{"id":""}"#,
            r#"{"id":"resp_"#,
            "",
            &far,
            &long,
        ] {
            for piece in [1, 7, 4096] {
                assert_eq!(told(text, piece), None, "{text}");
            }
        }
    }
}
