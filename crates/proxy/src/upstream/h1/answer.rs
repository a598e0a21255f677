//! The head of an answer, and the first bytes of its body.
//!
//! Invariant: a head is read strictly; informational ones are skipped, and few of them.
//! Not here: the body (`h1`).

use std::io;
use std::task::{Context, Poll};

use policy::attempt::Failure;
use wire::head::{Method, ResponseHead};
use wire::http1::{
    Framing, INFORMATIONAL_CAP, Limits, Step, parse_response, parse_response_or_switch,
    response_framing,
};

use crate::buffer::{Buffers, PooledBuf};
use crate::upstream::pool::Connection;

/// The head of a response is bounded as a request's is.
const LIMITS: Limits = Limits {
    head_bytes: 64 << 10,
    fields: 100,
};

/// Reads a response head, skipping informational ones.
#[derive(Default)]
pub(super) struct Reader {
    /// Bytes of an unfinished head.
    unfinished: Vec<u8>,
    /// After it, the body's first bytes.
    pub(super) early: Option<PooledBuf>,
    /// How many those are.
    rest: usize,
    informational: usize,
    touched: bool,
    /// A 101 is an answer: the request asked for it.
    pub(super) may_switch: bool,
}

/// Why there is no head.
pub(super) enum Ended {
    /// The peer ended the connection in order, before the first byte of an answer.
    InOrder,
    Failed(Failure),
}

pub(super) type Head = (Box<ResponseHead>, Framing, bool);

impl Reader {
    fn ended(&self, end: &io::Result<usize>) -> Ended {
        let in_order = match end {
            Ok(_) => true,
            // The end of the connection, in order but for TLS.
            Err(error) => error.kind() == io::ErrorKind::UnexpectedEof,
        };
        if in_order && !self.touched {
            Ended::InOrder
        } else {
            Ended::Failed(Failure::Reset)
        }
    }

    pub(super) fn poll(
        &mut self,
        buffers: &Buffers,
        connection: &mut Connection,
        method: Method,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Head, Ended>> {
        let mut early = None;
        let polled = buffers.scratch(|scratch| {
            loop {
                let read = match connection.stream.poll_into(cx, scratch) {
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(Ok(read @ 1..)) => &scratch[..read],
                    Poll::Ready(end) => return Poll::Ready(Err(self.ended(&end))),
                };
                self.touched = true;
                let parsed = if self.unfinished.is_empty() {
                    let parsed = self.parse(buffers, read, method);
                    early = Some(read.len() - self.rest..read.len()).filter(|_| self.rest > 0);
                    parsed
                } else {
                    let mut whole = std::mem::take(&mut self.unfinished);
                    whole.extend_from_slice(read);
                    let parsed = self.parse(buffers, &whole, method);
                    let rest = whole.len() - self.rest..;
                    self.early = whole
                        .get(rest)
                        .map(PooledBuf::copied)
                        .filter(|_| self.rest > 0);
                    parsed
                };
                match parsed {
                    Some(Ok(head)) => return Poll::Ready(Ok(head)),
                    Some(Err(failure)) => return Poll::Ready(Err(Ended::Failed(failure))),
                    None => {}
                }
            }
        });
        if let Some(early) = early {
            self.early = Some(buffers.hold(early));
        }
        polled
    }

    /// A final head, or `None` with the unfinished input kept.
    fn parse(
        &mut self,
        buffers: &Buffers,
        mut input: &[u8],
        method: Method,
    ) -> Option<Result<Head, Failure>> {
        let mut head = buffers.answered.take().unwrap_or_default();
        loop {
            let parsed = match self.may_switch {
                false => parse_response(input, &LIMITS, &mut head),
                true => parse_response_or_switch(input, &LIMITS, &mut head),
            };
            match parsed {
                Ok(Step::Done { consumed }) => {
                    input = input.get(consumed..).unwrap_or_default();
                    if head.is_informational() && head.status != 101 {
                        self.informational += 1;
                        if self.informational > INFORMATIONAL_CAP {
                            crate::why::tell("too many informational heads");
                            return Some(Err(Failure::Malformed));
                        }
                        continue;
                    }
                    self.rest = input.len();
                    let framing = response_framing(&head, method);
                    return Some(
                        framing
                            .map(|(framing, keep)| (head, framing, keep))
                            .map_err(|fault| {
                                crate::why::tell(fault);
                                Failure::Malformed
                            }),
                    );
                }
                Ok(Step::Partial) => {
                    self.unfinished = input.to_vec();
                    return None;
                }
                Err(fault) => {
                    crate::why::tell(fault);
                    return Some(Err(Failure::Malformed));
                }
            }
        }
    }
}
