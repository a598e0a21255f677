//! Buffers that come back: read buffers, lent to the bodies that came in them, and small ones for what leaves.
//!
//! A body of 32 KiB costs a microsecond to copy; its buffer is handed on instead and the worker reads on
//! with another.
//! Invariant: a thread that reads keeps at most [`SPARE`] buffers that nobody uses, and no other thread any: what is
//! dropped there (a request that was counted) lies in one place for all readers, at most [`RETURNED`] of them.
//! Not here: when lending pays (`downstream`).

use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::sync::{Mutex, PoisonError, TryLockError};

use bytes::Bytes;
use wire::head::ResponseHead;

/// Bytes that one read takes at most; also the most that one stream may hold back (faults U9).
pub(crate) const BUFFER_BYTES: usize = 64 << 10;
/// Buffers a thread keeps for reuse: 4 MiB, once so many bodies were under way at one time.
const SPARE: usize = 64;

/// The most that a small buffer grows to and is kept.
const SMALL_BYTES: usize = 4 << 10;

/// Buffers that were dropped on other threads and wait for one that reads: 8 MiB.
const RETURNED: usize = 128;

thread_local! {
    /// Of a thread that reads.
    static SPARES: RefCell<Option<Vec<Box<[u8]>>>> = const { RefCell::new(None) };
}

static DROPPED_ELSEWHERE: Mutex<Vec<Box<[u8]>>> = Mutex::new(Vec::new());

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
        SPARES.with_borrow_mut(|spares| _ = spares.get_or_insert_default());
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
    let spare = SPARES.with_borrow_mut(|spares| {
        let spares = spares.as_mut()?;
        if spares.is_empty() {
            fetch_returned(spares);
        }
        spares.pop()
    });
    spare.unwrap_or_else(|| vec![0; BUFFER_BYTES].into_boxed_slice())
}

/// Takes half of what other threads dropped, unless one of them is there just now: a worker waits for nobody.
fn fetch_returned(spares: &mut Vec<Box<[u8]>>) {
    let returned = match DROPPED_ELSEWHERE.try_lock() {
        Ok(returned) => Some(returned),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    };
    if let Some(mut returned) = returned {
        let kept = returned.len() / 2;
        spares.extend(returned.drain(kept..).take(SPARE));
    }
}

/// Keeps a buffer for the next read: here, where this thread reads, or else for those that do.
fn keep(buffer: Box<[u8]>) {
    // A thread that is ending keeps nothing.
    let _: Result<(), _> = SPARES.try_with(|spares| match &mut *spares.borrow_mut() {
        Some(spares) if spares.len() < SPARE => spares.push(buffer),
        Some(_) => {}
        None => {
            let returned = DROPPED_ELSEWHERE.lock();
            let mut returned = returned.unwrap_or_else(PoisonError::into_inner);
            if returned.len() < RETURNED {
                returned.push(buffer);
            }
        }
    });
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
        if buffer.len() == BUFFER_BYTES {
            keep(buffer);
        }
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
        let _reader = Buffers::default();
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

    #[test]
    fn a_buffer_that_another_thread_drops_comes_back_to_one_that_reads() {
        let _reader = Buffers::default();
        let places: Vec<usize> = (0..8)
            .map(|_| {
                let part = lend(vec![0; BUFFER_BYTES].into(), 0..BUFFER_BYTES);
                let place = part.as_ptr() as usize;
                let dropped = std::thread::spawn(move || drop(part)).join();
                dropped.expect("no panic");
                place
            })
            .collect();
        // Other tests of this process may take some of them.
        let taken: Vec<Box<[u8]>> = (0..RETURNED).map(|_| take()).collect();
        let came_back = |place: &&usize| taken.iter().any(|b| b.as_ptr() as usize == **place);
        assert!(places.iter().filter(came_back).count() > 0);
    }
}
