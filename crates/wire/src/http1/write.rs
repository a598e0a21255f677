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

/// Appends `HTTP/1.1 status reason` and CRLF. The reason means nothing to HTTP, but clients exist that take a
/// status line without one for broken; it is the registered one, and empty for a status that has none.
pub fn write_status_line(out: &mut Vec<u8>, status: u16) {
    if status == 200 {
        return out.extend_from_slice(b"HTTP/1.1 200 OK\r\n");
    }
    let digit = |place: u16| u8::try_from(status / place % 10).map_or(b'0', |digit| b'0' + digit);
    let digits = [digit(100), digit(10), digit(1)];
    let reason = reason(status).as_bytes();
    append(out, [b"HTTP/1.1 ", &digits, b" ", reason, b"\r\n"]);
}

/// The registered reason phrase.
fn reason(status: u16) -> &'static str {
    match status {
        100 => "Continue",
        101 => "Switching Protocols",
        102 => "Processing",
        103 => "Early Hints",
        200 => "OK",
        201 => "Created",
        202 => "Accepted",
        203 => "Non-Authoritative Information",
        204 => "No Content",
        205 => "Reset Content",
        206 => "Partial Content",
        207 => "Multi-Status",
        208 => "Already Reported",
        226 => "IM Used",
        300 => "Multiple Choices",
        301 => "Moved Permanently",
        302 => "Found",
        303 => "See Other",
        304 => "Not Modified",
        307 => "Temporary Redirect",
        308 => "Permanent Redirect",
        400 => "Bad Request",
        401 => "Unauthorized",
        402 => "Payment Required",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        406 => "Not Acceptable",
        407 => "Proxy Authentication Required",
        408 => "Request Timeout",
        409 => "Conflict",
        410 => "Gone",
        411 => "Length Required",
        412 => "Precondition Failed",
        413 => "Content Too Large",
        414 => "URI Too Long",
        415 => "Unsupported Media Type",
        416 => "Range Not Satisfiable",
        417 => "Expectation Failed",
        421 => "Misdirected Request",
        422 => "Unprocessable Content",
        423 => "Locked",
        424 => "Failed Dependency",
        425 => "Too Early",
        426 => "Upgrade Required",
        428 => "Precondition Required",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        451 => "Unavailable For Legal Reasons",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        505 => "HTTP Version Not Supported",
        506 => "Variant Also Negotiates",
        507 => "Insufficient Storage",
        508 => "Loop Detected",
        511 => "Network Authentication Required",
        _ => "",
    }
}

/// Appends one field line.
#[inline]
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
