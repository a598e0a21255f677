//! How much may wait to be counted.
//!
//! Invariant: a place that was taken is given back when it is dropped, whatever became of what it was for.
//! Not here: what is done when there is none (`teller`).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The bytes that all exchanges share.
#[derive(Debug)]
pub(crate) struct Room {
    taken: AtomicUsize,
    most: usize,
}

/// Some of them, held.
#[derive(Debug)]
pub(super) struct Place {
    room: Arc<Room>,
    bytes: usize,
}

impl Room {
    pub(super) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self {
            taken: AtomicUsize::new(0),
            most,
        })
    }

    /// `None` when so much is not left. Never waits.
    pub(super) fn take(self: &Arc<Self>, bytes: usize) -> Option<Place> {
        let before = self.taken.fetch_add(bytes, Ordering::Relaxed);
        let place = Place {
            room: Arc::clone(self),
            bytes,
        };
        (before.saturating_add(bytes) <= self.most).then_some(place)
    }

    /// Bytes held now.
    pub(crate) fn taken(&self) -> usize {
        self.taken.load(Ordering::Relaxed)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.room.taken.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_given_than_there_is_and_all_comes_back() {
        let room = Room::new(100);
        let first = room.take(60);
        assert!(first.is_some());
        assert!(room.take(41).is_none());
        assert_eq!(room.taken(), 60);
        let second = room.take(40);
        assert!(second.is_some() && room.take(1).is_none());
        drop((first, second));
        assert_eq!(room.taken(), 0);
    }
}
