//! The containers that are open: all of them, or those above a floor in one word.
//!
//! Invariant: no more than [`DEPTH_LIMIT`] are ever open.
//! Not here: what opens and closes them (`scan`, `skip`).

use super::DEPTH_LIMIT;

/// The containers that are open.
#[derive(Clone, Copy, Debug)]
pub(super) struct ContainerStack {
    pub(super) depth: u32,
    /// A bit for each open container, the innermost lowest: it is an object.
    objects: u128,
    /// As many as may be open.
    pub(super) most: u32,
}

impl ContainerStack {
    pub(super) const fn new() -> Self {
        Self {
            depth: 0,
            objects: 0,
            most: DEPTH_LIMIT,
        }
    }

    /// Directly inside of an object at this depth, for a reader that does not look further out.
    #[inline]
    pub(super) const fn inside(depth: u32) -> Self {
        Self {
            depth,
            objects: 1,
            most: DEPTH_LIMIT,
        }
    }

    /// Opens a container. False when there are as many as may be.
    #[inline]
    pub(super) fn open(&mut self, object: bool) -> bool {
        if self.depth == self.most {
            return false;
        }
        self.depth += 1;
        self.objects = (self.objects << 1) | u128::from(object);
        true
    }

    #[inline]
    pub(super) fn close(&mut self) {
        self.depth -= 1;
        self.objects >>= 1;
    }

    #[inline]
    pub(super) fn in_object(&self) -> bool {
        self.objects & 1 == 1
    }

    /// Those above container number `floor`. `None` where they are more than a word can tell of.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the lower half")]
    pub(super) fn above(&self, floor: u32) -> Option<Above> {
        let count = self.depth.checked_sub(floor)?;
        let below = 1_u64.checked_shl(count)?;
        let most = self.most.checked_sub(floor)?;
        Some(Above {
            open: below | self.objects as u64 & (below - 1),
            full: 1 << most.min(u64::BITS - 1),
        })
    }

    /// What has become of those above `floor`.
    #[inline]
    pub(super) fn put_back(&mut self, floor: u32, above: Above) {
        let count = above.open.ilog2();
        let below = self.objects >> (self.depth - floor);
        self.depth = floor + count;
        self.objects = below << count | u128::from(above.open ^ 1 << count);
    }
}

/// The open containers above a floor.
#[derive(Clone, Copy, Debug)]
pub(super) struct Above {
    /// A bit for each, the innermost lowest: it is an object. The highest bit that is set stands for the floor.
    open: u64,
    /// As much as may be open, or can be told of here.
    full: u64,
}

impl Above {
    /// Opens a container. False when there are as many as may be.
    #[inline]
    pub(super) fn open(&mut self, object: bool) -> bool {
        let room = self.open < self.full;
        if room {
            self.open = self.open << 1 | u64::from(object);
        }
        room
    }

    #[inline]
    pub(super) fn close(&mut self) {
        self.open >>= 1;
    }

    /// Whether nothing is open.
    #[inline]
    pub(super) fn is_closed(self) -> bool {
        self.open == 1
    }

    /// Whether the innermost is an object that stands in a list, which is open too.
    #[inline]
    pub(super) fn in_listed_object(self) -> bool {
        // The bit for the floor is set and tells of no list.
        self.open & 0b11 == 0b01
    }

    /// Whether the innermost is an object; something is open.
    #[inline]
    pub(super) fn in_object(self) -> bool {
        self.open & 1 == 1
    }
}
