//! Giving an answer as its tokens come: whole at the end, or as a stream of server-sent events.
//!
//! Tokens come from a simulated engine that many requests share ([`JobHandle`]), or, where there is none, at the call's
//! own pace: token `i` no earlier than ttft + i x inter-token after the start, and no timer for a zero wait.
//! Invariant: a stream is driven by its reader alone, so a slow reader is never buffered for; what is dropped before
//! its end is aborted.
//! Not here: what the events say (an [`AnswerWriter`] does), faults (`faults`).

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
use crate::real_time::JobHandle;

/// Events waiting to be sent.
pub(crate) type Events = VecDeque<Bytes>;

/// One dialect's way to say an answer.
pub(crate) trait AnswerWriter: Send + Sync {
    fn plan(&self) -> &Plan;
    /// Events before any token, sent at once.
    fn preamble(&mut self, _out: &mut Events) {}
    /// Events of the tokens `from..to` of a choice, and its end when those are its last.
    fn tokens(&mut self, choice: usize, from: usize, to: usize, out: &mut Events);
    /// Events after the last token of the last choice.
    fn closing(&mut self, out: &mut Events);
    /// The answer in one piece, for a call that is not a stream.
    fn whole(&self) -> Bytes;
}

/// Where tokens come from.
pub(crate) enum Source {
    /// The call's own pace; one generation for each choice.
    Alone(Vec<Generation>),
    /// An engine that is shared.
    Engine(JobHandle),
}

/// Waits as long as the whole generation takes, then gives the answer in one piece. `None` when the engine gave up.
pub(crate) async fn whole(writer: Box<dyn AnswerWriter>, source: Source) -> Option<Bytes> {
    match source {
        Source::Engine(mut handle) => {
            let mut seen = vec![0; writer.plan().choices.len()];
            while !is_complete(&seen, writer.plan()) {
                if !std::future::poll_fn(|cx| handle.poll_news(cx, &mut seen)).await {
                    return None;
                }
            }
        }
        Source::Alone(generations) => {
            let mut pending = Unfinished {
                generations,
                writer: &*writer,
            };
            let total = writer.plan().total();
            if !total.is_zero() {
                tokio::time::sleep(total).await;
            }
            pending.finish();
        }
    }
    Some(writer.whole())
}

fn is_complete(came: &[usize], plan: &Plan) -> bool {
    came.iter()
        .zip(&plan.choices)
        .all(|(came, choice)| *came == choice.turn.tokens())
}

/// Counts what an abandoned call had generated before its [`Generation`]s end as aborted.
struct Unfinished<'a> {
    generations: Vec<Generation>,
    writer: &'a dyn AnswerWriter,
}

impl Unfinished<'_> {
    fn finish(&mut self) {
        let plan = self.writer.plan();
        for (generation, choice) in self.generations.iter_mut().zip(&plan.choices) {
            generation.tokens_by_now(plan, choice.turn.tokens(), true);
            generation.finish(choice.finish);
        }
    }
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        let plan = self.writer.plan();
        for (generation, choice) in self.generations.iter_mut().zip(&plan.choices) {
            if !generation.has_ended() {
                generation.tokens_by_now(plan, choice.turn.tokens(), false);
            }
        }
    }
}

#[derive(PartialEq)]
enum Stage {
    Preamble,
    Tokens,
    Closing,
    Done,
}

/// A streamed answer as a response body.
pub(crate) struct Paced {
    writer: Box<dyn AnswerWriter>,
    source: Source,
    stage: Stage,
    events: Events,
    /// Tokens of each choice that were said.
    said: Vec<usize>,
    /// Tokens of each choice that came.
    came: Vec<usize>,
    interval: usize,
    due: Instant,
    timer: Option<Pin<Box<Sleep>>>,
}

impl Paced {
    /// `interval` is the number of tokens in an event.
    pub(crate) fn new(writer: Box<dyn AnswerWriter>, source: Source, interval: usize) -> Self {
        let said = vec![0; writer.plan().choices.len()];
        Self {
            writer,
            source,
            stage: Stage::Preamble,
            events: Events::new(),
            came: said.clone(),
            said,
            interval: interval.max(1),
            due: Instant::now(),
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

    /// Waits for the next tokens and says those that are due.
    fn poll_tokens(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match &mut self.source {
            Source::Alone(generations) => {
                if let Some(timer) = &mut self.timer {
                    ready!(timer.as_mut().poll(cx));
                }
                let now = std::time::Instant::now();
                let choices = self.writer.plan().choices.iter().zip(&mut self.came);
                for (generation, (choice, came)) in generations.iter_mut().zip(choices) {
                    let last = choice.turn.tokens();
                    if *came < last {
                        *came += 1;
                        generation.token(now);
                    }
                    if *came == last && !generation.has_ended() {
                        generation.finish(choice.finish);
                    }
                }
                self.arm(self.writer.plan().itl);
            }
            Source::Engine(handle) => {
                if !ready!(handle.poll_news(cx, &mut self.came)) {
                    self.stage = Stage::Done;
                    return Poll::Ready(());
                }
            }
        }
        for choice in 0..self.said.len() {
            self.say(choice);
        }
        if is_complete(&self.said, self.writer.plan()) {
            self.stage = Stage::Closing;
        }
        Poll::Ready(())
    }

    /// Says what came of a choice: its first token at once, then as many together as the interval holds, and its end.
    fn say(&mut self, choice: usize) {
        let last = self.writer.plan().choices[choice].turn.tokens();
        let (from, came) = (self.said[choice], self.came[choice]);
        if came > from && (from == 0 || came == last || came - from >= self.interval) {
            self.said[choice] = came;
            self.writer.tokens(choice, from, came, &mut self.events);
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
                    this.writer.preamble(&mut this.events);
                    this.stage = Stage::Tokens;
                    this.arm(this.writer.plan().ttft);
                }
                Stage::Tokens => ready!(this.poll_tokens(cx)),
                Stage::Closing => {
                    this.writer.closing(&mut this.events);
                    this.stage = Stage::Done;
                }
                Stage::Done => return Poll::Ready(None),
            }
        }
    }
}
