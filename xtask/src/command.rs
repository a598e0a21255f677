//! Commands that run to their end: without a word unless they fail, or shown as they run.
//!
//! Not here: what is installed (`debian`, `node`, `postgres`, `python`).

use std::process::Command;

/// Runs a command to its end; its output is shown only when it fails.
pub(crate) fn run_quietly(command: &mut Command) -> Result<String, String> {
    Ok(succeed(command)?.trim().to_owned())
}

/// Runs a command to its end; what it says is shown as it says it.
pub(crate) fn run_shown(command: &mut Command) -> Result<(), String> {
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{command:?} failed ({status})")),
        Err(cause) => Err(format!("{command:?} did not start: {cause}")),
    }
}

/// Runs a command as [`run_quietly`] does, and gives every byte of its output.
pub(crate) fn succeed(command: &mut Command) -> Result<String, String> {
    let output = command
        .output()
        .map_err(|cause| format!("{command:?} did not start: {cause}"))?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        return Ok(said);
    }
    let complained = String::from_utf8_lossy(&output.stderr);
    Err(format!(
        "{command:?} failed ({})\n{}\n{}",
        output.status,
        said.trim(),
        complained.trim()
    ))
}
