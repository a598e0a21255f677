//! Reads the chunked transfer coding, incrementally (RFC 9112, 7.1).
//!
//! Serves two callers: one that takes the data out, and one that forwards the raw bytes and only needs to know
//! where the body ends.
//! Invariant: trailers are never merged into anything; extensions and trailers are bounded per body.
//! Not here: the size of the whole body, which the caller bounds.

use crate::head::{HeadFault, HeadFaultKind, is_token, is_value_byte};

const MAX_CHUNK_BYTES: u64 = 1 << 53;
const MAX_SIZE_DIGITS: u8 = 16;
const MAX_EXTENSION_BYTES: usize = 4096;
const MAX_TRAILER_BYTES: usize = 8192;

/// An incremental reader of one chunked body.
#[derive(Debug, Clone)]
pub struct Chunked {
    state: State,
    remaining: u64,
    size_digits: u8,
    extension_bytes: usize,
    trailer_bytes: usize,
}

/// What the reader found at the start of the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChunkStep {
    /// The input holds no more data; call again with what follows the consumed bytes.
    NeedMore {
        /// Bytes taken; always the whole input.
        consumed: usize,
    },
    /// `input[skip..skip + len]` is data. Call again with what follows it.
    Data {
        /// Framing bytes before the data.
        skip: usize,
        /// Data bytes, at least 1.
        len: usize,
    },
    /// The body is over.
    End {
        /// Bytes taken; what follows belongs to the next message.
        consumed: usize,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Size,
    /// After `;`, before the name.
    ExtensionStart,
    ExtensionName,
    /// Blanks after a name.
    ExtensionNamed,
    /// After `=`, before the value.
    ExtensionEquals,
    ExtensionToken,
    ExtensionQuoted,
    /// After a backslash in quotes.
    ExtensionEscape,
    /// After a closing quote.
    ExtensionUnquoted,
    /// Blanks after a value.
    ExtensionValued,
    SizeLf,
    Data,
    DataCr,
    DataLf,
    TrailerStart,
    TrailerName,
    TrailerValue,
    TrailerLf,
    EndLf,
    End,
}

impl Default for Chunked {
    fn default() -> Self {
        Self::new()
    }
}

impl Chunked {
    /// A reader at the start of a body.
    #[must_use]
    pub fn new() -> Self {
        Self {
            state: State::Size,
            remaining: 0,
            size_digits: 0,
            extension_bytes: 0,
            trailer_bytes: 0,
        }
    }

    /// Whether the body is over.
    #[must_use]
    pub fn is_end(&self) -> bool {
        self.state == State::End
    }

    /// Takes framing from the start of `input` up to the next data or the end.
    ///
    /// # Errors
    /// Anything but strict chunked coding. The reader is of no use afterwards.
    pub fn next(&mut self, input: &[u8]) -> Result<ChunkStep, HeadFault> {
        let mut at = 0;
        loop {
            if self.state == State::End {
                return Ok(ChunkStep::End { consumed: at });
            }
            let Some(&byte) = input.get(at) else {
                return Ok(ChunkStep::NeedMore { consumed: at });
            };
            if self.state == State::Data {
                return Ok(self.take_data(at, input.len() - at));
            }
            if let Some(skip) = self.plain_size(input, at) {
                return Ok(self.take_data(skip, input.len() - skip));
            }
            self.step(byte)?;
            at += 1;
        }
    }

    /// The fast path through a size line that is whole and plain, and does not end the body: the place
    /// of the data after it. `None` says nothing.
    #[inline]
    fn plain_size(&mut self, input: &[u8], from: usize) -> Option<usize> {
        let at = match self.state {
            State::Size if self.size_digits == 0 => from,
            State::DataCr => from + 2,
            _ => return None,
        };
        let line = input.get(from..)?;
        if at > from && !line.starts_with(b"\r\n") {
            return None;
        }
        let mut size = 0;
        let mut digits = 0;
        let mut rest = input.get(at..)?.iter();
        let end = loop {
            let byte = *rest.next()?;
            match char::from(byte).to_digit(16) {
                Some(digit) => size = size << 4 | u64::from(digit),
                None => break byte,
            }
            digits += 1;
        };
        // Seven digits stay far below every bound.
        if !(1..8).contains(&digits) || size == 0 || end != b'\r' || rest.next() != Some(&b'\n') {
            return None;
        }
        let data = at + digits + 2;
        if data >= input.len() {
            return None;
        }
        (self.state, self.remaining, self.size_digits) = (State::Data, size, 0);
        Some(data)
    }

    fn take_data(&mut self, skip: usize, available: usize) -> ChunkStep {
        let len =
            usize::try_from(self.remaining).map_or(available, |remaining| remaining.min(available));
        self.remaining -= len as u64;
        if self.remaining == 0 {
            self.state = State::DataCr;
        }
        ChunkStep::Data { skip, len }
    }

    fn step(&mut self, byte: u8) -> Result<(), HeadFault> {
        self.state = match (self.state, byte) {
            (State::Size, b'\r') if self.size_digits > 0 => State::SizeLf,
            (State::Size, b';') if self.size_digits > 0 => self.extension(State::ExtensionStart)?,
            (State::Size, _) => self.size_digit(byte)?,
            (
                State::ExtensionStart
                | State::ExtensionName
                | State::ExtensionNamed
                | State::ExtensionEquals
                | State::ExtensionToken
                | State::ExtensionQuoted
                | State::ExtensionEscape
                | State::ExtensionUnquoted
                | State::ExtensionValued,
                _,
            ) => self.in_extension(byte)?,
            (State::SizeLf, b'\n') => self.after_size(),
            (State::DataCr, b'\r') => State::DataLf,
            (State::DataLf, b'\n') => State::Size,
            (State::SizeLf | State::DataCr | State::DataLf, _) => {
                return Err(HeadFaultKind::ChunkEnd.into());
            }
            (State::TrailerStart, b'\r') => State::EndLf,
            (State::TrailerStart | State::TrailerName, _) if is_token(byte) => {
                self.trailer(State::TrailerName)?
            }
            (State::TrailerName, b':') => self.trailer(State::TrailerValue)?,
            (State::TrailerValue, b'\r') => self.trailer(State::TrailerLf)?,
            (State::TrailerValue, _) if is_value_byte(byte) => self.trailer(State::TrailerValue)?,
            (State::TrailerLf, b'\n') => self.trailer(State::TrailerStart)?,
            (State::EndLf, b'\n') => State::End,
            _ => return Err(HeadFaultKind::Trailer.into()),
        };
        Ok(())
    }

    fn size_digit(&mut self, byte: u8) -> Result<State, HeadFault> {
        let fault = HeadFaultKind::ChunkSize;
        let digit = char::from(byte).to_digit(16).ok_or(fault)?;
        self.size_digits = self.size_digits.saturating_add(1);
        self.remaining = (self.remaining << 4) | u64::from(digit);
        if self.size_digits > MAX_SIZE_DIGITS || self.remaining > MAX_CHUNK_BYTES {
            return Err(fault.into());
        }
        Ok(State::Size)
    }

    /// `; name [= value]`, a value being a token or a quoted string, blanks around each (RFC 9112, 7.1.1).
    #[cold]
    fn in_extension(&mut self, byte: u8) -> Result<State, HeadFault> {
        let blank = matches!(byte, b' ' | b'\t');
        let next = match (self.state, byte) {
            (State::ExtensionName | State::ExtensionToken | State::ExtensionUnquoted, b'\r') => {
                return Ok(State::SizeLf);
            }
            (State::ExtensionStart | State::ExtensionName, _) if is_token(byte) => {
                State::ExtensionName
            }
            (State::ExtensionEquals | State::ExtensionToken, _) if is_token(byte) => {
                State::ExtensionToken
            }
            (State::ExtensionStart | State::ExtensionEquals, _) if blank => self.state,
            (State::ExtensionName | State::ExtensionNamed, _) if blank => State::ExtensionNamed,
            (State::ExtensionToken | State::ExtensionUnquoted | State::ExtensionValued, _)
                if blank =>
            {
                State::ExtensionValued
            }
            (State::ExtensionName | State::ExtensionNamed, b'=') => State::ExtensionEquals,
            (
                State::ExtensionName
                | State::ExtensionNamed
                | State::ExtensionToken
                | State::ExtensionUnquoted
                | State::ExtensionValued,
                b';',
            ) => State::ExtensionStart,
            (State::ExtensionEquals, b'"') => State::ExtensionQuoted,
            (State::ExtensionQuoted, b'"') => State::ExtensionUnquoted,
            (State::ExtensionQuoted, b'\\') => State::ExtensionEscape,
            (State::ExtensionQuoted | State::ExtensionEscape, _) if is_value_byte(byte) => {
                State::ExtensionQuoted
            }
            _ => return Err(HeadFaultKind::ChunkExtension.into()),
        };
        self.extension(next)
    }

    fn extension(&mut self, next: State) -> Result<State, HeadFault> {
        self.extension_bytes += 1;
        if self.extension_bytes > MAX_EXTENSION_BYTES {
            return Err(HeadFaultKind::ChunkExtension.into());
        }
        Ok(next)
    }

    fn after_size(&mut self) -> State {
        self.size_digits = 0;
        if self.remaining == 0 {
            State::TrailerStart
        } else {
            State::Data
        }
    }

    fn trailer(&mut self, next: State) -> Result<State, HeadFault> {
        self.trailer_bytes += 1;
        if self.trailer_bytes > MAX_TRAILER_BYTES {
            return Err(HeadFaultKind::Trailer.into());
        }
        Ok(next)
    }
}
