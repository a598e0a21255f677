//! Writes the parts of a message.
//!
//! Invariant: what is given must come from a checked head; nothing is validated twice on the way out.
//! Not here: which fields to write.

mod append;

use append::append;

/// Appends `METHOD target HTTP/1.1` and CRLF; the target in parts that follow one another.
pub fn write_request_line(out: &mut Vec<u8>, method: &str, target: &[&str]) {
    append(out, [method.as_bytes(), b" "]);
    for part in target {
        out.extend_from_slice(part.as_bytes());
    }
    out.extend_from_slice(b" HTTP/1.1\r\n");
}

/// Appends `HTTP/1.1 status` and CRLF. The reason phrase is left empty: it carries no meaning.
pub fn write_status_line(out: &mut Vec<u8>, status: u16) {
    let digit = |place: u16| u8::try_from(status / place % 10).map_or(b'0', |digit| b'0' + digit);
    let digits = [digit(100), digit(10), digit(1)];
    append(out, [b"HTTP/1.1 ", &digits, b" \r\n"]);
}

/// Appends one field line.
pub fn write_field(out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    append(out, [name, b": ", value, b"\r\n"]);
}

/// Writes a chunk's size line (hexadecimal and CRLF) to the start of `buffer` and returns its length in bytes.
pub fn chunk_prefix(len: usize, buffer: &mut [u8; 18]) -> usize {
    let digits = (usize::BITS - len.leading_zeros()).div_ceil(4).max(1) as usize;
    let mut rest = len;
    for slot in buffer.iter_mut().take(digits).rev() {
        *slot = HEX.get(rest & 15).copied().unwrap_or(b'0');
        rest >>= 4;
    }
    for (slot, byte) in buffer.iter_mut().skip(digits).zip(*b"\r\n") {
        *slot = byte;
    }
    digits + 2
}

const HEX: &[u8; 16] = b"0123456789abcdef";
