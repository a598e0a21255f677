//! What a run is doing, while it does it: a few lines on a terminal, or one line every ten seconds elsewhere.
//!
//! Invariant: it goes to stderr, so that stdout has the result alone; a terminal's cursor is left where it was.
//! Not here: what is exact at the end (`report`).

use std::fmt::Write as _;
use std::io::{IsTerminal, Write as _};
use std::time::{Duration, Instant};

use load::observer::{Buckets, Counters};
use load::run::Running;

use crate::text::printable;

/// Between two looks on a terminal.
const REFRESH: Duration = Duration::from_millis(500);
/// Between two lines elsewhere.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// The lines, and what they were made of last time.
pub(super) struct Live {
    names: Vec<String>,
    planned: Duration,
    is_terminal: bool,
    bold: bool,
    drawn: usize,
    before: (Instant, Vec<Counters>),
}

impl Live {
    pub(super) fn new(names: Vec<String>, planned: Duration) -> Self {
        let none = vec![Counters::default(); names.len()];
        Self {
            is_terminal: std::io::stderr().is_terminal(),
            bold: std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()),
            names,
            planned,
            drawn: 0,
            before: (Instant::now(), none),
        }
    }

    /// Shows what was done since the last look, if that is long enough ago.
    pub(super) fn show_if_due(&mut self, running: &Running) {
        let since_start = running.start.elapsed();
        if self.is_due(self.before.0.elapsed(), since_start) {
            self.show(since_start, &running.counters());
        }
    }

    /// Whether it is time for a look. A line has a last one before users begin to leave: those that still wait for an answer
    /// are not those of the run.
    fn is_due(&self, since_look: Duration, since_start: Duration) -> bool {
        if self.is_terminal {
            return since_look >= REFRESH;
        }
        since_look >= LINE_EVERY && since_start < self.planned
    }

    fn show(&mut self, since_start: Duration, now: &[Counters]) {
        let at = Instant::now();
        let seconds = (at - self.before.0).as_secs_f64().max(1e-3);
        let mut text = String::new();
        if self.is_terminal {
            self.table(&mut text, since_start, now, seconds);
        } else {
            self.line(&mut text, since_start, now, seconds);
        }
        self.before = (at, now.to_vec());
        // Without a terminal to show it on, the run goes on.
        let _ = std::io::stderr().write_all(text.as_bytes());
    }

    /// Takes the lines away: the result stands in their place.
    pub(super) fn clear(&mut self) {
        if self.drawn > 0 {
            let up = self.drawn;
            let _ = write!(std::io::stderr(), "\x1b[{up}A\x1b[J");
            self.drawn = 0;
        }
    }

    fn table(&mut self, text: &mut String, since: Duration, now: &[Counters], seconds: f64) {
        if self.drawn > 0 {
            let _ = write!(text, "\x1b[{}A\x1b[J", self.drawn);
        }
        let (strong, plain) = if self.bold {
            ("\x1b[1m", "\x1b[0m")
        } else {
            ("", "")
        };
        let left = self.planned.saturating_sub(since).as_secs();
        let _ = writeln!(
            text,
            "{strong}{:>6.1} s{plain} of {:.0} s, {left} s left",
            since.as_secs_f64(),
            self.planned.as_secs_f64()
        );
        let _ = writeln!(
            text,
            "{:<20} {:>6} {:>8} {:>9} {:>8} {:>8} {:>8} {:>7} {:>8}",
            "profile",
            "users",
            "req/s",
            "events/s",
            "TTFT p50",
            "p99",
            "E2E p50",
            "errors",
            "lag most"
        );
        for (at, counters) in now.iter().enumerate() {
            let before = self.before.1.get(at).cloned().unwrap_or_default();
            let name: String = printable(&self.names[at]).chars().take(20).collect();
            let first = counters.first_token.since(&before.first_token);
            let _ = writeln!(
                text,
                "{name:<20} {:>6} {:>8.1} {:>9.0} {:>8} {:>8} {:>8} {:>7} {:>8}",
                counters.users,
                rate(counters.answered, before.answered, seconds),
                rate(counters.outputs, before.outputs, seconds),
                time(&first, 0.5),
                time(&first, 0.99),
                time(&counters.latency.since(&before.latency), 0.5),
                errors(counters),
                micros(counters.longest_lag_us)
            );
        }
        self.drawn = now.len() + 2;
    }

    fn line(&self, text: &mut String, since: Duration, now: &[Counters], seconds: f64) {
        let sum = |of: fn(&Counters) -> u64| {
            let before = self.before.1.iter().map(of).sum::<u64>();
            (now.iter().map(of).sum::<u64>(), before)
        };
        let (answered, before) = sum(|counters| counters.answered);
        let (users, _) = sum(|counters| counters.users);
        let (failed, _) = sum(errors);
        let lag = now.iter().map(|counters| counters.longest_lag_us).max();
        let _ = writeln!(
            text,
            "{:.0} s: {users} users, {answered} answered, {:.1}/s, {failed} errors, lag at most {}",
            since.as_secs_f64(),
            rate(answered, before, seconds),
            micros(lag.unwrap_or(0))
        );
    }
}

fn errors(counters: &Counters) -> u64 {
    counters.failures.iter().map(|(_, count)| count).sum()
}

#[expect(clippy::cast_precision_loss, reason = "counts below 2^53")]
fn rate(now: u64, before: u64, seconds: f64) -> f64 {
    now.saturating_sub(before) as f64 / seconds
}

fn time(buckets: &Buckets, share: f64) -> String {
    buckets.quantile(share).map_or_else(|| "-".into(), micros)
}

/// A time in the unit in which it is read best.
#[expect(clippy::cast_precision_loss, reason = "microseconds below 2^53")]
pub(super) fn micros(us: u64) -> String {
    match us {
        0..1_000 => format!("{us} us"),
        1_000..10_000 => format!("{:.2} ms", us as f64 / 1e3),
        10_000..1_000_000 => format!("{:.0} ms", us as f64 / 1e3),
        _ => format!("{:.2} s", us as f64 / 1e6),
    }
}

#[cfg(test)]
mod tests {
    //! Units.

    use std::time::Duration;

    use super::{Live, micros};

    #[test]
    fn lines_end_with_the_run_and_not_with_its_last_answer() {
        let mut live = Live::new(Vec::new(), Duration::from_secs(25));
        live.is_terminal = false;
        let is_due = |since_look, since_start| {
            live.is_due(
                Duration::from_secs(since_look),
                Duration::from_secs(since_start),
            )
        };
        assert!(is_due(10, 10) && is_due(10, 20));
        assert!(!is_due(5, 24), "it is too soon");
        assert!(!is_due(10, 25) && !is_due(10, 30), "users are leaving");
    }

    #[test]
    fn a_time_is_shown_in_the_unit_that_keeps_three_digits() {
        let shown = [0, 999, 1_234, 56_789, 1_234_567].map(micros);
        assert_eq!(shown, ["0 us", "999 us", "1.23 ms", "57 ms", "1.23 s"]);
    }
}
