//! What an audit found: a line for each thing that it looked at, and whether it holds.
//!
//! Invariant: what is only told has no verdict; one line that does not hold makes the whole not hold. Times are told, and
//! judged where that was asked for: a machine that is busy with something else makes any of them longer.

use serde::Serialize;
use serde_json::Value;

use crate::host::stalls::Stalls;
use crate::text::{WIDTH, number, wrapped};

/// Violations that are shown one by one.
const SHOWN: usize = 20;
/// Characters of the columns of what was looked at and of what was found; what is longer has a line
/// for itself.
const WHAT_MAX: usize = 52;
const VALUE_MAX: usize = 14;

#[derive(Debug, Serialize)]
pub(super) struct Verdict {
    audit: &'static str,
    seed: u64,
    pub(super) holds: bool,
    /// Whether times have to be kept, too.
    judges_times: bool,
    lines: Vec<Line>,
    /// The first violations, in words.
    violations: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Line {
    what: String,
    value: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    holds: Option<bool>,
}

impl Verdict {
    pub(super) fn new(audit: &'static str, seed: u64, judges_times: bool) -> Self {
        Self {
            audit,
            seed,
            holds: true,
            judges_times,
            lines: Vec::new(),
            violations: Vec::new(),
        }
    }

    /// Something to know.
    pub(super) fn tell(&mut self, what: &str, value: impl Into<Value>) {
        self.lines.push(Line {
            what: what.to_owned(),
            value: value.into(),
            holds: None,
        });
    }

    /// Something that must hold.
    pub(super) fn hold(&mut self, what: &str, value: impl Into<Value>, holds: bool) {
        self.holds &= holds;
        self.lines.push(Line {
            what: what.to_owned(),
            value: value.into(),
            holds: Some(holds),
        });
    }

    /// Something that must not have happened: how often, with the first few.
    pub(super) fn none(&mut self, what: &str, found: &Found) {
        self.hold(what, found.count, found.count == 0);
        let first = found.first.iter().map(|one| format!("{what}: {one}"));
        self.violations.extend(first);
        self.violations.truncate(SHOWN);
    }

    /// A time, which must be kept where times are judged.
    pub(super) fn in_time(&mut self, what: &str, value: impl Into<Value>, is_kept: bool) {
        if self.judges_times {
            self.hold(what, value, is_kept);
        } else {
            self.tell(what, value);
        }
    }

    /// Something that happens where a machine is slow, and must not where times are judged.
    pub(super) fn none_in_time(&mut self, what: &str, found: &Found) {
        if self.judges_times {
            self.none(what, found);
        } else {
            self.tell(what, found.count);
        }
    }

    /// How often the machine stood still, and how long at most.
    pub(super) fn stalls(&mut self, stalls: &Stalls) {
        let (times, longest) = stalls.most();
        self.tell("times the machine stood still", times);
        let longest = u64::try_from(longest.as_micros()).unwrap_or(u64::MAX);
        self.tell("stood still, most, µs", longest);
    }

    /// Prints it and gives whether it holds.
    #[expect(clippy::print_stdout, reason = "the verdict is what was asked for")]
    pub(super) fn print(&self, json: bool) -> bool {
        if json {
            match serde_json::to_string_pretty(self) {
                Ok(text) => println!("{text}"),
                Err(error) => eprintln!("{error}"),
            }
        } else {
            println!("{}", self.table());
        }
        self.holds
    }

    fn table(&self) -> String {
        let cells = |line: &Line| {
            let mark = match line.holds {
                None => "",
                Some(true) => "ok",
                Some(false) => "VIOLATED",
            };
            (line.what.clone(), spelled(&line.value), mark)
        };
        let cells: Vec<_> = self.lines.iter().map(cells).collect();
        let width = |of: fn(&(String, String, &str)) -> usize, most: usize| {
            let widths = cells.iter().map(of).filter(|width| *width <= most);
            widths.max().unwrap_or(0)
        };
        let (what, value) = (
            width(|c| c.0.chars().count(), WHAT_MAX),
            width(|c| c.1.chars().count(), VALUE_MAX),
        );
        let mut out = format!("audit {}, seed {}\n", self.audit, self.seed);
        for (name, shown, mark) in &cells {
            let line = format!("  {name:what$}  {shown:>value$}  {mark}");
            let line = line.trim_end();
            // Words, such as what a command said, may be longer than any number.
            if line.chars().count() > WIDTH {
                let line = format!("  {name}: {shown} {mark}");
                out.push_str(&wrapped(line.trim_end(), 4));
            } else {
                out.push_str(line);
            }
            out.push('\n');
        }
        for violation in &self.violations {
            out.push_str(&wrapped(&format!("  ! {violation}"), 4));
            out.push('\n');
        }
        out.push_str(if self.holds {
            "it holds"
        } else {
            "it does not hold"
        });
        out
    }
}

/// Things that were found, counted, the first few kept.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) count: u64,
    first: Vec<String>,
}

impl Found {
    pub(super) fn add(&mut self, what: impl FnOnce() -> String) {
        self.count += 1;
        if self.first.len() < 3 {
            self.first.push(what());
        }
    }

    /// With what somebody else found.
    pub(super) fn absorb(&mut self, other: &Self) {
        self.count += other.count;
        let room = 3_usize.saturating_sub(self.first.len());
        self.first.extend(other.first.iter().take(room).cloned());
    }
}

fn spelled(value: &Value) -> String {
    match (value, value.as_u64()) {
        (Value::String(text), _) => text.clone(),
        (_, Some(count)) => number(count),
        (other, None) => other.to_string(),
    }
}

#[cfg(test)]
mod tests;
