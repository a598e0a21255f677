//! Features to come: another dialect on the second attempt of one call.
//!
//! Not here: dialects that the gate reads (`wire::dialect`), streams in another form (`guarded`).

use std::sync::Arc;

use bytes::Bytes;
use policy::id::{BackendId, EndpointId};
use policy::record::{Count, Outcome};
use wire::dialect::Operation;
use wire::filter::{Answering, Content, Filter, Request, ResponseFilter, Stop, Unfit};
use wire::head::ResponseHead;

use super::super::fixture::{BackendPlan, ONE, RoutePlan, snapshot};
use super::guarded::STREAMED;
use super::{BUSY, CHAT, Seen, call, call_in_pieces, json, two_backends};

/// A sketch of Anthropic's dialect: one text in, one text out.
#[derive(Debug, Clone, Copy)]
struct ToMessages;

impl Filter for ToMessages {
    fn operation(&self, _: Operation) -> Operation {
        Operation::Messages
    }

    fn request(
        &self,
        asked: Operation,
        request: &mut Request,
    ) -> Result<Option<Box<dyn Answering>>, Unfit> {
        let text = String::from_utf8(request.body.concat()).expect("text");
        // Images are what this sketch cannot say.
        if asked != Operation::Chat || text.contains("image_url") {
            return Err(Unfit::new("messages[0].image_url"));
        }
        let body = text.replacen('{', r#"{"max_tokens":64,"#, 1);
        request.path = Some("/messages".into());
        request.body = vec![Bytes::from(body)];
        Ok(Some(Box::new(*self)))
    }
}

impl Answering for ToMessages {
    fn response(
        &self,
        head: &ResponseHead,
        content: Content,
        _: u64,
    ) -> Option<Box<dyn ResponseFilter>> {
        assert_eq!((head.status, content), (200, Content::Json));
        Some(Box::new(FromMessages(String::new())))
    }
}

/// Gathers a response, and tells its text as a chat completion does.
#[derive(Debug)]
struct FromMessages(String);

impl ResponseFilter for FromMessages {
    fn pass(&mut self, piece: &[u8], is_over: bool, out: &mut Vec<Bytes>) -> Result<(), Stop> {
        self.0.push_str(std::str::from_utf8(piece).expect("text"));
        if is_over {
            let text = self.0.split(r#""text":""#).nth(1);
            let text = text.and_then(|text| text.split('"').next()).unwrap_or("");
            let message = format!(r#"{{"choices":[{{"message":{{"content":"{text}"}}}}]}}"#);
            out.push(Bytes::from(message));
            self.0.clear();
        }
        Ok(())
    }

    fn kept(&self) -> usize {
        self.0.len()
    }
}

#[test]
fn the_one_body_that_a_worker_keeps_has_room_for_what_is_made_of_it() {
    let body = r#"{"model":"m","messages":[]}"#;
    let mut s = two_backends();
    s.bounds.bodies_bytes = body.len();
    s.backends[0].filters = vec![Arc::new(ToMessages)];
    let seen = call(s, body, vec![json(200, "{}")]);
    assert_eq!(seen.record.status, 200, "{}", seen.response);
    assert!(seen.arrived[0].text.contains("max_tokens"));
}

fn in_two_dialects(body: &str) -> Seen {
    let mut s = two_backends();
    s.backends[1].filters = vec![Arc::new(ToMessages)];
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
    // What came coded could be neither read nor filtered.
    assert!(!first.text.contains("accept-encoding"));
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
fn a_call_that_no_backend_can_be_told_is_the_clients_to_mend() {
    let mut s = two_backends();
    for backend in &mut s.backends {
        backend.filters = vec![Arc::new(ToMessages)];
    }
    let seen = call(
        s,
        r#"{"model":"m","messages":[{"image_url":""}]}"#,
        Vec::new(),
    );
    assert_eq!(
        (seen.record.status, seen.record.code),
        (400, "call_not_translatable")
    );
    assert!(
        seen.body().contains("messages[0].image_url"),
        "{}",
        seen.body()
    );
    assert!(seen.arrived.is_empty(), "{:?}", seen.arrived);
    assert_eq!((seen.record.backend, seen.record.endpoint), (None, None));
    assert_eq!(seen.record.attempts, 0);
}

#[test]
fn a_call_that_one_backend_can_be_told_is_not_refused_for_another() {
    let seen = in_two_dialects(r#"{"model":"m","messages":[{"image_url":""}]}"#);
    assert_eq!(
        (seen.record.status, seen.record.code),
        (503, "upstream_status")
    );
    assert!(
        !seen.body().contains("messages[0].image_url"),
        "{}",
        seen.body()
    );
    assert_eq!(seen.arrived.len(), 1, "{:?}", seen.arrived);
    // The record names the one that was asked.
    assert_eq!(seen.record.backend, Some(BackendId(0)));
    assert_eq!(seen.record.endpoint, Some(EndpointId(0)));
    assert_eq!(seen.record.attempts, 1);
}

#[test]
fn a_document_that_is_kept_until_it_can_be_read_counts_as_what_the_worker_keeps() {
    let body = r#"{"model":"m","messages":[]}"#;
    let of_two = |bytes| {
        let mut s = two_backends();
        s.bounds.bodies_bytes = bytes;
        for backend in &mut s.backends {
            backend.filters = vec![Arc::new(ToMessages)];
        }
        let answer = r#"{"type":"message","content":[{"type":"text","text":"hello"}],"usage":{"input_tokens":7,"output_tokens":4}}"#;
        call_in_pieces(s, body, vec![json(200, answer)], 10)
    };
    let seen = of_two(200);
    assert_eq!(seen.record.status, 200, "{}", seen.response);
    let seen = of_two(80);
    assert_eq!((seen.record.status, seen.record.code), (503, "overloaded"));
    assert_eq!(seen.record.outcome, Outcome::Refused);
    assert!(
        seen.response.starts_with("HTTP/1.1 503 "),
        "{}",
        seen.response
    );
}

#[test]
fn a_stream_that_never_tells_its_end_broke_off_whoever_reads_it() {
    let of = |events: &str| {
        let length = events.len();
        let answer = format!(
            "HTTP/1.1 200 X\r\ncontent-type: text/event-stream\r\ncontent-length: {length}\r\n\r\n{events}"
        );
        call(two_backends(), STREAMED, vec![answer])
    };
    let begun = "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}],\"usage\":null}\n\n";
    let seen = of(begun);
    assert_eq!(
        (seen.record.outcome, seen.record.code),
        (Outcome::Failed, "upstream_cut")
    );
    assert!(
        seen.response.contains("\"content\":\"a\""),
        "as it came: {}",
        seen.response
    );
    for end in [
        "data: [DONE]\n\n",
        "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n",
    ] {
        let seen = of(&format!("{begun}{end}"));
        assert_eq!(
            (seen.record.outcome, seen.record.code),
            (Outcome::Completed, ""),
            "{end}"
        );
    }
}

#[test]
fn a_backend_that_cannot_be_told_the_call_gives_way_and_costs_no_retry() {
    let ten = BackendPlan {
        name: "near",
        weights: &[1; 10],
        ..ONE
    };
    let far = BackendPlan { name: "far", ..ONE };
    let mut s = snapshot(&[RoutePlan {
        workloads: &["app"],
        backends: &[ten, far],
        ..RoutePlan::default()
    }]);
    s.backends[0].filters = vec![Arc::new(ToMessages)];
    s.routes[0].retries.burst = 0;
    s.routes[0].retries.attempts = 1;
    let body = r#"{"model":"m","messages":[{"image_url":""}]}"#;
    let seen = call(s, body, vec![json(200, CHAT)]);
    assert_eq!((seen.record.status, seen.record.attempts), (200, 1));
    assert_eq!(seen.arrived.len(), 1, "{:?}", seen.arrived);
    assert_eq!(seen.attempts, 1, "attempts of which is told");
}

#[test]
fn what_one_backend_cannot_be_told_does_not_hide_why_another_failed() {
    let mut s = two_backends();
    s.backends[0].filters = vec![Arc::new(ToMessages)];
    let body = r#"{"model":"m","messages":[{"image_url":""}]}"#;
    let seen = call(s, body, vec!["no answer\r\n\r\n".to_owned()]);
    assert_eq!(seen.arrived.len(), 1, "{:?}", seen.arrived);
    assert_eq!(
        (seen.record.status, seen.record.code),
        (502, "upstream_malformed")
    );
}
