//! How far something is, on stderr: a line that is written over on a terminal, a line now and then elsewhere.
//!
//! Invariant: stdout is never touched; a terminal is written to five times a second at most, a file every 10 s.
//! Not here: what is said.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

/// A line that changes.
pub(crate) struct Line {
    terminal: bool,
    every: Duration,
    shown: Instant,
}

impl Line {
    pub(crate) fn new() -> Self {
        let terminal = std::io::stderr().is_terminal();
        Self {
            terminal,
            every: if terminal {
                Duration::from_millis(200)
            } else {
                Duration::from_secs(10)
            },
            shown: Instant::now(),
        }
    }

    /// Shows a text, if it is time to.
    pub(crate) fn show(&mut self, text: impl FnOnce() -> String) {
        if self.shown.elapsed() < self.every {
            return;
        }
        self.shown = Instant::now();
        let mut err = std::io::stderr().lock();
        // Nobody has to read this; a closed stderr does not end a build.
        let _ = if self.terminal {
            write!(err, "\r\x1b[2K{}", text())
        } else {
            writeln!(err, "{}", text())
        };
    }

    /// Takes the line away from a terminal.
    pub(crate) fn end(&self) {
        if self.terminal {
            let _ = write!(std::io::stderr(), "\r\x1b[2K");
        }
    }
}
