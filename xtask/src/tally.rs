//! Counts of what passed, failed and was skipped, read from what the test harness prints.
//!
//! Invariant: a run that exits with a failure leaves at least one failure in the tally.

use std::fmt;
use std::io::Write;
use std::ops::AddAssign;

/// What a harness counted, whether all ended well, and which tests did not.
#[derive(Debug, Default)]
pub(crate) struct Ran {
    pub(crate) tally: Tally,
    pub(crate) success: bool,
    pub(crate) failed: Vec<Failed>,
}

/// A test that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failed {
    pub(crate) test: String,
    /// The setting that has it draw as it drew, `TOLLGATE_SEED=…`, where it printed one.
    pub(crate) seed: Option<String>,
}

/// What a test prints of its seed (`testing::seed`).
const SEED: &str = "TOLLGATE_SEED=";

/// The tests of which a harness says, in its section of failures, what they printed:
/// `---- a::b stdout ----`, and then their lines.
pub(crate) fn failed(failures: &str) -> Vec<Failed> {
    let mut failed: Vec<Failed> = Vec::new();
    for line in failures.lines() {
        let head = line.strip_prefix("---- ");
        if let Some(test) = head.and_then(|rest| rest.strip_suffix(" stdout ----")) {
            failed.push(Failed {
                test: test.to_owned(),
                seed: None,
            });
        } else if let Some(test) = failed.last_mut()
            && let Some(at) = line.find(SEED)
        {
            let seed = line
                .get(at..)
                .and_then(|seed| seed.split_whitespace().next());
            test.seed = test.seed.take().or(seed.map(str::to_owned));
        }
    }
    failed
}

/// Shows what was printed now. A closed terminal is no reason to stop counting.
pub(crate) fn flush() {
    drop(std::io::stdout().flush());
}

/// How many tests, and stages that count as one, passed, failed and were skipped.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    pub(crate) skipped: u64,
}

impl Tally {
    /// A stage that passes or fails as a whole (formatting, clippy, a build), counted as one.
    pub(crate) fn one(passed: bool) -> Self {
        Self {
            passed: u64::from(passed),
            failed: u64::from(!passed),
            skipped: 0,
        }
    }

    /// Adds what a line of the harness says, if it is a result line:
    /// `test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; …`. Ignored are the tests of another lane.
    pub(crate) fn read_line(&mut self, line: &str) {
        let Some((_, counts)) = line
            .trim_start()
            .strip_prefix("test result: ")
            .and_then(|rest| rest.split_once(". "))
        else {
            return;
        };
        for part in counts.split(';') {
            let mut words = part.split_whitespace();
            let count: u64 = words.next().and_then(|word| word.parse().ok()).unwrap_or(0);
            match words.next() {
                Some("passed") => self.passed += count,
                Some("failed") => self.failed += count,
                _ => {}
            }
        }
    }

    /// Counts so many of the passed tests as skipped: the harness counts a test that returned early as
    /// passed.
    pub(crate) fn of_these_skipped(&mut self, tests: u64) {
        let tests = tests.min(self.passed);
        self.passed -= tests;
        self.skipped += tests;
    }

    /// Accounts for how the run ended: one that failed without naming a test (it did not
    /// compile, it crashed) is a failure, and so is one that ran fewer tests than `least`.
    pub(crate) fn ended(mut self, success: bool, least: u64) -> Self {
        if self.failed == 0 && (!success || self.passed < least) {
            self.failed = 1;
        }
        self
    }
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} passed, {} failed, {} skipped",
            self.passed, self.failed, self.skipped
        )
    }
}

#[cfg(test)]
mod tests;
