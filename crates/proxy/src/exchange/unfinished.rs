//! How long a message of a client's on a WebSocket may take, from its first byte to its last.
//!
//! Invariant: what was begun and not ended is kept no longer than a request's body is: `body_idle` without a byte, `body_time` in all.
//! Not here: reading messages (`wire::websocket`), how much of them is kept (the sessions).

use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use policy::clock::Mono;
use policy::snapshot::Bounds;
use wire::websocket::{Fault, Message, Reader};

use crate::deadline::Deadline;
use crate::worker::Worker;

/// A client's messages, and since when the next one has begun.
pub(super) struct Unfinished {
    worker: Rc<Worker>,
    reader: Reader,
    /// When the first bytes came of a message that has not ended.
    begun: Option<Mono>,
    /// No more of it comes for so long, or it takes so long in all.
    idle: Duration,
    whole_within: Duration,
    deadline: Deadline,
    is_waiting: bool,
}

impl Unfinished {
    /// No message yet; each is `most` bytes long at most.
    pub(super) fn new(worker: &Rc<Worker>, bounds: &Bounds, most: usize) -> Self {
        Self {
            worker: Rc::clone(worker),
            reader: Reader::new(most),
            begun: None,
            idle: bounds.body_idle,
            whole_within: bounds.body_time,
            deadline: Deadline::new(&worker.clock.wheel),
            is_waiting: false,
        }
    }

    /// Bytes that are kept.
    pub(super) fn held(&self) -> usize {
        self.reader.held()
    }

    /// More of it came.
    pub(super) fn push(&mut self, piece: &[u8]) {
        self.reader.push(piece);
        let now = self.worker.clock.latest();
        self.begun.get_or_insert(now);
        self.is_waiting = false;
    }

    /// The next message of what has come.
    ///
    /// # Errors
    /// What comes is no WebSocket.
    pub(super) fn message(&mut self) -> Result<Option<Message>, Fault> {
        let message = self.reader.message();
        if self.reader.held() == 0 {
            self.begun = None;
        } else if matches!(message, Ok(Some(_))) {
            // The next one has begun.
            self.begun = Some(self.worker.clock.latest());
        }
        message
    }

    /// Ready when a message took too long. Asked while its client is waited for, and last.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(begun) = self.begun else {
            return Poll::Pending;
        };
        if !std::mem::replace(&mut self.is_waiting, true) {
            let passed = self.worker.clock.latest().since(begun);
            let left = self.whole_within.saturating_sub(passed);
            self.deadline.set(self.idle.min(left));
        }
        self.deadline.poll(cx)
    }
}
