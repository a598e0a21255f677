//! A thread that counts.
//!
//! Invariant: each exchange that began and ended is reported to the reconciler once, even if counting panicked.
//! Not here: which exchange comes to which thread (`handle`), what becomes of a count (`reconciler`).

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, TryRecvError};
use std::time::Instant;

use bytes::Bytes;
use policy::counting::Uncounted;
use policy::operation::Operation;
use policy::record::Tokens;
use tokens::Count;

use crate::answer::{Answer, Output};
use crate::cache::TokenizerCache;
use crate::memory::Permit;
use crate::metrics::{DriftMetrics, Missed};
use crate::reconciler::{Counted, LOOK_EVERY, ReconcileEvent};

/// What a worker sends of an exchange.
pub(crate) enum CountEvent {
    Begin(Box<Begun>),
    /// What was forwarded next of this exchange.
    More(u64, Vec<u8>, Permit),
    End(Box<Ended>),
}

/// A good answer begins.
pub(crate) struct Begun {
    pub(crate) id: u64,
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
pub(crate) struct Ended {
    pub(crate) id: u64,
    /// As it may be a label.
    pub(crate) model: Arc<str>,
    pub(crate) tokens: Tokens,
    /// The answer was forwarded to its end.
    pub(crate) is_whole: bool,
    /// Some of it was dropped for want of memory.
    pub(crate) is_broken: bool,
    /// There was an answer whose text can be counted.
    pub(crate) has_answer: bool,
    /// Its record, where it is told once it is counted.
    pub(crate) rest: Option<Box<Uncounted>>,
}

pub(crate) struct Counter<R> {
    cache: Arc<TokenizerCache>,
    reconciler: Sender<ReconcileEvent<R>>,
    longest: usize,
    open: HashMap<u64, Open>,
}

/// An exchange that has not ended.
struct Open {
    prompt: Result<Count, Missed>,
    /// `None` where the answer has no text.
    answer: Option<Result<Answer, Missed>>,
    /// Of the exchange, and of a document that is read when it is whole.
    permits: Vec<Permit>,
}

impl<R> Counter<R> {
    pub(crate) fn new(
        cache: Arc<TokenizerCache>,
        reconciler: Sender<ReconcileEvent<R>>,
        longest: usize,
    ) -> Self {
        Self {
            cache,
            reconciler,
            longest,
            open: HashMap::new(),
        }
    }

    /// Runs until no worker is left that could send anything.
    pub(crate) fn run(mut self, events: &Receiver<CountEvent>, metrics: &DriftMetrics) {
        loop {
            match events.try_recv() {
                Ok(event) => {
                    let began = Instant::now();
                    self.handle(event);
                    metrics.worked(began.elapsed());
                }
                Err(TryRecvError::Empty) => std::thread::sleep(LOOK_EVERY),
                Err(TryRecvError::Disconnected) => return,
            }
        }
    }

    fn handle(&mut self, event: CountEvent) {
        match event {
            CountEvent::Begin(begun) => self.begin(*begun),
            CountEvent::More(id, bytes, permit) => self.more(id, &bytes, permit),
            CountEvent::End(ended) => self.end(*ended),
        }
    }

    fn begin(&mut self, begun: Begun) {
        let Begun {
            id,
            key,
            operation,
            clock_s,
            streamed,
            request,
            permit,
        } = begun;
        let Some(counter) = self.cache.get(key) else {
            return;
        };
        let prompt = match request {
            Some(request) => guarded(|| {
                let count = counter.prompt(operation, &request.concat(), clock_s);
                count.map_err(|_| Missed::Unreadable)
            }),
            None => Err(Missed::Long),
        };
        let has_text = operation != Operation::Embeddings;
        let answer = has_text.then(|| Ok(Answer::new(counter, streamed, self.longest)));
        let open = Open {
            prompt,
            answer,
            permits: vec![permit],
        };
        self.open.insert(id, open);
    }

    fn more(&mut self, id: u64, bytes: &[u8], permit: Permit) {
        let Some(open) = self.open.get_mut(&id) else {
            return;
        };
        let mut answer = match open.answer.take() {
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

    fn end(&mut self, ended: Ended) {
        let (prompt, output) = match self.open.remove(&ended.id) {
            Some(Open { prompt, answer, .. }) => {
                let answer = answer.filter(|_| ended.has_answer);
                let output = answer.map(|answer| found(answer?, &ended));
                (Some(prompt), output)
            }
            None => (Some(Err(Missed::Unreadable)), None),
        };
        let counted = Counted {
            id: ended.id,
            model: ended.model,
            tokens: ended.tokens,
            is_whole: ended.is_whole,
            prompt,
            output,
            rest: ended.rest,
        };
        // Without a reconciler nobody waits for it.
        let _gone = self
            .reconciler
            .send(ReconcileEvent::Counted(Box::new(counted)));
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
    catch_unwind(AssertUnwindSafe(count)).unwrap_or(Err(Missed::Unreadable))
}
