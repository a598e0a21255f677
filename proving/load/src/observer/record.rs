//! One exchange as a row, and where rows go.
//!
//! Invariant: a thread holds at most [`BATCH`] rows; a batch that finds no room is lost and counted, and nobody waits.
//! Not here: files (`prove`).

use std::sync::mpsc::SyncSender;

use crate::client::Failure;
use crate::source::RequestId;

/// Rows that a thread gathers before it hands them on.
pub const BATCH: usize = 4096;

/// One exchange. Times are nanoseconds since the start of the run; `None`: it did not come to that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    /// As counted in the plan.
    pub profile: u32,
    /// User or arrival, by number.
    pub user: u64,
    /// Session of the profile.
    pub session: u64,
    /// Turn of the session.
    pub turn: u32,
    /// When it was to be sent.
    pub intended_ns: u64,
    /// When its first byte was sent.
    pub sent_ns: Option<u64>,
    /// First byte of the answer's head.
    pub head_ns: Option<u64>,
    /// First byte of the answer's body.
    pub body_ns: Option<u64>,
    /// First event with output of any kind.
    pub first_token_ns: Option<u64>,
    /// First event with visible text.
    pub first_visible_ns: Option<u64>,
    /// Last event with output.
    pub last_token_ns: Option<u64>,
    /// The longest time between an event with output and the next.
    pub longest_gap_ns: Option<u64>,
    /// From the first event with output to the last, over the tokens after the first.
    pub time_per_token_ns: Option<u64>,
    /// Last byte, or when it failed.
    pub ended_ns: u64,
    /// Of the answer; 0 where there is no head.
    pub status: u16,
    /// Why it is no good answer.
    pub failure: Option<Failure>,
    /// Tokens of the prompt, as reported.
    pub prompt_tokens: Option<u64>,
    /// Tokens of the completion, as reported.
    pub completion_tokens: Option<u64>,
    /// Tokens of the prompt that were kept, as reported.
    pub cached_tokens: Option<u64>,
    /// Server-sent events.
    pub events: u64,
    /// Those with output.
    pub outputs: u64,
    /// Bytes of the request's body.
    pub bytes_up: u64,
    /// Bytes of the answer's body.
    pub bytes_down: u64,
    /// A kept connection had closed, and another was opened before anything was sent.
    pub reopened: bool,
}

impl Record {
    /// What the request carried, where its profile has a header for it.
    #[must_use]
    pub const fn request_id(&self) -> RequestId {
        RequestId {
            profile: self.profile,
            user: self.user,
            session: self.session,
            turn: self.turn,
            intended_ns: self.intended_ns,
        }
    }
}

/// Where one thread's rows go.
#[derive(Debug)]
pub struct Records {
    sink: SyncSender<Vec<Record>>,
    batch: Vec<Record>,
    lost: u64,
}

impl Records {
    /// Batches go to `sink`, whose bound is the giver's.
    #[must_use]
    pub fn new(sink: SyncSender<Vec<Record>>) -> Self {
        Self {
            sink,
            batch: Vec::with_capacity(BATCH),
            lost: 0,
        }
    }

    /// Adds one row.
    pub fn push(&mut self, record: Record) {
        self.batch.push(record);
        if self.batch.len() >= BATCH {
            self.hand_on();
        }
    }

    /// Hands on what there is.
    pub fn hand_on(&mut self) {
        if self.batch.is_empty() {
            return;
        }
        let batch = std::mem::replace(&mut self.batch, Vec::with_capacity(BATCH));
        let rows = batch.len() as u64;
        if self.sink.try_send(batch).is_err() {
            self.lost += rows;
        }
    }

    /// Rows for which there was no room.
    #[must_use]
    pub const fn lost(&self) -> u64 {
        self.lost
    }
}

#[cfg(test)]
mod tests {
    //! Room, and none.

    use std::sync::mpsc::sync_channel;

    use super::{BATCH, Record, Records};

    fn record(user: u64) -> Record {
        Record {
            profile: 0,
            user,
            session: 0,
            turn: 0,
            intended_ns: 0,
            sent_ns: None,
            head_ns: None,
            body_ns: None,
            first_token_ns: None,
            first_visible_ns: None,
            last_token_ns: None,
            longest_gap_ns: None,
            time_per_token_ns: None,
            ended_ns: 0,
            status: 0,
            failure: None,
            prompt_tokens: None,
            completion_tokens: None,
            cached_tokens: None,
            events: 0,
            outputs: 0,
            bytes_up: 0,
            bytes_down: 0,
            reopened: false,
        }
    }

    #[test]
    fn rows_come_in_batches_and_those_without_room_are_counted() {
        let (sink, rows) = sync_channel(1);
        let mut records = Records::new(sink);
        let last = 2 * BATCH as u64 + 1;
        (0..last).for_each(|user| records.push(record(user)));
        assert_eq!(
            records.lost(),
            BATCH as u64,
            "the second batch found no room"
        );
        assert_eq!(rows.recv().expect("a batch").len(), BATCH);
        records.hand_on();
        let left = rows.recv().expect("a batch");
        assert_eq!((left.len(), left[0].user), (1, last - 1));
        records.hand_on();
        assert!(rows.try_recv().is_err(), "nothing is no batch");
    }
}
