//! Drift: when what an engine reports stops being what the gate counts.
//!
//! Each exchange lies within a tolerance or outside it. Some lie outside for honest reasons, at most
//! [`HONEST_SHARE`] of them; the alarm is the cumulative sum of log-likelihood ratios (Page 1954) of "at most that
//! share" against "[`DRIFTED_SHARE`]". By Lorden (1971) an alarm at `ln(A)` comes falsely once in `A` exchanges or
//! more rarely, on average; `A` is [`FALSE_ALARM_EXCHANGES`].
//! Invariant: pure arithmetic on what it is given, in constant memory: one [`Drift`] for each model and direction.
//! Not here: who keeps them, metrics and log lines (the host).

/// The share of exchanges that may lie outside the tolerance while all is well.
pub const HONEST_SHARE: f64 = 0.01;
/// The share that the alarm is tuned to notice soonest. Any share above about a seventh is noticed.
pub const DRIFTED_SHARE: f64 = 0.5;
/// Exchanges between two false alarms: at least this many on average.
pub const FALSE_ALARM_EXCHANGES: f64 = 1e6;

/// How far a report may lie from the count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tolerance {
    /// Tokens, whatever the size.
    pub tokens: u64,
    /// And this many in a thousand.
    pub per_mille: u64,
}

impl Tolerance {
    /// For prompts that are rendered exactly.
    pub const EXACT: Self = Self {
        tokens: 0,
        per_mille: 0,
    };
    /// For prompts to which a documented overhead was added, because the template is not public.
    pub const OVERHEAD: Self = Self {
        tokens: 16,
        per_mille: 100,
    };
    /// For output that is encoded again. One that a cap cuts off may have ended in the framing between two messages,
    /// of which nothing is shown: six tokens in Harmony, and more before a call.
    pub const OUTPUT: Self = Self {
        tokens: 8,
        per_mille: 50,
    };

    /// Whether a report lies so near to the count.
    #[must_use]
    pub const fn holds(self, reported: u64, counted: u64) -> bool {
        let allowed = self
            .tokens
            .saturating_add(counted.saturating_mul(self.per_mille) / 1000);
        reported.abs_diff(counted) <= allowed
    }
}

/// What an exchange did to the alarm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Nothing.
    None,
    /// It went off.
    Raised,
    /// It is over: reports agree again.
    Cleared,
}

/// Whether too many lie outside: the cumulative sum over what is seen.
#[derive(Clone, Debug, Default)]
pub struct Alarm {
    score: f64,
    is_raised: bool,
    seen: u64,
    outside: u64,
}

impl Alarm {
    /// Takes one that lies outside, or does not.
    pub fn observe(&mut self, is_outside: bool) -> Change {
        self.note(is_outside);
        let threshold = FALSE_ALARM_EXCHANGES.ln();
        let step = if is_outside {
            (DRIFTED_SHARE / HONEST_SHARE).ln()
        } else {
            ((1.0 - DRIFTED_SHARE) / (1.0 - HONEST_SHARE)).ln()
        };
        // The ceiling lets an alarm end some forty good exchanges after the fault did, however long that lasted.
        self.score = (self.score + step).clamp(0.0, 2.0 * threshold);
        if !self.is_raised && self.score >= threshold {
            self.is_raised = true;
            return Change::Raised;
        }
        if self.is_raised && self.score == 0.0 {
            self.is_raised = false;
            return Change::Cleared;
        }
        Change::None
    }

    /// Takes one that says nothing to it.
    fn note(&mut self, is_outside: bool) {
        self.seen += 1;
        self.outside += u64::from(is_outside);
    }

    fn raise(&mut self) -> Change {
        self.score = 2.0 * FALSE_ALARM_EXCHANGES.ln();
        if self.is_raised {
            return Change::None;
        }
        self.is_raised = true;
        Change::Raised
    }

    fn clear(&mut self) -> Change {
        self.score = 0.0;
        if !self.is_raised {
            return Change::None;
        }
        self.is_raised = false;
        Change::Cleared
    }

    /// How many were seen, and those of them outside.
    #[must_use]
    pub const fn exchanges(&self) -> (u64, u64) {
        (self.seen, self.outside)
    }

    /// Whether it is on.
    #[must_use]
    pub const fn is_raised(&self) -> bool {
        self.is_raised
    }
}

/// The drift of one model in one direction: the tokens of both sides, and the alarm on reports outside the tolerance.
#[derive(Clone, Debug)]
pub struct Drift {
    tolerance: Tolerance,
    reported: u64,
    counted: u64,
    alarm: Alarm,
}

impl Drift {
    /// Starts at no drift.
    #[must_use]
    pub const fn new(tolerance: Tolerance) -> Self {
        Self {
            tolerance,
            reported: 0,
            counted: 0,
            alarm: Alarm {
                score: 0.0,
                is_raised: false,
                seen: 0,
                outside: 0,
            },
        }
    }

    /// Takes one exchange that has both numbers.
    pub fn observe(&mut self, reported: u64, counted: u64) -> Change {
        self.observe_within(self.tolerance, reported, counted)
    }

    /// The same with a tolerance of its own, for a count that is less certain than the others.
    pub fn observe_within(&mut self, tolerance: Tolerance, reported: u64, counted: u64) -> Change {
        self.add(reported, counted);
        self.alarm.observe(!tolerance.holds(reported, counted))
    }

    /// Takes one that says nothing to the alarm.
    pub fn note(&mut self, tolerance: Tolerance, reported: u64, counted: u64) {
        self.add(reported, counted);
        self.alarm.note(!tolerance.holds(reported, counted));
    }

    const fn add(&mut self, reported: u64, counted: u64) {
        self.reported = self.reported.saturating_add(reported);
        self.counted = self.counted.saturating_add(counted);
    }

    /// Raises the alarm, which is known to be right.
    pub fn raise(&mut self) -> Change {
        self.alarm.raise()
    }

    /// Ends it.
    pub fn clear(&mut self) -> Change {
        self.alarm.clear()
    }

    /// Reported over counted tokens, less one; none before anything was counted.
    #[must_use]
    pub fn ratio(&self) -> Option<f64> {
        (self.counted > 0).then(|| self.reported as f64 / self.counted as f64 - 1.0)
    }

    /// Tokens reported and counted so far.
    #[must_use]
    pub const fn tokens(&self) -> (u64, u64) {
        (self.reported, self.counted)
    }

    /// Exchanges seen, and those of them outside the tolerance.
    #[must_use]
    pub const fn exchanges(&self) -> (u64, u64) {
        self.alarm.exchanges()
    }

    /// Whether the alarm is on.
    #[must_use]
    pub const fn is_raised(&self) -> bool {
        self.alarm.is_raised()
    }
}

#[cfg(test)]
mod tests;
