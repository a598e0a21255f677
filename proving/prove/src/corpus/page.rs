//! Tables and bars of text.
//!
//! Invariant: no line is wider than the page, but for words that are; colours only where they are wanted, and nothing
//! else that a terminal obeys, whatever is shown.
//! Not here: what is shown (`inspect`).

use std::fmt::Write;
use std::io::IsTerminal;

use crate::text::{number, printable};

/// What a page is written for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Page {
    pub(super) width: usize,
    pub(super) colours: bool,
}

impl Page {
    /// As stdout is: its width if it is a terminal, and colours unless `NO_COLOR` is set.
    pub(super) fn of_stdout() -> Self {
        let terminal = std::io::stdout().is_terminal();
        let width = terminal_size::terminal_size().map_or(80, |(width, _)| usize::from(width.0));
        Self {
            width: if terminal { width.clamp(60, 140) } else { 80 },
            colours: terminal && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty()),
        }
    }

    /// A heading with an empty line before it.
    pub(super) fn heading(&self, out: &mut String, text: &str) {
        let _ = writeln!(out, "\n{}", self.coloured(&printable(text), "1"));
    }

    /// Rows of cells: the first column to the left, the others to the right. The first row is a heading.
    pub(super) fn table(&self, out: &mut String, rows: &[Vec<String>]) {
        let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            let cells = rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let mut widths: Vec<usize> = (0..columns).map(width).collect();
        let rest: usize = widths.iter().skip(1).map(|w| w + 2).sum();
        if let Some(first) = widths.first_mut() {
            *first = (*first).min(self.width.saturating_sub(rest + 2)).max(8);
        }
        for (i, row) in rows.iter().enumerate() {
            let mut line = String::from("  ");
            for (column, cell) in row.iter().enumerate() {
                let width = widths[column];
                if column == 0 {
                    let _ = write!(line, "{:<width$}", shortened(&printable(cell), width));
                } else {
                    let _ = write!(line, "  {:>width$}", printable(cell));
                }
            }
            let line = line.trim_end();
            let line = if i == 0 {
                self.coloured(line, "2")
            } else {
                line.to_owned()
            };
            let _ = writeln!(out, "{line}");
        }
    }

    /// A bar for each bucket.
    pub(super) fn bars(&self, out: &mut String, buckets: &[(String, u64)]) {
        let label = buckets.iter().map(|(l, _)| l.chars().count()).max();
        let label = label.unwrap_or(0);
        let count = buckets.iter().map(|(_, n)| number(*n).len()).max();
        let count = count.unwrap_or(0);
        let most = buckets.iter().map(|(_, n)| *n).max().unwrap_or(0).max(1);
        let room = self.width.saturating_sub(label + count + 6).max(10);
        for (name, n) in buckets {
            // Eighths of a column, so that small differences show.
            let eighths = (*n as f64 / most as f64 * room as f64 * 8.0).round() as usize;
            let mut bar = "█".repeat(eighths / 8);
            bar.extend(
                [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉']
                    .get(eighths % 8)
                    .filter(|c| **c != ' '),
            );
            if *n > 0 && bar.is_empty() {
                bar.push('▏');
            }
            let bar = self.coloured(&bar, "36");
            let line = format!("  {name:>label$}  {:>count$}  {bar}", number(*n));
            let _ = writeln!(out, "{}", line.trim_end());
        }
    }

    fn coloured(&self, text: &str, code: &str) -> String {
        if self.colours && !text.is_empty() {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }
}

fn shortened(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let mut short: String = text.chars().take(width.saturating_sub(1)).collect();
    short.push('…');
    short
}

/// Counts by powers of two: `0`, `1`, `2-3`, `4-7`, … from the first to the last that has any.
pub(super) fn by_powers(values: impl Iterator<Item = u64>) -> Vec<(String, u64)> {
    let mut counts = [0_u64; 65];
    for value in values {
        counts[(64 - value.leading_zeros()) as usize] += 1;
    }
    let first = counts.iter().position(|n| *n > 0).unwrap_or(0);
    let last = counts.iter().rposition(|n| *n > 0).unwrap_or(0);
    let label = |i: usize| match i {
        0 => "0".to_owned(),
        1 => "1".to_owned(),
        i => format!("{}-", number(1 << (i - 1))),
    };
    (first..=last).map(|i| (label(i), counts[i])).collect()
}

/// In decimal units.
pub(super) fn bytes(n: u64) -> String {
    let n = n as f64;
    match n {
        n if n < 1e3 => format!("{n:.0} B"),
        n if n < 1e6 => format!("{:.1} kB", n / 1e3),
        n if n < 1e9 => format!("{:.1} MB", n / 1e6),
        n => format!("{:.2} GB", n / 1e9),
    }
}
