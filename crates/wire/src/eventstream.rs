//! Amazon's stream of events: binary messages with headers and a payload, each guarded by two CRC32s
//! (<https://docs.aws.amazon.com/AmazonS3/latest/API/RESTSelectObjectAppendix.html>, and Smithy's `application/vnd.amazon.eventstream`).
//!
//! Invariant: a message is told once, when all of it has come and both sums are right, however the stream is cut; what is none ends the
//! reading for good. No more is kept than the present message, and none is longer than [`MESSAGE_BYTES`].
//! Not here: what the payloads say (`meter`, the crate `translate`).

use std::str;

/// What the content type of such a stream begins with.
pub const CONTENT_TYPE: &str = "application/vnd.amazon.eventstream";

/// No message is longer. Each carries one event of an answer.
pub const MESSAGE_BYTES: usize = 8 * 1024 * 1024;

/// A message's length, that of its headers, and the sum of both.
const PRELUDE_BYTES: usize = 12;
/// The sum at the end.
const SUM_BYTES: usize = 4;

/// The bytes are no such stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Broken;

/// One message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message<'a> {
    /// What kind of message it is.
    pub kind: Kind<'a>,
    /// A JSON document, where it is an event or an exception.
    pub payload: &'a [u8],
}

/// What a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind<'a> {
    /// An event of this name.
    Event(&'a str),
    /// A failure that the service's model names.
    Exception(&'a str),
    /// Another failure.
    Error {
        /// Its code.
        code: &'a str,
        /// What it says.
        message: &'a str,
    },
}

/// Reads a stream.
#[derive(Debug, Default)]
pub struct Reader {
    /// What came of the present message.
    held: Vec<u8>,
    is_broken: bool,
}

impl Reader {
    /// Takes the next chunk and tells of each message that ends in it.
    ///
    /// # Errors
    /// It is no such stream; what was told before is.
    pub fn push(&mut self, chunk: &[u8], mut tell: impl FnMut(Message<'_>)) -> Result<(), Broken> {
        if self.is_broken {
            return Err(Broken);
        }
        let read = self.read(chunk, &mut tell);
        if read.is_err() {
            self.is_broken = true;
            self.held = Vec::new();
        }
        read
    }

    /// Bytes of the message that has not ended.
    #[must_use]
    pub fn held(&self) -> usize {
        self.held.len()
    }

    fn read(&mut self, chunk: &[u8], tell: &mut impl FnMut(Message<'_>)) -> Result<(), Broken> {
        let mut rest = chunk;
        while !self.held.is_empty() {
            let wanted = match length(&self.held)? {
                None => PRELUDE_BYTES,
                Some(length) if length == self.held.len() => {
                    tell(message(&self.held)?);
                    self.held.clear();
                    break;
                }
                Some(length) => length,
            };
            let missing = wanted.saturating_sub(self.held.len());
            let (more, after) = rest.split_at_checked(missing).unwrap_or((rest, b""));
            if more.is_empty() {
                return Ok(());
            }
            self.held.extend_from_slice(more);
            rest = after;
        }
        while let Some(length) = length(rest)? {
            let Some((whole, after)) = rest.split_at_checked(length) else {
                break;
            };
            tell(message(whole)?);
            rest = after;
        }
        self.held.extend_from_slice(rest);
        Ok(())
    }
}

/// How long the message is that begins here, once its prelude has come.
fn length(bytes: &[u8]) -> Result<Option<usize>, Broken> {
    let Some((lengths, rest)) = bytes.split_first_chunk::<8>() else {
        return Ok(None);
    };
    let Some(sum) = rest.first_chunk() else {
        return Ok(None);
    };
    if crc32fast::hash(lengths) != u32::from_be_bytes(*sum) {
        return Err(Broken);
    }
    let [total, headers] = two(lengths)?;
    let least = headers
        .checked_add(PRELUDE_BYTES + SUM_BYTES)
        .ok_or(Broken)?;
    match (least..=MESSAGE_BYTES).contains(&total) {
        true => Ok(Some(total)),
        false => Err(Broken),
    }
}

/// Two lengths.
fn two(lengths: &[u8; 8]) -> Result<[usize; 2], Broken> {
    let [a, b, c, d, e, f, g, h] = *lengths;
    let read = |bytes| usize::try_from(u32::from_be_bytes(bytes)).map_err(|_| Broken);
    Ok([read([a, b, c, d])?, read([e, f, g, h])?])
}

/// A message, of all its bytes.
fn message(whole: &[u8]) -> Result<Message<'_>, Broken> {
    let (summed, sum) = whole.split_last_chunk::<SUM_BYTES>().ok_or(Broken)?;
    if crc32fast::hash(summed) != u32::from_be_bytes(*sum) {
        return Err(Broken);
    }
    let (lengths, _) = summed.split_first_chunk::<8>().ok_or(Broken)?;
    let [_, of_headers] = two(lengths)?;
    let rest = summed.get(PRELUDE_BYTES..).ok_or(Broken)?;
    let (headers, payload) = rest.split_at_checked(of_headers).ok_or(Broken)?;
    let kind = kind(headers)?;
    Ok(Message { kind, payload })
}

/// What its headers say that it is.
fn kind(mut headers: &[u8]) -> Result<Kind<'_>, Broken> {
    let (mut kind, mut event, mut exception) = ("", "", "");
    let (mut code, mut message) = ("", "");
    while !headers.is_empty() {
        let (name, value, rest) = header(headers)?;
        headers = rest;
        let place = match name {
            b":message-type" => &mut kind,
            b":event-type" => &mut event,
            b":exception-type" => &mut exception,
            b":error-code" => &mut code,
            b":error-message" => &mut message,
            _ => continue,
        };
        *place = value.ok_or(Broken)?;
    }
    match kind {
        "event" => Ok(Kind::Event(event)),
        "exception" => Ok(Kind::Exception(exception)),
        "error" => Ok(Kind::Error { code, message }),
        _ => Err(Broken),
    }
}

/// The name of the first header, its value where that is a text, and the headers behind it.
type Header<'a> = (&'a [u8], Option<&'a str>, &'a [u8]);

fn header(headers: &[u8]) -> Result<Header<'_>, Broken> {
    let (length, rest) = headers.split_first().ok_or(Broken)?;
    let (name, rest) = rest.split_at_checked((*length).into()).ok_or(Broken)?;
    let (kind, rest) = rest.split_first().ok_or(Broken)?;
    let sized = |rest: &'_ [u8]| -> Result<usize, Broken> {
        let (length, _) = rest.split_first_chunk().ok_or(Broken)?;
        Ok(2 + usize::from(u16::from_be_bytes(*length)))
    };
    let bytes = match kind {
        // True and false.
        0 | 1 => 0,
        2 => 1,
        3 => 2,
        4 => 4,
        // A number, a time.
        5 | 8 => 8,
        // Bytes, a text.
        6 | 7 => sized(rest)?,
        // An id.
        9 => 16,
        _ => return Err(Broken),
    };
    let (value, rest) = rest.split_at_checked(bytes).ok_or(Broken)?;
    let text = match kind {
        7 => Some(str::from_utf8(value.get(2..).unwrap_or_default()).map_err(|_| Broken)?),
        _ => None,
    };
    Ok((name, text, rest))
}

#[cfg(test)]
mod tests;
