//! The records of the index, byte by byte. All numbers are little-endian.
//!
//! ```text
//! header, 64 bytes
//!   0 magic "tg-index"   8 version u32   12 profiles u32   16 sessions u64   24 turns u64
//!  32 length of bodies u64   40 length of corpus.json u64   48 crc32 of corpus.json
//!  52 crc32 of all records   56 zero u32   60 crc32 of bytes 0..60
//! session, 48 bytes
//!   0 profile u32   4 turns u32   8 first turn u64   16 start of its bytes u64   24 their length u64
//!  32 crc32 of its bytes   36 length of its id u32   40 bytes of all its requests u64
//! turn, 64 bytes
//!   0 head u64   8 body u64   16 tail u64   24 length of head u32   28 of body u32   32 of tail u32
//!  36 prompt tokens u32   40 new tokens u32   44 answer tokens u32   48 think time in ns u64   56 flags u32   60 zero
//! ```
//!
//! Invariant: reading gives what was written, and a record with a bit that has no meaning is refused.
//! Not here: whether a record points to where it may (`open`).

/// The version of the layout; a reader takes this one only.
pub const VERSION: u32 = 1;

pub(super) const MAGIC: [u8; 8] = *b"tg-index";
pub(super) const HEADER_BYTES: usize = 64;
pub(super) const SESSION_BYTES: usize = 48;
pub(super) const TURN_BYTES: usize = 64;

/// No think time is known.
const NO_THINK: u64 = u64::MAX;
/// The prompt goes on where the one before ended.
const GOES_ON: u32 = 1;

/// A part of `bodies`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) start: u64,
    pub(crate) len: u32,
}

impl Part {
    /// Its first byte after; `None` where that is no number.
    pub(super) fn end(self) -> Option<u64> {
        self.start.checked_add(u64::from(self.len))
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) profiles: u32,
    pub(super) sessions: u64,
    pub(super) turns: u64,
    pub(super) bodies_bytes: u64,
    pub(super) manifest_bytes: u64,
    pub(super) manifest_crc: u32,
    pub(super) records_crc: u32,
}

/// Why a header is none.
pub(super) enum HeaderFault {
    Magic,
    Version(u32),
    Checksum,
}

impl Header {
    pub(super) fn to_bytes(self) -> [u8; HEADER_BYTES] {
        let mut out = Out::<HEADER_BYTES>::default();
        out.put(MAGIC);
        out.put(VERSION.to_le_bytes());
        out.put(self.profiles.to_le_bytes());
        out.put(self.sessions.to_le_bytes());
        out.put(self.turns.to_le_bytes());
        out.put(self.bodies_bytes.to_le_bytes());
        out.put(self.manifest_bytes.to_le_bytes());
        out.put(self.manifest_crc.to_le_bytes());
        out.put(self.records_crc.to_le_bytes());
        out.put(0_u32.to_le_bytes());
        let crc = crc32fast::hash(&out.bytes[..out.at]);
        out.put(crc.to_le_bytes());
        out.bytes
    }

    pub(super) fn read(bytes: &[u8; HEADER_BYTES]) -> Result<Self, HeaderFault> {
        let mut input = In { rest: bytes };
        if input.take::<8>() != MAGIC {
            return Err(HeaderFault::Magic);
        }
        let version = input.u32();
        if version != VERSION {
            return Err(HeaderFault::Version(version));
        }
        let header = Self {
            profiles: input.u32(),
            sessions: input.u64(),
            turns: input.u64(),
            bodies_bytes: input.u64(),
            manifest_bytes: input.u64(),
            manifest_crc: input.u32(),
            records_crc: input.u32(),
        };
        // One comparison covers the zero and the checksum too.
        if header.to_bytes() == *bytes {
            Ok(header)
        } else {
            Err(HeaderFault::Checksum)
        }
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct SessionRecord {
    pub(super) profile: u32,
    pub(super) turns: u32,
    pub(super) first_turn: u64,
    pub(super) start: u64,
    pub(super) len: u64,
    pub(super) crc: u32,
    pub(super) id_len: u32,
    pub(super) unrolled: u64,
}

impl SessionRecord {
    pub(super) fn to_bytes(self) -> [u8; SESSION_BYTES] {
        let mut out = Out::<SESSION_BYTES>::default();
        out.put(self.profile.to_le_bytes());
        out.put(self.turns.to_le_bytes());
        out.put(self.first_turn.to_le_bytes());
        out.put(self.start.to_le_bytes());
        out.put(self.len.to_le_bytes());
        out.put(self.crc.to_le_bytes());
        out.put(self.id_len.to_le_bytes());
        out.put(self.unrolled.to_le_bytes());
        out.bytes
    }

    pub(super) fn read(bytes: &[u8]) -> Self {
        let mut input = In { rest: bytes };
        Self {
            profile: input.u32(),
            turns: input.u32(),
            first_turn: input.u64(),
            start: input.u64(),
            len: input.u64(),
            crc: input.u32(),
            id_len: input.u32(),
            unrolled: input.u64(),
        }
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct TurnRecord {
    pub(super) parts: [Part; 3],
    pub(super) prompt_tokens: u32,
    pub(super) new_tokens: u32,
    pub(super) answer_tokens: u32,
    pub(super) think_ns: Option<u64>,
    pub(super) goes_on: bool,
}

impl TurnRecord {
    pub(super) fn to_bytes(self) -> [u8; TURN_BYTES] {
        let mut out = Out::<TURN_BYTES>::default();
        self.parts
            .iter()
            .for_each(|p| out.put(p.start.to_le_bytes()));
        self.parts.iter().for_each(|p| out.put(p.len.to_le_bytes()));
        out.put(self.prompt_tokens.to_le_bytes());
        out.put(self.new_tokens.to_le_bytes());
        out.put(self.answer_tokens.to_le_bytes());
        out.put(self.think_ns.unwrap_or(NO_THINK).to_le_bytes());
        out.put(if self.goes_on { GOES_ON } else { 0 }.to_le_bytes());
        out.put(0_u32.to_le_bytes());
        out.bytes
    }

    /// `None` where a bit without a meaning is set.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let mut input = In { rest: bytes };
        let starts = [input.u64(), input.u64(), input.u64()];
        let parts = starts.map(|start| Part {
            start,
            len: input.u32(),
        });
        let (prompt_tokens, new_tokens, answer_tokens) = (input.u32(), input.u32(), input.u32());
        let think_ns = input.u64();
        let (flags, zero) = (input.u32(), input.u32());
        (flags & !GOES_ON == 0 && zero == 0).then_some(Self {
            parts,
            prompt_tokens,
            new_tokens,
            answer_tokens,
            think_ns: (think_ns != NO_THINK).then_some(think_ns),
            goes_on: flags & GOES_ON != 0,
        })
    }
}

/// A record that is being written.
struct Out<const N: usize> {
    bytes: [u8; N],
    at: usize,
}

impl<const N: usize> Default for Out<N> {
    fn default() -> Self {
        Self {
            bytes: [0; N],
            at: 0,
        }
    }
}

impl<const N: usize> Out<N> {
    fn put<const M: usize>(&mut self, bytes: [u8; M]) {
        self.bytes[self.at..self.at + M].copy_from_slice(&bytes);
        self.at += M;
    }
}

/// A record that is being read; what is beyond its end is zero.
struct In<'a> {
    rest: &'a [u8],
}

impl In<'_> {
    fn take<const M: usize>(&mut self) -> [u8; M] {
        match self.rest.split_first_chunk::<M>() {
            Some((bytes, rest)) => {
                self.rest = rest;
                *bytes
            }
            None => [0; M],
        }
    }

    fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.take())
    }

    fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.take())
    }
}
