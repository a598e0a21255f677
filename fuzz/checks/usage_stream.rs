//! What must hold for the usage that is read out of any stream, in each dialect: the same data in the events of
//! each API.
//!
//! Cut anywhere the stats is the same; looking on and holding back agree about usage; no count is beyond its bound.
//! Not here: what is forwarded (`sse_scan`).

use bytes::Bytes;
use wire::sse::{Mode, Scanner, StreamStats};
use wire::usage::{Reading, TOKEN_LIMIT};

/// What stands around the data of an event: in chat, completions, responses and messages.
const FRAMES: [(&str, &str); 6] = [
    ("data: {\"choices\":[],\"usage\":", "}\n\n"),
    ("data: {\"choices\":[{\"text\":\"a\"}],\"usage\":", "}\n\n"),
    (
        "event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"usage\":",
        "}}\n\n",
    ),
    (
        "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":",
        "}}\n\n",
    ),
    (
        "event: message_delta\r\ndata: {\"type\":\"message_delta\",\"delta\":{},\"usage\":",
        "}\r\n\r\n",
    ),
    ("data: ", "\n\ndata: [DONE]\n\n"),
];

/// Panics when an invariant is broken. Pieces of the input, cut at NUL, become the data of events, a dialect each.
pub(crate) fn fuzz_one(input: &[u8]) {
    let Some((first, rest)) = input.split_first() else {
        return;
    };
    let mut stream = Vec::new();
    for (nth, piece) in rest.split(|b| *b == 0).take(16).enumerate() {
        let (before, after) = FRAMES[(usize::from(*first) + nth) % FRAMES.len()];
        stream.extend_from_slice(before.as_bytes());
        stream.extend_from_slice(piece);
        stream.extend_from_slice(after.as_bytes());
    }
    let seen = observed([&stream[..]]);
    for size in [1, 5, 31] {
        assert_eq!(seen, observed(stream.chunks(size)), "in pieces of {size}");
    }
    let mut scanner = Scanner::new(Mode::Withhold);
    let mut out = Vec::new();
    for piece in stream.chunks(13) {
        scanner.push(Bytes::copy_from_slice(piece), &mut out);
    }
    scanner.finish(&mut out);
    assert_eq!(scanner.stats().usage, seen.usage, "held back or not");
    assert!(out.concat().len() <= stream.len());
    if let Reading::Valid(usage) = seen.usage {
        for count in [
            usage.prompt,
            usage.completion,
            usage.cached,
            usage.reasoning,
        ] {
            assert!(count.is_none_or(|count| count <= TOKEN_LIMIT), "{usage:?}");
        }
    }
}

fn observed<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> StreamStats {
    let mut scanner = Scanner::new(Mode::Observe);
    for piece in pieces {
        scanner.observe(piece);
    }
    scanner.finish(&mut Vec::new());
    *scanner.stats()
}
