//! What must hold for any bytes that an upstream answers with.
//!
//! The client gets one whole response or one that is visibly broken off, soon; a good status comes from an upstream
//! that said it; nothing of the gate's own credential is in it.
//! Not here: single heads, chunks and events (`http1_response`, `http1_chunks`, `sse_scan`).

use wire::head::{Method, ResponseHead};
use wire::http1::{ChunkStep, Chunked, Framing, Limits, Step, parse_response, response_framing};

use super::gate;

/// Panics when an invariant is broken. The first byte says what is asked for; the rest is the answer.
pub(crate) fn fuzz_one(input: &[u8]) {
    let Some((how, answer)) = input.split_first() else {
        return;
    };
    let stream = how & 1 == 1;
    let body = format!("{{\"model\":\"m\",\"stream\":{stream},\"messages\":[]}}");
    let path = match how >> 1 & 3 {
        0 | 1 => "chat/completions",
        2 => "responses",
        _ => "messages",
    };
    let request = format!(
        "POST /v1/{path} HTTP/1.1\r\nhost: g\r\nx-workload-app: w\r\ncontent-type: application/json\r\n\
         connection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let running = gate::running();
    let _turn = running.turn();
    running.answers(Some(answer));
    let said = running.said(request.as_bytes());
    let said = said
        .strip_prefix(b"HTTP/1.1 100 Continue\r\n\r\n")
        .unwrap_or(&said);
    if said.is_empty() {
        return;
    }
    let mut head = ResponseHead::new();
    let step = parse_response(said, &Limits::default(), &mut head);
    let Ok(Step::Done { consumed }) = step else {
        panic!("{step:?} in {:?}", String::from_utf8_lossy(said))
    };
    assert!((200..600).contains(&head.status), "{}", head.status);
    if (200..300).contains(&head.status) {
        let status = head.status.to_string();
        let holds = |text: &[u8]| answer.windows(text.len()).any(|window| window == text);
        assert!(holds(status.as_bytes()), "an invented {status}");
    }
    let (framing, _) = response_framing(&head, Method::Post).expect("one framing");
    let body = &said[consumed..];
    match framing {
        Framing::None => assert!(body.is_empty()),
        Framing::Length(length) => assert!(body.len() as u64 <= length),
        Framing::UntilClose => panic!("an end that cannot be told from a break"),
        Framing::Chunked => {
            let (mut chunked, mut at) = (Chunked::new(), 0);
            loop {
                match chunked.next(&body[at..]).expect("good chunks") {
                    ChunkStep::NeedMore { .. } => break,
                    ChunkStep::Data { skip, len } => at += skip + len,
                    ChunkStep::End { consumed } => {
                        assert_eq!(at + consumed, body.len(), "nothing follows");
                        break;
                    }
                }
            }
        }
    }
}
