//! How much a translated stream keeps while it is open, whatever is behind it: the stream that passes keeps nothing of it.

use testing::{Memory, Noting};
use wire::filter::Content;

use super::{NOW, asked_again, body_of, head_of, request};
use crate::Dialect;

#[global_allocator]
static NOTING: Noting = Noting;

/// What it may keep besides a stream that passes.
const MOST_BYTES: isize = 4 * 1024;
const GOOGLES: &str = "POST /models/m:streamGenerateContent?alt=sse\n\n{\"contents\":[{\"role\":\"user\",\"parts\":[{\"text\":\"a\"}]}]}";
/// Of a few words each, as engines send them.
const EVENTS: usize = 400;

/// How a backend begins a stream, and one more of its events.
fn told_by(backend: Dialect) -> Option<(Content, &'static str, &'static str, &'static str)> {
    let events = Content::Events;
    Some(match backend {
        Dialect::OpenAi => (
            events,
            "200 text/event-stream",
            r#"data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}"#,
            r#"data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":" of a stream"},"finish_reason":null}]}"#,
        ),
        Dialect::Anthropic => (
            events,
            "200 text/event-stream",
            "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\",\"model\":\"m\",\"usage\":{\"input_tokens\":9,\"output_tokens\":1}}}\n\nevent: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}",
            "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\" of a stream\"}}",
        ),
        Dialect::Gemini => {
            let event = r#"data: {"candidates":[{"content":{"role":"model","parts":[{"text":" of a stream"}]}}],"responseId":"r","modelVersion":"m"}"#;
            (events, "200 text/event-stream", event, event)
        }
        Dialect::Bedrock => (
            Content::Frames,
            "200 application/vnd.amazon.eventstream",
            r#"messageStart {"role":"assistant"}"#,
            r#"contentBlockDelta {"contentBlockIndex":0,"delta":{"text":" of a stream"}}"#,
        ),
        _ => return None,
    })
}

#[test]
fn an_open_stream_keeps_a_few_kibibytes_however_long_it_is() {
    let clients = [
        Dialect::OpenAi,
        Dialect::Anthropic,
        Dialect::Gemini,
        Dialect::Responses,
    ];
    let mut pairs = 0;
    for client in clients {
        for backend in Dialect::ALL {
            let Some((content, head, first, more)) = told_by(backend).filter(|_| client != backend)
            else {
                continue;
            };
            let asked = match client {
                Dialect::Gemini => GOOGLES.to_owned(),
                _ => asked_again(client, None).replacen('{', r#"{"stream":true,"#, 1),
            };
            let (head, _) = head_of(head);
            let [first, more] = [first, more].map(|text| body_of(content, text, false));
            let (memory, filter) = Memory::of(|| {
                let (_, answering) = request(client, backend, &asked).expect("it can be said");
                let answering = answering.expect("it is translated");
                let mut filter = answering.response(&head, content, NOW).expect("a stream");
                let mut told = 0;
                for event in std::iter::once(&first).chain((1..EVENTS).map(|_| &more)) {
                    let mut out = Vec::new();
                    filter.pass(event, false, &mut out).expect("an event");
                    told += out.len();
                }
                assert!(told >= EVENTS / 2, "{client:?} {backend:?}: {told}");
                filter
            });
            // A response's end repeats its text, which counts as what its worker keeps of bodies.
            let held = memory.held - filter.kept().cast_signed();
            println!(
                "{client:?} of {backend:?}: {} bytes, {} besides",
                held,
                filter.kept()
            );
            assert!(held <= MOST_BYTES, "{client:?} {backend:?}: {memory:?}");
            assert!(client == Dialect::Responses || filter.kept() == 0);
            pairs += 1;
        }
    }
    assert_eq!(pairs, 13);
}
