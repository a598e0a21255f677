//! The calls of a batch: lines of a file as OpenAI has them, or requests within a body as Anthropic has them.
//!
//! Invariant: each is read by the scanner of calls that come by themselves. What some servers take for the end of a line and others do
//! not is refused, as is every call but of a few known operations.
//! Not here: who may make them (`policy`).

use std::ops::Range;

use memchr::{memchr, memchr3_iter};

use crate::call::{CallFault, CallHead, CallScanner};
use crate::dialect::Operation;
use crate::head::Method;
use crate::json::{
    Found, Interest, Interests, Kind, Reader, Repeat, STRING_LIMIT_BYTES, Scanner, Want, unescape,
};

/// Most calls of one batch: as many as Anthropic takes, twice as many as OpenAI.
pub const LINES_MAX: usize = 100_000;
/// Longest line, or request.
pub const LINE_BYTES_MAX: usize = 8 << 20;

/// One call of a batch.
#[derive(Debug)]
pub struct OneCall {
    /// For what.
    pub operation: Operation,
    /// What it says of itself.
    pub call: CallHead,
    /// Where its body stands among the bytes of all.
    pub body: Range<usize>,
}

/// Why a batch's calls cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LineFault {
    /// No call is there.
    #[error("it is empty")]
    Empty,
    /// There are too many calls.
    #[error("a batch has at most 100000 calls")]
    TooMany,
    /// One is too long.
    #[error("it is longer than 8 MiB")]
    TooLong,
    /// Some servers would see a line end where others see none.
    #[error(
        "it holds a character that some servers take for the end of a line: write it as an escape, such as \\u2028"
    )]
    Separator,
    /// A member is missing, or of the wrong kind.
    #[error("the member `{0}` must be {1}")]
    Member(&'static str, &'static str),
    /// What makes a batch of a file is too long.
    #[error("it has more than 16 KiB beside its metadata")]
    Long,
    /// No call of a batch goes there.
    #[error("the member `url` is none of the paths whose calls a batch may hold here")]
    Url,
    /// It is no call that can be read.
    #[error("{0}")]
    Call(CallFault),
}

impl From<CallFault> for LineFault {
    fn from(fault: CallFault) -> Self {
        Self::Call(fault)
    }
}

/// The lines of a file of calls, one after the other, each with its number from 1.
#[derive(Debug)]
pub struct Calls<'f> {
    file: &'f [u8],
    at: usize,
    nth: usize,
}

impl<'f> Calls<'f> {
    /// Of a whole file.
    #[must_use]
    pub const fn of(file: &'f [u8]) -> Self {
        Self {
            file,
            at: 0,
            nth: 0,
        }
    }
}

impl Iterator for Calls<'_> {
    type Item = (usize, Result<OneCall, LineFault>);

    fn next(&mut self) -> Option<Self::Item> {
        let is_end = |b: &u8| matches!(b, b'\n' | b'\r');
        // A file may end in several ends of lines.
        let rest = self.file.get(self.at..);
        let rest = rest.filter(|rest| !rest.iter().all(is_end));
        let Some(rest) = rest else {
            // A file without a line is no batch.
            let is_none = self.nth == 0;
            self.nth += usize::from(is_none);
            return is_none.then_some((1, Err(LineFault::Empty)));
        };
        self.nth += 1;
        let from = self.at;
        let length = memchr(b'\n', rest).unwrap_or(rest.len());
        self.at = from + length + 1;
        let line = rest.get(..length).unwrap_or_default();
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let read = match self.nth > LINES_MAX {
            true => Err(LineFault::TooMany),
            false => line_call(line, from),
        };
        Some((self.nth, read))
    }
}

static OF_A_LINE: Interests = Interests::new(&[
    Interest::new("method", Want::Scalar, Repeat::Refuse),
    Interest::new("url", Want::Scalar, Repeat::Refuse),
    Interest::new("body", Want::Place, Repeat::Refuse),
    Interest::new("custom_id", Want::Place, Repeat::Refuse),
]);

/// The call of a line that begins at this place of its file.
fn line_call(line: &[u8], from: usize) -> Result<OneCall, LineFault> {
    if line.trim_ascii().is_empty() {
        return Err(LineFault::Empty);
    }
    if line.len() > LINE_BYTES_MAX {
        return Err(LineFault::TooLong);
    }
    if has_separator(line) {
        return Err(LineFault::Separator);
    }
    let found = scanned(&OF_A_LINE, line)?;
    if text(&found, 0).as_deref() != Some("POST") {
        return Err(LineFault::Member("method", "\"POST\""));
    }
    named(&found, 3)?;
    let url = text(&found, 1).ok_or(LineFault::Member(
        "url",
        "a path, such as /v1/chat/completions",
    ))?;
    let operation = operation_of(&url).ok_or(LineFault::Url)?;
    let body = found.member(2).filter(|body| body.kind == Kind::Object);
    let body = body.ok_or(LineFault::Member("body", "an object"))?;
    one_call(operation, line, body.value.clone(), from)
}

/// The calls that a batch may hold at this path.
fn operation_of(url: &str) -> Option<Operation> {
    match Operation::of(Method::Post, url) {
        Ok(
            operation @ (Operation::Chat
            | Operation::Completions
            | Operation::Responses
            | Operation::Embeddings
            | Operation::Moderations
            | Operation::Images),
        ) => Some(operation),
        _ => None,
    }
}

fn one_call(
    operation: Operation,
    text: &[u8],
    body: Range<usize>,
    from: usize,
) -> Result<OneCall, LineFault> {
    let mut scanner = CallScanner::new();
    scanner.push(text.get(body.clone()).unwrap_or_default())?;
    let call = std::mem::take(scanner.finish()?);
    if call.model.is_none() {
        return Err(LineFault::Member("model", "the name of a model"));
    }
    Ok(OneCall {
        operation,
        call,
        body: from + body.start..from + body.end,
    })
}

/// Whether a character stands here that ends a line for some readers of text, and not for JSON: FF and its like are refused by its
/// grammar, and a CR is a blank to it.
fn has_separator(line: &[u8]) -> bool {
    memchr3_iter(b'\r', 0xc2, 0xe2, line).any(|at| {
        matches!(
            line.get(at..),
            Some([b'\r', ..] | [0xc2, 0x85, ..] | [0xe2, 0x80, 0xa8 | 0xa9, ..])
        )
    })
}

fn scanned(of: &'static Interests, object: &[u8]) -> Result<Found, CallFault> {
    let mut scanner = Scanner::new(of);
    scanner.push(object)?;
    let found = scanner.finish()?.clone();
    match found.open {
        Some(_) => Ok(found),
        None => Err(CallFault {
            member: None,
            offset: 0,
            kind: crate::call::CallFaultKind::NotAnObject,
        }),
    }
}

fn text(found: &Found, nth: usize) -> Option<String> {
    let member = found.member(nth)?;
    Some(found.text(member)?.into_owned())
}

/// A name is not much longer than providers take (Anthropic's 64 letters): it comes again in the line of a result, which has a bound.
const CUSTOM_ID_BYTES: usize = 1 << 10;

/// Whether it has a name to know its result by.
fn named(found: &Found, nth: usize) -> Result<(), LineFault> {
    match found.member(nth) {
        Some(member) if member.kind == Kind::String && member.value.len() <= CUSTOM_ID_BYTES => {
            Ok(())
        }
        _ => Err(LineFault::Member("custom_id", "a text of at most 1 KiB")),
    }
}

static OF_A_BATCH: Interests =
    Interests::new(&[Interest::new("requests", Want::Place, Repeat::Refuse)]);
static OF_A_REQUEST: Interests = Interests::new(&[
    Interest::new("params", Want::Place, Repeat::Refuse),
    Interest::new("custom_id", Want::Place, Repeat::Refuse),
]);

/// The requests within the body of a batch, each with its number from 1.
#[derive(Debug)]
pub struct Requests<'b> {
    body: &'b [u8],
    /// Where the next one begins; none where there is no other.
    at: Option<usize>,
    nth: usize,
}

impl<'b> Requests<'b> {
    /// Of a whole body.
    ///
    /// # Errors
    /// It is no batch.
    pub fn of(body: &'b [u8]) -> Result<Self, LineFault> {
        let found = scanned(&OF_A_BATCH, body)?;
        let list = found.member(0).filter(|list| list.kind == Kind::Array);
        let list = list.ok_or(LineFault::Member("requests", "a list"))?;
        if list.empty {
            return Err(LineFault::Empty);
        }
        Ok(Self {
            body,
            at: Some(list.value.start + 1),
            nth: 0,
        })
    }
}

impl Iterator for Requests<'_> {
    type Item = (usize, Result<OneCall, LineFault>);

    fn next(&mut self) -> Option<Self::Item> {
        let from = self.at.take()?;
        self.nth += 1;
        if self.nth > LINES_MAX {
            return Some((self.nth, Err(LineFault::TooMany)));
        }
        let rest = self.body.get(from..).unwrap_or_default();
        let mut reader = Reader::new(rest);
        // The grammar of all was looked at: an item that cannot be read is none of an object's.
        let Some((_, item)) = reader.value() else {
            return Some((
                self.nth,
                Err(LineFault::Member("requests", "a list of objects")),
            ));
        };
        let end = from + reader.place();
        let item_from = end - item.len();
        let behind = self.body.get(end..).unwrap_or_default();
        let blanks = behind
            .iter()
            .take_while(|b| b.is_ascii_whitespace())
            .count();
        if behind.get(blanks) == Some(&b',') {
            self.at = Some(end + blanks + 1);
        }
        Some((self.nth, request_call(item, item_from)))
    }
}

fn request_call(item: &[u8], from: usize) -> Result<OneCall, LineFault> {
    if item.len() > LINE_BYTES_MAX {
        return Err(LineFault::TooLong);
    }
    let found = scanned(&OF_A_REQUEST, item)?;
    named(&found, 1)?;
    let params = found.member(0).filter(|params| params.kind == Kind::Object);
    let params = params.ok_or(LineFault::Member("params", "an object"))?;
    one_call(Operation::Messages, item, params.value.clone(), from)
}

static OF_A_CREATION: Interests = Interests::new(&[
    Interest::new("input_file_id", Want::Scalar, Repeat::Refuse),
    Interest::new("endpoint", Want::Scalar, Repeat::Refuse),
    Interest::new("metadata", Want::Raw(METADATA_BYTES_MAX), Repeat::Refuse),
]);

/// What a body that makes a batch has beside its metadata.
const REST_BYTES_MAX: usize = 16 << 10;
/// Pairs of metadata that OpenAI takes, with the characters of a name and of a value.
const PAIRS_MAX: usize = 16;
const NAME_CHARS_MAX: usize = 64;
const TEXT_CHARS_MAX: usize = 512;
/// The longest that they can be: each character two escapes. Twice that, for blanks.
const METADATA_BYTES_MAX: usize = 2 * 12 * PAIRS_MAX * (NAME_CHARS_MAX + TEXT_CHARS_MAX);

/// What makes a batch of OpenAI's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Creation {
    /// The file whose calls it is to make.
    pub file: Box<str>,
    /// What all of them are to be, where it says so.
    pub operation: Option<Operation>,
}

/// Reads what makes a batch.
///
/// # Errors
/// The body names no file, or not in one way only, or is longer than what the API takes: its provider tells all of it again.
pub fn creation(body: &[u8]) -> Result<Creation, LineFault> {
    const { assert!(STRING_LIMIT_BYTES >= 128) };
    let found = scanned(&OF_A_CREATION, body)?;
    let metadata = found.member(2);
    let metadata = metadata.map_or(&b""[..], |member| match member.cut {
        true => b"[",
        false => found.raw(member),
    });
    if !is_metadata(metadata) {
        let takes = "at most 16 pairs of texts, of 64 characters and of 512";
        return Err(LineFault::Member("metadata", takes));
    }
    if body.len().saturating_sub(metadata.len()) > REST_BYTES_MAX {
        return Err(LineFault::Long);
    }
    let file = text(&found, 0);
    let file = file.ok_or(LineFault::Member("input_file_id", "the id of a file"))?;
    let operation = match found.member(1) {
        None => None,
        Some(_) => {
            let url = text(&found, 1);
            let operation = url.and_then(|url| operation_of(&url));
            Some(operation.ok_or(LineFault::Member(
                "endpoint",
                "a path whose calls a batch may hold here",
            ))?)
        }
    };
    Ok(Creation {
        file: file.into(),
        operation,
    })
}

/// Whether OpenAI takes this for the metadata of a batch: nothing, or few short texts with names.
fn is_metadata(raw: &[u8]) -> bool {
    if raw.is_empty() || raw == b"null" {
        return true;
    }
    let mut reader = Reader::new(raw);
    let mut pairs = 0;
    let mut read = || -> Option<bool> {
        let mut more = reader.open()?;
        while more {
            // A name too long to be told comes empty.
            let name = reader.name()?;
            let (kind, value) = reader.value()?;
            let value = value.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
            let value = unescape(value)?;
            pairs += 1;
            let fits = kind == Kind::String
                && pairs <= PAIRS_MAX
                && !name.is_empty()
                && std::str::from_utf8(&name).ok()?.chars().count() <= NAME_CHARS_MAX
                && value.chars().count() <= TEXT_CHARS_MAX;
            if !fits {
                return Some(false);
            }
            more = reader.more()?;
        }
        Some(reader.is_at_end())
    };
    read().unwrap_or(false)
}
