//! Buffers that come back: read buffers, lent to the bodies that came in them, and small ones for what leaves.
//!
//! A body of 32 KiB costs a microsecond to copy; its buffer is handed on instead and the worker reads on
//! with another.
//! Invariant: a thread keeps at most [`SPARE`] buffers that nobody uses.
//! Not here: when lending pays (`downstream`).

use std::cell::{Cell, RefCell};
use std::ops::Range;

use bytes::Bytes;
use wire::head::ResponseHead;

/// Bytes that one read takes at most; also the most that one stream may hold back (faults U9).
pub(crate) const BUFFER_BYTES: usize = 64 << 10;
/// Buffers a thread keeps for reuse: 4 MiB, once so many bodies were under way at one time.
const SPARE: usize = 64;

/// The most that a small buffer grows to and is kept.
const SMALL_BYTES: usize = 4 << 10;

thread_local! {
    static SPARES: RefCell<Vec<Box<[u8]>>> = const { RefCell::new(Vec::new()) };
}

/// The buffers that one worker's exchanges share.
pub(crate) struct Buffers {
    /// For what is read; borrowed only between two polls' waits, never across one.
    scratch: RefCell<Box<[u8]>>,
    /// For a short request on its way out.
    pub(crate) sending: Spare,
    /// For a short piece of an answer.
    pub(crate) answering: Spare,
    /// Room for the head of an answer.
    pub(crate) answered: Cell<Option<Box<ResponseHead>>>,
}

impl Default for Buffers {
    fn default() -> Self {
        Self {
            scratch: RefCell::new(take()),
            sending: Spare::default(),
            answering: Spare::default(),
            answered: Cell::default(),
        }
    }
}

impl Buffers {
    /// Lends the read buffer; must not be nested.
    #[inline(always)]
    pub(crate) fn scratch<T>(&self, with: impl FnOnce(&mut [u8]) -> T) -> T {
        with(&mut self.scratch.borrow_mut())
    }

    /// Hands on the read buffer for the part of it that holds a body, and reads on with another.
    pub(crate) fn hand_over(&self, range: Range<usize>) -> Bytes {
        lend(self.another(), range)
    }

    /// Keeps part of the read buffer as it is for a moment, and reads on with another.
    pub(crate) fn hold(&self, range: Range<usize>) -> PooledBuf {
        PooledBuf::new(self.another(), range)
    }

    fn another(&self) -> Box<[u8]> {
        std::mem::replace(&mut *self.scratch.borrow_mut(), take())
    }
}

/// A buffer, with whatever bytes were in it before.
fn take() -> Box<[u8]> {
    let spare = SPARES.with_borrow_mut(Vec::pop);
    spare.unwrap_or_else(|| vec![0; BUFFER_BYTES].into_boxed_slice())
}

/// Part of a buffer as bytes; the buffer is free again when the last of them is dropped.
fn lend(buffer: Box<[u8]>, range: Range<usize>) -> Bytes {
    Bytes::from_owner(PooledBuf { buffer, range })
}

/// A buffer out of use, for what lies in part of it.
pub(crate) struct PooledBuf {
    buffer: Box<[u8]>,
    range: Range<usize>,
}

impl PooledBuf {
    /// Part of a read buffer.
    pub(crate) fn new(buffer: Box<[u8]>, range: Range<usize>) -> Self {
        Self { buffer, range }
    }

    /// Bytes that lie elsewhere.
    pub(crate) fn copied(bytes: &[u8]) -> Self {
        Self::new(bytes.into(), 0..bytes.len())
    }

    pub(crate) fn as_mut(&mut self) -> &mut [u8] {
        self.buffer.get_mut(self.range.clone()).unwrap_or_default()
    }
}

impl AsRef<[u8]> for PooledBuf {
    fn as_ref(&self) -> &[u8] {
        self.buffer.get(self.range.clone()).unwrap_or_default()
    }
}

impl Drop for PooledBuf {
    fn drop(&mut self) {
        let buffer = std::mem::take(&mut self.buffer);
        if buffer.len() != BUFFER_BYTES {
            return;
        }
        // A thread that is ending keeps nothing.
        let _: Result<(), _> = SPARES.try_with(|spares| {
            let mut spares = spares.borrow_mut();
            if spares.len() < SPARE {
                spares.push(buffer);
            }
        });
    }
}

/// A small buffer for what leaves at once: it is taken, filled, and given back for the next.
#[derive(Default)]
pub(crate) struct Spare(Cell<Vec<u8>>);

impl Spare {
    /// The buffer, empty; another where somebody has it.
    pub(crate) fn take(&self) -> Vec<u8> {
        self.0.take()
    }

    /// Keeps it, unless it grew large.
    pub(crate) fn give(&self, mut buffer: Vec<u8>) {
        if (1..=SMALL_BYTES).contains(&buffer.capacity()) {
            buffer.clear();
            self.0.set(buffer);
        }
    }
}

/// Appends `n` in decimal.
pub(crate) fn decimal(n: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(n).as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_comes_back_when_its_last_part_is_dropped() {
        let mut buffer = take();
        buffer[..5].copy_from_slice(b"hello");
        let place = buffer.as_ptr();
        let part = lend(buffer, 1..4);
        let smaller = part.slice(1..);
        drop(part);
        assert_eq!(&smaller[..], b"ll");
        let other = take();
        assert_ne!(other.as_ptr(), place);
        drop(smaller);
        let again = take();
        assert_eq!(again.as_ptr(), place);
    }
}
