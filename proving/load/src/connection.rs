//! One keep-alive connection and one exchange on it at a time.
//!
//! Invariant: no byte of a response is kept; all connections of a run read into one buffer.
//! A timer is armed once a connection and moved only when it fires, so that a deadline costs
//! an exchange nothing.
//! Not here: when to send (`pace`), what to count (`user`).

use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep, sleep_until, timeout};

use crate::observations::Failure;
use crate::plan::Plan;
use crate::response::{Parser, Progress};

/// Where every connection of a run reads into.
pub(crate) type Buffer = Rc<RefCell<Box<[u8]>>>;

/// Bytes one read takes at most.
pub(crate) const BUFFER_BYTES: usize = 64 * 1024;

pub(crate) struct Connection {
    stream: TcpStream,
    parser: Parser,
    buffer: Buffer,
    alarm: Pin<Box<Sleep>>,
    patience: Duration,
}

/// A whole response.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Answer {
    pub(crate) first_byte: Instant,
    pub(crate) last_byte: Instant,
    pub(crate) status: u16,
    pub(crate) reusable: bool,
}

impl Connection {
    pub(crate) async fn open(plan: &Plan, buffer: &Buffer) -> Result<Self, Failure> {
        let connecting = timeout(plan.timeout, TcpStream::connect(plan.target)).await;
        let stream = connecting
            .map_err(|_| Failure::Connect)?
            .map_err(|_| Failure::Connect)?;
        stream.set_nodelay(true).map_err(|_| Failure::Connect)?;
        Ok(Self {
            stream,
            parser: Parser::new(),
            buffer: Rc::clone(buffer),
            alarm: Box::pin(sleep_until(Instant::now() + plan.timeout)),
            patience: plan.timeout,
        })
    }

    /// Sends `request` and reads the whole response; `on_body` sees the time and bytes of each read.
    pub(crate) async fn exchange(
        &mut self,
        request: &[u8],
        mut on_body: impl FnMut(Instant, &[u8]),
    ) -> Result<Answer, Failure> {
        let deadline = Instant::now() + self.patience;
        let mut written = 0;
        std::future::poll_fn(|cx| self.poll_write(cx, request, &mut written, deadline)).await?;
        self.parser.reset();
        let mut first_byte = None;
        std::future::poll_fn(|cx| self.poll_response(cx, deadline, &mut first_byte, &mut on_body))
            .await
    }

    fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        request: &[u8],
        written: &mut usize,
        deadline: Instant,
    ) -> Poll<Result<(), Failure>> {
        while *written < request.len() {
            match Pin::new(&mut self.stream).poll_write(cx, &request[*written..]) {
                Poll::Ready(Ok(0) | Err(_)) => return Poll::Ready(Err(Failure::Send)),
                Poll::Ready(Ok(count)) => *written += count,
                Poll::Pending => return self.poll_deadline(cx, deadline).map(Err),
            }
        }
        Poll::Ready(Ok(()))
    }

    fn poll_response(
        &mut self,
        cx: &mut Context<'_>,
        deadline: Instant,
        first_byte: &mut Option<Instant>,
        on_body: &mut impl FnMut(Instant, &[u8]),
    ) -> Poll<Result<Answer, Failure>> {
        loop {
            let shared = Rc::clone(&self.buffer);
            let mut buffer = shared.borrow_mut();
            let mut read = ReadBuf::new(&mut buffer);
            match Pin::new(&mut self.stream).poll_read(cx, &mut read) {
                Poll::Pending => return self.poll_deadline(cx, deadline).map(Err),
                Poll::Ready(Err(_)) => return Poll::Ready(Err(self.cut())),
                Poll::Ready(Ok(())) => {}
            }
            let (now, bytes) = (Instant::now(), read.filled());
            if bytes.is_empty() {
                let ended = self.parser.ends_at_close();
                return Poll::Ready(if ended {
                    Ok(self.answer(*first_byte, now))
                } else {
                    Err(self.cut())
                });
            }
            let progress = self.parser.feed(bytes, &mut |body: &[u8]| {
                first_byte.get_or_insert(now);
                on_body(now, body);
            });
            match progress {
                Ok(Progress::More) => {}
                Ok(Progress::Done { used }) if used == bytes.len() => {
                    return Poll::Ready(Ok(self.answer(*first_byte, now)));
                }
                Ok(Progress::Done { .. }) | Err(_) => return Poll::Ready(Err(Failure::Malformed)),
            }
        }
    }

    fn answer(&self, first_byte: Option<Instant>, now: Instant) -> Answer {
        Answer {
            first_byte: first_byte.unwrap_or(now),
            last_byte: now,
            status: self.parser.status(),
            reusable: self.parser.keep_alive(),
        }
    }

    const fn cut(&self) -> Failure {
        if self.parser.begun() {
            Failure::Truncated
        } else {
            Failure::Closed
        }
    }

    fn poll_deadline(&mut self, cx: &mut Context<'_>, deadline: Instant) -> Poll<Failure> {
        while self.alarm.as_mut().poll(cx).is_ready() {
            if Instant::now() >= deadline {
                return Poll::Ready(Failure::Timeout);
            }
            self.alarm.as_mut().reset(deadline);
        }
        Poll::Pending
    }
}
