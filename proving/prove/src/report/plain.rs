//! Sections as text of a terminal: tables whose columns go on below where a line ends, and bars of blocks.
//!
//! Invariant: no line is wider than the paper, but for a table whose names leave no room; bold letters only where they are
//! wanted, and nothing else that a terminal obeys, whatever is shown. Charts are left out.
//! Not here: what is said (`part`, and whoever reports).

use std::io::IsTerminal;
use std::ops::Range;

use super::content::{Bars, Block, Cell, Section, Table};
use crate::text::{WIDTH, add, folded, is_coloured, printable};

/// Before everything but titles.
const INDENT: usize = 2;
/// A name is never cut to less.
const LEAST_NAME: usize = 8;

/// What is written on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Paper {
    pub(crate) width: usize,
    pub(crate) is_bold: bool,
}

impl Paper {
    /// As this stream is: as wide as its terminal, and bold unless `NO_COLOR` is set.
    pub(crate) fn of(out: &impl IsTerminal) -> Self {
        let columns = terminal_size::terminal_size().filter(|_| out.is_terminal());
        Self {
            width: columns.map_or(WIDTH, |(width, _)| usize::from(width.0).clamp(60, 140)),
            is_bold: is_coloured(out),
        }
    }

    fn bold(self, text: &str) -> String {
        if self.is_bold && !text.is_empty() {
            format!("\x1b[1m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }
}

/// All of it; an empty line stands before each section.
pub(crate) fn text(sections: &[Section], paper: Paper) -> String {
    let mut out = String::new();
    for section in sections {
        let title = folded(paper.width, &section.title, INDENT);
        add!(out, "\n{}", paper.bold(&title));
        for block in &section.blocks {
            match block {
                Block::Text(says) | Block::Absent(says) => paragraph(&mut out, says, paper),
                Block::Code(code) => code
                    .lines()
                    .for_each(|line| paragraph(&mut out, line, paper)),
                Block::Table(table) => write_table(&mut out, table, paper),
                Block::Bars(bars) => write_bars(&mut out, bars, paper),
                Block::Chart(_) | Block::Folded { .. } | Block::Link { .. } => {}
            }
        }
    }
    out
}

/// A table alone, of lines of which the first is its head, for a page of other lines.
pub(crate) fn table(lines: Vec<Vec<String>>) -> String {
    let mut out = String::new();
    let paper = Paper {
        width: WIDTH,
        is_bold: false,
    };
    write_table(&mut out, &Table::of_lines("", lines), paper);
    out
}

fn paragraph(out: &mut String, says: &str, paper: Paper) {
    let line = format!("{:INDENT$}{says}", "");
    add!(out, "{}", folded(paper.width, &line, 2 * INDENT));
}

fn write_table(out: &mut String, table: &Table, paper: Paper) {
    if !table.caption.is_empty() {
        paragraph(out, &table.caption, paper);
    }
    let head: Vec<Cell> = table
        .columns
        .iter()
        .map(|c| c.title.as_str().into())
        .collect();
    let all = || std::iter::once(&head).chain(&table.rows);
    let is_whole = |row: &Vec<Cell>| row.len() == head.len();
    let width = |at: usize| {
        let cells = all().filter(|row| is_whole(row) || at == 0);
        let cells = cells.filter_map(|row| row.get(at));
        cells
            .map(|cell| cell.text.chars().count())
            .max()
            .unwrap_or(0)
    };
    let mut widths: Vec<usize> = (0..head.len()).map(width).collect();
    let widest = widths.iter().skip(1).max().map_or(0, |width| width + 2);
    if let Some(name) = widths.first_mut() {
        *name = (*name)
            .min(paper.width.saturating_sub(INDENT + widest))
            .max(LEAST_NAME);
    }
    for (part, columns) in parts(&widths, paper.width).into_iter().enumerate() {
        for (index, row) in all().enumerate() {
            if index == 0 && row.iter().all(|cell| cell.text.is_empty()) {
                continue;
            }
            let (Some(name), first) = (row.first(), widths[0]) else {
                continue;
            };
            let mut line = format!("{:INDENT$}{:<first$}", "", shortened(&name.text, first));
            if is_whole(row) {
                for at in columns.clone() {
                    let (cell, width) = (printable(&row[at].text), widths[at]);
                    line.push_str(&if table.columns[at].is_figure {
                        format!("  {cell:>width$}")
                    } else {
                        format!("  {cell:<width$}")
                    });
                }
            } else if part > 0 {
                continue;
            } else if let Some(rest) = row.get(1) {
                line = folded(paper.width, &format!("{line}  {}", rest.text), 2 * INDENT);
            }
            let line = line.trim_end();
            add!(
                out,
                "{}",
                if index == 0 {
                    paper.bold(line)
                } else {
                    line.to_owned()
                }
            );
        }
    }
}

/// Columns beside the first that fit in one line, from the first to the last.
fn parts(widths: &[usize], room: usize) -> Vec<Range<usize>> {
    let name = INDENT + widths.first().copied().unwrap_or(0);
    let mut parts: Vec<Range<usize>> = Vec::new();
    let mut used = name;
    for (at, width) in widths.iter().enumerate().skip(1) {
        used += 2 + width;
        match parts.last_mut() {
            Some(part) if used <= room => part.end = at + 1,
            _ => {
                parts.push(at..at + 1);
                used = name + 2 + width;
            }
        }
    }
    parts
}

fn write_bars(out: &mut String, bars: &Bars, paper: Paper) {
    if !bars.caption.is_empty() {
        paragraph(out, &bars.caption, paper);
    }
    let widest = |of: fn(&super::content::Bar) -> &str| {
        bars.rows
            .iter()
            .map(|bar| of(bar).chars().count())
            .max()
            .unwrap_or(0)
    };
    let (names, values) = (widest(|bar| &bar.name), widest(|bar| &bar.says));
    let most = bars
        .rows
        .iter()
        .map(|bar| bar.value.median)
        .fold(0.0, f64::max)
        .max(f64::MIN_POSITIVE);
    let room = paper
        .width
        .saturating_sub(INDENT + names + values + 4)
        .max(10);
    for bar in &bars.rows {
        // Eighths of a column, so that small differences show.
        let eighths = (bar.value.median / most * room as f64 * 8.0).round() as usize;
        let eighths = eighths.max(usize::from(bar.value.median > 0.0));
        let mut drawn = "█".repeat(eighths / 8);
        drawn.extend(['▏', '▎', '▍', '▌', '▋', '▊', '▉'].get((eighths % 8).wrapping_sub(1)));
        let (name, says) = (printable(&bar.name), printable(&bar.says));
        let line = format!("{:INDENT$}{name:>names$}  {says:>values$}  {drawn}", "");
        add!(out, "{}", line.trim_end());
    }
}

fn shortened(text: &str, width: usize) -> String {
    let text = printable(text);
    if text.chars().count() <= width {
        return text;
    }
    text.chars()
        .take(width.saturating_sub(1))
        .chain(['…'])
        .collect()
}
