//! How far a build or a check of a corpus is.
//!
//! Invariant: what is shown is a share and a rate of what this call did, not of what an earlier one had done.
//! Not here: where and how often it is written (`progress`).

use std::time::{Duration, Instant};

use ::corpus::build::Progress;

use super::figures::bytes;
use crate::progress::Line;
use crate::text::number;

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
