//! The blocks themselves: references, names, and the order in which free ones are used again.
//!
//! Invariant: a block is in the free list exactly when nobody references it; a name leads to at most one block.
//! Not here: which sequence holds which block (`table`).

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasherDefault, Hasher};
use std::num::NonZeroU64;

/// No block.
pub(super) const NIL: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Block {
    refs: u32,
    name: Option<NonZeroU64>,
    before: u32,
    after: u32,
}

#[derive(Debug)]
pub(super) struct Pool {
    blocks: Vec<Block>,
    named: HashMap<u64, u32, BuildHasherDefault<AsIs>>,
    oldest: u32,
    newest: u32,
    free: u32,
}

impl Pool {
    pub(super) fn new(len: u32) -> Self {
        let mut pool = Self {
            blocks: vec![
                Block {
                    refs: 0,
                    name: None,
                    before: NIL,
                    after: NIL
                };
                len as usize
            ],
            named: HashMap::default(),
            oldest: NIL,
            newest: NIL,
            free: 0,
        };
        (0..len).for_each(|block| pool.enqueue(block));
        pool
    }

    pub(super) fn len(&self) -> u32 {
        self.blocks.len() as u32
    }

    pub(super) fn free(&self) -> u32 {
        self.free
    }

    pub(super) fn named(&self, name: u64) -> Option<u32> {
        self.named.get(&name).copied()
    }

    pub(super) fn is_free(&self, block: u32) -> bool {
        self.at(block).refs == 0
    }

    /// Takes the block that was free for longest; its name is forgotten.
    pub(super) fn take(&mut self) -> Option<u32> {
        let block = self.oldest;
        if block == NIL {
            return None;
        }
        self.dequeue(block);
        if let Some(name) = self.at_mut(block).name.take() {
            self.named.remove(&name.get());
        }
        self.at_mut(block).refs = 1;
        Some(block)
    }

    /// One more reference to a block that holds the right tokens already.
    pub(super) fn share(&mut self, block: u32) {
        if self.is_free(block) {
            self.dequeue(block);
        }
        self.at_mut(block).refs += 1;
    }

    pub(super) fn put_back(&mut self, block: u32) {
        let refs = &mut self.at_mut(block).refs;
        debug_assert!(*refs > 0, "block {block} is free already");
        *refs = refs.saturating_sub(1);
        if *refs == 0 {
            self.enqueue(block);
        }
    }

    /// Names a full block. Where another block has the name already, that one keeps it.
    pub(super) fn name(&mut self, block: u32, name: u64) {
        let Some(nonzero) = NonZeroU64::new(name) else {
            return; // one name in 2^64 is not remembered
        };
        if let Entry::Vacant(vacant) = self.named.entry(name) {
            vacant.insert(block);
            self.at_mut(block).name = Some(nonzero);
        }
    }

    /// Takes every name from its block.
    pub(super) fn forget(&mut self) {
        self.named.clear();
        self.blocks.iter_mut().for_each(|block| block.name = None);
    }

    fn enqueue(&mut self, block: u32) {
        let newest = self.newest;
        *self.at_mut(block) = Block {
            before: newest,
            after: NIL,
            ..*self.at(block)
        };
        match newest {
            NIL => self.oldest = block,
            newest => self.at_mut(newest).after = block,
        }
        self.newest = block;
        self.free += 1;
    }

    fn dequeue(&mut self, block: u32) {
        let Block { before, after, .. } = *self.at(block);
        match before {
            NIL => self.oldest = after,
            before => self.at_mut(before).after = after,
        }
        match after {
            NIL => self.newest = before,
            after => self.at_mut(after).before = before,
        }
        self.free -= 1;
    }

    fn at(&self, block: u32) -> &Block {
        &self.blocks[block as usize]
    }

    fn at_mut(&mut self, block: u32) -> &mut Block {
        &mut self.blocks[block as usize]
    }

    pub(super) fn audit(&self, held: impl Iterator<Item = u32>) -> Result<(), String> {
        let mut counts = BTreeMap::<u32, u32>::new();
        held.for_each(|block| *counts.entry(block).or_default() += 1);
        for (block, state) in (0..).zip(&self.blocks) {
            let held = counts.get(&block).copied().unwrap_or(0);
            if held != state.refs {
                return Err(format!(
                    "block {block} counts {} references and has {held}",
                    state.refs
                ));
            }
            if state
                .name
                .is_some_and(|name| self.named(name.get()) != Some(block))
            {
                return Err(format!("the name of block {block} leads elsewhere"));
            }
        }
        let (mut listed, mut block) = (0, self.oldest);
        while block != NIL {
            if !self.is_free(block) {
                return Err(format!("block {block} is listed as free and referenced"));
            }
            listed += 1;
            block = self.at(block).after;
        }
        let free = self.blocks.iter().filter(|block| block.refs == 0).count();
        if listed != free || self.free as usize != free {
            return Err(format!(
                "{free} blocks are free, {listed} listed, {} counted",
                self.free
            ));
        }
        Ok(())
    }
}

/// Names are hashes already.
#[derive(Default)]
struct AsIs(u64);

impl Hasher for AsIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(byte);
        }
    }

    fn write_u64(&mut self, n: u64) {
        self.0 = n;
    }
}
