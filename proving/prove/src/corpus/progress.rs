//! How far something is, on stderr: a line that is written over on a terminal, a line now and then elsewhere.
//!
//! Invariant: stdout is never touched; a terminal is written to five times a second at most, a file every 10 s.
//! Not here: what is said.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use ::corpus::build::Progress;

use super::page::{bytes, number};

/// A line that changes.
pub(super) struct Line {
    terminal: bool,
    every: Duration,
    shown: Instant,
}

impl Line {
    pub(super) fn new() -> Self {
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
    pub(super) fn show(&mut self, text: impl FnOnce() -> String) {
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
    pub(super) fn end(&self) {
        if self.terminal {
            let _ = write!(std::io::stderr(), "\r\x1b[2K");
        }
    }
}

/// The progress of a build.
pub(super) struct Bar {
    line: Line,
    began: Instant,
    /// The share that was done when this call began.
    before: Option<f64>,
}

impl Bar {
    pub(super) fn new() -> Self {
        Self {
            line: Line::new(),
            began: Instant::now(),
            before: None,
        }
    }

    pub(super) fn show(&mut self, progress: &Progress) {
        let before = *self.before.get_or_insert(progress.share);
        let elapsed = self.began.elapsed();
        self.line.show(|| describe(progress, elapsed, before));
    }

    pub(super) fn end(&self) {
        self.line.end();
    }

    /// Since this call began.
    pub(super) fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }
}

/// `[#####-----] 50 % · 1,000 sessions · 12.0 MB/s · 1 min left`.
pub(super) fn describe(progress: &Progress, elapsed: Duration, before: f64) -> String {
    const WIDTH: usize = 20;
    let full = (progress.share * WIDTH as f64) as usize;
    let done = progress.bytes_unrolled - progress.bytes_unrolled_before;
    let rate = done as f64 / elapsed.as_secs_f64().max(1e-3);
    let gained = progress.share - before;
    let left = if gained > 0.0 {
        let seconds = elapsed.as_secs_f64() * (1.0 - progress.share) / gained;
        format!(" · {} left", time(seconds))
    } else {
        String::new()
    };
    let skipped = match progress.skipped {
        0 => String::new(),
        n => format!(" · {} skipped", number(n)),
    };
    format!(
        "[{}{}] {:.0} % · {} sessions{skipped} · {}/s{left}",
        "#".repeat(full.min(WIDTH)),
        "-".repeat(WIDTH - full.min(WIDTH)),
        progress.share * 100.0,
        number(progress.sessions),
        bytes(rate as u64)
    )
}

/// Seconds in the unit that suits them.
pub(super) fn time(seconds: f64) -> String {
    match seconds {
        s if s < 90.0 => format!("{s:.0} s"),
        s if s < 5_400.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3_600.0),
    }
}
