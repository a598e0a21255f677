//! Limits and budgets as bars, and what each caller came to.
//!
//! Not here: single calls (`calls`).

use ratatui_core::style::Style;
use ratatui_core::text::{Line, Span};

use super::bar::bar;
use super::{BAD, FAINT, GOOD, NAME, PLAIN, SOME, rule};
use crate::view::{Level, View};
use crate::words::{NAME_WIDTH, amount, clipped, cost, named};

/// Columns of a line beside its bar.
const BESIDE: u16 = 60;

pub(super) fn levels(view: &View, width: u16) -> Vec<Line<'static>> {
    if view.levels.is_empty() {
        return Vec::new();
    }
    let cells = usize::from(width.saturating_sub(BESIDE).max(4));
    let rows = view.levels.iter().map(|level| row(level, cells));
    std::iter::once(rule("limits and budgets", width))
        .chain(rows)
        .collect()
}

fn row(level: &Level, cells: usize) -> Line<'static> {
    let share = level.left / level.of;
    let (full, rest) = bar(share, cells);
    let left = format!(
        " {} of {}",
        amount(level.left, &level.what),
        amount(level.of, &level.what)
    );
    Line::from(vec![
        Span::styled(
            format!(" {:<NAME_WIDTH$}", clipped(&level.name, NAME_WIDTH)),
            NAME,
        ),
        Span::styled(format!(" {:<8} ", level.what), FAINT),
        Span::styled(full, colour(share)),
        Span::styled(rest, FAINT),
        Span::styled(format!("{left:<17}"), PLAIN),
        Span::styled(format!(" {}", level.refills), FAINT),
    ])
}

fn colour(share: f64) -> Style {
    match share {
        share if share > 0.5 => GOOD,
        share if share > 0.2 => SOME,
        _ => BAD,
    }
}

pub(super) fn callers(view: &View, width: u16) -> Vec<Line<'static>> {
    let mut lines = vec![rule("callers", width)];
    let heads = format!(
        " {:<17} {:>6} {:>8} {:>14} {:>14} {:>10}",
        "who", "calls", "refused", "engine i/o", "gate i/o", "USD"
    );
    lines.push(Line::from(Span::styled(heads, FAINT)));
    for (name, sums) in &view.callers {
        let pair = |tokens: crate::view::Tokens| format!("{}/{}", tokens.input, tokens.output);
        let agrees = sums.engine == sums.gate;
        lines.push(Line::from(vec![
            Span::styled(format!(" {:<NAME_WIDTH$}", named(name)), NAME),
            Span::styled(format!(" {:>6}", sums.calls), PLAIN),
            Span::styled(
                format!(" {:>8}", sums.refused),
                if sums.refused > 0 { SOME } else { PLAIN },
            ),
            Span::styled(format!(" {:>14}", pair(sums.engine)), PLAIN),
            Span::styled(
                format!(" {:>14}", pair(sums.gate)),
                if agrees { PLAIN } else { SOME },
            ),
            Span::styled(format!(" {:>10}", cost(sums.cost_pico)), PLAIN),
        ]));
    }
    lines
}
