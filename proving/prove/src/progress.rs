//! How far something is, on stderr: lines that are written over on a terminal, a line now and then elsewhere.
//!
//! Invariant: stdout is never touched; a terminal's cursor is left where it was, and a file has a line every 10 s.
//! Not here: what is said.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

/// Between two lines elsewhere than on a terminal.
pub(crate) const LINE_EVERY: Duration = Duration::from_secs(10);

/// Lines that are written over.
pub(crate) struct Lines {
    pub(crate) is_terminal: bool,
    drawn: usize,
}

impl Lines {
    pub(crate) fn new() -> Self {
        Self {
            is_terminal: std::io::stderr().is_terminal(),
            drawn: 0,
        }
    }

    /// Shows lines that stay, and in the place of those before lines that change.
    pub(crate) fn show(&mut self, staying: &str, changing: &str) {
        let up = self.up();
        self.drawn = changing.lines().count();
        // Nobody has to read this; a closed stderr ends nothing.
        let _ = write!(std::io::stderr(), "{up}{staying}{changing}");
    }

    /// Takes the changing lines away.
    pub(crate) fn clear(&mut self) {
        self.show("", "");
    }

    fn up(&self) -> String {
        match self.drawn {
            0 => String::new(),
            drawn => format!("\x1b[{drawn}A\x1b[J"),
        }
    }
}

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
                LINE_EVERY
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
