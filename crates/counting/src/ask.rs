//! Where it is asked what a prompt comes to, by calls that want nothing else.
//!
//! Invariant: whoever asks is told once, at once where there is no room.
//! Not here: counting (`counter`), who may ask (`policy`).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use bytes::Bytes;
use policy::billing::BilledBy;
use policy::prompt_counter::AskedPrompt;

use crate::counter::{AskEvent, CountEvent};
use crate::exchange_id::{exchange_id, without_output};
use crate::memory::{EXCHANGE_BYTES, MemoryBudget, Reach};
use crate::shared_queue::Inlet;

/// No worker has this number.
const WORKER: usize = u16::MAX as usize;

/// A way in for who asks.
#[derive(Debug)]
pub struct PromptDesk {
    inlet: Inlet<CountEvent>,
    memory: Arc<MemoryBudget>,
    /// A longer prompt is not counted, bytes.
    longest: usize,
    asked: AtomicU64,
}

impl PromptDesk {
    pub(crate) fn new(inlet: Inlet<CountEvent>, memory: Arc<MemoryBudget>, longest: usize) -> Self {
        Self {
            inlet,
            memory,
            longest,
            asked: AtomicU64::new(0),
        }
    }

    /// Has a prompt counted; `tell` is told what it comes to, where that is known exactly.
    pub fn ask(&self, prompt: AskedPrompt, tell: Box<dyn FnOnce(Option<u64>) + Send>) {
        let bytes: usize = prompt.body.iter().map(Bytes::len).sum();
        let room = (bytes <= self.longest)
            .then(|| {
                let bytes = bytes + EXCHANGE_BYTES;
                self.memory.take_for(prompt.workload, bytes, Reach::Shared)
            })
            .flatten();
        let Some(permit) = room else {
            return tell(None);
        };
        let nth = self.asked.fetch_add(1, Relaxed);
        let id = without_output(exchange_id(WORKER, nth, BilledBy::Reported));
        let asked = AskEvent {
            prompt,
            tell,
            permit,
        };
        if let Err(CountEvent::Ask(asked)) = self.inlet.send(id, CountEvent::Ask(Box::new(asked))) {
            (asked.tell)(None);
        }
    }
}
