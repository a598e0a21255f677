//! What must hold for any call and any answer, between any two dialects.
//!
//! A call is refused, or becomes one JSON document. An answer becomes the same however it is cut: JSON where it is a document, events
//! of JSON where it is a stream.
//! The first byte of an input chooses the dialects, whether the answer is a stream, and of Google's calls how the client wants it; then
//! come the call, a byte 0, the answer. Of a stream of binary events it has one in a line: its name and its payload, a failure with a mark.
//! Not here: what becomes of which member (`vectors/translate`).

use bytes::Bytes;
use serde_json::Value;
use testing::eventstream::{event, exception};
use translate::{Dialect, Translation};
use wire::dialect::Operation;
use wire::filter::{Answering, Content, Filter, Manner, Request, Stop};
use wire::head::ResponseHead;

/// Panics when an invariant is broken.
pub(crate) fn fuzz_one(input: &[u8]) {
    let Some((choice, rest)) = input.split_first() else {
        return;
    };
    let (call, answer) = match rest.iter().position(|byte| *byte == 0) {
        Some(at) => (&rest[..at], &rest[at + 1..]),
        None => (rest, &[][..]),
    };
    let operations = [
        Operation::Chat,
        Operation::Messages,
        Operation::Responses,
        Operation::GenerateContent,
    ];
    let operation = operations[usize::from(choice & 3) % operations.len()];
    let backend = match Dialect::ALL[usize::from(choice >> 2 & 7)] {
        // Nothing is translated into it: its number is that of the ninth.
        Dialect::Responses => Dialect::AnthropicOnVertex,
        other => other,
    };
    let translation = Translation::new(backend, &[]);
    if !translation.applies(operation) {
        return;
    }
    let manners = [Manner::Whole, Manner::Events, Manner::List];
    let manner = match operation {
        Operation::GenerateContent => manners[usize::from(choice >> 5 & 3) % manners.len()],
        _ => Manner::Whole,
    };
    let mut request = Request {
        model: Some("m".into()),
        manner,
        below: "/models/m:generateContent".into(),
        body: vec![Bytes::copy_from_slice(call)],
        ..Request::default()
    };
    let Ok(answering) = translation.request(operation, &mut request) else {
        return;
    };
    // What the backend speaks passes as it came, be it JSON or not.
    let passes = translation.passes(operation);
    if !passes {
        let made: Result<Value, _> = serde_json::from_slice(&request.body.concat());
        assert!(made.is_ok_and(|made| made.is_object()), "no JSON object");
    }
    let Some(answering) = answering else { return };
    let content = match (choice & 128, backend) {
        (0, _) => Content::Json,
        (_, Dialect::Bedrock) => Content::Frames,
        _ => Content::Events,
    };
    let binary;
    let answer = match content {
        Content::Frames => {
            binary = frames(answer);
            &binary
        }
        _ => answer,
    };
    let Some(whole) = answered(&*answering, content, answer, usize::MAX) else {
        return assert!(passes, "it is filtered");
    };
    for size in [1, 3, 17] {
        let cut = answered(&*answering, content, answer, size);
        assert_eq!(Some(&whole), cut.as_ref(), "in pieces of {size}");
    }
    let text = String::from_utf8(whole.0).expect("UTF-8");
    match content {
        Content::Events | Content::Frames if manner == Manner::List => {
            let list: Result<Value, _> = serde_json::from_str(&text);
            assert!(list.is_ok() || whole.1.is_err(), "{text}");
        }
        Content::Events | Content::Frames => {
            let data = text.lines().filter_map(|line| line.strip_prefix("data: "));
            for data in data.filter(|data| *data != "[DONE]") {
                let event: Result<Value, _> = serde_json::from_str(data);
                assert!(event.is_ok(), "{data}");
            }
        }
        Content::Json | Content::Other => {
            let document: Result<Value, _> = serde_json::from_str(&text);
            assert!(document.is_ok() || whole.1.is_err(), "{text}");
        }
    }
}

/// Binary events of these lines.
fn frames(lines: &[u8]) -> Vec<u8> {
    let lines = String::from_utf8_lossy(lines);
    let messages = lines.lines().map(|line| {
        let (name, payload) = line.split_once(' ').unwrap_or((line, ""));
        // It is no longer than a message can say.
        let name: String = name.chars().take(1_000).collect();
        match name.strip_prefix('!') {
            Some(name) => exception(name, payload),
            None => event(&name, payload),
        }
    });
    messages.collect::<Vec<_>>().concat()
}

/// What becomes of an answer in pieces of this size; `None` where it passes as it comes.
fn answered(
    answering: &dyn Answering,
    content: Content,
    answer: &[u8],
    size: usize,
) -> Option<(Vec<u8>, Result<(), Stop>)> {
    let mut head = ResponseHead::new();
    head.status = 200;
    let mut filter = answering.response(&head, content, 1)?;
    let mut out = Vec::new();
    for piece in answer.chunks(size.min(answer.len().max(1))) {
        if let Err(stop) = filter.pass(piece, false, &mut out) {
            return Some((out.concat(), Err(stop)));
        }
    }
    let over = filter.pass(b"", true, &mut out);
    Some((out.concat(), over))
}
