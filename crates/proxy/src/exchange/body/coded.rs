//! A request body in a content coding, decoded as it comes.
//!
//! Invariant: what is judged, scanned, kept and sent on is what it decodes to; counted is whichever is longer, that or what came. What
//! its decoder may keep is counted among the bodies of the worker while it decodes.

use std::rc::Rc;

use policy::exchange::Verdict;
use policy::refusal::Refusal;
use wire::call::CallScanner;
use wire::encoding::Coding;

use super::{Rope, scan};
use crate::decoding::{Decoding, STEP_BYTES};
use crate::exchange::active::ActiveExchange;
use crate::stint::Stint;

pub(super) struct Coded {
    decoding: Decoding,
    /// What the decoder may keep is counted: it is once the first bytes come.
    has_begun: bool,
    counted: usize,
}

impl Coded {
    #[cold]
    pub(super) fn new(coding: Coding) -> Self {
        Self {
            decoding: Decoding::new(coding),
            has_begun: false,
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
        if !std::mem::replace(&mut self.has_begun, true) && !active.keep_body(self.decoding.window)
        {
            self.has_begun = false;
            return active.refuse_unread(Refusal::Overloaded);
        }
        self.decoding.came += piece.len();
        let mut verdict = self.count(active);
        for step in piece.chunks(STEP_BYTES) {
            if !matches!(verdict, Verdict::Read { .. }) {
                return verdict;
            }
            let Ok(decoded) = self.decoding.step(step, stint).await else {
                return active.refuse_unread(Refusal::CodedBody);
            };
            verdict = self.count(active);
            if !matches!(verdict, Verdict::Read { .. }) {
                return verdict;
            }
            if !active.keep_body(decoded.len()) {
                return active.refuse_unread(Refusal::Overloaded);
            }
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
        let longer = self.decoding.came.max(self.decoding.decoded);
        let more = longer - std::mem::replace(&mut self.counted, longer);
        let now = Rc::clone(active.worker()).now();
        active.tell_at(now, |exchange, env| exchange.read_body(more, env))
    }

    /// All has come.
    ///
    /// # Errors
    /// It was not all of it.
    #[cold]
    pub(super) fn finish(self, active: &mut ActiveExchange) -> Result<(), Refusal> {
        if self.has_begun {
            active.drop_kept(self.decoding.window);
        }
        active.exchange.decoded(self.decoding.decoded);
        let finished = self.decoding.finish();
        finished.map_err(|_| Refusal::CodedBody)
    }
}
