//! Where a campaign's files go.
//!
//! Invariant: that it can be written to is known before anything is started; from then on no file of an earlier campaign
//! is in it that could pass for one of this, and no other campaign writes there.
//! Not here: what stands in the files.

use std::fs::{self, File, TryLockError};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde_json::json;

use super::RunError;
use crate::report::document::Document;

/// What each campaign writes anew.
const OURS: [&str; 9] = [
    "report.json",
    "report.html",
    "report.md",
    "report.simulated-engine.json",
    "report.simulated-engine.html",
    "report.simulated-engine.md",
    "requests.parquet",
    "samples.parquet",
    "pairs.parquet",
];

/// A directory of ours.
#[derive(Debug)]
pub(super) struct Output {
    dir: PathBuf,
    /// The directory itself, locked for as long as it is ours.
    _lock: File,
}

impl Output {
    /// Makes the directory, tries to write in it, and takes away what a campaign before left.
    pub(super) fn create(dir: &Path) -> Result<Self, RunError> {
        let place = dir.display().to_string();
        let fault = |error: io::Error| RunError::of(&place)(error);
        fs::create_dir_all(dir).map_err(fault)?;
        let dir = fs::canonicalize(dir).map_err(fault)?;
        let lock = File::open(&dir).map_err(fault)?;
        lock.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => RunError::Usage(format!(
                "{}: another campaign writes there: give another directory with --out",
                dir.display()
            )),
            TryLockError::Error(error) => fault(error),
        })?;
        let probe = tempfile::NamedTempFile::new_in(&dir);
        let written = probe.and_then(|mut probe| probe.write_all(b"probe"));
        written.map_err(fault)?;
        for name in OURS {
            // A link is taken away, and not what it names.
            match fs::remove_file(dir.join(name)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    let says = format!("{name}, of a campaign before: {error}");
                    return Err(fault(io::Error::new(error.kind(), says)));
                }
                _ => {}
            }
        }
        Ok(Self { dir, _lock: lock })
    }

    /// A file in it.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// Writes the document and its pages.
    pub(super) fn write(&self, document: &Document) -> Result<(), RunError> {
        let written = crate::report::write(document, &self.dir);
        written.map(drop).map_err(RunError::File)
    }

    /// What `--json` prints.
    pub(super) fn short(&self, document: &Document) -> String {
        let overhead = document.overhead.as_ref();
        let verify = document.verify.as_ref();
        let short = json!({
            "version": document.version,
            "verdict": document.verdict,
            "reason": document.reason,
            "baseline_ttft_ms": document.baseline_ttft_ms,
            "t2_users": document.t2_users,
            "t3": document.t3,
            "soak": document.soak,
            "reservations": document.reservations,
            "is_virtual": document.scenario.is_virtual,
            "is_engine_simulated": document.scenario.is_engine_simulated,
            "evidence": document.evidence().word(),
            "verify": verify.map(|verify| json!({
                "suite": verify.suite,
                "passed": verify.passed,
                "failed": verify.failed,
            })),
            "phases": document.phases,
            "objectives": document.objectives,
            "gateway_overhead_us": overhead.map(|overhead| overhead.gate.mean * 1e6),
            "report": self.path(&document.evidence().file("html")),
        });
        serde_json::to_string_pretty(&short).expect("text keys and numbers")
    }
}
