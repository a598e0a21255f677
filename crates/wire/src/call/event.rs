//! What a client of the Responses API says over a WebSocket: an event, which with its name taken out is the body of a call.
//!
//! Invariant: every member but the event's name and `stream` stands in the body byte for byte; the body asks for a stream.
//! Not here: which events are served (`proxy`), what the members mean.

use std::ops::Range;

use super::going_on::GoingOn;
use crate::json::{self, Interest, Interests, Kind, Member, Repeat, Want};

const NAME_BYTES: usize = 64;

static ASKED: Interests = Interests::new(&[
    Interest::new("type", Want::Raw(NAME_BYTES), Repeat::Refuse),
    Interest::new("stream", Want::Place, Repeat::Refuse),
]);

/// An event of a client's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientEvent {
    /// Its name, such as `response.create`.
    pub name: Box<str>,
    /// With the comma that goes with it.
    name_at: Range<usize>,
    stream_at: Option<Range<usize>>,
    open: usize,
    is_empty: bool,
}

impl ClientEvent {
    /// Reads one. `None` where it is no object with one name.
    #[must_use]
    pub fn read(text: &[u8]) -> Option<Self> {
        let mut scanner = json::Scanner::new(&ASKED);
        scanner.push(text).ok()?;
        let found = scanner.finish().ok()?;
        let name = found.member(0).filter(|name| name.kind == Kind::String)?;
        let name_at = with_comma(text, name);
        // What the name leaves.
        let is_empty =
            name_at.start == found.open? && text.get(name_at.end..)?.trim_ascii() == b"}";
        Some(Self {
            name: found.text(name)?.into(),
            name_at,
            stream_at: found.member(1).map(|stream| stream.value.clone()),
            open: found.open?,
            is_empty,
        })
    }

    /// The body of the call that it is, which asks for a stream.
    #[must_use]
    pub fn body(&self, text: &[u8]) -> Vec<u8> {
        let stream: (Range<usize>, &[u8]) = match &self.stream_at {
            Some(at) => (at.clone(), b"true"),
            None if self.is_empty => (self.open..self.open, b"\"stream\":true"),
            None => (self.open..self.open, b"\"stream\":true,"),
        };
        let mut edits = [stream, (self.name_at.clone(), b"")];
        edits.sort_by_key(|(at, _)| (at.start, at.end));
        let mut body = Vec::with_capacity(text.len() + 16);
        let mut done = 0;
        for (at, put) in edits {
            body.extend_from_slice(text.get(done..at.start).unwrap_or_default());
            body.extend_from_slice(put);
            done = at.end;
        }
        body.extend_from_slice(text.get(done..).unwrap_or_default());
        body
    }
}

/// A member with the comma behind it, or where it is the last one that before it.
fn with_comma(text: &[u8], member: &Member) -> Range<usize> {
    let blanks = |bytes: &[u8]| bytes.iter().take_while(|b| b.is_ascii_whitespace()).count();
    let behind = text.get(member.value.end..).unwrap_or_default();
    let next = member.value.end + blanks(behind);
    if text.get(next) == Some(&b',') {
        return member.key..next + 1;
    }
    let before = text.get(..member.key).unwrap_or_default().trim_ascii_end();
    match before.strip_suffix(b",") {
        Some(before) => before.len()..member.value.end,
        None => member.key..member.value.end,
    }
}

/// What a response that is over leaves for the call that goes on from it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// Its id.
    pub id: Box<str>,
    output: Range<usize>,
}

static OF_AN_END: Interests = Interests::new(&[
    Interest::new("type", Want::Raw(NAME_BYTES), Repeat::LastWins),
    Interest::new("response", Want::Place, Repeat::LastWins),
    Interest::new("response.id", Want::Raw(256), Repeat::LastWins),
    Interest::new("response.output", Want::Place, Repeat::LastWins),
]);

impl Ended {
    /// Reads an event of a response's stream. `None` where it is not the last of one that is done.
    #[must_use]
    pub fn read(event: &[u8]) -> Option<Self> {
        const ENDS: [&str; 2] = ["response.completed", "response.incomplete"];
        let begins = event.get(..event.len().min(256)).unwrap_or_default();
        let may_be = ENDS
            .iter()
            .any(|end| memchr::memmem::find(begins, end.as_bytes()).is_some());
        if !may_be {
            return None;
        }
        let mut scanner = json::Scanner::new(&OF_AN_END);
        scanner.push(event).ok()?;
        let found = scanner.finish().ok()?;
        let name = found.text(found.member(0)?)?;
        let output = found
            .member(3)
            .filter(|output| output.kind == Kind::Array)?;
        ENDS.contains(&&*name).then_some(())?;
        Some(Self {
            id: found.text(found.member(2)?)?.into(),
            output: output.value.clone(),
        })
    }

    /// What was made: a list.
    #[must_use]
    pub fn output<'e>(&self, event: &'e [u8]) -> &'e [u8] {
        event.get(self.output.clone()).unwrap_or_default()
    }

    /// The items of the call, behind which stand those of its answer: a list.
    #[must_use]
    pub fn items(&self, event: &[u8], body: &[u8]) -> Option<Vec<u8>> {
        let whole = GoingOn::read(body)?;
        Some(whole.items_with(body, self.output(event)))
    }
}

/// Whether an event of a response's stream is the last that its client is told.
#[must_use]
pub fn ends_call(event: &[u8]) -> bool {
    const ENDS: [&[u8]; 5] = [
        b"\"response.completed\"",
        b"\"response.incomplete\"",
        b"\"response.failed\"",
        b"\"type\":\"error\"",
        b"\"type\": \"error\"",
    ];
    // What an event is stands at its beginning; what is said, behind that, has its quotes escaped.
    let begins = event.get(..event.len().min(256)).unwrap_or_default();
    ENDS.iter()
        .any(|end| memchr::memmem::find(begins, end).is_some())
}

/// An event that tells of an error.
#[must_use]
pub fn error_event(status: u16, kind: &str, code: &str, message: &str) -> String {
    let error = serde_json::json!({
        "type": "error",
        "status": status,
        "error": { "type": kind, "code": code, "message": message, "param": null },
    });
    error.to_string()
}

static OF_AN_ERROR: Interests =
    Interests::new(&[Interest::new("error", Want::Place, Repeat::LastWins)]);

/// The same of an error's document, with all that stands in it. `None` where it is no such.
#[must_use]
pub fn error_event_of(status: u16, document: &[u8]) -> Option<Vec<u8>> {
    let mut scanner = json::Scanner::new(&OF_AN_ERROR);
    scanner.push(document).ok()?;
    let found = scanner.finish().ok()?;
    let error = found.member(0).filter(|error| error.kind == Kind::Object)?;
    let error = document.get(error.value.clone())?;
    let opening = format!("{{\"type\":\"error\",\"status\":{status},\"error\":");
    Some([opening.as_bytes(), error, b"}"].concat())
}

#[cfg(test)]
mod tests {
    //! Events as SDKs write them.

    use super::{ClientEvent, Ended, ends_call, error_event, error_event_of};

    #[test]
    fn an_event_without_its_name_is_the_body_of_a_call_that_asks_for_a_stream() {
        for (event, body) in [
            (
                r#"{"type":"response.create","model":"m","input":"a"}"#,
                r#"{"stream":true,"model":"m","input":"a"}"#,
            ),
            (
                r#"{"model":"m","input":"a","type":"response.create"}"#,
                r#"{"stream":true,"model":"m","input":"a"}"#,
            ),
            (
                r#"{ "model":"m" , "type" : "response.create" , "stream" : null }"#,
                r#"{ "model":"m" ,  "stream" : true }"#,
            ),
            (
                r#"{"stream":false,"type":"response.create"}"#,
                r#"{"stream":true}"#,
            ),
            (r#"{"type":"response.create"}"#, r#"{"stream":true}"#),
        ] {
            let read = ClientEvent::read(event.as_bytes()).expect("an event");
            assert_eq!(&*read.name, "response.create");
            let made = String::from_utf8(read.body(event.as_bytes())).expect("text");
            assert_eq!(made, body);
            let parsed: serde_json::Value = serde_json::from_str(&made).expect("JSON");
            assert_eq!(parsed["stream"], true);
        }
        for none in [
            r#"{"model":"m"}"#,
            r#"{"type":1}"#,
            "[]",
            r#"{"type":"a","type":"b"}"#,
        ] {
            assert_eq!(ClientEvent::read(none.as_bytes()), None, "{none}");
        }
    }

    #[test]
    fn the_end_of_a_response_says_what_the_next_call_goes_on_from() {
        let event = br#"{"type":"response.completed","sequence_number":9,"response":{"id":"resp_1","output":[{"b":1}],"status":"completed"}}"#;
        let ended = Ended::read(event).expect("an end");
        assert_eq!(&*ended.id, "resp_1");
        let items = ended
            .items(event, br#"{"model":"m","input":"a"}"#)
            .expect("items");
        assert_eq!(
            String::from_utf8(items).expect("text"),
            r#"[{"type":"message","role":"user","content":"a"},{"b":1}]"#
        );
        for other in [
            r#"{"type":"response.failed","response":{"id":"resp_1","output":[]}}"#,
            r#"{"type":"response.output_text.delta","delta":"response.completed"}"#,
            "",
        ] {
            assert_eq!(Ended::read(other.as_bytes()), None, "{other}");
        }
    }

    #[test]
    fn an_error_is_an_event_that_ends_its_call() {
        let event = error_event(400, "invalid_request_error", "c", "no \"such\" thing");
        assert!(ends_call(event.as_bytes()), "{event}");
        let parsed: serde_json::Value = serde_json::from_str(&event).expect("JSON");
        assert_eq!(parsed["error"]["message"], "no \"such\" thing");
        let document = br#"{"error":{"message":"no","code":"rate_limit_exceeded"}}"#;
        let event = error_event_of(429, document).expect("an event");
        assert!(ends_call(&event));
        let parsed: serde_json::Value = serde_json::from_slice(&event).expect("JSON");
        assert_eq!(parsed["status"], 429);
        assert_eq!(parsed["error"]["code"], "rate_limit_exceeded");
        for none in [&b"{}"[..], b"<html>", br#"{"error":"no"}"#] {
            assert_eq!(error_event_of(500, none), None);
        }
        assert!(!ends_call(
            br#"{"type":"response.output_text.delta","delta":"\"response.failed\""}"#
        ));
    }
}
