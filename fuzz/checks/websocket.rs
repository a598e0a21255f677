//! What must hold for anything that a client sends over a WebSocket.
//!
//! Cut anywhere it tells the same messages; no message is longer than its reader takes; what is kept is no more than what came.
//! Not here: what the messages say.

use wire::websocket::{Fault, Message, Reader};

const MOST: usize = 1 << 10;

/// Panics when an invariant is broken.
pub(crate) fn fuzz_one(input: &[u8]) {
    let whole = told(input, usize::MAX);
    for size in [1, 3, 17] {
        assert_eq!(whole, told(input, size), "in pieces of {size}");
    }
    for message in &whole.0 {
        let bytes = match message {
            Message::Text(text) => text.len(),
            Message::Binary(bytes) | Message::Ping(bytes) => bytes.len(),
            Message::Pong | Message::Close(_) => 0,
        };
        assert!(bytes <= MOST, "{bytes}");
    }
}

fn told(input: &[u8], size: usize) -> (Vec<Message>, Option<Fault>) {
    let (mut reader, mut told) = (Reader::new(MOST), Vec::new());
    for piece in input.chunks(size.min(input.len().max(1))) {
        reader.push(piece);
        assert!(reader.held() <= input.len());
        loop {
            match reader.message() {
                Ok(Some(message)) => told.push(message),
                Ok(None) => break,
                Err(fault) => return (told, Some(fault)),
            }
        }
    }
    (told, None)
}
