//! The access log: one line of JSON for each exchange, written by one thread.
//!
//! Invariant: a worker never waits for the log. A batch that finds the queue full is dropped and
//! its lines are counted, as are lines that could not be written. A failed write never ends the
//! gate, and never joins two lines into one.
//! Not here: what a line says (`line`), how a worker gathers lines (`lines`).

mod decimal;
mod escape;
mod json_writer;
mod line;
mod lines;
mod name_cache;
mod piece;
mod timestamp;
mod words;

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use lines::Batch;
pub use lines::Lines;
pub(crate) use name_cache::NameCache;

use crate::closing::close;

/// Batches that may wait for the writer.
const QUEUE: usize = 16;
/// How long [`AccessLog::close`] waits for a writer that is stuck.
const CLOSE_FOR: Duration = Duration::from_secs(2);

/// Where lines go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// The process's standard output.
    Stdout,
    /// Appended to this file, which is created with mode 0640.
    File(PathBuf),
}

/// The log's writer thread and what workers need to reach it.
#[derive(Debug)]
pub struct AccessLog {
    target: Target,
    queue: SyncSender<Message>,
    shared: Arc<Shared>,
    writer: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug, Default)]
struct Shared {
    dropped: AtomicU64,
    reopened: Mutex<Option<File>>,
}

#[derive(Debug)]
enum Message {
    Batch(Batch),
    Close,
}

impl AccessLog {
    /// Opens the target and starts the writer.
    ///
    /// # Errors
    /// When the file cannot be opened for appending, or no thread can be started.
    pub fn start(target: Target) -> io::Result<Self> {
        let sink: Box<dyn Write + Send> = match &target {
            Target::Stdout => Box::new(io::stdout()),
            Target::File(path) => Box::new(open(path)?),
        };
        Self::start_at(target, sink)
    }

    /// Starts the writer on something else, which is taken for standard output: [`AccessLog::reopen`] leaves it alone.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn handed(sink: Box<dyn Write + Send>) -> io::Result<Self> {
        Self::start_at(Target::Stdout, sink)
    }

    fn start_at(target: Target, sink: Box<dyn Write + Send>) -> io::Result<Self> {
        let (queue, batches) = sync_channel(QUEUE);
        let shared = Arc::new(Shared::default());
        let writer = Writer {
            sink,
            torn: false,
            shared: Arc::clone(&shared),
        };
        let thread = thread::Builder::new().name("access-log".to_owned());
        let writer = thread.spawn(move || writer.run(&batches))?;
        Ok(Self {
            target,
            queue,
            shared,
            writer: Mutex::new(Some(writer)),
        })
    }

    /// A buffer for one worker.
    #[must_use]
    pub fn lines(&self) -> Lines {
        Lines::new(self.queue.clone(), Arc::clone(&self.shared))
    }

    /// Lines that were not written: the queue was full, or the target did not take them.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.shared.dropped.load(Ordering::Relaxed)
    }

    /// Opens the file again by its name, for rotation by rename; lines go there from the next
    /// batch on. For standard output there is nothing to do.
    ///
    /// # Errors
    /// When the file cannot be opened; the old one stays in use.
    pub fn reopen(&self) -> io::Result<()> {
        if let Target::File(path) = &self.target {
            // Locked before the file is there to be seen: what is logged after that goes into it.
            let slot = self.shared.reopened.lock();
            let mut slot = slot.unwrap_or_else(PoisonError::into_inner);
            *slot = Some(open(path)?);
        }
        Ok(())
    }

    /// Writes what is queued and ends the writer. Lines dropped before have handed over what they
    /// held. A writer whose target takes nothing is left behind after two seconds.
    pub fn close(&self) {
        close(&self.writer, &self.queue, || Message::Close, CLOSE_FOR);
    }
}

impl Drop for AccessLog {
    fn drop(&mut self) {
        self.close();
    }
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o640)
        .open(path)
}

struct Writer {
    sink: Box<dyn Write + Send>,
    /// The last write may have left part of a line.
    torn: bool,
    shared: Arc<Shared>,
}

impl Writer {
    fn run(mut self, batches: &Receiver<Message>) {
        while let Ok(Message::Batch(batch)) = batches.recv() {
            self.take(batch);
        }
        while let Ok(message) = batches.try_recv() {
            if let Message::Batch(batch) = message {
                self.take(batch);
            }
        }
    }

    fn take(&mut self, batch: Batch) {
        let reopened = self.shared.reopened.lock();
        let reopened = reopened.unwrap_or_else(PoisonError::into_inner).take();
        if let Some(file) = reopened {
            self.sink = Box::new(file);
            self.torn = false;
        }
        if self.write(batch.text()).is_err() {
            self.torn = true;
            self.shared
                .dropped
                .fetch_add(batch.lines, Ordering::Relaxed);
        }
        batch.give_back();
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.torn {
            self.sink.write_all(b"\n")?;
            self.torn = false;
        }
        self.sink.write_all(bytes)?;
        self.sink.flush()
    }
}

#[cfg(test)]
mod tests;
