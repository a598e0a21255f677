//! What goes on, while it does: lines on a terminal, and the same for a page.
//!
//! A decision is a line that stays; below them a few lines are written over: phase, users, TTFT against its limit, KV
//! cache, preemptions, errors, time left. Elsewhere than on a terminal there is a line every ten seconds.
//! Invariant: it goes to stderr, so that stdout has the result alone.
//! Not here: the page (`watch`).

use std::collections::VecDeque;
use std::time::Instant;

use experiment::campaign::Event;
use serde::Serialize;

use crate::progress::LINE_EVERY;
use crate::text::{WIDTH, add, is_bold, printable, wrapped};

/// Points of TTFT that are kept.
const KEPT: usize = 600;
/// Decisions that a page is given.
const EVENTS: usize = 50;
/// Heights of a sparkline.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// What goes on now.
#[derive(Debug, Clone, Default, Serialize)]
pub(super) struct Now {
    pub(super) title: String,
    pub(super) phase: String,
    pub(super) seconds: f64,
    /// Until the phase ends, or the step of a ramp.
    pub(super) left_s: Option<f64>,
    /// Of which that is: a phase, or a step.
    pub(super) left_of: String,
    pub(super) users: u32,
    pub(super) ttft_ms: Option<f64>,
    pub(super) limit_ms: Option<f64>,
    /// Mean share of KV blocks in use.
    pub(super) kv_cache: Option<f64>,
    pub(super) preemptions: Option<f64>,
    pub(super) requests_per_s: f64,
    pub(super) answered: u64,
    pub(super) errors: u64,
    /// Seconds, TTFT in ms.
    pub(super) history: VecDeque<(f64, Option<f64>)>,
    pub(super) events: VecDeque<(f64, String, String)>,
}

/// The lines.
pub(super) struct Lines {
    lines: crate::progress::Lines,
    bold: bool,
    /// Decisions that were told.
    told: usize,
    line: Option<Instant>,
}

impl Now {
    /// A moment of it.
    pub(super) fn remember(&mut self) {
        self.history.push_back((self.seconds, self.ttft_ms));
        if self.history.len() > KEPT {
            self.history.pop_front();
        }
    }
}

impl Lines {
    pub(super) fn new() -> Self {
        Self {
            lines: crate::progress::Lines::new(),
            bold: is_bold(),
            told: 0,
            line: None,
        }
    }

    /// Tells new decisions, and what goes on.
    pub(super) fn show(&mut self, now: &mut Now, events: &[Event]) {
        let mut text = String::new();
        for event in events.iter().skip(self.told) {
            let (at, kind) = (event.at.as_secs_f64(), event.kind.word());
            let says = printable(&event.says);
            let line = format!("{:>7} {kind:<11} {says}", clock(at));
            add!(text, "{}", wrapped(&line, 20));
            now.events.push_back((at, kind.to_owned(), says));
            if now.events.len() > EVENTS {
                now.events.pop_front();
            }
        }
        self.told = events.len();
        let mut changing = String::new();
        if self.lines.is_terminal {
            changing = self.table(now);
        } else if self.line.is_none_or(|last| last.elapsed() >= LINE_EVERY) {
            self.line = Some(Instant::now());
            add!(text, "{}", one_line(now));
        }
        self.lines.show(&text, &changing);
    }

    /// Takes the changing lines away.
    pub(super) fn clear(&mut self) {
        self.lines.clear();
    }

    fn table(&self, now: &Now) -> String {
        let (strong, plain) = if self.bold {
            ("\x1b[1m", "\x1b[0m")
        } else {
            ("", "")
        };
        let left = now.left_s.map_or(String::new(), |left| {
            format!(", {} left of the {}", clock(left), now.left_of)
        });
        let lines = [
            format!(
                "{strong}{:>7}{plain} {strong}{}{plain}  {} users{left}",
                clock(now.seconds),
                now.phase,
                now.users
            ),
            format!(
                "        TTFT {} of at most {}   {}",
                ms(now.ttft_ms),
                ms(now.limit_ms),
                sparkline(now)
            ),
            format!(
                "        KV cache {}   preemptions {}   {:.1} requests/s   {} errors of {}",
                share(now.kv_cache),
                now.preemptions
                    .map_or_else(|| "-".into(), |n| format!("{n:.0}")),
                now.requests_per_s,
                now.errors,
                now.answered + now.errors
            ),
        ];
        lines.join("\n") + "\n"
    }
}

fn one_line(now: &Now) -> String {
    format!(
        "{:>7} {}: {} users, TTFT {} of {}, KV cache {}, {:.1}/s, {} errors",
        clock(now.seconds),
        now.phase,
        now.users,
        ms(now.ttft_ms),
        ms(now.limit_ms),
        share(now.kv_cache),
        now.requests_per_s,
        now.errors
    )
}

/// The last of TTFT, from 0 to its limit.
fn sparkline(now: &Now) -> String {
    let width = WIDTH - 48;
    let from = now.history.len().saturating_sub(width);
    let greatest = now
        .history
        .iter()
        .filter_map(|(_, ttft)| *ttft)
        .fold(0.0, f64::max);
    let top = now.limit_ms.unwrap_or(greatest).max(1e-9);
    let bar = |ttft: &Option<f64>| match ttft {
        Some(ttft) => BARS[((ttft / top * 7.0).round() as usize).min(7)],
        None => ' ',
    };
    now.history
        .iter()
        .skip(from)
        .map(|(_, ttft)| bar(ttft))
        .collect()
}

fn ms(time: Option<f64>) -> String {
    time.map_or_else(|| "-".into(), |ms| format!("{ms:.0} ms"))
}

fn share(share: Option<f64>) -> String {
    share.map_or_else(|| "-".into(), |share| format!("{:.1} %", share * 100.0))
}

/// Hours, minutes and seconds.
pub(super) fn clock(seconds: f64) -> String {
    let whole = seconds.max(0.0) as u64;
    if whole >= 3600 {
        format!("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60)
    } else {
        format!("{}:{:02}", whole / 60, whole % 60)
    }
}
