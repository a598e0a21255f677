//! A body in a content coding, decoded step by step.
//!
//! Invariant: a step is a short stint of its worker, whatever it decodes to; a body that takes time and says nothing is a fault.
//! Not here: what of it is counted and kept (`exchange::body`, `tools::body`), the codings (`wire::encoding`).

use wire::encoding::{Coding, CodingFault, Decoder};

use crate::stint::{STINT_BYTES, Stint};

/// Coded bytes that are decoded at once: they come to no more than a hundred times as many, and a little at the beginning.
pub(crate) const STEP_BYTES: usize = 1 << 10;

/// So many steps are done before others run.
const STEPS_A_STINT: usize = 4;
/// What may come beyond twice what it decodes to and what the decoder may keep.
const ALLOWANCE_BYTES: usize = 64 << 10;

/// One body.
pub(crate) struct Decoding {
    decoder: Box<Decoder>,
    /// The most that the decoder keeps.
    pub(crate) window: usize,
    /// Bytes of it that have come.
    pub(crate) came: usize,
    /// What they decoded to.
    pub(crate) decoded: usize,
}

impl Decoding {
    #[cold]
    pub(crate) fn new(coding: Coding) -> Self {
        Self {
            decoder: Box::new(Decoder::new(coding)),
            window: coding.window_bytes(),
            came: 0,
            decoded: 0,
        }
    }

    /// Decodes the next bytes, of which no more than [`STEP_BYTES`] are given at once, when others have had their turn.
    ///
    /// # Errors
    /// They are not what the coding says, or were made to take time.
    pub(crate) async fn step(
        &mut self,
        step: &[u8],
        stint: &mut Stint,
    ) -> Result<Vec<u8>, CodingFault> {
        debug_assert!(step.len() <= STEP_BYTES);
        let mut decoded = Vec::new();
        self.decoder
            .push(step, |more| decoded.extend_from_slice(more))?;
        self.decoded += decoded.len();
        // What is longer than what it says was made to take time: members and blocks that hold nothing.
        if self.came > self.decoded * 2 + self.window + ALLOWANCE_BYTES {
            return Err(CodingFault);
        }
        // Also of what decodes to nothing others do not wait for the end.
        stint.add(STINT_BYTES / STEPS_A_STINT);
        stint.pass().await;
        Ok(decoded)
    }

    /// All has come.
    ///
    /// # Errors
    /// It was not all of it.
    pub(crate) fn finish(mut self) -> Result<(), CodingFault> {
        self.decoder.finish()
    }
}
