//! A feature to come: another dialect on the second attempt of one call.
//!
//! Not here: dialects that the gate reads (`wire::dialect`).

use std::sync::Arc;

use bytes::Bytes;
use policy::record::Count;
use wire::dialect::{Operation, Translated, Translation, Translator};
use wire::head::ResponseHead;

use super::{BUSY, Seen, call, json, two_backends};

/// A sketch of Anthropic's dialect: one text in, one text out.
#[derive(Debug)]
struct ToMessages;

impl Translator for ToMessages {
    fn operation(&self) -> Operation {
        Operation::Messages
    }

    fn request(&self, asked: Operation, body: &[Bytes]) -> Option<Translated> {
        let text = String::from_utf8(body.concat()).ok()?;
        // Images are what this sketch cannot say.
        if asked != Operation::Chat || text.contains("image_url") {
            return None;
        }
        let body = text.replacen('{', r#"{"max_tokens":64,"#, 1);
        Some(Translated {
            path: "/messages".to_owned(),
            body: vec![Bytes::from(body)],
        })
    }

    fn response(&self, _: Operation, head: &ResponseHead) -> Box<dyn Translation> {
        assert_eq!(head.status, 200);
        Box::new(FromMessages(String::new()))
    }
}

/// Gathers a response, and tells its text as a chat completion does.
#[derive(Debug)]
struct FromMessages(String);

impl Translation for FromMessages {
    fn translate(&mut self, piece: &[u8], is_over: bool, out: &mut Vec<Bytes>) {
        self.0.push_str(std::str::from_utf8(piece).expect("text"));
        if is_over {
            let text = self.0.split(r#""text":""#).nth(1);
            let text = text.and_then(|text| text.split('"').next()).unwrap_or("");
            let message = format!(r#"{{"choices":[{{"message":{{"content":"{text}"}}}}]}}"#);
            out.push(Bytes::from(message));
        }
    }
}

fn in_two_dialects(body: &str) -> Seen {
    let mut s = two_backends();
    s.routes[0].forward_headers = vec![(*b"accept-encoding").into()];
    s.backends[1].translator = Some(Arc::new(ToMessages));
    s.backends[1]
        .model_names
        .insert("m".into(), "claude".into());
    let answer = r#"{"type":"message","content":[{"type":"text","text":"hello"}],"usage":{"input_tokens":7,"output_tokens":4}}"#;
    call(s, body, vec![json(503, BUSY), json(200, answer)])
}

#[test]
fn the_second_attempt_of_a_call_speaks_another_dialect() {
    let seen = in_two_dialects(r#"{"model":"m","messages":[]}"#);
    let [first, second] = &seen.arrived[..] else {
        panic!("{:?}", seen.arrived);
    };
    assert!(
        first
            .text
            .starts_with("POST /v1/chat/completions HTTP/1.1\r\n")
    );
    assert!(first.text.ends_with(r#"{"model":"m","messages":[]}"#));
    assert!(first.text.contains("accept-encoding"));
    assert!(second.text.starts_with("POST /v1/messages HTTP/1.1\r\n"));
    assert!(
        second
            .text
            .ends_with(r#"{"max_tokens":64,"model":"claude","messages":[]}"#)
    );
    assert!(!second.text.contains("accept-encoding"));
    assert!(
        seen.response.starts_with("HTTP/1.1 200 "),
        "{}",
        seen.response
    );
    assert!(
        seen.body()
            .contains(r#"{"choices":[{"message":{"content":"hello"}}]}"#)
    );
    assert!(!seen.body().contains("input_tokens"));
    // Metered as its upstream said it; recorded as its client asked it.
    let tokens = seen.record.tokens;
    assert_eq!(
        (tokens.prompt, tokens.completion),
        (Count::Reported(7), Count::Reported(4))
    );
    assert_eq!(seen.record.operation, Some(Operation::Chat));
    assert_eq!(seen.record.model_sent.as_deref(), Some("m"));
}

#[test]
fn a_call_that_a_dialect_cannot_say_is_the_clients_to_mend() {
    let seen = in_two_dialects(r#"{"model":"m","messages":[{"image_url":""}]}"#);
    assert_eq!(
        (seen.record.status, seen.record.code),
        (400, "call_not_translatable")
    );
    assert_eq!(seen.arrived.len(), 1, "{:?}", seen.arrived);
}
