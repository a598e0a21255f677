//! The fast path through fields that are whole and plainly good: each byte is looked at once.
//!
//! Invariant: what is accepted here is accepted by `parse`, with the same fields. `None` says nothing: the
//! head may be cut, bad, or just unusual.
//! Not here: the start line (`fast_path`), what is wrong with a head (`parse`).

use super::marks::{MARKED_BYTES, Marks, marks};
use super::words::words;
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
        if known.is_many() && !is_name(rest, name_len as usize) || out.len() >= most {
            return None;
        }
        let value = match plain_value(rest, name_len, marks.controls) {
            Some(value) => value,
            None => any_value(rest, name_len)?,
        };
        out.index(known, line, name_len, line + value.start, value.len)?;
        line += value.line_end + 2;
        rest = rest.get(value.line_end as usize + 2..)?;
    }
}

/// Where a value lies in its line.
struct Value {
    start: u32,
    len: u32,
    /// Where CRLF follows.
    line_end: u32,
}

/// A value that one space precedes and CRLF follows, within the bytes that were looked at.
#[inline(always)]
fn plain_value(line: &[u8], name_len: u32, controls: u64) -> Option<Value> {
    let start = name_len + 2;
    let ahead = controls.checked_shr(start)?;
    let len = ahead.trailing_zeros();
    let [before, first]: [u8; 2] = *line.get(name_len as usize + 1..)?.first_chunk()?;
    let [last, cr, lf]: [u8; 3] = *line.get((start + len) as usize - 1..)?.first_chunk()?;
    let good = before == b' ' && first > b' ' && last > b' ' && [cr, lf] == *b"\r\n" && ahead != 0;
    good.then_some(Value {
        start,
        len,
        line_end: start + len,
    })
}

/// A value between any blanks, however long it is, if the line ends in CRLF.
#[inline(never)]
fn any_value(line: &[u8], name_len: u32) -> Option<Value> {
    let after = line.get(name_len as usize + 1..)?;
    let is_blank = |byte: &&u8| matches!(byte, b' ' | b'\t');
    let blanks = after.iter().take_while(is_blank).count();
    let start = name_len + 1 + u32::try_from(blanks).ok()?;
    let line_end = line_end(line, start)?;
    let value = line.get(start as usize..line_end as usize)?;
    let blanks = value.iter().rev().take_while(is_blank).count();
    let len = u32::try_from(value.len() - blanks).ok()?;
    Some(Value {
        start,
        len,
        line_end,
    })
}

/// Whether the line begins with a token of this length.
#[inline(always)]
fn is_name(line: &[u8], len: usize) -> bool {
    let plain = line
        .first_chunk()
        .map_or(0, |block| words(block).trailing_ones());
    plain as usize == len && len > 0 || is_token_of(line, len)
}

#[inline(never)]
fn is_token_of(line: &[u8], len: usize) -> bool {
    let name = line.get(..len).unwrap_or_default();
    !name.is_empty() && name.iter().all(|&byte| is_token(byte))
}

/// Where the value ends that begins at `from`: before CRLF, which must be the first control character but for tabs.
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
