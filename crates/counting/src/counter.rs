//! What a thread does with one turn of an exchange: count.
//!
//! Invariant: each exchange that began and ended is reported to the reconciler once, even if counting panicked.
//! Not here: which exchange comes to which thread (`shared_queue`), what becomes of a count (`reconciler`).

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use bytes::Bytes;
use policy::counting::Uncounted;
use policy::operation::Operation;
use policy::prompt_counter::AskedPrompt;
use policy::record::Tokens;
use tokens::{Count, Counter as Tokenizer, Prompt, Shape, Uncountable};

use crate::answer::{Answer, Output};
use crate::cache::TokenizerCache;
use crate::calibrations::{Calibrations, CountedModel};
use crate::memory::{EXCHANGE_BYTES, Permit};
use crate::metrics::{DriftMetrics, Missed};
use crate::queue::{Length, Turn};
use crate::reconciler::{Counted, ReconcileEvent, ToReconciler};

/// What a worker sends of an exchange.
#[derive(Debug)]
pub(crate) enum CountEvent {
    Begin(Box<Begun>),
    /// What was forwarded next.
    More(Vec<u8>, Permit),
    End(Box<Ended>),
    /// Somebody asks what a prompt comes to.
    Ask(Box<AskEvent>),
}

impl Length for CountEvent {
    fn bytes(&self) -> usize {
        match self {
            Self::Begin(begun) => begun.request.iter().flatten().map(Bytes::len).sum(),
            Self::More(bytes, _) => bytes.len(),
            Self::Ask(asked) => asked.prompt.body.iter().map(Bytes::len).sum(),
            Self::End(ended) => ended.last.as_ref().map_or(0, |(bytes, _)| bytes.len()),
        }
    }
}

/// A good answer begins.
#[derive(Debug)]
pub(crate) struct Begun {
    pub(crate) key: u64,
    pub(crate) operation: Operation,
    /// The engine's clock, seconds since 1970: some templates name the date.
    pub(crate) clock_s: i64,
    pub(crate) streamed: bool,
    /// `None` when it is too long.
    pub(crate) request: Option<Vec<Bytes>>,
    pub(crate) permit: Permit,
}

/// It ended.
#[derive(Debug)]
pub(crate) struct Ended {
    /// As it may be a label.
    pub(crate) model: Arc<str>,
    /// That of the endpoint that answered.
    pub(crate) backend: Option<Arc<str>>,
    pub(crate) tokens: Tokens,
    /// The answer was forwarded to its end.
    pub(crate) is_whole: bool,
    /// Some of it was dropped for want of memory.
    pub(crate) is_broken: bool,
    /// There was an answer whose text can be counted.
    pub(crate) has_answer: bool,
    /// What was forwarded last, where that has not been sent.
    pub(crate) last: Option<(Vec<u8>, Permit)>,
    /// Its record, where it is told once it is counted.
    pub(crate) rest: Option<Box<Uncounted>>,
}

/// A prompt that is asked about, and who waits for its count.
pub(crate) struct AskEvent {
    pub(crate) prompt: AskedPrompt,
    pub(crate) tell: Box<dyn FnOnce(Option<u64>) + Send>,
    pub(crate) permit: Permit,
}

impl std::fmt::Debug for AskEvent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AskEvent")
            .field("prompt", &self.prompt)
            .finish_non_exhaustive()
    }
}

/// Counts, on any number of threads.
pub(crate) struct Counter<R> {
    pub(crate) cache: Arc<TokenizerCache>,
    pub(crate) reconciler: ToReconciler<R>,
    pub(crate) metrics: Arc<DriftMetrics>,
    pub(crate) calibrations: Arc<Calibrations>,
    /// Of a request or an answer, bytes.
    pub(crate) longest: usize,
    /// The gate ends and waits no longer: what is left is passed on without a count.
    pub(crate) is_hurried: Arc<AtomicBool>,
}

/// An exchange that has not ended.
pub(crate) struct Open {
    /// Its tokenizer's.
    key: u64,
    prompt: Result<Prompt, Missed>,
    /// Why it could not be read.
    unreadable: Option<Box<Uncountable>>,
    /// `None` where the answer has no text.
    answer: Option<Result<Answer, Missed>>,
    /// Of the exchange, and of a document that is read when it is whole.
    permits: Vec<Permit>,
}

impl<R> Counter<R> {
    /// Handles one turn. A panic outside of what is guarded costs the exchange its count, and the thread goes on: its row
    /// is settled when it has waited long enough.
    pub(crate) fn guarded_turn(&self, turn: Turn<CountEvent, Open>) -> Option<Open> {
        catch_unwind(AssertUnwindSafe(|| self.turn(turn))).unwrap_or_else(|_| {
            tracing::error!("bug: a counting thread panicked; one exchange has no count");
            None
        })
    }

    /// Handles one turn, and gives back what there is to keep.
    fn turn(&self, turn: Turn<CountEvent, Open>) -> Option<Open> {
        let began = Instant::now();
        let mut open = turn.kept;
        for event in turn.events {
            match event {
                CountEvent::Begin(begun) => open = self.begin(*begun),
                CountEvent::More(bytes, permit) => {
                    if let Some(open) = &mut open {
                        self.more(open, &bytes, permit);
                    }
                }
                CountEvent::End(mut ended) => {
                    if let (Some(open), Some((bytes, permit))) = (&mut open, ended.last.take()) {
                        self.more(open, &bytes, permit);
                    }
                    self.end(turn.id, open.take(), *ended);
                }
                CountEvent::Ask(asked) => self.asked(*asked),
            }
        }
        self.metrics.worked(began.elapsed());
        open
    }

    /// Tells what a prompt comes to, where the count would be marked as exact.
    fn asked(&self, asked: AskEvent) {
        let AskEvent {
            prompt,
            tell,
            permit,
        } = asked;
        let body = prompt.body.concat();
        let counted = self.cache.get(prompt.key).filter(|_| !self.is_hurried());
        let counted = counted.and_then(|counter| {
            let count = || {
                let counted = counter.prompt(prompt.operation, &body, prompt.clock_s);
                counted.map_err(|_| Missed::Unreadable)
            };
            guarded(count).ok()
        });
        let of = CountedModel {
            backend: prompt.backend,
            model: prompt.model,
            tokenizer: prompt.key,
        };
        let exact = counted.filter(|counted| {
            self.calibrations
                .is_exact(&of, counted.count, counted.shape)
        });
        drop(permit);
        tell(exact.map(|counted| counted.count.tokens));
    }

    fn is_hurried(&self) -> bool {
        self.is_hurried.load(Relaxed)
    }

    fn begin(&self, begun: Begun) -> Option<Open> {
        let Begun {
            key,
            operation,
            clock_s,
            streamed,
            request,
            mut permit,
        } = begun;
        let counter = self.cache.get(key)?;
        let request = request.map(|request| match request.as_slice() {
            [whole] => whole.clone(),
            pieces => pieces.concat().into(),
        });
        let body = request.as_deref().unwrap_or_default();
        let echoes = Tokenizer::echoes(operation, body);
        let hides_reasoning = Tokenizer::hides_reasoning(operation, body);
        let mut unreadable = None;
        let prompt = match request {
            Some(_) if self.is_hurried() => Err(Missed::Late),
            Some(ref request) => guarded(|| {
                counter.prompt(operation, request, clock_s).map_err(|why| {
                    unreadable = Some(Box::new(why));
                    Missed::Unreadable
                })
            }),
            None => Err(Missed::Long),
        };
        // The request is gone; its answer may stream for minutes.
        permit.shrink(EXCHANGE_BYTES);
        let has_text = operation.generates();
        let answer = has_text.then(|| match (echoes, hides_reasoning) {
            (true, _) => Err(Missed::Echo),
            (false, true) => Err(Missed::Hidden),
            (false, false) => Ok(Answer::new(counter, streamed, self.longest)),
        });
        Some(Open {
            key,
            prompt,
            unreadable,
            answer,
            permits: vec![permit],
        })
    }

    fn more(&self, open: &mut Open, bytes: &[u8], permit: Permit) {
        let mut answer = match open.answer.take() {
            Some(Ok(_)) if self.is_hurried() => {
                open.answer = Some(Err(Missed::Late));
                return;
            }
            Some(Ok(answer)) => answer,
            none => {
                open.answer = none;
                return;
            }
        };
        if answer.holds_all() {
            open.permits.push(permit);
        }
        let pushed = guarded(move || {
            answer.push(bytes);
            Ok(answer)
        });
        open.answer = Some(pushed);
    }

    fn end(&self, id: u64, open: Option<Open>, ended: Ended) {
        let Open {
            key,
            prompt,
            unreadable,
            answer,
            permits,
        } = open.unwrap_or_else(Open::unknown);
        let answer = answer.filter(|_| ended.has_answer);
        let output = answer.map(|answer| found(answer?, &ended));
        let shape = prompt.map_or(Shape::NONE, |prompt| prompt.shape);
        let prompt = Some(prompt.map(|prompt| prompt.count));
        let backend = ended.backend.unwrap_or_else(|| Arc::from(""));
        let counted = Counted {
            id,
            of: CountedModel {
                backend,
                model: ended.model,
                tokenizer: key,
            },
            shape,
            unreadable,
            tokens: ended.tokens,
            is_whole: ended.is_whole,
            prompt,
            output,
            rest: ended.rest,
            permits,
        };
        self.reconciler
            .send(ReconcileEvent::Counted(Box::new(counted)));
    }
}

impl Open {
    /// One whose tokenizer is gone.
    const fn unknown() -> Self {
        Self {
            key: 0,
            prompt: Err(Missed::Failed),
            unreadable: None,
            answer: None,
            permits: Vec::new(),
        }
    }
}

fn found(answer: Answer, ended: &Ended) -> Result<Count, Missed> {
    if ended.is_broken {
        return Err(Missed::Busy);
    }
    let Output { count, reasoning } = guarded(|| answer.finish(ended.is_whole))?;
    if reasoning == 0 && ended.tokens.reasoning.is_some_and(|hidden| hidden > 0) {
        return Err(Missed::Hidden);
    }
    Ok(count)
}

/// A tokenizer that panics costs its count and nothing else.
fn guarded<T>(count: impl FnOnce() -> Result<T, Missed>) -> Result<T, Missed> {
    catch_unwind(AssertUnwindSafe(count)).unwrap_or_else(|_| {
        tracing::error!("bug: a tokenizer panicked; a prompt or an answer has no count");
        Err(Missed::Failed)
    })
}

#[cfg(test)]
mod tests;
