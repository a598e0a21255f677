//! A line of a result without what no bill needs: pictures, probabilities, the text of an answer, what it repeats of its request.
//!
//! What bills need stands at known places. There `usage` stays as it came and of the list `data` each value without what is in it, so that
//! they can still be counted; of any other object and list nothing stays but its brackets, and of a long text its beginning.
//! Invariant: what stays is the same for every way to cut the bytes, and no caller makes it long or deep.
//! Not here: reading it (`result`).

use memchr::memchr2;

use crate::json::unescape;

/// Bytes of a text that stay, and of one character more.
const TEXT_BYTES: usize = 1024;
/// Bytes of a name that are looked at: more than the longest that is known has in escapes.
const NAME_BYTES: usize = 64;

/// Where the bytes stand.
#[derive(Debug, Default)]
pub(super) struct Elided {
    /// Known objects that are open: the line, what became of its call, the answer.
    known: u8,
    /// The list is open whose values are counted.
    is_in_list: bool,
    /// Open within what stays as it came.
    whole: u32,
    /// Open within what is left out.
    left_out: u32,
    text: Option<Text>,
    /// The name of the member of a known object that comes, as it is written.
    name: Vec<u8>,
    has_name: bool,
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
    /// It names a member of a known object.
    is_name: bool,
}

impl Elided {
    /// What stays of a whole line.
    pub(super) fn of(line: &[u8]) -> Vec<u8> {
        let (mut elided, mut kept) = (Self::default(), Vec::new());
        elided.push(line, &mut kept);
        kept
    }

    /// Appends what stays of the next bytes.
    pub(super) fn push(&mut self, bytes: &[u8], kept: &mut Vec<u8>) {
        let mut rest = bytes;
        while let Some((&byte, after)) = rest.split_first() {
            if self.text.is_some() {
                rest = self.text(rest, kept);
                continue;
            }
            rest = after;
            let was_left_out = self.left_out > 0;
            match byte {
                b'"' => self.begin_text(),
                b'{' | b'[' => self.open(byte),
                b'}' | b']' => self.close(),
                b',' if self.is_among_members() => self.has_name = false,
                _ => {}
            }
            // The first bracket of what is left out stays, and the last.
            if !was_left_out || self.left_out == 0 {
                kept.push(byte);
            }
        }
    }

    const fn is_among_members(&self) -> bool {
        self.known > 0 && !self.is_in_list && self.whole == 0 && self.left_out == 0
    }

    fn begin_text(&mut self) {
        let is_name = self.is_among_members() && !self.has_name;
        if is_name {
            self.name.clear();
        }
        self.text = Some(Text {
            is_name,
            ..Text::default()
        });
    }

    fn open(&mut self, bracket: u8) {
        if self.left_out > 0 {
            self.left_out = self.left_out.saturating_add(1);
            return;
        }
        if self.whole > 0 {
            self.whole = self.whole.saturating_add(1);
            return;
        }
        let name = unescape(&self.name).filter(|_| self.has_name && !self.is_in_list);
        match (self.known, bracket, name.as_deref().unwrap_or_default()) {
            (0, b'{', _) | (1, b'{', "response" | "result") | (2, b'{', "body" | "message") => {
                self.known += 1;
                self.has_name = false;
            }
            (3, b'{', "usage") => self.whole = 1,
            (3, b'[', "data") => self.is_in_list = true,
            _ => self.left_out = 1,
        }
    }

    const fn close(&mut self) {
        if self.left_out > 0 {
            self.left_out -= 1;
        } else if self.whole > 0 {
            self.whole -= 1;
        } else if self.is_in_list {
            self.is_in_list = false;
        } else {
            self.known = self.known.saturating_sub(1);
            // That of the object which is closed.
            self.has_name = true;
        }
    }

    /// Goes on in a text: what is behind it, or nothing where it does not end here.
    fn text<'b>(&mut self, bytes: &'b [u8], kept: &mut Vec<u8>) -> &'b [u8] {
        let is_within = self.left_out > 0;
        let Some(text) = &mut self.text else {
            return bytes;
        };
        let mut rest = bytes;
        loop {
            let is_left_out = is_within || text.is_cut;
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
            if !is_left_out || (is_end && !is_within) {
                kept.push(byte);
            }
            if is_end {
                self.has_name |= text.is_name;
                self.text = None;
                return rest;
            }
            if text.is_name && self.name.len() < NAME_BYTES {
                self.name.push(byte);
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
            elided.push(piece, &mut kept);
        }
        kept
    }

    #[test]
    fn known_places_stay_lists_keep_their_number_and_all_else_its_brackets() {
        let line = br#"{"a":{"usage":{"b":[1]},"data":[1,2]},"usage":{"c":1},"re\u0073ponse":{"status_code":200,"x":[{"y":{}}],"body":{
            "data":[{"c":[1,{"d":"]}\\"}]},"x",[[]],7],"text":{"usage":{"e":[{}]},"data":[[1]]},"usage":{"f":[{"g":[1.5]}],"h":{"usage":null}},"i":[],
            "model":"\u00e9\"]","j":{"k":1}},"l":{"m":[]}},"error":null}"#;
        let expected = br#"{"a":{},"usage":{},"re\u0073ponse":{"status_code":200,"x":[],"body":{
            "data":[{},"x",[],7],"text":{},"usage":{"f":[{"g":[1.5]}],"h":{"usage":null}},"i":[],
            "model":"\u00e9\"]","j":{}},"l":{}},"error":null}"#;
        for piece in 1..line.len() {
            let kept = whole(line, piece);
            assert_eq!(
                String::from_utf8_lossy(&kept),
                String::from_utf8_lossy(expected)
            );
        }
        assert_eq!(Elided::of(expected), expected, "what stays, stays");
    }

    #[test]
    fn a_text_is_cut_between_characters_and_not_in_an_escape() {
        for unit in ["a", "é", "🦀", "\\u00e9", "\\n", "\\\\", "\\\""] {
            for before in 0..9 {
                let long = format!("{}{}", "x".repeat(before), unit.repeat(2000));
                let line = format!(
                    r#"{{"a":"{long}","{long}":1,"result":{{"message":{{"data":["{long}"],"c":7}}}}}}"#
                );
                let kept = whole(line.as_bytes(), 7);
                let kept = String::from_utf8(kept).expect("whole characters");
                let value: serde_json::Value = serde_json::from_str(&kept).expect(unit);
                let text = value["a"].as_str().expect("a text");
                assert!((100..=TEXT_BYTES + 8).contains(&text.len()), "{unit}");
                let answer = &value["result"]["message"];
                assert_eq!(answer["data"].as_array().map(Vec::len), Some(1));
                assert_eq!(answer["c"], 7);
                assert!(kept.len() < 4 * TEXT_BYTES, "{unit}");
            }
        }
    }

    #[test]
    fn nothing_is_too_deep_or_too_wide_and_damaged_lines_stay_damaged() {
        for (inner, times) in [
            ("{\"usage\":", 100_000),
            ("[", 100_000),
            ("\"a\":{},", 100_000),
        ] {
            let line = format!(
                "{{\"response\":{{\"body\":{{\"text\":{{{}",
                inner.repeat(times)
            );
            let kept = whole(line.as_bytes(), 70_001);
            assert_eq!(
                String::from_utf8_lossy(&kept),
                "{\"response\":{\"body\":{\"text\":{"
            );
        }
        for damaged in ["{", "{\"a\":[", "{\"a\":[{]}", "]}", "{\"a\":\"x", "{}{}"] {
            let kept = whole(damaged.as_bytes(), 1);
            let mut reader = Reader::new(&kept);
            let passed = reader.pass();
            assert!(passed.is_none() || !reader.is_at_end(), "{damaged}");
        }
    }
}
