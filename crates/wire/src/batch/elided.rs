//! A long line of a result without what no bill needs: pictures, probabilities, the text of an answer.
//!
//! What stays is one JSON value: objects within objects as they came, of a long text its beginning, and of a list each value without what
//! is in it, so that they can still be counted.
//! Invariant: what stays is the same for every way to cut the bytes.
//! Not here: reading it (`result`).

use memchr::memchr2;

/// Bytes of a text that stay, and of one character more.
const TEXT_BYTES: usize = 1024;
/// Most objects within one another: a bit each says whether it is a list.
const DEPTH_MAX: u32 = 64;

/// Where the bytes stand.
#[derive(Debug, Default)]
pub(super) struct Elided {
    /// A bit for each object or list that is open: a list is 1.
    lists: u64,
    depth: u32,
    /// Open within a value of a list, which is left out.
    inner: u32,
    text: Option<Text>,
}

/// A text that is open.
#[derive(Debug, Default)]
struct Text {
    /// Of it that stay.
    bytes: usize,
    /// The last byte was a backslash.
    is_escaped: bool,
    /// Digits of `\uXXXX` that are to come.
    digits: u8,
    /// Its rest is left out.
    is_cut: bool,
}

impl Elided {
    /// Appends what stays of the next bytes. `None` where it is too deep.
    pub(super) fn push(&mut self, bytes: &[u8], kept: &mut Vec<u8>) -> Option<()> {
        let mut rest = bytes;
        while let Some((&byte, after)) = rest.split_first() {
            if self.text.is_some() {
                rest = self.text(rest, kept);
                continue;
            }
            rest = after;
            let is_inner = self.inner > 0;
            match byte {
                b'"' => self.text = Some(Text::default()),
                b'{' | b'[' if is_inner || self.is_in_list() => {
                    self.inner = self.inner.saturating_add(1);
                }
                b'{' | b'[' => {
                    if self.depth >= DEPTH_MAX {
                        return None;
                    }
                    self.lists = self.lists << 1 | u64::from(byte == b'[');
                    self.depth += 1;
                }
                b'}' | b']' if is_inner => self.inner -= 1,
                b'}' | b']' => {
                    self.lists >>= 1;
                    self.depth = self.depth.saturating_sub(1);
                }
                _ => {}
            }
            // The first bracket of what is left out stays, and the last.
            if !is_inner || self.inner == 0 {
                kept.push(byte);
            }
        }
        Some(())
    }

    fn is_in_list(&self) -> bool {
        self.depth > 0 && self.lists & 1 == 1
    }

    /// Goes on in a text: what is behind it, or nothing where it does not end here.
    fn text<'b>(&mut self, bytes: &'b [u8], kept: &mut Vec<u8>) -> &'b [u8] {
        let is_inner = self.inner > 0;
        let Some(text) = &mut self.text else {
            return bytes;
        };
        let mut rest = bytes;
        loop {
            let is_left_out = is_inner || text.is_cut;
            if is_left_out && !text.is_escaped {
                let next = memchr2(b'"', b'\\', rest).unwrap_or(rest.len());
                rest = rest.get(next..).unwrap_or_default();
            }
            let Some((&byte, after)) = rest.split_first() else {
                return &[];
            };
            if !is_left_out && text.may_be_cut(byte) {
                text.is_cut = true;
                continue;
            }
            rest = after;
            let is_end = byte == b'"' && !text.is_escaped;
            if !is_left_out || (is_end && !is_inner) {
                kept.push(byte);
            }
            if is_end {
                self.text = None;
                return rest;
            }
            text.pass(byte);
        }
    }
}

impl Text {
    /// Whether it may end before this byte, and is long enough.
    const fn may_be_cut(&self, byte: u8) -> bool {
        let is_within_a_character = byte & 0b1100_0000 == 0b1000_0000;
        let is_within_an_escape = self.is_escaped || self.digits > 0;
        self.bytes >= TEXT_BYTES && !is_within_a_character && !is_within_an_escape && byte != b'"'
    }

    const fn pass(&mut self, byte: u8) {
        self.bytes = self.bytes.saturating_add(1);
        self.digits = self.digits.saturating_sub(1);
        if self.is_escaped && byte == b'u' {
            self.digits = 4;
        }
        self.is_escaped = byte == b'\\' && !self.is_escaped;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Reader;

    fn whole(line: &[u8], piece: usize) -> Vec<u8> {
        let (mut elided, mut kept) = (Elided::default(), Vec::new());
        for piece in line.chunks(piece) {
            elided.push(piece, &mut kept).expect("not too deep");
        }
        kept
    }

    #[test]
    fn lists_keep_the_number_of_their_values_and_texts_their_beginning() {
        let line = br#"{"a":{"b":[{"c":[1,{"d":"]}\\"}]},"x",[[]],7],"e":{"f":1.5,"g":null}},"h":"\u00e9\"]","i":[]}"#;
        let expected =
            br#"{"a":{"b":[{},"x",[],7],"e":{"f":1.5,"g":null}},"h":"\u00e9\"]","i":[]}"#;
        for piece in 1..line.len() {
            let kept = whole(line, piece);
            assert_eq!(
                String::from_utf8_lossy(&kept),
                String::from_utf8_lossy(expected)
            );
        }
    }

    #[test]
    fn a_text_is_cut_between_characters_and_not_in_an_escape() {
        for unit in ["a", "é", "🦀", "\\u00e9", "\\n", "\\\\", "\\\""] {
            for before in 0..9 {
                let long = format!("{}{}", "x".repeat(before), unit.repeat(2000));
                let line = format!(r#"{{"a":"{long}","b":["{long}"],"c":7}}"#);
                let kept = whole(line.as_bytes(), 7);
                let kept = String::from_utf8(kept).expect("whole characters");
                let value: serde_json::Value = serde_json::from_str(&kept).expect(unit);
                let text = value["a"].as_str().expect("a text");
                assert!((100..=TEXT_BYTES + 8).contains(&text.len()), "{unit}");
                assert_eq!(value["b"].as_array().map(Vec::len), Some(1));
                assert_eq!(value["c"], 7);
                assert!(kept.len() < 4 * TEXT_BYTES, "{unit}");
            }
        }
    }

    #[test]
    fn what_is_too_deep_is_none_and_damaged_lines_stay_damaged() {
        let (mut elided, mut kept) = (Elided::default(), Vec::new());
        assert_eq!(
            elided.push("{\"a\":".repeat(65).as_bytes(), &mut kept),
            None
        );
        for damaged in ["{", "{\"a\":[", "{\"a\":[{]}", "]}", "{\"a\":\"x"] {
            let kept = whole(damaged.as_bytes(), 1);
            let mut reader = Reader::new(&kept);
            let passed = reader.pass();
            assert!(passed.is_none() || !reader.is_at_end(), "{damaged}");
        }
    }
}
