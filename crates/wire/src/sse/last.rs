//! The last event of a stream: whether it tells that the answer is over.
//!
//! Streams of most engines end with `[DONE]`. Of one that does not, the last event with data has to say it: by the reason why the answer
//! ended, or by its name. It is looked at once, when the stream is over; until then each event takes the place of the one before.
//! Invariant: what is kept of an event has a bound.
//! Not here: `[DONE]` and errors (`scan`).

use memchr::memmem;

use super::event::Event;

/// Bytes that are kept of an event's beginning, where its name stands, and as many of its end.
const KEPT_BYTES: usize = 1 << 10;

/// Members that say why an answer ended, where they say a text.
const REASONS: [&str; 3] = ["\"finish_reason\"", "\"finishReason\"", "\"blockReason\""];
/// Names of events that end an answer.
const NAMES: [&str; 5] = [
    "message_stop",
    "response.completed",
    "response.incomplete",
    "response.failed",
    "response.cancelled",
];

/// What is kept of the last event with data.
#[derive(Debug, Default)]
pub(super) struct LastEvent {
    text: Vec<u8>,
    /// It was too long to be read.
    is_unknown: bool,
}

impl LastEvent {
    /// Takes an event with its bytes. One that only reports usage follows the one that ends the answer.
    #[inline]
    pub(super) fn take(&mut self, event: &Event, bytes: &[u8]) {
        if event.has_data && !event.only_usage {
            self.keep(bytes);
        }
    }

    /// The same of one of which that is known.
    #[inline]
    pub(super) fn keep(&mut self, bytes: &[u8]) {
        self.is_unknown = false;
        self.text.clear();
        if bytes.len() <= 2 * KEPT_BYTES {
            self.text.extend_from_slice(bytes);
        } else {
            self.take_ends(bytes);
        }
    }

    #[cold]
    fn take_ends(&mut self, bytes: &[u8]) {
        let from = bytes.len().saturating_sub(KEPT_BYTES);
        for part in [bytes.get(..KEPT_BYTES), bytes.get(from..)] {
            self.text.extend_from_slice(part.unwrap_or_default());
        }
    }

    /// An event came that is too long to be read.
    #[cold]
    pub(super) fn forget(&mut self) {
        self.is_unknown = true;
    }

    pub(super) fn tells_end(&self) -> bool {
        let says = |member: &&str| {
            let mut places = memmem::find_iter(&self.text, member.as_bytes());
            places.any(|at| {
                let rest = self.text.get(at + member.len()..).unwrap_or_default();
                let value = rest.trim_ascii_start().strip_prefix(b":");
                value.is_some_and(|value| value.trim_ascii_start().starts_with(b"\""))
            })
        };
        let is_named = |name: &&str| {
            let mut places = memmem::find_iter(&self.text, name.as_bytes());
            places.any(|at| {
                let before = self.text.get(..at).unwrap_or_default().trim_ascii_end();
                let quoted = before.strip_suffix(b"\"").map(<[u8]>::trim_ascii_end);
                before.ends_with(b"event:")
                    || quoted.is_some_and(|before| before.ends_with(b"\"type\":"))
            })
        };
        self.is_unknown || REASONS.iter().any(says) || NAMES.iter().any(is_named)
    }
}
