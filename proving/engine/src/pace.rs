//! Giving an answer at its pace: whole after a wait, or as a stream of server-sent events.
//!
//! Invariant: token `i` leaves no earlier than ttft + i x inter-token after the start; a zero wait arms no timer;
//! a stream is driven by its reader alone, so a slow reader is never buffered for.
//! Not here: what the events say (a [`Script`] does).

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::Frame;
use tokio::time::{Instant, Sleep, sleep_until};

use crate::generation::Generation;
use crate::plan::Plan;

/// Events waiting to be sent.
pub(crate) type Events = VecDeque<Bytes>;

/// One dialect's way to say an answer.
pub(crate) trait Script: Send + Sync {
    fn plan(&self) -> &Plan;
    /// Events before any token, sent at once.
    fn preamble(&mut self, _out: &mut Events) {}
    /// Events that come with the first token.
    fn opening(&mut self, out: &mut Events);
    fn token(&mut self, i: usize, out: &mut Events);
    /// Events after the last token.
    fn closing(&mut self, out: &mut Events);
    /// The answer in one piece, for a call that is not a stream.
    fn whole(&self) -> Bytes;
}

/// Waits as long as the whole generation takes, then gives the answer in one piece.
pub(crate) async fn whole(script: Box<dyn Script>, generation: Generation) -> Bytes {
    let mut pending = Unfinished { generation, script };
    let total = pending.script.plan().total();
    if !total.is_zero() {
        tokio::time::sleep(total).await;
    }
    pending
        .generation
        .tokens_by_now(pending.script.plan(), true);
    pending.generation.finish(pending.script.plan().finish);
    pending.script.whole()
}

/// Counts what an abandoned call had generated before its [`Generation`] ends as aborted.
struct Unfinished {
    generation: Generation,
    script: Box<dyn Script>,
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if !self.generation.has_ended() {
            self.generation.tokens_by_now(self.script.plan(), false);
        }
    }
}

enum Stage {
    Preamble,
    Token(usize),
    Closing,
    Done,
}

/// A streamed answer as a response body.
pub(crate) struct Paced {
    script: Box<dyn Script>,
    generation: Generation,
    stage: Stage,
    events: Events,
    due: Instant,
    timer: Option<Pin<Box<Sleep>>>,
}

impl Paced {
    pub(crate) fn new(script: Box<dyn Script>, generation: Generation) -> Self {
        let due = Instant::now();
        Self {
            script,
            generation,
            stage: Stage::Preamble,
            events: Events::new(),
            due,
            timer: None,
        }
    }

    fn arm(&mut self, wait: Duration) {
        if wait.is_zero() {
            return;
        }
        self.due += wait;
        match &mut self.timer {
            Some(timer) => timer.as_mut().reset(self.due),
            None => self.timer = Some(Box::pin(sleep_until(self.due))),
        }
    }

    fn poll_due(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match &mut self.timer {
            Some(timer) => timer.as_mut().poll(cx),
            None => Poll::Ready(()),
        }
    }

    fn say_token(&mut self, i: usize) {
        let tokens = self.script.plan().completion_tokens();
        if i == 0 {
            self.script.opening(&mut self.events);
        }
        if i < tokens {
            self.generation.token();
            self.script.token(i, &mut self.events);
        }
        if i + 1 < tokens {
            self.stage = Stage::Token(i + 1);
            self.arm(self.script.plan().itl);
        } else {
            self.stage = Stage::Closing;
        }
    }
}

impl http_body::Body for Paced {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let this = &mut *self;
        loop {
            if let Some(event) = this.events.pop_front() {
                return Poll::Ready(Some(Ok(Frame::data(event))));
            }
            match this.stage {
                Stage::Preamble => {
                    this.script.preamble(&mut this.events);
                    this.stage = Stage::Token(0);
                    this.arm(this.script.plan().ttft);
                }
                Stage::Token(i) => {
                    ready!(this.poll_due(cx));
                    this.say_token(i);
                }
                Stage::Closing => {
                    this.script.closing(&mut this.events);
                    this.generation.finish(this.script.plan().finish);
                    this.stage = Stage::Done;
                }
                Stage::Done => return Poll::Ready(None),
            }
        }
    }
}
