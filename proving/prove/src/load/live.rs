//! What a run is doing, while it does it: a few lines on a terminal, or one line every ten seconds elsewhere.
//!
//! Invariant: it goes to stderr, so that stdout has the result alone.
//! Not here: what is exact at the end (`report`), how lines are written over (`progress`).

use std::time::{Duration, Instant};

use load::observer::{Buckets, Counters};
use load::run::Running;

use crate::progress::{LINE_EVERY, Lines};
use crate::report::plain;

/// Between two looks on a terminal.
const REFRESH: Duration = Duration::from_millis(500);
/// The lines, and what they were made of last time.
pub(super) struct Live {
    names: Vec<String>,
    planned: Duration,
    /// Users that there are, where all is by users and nobody else says how many.
    users: Option<u64>,
    lines: Lines,
    before: (Instant, Vec<Counters>),
}

impl Live {
    pub(super) fn new(names: Vec<String>, planned: Duration) -> Self {
        let none = vec![Counters::default(); names.len()];
        Self {
            lines: Lines::new(),
            names,
            planned,
            users: None,
            before: (Instant::now(), none),
        }
    }

    /// The same of so many users, of whom a line says how many are still at work.
    pub(super) const fn of_users(mut self, users: Option<u64>) -> Self {
        self.users = users;
        self
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
        if self.lines.is_terminal {
            return since_look >= REFRESH;
        }
        since_look >= LINE_EVERY && since_start < self.planned
    }

    fn show(&mut self, since_start: Duration, now: &[Counters]) {
        let at = Instant::now();
        let seconds = (at - self.before.0).as_secs_f64().max(1e-3);
        if self.lines.is_terminal {
            let text = self.table(since_start, now, seconds);
            self.lines.show("", &text);
        } else {
            let text = self.line(since_start, now, seconds);
            self.lines.show(&text, "");
        }
        self.before = (at, now.to_vec());
    }

    /// Takes the lines away: the result stands in their place.
    pub(super) fn clear(&mut self) {
        self.lines.clear();
    }

    fn table(&self, since: Duration, now: &[Counters], seconds: f64) -> String {
        let head = [
            "profile", "users", "req/s", "events/s", "TTFT p50", "p99", "E2E p50", "errors",
            "lag most",
        ];
        let mut lines = vec![head.map(str::to_owned).to_vec()];
        for ((at, counters), name) in now.iter().enumerate().zip(&self.names) {
            let before = self.before.1.get(at).cloned().unwrap_or_default();
            let first = counters.first_token.since(&before.first_token);
            let answered = rate(counters.answered, before.answered, seconds);
            let outputs = rate(counters.outputs, before.outputs, seconds);
            lines.push(vec![
                name.clone(),
                counters.users.to_string(),
                format!("{answered:.1}"),
                format!("{outputs:.0}"),
                time(&first, 0.5),
                time(&first, 0.99),
                time(&counters.latency.since(&before.latency), 0.5),
                errors(counters).to_string(),
                micros(counters.longest_lag_us),
            ]);
        }
        let left = self.planned.saturating_sub(since).as_secs();
        format!(
            "{:>6.1} s of {:.0} s, {left} s left\n{}",
            since.as_secs_f64(),
            self.planned.as_secs_f64(),
            plain::table(lines)
        )
    }

    fn line(&self, since: Duration, now: &[Counters], seconds: f64) -> String {
        let sum = |of: fn(&Counters) -> u64| {
            let before = self.before.1.iter().map(of).sum::<u64>();
            (now.iter().map(of).sum::<u64>(), before)
        };
        let (answered, before) = sum(|counters| counters.answered);
        let (users, _) = sum(|counters| counters.users);
        let (failed, _) = sum(errors);
        let lag = now.iter().map(|counters| counters.longest_lag_us).max();
        // Who would send again after the end has gone already.
        let all = self.users.map(|all| format!(" of {all}"));
        let all = all.unwrap_or_default();
        format!(
            "{:.0} s: {users}{all} users at work, {answered} answered, {:.1}/s, {failed} errors, lag at most {}\n",
            since.as_secs_f64(),
            rate(answered, before, seconds),
            micros(lag.unwrap_or(0))
        )
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
        live.lines.is_terminal = false;
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
    fn a_line_says_how_many_of_the_users_are_still_at_work() {
        let live = Live::new(vec!["coding".into()], Duration::from_secs(10));
        let now = [load::observer::Counters {
            users: 2,
            answered: 56,
            ..Default::default()
        }];
        let line = |live: &Live| live.line(Duration::from_secs(10), &now, 10.0);
        let said = line(&live);
        assert!(
            said.starts_with("10 s: 2 users at work, 56 answered, 5.6/s"),
            "{said}"
        );
        let said = line(&live.of_users(Some(8)));
        assert!(said.starts_with("10 s: 2 of 8 users at work, "), "{said}");
    }

    #[test]
    fn a_time_is_shown_in_the_unit_that_keeps_three_digits() {
        let shown = [0, 999, 1_234, 56_789, 1_234_567].map(micros);
        assert_eq!(shown, ["0 us", "999 us", "1.23 ms", "57 ms", "1.23 s"]);
    }
}
