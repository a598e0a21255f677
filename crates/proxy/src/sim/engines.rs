//! Upstreams: they answer in pieces, break off, stall, refuse, and close what they kept open.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use policy::attempt::Failure;
use policy::snapshot::Origin;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{Instant, sleep};
use wire::head::{Known, RequestHead};
use wire::http1::{Limits, Step, parse_request};

use super::scene::KEY;
use super::{Rng, Shared};
use crate::memory::{Pipe, pipe};
use crate::stream::Stream;

/// A request that an upstream has read whole, and its answer.
#[derive(Debug, Clone)]
pub(super) struct Arrived {
    pub(super) host: String,
    pub(super) at: Instant,
    pub(super) status: u16,
    /// The body of the answer as far as it was sent; and as far without the usage event.
    pub(super) body: Vec<u8>,
    pub(super) visible: Vec<u8>,
    /// All of it was sent.
    pub(super) is_whole: bool,
}

/// All upstreams.
pub(super) struct Engines {
    log: Shared,
    rng: RefCell<Rng>,
}

impl Engines {
    pub(super) fn new(log: &Shared, rng: Rng) -> Self {
        Self {
            log: Rc::clone(log),
            rng: RefCell::new(rng),
        }
    }

    pub(super) fn dial(&self, origin: &Origin) -> Result<Stream, Failure> {
        let mut rng = self.rng.borrow_mut().fork();
        if rng.chance(3) {
            return Err(Failure::Connect);
        }
        let (ours, theirs) = pipe();
        let engine = Engine {
            host: origin.host.clone(),
            log: Rc::clone(&self.log),
            rng,
            pipe: ours,
        };
        tokio::task::spawn_local(engine.run());
        Ok(Stream::Memory(theirs))
    }
}

/// One connection to an upstream.
struct Engine {
    host: String,
    log: Shared,
    rng: Rng,
    pipe: Pipe,
}

/// How a connection goes on after an answer.
#[derive(PartialEq, Eq)]
enum Then {
    Keep,
    Close,
}

impl Engine {
    async fn run(mut self) {
        let mut input = Vec::new();
        loop {
            if self.rng.chance(4) {
                // Closed while nobody asks, or just as somebody does.
                sleep(self.rng.millis(300)).await;
                return;
            }
            let Some(body) = self.request(&mut input).await else {
                return;
            };
            if self.answer(&body).await == Some(Then::Keep) {
                continue;
            }
            return;
        }
    }

    /// The body of the next request.
    async fn request(&mut self, input: &mut Vec<u8>) -> Option<String> {
        let mut head = RequestHead::new();
        let mut buffer = [0; 8192];
        loop {
            if let Ok(Step::Done { consumed }) = parse_request(input, &Limits::default(), &mut head)
            {
                let length = head.fields.only(Known::ContentLength).ok().flatten()?;
                let length: usize = std::str::from_utf8(length).ok()?.parse().ok()?;
                if self.rng.chance(2) {
                    return None; // It ends before it has read the whole.
                }
                while input.len() < consumed + length {
                    match self.pipe.read(&mut buffer).await {
                        Ok(read @ 1..) => input.extend_from_slice(&buffer[..read]),
                        Ok(_) | Err(_) => return None,
                    }
                }
                let key = head.fields.only(Known::Authorization).ok().flatten();
                if key != Some(format!("Bearer {KEY}").as_bytes()) {
                    self.log
                        .borrow_mut()
                        .wrong
                        .push(format!("upstream saw {key:?}"));
                }
                let rest = input.split_off(consumed + length);
                let body = input.split_off(consumed);
                *input = rest;
                return String::from_utf8(body).ok();
            }
            match self.pipe.read(&mut buffer).await {
                Ok(read @ 1..) => input.extend_from_slice(&buffer[..read]),
                Ok(_) | Err(_) => return None,
            }
        }
    }

    async fn answer(&mut self, body: &str) -> Option<Then> {
        let tag = body
            .split("\"user\":\"")
            .nth(1)?
            .split('"')
            .next()?
            .to_owned();
        let is_stream = body.contains("\"stream\":true");
        let asks_usage = body.contains("\"include_usage\":true");
        let arrived = Arrived {
            host: self.host.clone(),
            at: Instant::now(),
            status: 0,
            body: Vec::new(),
            visible: Vec::new(),
            is_whole: false,
        };
        let nth = {
            let mut log = self.log.borrow_mut();
            let all = log.arrived.entry(tag.clone()).or_default();
            all.push(arrived);
            all.len() - 1
        };
        sleep(self.rng.millis(400)).await;
        let error = |status: u16, field: &str| {
            let body = format!("{{\"error\":{{\"message\":\"{tag}\"}}}}");
            let head = format!(
                "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\n{field}content-length: {}\r\n\r\n",
                body.len()
            );
            (head, body)
        };
        let (status, (head, body)) = match self.rng.between(0, 100) {
            0..3 => return None,
            3..5 => {
                // Nothing comes; the gate gives up first.
                sleep(Duration::from_secs(30)).await;
                return None;
            }
            5..7 => {
                self.say(b"HTTP/1.1 abc\r\n\r\n").await?;
                return None;
            }
            7..10 => (503, error(503, "")),
            10..12 => (429, error(429, "retry-after: 1\r\n")),
            12..14 => (500, error(500, "")),
            14..16 => (400, error(400, "")),
            16 => (401, error(401, "")),
            17 => (302, error(302, "location: http://elsewhere.test/\r\n")),
            _ => return self.good(&tag, nth, is_stream, asks_usage).await,
        };
        let is_kept = self.say(head.as_bytes()).await.is_some();
        self.sent(&tag, nth, status, body.as_bytes(), true, is_kept);
        self.say(body.as_bytes()).await?;
        Some(Then::Keep)
    }

    /// A good answer, which may break off or stall all the same.
    async fn good(
        &mut self,
        tag: &str,
        nth: usize,
        is_stream: bool,
        asks_usage: bool,
    ) -> Option<Then> {
        let (prompt, completion) = (self.rng.between(1, 50), self.rng.between(1, 40));
        let sum = prompt + completion;
        let usage = format!(
            "\"usage\":{{\"prompt_tokens\":{prompt},\"completion_tokens\":{completion},\"total_tokens\":{sum}}}"
        );
        // Each part, and whether a client sees it that asked for no usage.
        let mut parts: Vec<(String, bool)> = Vec::new();
        if is_stream {
            for n in 0..self.rng.between(1, 12) {
                parts.push((
                    format!("data: {{\"id\":\"{tag}\",\"choices\":[{{\"n\":{n}}}]}}\n\n"),
                    true,
                ));
            }
            if asks_usage {
                parts.push((format!("data: {{\"choices\":[],{usage}}}\n\n"), false));
            }
            parts.push(("data: [DONE]\n\n".to_owned(), true));
        } else {
            let text = "x".repeat(usize::try_from(self.rng.between(0, 3000)).ok()?);
            parts.push((
                format!("{{\"id\":\"{tag}\",\"choices\":[{{\"text\":\"{text}\"}}],{usage}}}"),
                true,
            ));
        }
        let all: String = parts.iter().map(|(part, _)| part.as_str()).collect();
        let kind = if is_stream {
            "text/event-stream"
        } else {
            "application/json"
        };
        let is_chunked = is_stream || self.rng.chance(30);
        let framing = if is_chunked {
            "transfer-encoding: chunked".to_owned()
        } else {
            format!("content-length: {}", all.len())
        };
        let head = format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\n{framing}\r\n\r\n");
        self.say(head.as_bytes()).await?;
        self.sent(tag, nth, 200, b"", true, false);
        let breaks_at = self
            .rng
            .chance(8)
            .then(|| self.rng.between(0, 1 + parts.len() as u64));
        for (at, (part, is_visible)) in parts.iter().enumerate() {
            if breaks_at == Some(at as u64) {
                if self.rng.chance(40) {
                    sleep(Duration::from_secs(30)).await;
                }
                return None;
            }
            if self.rng.chance(30) {
                sleep(self.rng.millis(500)).await;
            }
            self.sent(tag, nth, 200, part.as_bytes(), *is_visible, false);
            if is_chunked {
                self.say(format!("{:x}\r\n{part}\r\n", part.len()).as_bytes())
                    .await?;
            } else {
                let (first, rest) = part.split_at(part.len() / 2);
                self.say(first.as_bytes()).await?;
                sleep(self.rng.millis(3)).await;
                self.say(rest.as_bytes()).await?;
            }
        }
        self.sent(tag, nth, 200, b"", true, true);
        if is_chunked {
            self.say(b"0\r\n\r\n").await?;
        }
        if self.rng.chance(10) {
            return Some(Then::Close);
        }
        Some(Then::Keep)
    }

    async fn say(&mut self, bytes: &[u8]) -> Option<()> {
        self.pipe.write_all(bytes).await.ok()
    }

    /// Notes what is being sent.
    fn sent(
        &self,
        tag: &str,
        nth: usize,
        status: u16,
        part: &[u8],
        is_visible: bool,
        is_whole: bool,
    ) {
        let mut log = self.log.borrow_mut();
        if let Some(arrived) = log.arrived.get_mut(tag).and_then(|all| all.get_mut(nth)) {
            arrived.status = status;
            arrived.body.extend_from_slice(part);
            if is_visible {
                arrived.visible.extend_from_slice(part);
            }
            arrived.is_whole |= is_whole;
        }
    }
}
