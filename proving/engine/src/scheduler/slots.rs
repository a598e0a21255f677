//! Where sequences are kept, so that a step finds each without a search.
//!
//! Invariant: a slot used again has another epoch, by which work for its former sequence is told from work for this.
//! Not here: the order in which they run (`Scheduler`).

use std::collections::HashMap;

use super::RequestId;
use super::request::Sequence;

#[derive(Debug, Default)]
pub(super) struct Slots {
    slots: Vec<Slot>,
    unused: Vec<u32>,
    by_id: HashMap<RequestId, u32>,
}

#[derive(Debug)]
struct Slot {
    epoch: u64,
    sequence: Option<Sequence>,
}

impl Slots {
    pub(super) fn insert(&mut self, sequence: Sequence) -> u32 {
        let slot = self.unused.pop().unwrap_or_else(|| {
            self.slots.push(Slot {
                epoch: 0,
                sequence: None,
            });
            (self.slots.len() - 1) as u32
        });
        self.by_id.insert(sequence.id, slot);
        let place = &mut self.slots[slot as usize];
        place.epoch += 1;
        place.sequence = Some(sequence);
        slot
    }

    pub(super) fn remove(&mut self, slot: u32) -> Option<Sequence> {
        let sequence = self.slots.get_mut(slot as usize)?.sequence.take()?;
        self.by_id.remove(&sequence.id);
        self.unused.push(slot);
        Some(sequence)
    }

    pub(super) fn find(&self, id: RequestId) -> Option<u32> {
        self.by_id.get(&id).copied()
    }

    /// The sequence there with its epoch.
    pub(super) fn get(&mut self, slot: u32) -> Option<(&mut Sequence, u64)> {
        let place = self.slots.get_mut(slot as usize)?;
        let epoch = place.epoch;
        place.sequence.as_mut().map(|sequence| (sequence, epoch))
    }

    /// The sequence there, if it is still the one of that epoch.
    pub(super) fn at(&mut self, slot: u32, epoch: u64) -> Option<&mut Sequence> {
        let found = self.get(slot).filter(|(_, now)| *now == epoch);
        found.map(|(sequence, _)| sequence)
    }

    pub(super) fn is_used(&self, slot: u32) -> bool {
        let place = self.slots.get(slot as usize);
        place.is_some_and(|place| place.sequence.is_some())
    }

    pub(super) fn len(&self) -> usize {
        self.by_id.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Sequence> {
        self.slots.iter().filter_map(|slot| slot.sequence.as_ref())
    }
}
