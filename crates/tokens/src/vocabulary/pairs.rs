//! The merges of a vocabulary in one block of bytes: a table that is read where it lies.
//!
//! The block: tokens of the 256 bytes, the longest token in bytes, a bit for each hash of what stands around a place
//! inside a token ([`Pairs::may_join`]), then slots of 16 bytes: left, right, rank and token, each a
//! little-endian `u32`; an empty slot is all ones. A pair lies in the first free slot from where its hash says. Slots are
//! a power of two, and at most four in five are taken.
//! Shared with the build script, which writes the built-in ones.
//! Not here: what merges when (`bpe`).

/// A symbol's number.
pub(crate) type Token = u32;

const SLOT: usize = 16;
/// The tokens of single bytes, and the longest token.
const HEAD: usize = 257 * 4;
/// The bits of what stands around places inside tokens: 512 KiB, of which OpenAI's larger vocabulary sets a ninth.
const JOINTS: usize = 1 << 19;
const NONE: u32 = u32::MAX;

/// A table, as it lies in memory.
#[derive(Clone, Copy)]
pub(crate) struct Pairs<'a> {
    head: &'a [u8],
    joints: &'a [u8; JOINTS],
    slots: &'a [[u8; SLOT]],
    /// How far a hash is shifted to become a place.
    shift: u32,
}

/// What two neighbours become.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Merge {
    /// The lowest goes first.
    pub(crate) rank: u32,
    pub(crate) token: Token,
}

impl<'a> Pairs<'a> {
    /// Reads a block that [`write`] made; `None` where it did not.
    pub(crate) fn read(block: &'a [u8]) -> Option<Self> {
        let (head, rest) = block.split_at_checked(HEAD)?;
        let (joints, slots) = rest.split_first_chunk::<JOINTS>()?;
        let (slots, []) = slots.as_chunks::<SLOT>() else {
            return None;
        };
        slots.len().is_power_of_two().then(|| Self {
            head,
            joints,
            slots,
            shift: 64 - slots.len().trailing_zeros(),
        })
    }

    /// The token of one byte.
    pub(crate) fn byte(&self, byte: u8) -> Token {
        word(self.head, usize::from(byte))
    }

    /// The longest token, bytes.
    pub(crate) fn longest(&self) -> usize {
        word(self.head, 256) as usize
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

    /// What two symbols become side by side.
    #[inline]
    pub(crate) fn merge(&self, left: Token, right: Token) -> Option<Merge> {
        let mut place = place(left, right, self.shift);
        loop {
            let slot = self.slots.get(place)?;
            let [at_left, at_right, rank, token] = words(slot);
            if at_left == left && at_right == right {
                return Some(Merge { rank, token });
            }
            if at_left == NONE {
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
fn words(slot: &[u8; SLOT]) -> [u32; 4] {
    let whole = u128::from_le_bytes(*slot);
    #[expect(clippy::cast_possible_truncation, reason = "each is its own 32 bits")]
    [0, 32, 64, 96].map(|shift| (whole >> shift) as u32)
}

fn word(bytes: &[u8], at: usize) -> u32 {
    let word = bytes.get(at * 4..).and_then(<[u8]>::first_chunk::<4>);
    word.map_or(NONE, |word| u32::from_le_bytes(*word))
}

#[inline]
#[expect(
    clippy::cast_possible_truncation,
    reason = "no more bits are left than a place has"
)]
fn place(left: Token, right: Token, shift: u32) -> usize {
    let pair = u64::from(left) << 32 | u64::from(right);
    // The golden ratio's bits, after which high bits depend on all of the pair's.
    let mixed = (pair ^ (pair >> 29)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    mixed.checked_shr(shift).unwrap_or(0) as usize
}

/// Makes a block of the tokens of the 256 bytes, of left, right, rank and token of each merge, and of the bytes of all
/// tokens. Of a pair that comes twice the first counts.
pub(crate) fn write<'t>(
    bytes: &[Token],
    merges: &[(Token, Token, u32, Token)],
    tokens: impl IntoIterator<Item = &'t [u8]>,
) -> Vec<u8> {
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
    let slots = (merges.len() * 5 / 4 + 1).next_power_of_two();
    let shift = 64 - slots.trailing_zeros();
    let mut table = vec![[NONE; 4]; slots];
    for &(left, right, rank, token) in merges {
        let mut at = place(left, right, shift);
        while let Some(slot) = table.get_mut(at) {
            if *slot == [NONE; 4] {
                *slot = [left, right, rank, token];
                break;
            }
            if slot.first() == Some(&left) && slot.get(1) == Some(&right) {
                break;
            }
            at = (at + 1) % slots;
        }
    }
    let longest = u32::try_from(longest).unwrap_or(NONE);
    let head = bytes.iter().chain([&longest]).copied();
    let mut block: Vec<u8> = head.flat_map(u32::to_le_bytes).collect();
    block.append(&mut joints);
    block.extend(table.into_iter().flatten().flat_map(u32::to_le_bytes));
    block
}
