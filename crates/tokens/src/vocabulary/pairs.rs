//! The merges of a vocabulary in one block of bytes: a table that is read where it lies.
//!
//! The block, each number a little-endian `u32` unless said otherwise: the tokens of the 256 bytes, the longest token in
//! bytes and the number of ranks that have a token of another number; the rank of each pair of bytes, or all ones; a bit
//! for each hash of what stands around a place inside a token ([`Pairs::may_join`]); a bit for each hash of two symbols that
//! merge, 256 KiB that stay in a processor's own cache and spare most pairs that do not merge the way to the table; the
//! tokens of those ranks; then slots of one `u64` each, in which left, right and rank lie side by side, all ones where it
//! is empty. A pair lies in the first free slot from where its hash says. Slots are a power of two, and at most half are
//! taken.
//! Shared with the build script, which writes the built-in ones.
//! Not here: what merges when (`bpe`).

/// A symbol's number.
pub(crate) type Token = u32;
/// When two neighbours merge: the lowest goes first.
pub(crate) type Rank = u32;

/// The tokens of single bytes, the longest token, how many tokens differ from their rank.
const HEAD: usize = 258 * 4;
const LONGEST: usize = 256;
const RENUMBERED: usize = 257;
/// The ranks of all pairs of bytes.
const BYTE_PAIRS: usize = 256 * 256 * 4;
/// The bits of what stands around places inside tokens: 512 KiB, of which OpenAI's larger vocabulary sets a ninth.
const JOINTS: usize = 1 << 19;
/// The bits of pairs that merge: OpenAI's larger vocabulary sets a tenth.
const FILTER: usize = 1 << 18;
const FILTER_SHIFT: u32 = 64 - 21;
const NONE: u32 = u32::MAX;

const TOKEN_BITS: u32 = 21;
const RANK_BITS: u32 = 22;
/// Tokens of a vocabulary, at most.
const MOST_TOKENS: u32 = (1 << TOKEN_BITS) - 1;
/// Merges of a vocabulary, at most.
pub(crate) const MOST_RANKS: u32 = 1 << RANK_BITS;
const EMPTY: u64 = u64::MAX;

/// A table, as it lies in memory.
#[derive(Clone, Copy)]
pub(crate) struct Pairs<'a> {
    head: &'a [u8],
    byte_pairs: &'a [u8; BYTE_PAIRS],
    joints: &'a [u8; JOINTS],
    filter: &'a [u8; FILTER],
    /// Of each rank, where they are not the ranks themselves.
    tokens: &'a [[u8; 4]],
    slots: &'a [[u8; 8]],
    /// How far a hash is shifted to become a place.
    shift: u32,
}

impl<'a> Pairs<'a> {
    /// Reads a block that [`write`] made; `None` where it did not.
    pub(crate) fn read(block: &'a [u8]) -> Option<Self> {
        let (head, rest) = block.split_at_checked(HEAD)?;
        let (byte_pairs, rest) = rest.split_first_chunk::<BYTE_PAIRS>()?;
        let (joints, rest) = rest.split_first_chunk::<JOINTS>()?;
        let (filter, rest) = rest.split_first_chunk::<FILTER>()?;
        let renumbered = word(head, RENUMBERED) as usize;
        let (tokens, slots) = rest.split_at_checked(renumbered.checked_mul(4)?)?;
        let (tokens, _) = tokens.as_chunks::<4>();
        let (slots, []) = slots.as_chunks::<8>() else {
            return None;
        };
        slots.len().is_power_of_two().then(|| Self {
            head,
            byte_pairs,
            joints,
            filter,
            tokens,
            slots,
            shift: 64 - slots.len().trailing_zeros(),
        })
    }

    /// The token of one byte.
    #[inline]
    pub(crate) fn byte(&self, byte: u8) -> Token {
        word(self.head, usize::from(byte))
    }

    /// The longest token, bytes.
    pub(crate) fn longest(&self) -> usize {
        word(self.head, LONGEST) as usize
    }

    /// What two neighbours become that merge with this rank.
    #[inline]
    pub(crate) fn token(&self, rank: Rank) -> Token {
        let token = self.tokens.get(rank as usize);
        token.map_or(rank, |token| u32::from_le_bytes(*token))
    }

    /// Whether some token may lie across this place of a text, as far as the two bytes on either side tell: `false` is
    /// sure, and then nothing merges across it.
    #[inline]
    pub(crate) fn may_join(&self, text: &[u8], at: usize) -> bool {
        let before = at.checked_sub(2).and_then(|from| text.get(from..at));
        let (Some(before), Some(behind)) = (before, text.get(at..at + 2)) else {
            return true;
        };
        let around =
            [before, behind].map(|two| two.first_chunk::<2>().copied().unwrap_or_default());
        let is_set = |joint| {
            let place = joint_place(joint);
            self.joints
                .get(place / 8)
                .is_some_and(|byte| byte >> (place % 8) & 1 != 0)
        };
        Joint::around(around).into_iter().any(is_set)
    }

    /// When two bytes side by side merge, if they do.
    #[inline]
    pub(crate) fn merge_bytes(&self, left: u8, right: u8) -> Option<Rank> {
        let rank = word(self.byte_pairs, byte_pair(left, right));
        (rank != NONE).then_some(rank)
    }

    /// When two symbols side by side merge, if they do.
    #[inline]
    pub(crate) fn merge(&self, left: Token, right: Token) -> Option<Rank> {
        let pair = pair(left, right);
        let hash = hash(pair);
        let (byte, bit) = filter_place(hash);
        if self.filter.get(byte)? & bit == 0 {
            return None;
        }
        let mut place = place(hash, self.shift);
        loop {
            let slot = u64::from_le_bytes(*self.slots.get(place)?);
            #[expect(clippy::cast_possible_truncation, reason = "the bits of a rank")]
            if slot >> RANK_BITS == pair {
                return Some(slot as u32 & (MOST_RANKS - 1));
            }
            if slot == EMPTY {
                return None;
            }
            place = (place + 1) & (self.slots.len() - 1);
        }
    }
}

/// How a token may lie across a place: two bytes and more on both sides, one byte before it, one behind it, or one on
/// either. The bytes are those of the token, next to the place.
#[derive(Clone, Copy)]
struct Joint(u64);

impl Joint {
    fn around([[far, near], [next, last]]: [[u8; 2]; 2]) -> [Self; 4] {
        let bytes = |kind: u8, bytes: [u8; 4]| {
            Self(u64::from(kind) << 32 | u64::from(u32::from_le_bytes(bytes)))
        };
        [
            bytes(0, [far, near, next, last]),
            bytes(1, [0, near, next, last]),
            bytes(2, [far, near, next, 0]),
            bytes(3, [0, near, next, 0]),
        ]
    }

    /// Those of all places inside a token.
    fn within(token: &[u8]) -> impl Iterator<Item = Self> + '_ {
        (1..token.len()).filter_map(move |at| {
            let byte = |at: Option<usize>| at.and_then(|at| token.get(at)).copied();
            let (far, last) = (byte(at.checked_sub(2)), byte(Some(at + 1)));
            let around = [
                [far.unwrap_or(0), byte(Some(at - 1))?],
                [byte(Some(at))?, last.unwrap_or(0)],
            ];
            let [both, start, end, alone] = Self::around(around);
            Some(match (far, last) {
                (Some(_), Some(_)) => both,
                (None, Some(_)) => start,
                (Some(_), None) => end,
                (None, None) => alone,
            })
        })
    }
}

#[inline]
fn joint_place(joint: Joint) -> usize {
    let mixed = (joint.0 ^ (joint.0 >> 15)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed >> 42) as usize
}

#[inline]
fn word(bytes: &[u8], at: usize) -> u32 {
    let word = bytes.get(at * 4..).and_then(<[u8]>::first_chunk::<4>);
    word.map_or(NONE, |word| u32::from_le_bytes(*word))
}

/// The place of two bytes among all.
#[inline]
fn byte_pair(left: u8, right: u8) -> usize {
    usize::from(left) << 8 | usize::from(right)
}

#[inline]
fn pair(left: Token, right: Token) -> u64 {
    u64::from(left) << TOKEN_BITS | u64::from(right)
}

#[inline]
fn hash(pair: u64) -> u64 {
    // The golden ratio's bits, after which high bits depend on all of the pair's.
    (pair ^ (pair >> 29)).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

#[inline]
#[expect(
    clippy::cast_possible_truncation,
    reason = "no more bits are left than a place has"
)]
fn place(hash: u64, shift: u32) -> usize {
    hash.checked_shr(shift).unwrap_or(0) as usize
}

/// The byte of the filter and the bit in it.
#[inline]
fn filter_place(hash: u64) -> (usize, u8) {
    let place = place(hash, FILTER_SHIFT);
    (place / 8, 1 << (place % 8))
}

/// A merge of two symbols.
#[derive(Clone, Copy)]
pub(crate) struct Merge {
    pub(crate) left: Token,
    pub(crate) right: Token,
    pub(crate) rank: Rank,
    /// What they become.
    pub(crate) token: Token,
}

/// Makes a block of the tokens of the 256 bytes, of the merges, and of the bytes of all tokens. `None` where
/// there are more tokens or ranks than a slot has room for, or where a pair comes twice.
pub(crate) fn write<'t>(
    bytes: &[Token; 256],
    merges: &[Merge],
    tokens: impl IntoIterator<Item = &'t [u8]>,
) -> Option<Vec<u8>> {
    let fits = |merge: &Merge| {
        let tokens = [merge.left, merge.right, merge.token];
        merge.rank < MOST_RANKS && tokens.into_iter().all(|token| token < MOST_TOKENS)
    };
    if !merges.iter().all(fits) || bytes.iter().any(|token| *token >= MOST_TOKENS) {
        return None;
    }
    let (mut joints, mut longest) = (vec![0; JOINTS], 1);
    for token in tokens {
        longest = longest.max(token.len());
        for joint in Joint::within(token) {
            let place = joint_place(joint);
            if let Some(byte) = joints.get_mut(place / 8) {
                *byte |= 1u8 << (place % 8);
            }
        }
    }
    let renumbered = renumbered(merges);
    let mut words: Vec<u32> = bytes.to_vec();
    words.push(u32::try_from(longest).ok()?);
    words.push(u32::try_from(renumbered.len()).ok()?);
    let mut block: Vec<u8> = words.into_iter().flat_map(u32::to_le_bytes).collect();
    block.extend([u8::MAX; BYTE_PAIRS]);
    block.append(&mut joints);
    block.append(&mut filter(merges));
    block.extend(renumbered.into_iter().flat_map(u32::to_le_bytes));
    block.extend(slots(merges).into_iter().flat_map(u64::to_le_bytes));
    let pairs = Pairs::read(&block)?;
    let is_found = |merge: &Merge| {
        pairs
            .merge(merge.left, merge.right)
            .is_some_and(|rank| rank == merge.rank)
    };
    if !merges.iter().all(is_found) {
        return None;
    }
    let mut ranks = Vec::with_capacity(BYTE_PAIRS);
    for left in bytes {
        for right in bytes {
            let rank = pairs.merge(*left, *right).unwrap_or(NONE);
            ranks.extend(rank.to_le_bytes());
        }
    }
    block
        .get_mut(HEAD..)?
        .first_chunk_mut::<BYTE_PAIRS>()?
        .copy_from_slice(&ranks);
    Some(block)
}

/// The token of each rank, unless it is the rank itself for all.
fn renumbered(merges: &[Merge]) -> Vec<Token> {
    if merges.iter().all(|merge| merge.rank == merge.token) {
        return Vec::new();
    }
    let ranks = merges.iter().map(|merge| merge.rank as usize + 1);
    let mut tokens = vec![NONE; ranks.max().unwrap_or(0)];
    for merge in merges {
        if let Some(token) = tokens.get_mut(merge.rank as usize) {
            *token = merge.token;
        }
    }
    tokens
}

fn filter(merges: &[Merge]) -> Vec<u8> {
    let mut filter = vec![0; FILTER];
    for merge in merges {
        let (byte, bit) = filter_place(hash(pair(merge.left, merge.right)));
        if let Some(byte) = filter.get_mut(byte) {
            *byte |= bit;
        }
    }
    filter
}

fn slots(merges: &[Merge]) -> Vec<u64> {
    let count = (merges.len() * 2).max(2).next_power_of_two();
    let shift = 64 - count.trailing_zeros();
    let mut slots = vec![EMPTY; count];
    for merge in merges {
        let pair = pair(merge.left, merge.right);
        let mut at = place(hash(pair), shift);
        while let Some(slot) = slots.get_mut(at) {
            if *slot == EMPTY {
                *slot = pair << RANK_BITS | u64::from(merge.rank);
            }
            if *slot >> RANK_BITS == pair {
                break;
            }
            at = (at + 1) % count;
        }
    }
    slots
}
