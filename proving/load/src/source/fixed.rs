//! Requests that are sent in turn, over and over: one session of one turn, which is another request each time.
//!
//! Invariant: sources that are given one count go on where the last one ended.
//! Not here: recorded sessions.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;

use super::{Head, Payload, Source, Turn};

/// Requests in turn; clones share whose turn it is.
#[derive(Debug, Clone)]
pub struct Fixed {
    /// At least one.
    heads: Arc<[Head]>,
    payload: Payload,
    turn: Arc<AtomicUsize>,
}

/// No head was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("there is nothing to send: no head was given")]
pub struct NoRequests;

impl Fixed {
    /// One body with each of `heads` in turn, from the one that `turn` counts to: a run that is given the same count goes
    /// on where the last one ended.
    ///
    /// # Errors
    /// There are no heads.
    pub fn in_turn(
        heads: Vec<Head>,
        payload: Payload,
        turn: Arc<AtomicUsize>,
    ) -> Result<Self, NoRequests> {
        if heads.is_empty() {
            return Err(NoRequests);
        }
        Ok(Self {
            heads: heads.into(),
            payload,
            turn,
        })
    }

    /// One request, over and over.
    #[must_use]
    pub fn one(head: Head, body: Bytes) -> Self {
        Self {
            heads: Arc::new([head]),
            payload: body.into(),
            turn: Arc::default(),
        }
    }
}

impl Fixed {
    /// The first of the heads.
    #[must_use]
    pub fn head(&self) -> &Head {
        &self.heads[0]
    }

    /// All heads, in the order of their turns.
    #[must_use]
    pub fn heads(&self) -> &[Head] {
        &self.heads
    }

    /// The body of each.
    #[must_use]
    pub const fn payload(&self) -> &Payload {
        &self.payload
    }

    /// How many turns were taken so far, where there are several heads.
    #[must_use]
    pub fn turns_taken(&self) -> usize {
        self.turn.load(Ordering::Relaxed)
    }

    /// Turns up to this number were taken elsewhere.
    pub fn go_on_from(&self, turn: usize) {
        self.turn.fetch_max(turn, Ordering::Relaxed);
    }
}

impl Source for Fixed {
    /// One, over and over: whose turn it is is counted here.
    fn sessions(&self, _profile: usize) -> u64 {
        1
    }

    fn turns(&self, _profile: usize, _session: u64) -> u32 {
        1
    }

    /// The next request, whichever profile and session asks.
    fn turn(&self, _profile: usize, _session: u64, turn: u32) -> Option<Turn<'_>> {
        let at = if self.heads.len() == 1 {
            0
        } else {
            self.turn.fetch_add(1, Ordering::Relaxed)
        };
        (turn == 0).then(|| Turn {
            payload: self.payload.clone(),
            head: Some(&self.heads[at % self.heads.len()]),
            tokens: None,
        })
    }
}

#[cfg(test)]
mod tests {
    //! Whose turn it is.

    use std::sync::Arc;

    use super::super::{Head, Payload, Source};
    use super::{Fixed, NoRequests};

    #[test]
    fn requests_are_taken_in_turn_and_a_later_run_goes_on_where_the_last_one_ended() {
        let all = || {
            let paths = ["/0", "/1", "/2"];
            let heads: Result<Vec<_>, _> = paths.into_iter().map(Head::get).collect();
            heads.expect("paths")
        };
        let turn = Arc::default();
        let path = |fixed: &Fixed| {
            let turn = fixed.turn(0, 0, 0).expect("a turn");
            turn.head.expect("a head").path().to_owned()
        };
        let given = |heads| Fixed::in_turn(heads, Payload::default(), Arc::clone(&turn));
        let first = given(all()).expect("three");
        let taken: Vec<_> = (0..4).map(|_| path(&first)).collect();
        assert_eq!(taken, ["/0", "/1", "/2", "/0"]);
        let second = given(all()).expect("three");
        assert_eq!(path(&second), "/1");
        assert_eq!(given(Vec::new()).expect_err("none"), NoRequests);
        assert!(first.turn(0, 0, 1).is_none());
    }
}
