//! The ledger's rows, as the gate's own command line exports them.
//!
//! Invariant: read line by line; what a row does not say is `None`, never zero.
//! Not here: what they are held against (`account`).

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use serde::Deserialize;

use super::AuditError;
use super::gate::Gate;

/// What an audit reads of a row.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Row {
    pub(super) request_id: String,
    pub(super) state: String,
    pub(super) outcome: Option<String>,
    pub(super) prompt_tokens: Option<u64>,
    pub(super) prompt_source: Option<String>,
    pub(super) completion_tokens: Option<u64>,
    pub(super) completion_source: Option<String>,
    /// Upstream tries.
    pub(super) attempts: Option<u64>,
    /// Why an estimate is charged although no answer was heard.
    pub(super) estimate_reason: Option<String>,
    /// Tries beside the last that may have run.
    pub(super) unconfirmed_attempts: Option<u64>,
    pub(super) at_least_tokens: Option<u64>,
    pub(super) at_most_tokens: Option<u64>,
}

impl Row {
    /// Both counts, where the engine itself said them.
    pub(super) fn reported(&self) -> Option<(u64, u64)> {
        let said = |source: &Option<String>| source.as_deref() == Some("reported");
        let both = said(&self.prompt_source) && said(&self.completion_source);
        both.then_some(())?;
        Some((self.prompt_tokens?, self.completion_tokens?))
    }

    /// What it charges to limits.
    pub(super) fn tokens(&self) -> u64 {
        self.prompt_tokens.unwrap_or(0) + self.completion_tokens.unwrap_or(0)
    }
}

/// Gives every row to `take`, in the ledger's order.
pub(super) fn each(gate: &Gate, mut take: impl FnMut(Row)) -> Result<u64, AuditError> {
    let mut child = gate
        .usage(&["export", "--form", "jsonl"])
        .stdout(Stdio::piped())
        .spawn()?;
    let mut rows = 0;
    if let Some(out) = child.stdout.take() {
        for line in BufReader::with_capacity(1 << 20, out).lines() {
            let row = serde_json::from_str(&line?)
                .map_err(|error| AuditError::Gate(format!("a row of the export: {error}")))?;
            take(row);
            rows += 1;
        }
    }
    if child.wait()?.success() {
        Ok(rows)
    } else {
        Err(AuditError::Gate("`usage export` failed".into()))
    }
}

/// Whether `usage verify` finds the chain of hashes whole, and what it says where not.
pub(super) fn verify(gate: &Gate) -> Result<(bool, String), AuditError> {
    let output = gate.usage(&["verify"]).output()?;
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said).trim().replace('\n', "; ");
    let is_whole = output.status.success();
    Ok((is_whole, if is_whole { "whole".into() } else { said }))
}
