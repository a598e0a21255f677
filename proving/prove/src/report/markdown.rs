//! A report as Markdown: the same sentences and tables; of a chart the values at a few places.
//!
//! Invariant: whatever others chose is text, and never a cell, a link or HTML.
//! Not here: what is told (`part`, `summary`).

use std::fmt::Write;

use super::chart::{Chart, Line};
use super::clip;
use super::content::{Block, Section, Table};
use super::figure::{ABSENT, plain};
use super::summary::Summary;
use crate::report::document::Document;
use crate::text::printable;

/// Rows of the table that stands for a chart.
const MOST_ROWS: usize = 24;

pub(super) fn report(document: &Document, sections: &[Section]) -> String {
    let summary = Summary::of(document);
    let mut out = format!("# {}\n\n", text(&document.scenario.title));
    if let Some(says) = summary.simulated {
        let _ = write!(out, "> **{says}**\n\n");
    }
    let _ = write!(
        out,
        "**{}** ({}, exit code {}): {}\n\n| Figure | Value | Note |\n| --- | --- | --- |\n",
        summary.word,
        text(document.verdict.word()),
        document.verdict.exit_code(),
        text(summary.sentence)
    );
    for figure in &summary.figures {
        let _ = writeln!(
            out,
            "| {} | {} | {} |",
            figure.name,
            text(&figure.value),
            text(&figure.note)
        );
    }
    all(&mut out, sections);
    out
}

/// A page without a verdict of its own.
pub(super) fn page(title: &str, sections: &[Section]) -> String {
    let mut out = format!("# {title}\n");
    all(&mut out, sections);
    out
}

fn all(out: &mut String, sections: &[Section]) {
    for section in sections {
        let _ = write!(out, "\n## {}\n", text(&section.title));
        for block in &section.blocks {
            write_block(out, block);
        }
    }
}

fn write_block(out: &mut String, block: &Block) {
    let _ = match block {
        Block::Text(says) => write!(out, "\n{}\n", text(says)),
        Block::Absent(says) => write!(out, "\n*{}*\n", text(says)),
        Block::Code(code) => write!(out, "\n{}", fenced(code)),
        Block::Folded { title, text: code } => {
            write!(out, "\n{}:\n\n{}", text(title), fenced(code))
        }
        Block::Table(table) => {
            write_table(out, table);
            Ok(())
        }
        Block::Bars(bars) => {
            let mut table = Table::new(bars.caption.clone(), &["", "#Value"]);
            for bar in &bars.rows {
                table.row([bar.name.as_str().into(), bar.says.as_str().into()]);
            }
            write_table(out, &table);
            Ok(())
        }
        Block::Link { file, says } => write!(out, "\n{}: {}\n", text(says), text(file)),
        Block::Chart(chart) => {
            write_table(out, &values(chart));
            write!(out, "\n{}\n", text(&chart.caption))
        }
    };
}

fn write_table(out: &mut String, table: &Table) {
    if !table.caption.is_empty() {
        let _ = write!(out, "\n**{}**\n", text(&table.caption));
    }
    out.push_str("\n|");
    for column in &table.columns {
        let _ = write!(out, " {} |", text(&column.title));
    }
    out.push_str("\n|");
    for column in &table.columns {
        out.push_str(if column.is_figure {
            " ---: |"
        } else {
            " --- |"
        });
    }
    out.push('\n');
    for row in &table.rows {
        out.push('|');
        for cell in row {
            let _ = write!(out, " {} |", text(&cell.text));
        }
        out.push('\n');
    }
}

/// A chart's lines at a few of their places.
fn values(chart: &Chart) -> Table {
    let mut places: Vec<f64> = chart
        .lines
        .iter()
        .flat_map(|line| &line.points)
        .map(|(x, _)| *x)
        .collect();
    places.sort_by(f64::total_cmp);
    places.dedup();
    let step = places.len().div_ceil(MOST_ROWS).max(1);
    let mut titles = vec![format!("#{}", chart.x)];
    titles.extend(chart.lines.iter().map(|line| format!("#{}", line.name)));
    let titles: Vec<&str> = titles.iter().map(String::as_str).collect();
    let mut table = Table::new(chart.title.clone(), &titles);
    for place in places.into_iter().step_by(step) {
        let mut row = vec![plain(place).into()];
        row.extend(
            chart
                .lines
                .iter()
                .map(|line| at(line, place).map_or_else(|| ABSENT.into(), |y| plain(y).into())),
        );
        table.rows.push(row);
    }
    table
}

/// The last value at or before a place.
fn at(line: &Line, place: f64) -> Option<f64> {
    let before = line.points.iter().filter(|(x, _)| *x <= place);
    let last = before.max_by(|a, b| a.0.total_cmp(&b.0))?;
    last.1
}

fn text(text: &str) -> String {
    let mut out = String::new();
    for c in printable(&clip::clipped(text)).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '\\' | '|' | '`' | '*' | '_' | '[' | ']' | '#' | '~' | '$' => {
                out.push('\\');
                out.push(c);
            }
            _ => out.push(c),
        }
    }
    out
}

/// Text between fences that it cannot close.
fn fenced(text: &str) -> String {
    let lines: Vec<String> = clip::lines(text).map(printable).collect();
    let longest = lines
        .iter()
        .map(|line| line.chars().filter(|c| *c == '`').count())
        .max();
    let fence = "`".repeat(longest.unwrap_or(0).max(2) + 1);
    format!("{fence}text\n{}\n{fence}\n", lines.join("\n"))
}
