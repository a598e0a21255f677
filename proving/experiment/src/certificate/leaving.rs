//! How long a generator that had turned to a request waited until its first byte left: for a connection, or for room on one.
//!
//! That is the subject's doing, and in its latencies; it moves what was sent all the same, and the lag does not hold it.
//! Not here: how late the generator itself was (`lag`).

use std::fmt;

use serde::Serialize;

/// Sends that leave later than this after the generator turned to them are told, in seconds.
pub const LATE_S: f64 = 0.01;

/// Times between turning to a request and its first byte, in seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Leaving {
    /// Of so many sends.
    pub sends: u64,
    /// Those that took longer than [`LATE_S`].
    pub late: u64,
    /// The median.
    pub p50_s: f64,
    /// All but one in a hundred are below.
    pub p99_s: f64,
    /// The greatest.
    pub max_s: f64,
}

impl fmt::Display for Leaving {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            sends,
            late,
            p50_s,
            p99_s,
            max_s,
        } = self;
        let ms = |seconds: &f64| seconds * 1e3;
        write!(
            f,
            "late by connecting, which the verdict does not judge: {late} of {sends} sends left more than {:.0} ms after the \
             generator turned to them; p50 {:.3} ms, p99 {:.3} ms, most {:.3} ms",
            LATE_S * 1e3,
            ms(p50_s),
            ms(p99_s),
            ms(max_s)
        )
    }
}

#[cfg(test)]
mod tests {
    //! A target that takes a connection each 8 ms.

    use super::*;

    #[test]
    fn sends_that_waited_for_a_connection_are_told_with_their_number_and_the_longest() {
        let leaving = Leaving {
            sends: 500,
            late: 498,
            p50_s: 2.0,
            p99_s: 3.95,
            max_s: 4.0,
        };
        let says = leaving.to_string();
        assert!(
            says.contains("498 of 500 sends left more than 10 ms after")
                && says.ends_with("most 4000.000 ms"),
            "{says}"
        );
    }
}
