//! `application/x-www-form-urlencoded`, as OAuth's endpoints take it.
//!
//! Invariant: any bytes come out of a server's reader as they went in; the finished body is wiped when it is dropped.

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use zeroize::Zeroizing;

/// A form as it is written. With this room most forms never move, and so leave no copy behind.
const FORM_BYTES: usize = 16 << 10;

/// A form.
pub(crate) struct Form(Zeroizing<Vec<u8>>);

impl Form {
    pub(crate) fn new() -> Self {
        Self(Zeroizing::new(Vec::with_capacity(FORM_BYTES)))
    }

    pub(crate) fn add(&mut self, name: &str, value: &[u8]) {
        if !self.0.is_empty() {
            self.0.push(b'&');
        }
        encode(name.as_bytes(), &mut self.0);
        self.0.push(b'=');
        encode(value, &mut self.0);
    }

    /// Its bytes, and the header that says what they are.
    pub(crate) fn finish(self, headers: &mut HeaderMap) -> Bytes {
        let kind = HeaderValue::from_static("application/x-www-form-urlencoded");
        headers.insert(CONTENT_TYPE, kind);
        Bytes::from_owner(self.0)
    }
}

/// Encodes one name or value.
pub(crate) fn encode(text: &[u8], to: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    for &byte in text {
        match byte {
            b' ' => to.push(b'+'),
            b'*' | b'-' | b'.' | b'_' => to.push(byte),
            _ if byte.is_ascii_alphanumeric() => to.push(byte),
            _ => {
                let digit = |four: u8| DIGITS[usize::from(four)];
                to.extend([b'%', digit(byte >> 4), digit(byte & 15)]);
            }
        }
    }
}

#[cfg(test)]
mod tests;
