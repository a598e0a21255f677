//! The thread on which outside services are asked, and the way to it.
//!
//! Invariant: whoever asks never waits to be heard: beyond [`QUESTIONS_MAX`] questions that wait or run, the next is
//! unanswered at once. Every question has an end, and one that nobody waits for any more is dropped.
//! Not here: what is asked (the other modules). Names are looked up by the system's resolver, which blocks: at most
//! [`LOOKUPS_MAX`] threads of the runtime's own wait for it.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::runtime::Builder;
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::task::AbortHandle;

use crate::fault::Fault;

/// Questions that wait or run at once.
pub const QUESTIONS_MAX: usize = 8192;
/// Threads that wait for the system's resolver.
const LOOKUPS_MAX: usize = 8;

type Job = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The thread and its runtime; dropped or closed, what is asked there is unanswered.
#[derive(Debug)]
pub struct Service {
    handle: Handle,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Service {
    /// Starts the thread.
    ///
    /// # Errors
    /// When the system gives no thread or no event queue.
    pub fn start() -> io::Result<Self> {
        let runtime = Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(LOOKUPS_MAX)
            .thread_name("callout-names")
            .build()?;
        let (questions, jobs) = mpsc::channel(QUESTIONS_MAX);
        let handle = Handle {
            questions,
            room: Arc::new(Semaphore::new(QUESTIONS_MAX)),
            runtime: runtime.handle().clone(),
        };
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::Builder::new()
            .name("callout".to_owned())
            .spawn(move || {
                runtime.block_on(async {
                    tokio::select! {
                        () = take(jobs) => {}
                        _ = stopped => {}
                    }
                });
                // A look-up that hangs in the system cannot be ended, and is not waited for.
                runtime.shutdown_background();
            })?;
        Ok(Self {
            handle,
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    /// The way to it.
    #[must_use]
    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Ends it, and waits until its thread is gone.
    pub fn close(mut self) {
        self.end();
    }

    fn end(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.end();
    }
}

async fn take(mut jobs: mpsc::Receiver<Job>) {
    while let Some(job) = jobs.recv().await {
        tokio::spawn(job);
    }
}

/// Hands questions over, from any thread.
#[derive(Debug, Clone)]
pub struct Handle {
    questions: mpsc::Sender<Job>,
    room: Arc<Semaphore>,
    runtime: tokio::runtime::Handle,
}

impl Handle {
    /// Has a question answered there, within so long of now.
    pub(crate) fn ask<T: Send + 'static>(
        &self,
        within: Duration,
        question: impl Future<Output = Result<T, Fault>> + Send + 'static,
    ) -> Answered<T> {
        let Ok(room) = Arc::clone(&self.room).try_acquire_owned() else {
            return Answered::now(Err(Fault::Full));
        };
        let (mut answer, answered) = oneshot::channel();
        let asked = tokio::time::Instant::now();
        let job = async move {
            let _room = room;
            let question = tokio::time::timeout_at(asked + within, question);
            let found = tokio::select! {
                () = answer.closed() => return,
                found = question => found,
            };
            let late = Fault::Late {
                waited_for: "answer",
                within,
            };
            drop(answer.send(found.unwrap_or(Err(late))));
        };
        // One that finds no room drops its job, and with it the sender.
        drop(self.questions.try_send(Box::pin(job)));
        Answered(answered)
    }

    /// Runs a task there until it ends or what is returned is dropped.
    pub fn run(&self, task: impl Future<Output = ()> + Send + 'static) -> Running {
        Running(self.runtime.spawn(task).abort_handle())
    }

    /// Answers on the runtime of a test.
    #[cfg(test)]
    pub(crate) fn here() -> Self {
        let (questions, jobs) = mpsc::channel(QUESTIONS_MAX);
        tokio::spawn(take(jobs));
        Self {
            questions,
            room: Arc::new(Semaphore::new(QUESTIONS_MAX)),
            runtime: tokio::runtime::Handle::current(),
        }
    }
}

/// A task that ends with this.
#[derive(Debug)]
#[must_use = "a task whose end is dropped is not run"]
pub struct Running(AbortHandle);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// An answer to come. It can be awaited on any runtime; dropped, the question is dropped with it.
#[derive(Debug)]
#[must_use = "a question whose answer is dropped is not asked"]
pub struct Answered<T>(oneshot::Receiver<Result<T, Fault>>);

impl<T> Answered<T> {
    /// One that is there already.
    pub(crate) fn now(answer: Result<T, Fault>) -> Self {
        let (tell, told) = oneshot::channel();
        drop(tell.send(answer));
        Self(told)
    }
}

impl<T> Future for Answered<T> {
    type Output = Result<T, Fault>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let answered = Pin::new(&mut self.0).poll(cx);
        answered.map(|answer| answer.unwrap_or(Err(Fault::Closed)))
    }
}

#[cfg(test)]
mod tests;
