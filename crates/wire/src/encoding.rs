//! Content codings: a compressed response body, decoded while it passes.
//!
//! The bytes that are forwarded stay as they are; what is decoded is only read (for usage, for counting).
//! Invariant: one call gives at most [`PIECE_BYTES_MAX`] at a time, and all of them together at most
//! [`RATIO_MAX`] bytes for each one taken, beyond an allowance: what expands further is a fault.
//! Not here: what is read in the decoded bytes (`usage`, `sse`).

mod zstd;

use std::io::{self, Write};

use brotli_decompressor::DecompressorWriter;
use flate2::write::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};

use self::zstd::Zstd;

/// Decoded bytes that a coded one may come to.
pub const RATIO_MAX: u64 = 100;
/// Decoded bytes that are allowed whatever the ratio: the beginning of a stream is short.
const ALLOWANCE_BYTES: u64 = 256 << 10;
/// Coded bytes that are given to a decoder at once.
const STEP_BYTES: usize = 1 << 10;
/// Most decoded bytes that stand in memory at once; deflate gives at most 1,032 for one.
pub const PIECE_BYTES_MAX: usize = 2 << 20;

/// A coding that can be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coding {
    /// `gzip`, RFC 1952.
    Gzip,
    /// `deflate`: zlib (RFC 1950), or the bare deflate that some servers send under this name.
    Deflate,
    /// `br`, RFC 7932.
    Brotli,
    /// `zstd`, RFC 8878.
    Zstd,
}

impl Coding {
    /// Reads the value of a `content-encoding`. `None` for a list of several, and for what is not decoded here.
    #[must_use]
    pub fn of(value: &[u8]) -> Option<Self> {
        let value = value.trim_ascii();
        let is = |name: &[u8]| value.eq_ignore_ascii_case(name);
        if is(b"gzip") || is(b"x-gzip") {
            Some(Self::Gzip)
        } else if is(b"deflate") {
            Some(Self::Deflate)
        } else if is(b"br") {
            Some(Self::Brotli)
        } else if is(b"zstd") {
            Some(Self::Zstd)
        } else {
            None
        }
    }
}

impl Coding {
    /// The most that a decoder keeps of what it has decoded.
    #[must_use]
    pub const fn window_bytes(self) -> usize {
        match self {
            Self::Gzip | Self::Deflate => 32 << 10,
            Self::Brotli => 16 << 20,
            Self::Zstd => 8 << 20,
        }
    }
}

/// The body is not what its coding says, or expands beyond the bound. Nothing after it can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the compressed body cannot be decoded")]
pub struct CodingFault;

/// Decodes one body.
///
/// ```
/// use wire::encoding::{Coding, Decoder};
/// let mut decoder = Decoder::new(Coding::Deflate);
/// let mut text = Vec::new();
/// for byte in [0x78, 0x9c, 0xcb, 0x48, 0x04, 0x00, 0x01, 0x33, 0x00, 0xca] {
///     decoder.push(&[byte], |piece| text.extend_from_slice(piece)).unwrap();
/// }
/// assert_eq!(text, b"ha");
/// ```
pub struct Decoder {
    inner: Inner,
    taken: u64,
    given: u64,
}

enum Inner {
    /// The first bytes of a `deflate` body say which of its two forms it has.
    Undecided(Vec<u8>),
    Gzip(Box<MultiGzDecoder<Sink>>),
    Zlib(Box<ZlibDecoder<Sink>>),
    Deflate(Box<DeflateDecoder<Sink>>),
    Brotli(Box<DecompressorWriter<Sink>>),
    Zstd(Box<Zstd>),
    Broken,
}

/// Where a decoder puts what it decoded.
#[derive(Default)]
struct Sink(Vec<u8>);

impl Write for Sink {
    fn write(&mut self, decoded: &[u8]) -> io::Result<usize> {
        if self.0.len() + decoded.len() > PIECE_BYTES_MAX {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        self.0.extend_from_slice(decoded);
        Ok(decoded.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Decoder {
    /// For a body in this coding.
    #[must_use]
    pub fn new(coding: Coding) -> Self {
        Self {
            inner: match coding {
                Coding::Gzip => Inner::Gzip(Box::new(MultiGzDecoder::new(Sink::default()))),
                Coding::Deflate => Inner::Undecided(Vec::new()),
                Coding::Brotli => Inner::Brotli(Box::new(DecompressorWriter::new(
                    Sink::default(),
                    STEP_BYTES,
                ))),
                Coding::Zstd => Inner::Zstd(Box::new(Zstd::new())),
            },
            taken: 0,
            given: 0,
        }
    }

    /// Takes the next coded bytes, and gives `out` what they decode to.
    ///
    /// # Errors
    /// [`CodingFault`], also at every later call.
    pub fn push(&mut self, coded: &[u8], mut out: impl FnMut(&[u8])) -> Result<(), CodingFault> {
        for step in coded.chunks(STEP_BYTES) {
            self.step(step, &mut out).map_err(|_| {
                self.inner = Inner::Broken;
                CodingFault
            })?;
        }
        Ok(())
    }

    /// Whether text that has come may be given only once its frame is over.
    #[must_use]
    pub const fn keeps_text(&self) -> bool {
        matches!(self.inner, Inner::Zstd(_))
    }

    /// Ends the body: for gzip and zstd, whether all of it came and is what its checksum says.
    ///
    /// # Errors
    /// [`CodingFault`].
    pub fn finish(&mut self) -> Result<(), CodingFault> {
        let finished = match &mut self.inner {
            Inner::Gzip(decoder) => decoder.try_finish(),
            Inner::Zlib(decoder) => decoder.try_finish(),
            Inner::Deflate(decoder) => decoder.try_finish(),
            Inner::Brotli(decoder) => decoder.close(),
            Inner::Zstd(decoder) => decoder.finish(),
            Inner::Undecided(_) | Inner::Broken => Err(io::ErrorKind::InvalidData.into()),
        };
        finished.map_err(|_| CodingFault)
    }

    fn step(&mut self, step: &[u8], out: &mut impl FnMut(&[u8])) -> io::Result<()> {
        self.taken += step.len() as u64;
        let most = ALLOWANCE_BYTES.saturating_add(self.taken.saturating_mul(RATIO_MAX));
        let given = &mut self.given;
        let mut give = |decoded: &[u8]| {
            *given += decoded.len() as u64;
            if *given > most {
                return Err(io::ErrorKind::OutOfMemory.into());
            }
            if !decoded.is_empty() {
                out(decoded);
            }
            Ok(())
        };
        match &mut self.inner {
            Inner::Zstd(decoder) => decoder.step(step, give),
            inner => give(&inner.step(step)?),
        }
    }
}

impl Inner {
    fn step(&mut self, step: &[u8]) -> io::Result<Vec<u8>> {
        if let Self::Undecided(begun) = self {
            begun.extend_from_slice(step);
            let &[first, second, ..] = begun.as_slice() else {
                return Ok(Vec::new());
            };
            let begun = std::mem::take(begun);
            let header = u16::from_be_bytes([first, second]);
            *self = if first & 0x0f == 8 && header % 31 == 0 {
                Self::Zlib(Box::new(ZlibDecoder::new(Sink::default())))
            } else {
                Self::Deflate(Box::new(DeflateDecoder::new(Sink::default())))
            };
            return self.step(&begun);
        }
        match self {
            Self::Gzip(decoder) => written(&mut **decoder, step, MultiGzDecoder::get_mut),
            Self::Zlib(decoder) => written(&mut **decoder, step, ZlibDecoder::get_mut),
            Self::Deflate(decoder) => written(&mut **decoder, step, DeflateDecoder::get_mut),
            Self::Brotli(decoder) => written(&mut **decoder, step, DecompressorWriter::get_mut),
            Self::Undecided(_) | Self::Zstd(_) | Self::Broken => {
                Err(io::ErrorKind::InvalidData.into())
            }
        }
    }
}

/// Writes coded bytes to a decoder and takes what they came to.
fn written<D: Write>(
    decoder: &mut D,
    step: &[u8],
    sink: fn(&mut D) -> &mut Sink,
) -> io::Result<Vec<u8>> {
    decoder.write_all(step)?;
    decoder.flush()?;
    Ok(std::mem::take(&mut sink(decoder).0))
}

impl std::fmt::Debug for Decoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Decoder")
            .field("taken", &self.taken)
            .field("given", &self.given)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
