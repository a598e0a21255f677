//! A look at the header blocks of a client's HTTP/2 connection, as its bytes pass to the library that reads them.
//!
//! The library takes two malformed things without a word: it cuts a fragment off a `:path`, and drops
//! pseudo-fields of trailers. Both are made visible to it by changing a byte in place, so that it answers as it
//! does to everything malformed: the fragment's `#` becomes `>`, which no path may hold (the stream is reset), and
//! a field of trailers whose name begins with a colon becomes one of index 0 (the connection ends).
//! Invariant: no byte is added or taken away, and this reader's table holds entries of the same sizes as the
//! library's; the answer is the same for every way to cut the bytes, but for trailers, which may end in a fault.
//! Not here: the fields themselves, which hyper gives.
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic
)]

mod field;
mod huffman;
mod table;

pub use self::field::MalformedBlock;

use self::field::Fields;

/// Follows one direction of a connection, from the client's preface on.
#[derive(Debug)]
pub struct HeaderBlocks {
    part: Part,
    /// What the frame has left after its fragment of a block.
    padding: u32,
    /// The frame ends its block.
    ends_block: bool,
    stream: u32,
    /// The last stream that was opened; a block on an earlier one, or on it, is of trailers.
    last_stream: u32,
    fields: Fields,
}

/// What comes next.
#[derive(Clone, Copy, Debug)]
enum Part {
    /// Bytes that nobody looks at.
    Skip(u32),
    /// A frame's head, of which so many bytes have come.
    Head([u8; HEAD_BYTES], usize),
    /// The length of the padding; then a fragment, where that and what comes before it have so many bytes.
    Padding { has_priority: bool, length: u32 },
    /// The priority, of which so many bytes have come; then a fragment.
    Priority([u8; PRIORITY_BYTES], usize, u32),
    /// So many bytes of a header block.
    Fragment(u32),
}

const PREFACE_BYTES: u32 = 24;
const HEAD_BYTES: usize = 9;
const PRIORITY_BYTES: usize = 5;
/// Frames and flags (RFC 9113, 6).
const HEADERS: u8 = 1;
const CONTINUATION: u8 = 9;
const END_HEADERS: u8 = 4;
const PADDED: u8 = 8;
const PRIORITY: u8 = 0x20;
/// The highest bit of a stream's id has no meaning.
const STREAM: u32 = 0x7fff_ffff;

impl Default for HeaderBlocks {
    fn default() -> Self {
        Self {
            part: Part::Skip(PREFACE_BYTES),
            padding: 0,
            ends_block: false,
            stream: 0,
            last_stream: 0,
            fields: Fields::default(),
        }
    }
}

impl HeaderBlocks {
    /// Looks at the next bytes, and changes those that make a block malformed.
    ///
    /// # Errors
    /// A malformed block whose beginning has passed already.
    pub fn read(&mut self, bytes: &mut [u8]) -> Result<(), MalformedBlock> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let taken = self.take(rest)?;
            rest = rest.get_mut(taken..).unwrap_or_default();
        }
        Ok(())
    }

    /// Takes one part, or as much of it as there is. Gives how many bytes that was.
    fn take(&mut self, bytes: &mut [u8]) -> Result<usize, MalformedBlock> {
        match &mut self.part {
            Part::Skip(left) => {
                let taken = cut(*left, bytes.len());
                *left = left.saturating_sub(length(taken));
                if *left == 0 {
                    self.part = Part::Head([0; HEAD_BYTES], 0);
                }
                Ok(taken)
            }
            Part::Head(head, have) => {
                let taken = fill(head, have, bytes);
                if *have == HEAD_BYTES {
                    let head = *head;
                    self.begin(head);
                }
                Ok(taken)
            }
            Part::Padding {
                has_priority,
                length,
            } => {
                let (has_priority, length) = (*has_priority, length.saturating_sub(1));
                self.padding = u32::from(bytes.first().copied().unwrap_or_default());
                let length = length.saturating_sub(self.padding);
                self.part = fragment(has_priority, length);
                Ok(1)
            }
            Part::Priority(priority, have, length) => {
                let taken = fill(priority, have, bytes);
                if *have == PRIORITY_BYTES {
                    let [a, b, c, d, _] = *priority;
                    // The library resets such a stream and does not read its block: the tables would differ.
                    if u32::from_be_bytes([a, b, c, d]) & STREAM == self.stream {
                        return Err(MalformedBlock);
                    }
                    self.part = Part::Fragment(*length);
                    self.end_if_empty();
                }
                Ok(taken)
            }
            Part::Fragment(left) => {
                let taken = cut(*left, bytes.len());
                *left = left.saturating_sub(length(taken));
                let block = bytes.get_mut(..taken).unwrap_or_default();
                self.fields.read(block)?;
                self.end_if_empty();
                Ok(taken)
            }
        }
    }

    fn begin(&mut self, head: [u8; HEAD_BYTES]) {
        let [l0, l1, l2, kind, flags, s0, s1, s2, s3] = head;
        let length = u32::from_be_bytes([0, l0, l1, l2]);
        let stream = u32::from_be_bytes([s0, s1, s2, s3]) & STREAM;
        self.padding = 0;
        self.ends_block = flags & END_HEADERS != 0;
        let has_priority = flags & PRIORITY != 0;
        self.part = match kind {
            HEADERS => {
                self.stream = stream;
                self.fields.begin(stream <= self.last_stream);
                self.last_stream = self.last_stream.max(stream);
                match flags & PADDED {
                    0 => fragment(has_priority, length),
                    _ => Part::Padding {
                        has_priority,
                        length,
                    },
                }
            }
            CONTINUATION => Part::Fragment(length),
            _ if length == 0 => Part::Head([0; HEAD_BYTES], 0),
            _ => Part::Skip(length),
        };
        self.end_if_empty();
    }

    /// Goes on to what follows a fragment that is over.
    fn end_if_empty(&mut self) {
        if !matches!(self.part, Part::Fragment(0)) {
            return;
        }
        self.part = match self.padding {
            0 => Part::Head([0; HEAD_BYTES], 0),
            padding => Part::Skip(padding),
        };
        if self.ends_block {
            self.fields.end();
        }
    }
}

fn fragment(has_priority: bool, length: u32) -> Part {
    if has_priority {
        let rest = length.saturating_sub(PRIORITY_BYTES as u32);
        Part::Priority([0; PRIORITY_BYTES], 0, rest)
    } else {
        Part::Fragment(length)
    }
}

/// Takes bytes into what is still missing. Gives how many.
fn fill(to: &mut [u8], have: &mut usize, bytes: &[u8]) -> usize {
    let missing = to.get_mut(*have..).unwrap_or_default();
    let taken = missing.len().min(bytes.len());
    missing
        .iter_mut()
        .zip(bytes)
        .for_each(|(to, from)| *to = *from);
    *have += taken;
    taken
}

fn cut(left: u32, there: usize) -> usize {
    there.min(usize::try_from(left).unwrap_or(usize::MAX))
}

/// Of bytes of a frame, which has fewer than 2^24.
fn length(taken: usize) -> u32 {
    u32::try_from(taken).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
