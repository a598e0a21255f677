//! Text to values, for JSON and for the literals that Python prints.
//!
//! Invariant: no more than [`MAX_DEPTH`] levels and [`MAX_VALUES`] values; every string that is handed on is UTF-8.
//! Not here: the bound of a record in bytes (`reader::records`).

use std::borrow::Cow;
use std::collections::HashMap;

use super::{Json, Number};

/// Arrays and objects inside one another.
pub const MAX_DEPTH: usize = 128;
/// Values in one record, so that 64 MiB of `[[],[],…` do not become gigabytes.
pub const MAX_VALUES: usize = 2_000_000;
/// Members of an object from which on their names are found by an index.
const INDEXED: usize = 16;

/// What was wrong with text that was read all the same, counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Oddities {
    /// Records with bytes that are no UTF-8; U+FFFD stands for them.
    pub invalid_utf8: u64,
    /// Halves of surrogate pairs; U+FFFD stands for each.
    pub lone_surrogates: u64,
    /// Members of a name that the object had already: the last one counts.
    pub duplicate_members: u64,
    /// `NaN`, `Infinity`, and numbers beyond a float's range: `null` stands for each.
    pub numbers_not_finite: u64,
    /// Control characters that stand in strings as they are.
    pub raw_control_characters: u64,
}

impl Oddities {
    /// Each count under its name.
    #[must_use]
    pub fn counts(&self) -> [(&'static str, u64); 5] {
        [
            ("invalid_utf8", self.invalid_utf8),
            ("lone_surrogates", self.lone_surrogates),
            ("duplicate_members", self.duplicate_members),
            ("numbers_not_finite", self.numbers_not_finite),
            ("raw_control_characters", self.raw_control_characters),
        ]
    }

    /// Adds the counts of another reading.
    pub fn absorb(&mut self, other: Self) {
        self.invalid_utf8 += other.invalid_utf8;
        self.lone_surrogates += other.lone_surrogates;
        self.duplicate_members += other.duplicate_members;
        self.numbers_not_finite += other.numbers_not_finite;
        self.raw_control_characters += other.raw_control_characters;
    }
}

/// Why a text is no JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{says} at byte {at} of the record")]
pub struct JsonError {
    /// Where reading ended, in bytes (of the text with its broken bytes replaced).
    pub at: usize,
    /// What was wrong there.
    pub says: &'static str,
}

/// Reads one JSON value that fills the whole text.
///
/// # Errors
///
/// Text that is no JSON, or is deeper or has more values than the bounds.
pub fn parse(bytes: &[u8], oddities: &mut Oddities) -> Result<Json, JsonError> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let text = String::from_utf8_lossy(bytes);
    if matches!(text, Cow::Owned(_)) {
        oddities.invalid_utf8 += 1;
    }
    Parser::new(&text, false, oddities).whole()
}

/// Reads what Python prints for lists, dicts, strings, numbers, `True`, `False` and `None`.
///
/// # Errors
///
/// As [`parse`]; anything else that Python prints is no value.
pub fn parse_python(text: &str, oddities: &mut Oddities) -> Result<Json, JsonError> {
    Parser::new(text, true, oddities).whole()
}

struct Parser<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    depth: usize,
    values: usize,
    python: bool,
    oddities: &'a mut Oddities,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str, python: bool, oddities: &'a mut Oddities) -> Self {
        Self {
            text,
            bytes: text.as_bytes(),
            at: 0,
            depth: 0,
            values: 0,
            python,
            oddities,
        }
    }

    fn whole(mut self) -> Result<Json, JsonError> {
        let value = self.value()?;
        self.space();
        if self.at < self.bytes.len() {
            return Err(self.fault("something follows the value"));
        }
        Ok(value)
    }

    fn fault(&self, says: &'static str) -> JsonError {
        JsonError { at: self.at, says }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn space(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    fn takes(&mut self, word: &str) -> bool {
        let found = self.bytes[self.at..].starts_with(word.as_bytes());
        if found {
            self.at += word.len();
        }
        found
    }

    fn value(&mut self) -> Result<Json, JsonError> {
        self.space();
        self.values += 1;
        if self.values > MAX_VALUES {
            return Err(self.fault("more than 2,000,000 values"));
        }
        match self.peek() {
            None => Err(self.fault("the text ends where a value is due")),
            Some(b'{') => self.nested(Self::object),
            Some(b'[') => self.nested(Self::array),
            Some(b'"') => self.string().map(Json::String),
            Some(b'\'') if self.python => self.string().map(Json::String),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(_) => self.word(),
        }
    }

    fn nested(
        &mut self,
        read: fn(&mut Self) -> Result<Json, JsonError>,
    ) -> Result<Json, JsonError> {
        if self.depth == MAX_DEPTH {
            return Err(self.fault("more than 128 levels"));
        }
        self.depth += 1;
        self.at += 1;
        let value = read(self)?;
        self.depth -= 1;
        Ok(value)
    }

    fn array(&mut self) -> Result<Json, JsonError> {
        let mut all = Vec::new();
        loop {
            self.space();
            if self.takes("]") {
                return Ok(Json::Array(all));
            }
            if !all.is_empty() {
                self.comma()?;
                if self.python && self.takes("]") {
                    return Ok(Json::Array(all));
                }
            }
            all.push(self.value()?);
        }
    }

    fn object(&mut self) -> Result<Json, JsonError> {
        let mut members = Members::default();
        loop {
            self.space();
            if self.takes("}") {
                return Ok(Json::Object(members.all));
            }
            if !members.all.is_empty() {
                self.comma()?;
            }
            let quoted = match self.peek() {
                Some(b'"') => true,
                Some(b'\'') => self.python,
                _ => false,
            };
            if !quoted {
                return Err(self.fault("a member's name is due"));
            }
            let name = self.string()?;
            self.space();
            if !self.takes(":") {
                return Err(self.fault("a colon is due"));
            }
            let value = self.value()?;
            if !members.put(name, value) {
                self.oddities.duplicate_members += 1;
            }
        }
    }

    fn comma(&mut self) -> Result<(), JsonError> {
        if !self.takes(",") {
            return Err(self.fault("a comma or the end of the list is due"));
        }
        self.space();
        Ok(())
    }

    fn word(&mut self) -> Result<Json, JsonError> {
        let [yes, no, nothing] = if self.python {
            ["True", "False", "None"]
        } else {
            ["true", "false", "null"]
        };
        if self.takes(yes) {
            Ok(Json::Bool(true))
        } else if self.takes(no) {
            Ok(Json::Bool(false))
        } else if self.takes(nothing) {
            Ok(Json::Null)
        } else if self.takes("NaN")
            || self.takes("Infinity")
            || self.python && (self.takes("nan") || self.takes("inf"))
        {
            self.oddities.numbers_not_finite += 1;
            Ok(Json::Null)
        } else {
            Err(self.fault("no JSON value begins like this"))
        }
    }

    fn number(&mut self) -> Result<Json, JsonError> {
        let start = self.at;
        if self.takes("-Infinity") || self.python && self.takes("-inf") {
            self.oddities.numbers_not_finite += 1;
            return Ok(Json::Null);
        }
        while let Some(b'-' | b'+' | b'.' | b'e' | b'E' | b'0'..=b'9') = self.peek() {
            self.at += 1;
        }
        let digits = &self.text[start..self.at];
        if let Some(number) = Number::new(digits) {
            return Ok(Json::Number(number));
        }
        match digits.parse::<f64>() {
            Ok(number) if number.is_finite() && self.python => Ok(Json::from(number)),
            Ok(number) if !number.is_finite() => {
                self.oddities.numbers_not_finite += 1;
                Ok(Json::Null)
            }
            _ => {
                self.at = start;
                Err(self.fault("no number of JSON"))
            }
        }
    }

    fn string(&mut self) -> Result<String, JsonError> {
        let quote = self.bytes[self.at];
        self.at += 1;
        let mut whole = String::new();
        loop {
            let rest = &self.bytes[self.at..];
            let plain = rest
                .iter()
                .position(|b| *b == quote || *b == b'\\' || *b < 0x20)
                .ok_or_else(|| self.fault("the text ends within a string"))?;
            // The three that end it are ASCII, so both ends are at whole characters.
            whole.push_str(&self.text[self.at..self.at + plain]);
            self.at += plain;
            match self.bytes[self.at] {
                b'\\' => {
                    self.at += 1;
                    self.escape(&mut whole)?;
                }
                control if control < 0x20 => {
                    self.oddities.raw_control_characters += 1;
                    whole.push(char::from(control));
                    self.at += 1;
                }
                _ => {
                    self.at += 1;
                    return Ok(whole);
                }
            }
        }
    }

    fn escape(&mut self, whole: &mut String) -> Result<(), JsonError> {
        let kind = self
            .peek()
            .ok_or_else(|| self.fault("the text ends within a string"))?;
        let meant = match kind {
            b'"' | b'\\' | b'/' => char::from(kind),
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                self.at += 1;
                let unit = self.hex(4)?;
                whole.push(self.unit(unit)?);
                return Ok(());
            }
            b'\'' if self.python => '\'',
            b'x' | b'U' if self.python => {
                self.at += 1;
                let point = self.hex(if kind == b'x' { 2 } else { 8 })?;
                whole.push(self.character(point));
                return Ok(());
            }
            _ => return Err(self.fault("no escape of JSON")),
        };
        self.at += 1;
        whole.push(meant);
        Ok(())
    }

    /// The character of a UTF-16 unit and, where it is a first half, of the escape after it.
    fn unit(&mut self, unit: u32) -> Result<char, JsonError> {
        if (0xd800..0xdc00).contains(&unit) && self.bytes[self.at..].starts_with(b"\\u") {
            let before = self.at;
            self.at += 2;
            let second = self.hex(4)?;
            if (0xdc00..0xe000).contains(&second) {
                let point = 0x1_0000 + ((unit - 0xd800) << 10) + (second - 0xdc00);
                return Ok(self.character(point));
            }
            self.at = before;
        }
        Ok(self.character(unit))
    }

    fn character(&mut self, point: u32) -> char {
        char::from_u32(point).unwrap_or_else(|| {
            self.oddities.lone_surrogates += 1;
            char::REPLACEMENT_CHARACTER
        })
    }

    fn hex(&mut self, digits: usize) -> Result<u32, JsonError> {
        let all = self.bytes.get(self.at..self.at + digits);
        let all = all.filter(|all| all.iter().all(u8::is_ascii_hexdigit));
        let number = all
            .and_then(|all| std::str::from_utf8(all).ok())
            .and_then(|all| u32::from_str_radix(all, 16).ok())
            .ok_or_else(|| self.fault("an escape lacks digits"))?;
        self.at += digits;
        Ok(number)
    }
}

/// The members of an object; the last of a name counts, at the place of the first.
#[derive(Default)]
struct Members {
    all: Vec<(String, Json)>,
    places: HashMap<String, usize>,
}

impl Members {
    /// Whether the name is new.
    fn put(&mut self, name: String, value: Json) -> bool {
        let found = if self.all.len() < INDEXED {
            self.all.iter().position(|(n, _)| *n == name)
        } else {
            self.places.get(&name).copied()
        };
        if let Some(at) = found {
            self.all[at].1 = value;
            return false;
        }
        self.all.push((name, value));
        match self.all.len() {
            length if length < INDEXED => {}
            INDEXED => {
                let names = self.all.iter().enumerate();
                self.places = names.map(|(at, (name, _))| (name.clone(), at)).collect();
            }
            length => {
                let name = self.all[length - 1].0.clone();
                self.places.insert(name, length - 1);
            }
        }
        true
    }
}
