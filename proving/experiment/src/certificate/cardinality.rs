//! How often the same sessions came: prompts that were sent before cost an engine with a prefix cache next to nothing.
//!
//! Not here: what of a prompt an engine has cached (`simulator`), sessions (`crate::workload`).

use std::fmt;

use serde::Serialize;

/// Unless somebody says otherwise: with a smaller share of sessions that are no repetition, figures are of a cache.
pub const LEAST_UNIQUE: f64 = 0.1;

/// Sessions of a run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Cardinality {
    /// Requests, but for those that were sent again.
    pub sends: u64,
    /// Sessions that were begun.
    pub sessions: u64,
    /// Those that say what none before said.
    pub unique_sessions: u64,
    /// The share of prompt tokens that a cache which evicts nothing would have, where that is known.
    pub expected_hits: Option<f64>,
}

impl Cardinality {
    /// The share of sessions that are no repetition; `None` before the first.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "sessions below 2^53")]
    pub fn unique_share(&self) -> Option<f64> {
        (self.sessions > 0).then(|| self.unique_sessions as f64 / self.sessions as f64)
    }

    /// Whether it is below `least`.
    #[must_use]
    pub fn is_few(&self, least: f64) -> bool {
        self.unique_share().is_some_and(|share| share < least)
    }
}

impl fmt::Display for Cardinality {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            sends,
            sessions,
            unique_sessions,
            expected_hits,
        } = self;
        write!(
            f,
            "{unique_sessions} unique of {sessions} sessions, {sends} requests"
        )?;
        match expected_hits {
            Some(hits) => write!(
                f,
                "; a prefix cache that evicts nothing hits {:.1} %",
                hits * 100.0
            ),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    //! Ten sessions, and twenty thousand.

    use super::*;

    #[test]
    fn ten_sessions_of_twenty_thousand_are_few_and_what_is_said_of_them_has_every_figure() {
        let looped = Cardinality {
            sends: 45_000,
            sessions: 20_000,
            unique_sessions: 10,
            expected_hits: Some(0.998),
        };
        assert_eq!(looped.unique_share(), Some(0.0005));
        assert!(looped.is_few(LEAST_UNIQUE) && !looped.is_few(0.0));
        let says = "10 unique of 20000 sessions, 45000 requests; a prefix cache that evicts nothing hits 99.8 %";
        assert_eq!(looped.to_string(), says);
        let fresh = Cardinality {
            unique_sessions: 20_000,
            ..looped
        };
        assert!(!fresh.is_few(LEAST_UNIQUE));
        assert!(
            !Cardinality {
                sessions: 0,
                ..looped
            }
            .is_few(1.0),
            "nothing was begun"
        );
    }
}
