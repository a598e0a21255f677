//! HTTP/2 frames that carry no request: how many a connection may send.
//!
//! Each kind has a use, and each costs the gate as much as its sender: a microsecond. PRIORITY, WINDOW_UPDATE, PING,
//! SETTINGS, RST_STREAM, CONTINUATION, DATA that may be empty and kinds that nobody knows all draw from one budget, so that
//! no mixture of them is free. Requests and answers earn what well-behaved clients send along with them.
//! Invariant: beyond [`BURST`] and [`PER_SECOND`], a connection has sent at most [`PER_REQUEST`] of them for each
//! request and [`PER_ANSWER`] for each frame of an answer.
//! Not here: where frames begin (`wire::http2`), what becomes of the connection (the host).

use wire::http2::{DATA, END_STREAM, FrameHead, HEADERS};

use crate::clock::Mono;

/// Frames that a connection may send at once.
pub const BURST: u32 = 2000;
/// Frames that come back each second.
pub const PER_SECOND: u32 = 200;
/// What a request earns: a priority, two windows, a reset.
pub const PER_REQUEST: u32 = 4;
/// What each frame of an answer earns: a window for the stream and one for the connection.
pub const PER_ANSWER: u32 = 2;
/// An answer's data that is shorter earns nothing: a client can make the gate cut it so by its windows.
const ANSWER_BYTES: u32 = 16;
/// The flag of a padded DATA frame (RFC 9113, 6.1).
const PADDED: u8 = 0x8;

/// What is left to one connection.
#[derive(Debug)]
pub struct Glitches {
    left: u32,
    /// When time last gave some.
    since: Mono,
}

impl Glitches {
    /// All of it, for a connection that begins now.
    #[must_use]
    pub const fn new(now: Mono) -> Self {
        Self {
            left: BURST,
            since: now,
        }
    }

    /// The client sent this. False when it sent more than it may; `now` is looked at only if it seems so.
    pub fn received(&mut self, frame: FrameHead, now: impl FnOnce() -> Mono) -> bool {
        match frame.kind {
            DATA if frame.length > padding_max(frame) => true,
            HEADERS => {
                self.earn(PER_REQUEST);
                true
            }
            _ => self.spend(now),
        }
    }

    /// The gate sent this.
    pub fn sent(&mut self, frame: FrameHead) {
        let is_answer = match frame.kind {
            DATA => frame.length >= ANSWER_BYTES || frame.flags & END_STREAM != 0,
            kind => kind == HEADERS,
        };
        if is_answer {
            self.earn(PER_ANSWER);
        }
    }

    fn earn(&mut self, frames: u32) {
        self.left = BURST.min(self.left + frames);
    }

    fn spend(&mut self, now: impl FnOnce() -> Mono) -> bool {
        if self.left == 0 {
            self.refill(now());
        }
        let is_left = self.left > 0;
        self.left -= u32::from(is_left);
        is_left
    }

    #[cold]
    fn refill(&mut self, now: Mono) {
        let ms = now.since(self.since).as_millis();
        let back = ms.saturating_mul(u128::from(PER_SECOND)) / 1000;
        self.earn(u32::try_from(back).unwrap_or(BURST).min(BURST));
        self.since = now;
    }
}

/// The most of a DATA frame that can be padding: what is no longer may hold no data at all.
const fn padding_max(frame: FrameHead) -> u32 {
    if frame.flags & PADDED == 0 { 0 } else { 256 }
}

#[cfg(test)]
mod tests;
