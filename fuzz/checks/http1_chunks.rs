//! What must hold for any bytes that claim to be a chunked body.
//!
//! Cut anywhere the answer is the same; what is accepted, a reader of whole lines accepts with the same data and the
//! same end; the data written in chunks again reads back.
//! Not here: which inputs are good (`vectors/http1`).

use wire::http1::{ChunkStep, Chunked, HeadFault, chunk_prefix};

/// Panics when an invariant is broken.
pub(crate) fn fuzz_one(input: &[u8]) {
    let whole = read([input]);
    for size in [1, 2, 7, 64] {
        assert_eq!(whole, read(input.chunks(size)), "in pieces of {size}");
    }
    let Ok((data, end)) = whole else { return };
    if let Some(consumed) = end {
        assert_eq!(naive(input), Some((data.clone(), consumed)));
    }
    let mut again = Vec::new();
    for piece in data.chunks(100) {
        let mut prefix = [0; 18];
        let written = chunk_prefix(piece.len(), &mut prefix);
        again.extend_from_slice(&prefix[..written]);
        again.extend_from_slice(piece);
        again.extend_from_slice(b"\r\n");
    }
    again.extend_from_slice(b"0\r\n\r\n");
    let length = again.len();
    assert_eq!(read([&again[..]]), Ok((data, Some(length))));
}

/// The data, and where the body ended if it has.
fn read<'a>(
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> Result<(Vec<u8>, Option<usize>), HeadFault> {
    let (mut chunked, mut data, mut before) = (Chunked::new(), Vec::new(), 0);
    for piece in pieces {
        let mut at = 0;
        loop {
            match chunked.next(&piece[at..])? {
                ChunkStep::NeedMore { consumed } => {
                    assert_eq!(consumed, piece.len() - at);
                    break;
                }
                ChunkStep::Data { skip, len } => {
                    assert!(len > 0);
                    data.extend_from_slice(&piece[at + skip..at + skip + len]);
                    at += skip + len;
                }
                ChunkStep::End { consumed } => return Ok((data, Some(before + at + consumed))),
            }
        }
        before += piece.len();
    }
    Ok((data, None))
}

/// The same by whole lines; `None` for what is not chunked coding as RFC 9112 has it.
fn naive(input: &[u8]) -> Option<(Vec<u8>, usize)> {
    let (mut data, mut at) = (Vec::new(), 0);
    loop {
        let (line, after) = line(input, at)?;
        let text = std::str::from_utf8(line).map_or_else(
            |_| line.iter().copied().map(char::from).collect::<String>(),
            str::to_owned,
        );
        let digits = text.split(';').next()?;
        if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
            return None;
        }
        let size = usize::from_str_radix(digits, 16).ok()?;
        if size == 0 {
            at = after;
            break;
        }
        data.extend_from_slice(input.get(after..after.checked_add(size)?)?);
        at = after + size;
        if input.get(at..at + 2) != Some(b"\r\n") {
            return None;
        }
        at += 2;
    }
    loop {
        let (trailer, after) = line(input, at)?;
        at = after;
        if trailer.is_empty() {
            return Some((data, at));
        }
        trailer.contains(&b':').then_some(())?;
    }
}

/// A line and where the next one begins.
fn line(input: &[u8], at: usize) -> Option<(&[u8], usize)> {
    let rest = input.get(at..)?;
    let end = rest.windows(2).position(|pair| pair == b"\r\n")?;
    Some((&rest[..end], at + end + 2))
}
