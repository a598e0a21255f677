//! Base64 with the alphabet for addresses, as RFC 7515 has it: no padding, no white space, no spare bits.
//!
//! Invariant: bytes have one spelling, and no other is read.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// The bytes that are spelled so; `None` if nothing is.
pub(crate) fn decode(text: &[u8]) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(text).ok()
}

/// As [`decode`], into a place that may be too small.
pub(crate) fn decode_into<'p>(text: &[u8], place: &'p mut [u8]) -> Result<&'p [u8], Fault> {
    use base64::DecodeSliceError::{DecodeError, OutputSliceTooSmall};
    match URL_SAFE_NO_PAD.decode_slice(text, place) {
        Ok(length) => place.get(..length).ok_or(Fault::TooLong),
        Err(DecodeError(_)) => Err(Fault::Spelling),
        Err(OutputSliceTooSmall) => Err(Fault::TooLong),
    }
}

/// Why nothing was decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    Spelling,
    TooLong,
}

/// The spelling of these bytes.
pub(crate) fn encode(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}
