//! What must hold for any frames on a client's HTTP/2 connection.
//!
//! The gate answers or closes, and does so soon; what it says are whole frames of a size that every client takes;
//! what it forwards is clean and carries its own credential alone.
//! Not here: HTTP/1.1 (`gate_http1`).

use super::gate;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

/// Panics when an invariant is broken. The input follows the preface and empty settings.
pub(crate) fn fuzz_one(input: &[u8]) {
    let running = gate::running();
    let _turn = running.turn();
    running.answers(None);
    let said = running.said(&[PREFACE, input].concat());
    let mut rest = &said[..];
    while let [a, b, c, _, _, stream @ ..] = rest {
        let length = usize::from(*a) << 16 | usize::from(*b) << 8 | usize::from(*c);
        assert!(length <= 16 << 10, "a frame of {length} bytes");
        assert!(
            stream.first().is_none_or(|first| first & 0x80 == 0),
            "a stream's number of 31 bits"
        );
        // The last one may be cut by a client that does not take it.
        rest = rest.get(9 + length..).unwrap_or_default();
    }
}
