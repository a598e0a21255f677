//! A response whose filters change it: its pieces pass them, and what they keep and make is counted.
//!
//! Invariant: filters hold back no more than their route permits, keep and make no more than their worker has room for; a long
//! document is made on a thread beside the worker.
//! Not here: what a filter does (`wire::filter`), a response that passes as it came (`relay`).

use std::future::poll_fn;
use std::task::{Context, Poll};

use bytes::Bytes;
use wire::filter::Stop;
use wire::meter::Meter;

use super::{Halt, Pump};
use crate::client::Downstream;
use crate::stint::STINT_BYTES;
use crate::worker::Worker;

/// Why a response is stopped whose filters hold back more of it than its route permits.
const HELD_TOO_MUCH: &str = "filter_held_back_too_much";

impl<D: Downstream> Pump<'_, D> {
    /// Forwards a piece that is filtered on its way.
    #[cold]
    pub(super) fn forward_filtered(
        &mut self,
        data: &[u8],
        is_over: bool,
        cx: &mut Context<'_>,
    ) -> Result<(), Halt> {
        let (meter, pipe) = (&mut self.active.meter, &mut self.relay.pipe);
        let mut sifted = Vec::new();
        let passes = !pipe.meters_what_comes() || meter.pass(data, is_over);
        if !passes {
            meter.sift(data, is_over, &mut sifted);
        }
        // Of a document nothing is made before its end.
        let is_document = passes && is_over && self.is_head_held;
        if is_document && pipe.kept() + data.len() > STINT_BYTES {
            self.last = Some(Bytes::copy_from_slice(data));
            return Ok(());
        }
        let metered = |piece: &[u8], is_over| observe(meter, piece, is_over);
        let passed = match passes {
            true => pipe.pass_piece(data, is_over, &mut self.kept, metered),
            false => pipe.pass(sifted, is_over, &mut self.kept, metered),
        };
        self.send_filtered(passed, is_over, cx)
    }

    /// Has a long document made beside the worker, and sends it. That is done to its end, whatever its client does, for its usage.
    pub(super) async fn make_beside(&mut self, last: Bytes) -> Result<(), Halt> {
        let mut pipe = std::mem::take(&mut self.relay.pipe);
        let mut meter = std::mem::take(&mut self.active.meter);
        let done = self.worker.beside.run(move || {
            let mut made = Vec::new();
            let metered = |piece: &[u8], is_over| observe(&mut meter, piece, is_over);
            let passed = pipe.pass_piece(&last, true, &mut made, metered);
            (pipe, meter, made, passed)
        });
        let Some((pipe, meter, made, passed)) = done.await else {
            return Err(Halt::Stopped(Stop::Malformed));
        };
        (self.relay.pipe, self.active.meter, self.kept) = (pipe, meter, made);
        let mut passed = Some(passed);
        poll_fn(|cx| match passed.take() {
            Some(passed) => Poll::Ready(self.send_filtered(passed, true, cx)),
            None => Poll::Pending,
        })
        .await
    }

    /// Sends what filters made of a piece, as far as they let it pass.
    #[cold]
    fn send_filtered(
        &mut self,
        mut passed: Result<(), Stop>,
        is_over: bool,
        cx: &mut Context<'_>,
    ) -> Result<(), Halt> {
        let pipe = &self.relay.pipe;
        if pipe.held() > self.relay.hold_back_bytes {
            passed = passed.and(Err(Stop::Refused(HELD_TOO_MUCH)));
        }
        let bound = self.active.view().snapshot().bounds.bodies_bytes;
        if !self.room.keep(pipe.kept(), bound) {
            passed = passed.and(Err(Stop::NoRoom));
        }
        let made = self.kept.iter().map(Bytes::len).sum();
        if made > STINT_BYTES && !self.room.make(made) {
            passed = passed.and(Err(Stop::Untaken));
        }
        match passed {
            Ok(()) => self.send_kept(is_over, cx)?,
            // Nothing of it has left, and the client may be told instead.
            Err(_) if self.is_held() => self.kept.clear(),
            Err(_) => self.send_kept(false, cx)?,
        }
        passed.map_err(Halt::Stopped)
    }
}

/// Has a meter read a piece that was made.
fn observe(meter: &mut Meter, piece: &[u8], is_over: bool) {
    meter.observe(piece);
    if is_over {
        meter.finish();
    }
}

/// Bytes of one response that filters keep, counted beside what the worker keeps of requests, and a long piece that they made, until
/// its client has taken it.
pub(super) struct Room<'w> {
    worker: &'w Worker,
    kept: usize,
    made: usize,
}

impl<'w> Room<'w> {
    pub(super) const fn of(worker: &'w Worker) -> Self {
        Self {
            worker,
            kept: 0,
            made: 0,
        }
    }

    /// So many are kept now; false where there is no room for them.
    fn keep(&mut self, bytes: usize, bound: usize) -> bool {
        if bytes <= self.kept {
            self.worker.drop_body(self.kept - bytes);
        } else if !self.worker.keep_body(bytes - self.kept, bound) {
            return false;
        }
        self.kept = bytes;
        true
    }

    /// So many more were made; false where there is no room for them.
    fn make(&mut self, bytes: usize) -> bool {
        let has_room = self.worker.keep_made(bytes);
        if has_room {
            self.made += bytes;
        }
        has_room
    }

    /// The client has taken what was made.
    pub(super) fn taken(&mut self) {
        if self.made > 0 {
            self.worker.drop_made(std::mem::take(&mut self.made));
        }
    }
}

impl Drop for Room<'_> {
    fn drop(&mut self) {
        self.worker.drop_body(self.kept);
        self.taken();
    }
}
