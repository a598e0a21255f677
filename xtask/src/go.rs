//! Programs that Go builds, of modules of ours that pin what they need.
//!
//! Not here: which (`kubernetes`, `charts`), the suite of the Gateway API (`conformance`).

use std::path::Path;
use std::process::Command;

use crate::cargo::root;
use crate::command::run_shown;

/// Builds packages of a module into a directory.
pub(crate) fn build(
    module: &str,
    flags: &str,
    packages: &[&str],
    into: &Path,
) -> Result<(), String> {
    // One package at a time and behind everything else: it may take its ten minutes.
    let mut go = Command::new("nice");
    go.args(["-n", "15", "go", "build", "-p", "1", "-trimpath"]);
    go.args(["-mod=readonly", "-buildvcs=false"]);
    go.args(["-ldflags", flags, "-o"]).arg(into);
    go.args(packages).current_dir(root().join(module));
    let built = run_shown(go.env("CGO_ENABLED", "0"));
    built.map_err(|says| format!("{says}\nThey are built by Go 1.26 or newer"))
}
