//! `zstd`, RFC 8878: frames, decoded as their bytes come.
//!
//! Invariant: one block is decoded at a time, which comes to 128 KiB at most; a frame's window is at most [`WINDOW_BYTES_MAX`].
//! Not here: bounds on what it all comes to (`encoding`).

use std::io::{self, ErrorKind};

use ruzstd::decoding::FrameDecoder;

/// The largest window of a frame, as RFC 9659 bounds it for HTTP. Text within it is given once the frame is over.
const WINDOW_BYTES_MAX: u64 = 8 << 20;
/// The longest block.
const BLOCK_BYTES_MAX: usize = 128 << 10;
/// Decoded bytes that are taken at once.
const PIECE_BYTES: usize = 16 << 10;
const MAGIC: u32 = 0xfd2f_b528;
/// Of frames that hold no text, but for their last four bits.
const SKIPPABLE: u32 = 0x184d_2a50;
const BLOCK_HEADER_BYTES: usize = 3;
const CHECKSUM_BYTES: usize = 4;

pub(super) struct Zstd {
    frame: FrameDecoder,
    /// Bytes that were not decoded yet.
    waiting: Vec<u8>,
    place: Place,
    piece: Box<[u8]>,
}

/// What comes next.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// The first frame.
    Start,
    /// Another frame, or nothing.
    Between,
    /// A block.
    Inside { is_checked: bool },
    /// The checksum of a frame whose blocks have come.
    Checksum,
    /// So many bytes that are no text.
    Skipping { bytes: usize },
}

/// What a frame begins with, and how long that is.
enum Opening {
    Frame { bytes: usize, is_checked: bool },
    Skippable { bytes: usize, holds: usize },
}

impl Zstd {
    pub(super) fn new() -> Self {
        let mut frame = FrameDecoder::new();
        frame.set_max_window_size(WINDOW_BYTES_MAX);
        Self {
            frame,
            waiting: Vec::new(),
            place: Place::Start,
            piece: vec![0; PIECE_BYTES].into(),
        }
    }

    /// Takes the next bytes; what they decode to goes to `out`.
    pub(super) fn step(
        &mut self,
        coded: &[u8],
        mut out: impl FnMut(&[u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        self.waiting.extend_from_slice(coded);
        while let Some(next) = self.next(&mut out)? {
            self.place = next;
        }
        Ok(())
    }

    /// Takes what comes next, where it is there, and gives what comes after it.
    fn next(&mut self, out: &mut impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<Option<Place>> {
        match self.place {
            Place::Start | Place::Between => match opening(&self.waiting)? {
                None => Ok(None),
                Some(Opening::Skippable { bytes, holds }) => {
                    self.waiting.drain(..bytes);
                    Ok(Some(Place::Skipping { bytes: holds }))
                }
                Some(Opening::Frame { bytes, is_checked }) => {
                    let head: Vec<u8> = self.waiting.drain(..bytes).collect();
                    self.frame.reset(&head[..]).map_err(fault)?;
                    Ok(Some(Place::Inside { is_checked }))
                }
            },
            Place::Skipping { bytes } => {
                let gone = bytes.min(self.waiting.len());
                self.waiting.drain(..gone);
                Ok(match bytes - gone {
                    0 => Some(Place::Between),
                    _ if gone == 0 => None,
                    left => Some(Place::Skipping { bytes: left }),
                })
            }
            Place::Inside { is_checked } => {
                let Some((length, is_last)) = block(&self.waiting)? else {
                    return Ok(None);
                };
                let coded: Vec<u8> = self.waiting.drain(..length).collect();
                self.decode(&coded, out)?;
                Ok(Some(match (is_last, is_checked) {
                    (false, _) => Place::Inside { is_checked },
                    (true, true) => Place::Checksum,
                    (true, false) => Place::Between,
                }))
            }
            Place::Checksum => {
                if self.waiting.len() < CHECKSUM_BYTES {
                    return Ok(None);
                }
                let said: Vec<u8> = self.waiting.drain(..CHECKSUM_BYTES).collect();
                // What is left of the text comes after it.
                self.decode(&said, out)?;
                self.decode(&[], out)?;
                let said = self.frame.get_checksum_from_data();
                if said == self.frame.get_calculated_checksum() {
                    Ok(Some(Place::Between))
                } else {
                    Err(ErrorKind::InvalidData.into())
                }
            }
        }
    }

    /// Decodes a block or a checksum that is whole, and gives what can be given now: once the frame is over all of it.
    fn decode(
        &mut self,
        coded: &[u8],
        out: &mut impl FnMut(&[u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut coded = coded;
        loop {
            let decoded = self.frame.decode_from_to(coded, &mut self.piece);
            let (taken, given) = decoded.map_err(fault)?;
            if taken < coded.len() {
                return Err(ErrorKind::InvalidData.into());
            }
            out(self.piece.get(..given).unwrap_or_default())?;
            if given < self.piece.len() {
                return Ok(());
            }
            coded = &[];
        }
    }

    /// Whether all frames that began are over.
    pub(super) fn finish(&self) -> io::Result<()> {
        if self.place == Place::Between && self.waiting.is_empty() {
            Ok(())
        } else {
            Err(ErrorKind::UnexpectedEof.into())
        }
    }
}

/// What stands at the beginning of a frame; `None` where more must come to say.
fn opening(begun: &[u8]) -> io::Result<Option<Opening>> {
    let Some((magic, rest)) = begun.split_first_chunk() else {
        return Ok(None);
    };
    let magic = u32::from_le_bytes(*magic);
    if magic & !0xf == SKIPPABLE {
        let holds = rest.first_chunk().map(|holds| u32::from_le_bytes(*holds));
        return Ok(holds.map(|holds| Opening::Skippable {
            bytes: 8,
            holds: usize::try_from(holds).unwrap_or(usize::MAX),
        }));
    }
    if magic != MAGIC {
        return Err(ErrorKind::InvalidData.into());
    }
    let Some(&descriptor) = rest.first() else {
        return Ok(None);
    };
    let is_single = descriptor & 0x20 != 0;
    let dictionary = match descriptor & 3 {
        0 => 0,
        1 => 1,
        2 => 2,
        _ => 4,
    };
    let content = match descriptor >> 6 {
        0 => usize::from(is_single),
        1 => 2,
        2 => 4,
        _ => 8,
    };
    let bytes = 5 + usize::from(!is_single) + dictionary + content;
    Ok((begun.len() >= bytes).then_some(Opening::Frame {
        bytes,
        is_checked: descriptor & 4 != 0,
    }))
}

/// The length of a block, with its header, and whether it is the frame's last; `None` where it is not whole.
fn block(begun: &[u8]) -> io::Result<Option<(usize, bool)>> {
    let Some(&[low, middle, high]) = begun.first_chunk::<BLOCK_HEADER_BYTES>() else {
        return Ok(None);
    };
    let header = u32::from_le_bytes([low, middle, high, 0]);
    let size = usize::try_from(header >> 3).unwrap_or(usize::MAX);
    // A block that repeats one byte has that alone.
    let held = if header >> 1 & 3 == 1 { 1 } else { size };
    if size > BLOCK_BYTES_MAX {
        return Err(ErrorKind::InvalidData.into());
    }
    let length = BLOCK_HEADER_BYTES + held;
    Ok((begun.len() >= length).then_some((length, header & 1 == 1)))
}

fn fault<E>(_: E) -> io::Error {
    ErrorKind::InvalidData.into()
}
