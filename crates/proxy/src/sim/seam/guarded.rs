//! Features to come: a stream in another form than its client's, and a guard behind it.
//!
//! Not here: dialects (`filters`).

use std::sync::Arc;

use bytes::Bytes;
use policy::record::{Count, Outcome};
use policy::snapshot::Snapshot;
use wire::answer::{Lane, Piece, Reader};
use wire::dialect::Operation;
use wire::filter::{Answering, Content, Filter, Request, ResponseFilter, Shape, Stop, Unfit};
use wire::head::ResponseHead;

use super::{CHAT, Seen, call, call_in_pieces, json, two_backends};

/// A provider with a stream of frames: a byte 1, a text's length in a byte, the text; byte 2 and two counts end it.
#[derive(Debug, Clone, Copy)]
struct ToFrames;

const FRAMES: &str = "application/vnd.acme.frames";

impl Filter for ToFrames {
    fn operation(&self, _: Operation) -> Operation {
        Operation::Messages
    }

    fn request(
        &self,
        _: Operation,
        request: &mut Request,
    ) -> Result<Option<Box<dyn Answering>>, Unfit> {
        request.path = Some("/model/m/stream".into());
        request.query = Some("frames=1".to_owned());
        request.headers = vec![
            ("content-type".into(), b"application/vnd.acme.call".into()),
            ("x-acme-version".into(), b"3".into()),
        ];
        request.body = vec![Bytes::from_static(b"call")];
        Ok(Some(Box::new(*self)))
    }
}

impl Answering for ToFrames {
    fn response(
        &self,
        head: &ResponseHead,
        content: Content,
        _: u64,
    ) -> Option<Box<dyn ResponseFilter>> {
        assert_eq!((head.status, content), (200, Content::Other));
        Some(Box::new(FromFrames(Vec::new())))
    }
}

#[derive(Debug)]
struct FromFrames(Vec<u8>);

fn event(text: &str) -> Bytes {
    let data = format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n");
    Bytes::from(data)
}

impl ResponseFilter for FromFrames {
    fn shape(&self) -> Option<Shape> {
        Some(Shape {
            content: Content::Events,
            content_type: "text/event-stream".into(),
            headers: vec![("x-translated".into(), (*b"yes").into())],
        })
    }

    fn pass(&mut self, piece: &[u8], is_over: bool, out: &mut Vec<Bytes>) -> Result<(), Stop> {
        self.0.extend_from_slice(piece);
        loop {
            match self.0.as_slice() {
                [1, length, rest @ ..] if rest.len() >= usize::from(*length) => {
                    let whole = 2 + usize::from(*length);
                    let text = String::from_utf8(self.0[2..whole].to_vec());
                    out.push(event(&text.expect("text")));
                    self.0.drain(..whole);
                }
                [2, prompt, completion, ..] => {
                    let usage = format!(
                        "data: {{\"choices\":[],\"usage\":{{\"prompt_tokens\":{prompt},\"completion_tokens\":{completion}}}}}\n\n"
                    );
                    out.extend([Bytes::from(usage), Bytes::from_static(b"data: [DONE]\n\n")]);
                    self.0.drain(..3);
                }
                [] | [1, ..] | [2, ..] if !is_over || self.0.is_empty() => return Ok(()),
                _ => return Err(Stop::Malformed),
            }
        }
    }

    fn held(&self) -> usize {
        self.0.len()
    }
}

/// Masks a word of the answer's text, wherever events part it; refuses an answer that has another one.
#[derive(Debug, Clone, Copy)]
struct Mask;

const WORD: &str = "secret";
const FORBIDDEN: &str = "poison";

impl Filter for Mask {
    fn request(&self, _: Operation, _: &mut Request) -> Result<Option<Box<dyn Answering>>, Unfit> {
        Ok(Some(Box::new(*self)))
    }
}

impl Answering for Mask {
    fn response(
        &self,
        _: &ResponseHead,
        content: Content,
        _: u64,
    ) -> Option<Box<dyn ResponseFilter>> {
        assert_eq!(content, Content::Events);
        Some(Box::new(Masking {
            reader: Reader::new(true, 1 << 16),
            unread: Vec::new(),
            text: String::new(),
        }))
    }
}

#[derive(Debug)]
struct Masking {
    reader: Reader,
    /// What came of an event that is not whole yet.
    unread: Vec<u8>,
    /// Text that may begin the word.
    text: String,
}

impl Masking {
    fn told(&mut self, is_over: bool, out: &mut Vec<Bytes>) -> Result<(), Stop> {
        if self.text.contains(FORBIDDEN) {
            return Err(Stop::Refused("poisoned"));
        }
        let text = self.text.replace(WORD, "******");
        let begins = |word: &str| (1..word.len()).rev().find(|n| text.ends_with(&word[..*n]));
        let kept = begins(WORD).max(begins(FORBIDDEN)).filter(|_| !is_over);
        let (gone, kept) = text.split_at(text.len() - kept.unwrap_or(0));
        if !gone.is_empty() {
            out.push(event(gone));
        }
        self.text = kept.to_owned();
        Ok(())
    }
}

impl ResponseFilter for Masking {
    fn pass(&mut self, piece: &[u8], is_over: bool, out: &mut Vec<Bytes>) -> Result<(), Stop> {
        self.unread.extend_from_slice(piece);
        while let Some(at) = self.unread.windows(2).position(|two| two == b"\n\n") {
            let whole: Vec<u8> = self.unread.drain(..at + 2).collect();
            let (mut has_text, text) = (false, &mut self.text);
            self.reader.push(&whole, |piece| {
                if let Piece::Text(0, Lane::Content, more) = piece {
                    has_text = true;
                    text.push_str(more);
                }
            });
            if has_text {
                self.told(false, out)?;
            } else {
                // It has no text: what is held goes first.
                self.told(true, out)?;
                out.push(whole.into());
            }
        }
        if is_over {
            self.told(true, out)?;
        }
        Ok(())
    }

    fn held(&self) -> usize {
        self.unread.len() + self.text.len()
    }
}

fn frames(texts: &[&str]) -> String {
    let mut body = String::new();
    for text in texts {
        body.push('\u{1}');
        body.push(char::from(u8::try_from(text.len()).expect("short")));
        body.push_str(text);
    }
    body.push_str("\u{2}\u{7}\u{4}");
    let length = body.len();
    format!(
        "HTTP/1.1 200 X\r\ncontent-type: {FRAMES}\r\ncontent-length: {length}\r\nx-translated: no\r\n\r\n{body}"
    )
}

fn guarded() -> Snapshot {
    let mut s = two_backends();
    s.routes[0].filters = vec![Arc::new(Mask)];
    s.routes[0].hold_back_bytes = 100;
    s.backends[0].filters = vec![Arc::new(ToFrames)];
    s
}

pub(super) const STREAMED: &str = r#"{"model":"m","stream":true,"messages":[]}"#;

/// The text that a client reads.
fn text(seen: &Seen) -> String {
    let mut reader = Reader::new(true, 1 << 16);
    let mut text = String::new();
    // Chunks' sizes are no data lines.
    for line in seen
        .body()
        .lines()
        .filter(|line| line.starts_with("data: "))
    {
        reader.push(format!("{line}\n\n").as_bytes(), |piece| {
            if let Piece::Text(0, Lane::Content, more) = piece {
                text.push_str(more);
            }
        });
    }
    text
}

#[test]
fn a_stream_of_another_form_is_translated_and_a_word_that_chunks_part_is_masked_behind_it() {
    for piece in [usize::MAX, 1, 2, 3, 7, 50] {
        let body = frames(&["the se", "c", "ret is a sec", "ond s", "", "ecre", "t!"]);
        let seen = call_in_pieces(guarded(), STREAMED, vec![body], piece);
        let [sent] = &seen.arrived[..] else {
            panic!("{:?}", seen.arrived);
        };
        assert!(
            sent.text
                .starts_with("POST /v1/model/m/stream?frames=1 HTTP/1.1\r\n"),
            "{}",
            sent.text
        );
        for line in [
            "content-type: application/vnd.acme.call\r\n",
            "x-acme-version: 3\r\n",
            "content-length: 4\r\n",
        ] {
            assert_eq!(sent.text.matches(line).count(), 1, "{}", sent.text);
        }
        assert_eq!(sent.text.matches("content-type").count(), 1);
        let (head, _) = seen.response.split_once("\r\n\r\n").expect("a head");
        assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
        assert!(
            head.contains("content-type: text/event-stream\r\n"),
            "{head}"
        );
        assert!(head.contains("x-translated: yes\r\n"), "{head}");
        assert!(!head.contains(FRAMES) && !head.contains("x-translated: no"));
        assert_eq!(
            text(&seen),
            "the ****** is a second ******!",
            "pieces of {piece}"
        );
        assert!(seen.body().contains("[DONE]"));
        let record = &seen.record;
        assert_eq!(record.outcome, Outcome::Completed);
        assert!(record.streamed);
        // No meter reads frames: it reads what the translation makes of them.
        let tokens = record.tokens;
        assert_eq!(
            (tokens.prompt, tokens.completion),
            (Count::Reported(7), Count::Reported(4))
        );
    }
}

#[test]
fn a_filter_refuses_an_answer_from_its_beginning_or_cuts_it_in_the_middle() {
    let seen = call(guarded(), STREAMED, vec![frames(&["poi", "son"])]);
    assert_eq!((seen.record.status, seen.record.code), (403, "poisoned"));
    assert_eq!(seen.record.outcome, Outcome::Refused);
    assert!(
        seen.response.starts_with("HTTP/1.1 403 "),
        "{}",
        seen.response
    );
    let seen = call_in_pieces(
        guarded(),
        STREAMED,
        vec![frames(&["fine so far, po", "ison"])],
        1,
    );
    assert_eq!((seen.record.status, seen.record.code), (200, "poisoned"));
    assert_eq!(seen.record.outcome, Outcome::Refused);
    assert_eq!(text(&seen), "fine so far, ");
    assert!(!seen.response.ends_with("0\r\n\r\n"), "it is not whole");
}

#[test]
fn a_filter_holds_back_no_more_than_its_route_permits() {
    let mut s = guarded();
    s.routes[0].hold_back_bytes = 4;
    let seen = call(s, STREAMED, vec![frames(&["a secre", "t"])]);
    assert_eq!(seen.record.code, "", "what is whole was held for no time");
    let mut s = guarded();
    s.routes[0].hold_back_bytes = 4;
    let seen = call_in_pieces(s, STREAMED, vec![frames(&["a secre", "t"])], 1);
    assert_eq!(seen.record.code, "filter_held_back_too_much");
}

#[test]
fn a_stream_that_is_not_what_its_head_said_is_not_whole() {
    let broken = frames(&["fine"]).replace('\u{2}', "\u{3}");
    let seen = call_in_pieces(guarded(), STREAMED, vec![broken], 1);
    assert_eq!(seen.record.outcome, Outcome::Failed);
    assert_eq!(text(&seen), "fine");
    assert!(!seen.response.ends_with("0\r\n\r\n"), "it is not whole");
}

#[test]
fn a_call_that_passes_no_filter_keeps_nothing_for_them() {
    assert_eq!(size_of::<wire::filter::Pipe>(), size_of::<usize>());
    let seen = call(two_backends(), r#"{"model":"m"}"#, vec![json(200, CHAT)]);
    assert_eq!(seen.body(), CHAT, "byte for byte");
}

#[test]
fn binary_events_are_an_answer_of_no_api_that_has_none() {
    let length = "content-length: 4\r\n\r\nabcd";
    let kind = wire::eventstream::CONTENT_TYPE;
    for body in [r#"{"model":"m"}"#, STREAMED] {
        let answer = format!("HTTP/1.1 200 X\r\ncontent-type: {kind}\r\n{length}");
        let seen = call(two_backends(), body, vec![answer.clone(), answer]);
        let record = &seen.record;
        assert_eq!((record.status, record.code), (502, "upstream_bad_response"));
        assert!(!seen.body().contains("abcd"), "{}", seen.body());
    }
}
