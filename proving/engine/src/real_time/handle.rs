//! What a request holds while the engine works for it.
//!
//! Invariant: dropping it ends the work; a wake-up is never lost: the reader leaves its waker before it looks.
//! Not here: the engine's side (the parent).

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use simulator::scheduler::RequestId;
use tokio::sync::mpsc;

use super::Command;

/// How far each choice of one request has come.
#[derive(Debug)]
pub(crate) struct Progress {
    tokens: Vec<AtomicU32>,
    failed: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

impl Progress {
    pub(crate) fn new(choices: usize) -> Arc<Self> {
        let tokens = (0..choices).map(|_| AtomicU32::new(0)).collect();
        Arc::new(Self {
            tokens,
            failed: AtomicBool::new(false),
            waker: Mutex::new(None),
        })
    }

    /// Choice `choice` has `tokens` tokens now.
    pub(super) fn reach(&self, choice: usize, tokens: usize) {
        if let Some(count) = self.tokens.get(choice) {
            count.store(u32::try_from(tokens).unwrap_or(u32::MAX), Ordering::Release);
        }
        self.wake();
    }

    /// The engine will not work for it after all.
    pub(super) fn fail(&self) {
        self.failed.store(true, Ordering::Release);
        self.wake();
    }

    fn wake(&self) {
        let waker = self
            .waker
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn listen(&self, cx: &Context<'_>) {
        *self.waker.lock().unwrap_or_else(PoisonError::into_inner) = Some(cx.waker().clone());
    }

    fn reached(&self, choice: usize) -> usize {
        self.tokens
            .get(choice)
            .map_or(0, |count| count.load(Ordering::Acquire) as usize)
    }
}

/// A request's place in the engine.
pub(crate) struct JobHandle {
    progress: Arc<Progress>,
    ids: Vec<RequestId>,
    engine: mpsc::UnboundedSender<Command>,
}

impl JobHandle {
    pub(crate) fn new(
        progress: Arc<Progress>,
        ids: Vec<RequestId>,
        engine: mpsc::UnboundedSender<Command>,
    ) -> Self {
        Self {
            progress,
            ids,
            engine,
        }
    }

    /// Waits until any choice has more tokens than were `seen`, which it brings up to date. False when there will
    /// be no more.
    pub(crate) fn poll_news(&mut self, cx: &Context<'_>, seen: &mut [usize]) -> Poll<bool> {
        self.progress.listen(cx);
        let mut news = false;
        for (choice, seen) in seen.iter_mut().enumerate() {
            let came = self.progress.reached(choice);
            news |= came > *seen;
            *seen = came;
        }
        if news {
            return Poll::Ready(true);
        }
        if self.progress.failed.load(Ordering::Acquire) {
            Poll::Ready(false)
        } else {
            Poll::Pending
        }
    }
}

impl Drop for JobHandle {
    fn drop(&mut self) {
        for id in &self.ids {
            // The engine may have ended first; then there is nothing left to abort.
            let _ = self.engine.send(Command::Abort(*id));
        }
    }
}
