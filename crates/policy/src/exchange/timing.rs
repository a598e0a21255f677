//! Where an exchange's time goes: the gate's own, its client's and its upstream's.
//!
//! Invariant: the gate's own time runs only between two moments in which it waits for nobody.
//! Not here: reading a clock (the host).

use std::time::Duration;

use crate::clock::Mono;

/// The stopwatch of one exchange.
#[derive(Debug, Clone, Copy)]
pub struct Timing {
    /// When it began.
    pub began: Mono,
    /// When the gate's own time last began to run: the newest moment that policy knows of.
    pub mark: Mono,
    /// The gate's own time so far, nanoseconds.
    own: i64,
    /// Waiting for upstreams.
    pub(super) upstream: Option<Duration>,
    /// To the first byte of the response, and the gate's own time until then.
    pub(super) first_byte: Option<(Duration, Duration)>,
    /// When the response was out, where that is known without a look at the clock.
    pub out: Option<Mono>,
}

impl Timing {
    pub(super) fn begin(now: Mono) -> Self {
        Self {
            began: now,
            mark: now,
            own: 0,
            upstream: None,
            first_byte: None,
            out: None,
        }
    }

    /// From `now` on the gate waits.
    #[inline]
    pub fn pause(&mut self, now: Mono) {
        self.own += now.0 - self.mark.0;
    }

    /// From `now` on the time is the gate's own again.
    #[inline]
    pub fn resume(&mut self, now: Mono) {
        self.mark = now;
    }

    /// An attempt is over: its request began to leave at `sent`, and its answer or its failure came at `now`.
    #[inline]
    pub fn attempted(&mut self, sent: Option<Mono>, now: Mono) {
        let sent = sent.unwrap_or(self.mark);
        self.own += (sent.0 - self.mark.0).max(0);
        self.upstream = Some(self.upstream.unwrap_or_default() + now.since(sent));
        self.mark = now;
    }

    /// The first piece of the response has left; with `is_over` it was the last one.
    #[inline]
    pub fn first_byte(&mut self, now: Mono, is_over: bool) {
        self.out = is_over.then_some(now);
        self.own += now.0 - self.mark.0;
        let own = Duration::from_nanos(u64::try_from(self.own).unwrap_or(0));
        self.first_byte = Some((now.since(self.began), own));
    }
}
