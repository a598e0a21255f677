//! What must hold for any stream of Amazon's binary events.
//!
//! Cut anywhere it tells the same; nothing is told that did not come; what came of the present message alone is kept; the meter reads on
//! to the same end.
//! The first byte says what the rest is: bytes of a stream as they are, or headers and payload of messages whose sums are right, each
//! behind two lengths.
//! Not here: what the payloads say (`translate`).

use testing::eventstream::framed;
use wire::eventstream::{MESSAGE_BYTES, Reader};
use wire::meter::{Form, Meter};

/// Panics when an invariant is broken.
pub(crate) fn fuzz_one(input: &[u8]) {
    let Some((choice, rest)) = input.split_first() else {
        return;
    };
    let stream = match choice & 1 {
        0 => rest.to_vec(),
        _ => messages(rest),
    };
    let whole = told(&stream, usize::MAX);
    for size in [1, 3, 17] {
        assert_eq!(whole, told(&stream, size), "in pieces of {size}");
    }
    let payloads: usize = whole.0.iter().map(|(_, payload)| payload.len()).sum();
    assert!(payloads <= stream.len());
    let metered = |size: usize| {
        let mut meter = Meter::new(Form::Frames);
        for piece in stream.chunks(size.min(stream.len().max(1))) {
            meter.observe(piece);
        }
        let heard = meter.heard(true);
        (*heard.reading, heard.events, heard.told_error)
    };
    assert_eq!(metered(usize::MAX), metered(5));
}

/// Messages of what their lengths cut out of these bytes.
fn messages(mut rest: &[u8]) -> Vec<u8> {
    let mut stream = Vec::new();
    while let [headers, payload, after @ ..] = rest {
        let (headers, after) = after.split_at(usize::from(*headers).min(after.len()));
        let (payload, after) = after.split_at(usize::from(*payload).min(after.len()));
        stream.extend(framed(headers, payload));
        rest = after;
    }
    stream
}

/// The messages that a reader tells of, and whether the stream broke.
type Told = (Vec<(String, Vec<u8>)>, bool);

fn told(stream: &[u8], size: usize) -> Told {
    let (mut reader, mut told) = (Reader::default(), Vec::new());
    for piece in stream.chunks(size.min(stream.len().max(1))) {
        let read = reader.push(piece, |message| {
            told.push((format!("{:?}", message.kind), message.payload.to_vec()));
        });
        assert!(reader.held() <= MESSAGE_BYTES.max(stream.len()));
        if read.is_err() {
            return (told, true);
        }
    }
    (told, false)
}
