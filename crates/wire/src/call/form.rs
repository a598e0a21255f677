//! The form of a call (`multipart/form-data`, RFC 7578), as audio and images come with: what policy reads of it, while it passes.
//!
//! Invariant: a field is read as every server reads it, or the form is refused: nothing stands before the first boundary or behind
//! the last, the boundary stands nowhere else (servers differ in what has to stand before one), lines end with CR LF, no part holds parts, and a part whose name could be taken for that of a field that is read has exactly that name, once,
//! and is no file. Memory is bounded, and the answer is the same for every way to cut the body.
//! Not here: which calls have forms (`dialect`), edits (`splice`).

use memchr::memmem;

use super::fault::{CallFault, CallFaultKind};
use super::head::CallHead;
use crate::dialect::model_name;

/// The longest boundary (RFC 2046).
const BOUNDARY_BYTES: usize = 70;
/// The most parts.
pub(super) const PARTS: usize = 256;
/// The longest head of a part.
pub(super) const HEAD_BYTES: usize = 4 << 10;
/// The longest value of a field that is read.
pub(super) const VALUE_BYTES: usize = 256;

/// Fields that are read.
const FIELDS: [&str; 3] = [MODEL, STREAM, N];
const MODEL: &str = "model";
const STREAM: &str = "stream";
const N: &str = "n";

/// What lies between the parts of a form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Boundary(pub(super) Box<str>);

impl Boundary {
    /// Reads a `content-type`. `None` where it is not that of a form, or says no boundary in one way only.
    #[must_use]
    pub fn of(content_type: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(content_type).ok()?;
        let (kind, parameters) = text.split_once(';')?;
        if !kind.trim().eq_ignore_ascii_case("multipart/form-data") {
            return None;
        }
        // One parameter: in a quoted text a second could be hidden.
        let (name, value) = parameters.trim().split_once('=')?;
        let value = match value.strip_prefix('"') {
            Some(quoted) => quoted.strip_suffix('"')?,
            None => value,
        };
        let is_good = |byte: u8| {
            byte.is_ascii_alphanumeric()
                || matches!(byte, b'\'' | b'(' | b')' | b'+' | b'_' | b',' | b'-' | b'.')
                || matches!(byte, b'/' | b':' | b'=' | b'?')
        };
        let is_boundary = name.eq_ignore_ascii_case("boundary")
            && (1..=BOUNDARY_BYTES).contains(&value.len())
            && value.bytes().all(is_good);
        is_boundary.then(|| Self(value.into()))
    }
}

/// Why a form is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FormFault {
    /// It does not begin with its boundary.
    #[error("it does not begin with its boundary")]
    Beginning,
    /// Behind a boundary stands something else than the end of the line, or of the form.
    #[error("a boundary is followed by something else than CR LF or `--`")]
    BehindBoundary,
    /// The head of a part is too long, or a line of it is none.
    #[error("the head of a part is longer than 4096 bytes, or has a line that cannot be read")]
    Head,
    /// A part does not say in one way which field it is.
    #[error("a part has no `content-disposition: form-data` with one plain `name`")]
    Name,
    /// A part is called almost as a field that is read, or is a file of its name.
    #[error("a part can be taken for the field `{0}`: write that name, once, without a file name")]
    Ambiguous(&'static str),
    /// Too many parts.
    #[error("it has more than 256 parts")]
    Parts,
    /// It ended too early.
    #[error("it ends before its last boundary")]
    Cut,
    /// Something stands behind the last boundary.
    #[error("something stands behind its last boundary")]
    BehindEnd,
    /// Some servers would see a part begin where others see none.
    #[error("its boundary stands within a part, too: take one that stands nowhere else")]
    Within,
    /// A part is written in another way than as its bytes.
    #[error(
        "a part has a `content-transfer-encoding` other than `binary`, a `content-encoding` or a `charset` other than UTF-8, which servers read in different ways: send its bytes as they are"
    )]
    Encoded,
    /// A part is a form, or a message, of its own.
    #[error("a part holds parts of its own")]
    Nested,
}

/// A scan of a form.
#[derive(Debug)]
pub(super) struct FormScanner {
    /// CR LF, two hyphens, the boundary.
    delimiter: Box<[u8]>,
    state: State,
    /// Bytes of the delimiter that have matched where the last piece ended.
    matched: usize,
    /// What has come of a head, or of a field that is read.
    held: Vec<u8>,
    /// Bytes that have come.
    length: usize,
    parts: usize,
    /// How often the boundary stands anywhere.
    boundaries: usize,
    /// The end of what has come, too short to hold a whole one.
    joint: Vec<u8>,
    fields: Fields,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Before the first boundary, which nothing stands before.
    Beginning,
    /// Behind a boundary.
    Behind,
    /// In the head of a part.
    Head,
    /// In the value of one: of the field of this number, or of another.
    Value(Option<usize>),
    /// Behind the last boundary.
    End,
}

/// What the fields said, and where the model's name stands.
#[derive(Debug, Default)]
struct Fields {
    seen: [bool; FIELDS.len()],
    model: Option<Box<str>>,
    model_at: Option<std::ops::Range<usize>>,
    stream: bool,
    n: Option<u32>,
}

impl FormScanner {
    pub(super) fn new(boundary: &Boundary) -> Self {
        Self {
            delimiter: format!("\r\n--{}", boundary.0).into_bytes().into(),
            state: State::Beginning,
            // The first boundary has no line before it.
            matched: 2,
            held: Vec::new(),
            length: 0,
            parts: 0,
            boundaries: 0,
            joint: Vec::new(),
            fields: Fields::default(),
        }
    }

    pub(super) fn push(&mut self, mut piece: &[u8]) -> Result<(), CallFault> {
        self.count_boundaries(piece);
        while !piece.is_empty() {
            let taken = self.take(piece)?;
            self.length += taken;
            piece = piece.get(taken..).unwrap_or_default();
        }
        Ok(())
    }

    pub(super) fn finish(self) -> Result<CallHead, CallFault> {
        if self.state != State::End || self.held == b"\r" {
            return Err(self.fault(FormFault::Cut));
        }
        if self.boundaries != self.parts + 1 {
            return Err(self.fault(FormFault::Within));
        }
        Ok(CallHead {
            model: self.fields.model,
            stream: self.fields.stream,
            n: self.fields.n,
            length: self.length,
            model_at: self.fields.model_at,
            is_form: true,
            ..CallHead::default()
        })
    }

    /// Counts every place at which a boundary ends in this piece, whatever stands before it.
    fn count_boundaries(&mut self, piece: &[u8]) {
        let boundary = self.delimiter.get(2..).unwrap_or_default();
        let before = self.joint.len();
        let at_joint = boundary.len().saturating_sub(1).min(piece.len());
        self.joint
            .extend_from_slice(piece.get(..at_joint).unwrap_or_default());
        // What begins in an earlier piece, then what begins in this one.
        self.boundaries += places(&self.joint, boundary, ..before);
        self.boundaries += places(piece, boundary, ..piece.len());
        if piece.len() > at_joint {
            self.joint.clear();
            self.joint.extend_from_slice(piece);
        }
        let kept = self
            .joint
            .len()
            .saturating_sub(boundary.len().saturating_sub(1));
        self.joint.drain(..kept);
    }

    fn fault(&self, fault: FormFault) -> CallFault {
        CallFault {
            member: None,
            offset: self.length as u64,
            kind: CallFaultKind::InvalidForm(fault),
        }
    }

    /// Takes what it can of a piece that is not empty, and says how much that is.
    fn take(&mut self, piece: &[u8]) -> Result<usize, CallFault> {
        match self.state {
            State::Beginning => {
                let (is_whole, matched) = self.go_on(piece);
                match (is_whole, matched == piece.len()) {
                    (true, _) => self.state = State::Behind,
                    (false, true) => {}
                    (false, false) => return Err(self.fault(FormFault::Beginning)),
                }
                Ok(matched)
            }
            State::Behind => self.behind(piece),
            State::Head => self.head(piece),
            State::Value(field) => self.value(field, piece),
            State::End => {
                // A last end of line, which most clients write.
                self.held.extend_from_slice(piece.get(..3).unwrap_or(piece));
                let rest: &[u8] = b"\r\n";
                match rest.starts_with(&self.held) {
                    true => Ok(piece.len()),
                    false => Err(self.fault(FormFault::BehindEnd)),
                }
            }
        }
    }

    /// Goes on in a delimiter that has begun: whether it is whole, and how many bytes of the piece are of it.
    fn go_on(&mut self, piece: &[u8]) -> (bool, usize) {
        let rest = self.delimiter.get(self.matched..).unwrap_or_default();
        let same = rest.iter().zip(piece).take_while(|(a, b)| a == b).count();
        let is_whole = same == rest.len();
        self.matched = if is_whole { 0 } else { self.matched + same };
        (is_whole, same)
    }

    /// Two bytes follow a boundary: the end of its line, or that of the form.
    fn behind(&mut self, piece: &[u8]) -> Result<usize, CallFault> {
        let wanted = 2_usize.saturating_sub(self.held.len()).min(piece.len());
        self.held
            .extend_from_slice(piece.get(..wanted).unwrap_or_default());
        let ends: [&[u8]; 2] = [b"\r\n", b"--"];
        if !ends.iter().any(|end| end.starts_with(&self.held)) {
            return Err(self.fault(FormFault::BehindBoundary));
        }
        if self.held.len() == 2 {
            self.state = match self.held == b"--" {
                true if self.parts == 0 => return Err(self.fault(FormFault::Name)),
                true => State::End,
                false => State::Head,
            };
            self.held.clear();
            self.parts += usize::from(self.state == State::Head);
            if self.parts > PARTS {
                return Err(self.fault(FormFault::Parts));
            }
        }
        Ok(wanted)
    }

    /// The head of a part, to the empty line.
    fn head(&mut self, piece: &[u8]) -> Result<usize, CallFault> {
        let before = self.held.len();
        let room = HEAD_BYTES.saturating_sub(before);
        self.held
            .extend_from_slice(piece.get(..room).unwrap_or(piece));
        // The line end may have begun in an earlier piece.
        let from = before.saturating_sub(3);
        let end = memmem::find(self.held.get(from..).unwrap_or_default(), b"\r\n\r\n");
        match end {
            Some(end) => {
                let head = self.held.get(..from + end).unwrap_or_default();
                let field = field_of(head).map_err(|fault| self.fault(fault))?;
                if let Some(field) = field {
                    let seen = self.fields.seen.get_mut(field);
                    if seen.is_some_and(|seen| std::mem::replace(seen, true)) {
                        let name = FIELDS.get(field).copied().unwrap_or_default();
                        let kind = CallFaultKind::DuplicateMember(name);
                        return Err(CallFault::at(name, self.length, kind));
                    }
                }
                self.held.clear();
                self.state = State::Value(field);
                Ok((from + end + 4).saturating_sub(before))
            }
            None if piece.len() >= room => Err(self.fault(FormFault::Head)),
            None => Ok(piece.len()),
        }
    }

    /// The value of a part, to the boundary.
    fn value(&mut self, field: Option<usize>, piece: &[u8]) -> Result<usize, CallFault> {
        if self.matched > 0 {
            let before = self.matched;
            let (is_whole, same) = self.go_on(piece);
            if is_whole {
                // The delimiter began where the value ended.
                self.ended(field, self.length - before)?;
            } else if same < piece.len() {
                // It was none. A line end stands at its beginning alone, so that no other has begun in it.
                let was = self
                    .delimiter
                    .get(..before + same)
                    .unwrap_or_default()
                    .to_vec();
                self.matched = 0;
                self.keep(field, &was)?;
            }
            return Ok(same.max(usize::from(same == 0 && is_whole)));
        }
        if let Some(at) = memmem::find(piece, &self.delimiter) {
            let value = piece.get(..at).unwrap_or_default();
            self.keep(field, value)?;
            self.ended(field, self.length + at)?;
            return Ok(at + self.delimiter.len());
        }
        let last = piece.len().saturating_sub(self.delimiter.len() - 1);
        let tail = piece.get(last..).unwrap_or_default();
        let begun = memchr::memrchr(b'\r', tail).map(|at| last + at);
        let begun = begun.filter(|at| {
            let rest = piece.get(*at..).unwrap_or_default();
            self.delimiter.starts_with(rest)
        });
        let value = piece
            .get(..begun.unwrap_or(piece.len()))
            .unwrap_or_default();
        self.keep(field, value)?;
        self.matched = piece.len() - value.len();
        Ok(piece.len())
    }

    /// Keeps more of the value of a field that is read.
    fn keep(&mut self, field: Option<usize>, value: &[u8]) -> Result<(), CallFault> {
        let Some(name) = field.and_then(|field| FIELDS.get(field)) else {
            return Ok(());
        };
        if self.held.len() + value.len() > VALUE_BYTES {
            return Err(self.unusable(name));
        }
        self.held.extend_from_slice(value);
        Ok(())
    }

    fn unusable(&self, name: &'static str) -> CallFault {
        let kind = match name {
            MODEL => CallFaultKind::BadModelName,
            N => CallFaultKind::OutOfRange(N),
            _ => CallFaultKind::WrongType {
                member: name,
                wanted: "true or false",
            },
        };
        CallFault::at(name, self.length, kind)
    }

    /// A part ended at this place of the body.
    fn ended(&mut self, field: Option<usize>, end: usize) -> Result<(), CallFault> {
        self.state = State::Behind;
        let value = std::mem::take(&mut self.held);
        let Some(name) = field.and_then(|field| FIELDS.get(field).copied()) else {
            return Ok(());
        };
        match name {
            MODEL => {
                let model = model_name(&value).ok_or_else(|| self.unusable(name))?;
                self.fields.model = Some(model.into());
                self.fields.model_at = Some(end - value.len()..end);
            }
            N => {
                let digits = std::str::from_utf8(&value).ok();
                let digits = digits.filter(|text| text.bytes().all(|b| b.is_ascii_digit()));
                let n = digits.and_then(|text| text.parse().ok());
                self.fields.n = Some(n.ok_or_else(|| self.unusable(name))?);
            }
            _ => {
                self.fields.stream = match &value[..] {
                    b"true" => true,
                    b"false" => false,
                    _ => return Err(self.unusable(name)),
                };
            }
        }
        Ok(())
    }
}

/// How often something stands in a text, beginning in this part of it; two may overlap.
pub(super) fn places(text: &[u8], wanted: &[u8], begins: std::ops::RangeTo<usize>) -> usize {
    let (mut count, mut from) = (0, 0);
    while let Some(at) = memmem::find(text.get(from..).unwrap_or_default(), wanted) {
        count += usize::from(from + at < begins.end);
        from += at + 1;
    }
    count
}

/// What the head of a part says of it.
pub(super) struct PartHead<'h> {
    pub(super) name: &'h str,
    pub(super) is_file: bool,
    /// It is a text, as far as it says what it is.
    pub(super) is_text: bool,
    /// It is written in another way than as its bytes.
    pub(super) is_coded: bool,
    /// Its characters are said to be of one byte each, so that those beyond ASCII are others than UTF-8 has there.
    pub(super) is_latin: bool,
}

/// Reads the head of a part.
pub(super) fn part_head(head: &[u8]) -> Result<PartHead<'_>, FormFault> {
    let head = std::str::from_utf8(head).map_err(|_| FormFault::Head)?;
    let mut disposition = None;
    let mut is_text = true;
    let mut is_coded = false;
    let mut is_latin = false;
    for line in head.split("\r\n") {
        let (name, value) = line.split_once(':').ok_or(FormFault::Head)?;
        let is_odd = |c: char| c.is_ascii_control() || c.is_ascii_whitespace();
        if name.is_empty()
            || name.contains(is_odd)
            || value.contains(|c: char| c.is_ascii_control() && c != '\t')
        {
            return Err(FormFault::Head);
        }
        let value = value.trim_matches([' ', '\t']);
        match &*name.to_ascii_lowercase() {
            "content-disposition" if disposition.replace(value).is_some() => {
                return Err(FormFault::Name);
            }
            "content-type" => {
                let kind = value.split(';').next().unwrap_or_default().trim();
                let family = kind.split('/').next().unwrap_or_default().trim();
                if ["multipart", "message"].contains(&&*family.to_ascii_lowercase()) {
                    return Err(FormFault::Nested);
                }
                is_text &= kind.eq_ignore_ascii_case("text/plain");
                let parameters = value.split(';').skip(1);
                for charset in parameters.filter_map(charset) {
                    is_coded |= charset == Charset::Other;
                    is_latin |= charset == Charset::Latin;
                }
            }
            "content-encoding" => is_coded |= !value.eq_ignore_ascii_case("identity"),
            "content-transfer-encoding" => {
                is_coded |= !["7bit", "8bit", "binary"].contains(&&*value.to_ascii_lowercase());
            }
            _ => {}
        }
    }
    let (name, is_file) = names(disposition.ok_or(FormFault::Name)?).ok_or(FormFault::Name)?;
    Ok(PartHead {
        name,
        is_file,
        is_text,
        is_coded,
        is_latin,
    })
}

/// How a part says that its characters are written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Charset {
    Utf8,
    /// As ASCII is, and one byte each.
    Latin,
    Other,
}

/// What a parameter of a type says of that; `None` where it says nothing of it.
fn charset(parameter: &str) -> Option<Charset> {
    let (name, value) = parameter.split_once('=')?;
    let name = name.trim().to_ascii_lowercase();
    if name != "charset" {
        // Of several parts, or in percents: servers differ in reading it at all.
        return name.starts_with("charset*").then_some(Charset::Other);
    }
    Some(
        match &*value.trim().trim_matches('"').to_ascii_lowercase() {
            "utf-8" | "utf8" | "us-ascii" | "ascii" => Charset::Utf8,
            "iso-8859-1" | "latin1" | "windows-1252" => Charset::Latin,
            _ => Charset::Other,
        },
    )
}

/// Which field that is read a part with this head is, if any.
fn field_of(head: &[u8]) -> Result<Option<usize>, FormFault> {
    let PartHead {
        name,
        is_file,
        is_text,
        is_coded,
        is_latin: _,
    } = part_head(head)?;
    let plain = name.split('[').next().unwrap_or_default().trim();
    if plain.eq_ignore_ascii_case("_charset_") {
        // It would say how the others are read.
        return Err(FormFault::Ambiguous(MODEL));
    }
    let Some(field) = FIELDS
        .iter()
        .position(|field| field.eq_ignore_ascii_case(plain))
    else {
        return if is_coded {
            Err(FormFault::Encoded)
        } else {
            Ok(None)
        };
    };
    let known = FIELDS.get(field).copied().unwrap_or_default();
    match name == known && is_text && !is_coded && !is_file {
        true => Ok(Some(field)),
        false => Err(FormFault::Ambiguous(known)),
    }
}

/// The name in a disposition, and whether it is of a file. `None` where it could be read in two ways.
fn names(disposition: &str) -> Option<(&str, bool)> {
    let (kind, mut rest) = disposition.split_once(';')?;
    if !kind.trim().eq_ignore_ascii_case("form-data") {
        return None;
    }
    let (mut name, mut is_file) = (None, false);
    loop {
        let (key, after) = rest.trim_start().split_once('=')?;
        let (value, more) = match after.strip_prefix('"') {
            Some(quoted) => {
                let end = quoted.find('"')?;
                let value = quoted.get(..end)?;
                // Behind an escaped quote, servers differ in where the text ends.
                if value.ends_with('\\') {
                    return None;
                }
                (value, quoted.get(end + 1..)?.trim_start())
            }
            None => {
                let end = after.find(';').unwrap_or(after.len());
                (after.get(..end)?.trim_end(), after.get(end..)?)
            }
        };
        match &*key.trim().to_ascii_lowercase() {
            "name" => {
                let is_plain = !value.is_empty() && !value.contains(['\\', '%', '"']);
                if !is_plain || name.replace(value).is_some() {
                    return None;
                }
            }
            "filename" | "filename*" => is_file = true,
            _ => return None,
        }
        match more.strip_prefix(';') {
            Some(next) if !next.trim().is_empty() => rest = next,
            None if !more.is_empty() => return None,
            _ => return Some((name?, is_file)),
        }
    }
}

#[cfg(test)]
mod tests;
