//! How wide lines for people are.
//!
//! Not here: breaking them (`ledger::report::wrapped`), tables (`ledger::report`).

use std::os::fd::AsFd;

/// Characters of a line on this stream: what `COLUMNS` says, or the terminal's; eighty where there is no
/// terminal, and never less.
pub fn of(stream: impl AsFd) -> usize {
    let said = std::env::var("COLUMNS").ok().and_then(|n| n.parse().ok());
    let terminal =
        || terminal_size::terminal_size_of(stream).map(|(width, _)| usize::from(width.0));
    said.or_else(terminal).unwrap_or(80).max(80)
}
