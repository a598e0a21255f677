//! Which reports a master has, so that none is lost and none is counted twice.
//!
//! A master confirms no report. It reads a worker's messages in their order, though, and answers each heartbeat and each
//! `client_ready`: an answer says that all before it was read. What is unconfirmed when a connection ends is in doubt,
//! and how it ended decides: a peer that closes in order has read all that came (one that has not resets the
//! connection); after anything else the counts go into the next report.
//! Invariant: every count is in exactly one place: pending, unconfirmed, delivered, or dropped with an older run.
//! In doubt either way is a connection that breaks between reading and the answer, at most a second later: those
//! requests are counted in [`Delivered::doubtful`], for whoever compares records.
//! Not here: when to report (`machine`).

use std::collections::VecDeque;
use std::time::SystemTime;

use super::stats::LocustStats;

/// How a connection ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    /// The peer closed it in order.
    Closed,
    /// The peer closed it after we had: it has read all, and goes on.
    Finished,
    /// Reset, timed out, or left by us.
    Broken,
}

/// What became of the requests that were counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Delivered {
    /// Requests in reports that the master has read for certain.
    pub(crate) confirmed: u64,
    /// Requests in reports that were on their way when a connection ended, and that were then taken for read.
    pub(crate) taken_for_read: u64,
    /// Requests in reports of which it is not certain that they were counted exactly once.
    pub(crate) doubtful: u64,
    /// Requests that came too late for their run, or that no master was left for.
    pub(crate) dropped: u64,
}

/// The counts that are not confirmed yet.
pub(super) struct Delivery {
    pending: LocustStats,
    /// In the order of sending, on this connection.
    sent: VecDeque<Sent>,
    /// Frames sent on this connection.
    frames: u64,
    delivered: Delivered,
}

enum Sent {
    Ready,
    Heartbeat,
    Report {
        frame: u64,
        tally: Box<LocustStats>,
        of_older_run: bool,
    },
}

impl Delivery {
    pub(super) fn new(now: SystemTime) -> Self {
        Self {
            pending: LocustStats::new(now),
            sent: VecDeque::new(),
            frames: 0,
            delivered: Delivered::default(),
        }
    }

    pub(super) fn delivered(&self) -> Delivered {
        self.delivered
    }

    /// Counts that were made since.
    pub(super) fn add(&mut self, tally: LocustStats) {
        self.pending.merge(tally);
    }

    /// A report of all that is pending, now sent.
    pub(super) fn report(&mut self, now: SystemTime) -> Box<LocustStats> {
        let tally = Box::new(self.pending.take(now));
        self.frames += 1;
        self.sent.push_back(Sent::Report {
            frame: self.frames,
            tally: tally.clone(),
            of_older_run: false,
        });
        tally
    }

    pub(super) fn sent_ready(&mut self) {
        self.frames += 1;
        self.sent.push_back(Sent::Ready);
    }

    pub(super) fn sent_heartbeat(&mut self) {
        self.frames += 1;
        self.sent.push_back(Sent::Heartbeat);
    }

    pub(super) fn sent_other(&mut self) {
        self.frames += 1;
    }

    /// The master answered a heartbeat.
    pub(super) fn echoed(&mut self) {
        self.confirm_until(|sent| matches!(sent, Sent::Heartbeat));
    }

    /// The master answered `client_ready`. Heartbeats of a worker that it did not know had no answer.
    pub(super) fn acked(&mut self) {
        self.confirm_until(|sent| matches!(sent, Sent::Ready));
    }

    fn confirm_until(&mut self, answered: impl Fn(&Sent) -> bool) {
        let Some(last) = self.sent.iter().position(answered) else {
            return;
        };
        for sent in self.sent.drain(..=last) {
            self.delivered.confirmed += requests(&sent);
        }
    }

    /// The connection ended, and `written` of its frames had been handed to it whole.
    pub(super) fn ended(&mut self, how: Ending, written: u64) {
        for sent in std::mem::take(&mut self.sent) {
            let requests = requests(&sent);
            let Sent::Report {
                frame,
                tally,
                of_older_run,
            } = sent
            else {
                continue;
            };
            let whole = frame <= written;
            if whole && how == Ending::Finished {
                self.delivered.confirmed += requests;
                continue;
            }
            if whole {
                self.delivered.doubtful += requests;
            }
            if of_older_run {
                self.delivered.dropped += requests;
            } else if whole && how == Ending::Closed {
                self.delivered.taken_for_read += requests;
            } else {
                self.pending.merge(*tally);
            }
        }
        self.frames = 0;
    }

    /// A new run begins at the master, which forgets the one before it; so do we.
    pub(super) fn forget(&mut self, now: SystemTime) {
        for sent in &mut self.sent {
            if let Sent::Report { of_older_run, .. } = sent {
                *of_older_run = true;
            }
        }
        self.delivered.dropped += self.pending.take(now).total().requests;
    }
}

fn requests(sent: &Sent) -> u64 {
    match sent {
        Sent::Report { tally, .. } => tally.total().requests,
        Sent::Ready | Sent::Heartbeat => 0,
    }
}

#[cfg(test)]
mod tests;
