//! A request body in a content coding, decoded as it comes.
//!
//! Invariant: what is judged, scanned, kept and sent on is what it decodes to; counted is whichever is longer, that or what came. What
//! its decoder may keep is counted among the bodies of the worker while it decodes.

use std::rc::Rc;

use policy::exchange::Verdict;
use policy::refusal::Refusal;
use wire::call::CallScanner;
use wire::encoding::{Coding, Decoder};

use super::{Rope, scan};
use crate::exchange::active::ActiveExchange;
use crate::stint::{STINT_BYTES, Stint};

/// Coded bytes that are decoded at once: they come to no more than a hundred times as many, and a little at the beginning.
const STEP_BYTES: usize = 1 << 10;

/// So many steps are done before others run.
const STEPS_A_STINT: usize = 4;
/// What may come beyond twice what it decodes to and what the decoder may keep.
const ALLOWANCE_BYTES: usize = 64 << 10;

pub(super) struct Coded {
    decoder: Box<Decoder>,
    /// What the decoder may keep, which is counted once the first bytes come.
    keeps: usize,
    has_begun: bool,
    came: usize,
    decoded: usize,
    counted: usize,
}

impl Coded {
    #[cold]
    pub(super) fn new(coding: Coding) -> Self {
        Self {
            decoder: Box::new(Decoder::new(coding)),
            keeps: coding.window_bytes(),
            has_begun: false,
            came: 0,
            decoded: 0,
            counted: 0,
        }
    }

    /// Takes a piece.
    pub(super) async fn take(
        &mut self,
        active: &mut ActiveExchange,
        piece: &[u8],
        (scanner, stint, rope): (&mut Option<CallScanner>, &mut Stint, &mut Rope),
    ) -> Verdict {
        if !std::mem::replace(&mut self.has_begun, true) && !active.keep_body(self.keeps) {
            self.has_begun = false;
            return active.refuse_unread(Refusal::Overloaded);
        }
        self.came += piece.len();
        let mut verdict = self.count(active);
        for step in piece.chunks(STEP_BYTES) {
            if !matches!(verdict, Verdict::Read { .. }) {
                return verdict;
            }
            let mut decoded = Vec::new();
            let pushed = self
                .decoder
                .push(step, |more| decoded.extend_from_slice(more));
            if pushed.is_err() {
                return active.refuse_unread(Refusal::CodedBody);
            }
            self.decoded += decoded.len();
            // What is longer than what it says was made to take time: members and blocks that hold nothing.
            if self.came > self.decoded * 2 + self.keeps + ALLOWANCE_BYTES {
                return active.refuse_unread(Refusal::CodedBody);
            }
            verdict = self.count(active);
            if !matches!(verdict, Verdict::Read { .. }) {
                return verdict;
            }
            if !active.keep_body(decoded.len()) {
                return active.refuse_unread(Refusal::Overloaded);
            }
            // Also of what decodes to nothing others do not wait for the end.
            stint.add(STINT_BYTES / STEPS_A_STINT);
            stint.pass().await;
            if let Some(scanner) = scanner
                && let Err(fault) = scan(scanner, &decoded, stint).await
            {
                return active.refuse_unread(Refusal::Call(fault));
            }
            if !decoded.is_empty() {
                rope.push(decoded.into());
            }
        }
        verdict
    }

    /// Tells of what is more than was told.
    fn count(&mut self, active: &mut ActiveExchange) -> Verdict {
        let longer = self.came.max(self.decoded);
        let more = longer - std::mem::replace(&mut self.counted, longer);
        let now = Rc::clone(active.worker()).now();
        active.tell_at(now, |exchange, env| exchange.read_body(more, env))
    }

    /// All has come.
    ///
    /// # Errors
    /// It was not all of it.
    #[cold]
    pub(super) fn finish(mut self, active: &mut ActiveExchange) -> Result<(), Refusal> {
        if self.has_begun {
            active.drop_kept(self.keeps);
        }
        active.exchange.decoded(self.decoded);
        let finished = self.decoder.finish();
        finished.map_err(|_| Refusal::CodedBody)
    }
}
