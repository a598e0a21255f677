//! What verbs print: answers on standard output, faults on standard error.
//!
//! Not here: the log (`logging`), how wide lines are (`width`).

use std::io::{ErrorKind, Write};
use std::process::ExitCode;

/// Prints an answer, which is a failure where it is not good.
pub(crate) fn judged(text: &str, is_good: bool) -> ExitCode {
    match told(text.trim_end()) {
        ExitCode::SUCCESS if !is_good => ExitCode::FAILURE,
        told => told,
    }
}

/// Prints an answer to standard output. One that is not taken whole is a failure, but for a closed pipe, whose
/// reader has what it wanted.
pub fn told(text: &str) -> ExitCode {
    let mut out = std::io::stdout();
    match writeln!(out, "{text}").and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            complain(&format!("tollgate: cannot write: {error}"));
            ExitCode::FAILURE
        }
        Ok(()) | Err(_) => ExitCode::SUCCESS,
    }
}

/// Prints a line for people to standard output. A closed pipe is not an error of ours.
pub fn say(line: &str) {
    drop(writeln!(std::io::stdout(), "{line}"));
}

/// Prints a line for people to standard error.
pub fn complain(line: &str) {
    drop(writeln!(std::io::stderr(), "{line}"));
}
