//! Where a campaign's files go.
//!
//! Invariant: that it can be written to is known before anything is started.
//! Not here: what stands in the files.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::json;

use super::RunError;
use crate::report::document::Document;

/// A directory of ours.
#[derive(Debug)]
pub(super) struct Output {
    dir: PathBuf,
}

impl Output {
    /// Makes the directory, and tries to write in it.
    pub(super) fn create(dir: &Path) -> Result<Self, RunError> {
        let fault = |error: io::Error| {
            let says = format!("{}: {error}", dir.display());
            RunError::Input(io::Error::new(error.kind(), says))
        };
        fs::create_dir_all(dir).map_err(fault)?;
        let dir = fs::canonicalize(dir).map_err(fault)?;
        let probe = dir.join(".probe");
        let written = fs::write(&probe, b"probe");
        let removed = fs::remove_file(&probe);
        written.and(removed).map_err(fault)?;
        Ok(Self { dir })
    }

    /// A file in it.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// Writes the document and its pages.
    pub(super) fn write(&self, document: &Document) -> Result<(), RunError> {
        let written = crate::report::write(document, &self.dir);
        written.map(drop).map_err(RunError::Input)
    }

    /// What `--json` prints.
    pub(super) fn short(&self, document: &Document) -> String {
        let overhead = document.overhead.as_ref();
        let short = json!({
            "version": document.version,
            "verdict": document.verdict,
            "reason": document.reason,
            "baseline_ttft_ms": document.baseline_ttft_ms,
            "t2_users": document.t2_users,
            "t3": document.t3,
            "soak": document.soak,
            "is_virtual": document.scenario.is_virtual,
            "phases": document.phases,
            "objectives": document.objectives,
            "gate_overhead_us": overhead.map(|overhead| overhead.gate.mean * 1e6),
            "report": self.path("report.html"),
        });
        serde_json::to_string_pretty(&short).expect("text keys and numbers")
    }
}
