//! Whether the log beside the file is whole.
//!
//! SQLite ends a log silently at the first frame whose checksum is wrong. After a crash that is
//! right: its commit was being written and nobody was told of it. When frames of the same log follow
//! behind that commit, something else happened: the disk altered what had been synced. This looks.
//! Invariant: reads, never writes. The format is that of <https://www.sqlite.org/fileformat2.html>,
//! section 4.
//! Not here: what is done about it (`open`).

use std::io::{self, BufReader, Read};
use std::path::Path;

use crate::plain_file;

/// What comes after the last whole commit of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tail {
    /// Frames up to the last whole commit.
    pub whole_frames: u64,
    /// Frames of the same log after it, of no effect.
    pub loose_frames: u64,
    /// Something stands behind a commit that is wrong: the disk altered what had been synced.
    pub is_damaged: bool,
}

const HEADER: usize = 32;
const FRAME_HEADER: usize = 24;

/// Reads the log at `path`; none, or an empty one, is whole.
pub(crate) fn scan(path: &Path) -> io::Result<Tail> {
    let file = match plain_file::read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Tail::default()),
        file => file?,
    };
    let mut file = BufReader::with_capacity(1 << 20, file);
    let mut header = [0; HEADER];
    if !fill(&mut file, &mut header)? {
        return Ok(Tail::default());
    }
    let Some(mut sums) = Sums::of_header(&header) else {
        // Torn while it was written: it is synced before any frame, so that none can follow.
        let is_damaged = has_frames(&mut file)?;
        return Ok(Tail {
            is_damaged,
            ..Tail::default()
        });
    };
    let mut frame = vec![0; FRAME_HEADER + sums.page];
    let mut tail = Tail::default();
    let (mut read, mut broken, mut ended) = (0, false, false);
    while fill(&mut file, &mut frame)? {
        if frame.get(8..16) != header.get(16..24) {
            break; // left from the log before this one
        }
        read += 1;
        // The frames of the commit that was under way may be there in part, in any order. Whatever
        // comes after a commit was written when that commit was on disk.
        tail.is_damaged = tail.is_damaged || ended;
        let commits = word(&frame, 4, true) != 0;
        broken = broken || !sums.matches(&frame);
        if broken {
            ended = ended || commits;
        } else if commits {
            tail.whole_frames = read;
        }
    }
    tail.loose_frames = read - tail.whole_frames;
    Ok(tail)
}

/// Whether anything but zeros comes.
fn has_frames(file: &mut impl Read) -> io::Result<bool> {
    let mut some = vec![0; 1 << 16];
    loop {
        let n = file.read(&mut some)?;
        if n == 0 || some.iter().take(n).any(|byte| *byte != 0) {
            return Ok(n > 0);
        }
    }
}

/// Fills `buffer`; `false` at the end of the file.
fn fill(file: &mut impl Read, buffer: &mut [u8]) -> io::Result<bool> {
    match file.read_exact(buffer) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        done => done.map(|()| true),
    }
}

/// The running checksum of a log.
struct Sums {
    page: usize,
    big_endian: bool,
    sums: (u32, u32),
}

impl Sums {
    fn of_header(header: &[u8; HEADER]) -> Option<Self> {
        let magic = word(header, 0, true);
        let page = usize::try_from(word(header, 8, true)).ok()?;
        let is_log =
            (magic & !1) == 0x377f_0682 && page.is_power_of_two() && (512..=65536).contains(&page);
        let big_endian = magic & 1 == 1;
        let sums = add((0, 0), header.get(..24)?, big_endian);
        let stored = (word(header, 24, true), word(header, 28, true));
        (is_log && sums == stored).then_some(Self {
            page,
            big_endian,
            sums,
        })
    }

    fn matches(&mut self, frame: &[u8]) -> bool {
        let (head, page) = frame.split_at(FRAME_HEADER);
        self.sums = add(
            self.sums,
            head.get(..8).unwrap_or_default(),
            self.big_endian,
        );
        self.sums = add(self.sums, page, self.big_endian);
        self.sums == (word(frame, 16, true), word(frame, 20, true))
    }
}

fn add((mut a, mut b): (u32, u32), bytes: &[u8], big_endian: bool) -> (u32, u32) {
    for at in (0..bytes.len()).step_by(8) {
        a = a.wrapping_add(word(bytes, at, big_endian)).wrapping_add(b);
        b = b
            .wrapping_add(word(bytes, at + 4, big_endian))
            .wrapping_add(a);
    }
    (a, b)
}

fn word(bytes: &[u8], at: usize, big_endian: bool) -> u32 {
    let four: [u8; 4] = bytes
        .get(at..at + 4)
        .and_then(|four| four.try_into().ok())
        .unwrap_or_default();
    if big_endian {
        u32::from_be_bytes(four)
    } else {
        u32::from_le_bytes(four)
    }
}
