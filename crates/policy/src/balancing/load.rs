//! What an endpoint has to do: what this gate sent it, and what its engine said of itself.
//!
//! Invariant: what this gate sent is known at once; what an engine says is used until it is [`stale`](Load::report), and no more of it
//! than this gate does not know better. A load is never below what this gate itself has there.
//! Not here: asking the engine (`callout`), reading its page ([`super::report`]).

use std::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use super::report::Report;
use crate::clock::{Mono, nanos};

/// What a call that runs costs the next one, in bytes of prompt: its tokens are made beside the reading of prompts.
const RUNNING_BYTES: u64 = 4 << 10;
/// What a call that waits in the engine costs the next one, beside that.
const WAITING_BYTES: u64 = 16 << 10;
/// What a KV cache in use costs, when all of it is.
const KV_BYTES: u64 = 16 << 10;
/// What a KV cache costs that is nearly full, where calls lose their blocks: for each millionth above the mark.
const FULL_BYTES: u64 = 256 << 10;
/// From where on a cache is nearly full, in millionths.
const FULL_FROM: u64 = 900_000;
const WHOLE: u64 = 1_000_000;

/// What one endpoint has to do.
#[derive(Debug)]
pub struct Load {
    /// Calls of this gate that run there.
    in_flight: AtomicU32,
    /// Bytes of their prompts that it has yet to read.
    unread: AtomicU64,
    /// Calls there that are not of this gate, when it was last asked.
    others: AtomicU32,
    running: AtomicU32,
    waiting: AtomicU32,
    /// Of its KV cache in use, millionths.
    kv: AtomicU32,
    /// When the engine's word is worth nothing any more; 0 where it never said any.
    good_until: AtomicI64,
    /// When its process began, as it says, in seconds; 0 where it does not.
    began: AtomicU64,
    asked: AtomicU64,
    failed: AtomicU64,
}

impl Default for Load {
    fn default() -> Self {
        Self {
            in_flight: AtomicU32::new(0),
            unread: AtomicU64::new(0),
            others: AtomicU32::new(0),
            running: AtomicU32::new(0),
            waiting: AtomicU32::new(0),
            kv: AtomicU32::new(0),
            good_until: AtomicI64::new(i64::MIN),
            began: AtomicU64::new(0),
            asked: AtomicU64::new(0),
            failed: AtomicU64::new(0),
        }
    }
}

/// What an engine said last, while that is good.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reported {
    /// Calls that run there.
    pub running: u32,
    /// Calls that wait there.
    pub waiting: u32,
    /// Of its KV cache in use, millionths.
    pub kv_millionths: u32,
}

/// What is known of an endpoint, for whoever shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    /// Calls of this gate that run there.
    pub in_flight: u32,
    /// Bytes of their prompts that it has yet to read.
    pub unread_bytes: u64,
    /// What the engine said last, while that is good.
    pub reported: Option<Reported>,
    /// How often it was asked with and without an answer.
    pub asked: [u64; 2],
}

impl Load {
    /// Calls of this gate that run there.
    #[must_use]
    pub fn in_flight(&self) -> u32 {
        self.in_flight.load(Ordering::Relaxed)
    }

    /// A call goes there, of whose prompt it has so much to read.
    pub(super) fn begin(&self, unread: u64) {
        self.in_flight.fetch_add(1, Ordering::Relaxed);
        self.unread.fetch_add(unread, Ordering::Relaxed);
    }

    /// So much of a prompt was read.
    pub(super) fn read(&self, bytes: u64) {
        if bytes > 0 {
            self.unread.fetch_sub(bytes, Ordering::Relaxed);
        }
    }

    /// A call ended.
    pub(super) fn end(&self) {
        self.in_flight.fetch_sub(1, Ordering::Relaxed);
    }

    /// Takes what the engine says of itself, which is good for so long. Gives whether it began anew since it was last heard: it has
    /// seen nothing then.
    pub fn report(&self, report: &Report, good_for: Duration, now: Mono) -> bool {
        let whole = |count: f64| {
            // Saturates, and what is no number is none.
            count.round() as u32
        };
        let (running, waiting) = (whole(report.running), whole(report.waiting));
        let all = running.saturating_add(waiting);
        let set = |to: &AtomicU32, value| to.store(value, Ordering::Relaxed);
        set(&self.others, all.saturating_sub(self.in_flight()));
        set(&self.running, running);
        set(&self.waiting, waiting);
        set(&self.kv, whole(report.kv_share.clamp(0.0, 1.0) * 1e6));
        self.good_until
            .store(now.0.saturating_add(nanos(good_for)), Ordering::Relaxed);
        self.asked.fetch_add(1, Ordering::Relaxed);
        let Some(began) = report.began_s else {
            return false;
        };
        let before = self.began.swap(began, Ordering::Relaxed);
        before != 0 && before != began
    }

    /// It was asked, and said nothing.
    pub fn silent(&self) {
        self.failed.fetch_add(1, Ordering::Relaxed);
    }

    /// What the engine said last, while that is good.
    #[must_use]
    pub fn reported(&self, now: Mono) -> Option<Reported> {
        let of = |count: &AtomicU32| count.load(Ordering::Relaxed);
        (now.0 < self.good_until.load(Ordering::Relaxed)).then(|| Reported {
            running: of(&self.running),
            waiting: of(&self.waiting),
            kv_millionths: of(&self.kv),
        })
    }

    /// What a call that asks nothing would cost there, in bytes of prompt.
    #[must_use]
    pub fn cost(&self, now: Mono) -> u64 {
        let own = u64::from(self.in_flight()) * RUNNING_BYTES;
        let cost = own.saturating_add(self.unread.load(Ordering::Relaxed));
        let Some(reported) = self.reported(now) else {
            return cost;
        };
        let others = u64::from(self.others.load(Ordering::Relaxed)) * RUNNING_BYTES;
        let waiting = u64::from(reported.waiting) * WAITING_BYTES;
        let kv = u64::from(reported.kv_millionths);
        let full = kv.saturating_sub(FULL_FROM) * FULL_BYTES / (WHOLE - FULL_FROM);
        cost.saturating_add(others + waiting + kv * KV_BYTES / WHOLE + full)
    }

    /// What is known of it.
    #[must_use]
    pub fn standing(&self, now: Mono) -> Standing {
        Standing {
            in_flight: self.in_flight(),
            unread_bytes: self.unread.load(Ordering::Relaxed),
            reported: self.reported(now),
            asked: [
                self.asked.load(Ordering::Relaxed),
                self.failed.load(Ordering::Relaxed),
            ],
        }
    }
}
