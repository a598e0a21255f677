//! The short way through fields that are whole and plainly good: each byte is looked at once.
//!
//! Invariant: what is accepted here is accepted by `parse`, with the same fields. `None` says nothing: the
//! head may be cut, bad, or just unusual.
//! Not here: the start line (`plain`), what is wrong with a head (`parse`).

use super::marks::{MARKED_BYTES, Marks, marks};
use crate::block::{BLOCK_BYTES, controls};
use crate::head::{Head, Known, is_token};

/// Reads at most `most` fields and the empty line after them, and takes them into `out`, which must be
/// empty. Gives where the body starts; after `None`, `out` must be cleared.
pub(super) fn fields(input: &[u8], from: usize, most: usize, out: &mut Head) -> Option<usize> {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        #[expect(
            unsafe_code,
            reason = "`instructions request_head`: 2096 where SSE2 takes 2436"
        )]
        // SAFETY: the processor has AVX2, as was just asked.
        return unsafe { fields_avx2(input, from, most, out) };
    }
    walk(input, from, most, out, marks)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn fields_avx2(input: &[u8], from: usize, most: usize, out: &mut Head) -> Option<usize> {
    walk(input, from, most, out, |bytes| {
        super::marks::avx2::marks(bytes)
    })
}

#[inline(always)]
fn walk(
    input: &[u8],
    from: usize,
    most: usize,
    out: &mut Head,
    marks: impl Fn(&[u8; MARKED_BYTES]) -> Marks,
) -> Option<usize> {
    let mut line = u32::try_from(from).ok()?;
    let mut rest = input.get(from..)?;
    loop {
        let marks = match rest.first_chunk() {
            Some(bytes) => marks(bytes),
            None if rest.is_empty() => return None,
            None => {
                let shift = MARKED_BYTES - rest.len();
                marks(input.last_chunk()?).later(shift)
            }
        };
        let name_len = (marks.colons | marks.controls).trailing_zeros();
        if rest.get(name_len as usize) != Some(&b':') {
            let end = line as usize + 2;
            let is_end = rest.first_chunk::<2>() == Some(b"\r\n");
            return (is_end && out.fill(input.get(..end)?)).then_some(end);
        }
        let known = Known::of_start(rest, name_len as usize);
        if known.is_many() && !is_name(rest.get(..name_len as usize)?) || out.len() >= most {
            return None;
        }
        let start = match rest.get(name_len as usize + 1..)? {
            [b' ', first, ..] if *first > b' ' => name_len + 2,
            value => name_len + 1 + blanks(value)?,
        };
        let ahead = marks.controls.checked_shr(start).unwrap_or(0);
        let mut end = start + ahead.trailing_zeros();
        if ahead == 0 || rest.get(end as usize..)?.first_chunk::<2>() != Some(b"\r\n") {
            end = line_end(rest, start)?;
        }
        let mut value = rest.get(start as usize..end as usize)?;
        while let [before @ .., b' ' | b'\t'] = value {
            value = before;
        }
        out.note(known, line, name_len, line + start, value.len())?;
        line += end + 2;
        rest = rest.get(end as usize + 2..)?;
    }
}

fn is_name(name: &[u8]) -> bool {
    !name.is_empty() && name.iter().all(|&byte| is_token(byte))
}

#[cold]
fn blanks(value: &[u8]) -> Option<u32> {
    let is_blank = |byte: &&u8| matches!(byte, b' ' | b'\t');
    value.iter().take_while(is_blank).count().try_into().ok()
}

/// Where the line ends whose value starts at `from`, however long it is, if it ends in CRLF.
#[inline(never)]
fn line_end(line: &[u8], from: u32) -> Option<u32> {
    let mut rest = line.get(from as usize..)?;
    loop {
        rest = match rest.first_chunk::<BLOCK_BYTES>().map(controls) {
            Some(0) => rest.get(BLOCK_BYTES..)?,
            Some(hits) => rest.get(hits.trailing_zeros() as usize..)?,
            None => rest.get(rest.iter().position(u8::is_ascii_control)?..)?,
        };
        rest = match rest {
            [b'\r', b'\n', ..] => return u32::try_from(line.len() - rest.len()).ok(),
            [b'\t', after @ ..] => after,
            [b' '..=b'~' | 0x80.., ..] => rest,
            _ => return None,
        }
    }
}

#[cfg(test)]
mod tests;
