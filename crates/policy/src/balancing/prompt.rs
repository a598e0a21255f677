//! A prompt as a chain of blocks: two prompts share the blocks of what they begin with, and none behind the first byte that differs.
//!
//! A block's hash is of all that stands before its end. What an engine puts first comes first, whatever its place in the body: what
//! decides how all else is written, tools, the system's words, and then the conversation.
//! Invariant: the same call gives the same chain, in whatever pieces it comes; a chain has [`BLOCKS_MAX`] blocks at most, which are short
//! at the beginning and longer behind it.
//! Not here: which endpoint has seen which block ([`super::prefixes`]), the tokens of a prompt (`tokens`).

use std::borrow::Cow;
use std::hash::Hasher;

use bytes::Bytes;
use wire::json::Reader;

use crate::fast_hash::Mixer;

/// Bytes of a block at the beginning, and of one behind [`SHORT_BLOCKS`] of those.
const SHORT_BYTES: usize = 256;
const LONG_BYTES: usize = 2048;
const SHORT_BLOCKS: usize = 256;
/// Most blocks of a prompt that are looked at: a megabyte.
pub(super) const BLOCKS_MAX: usize = 736;

/// Members that change how everything after them is written, or whose cache it is; as a whole.
const WHOLE: [&str; 6] = [
    "model",
    "cache_salt",
    "reasoning_effort",
    "reasoning",
    "chat_template_kwargs",
    "documents",
];
/// Members that are the prompt, in the order in which templates write them.
const IN_ORDER: [&str; 10] = [
    "tools",
    "toolConfig",
    "instructions",
    "system",
    "systemInstruction",
    "system_instruction",
    "prompt",
    "input",
    "messages",
    "contents",
];

/// A prompt's chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt {
    blocks: Vec<Block>,
    bytes: u64,
}

/// A block: the hash of all up to its end, and how many bytes that is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Block {
    pub(super) hash: u64,
    pub(super) end: u64,
}

impl Prompt {
    /// The chain of a call's body; none where that is no JSON object, or has no member that is a prompt.
    #[must_use]
    pub fn of(body: &[Bytes]) -> Option<Self> {
        let whole: Cow<'_, [u8]> = match body {
            [one] => Cow::Borrowed(one),
            pieces => Cow::Owned(pieces.concat()),
        };
        let mut seed = 0_u64;
        let mut parts: [&[u8]; IN_ORDER.len()] = [b""; IN_ORDER.len()];
        let mut reader = Reader::new(&whole);
        let mut more = reader.open()?;
        while more {
            let name = reader.name()?;
            let place = |of: &[&str]| of.iter().position(|known| known.as_bytes() == &*name);
            if let Some(part) = place(&IN_ORDER).and_then(|at| parts.get_mut(at)) {
                *part = reader.value()?.1;
            } else if let Some(at) = place(&WHOLE) {
                let mut member = Mixer::default();
                member.write_usize(at);
                member.write(reader.value()?.1);
                // Whatever their order.
                seed = seed.wrapping_add(member.finish());
            } else {
                reader.pass()?;
            }
            more = reader.more()?;
        }
        let chain = Self::chain(seed, parts);
        (chain.bytes > 0).then_some(chain)
    }

    /// A prompt of which nothing is known but its size: no other one shares anything with it.
    #[must_use]
    pub fn sized(bytes: u64) -> Self {
        let most = SHORT_BYTES * SHORT_BLOCKS + LONG_BYTES * (BLOCKS_MAX - SHORT_BLOCKS);
        Self {
            blocks: Vec::new(),
            bytes: bytes.min(most as u64),
        }
    }

    fn chain(seed: u64, parts: [&[u8]; IN_ORDER.len()]) -> Self {
        let mut chain = Self {
            blocks: Vec::new(),
            bytes: 0,
        };
        let mut hash = seed;
        let last = parts.iter().rposition(|part| !part.is_empty());
        for (at, mut part) in parts.into_iter().enumerate() {
            while !part.is_empty() && chain.blocks.len() < BLOCKS_MAX {
                let is_short = chain.blocks.len() < SHORT_BLOCKS;
                let most = if is_short { SHORT_BYTES } else { LONG_BYTES };
                let (block, rest) = part.split_at(most.min(part.len()));
                part = rest;
                chain.bytes += block.len() as u64;
                // What another call may go on with is no block of both.
                if Some(at) == last && block.len() < most {
                    break;
                }
                let mut next = Mixer::default();
                next.write_u64(hash);
                next.write_usize(at);
                next.write(block);
                hash = next.finish();
                chain.blocks.push(Block {
                    hash,
                    end: chain.bytes,
                });
            }
        }
        chain
    }

    /// Bytes of it that are looked at.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Bytes of its first blocks.
    #[must_use]
    pub fn bytes_of(&self, blocks: usize) -> u64 {
        let last = blocks.checked_sub(1).and_then(|at| self.blocks.get(at));
        last.map_or(0, |block| block.end)
    }

    pub(super) fn blocks(&self) -> &[Block] {
        &self.blocks
    }
}

#[cfg(test)]
mod tests;
