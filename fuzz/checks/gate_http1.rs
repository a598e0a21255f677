//! What must hold for any bytes on a client's connection that begins with HTTP/1.1.
//!
//! The gate answers or closes, and does so soon; what it says are whole responses; what it forwards is clean and
//! carries its own credential alone.
//! Not here: single heads and bodies (`http1_request`, `http1_chunks`).

use wire::head::{Method, ResponseHead};
use wire::http1::{ChunkStep, Chunked, Framing, Limits, Step, parse_response, response_framing};

use super::gate;

/// Panics when an invariant is broken.
pub(crate) fn fuzz_one(input: &[u8]) {
    if input.starts_with(b"PRI") {
        return;
    }
    let running = gate::running();
    let _turn = running.turn();
    running.answers(None);
    let said = running.said(input);
    // After HEAD no body follows, and which request an answer is for is not known here.
    if !input.windows(5).any(|five| five == b"HEAD ") {
        responses(&said);
    }
}

/// Whole responses, one after the other.
fn responses(mut said: &[u8]) {
    let mut head = ResponseHead::new();
    while !said.is_empty() {
        let step = parse_response(said, &Limits::default(), &mut head);
        let Ok(Step::Done { consumed }) = step else {
            panic!("{step:?} in {:?}", String::from_utf8_lossy(said))
        };
        said = &said[consumed..];
        let (framing, _) = response_framing(&head, Method::Get).expect("one framing");
        said = match framing {
            Framing::None => said,
            Framing::UntilClose => return,
            Framing::Length(length) => {
                let length = usize::try_from(length).expect("small");
                // A client that ended its side in the middle of a body is not told all.
                said.get(length..).unwrap_or_default()
            }
            Framing::Chunked => after_chunks(said),
        };
    }
}

fn after_chunks(said: &[u8]) -> &[u8] {
    let (mut chunked, mut at) = (Chunked::new(), 0);
    loop {
        match chunked.next(&said[at..]).expect("good chunks") {
            ChunkStep::NeedMore { .. } => return &[],
            ChunkStep::Data { skip, len } => at += skip + len,
            ChunkStep::End { consumed } => return &said[at + consumed..],
        }
    }
}
