//! Finds a field name among the known ones, in about forty instructions and without copying it.
//!
//! Invariant: no two names share a slot, checked when compiling; a name is compared with one name.
//! Not here: the names (`known`).

use super::{Known, NAMES};

impl Known {
    /// The kind of a name, in any case.
    #[must_use]
    pub fn of(name: &[u8]) -> Self {
        if name.iter().any(u8::is_ascii_control) {
            return Self::Other;
        }
        Self::of_start(name, name.len())
    }

    /// The kind of the name that is the first `len` bytes of a text. There must be no control character in
    /// it: such a one can pass for a hyphen or a digit.
    #[inline(always)]
    pub(crate) fn of_start(text: &[u8], len: usize) -> Self {
        let (Some(name), Some(start)) = (text.get(..len), text.first_chunk()) else {
            return of_end(text, len);
        };
        let (Some(first), Some(last)) = (name.first_chunk(), name.last_chunk()) else {
            return of_few(name);
        };
        let start = lower(*start);
        let candidate = SLOTS
            .get(slot(*first, *last, len))
            .and_then(|&at| ENTRIES.get(usize::from(at)));
        match candidate {
            Some(entry) if entry.is(start, name) => entry.known,
            _ if start & AMZ.counts == AMZ.start => Self::Amz,
            _ => Self::Other,
        }
    }
}

/// A name laid out for comparison.
struct Entry {
    /// The first bytes, and ones where they count.
    start: u128,
    counts: u128,
    /// The last bytes of a name that is longer.
    last: [u8; 8],
    len: usize,
    known: Known,
}

const START_BYTES: usize = size_of::<u128>();

impl Entry {
    #[inline]
    fn is(&self, start: u128, name: &[u8]) -> bool {
        self.len == name.len()
            && start & self.counts == self.start
            && (self.len <= START_BYTES || self.ends(name))
    }

    fn ends(&self, name: &[u8]) -> bool {
        let last = name.last_chunk::<8>();
        last.is_some_and(|last| self.last.eq_ignore_ascii_case(last))
    }

    #[expect(clippy::indexing_slicing, reason = "evaluated when compiling")]
    const fn new(name: &str, known: Known) -> Self {
        let bytes = name.as_bytes();
        assert!(
            bytes.len() <= START_BYTES + 8,
            "`start` and `last` must cover the name"
        );
        let (mut start, mut counts) = ([0; START_BYTES], [0; START_BYTES]);
        let mut at = 0;
        while at < bytes.len() && at < START_BYTES {
            assert!(
                bytes[at] & 0x20 != 0,
                "`lower` must leave the name as it is"
            );
            (start[at], counts[at]) = (bytes[at], u8::MAX);
            at += 1;
        }
        let last = match bytes.last_chunk() {
            Some(last) => *last,
            None => [0; 8],
        };
        Self {
            start: u128::from_ne_bytes(start),
            counts: u128::from_ne_bytes(counts),
            last,
            len: bytes.len(),
            known,
        }
    }
}

static AMZ: Entry = Entry::new("x-amz-", Known::Amz);

/// `NAMES` in the same order.
static ENTRIES: [Entry; NAMES.len()] = entries();

/// Letters in lower case; hyphens and digits as they are, other visible bytes as something else.
#[inline]
fn lower(bytes: [u8; START_BYTES]) -> u128 {
    u128::from_ne_bytes(bytes) | u128::from_ne_bytes([0x20; START_BYTES])
}

/// The kind of a name at the end of a text, which cannot be looked at as it lies.
#[cold]
#[inline(never)]
fn of_end(text: &[u8], len: usize) -> Known {
    let mut bytes = [0; START_BYTES];
    bytes
        .iter_mut()
        .zip(text)
        .for_each(|(to, byte)| *to = *byte);
    if len <= text.len() && text.len() < START_BYTES {
        Known::of_start(&bytes, len)
    } else {
        Known::Other
    }
}

/// The kind of a name of fewer letters than are hashed.
#[cold]
#[inline(never)]
fn of_few(name: &[u8]) -> Known {
    NAMES
        .iter()
        .find(|(lower, _)| lower.as_bytes().eq_ignore_ascii_case(name))
        .map_or(Known::Other, |(_, known)| *known)
}

const SLOT_COUNT: usize = 256;

/// The position in `NAMES` of the one name that can be equal; out of range where there is none.
static SLOTS: [u8; SLOT_COUNT] = slots();

/// A hash of length, first and last letters, without collision among `NAMES`. The factor was found by
/// search; `slots` does not compile when a new name makes two collide.
#[inline]
const fn slot(first: [u8; 4], last: [u8; 4], len: usize) -> usize {
    const LOWER: u32 = 0x2020_2020;
    let first = (u32::from_le_bytes(first) | LOWER) as usize;
    let last = (u32::from_le_bytes(last) | LOWER) as usize;
    let mixed = first.wrapping_add(last).wrapping_add(len);
    (mixed.wrapping_mul(0x1ae4_9449) >> 24) % SLOT_COUNT
}

#[expect(clippy::indexing_slicing, reason = "evaluated when compiling")]
const fn entries() -> [Entry; NAMES.len()] {
    let mut entries = [const { Entry::new("", Known::Other) }; NAMES.len()];
    let mut at = 0;
    while at < NAMES.len() {
        entries[at] = Entry::new(NAMES[at].0, NAMES[at].1);
        at += 1;
    }
    entries
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::indexing_slicing,
    reason = "evaluated when compiling, where a fault is a compile error"
)]
const fn slots() -> [u8; SLOT_COUNT] {
    const FREE: u8 = u8::MAX;
    assert!(NAMES.len() < 126, "one bit a name in `bit`");
    let mut slots = [FREE; SLOT_COUNT];
    let mut at = 0;
    while at < NAMES.len() {
        let name = NAMES[at].0.as_bytes();
        if let (Some(first), Some(last)) = (name.first_chunk(), name.last_chunk()) {
            let slot = slot(*first, *last, name.len());
            assert!(
                slots[slot] == FREE,
                "two names collide: search for another factor"
            );
            slots[slot] = at as u8;
        }
        at += 1;
    }
    slots
}
