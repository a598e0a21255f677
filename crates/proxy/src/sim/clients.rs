//! Clients: they send slowly, leave in every phase, read slowly, and keep what they got.

use std::rc::Rc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{Instant, sleep, timeout};
use wire::head::{Method, ResponseHead};
use wire::http1::{ChunkStep, Chunked, Framing, Limits, Step, parse_response, response_framing};

use super::scene::{KEY, WORKLOADS};
use super::{Rng, Shared, connect};
use crate::memory::Pipe;
use crate::worker::Worker;

/// What a client saw of one exchange.
#[derive(Debug, Clone, Default)]
pub(super) struct Seen {
    /// All of its request was written.
    pub(super) is_sent: bool,
    pub(super) asked_usage: bool,
    pub(super) stream: bool,
    /// 0 where no head came.
    pub(super) status: u16,
    pub(super) body: Vec<u8>,
    pub(super) first_byte: Option<Instant>,
    /// The response came to the end that its framing says.
    pub(super) is_whole: bool,
    /// When the client left of its own will.
    pub(super) left_at: Option<Instant>,
}

/// A client with one connection at a time.
pub(super) struct Client {
    nth: usize,
    worker: Rc<Worker>,
    log: Shared,
    rng: Rng,
}

impl Client {
    pub(super) fn new(nth: usize, worker: &Rc<Worker>, log: &Shared, rng: Rng) -> Self {
        Self {
            nth,
            worker: Rc::clone(worker),
            log: Rc::clone(log),
            rng,
        }
    }

    pub(super) async fn run(mut self, exchanges: usize) {
        let mut pipe = None;
        for n in 0..exchanges {
            let tag = format!("c{}-{n}", self.nth);
            if self.worker.is_draining() {
                return;
            }
            let mut open = match pipe.take() {
                Some(pipe) => pipe,
                None => connect(&self.worker),
            };
            let mut seen = Seen {
                stream: self.rng.chance(50),
                asked_usage: self.rng.chance(30),
                ..Seen::default()
            };
            let leaves = self.rng.chance(12);
            let within = if leaves {
                self.rng.millis(1_500)
            } else {
                Duration::from_secs(120)
            };
            let asked = timeout(within, self.exchange(&tag, &mut open, &mut seen)).await;
            seen.left_at = asked.is_err().then(Instant::now);
            if asked == Ok(Some(())) {
                pipe = Some(open);
            }
            self.log.borrow_mut().seen.insert(tag, seen);
            if self.rng.chance(20) {
                sleep(self.rng.millis(800)).await;
            }
        }
    }

    /// One exchange. `None` where the connection is of no more use.
    async fn exchange(&mut self, tag: &str, pipe: &mut Pipe, seen: &mut Seen) -> Option<()> {
        let workload = WORKLOADS[usize::try_from(self.rng.between(0, 4)).ok()?];
        let filler = "f".repeat(usize::try_from(self.rng.between(0, 2000)).ok()?);
        let mut members =
            format!("\"model\":\"m\",\"user\":\"{tag}\",\"max_tokens\":40,\"x\":\"{filler}\"");
        if seen.stream {
            members.push_str(",\"stream\":true");
            if seen.asked_usage {
                members.push_str(",\"stream_options\":{\"include_usage\":true}");
            }
        }
        let body = format!("{{{members}}}");
        let head = format!(
            "POST /v1/chat/completions HTTP/1.1\r\nhost: gate.test\r\nx-workload-app: {workload}\r\n\
             authorization: Bearer client-key\r\nx-request-id: {tag}\r\ncontent-type: application/json\r\n\
             content-length: {}\r\n\r\n",
            body.len()
        );
        let request = format!("{head}{body}").into_bytes();
        if self.rng.chance(15) {
            // In pieces; some wait for longer than the gate does.
            for piece in request.chunks(request.len().div_ceil(3)) {
                pipe.write_all(piece).await.ok()?;
                let wait = if self.rng.chance(4) { 4_000 } else { 300 };
                sleep(self.rng.millis(wait)).await;
            }
        } else {
            pipe.write_all(&request).await.ok()?;
        }
        seen.is_sent = true;
        self.response(tag, pipe, seen).await
    }

    async fn response(&mut self, tag: &str, pipe: &mut Pipe, seen: &mut Seen) -> Option<()> {
        let is_slow = self.rng.chance(5);
        let mut head = ResponseHead::default();
        let mut input = Vec::new();
        let mut buffer = [0; 4096];
        let (framing, keep) = loop {
            match parse_response(&input, &Limits::default(), &mut head) {
                Ok(Step::Done { consumed }) => {
                    input.drain(..consumed);
                    if !head.is_informational() {
                        break response_framing(&head, Method::Post).ok()?;
                    }
                }
                Ok(Step::Partial) => {
                    let read = pipe.read(&mut buffer).await.ok().filter(|read| *read > 0)?;
                    input.extend_from_slice(&buffer[..read]);
                }
                Err(fault) => {
                    self.log
                        .borrow_mut()
                        .wrong
                        .push(format!("malformed response: {fault}"));
                    return None;
                }
            }
        };
        seen.status = head.status;
        seen.first_byte = Some(Instant::now());
        for field in head.fields.iter() {
            if field
                .value
                .windows(KEY.len())
                .any(|part| part == KEY.as_bytes())
            {
                self.log
                    .borrow_mut()
                    .wrong
                    .push("a client saw the key".to_owned());
            }
        }
        let mut chunked = Chunked::new();
        let mut left = match framing {
            Framing::Length(length) => usize::try_from(length).ok()?,
            Framing::None => 0,
            Framing::Chunked | Framing::UntilClose => usize::MAX,
        };
        loop {
            if framing == Framing::Chunked {
                let mut at = 0;
                let is_over = loop {
                    let step = match chunked.next(&input[at..]) {
                        Ok(step) => step,
                        Err(fault) => {
                            let wrong = format!("{tag}: malformed chunks: {fault}");
                            self.log.borrow_mut().wrong.push(wrong);
                            return None;
                        }
                    };
                    match step {
                        ChunkStep::NeedMore { .. } => break false,
                        ChunkStep::End { .. } => break true,
                        ChunkStep::Data { skip, len } => {
                            seen.body
                                .extend_from_slice(&input[at + skip..at + skip + len]);
                            at += skip + len;
                        }
                    }
                };
                input.clear();
                if is_over {
                    break;
                }
            } else {
                left -= input.len();
                seen.body.append(&mut input);
                if left == 0 {
                    break;
                }
            }
            if is_slow {
                sleep(self.rng.millis(1_000)).await;
            }
            let read = pipe.read(&mut buffer).await.ok().filter(|read| *read > 0)?;
            input.extend_from_slice(&buffer[..read]);
        }
        seen.is_whole = true;
        keep.then_some(())
    }
}
