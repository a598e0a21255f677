//! One keep-alive connection of HTTP/1.1 and one exchange on it at a time.
//!
//! Invariant: head and body leave in one vectored write as far as the socket takes them; no byte of a response is kept.
//! A timer is armed once a connection and moved only when it fires, so that a deadline costs an exchange nothing.
//! Not here: which connection (`client`), framing (`response`).

use std::future::{Future, poll_fn};
use std::io::IoSlice;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

use super::failure::Failure;
use super::io::Io;
use super::response::{Parser, Progress};
use super::target::Target;
use super::{Answer, Buffer, HeadWithId, Listener};
use crate::source::{PARTS, Payload};

pub(super) struct Connection {
    io: Io,
    parser: Parser,
    buffer: Buffer,
    /// The head under way.
    head: Vec<u8>,
    alarm: Pin<Box<Sleep>>,
    patience: Duration,
    served: u64,
}

/// No whole answer.
pub(super) enum Fault {
    /// The connection had closed, and nothing of the request was taken.
    Stale,
    Failed(Failure),
}

/// How far the sending is.
struct Sending {
    written: u64,
    all: u64,
    /// Written whole, and out of every buffer of ours.
    is_done: bool,
    is_broken: bool,
    /// By nothing that the peer did, such as a file behind the bytes that was cut: no answer is waited for.
    is_ours: bool,
}

impl Connection {
    pub(super) fn new(io: Io, buffer: &Buffer, patience: Duration) -> Self {
        Self {
            io,
            parser: Parser::new(),
            buffer: Rc::clone(buffer),
            head: Vec::new(),
            alarm: Box::pin(sleep(patience)),
            patience,
            served: 0,
        }
    }

    /// One exchange, and whether the connection is good for another.
    pub(super) async fn exchange(
        &mut self,
        target: &Target,
        (head, id): HeadWithId<'_>,
        payload: &Payload,
        listener: &mut impl Listener,
    ) -> Result<(Answer, bool), Fault> {
        if self.served > 0 && poll_fn(|cx| Poll::Ready(self.is_stale(cx))).await {
            return Err(Fault::Stale);
        }
        self.head.clear();
        let host = target.authority().as_bytes();
        head.write(target.prefix(), host, payload.len(), &mut self.head);
        if let Some((header, id)) = id {
            header.write(id, &mut self.head);
        }
        self.parser.reset();
        let mut sending = Sending {
            written: 0,
            all: self.head.len() as u64 + payload.len(),
            is_done: false,
            is_broken: false,
            is_ours: false,
        };
        let now = Instant::now();
        listener.on_send(now);
        let deadline = now + self.patience;
        let outcome = poll_fn(|cx| {
            if !sending.is_done && !sending.is_broken {
                self.poll_send(cx, payload, &mut sending);
                if sending.is_ours {
                    return Poll::Ready(Err(Fault::Failed(Failure::Send)));
                }
                // Nothing was taken: whoever kept this open may open another.
                if sending.is_broken && sending.written == 0 && self.served > 0 {
                    return Poll::Ready(Err(Fault::Stale));
                }
            }
            self.poll_response(cx, deadline, &sending, listener)
                .map(|outcome| outcome.map_err(Fault::Failed))
        });
        let answer = outcome.await?;
        self.served += 1;
        Ok((answer, self.parser.keep_alive() && sending.is_done))
    }

    /// Whether a kept connection has ended, or speaks unasked.
    fn is_stale(&mut self, cx: &mut Context<'_>) -> bool {
        let mut buffer = self.buffer.borrow_mut();
        let mut read = ReadBuf::new(&mut buffer);
        Pin::new(&mut self.io).poll_read(cx, &mut read).is_ready()
    }

    /// Writes as much as is taken now.
    fn poll_send(&mut self, cx: &mut Context<'_>, payload: &Payload, sending: &mut Sending) {
        while sending.written < sending.all {
            let (slices, count) = rest(&self.head, payload, sending.written);
            let written = Pin::new(&mut self.io).poll_write_vectored(cx, &slices[..count]);
            match written {
                Poll::Pending => return,
                Poll::Ready(Ok(0)) => {
                    sending.is_broken = true;
                    return;
                }
                Poll::Ready(Err(error)) => {
                    sending.is_broken = true;
                    sending.is_ours = !is_of_the_peer(&error);
                    return;
                }
                Poll::Ready(Ok(count)) => sending.written += count as u64,
            }
        }
        match Pin::new(&mut self.io).poll_flush(cx) {
            Poll::Pending => {}
            Poll::Ready(Ok(())) => sending.is_done = true,
            Poll::Ready(Err(_)) => sending.is_broken = true,
        }
    }

    /// Reads what comes, also while the request is not sent whole: a refusal may come before that.
    fn poll_response(
        &mut self,
        cx: &mut Context<'_>,
        deadline: Instant,
        sending: &Sending,
        listener: &mut impl Listener,
    ) -> Poll<Result<Answer, Failure>> {
        loop {
            let shared = Rc::clone(&self.buffer);
            let mut buffer = shared.borrow_mut();
            let mut read = ReadBuf::new(&mut buffer);
            let is_over = match Pin::new(&mut self.io).poll_read(cx, &mut read) {
                Poll::Pending => {
                    ready!(self.poll_deadline(cx, deadline));
                    return Poll::Ready(Err(Failure::Timeout));
                }
                Poll::Ready(read) => read.is_err(),
            };
            let (now, bytes) = (Instant::now(), read.filled());
            // A peer that never stops talking keeps the alarm from being looked at.
            if now >= deadline {
                return Poll::Ready(Err(Failure::Timeout));
            }
            if is_over || bytes.is_empty() {
                return Poll::Ready(self.ended(now, is_over, sending));
            }
            if !self.parser.begun() {
                listener.on_first_byte(now);
            }
            let progress = self.parser.read(bytes, &mut |said, body: &[u8]| {
                listener.on_body(now, said, body);
            });
            match progress {
                Ok(Progress::More) => {}
                Ok(Progress::Done { used }) if used == bytes.len() => {
                    return Poll::Ready(Ok(self.answer(now)));
                }
                Ok(Progress::Done { .. }) | Err(_) => return Poll::Ready(Err(Failure::Malformed)),
            }
        }
    }

    /// The peer ended the connection, in order or not.
    fn ended(&self, now: Instant, by_error: bool, sending: &Sending) -> Result<Answer, Failure> {
        if !by_error && self.parser.ends_at_close() {
            Ok(self.answer(now))
        } else if self.parser.begun() {
            Err(Failure::Truncated)
        } else if sending.is_done {
            Err(Failure::Closed)
        } else {
            Err(Failure::Send)
        }
    }

    const fn answer(&self, now: Instant) -> Answer {
        Answer {
            said: self.parser.said(),
            last_byte: now,
        }
    }

    fn poll_deadline(&mut self, cx: &mut Context<'_>, deadline: Instant) -> Poll<()> {
        while self.alarm.as_mut().poll(cx).is_ready() {
            if Instant::now() >= deadline {
                return Poll::Ready(());
            }
            self.alarm.as_mut().reset(deadline.into());
        }
        Poll::Pending
    }
}

/// The peer may have said why before it went.
fn is_of_the_peer(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, NotConnected};
    matches!(
        error.kind(),
        BrokenPipe | ConnectionAborted | ConnectionReset | NotConnected
    )
}

/// What of head and body is not written yet.
fn rest<'a>(
    head: &'a [u8],
    payload: &'a Payload,
    written: u64,
) -> ([IoSlice<'a>; PARTS + 1], usize) {
    let mut slices = [IoSlice::new(&[]); PARTS + 1];
    let (mut count, mut skip) = (0, usize::try_from(written).unwrap_or(usize::MAX));
    let parts = payload.parts().iter().map(|part| &part[..]);
    for part in std::iter::once(head).chain(parts) {
        let left = part.get(skip..).unwrap_or_default();
        skip = skip.saturating_sub(part.len());
        if !left.is_empty() {
            slices[count] = IoSlice::new(left);
            count += 1;
        }
    }
    (slices, count)
}

#[cfg(test)]
mod tests {
    //! What is left to write.

    use bytes::Bytes;

    use super::rest;
    use crate::source::Payload;

    #[test]
    fn what_is_left_to_write_is_the_same_bytes_from_any_place_on() {
        let parts = [&b"one"[..], b"", b"three", b"4"].map(Bytes::from_static);
        let payload = Payload::new(&parts).expect("four parts");
        let whole = b"headonethree4";
        for written in 0..=whole.len() {
            let (slices, count) = rest(b"head", &payload, written as u64);
            let left: Vec<u8> = slices[..count]
                .iter()
                .flat_map(|part| part.to_vec())
                .collect();
            assert_eq!(left, whole[written..], "{written}");
        }
    }
}
