//! The order of measurement: subjects interleaved, so that a drifting machine favours none.
//!
//! Invariant: every subject comes once in each round, and no subject always follows the same one
//! at the head of the round: round `r` starts with subject `r` modulo their number.
//! Not here: how long a measurement takes.

#[cfg(test)]
mod tests;

/// `(round, subject)` pairs for `subjects` subjects over `rounds` rounds.
pub fn interleave(subjects: usize, rounds: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..rounds)
        .flat_map(move |round| (0..subjects).map(move |place| (round, (place + round) % subjects)))
}
