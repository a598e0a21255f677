//! The certificate as a table in plain text.
//!
//! Invariant: a line for each profile, then one for each check that failed, and of a good profile the few that people
//! ask for.
//! Not here: colours; whoever prints it may colour the verdicts.

use std::fmt;

use super::{
    Certificate, Check, LEAST_GAPS, LEAST_UNIQUE, Of, Outcome, ProfileCertificate, Verdict,
};

impl fmt::Display for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "certificate of what was sent: {} ({})",
            self.verdict.word(),
            Judged(self)
        )?;
        if self.stalled_s > 0.0 {
            writeln!(
                f,
                "  the generator did not come to its turn for {:.0} ms in all; more than 1 % of a run makes it void",
                self.stalled_s * 1e3
            )?;
        }
        if let Some(leaving) = self.leaving.as_ref().filter(|leaving| leaving.late > 0) {
            writeln!(f, "  {leaving}")?;
        }
        if let Some(cardinality) = &self.cardinality {
            let is_few = cardinality.is_few(LEAST_UNIQUE);
            let warns = if is_few {
                "WARNING, the same sessions again and again: "
            } else {
                ""
            };
            writeln!(f, "  {warns}{cardinality}")?;
        }
        self.profiles.iter().try_for_each(|profile| profile.fmt(f))
    }
}

/// How many checks there are, and how those are held that chance can fail.
struct Judged<'a>(&'a Certificate);

impl fmt::Display for Judged<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Certificate {
            judged,
            significance,
            profiles,
            ..
        } = self.0;
        let checks = profiles.iter().flat_map(|profile| &profile.checks);
        let all = checks
            .filter(|check| check.outcome != Outcome::Unjudged)
            .count();
        let s = if all == 1 { "" } else { "s" };
        write!(f, "{all} check{s}")?;
        match judged {
            0 => Ok(()),
            judged if *judged == all => write!(f, "; each fails below {significance:.1e}"),
            judged => write!(
                f,
                "; {judged} by probability, each fails below {significance:.1e}"
            ),
        }
    }
}

impl fmt::Display for ProfileCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "  {} {} [{}]: {} sends, {} gaps tested",
            self.verdict.word(),
            self.name,
            self.process,
            self.sends,
            self.tested
        )?;
        self.reason(f)?;
        let lag = &self.lag;
        let ms = |seconds: f64| seconds * 1e3;
        writeln!(
            f,
            "    lag p50 {:.3} ms, p99 {:.3} ms (limit {:.3} ms), most {:.3} ms, overdue {}",
            ms(lag.p50_s),
            ms(lag.p99_s),
            ms(lag.limit_s),
            ms(lag.max_s),
            lag.overdue
        )?;
        self.unjudged(f)?;
        self.checks.iter().try_for_each(|check| check.fmt(f))
    }
}

impl ProfileCertificate {
    /// Of the times that were kept, which tests say nothing: a verdict is by the others alone.
    fn unjudged(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (of, word) in [(Of::Intended, "intended"), (Of::Achieved, "achieved")] {
            let names = |judged: bool| -> Vec<&str> {
                let is = |check: &&Check| {
                    check.of == of && (check.outcome != Outcome::Unjudged) == judged
                };
                self.checks
                    .iter()
                    .filter(is)
                    .map(|check| check.name)
                    .collect()
            };
            let (judged, other) = (names(true), names(false));
            if other.is_empty() {
                continue;
            }
            let judged = if judged.is_empty() {
                "nothing".to_owned()
            } else {
                judged.join(", ")
            };
            writeln!(
                f,
                "    of {word} times the verdict is by {judged}; not judged: {}",
                other.join(", ")
            )?;
        }
        Ok(())
    }

    /// Why it is not good, and what to do.
    fn reason(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lag = &self.lag;
        match self.verdict {
            Verdict::Good => Ok(()),
            Verdict::Void => writeln!(
                f,
                "    the generator was late: {} sends left more than {:.1} ms after they were due, more than 1 in 100; \
                 what was measured is about itself. Ask for less, or give it more of the machine",
                lag.late,
                lag.limit_s * 1e3
            ),
            Verdict::Unproven => writeln!(
                f,
                "    too little to prove a law by: {} gaps, and {LEAST_GAPS} are needed. Run longer, or with more users",
                self.tested
            ),
            Verdict::Failed => {
                let failed = self
                    .checks
                    .iter()
                    .filter(|check| check.outcome == Outcome::Failed);
                let names: Vec<&str> = failed.map(|check| check.name).collect();
                writeln!(
                    f,
                    "    what was sent has not this law, by {}",
                    names.join(", ")
                )
            }
        }
    }
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let outcome = match self.outcome {
            Outcome::Passed => "ok",
            Outcome::Failed => "FAILED",
            Outcome::Unjudged => "-",
        };
        let of = match self.of {
            Of::Intended => "intended",
            Of::Achieved => "achieved",
            Of::Chain => "chain",
        };
        write!(
            f,
            "    {outcome:<6} {of:<8} {:<18} {:>11.6}",
            self.name, self.found
        )?;
        if let Some(expected) = self.expected {
            write!(f, "  law {expected:.6}")?;
        }
        if let Some([low, high]) = self.interval {
            write!(f, "  95 % {low:.4} to {high:.4}")?;
        }
        if let Some(limit) = self.limit {
            write!(f, "  at most {limit:.6}")?;
        }
        if let Some(p) = self.p {
            write!(f, "  p {p:.2e}")?;
        }
        writeln!(f)
    }
}
