//! What a suite came to: every case with its outcome, and what `--json` prints of it.
//!
//! Invariant: the names of JSON are a contract, and are only added to.
//! Not here: the page, JUnit.

use serde_json::{Value, json};

use super::suite::{Case, Suite};
use crate::report::document::{self, Verified};

/// The form of the JSON.
const SCHEMA: &str = "tollgate.verify/1";

/// How a case ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Passed,
    Failed,
    /// It could not be settled: somebody did not answer.
    Error,
}

/// One case.
#[derive(Debug, Clone)]
pub(crate) struct CaseOutcome {
    pub(crate) outcome: Outcome,
    pub(crate) case: document::Case,
}

/// All of them.
#[derive(Debug, Clone)]
pub(crate) struct Report {
    pub(crate) suite: String,
    pub(crate) target: String,
    pub(crate) cases: Vec<CaseOutcome>,
    /// Who did not answer, which ended the suite.
    pub(crate) unreachable: Option<String>,
}

/// A suite that could not be settled, with what is known of its cases.
#[derive(Debug, thiserror::Error)]
#[error("{says}")]
pub(crate) struct Unreachable {
    pub(crate) says: String,
    pub(crate) verified: Verified,
}

impl Outcome {
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed => "failed",
            Self::Error => "error",
        }
    }
}

impl CaseOutcome {
    /// A case that could not be settled.
    pub(super) fn error(case: &Case, says: String, seconds: f64) -> Self {
        Self {
            outcome: Outcome::Error,
            case: document::Case {
                name: case.name.clone(),
                passed: false,
                seconds,
                expected: case.says.clone(),
                got: says,
                evidence: Vec::new(),
            },
        }
    }
}

impl Report {
    pub(super) fn new(suite: &Suite, target: &str) -> Self {
        Self {
            suite: suite.name.clone(),
            target: target.to_owned(),
            cases: Vec::new(),
            unreachable: None,
        }
    }

    /// Of a gateway that never answered.
    pub(super) fn unreached(suite: &Suite, target: &str, says: String) -> Self {
        let error = |case| CaseOutcome::error(case, format!("not asked: {says}"), 0.0);
        Self {
            cases: suite.cases.iter().map(error).collect(),
            unreachable: Some(says),
            ..Self::new(suite, target)
        }
    }

    pub(crate) fn count(&self, outcome: Outcome) -> usize {
        self.cases
            .iter()
            .filter(|told| told.outcome == outcome)
            .count()
    }

    /// As the process ends.
    pub(super) fn exit_code(&self) -> u8 {
        match self.verdict() {
            "passed" => 0,
            "unreachable" => 5,
            _ => 1,
        }
    }

    pub(super) fn verdict(&self) -> &'static str {
        if self.unreachable.is_some() {
            "unreachable"
        } else if self.count(Outcome::Passed) == self.cases.len() {
            "passed"
        } else {
            "failed"
        }
    }

    pub(super) fn seconds(&self) -> f64 {
        self.cases.iter().map(|told| told.case.seconds).sum()
    }

    /// What `--json` prints.
    pub(super) fn json(&self) -> Value {
        let case = |told: &CaseOutcome| {
            let mut case = json!(told.case);
            case["outcome"] = told.outcome.word().into();
            case
        };
        json!({
            "schema": SCHEMA,
            "suite": self.suite,
            "target": self.target,
            "verdict": self.verdict(),
            "unreachable": self.unreachable,
            "passed": self.count(Outcome::Passed),
            "failed": self.count(Outcome::Failed),
            "errors": self.count(Outcome::Error),
            "seconds": self.seconds(),
            "cases": self.cases.iter().map(case).collect::<Vec<_>>(),
        })
    }

    /// As a campaign keeps it; an error that has no outcome counts as failed there.
    pub(crate) fn settled(self) -> Result<Verified, Unreachable> {
        let passed = self.count(Outcome::Passed);
        let verified = Verified {
            suite: self.suite,
            passed,
            failed: self.cases.len() - passed,
            cases: self.cases.into_iter().map(|told| told.case).collect(),
        };
        match self.unreachable {
            None => Ok(verified),
            Some(says) => Err(Unreachable { says, verified }),
        }
    }
}
