//! A table with a title and notes, as text of a terminal and as HTML.
//!
//! Not here: what stands in it (`table`).

use std::fmt::Write;

use crate::plot::escape;
use crate::race::page::STYLE;
use crate::text::wrapped;

/// A table.
pub(in crate::oauth_rbac) struct Grid {
    /// Empty where it goes on from the one before.
    pub(super) title: String,
    pub(super) head: Vec<&'static str>,
    pub(super) rows: Vec<Vec<String>>,
    pub(super) problem: Option<String>,
    pub(super) notes: Vec<String>,
}

impl Grid {
    pub(super) fn new(title: String, head: &[&'static str], rows: Vec<Vec<String>>) -> Self {
        Self {
            title,
            head: head.to_vec(),
            rows,
            problem: None,
            notes: Vec::new(),
        }
    }
}

/// All of them, for a terminal.
pub(in crate::oauth_rbac) fn text(preface: &[String], grids: &[Grid], bold: bool) -> String {
    let (on, off) = if bold {
        ("\x1b[1m", "\x1b[0m")
    } else {
        ("", "")
    };
    let mut out = String::new();
    for grid in grids {
        if !grid.title.is_empty() {
            let _ = writeln!(out, "\n{on}{}{off}", wrapped(&grid.title, 2));
        }
        if let Some(problem) = &grid.problem {
            let _ = writeln!(out, "{}", wrapped(&format!("  problem: {problem}"), 4));
        }
        if !grid.rows.is_empty() {
            columns(&mut out, grid);
        }
        for note in &grid.notes {
            let _ = writeln!(out, "{}", wrapped(&format!("  {note}"), 4));
        }
    }
    out.push('\n');
    for line in preface {
        let _ = writeln!(out, "{}", wrapped(line, 0));
    }
    out
}

fn columns(out: &mut String, grid: &Grid) {
    let width = |at: usize| {
        let cells = grid.rows.iter().filter_map(|row| row.get(at));
        let widest = cells.map(|cell| cell.chars().count()).max().unwrap_or(0);
        widest.max(grid.head.get(at).map_or(0, |head| head.chars().count()))
    };
    let widths: Vec<usize> = (0..grid.head.len()).map(width).collect();
    let head: Vec<String> = grid.head.iter().map(|&head| head.to_owned()).collect();
    for row in std::iter::once(&head).chain(&grid.rows) {
        let mut line = String::from(" ");
        for (at, (cell, &width)) in row.iter().zip(&widths).enumerate() {
            let _ = if at == 0 {
                write!(line, " {cell:<width$}")
            } else {
                write!(line, "  {cell:>width$}")
            };
        }
        let _ = writeln!(out, "{}", line.trim_end());
    }
}

/// All of them, as one page that asks nobody for anything.
pub(in crate::oauth_rbac) fn page(preface: &[String], grids: &[Grid]) -> String {
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>OAuth and RBAC</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<h1>OAuth and RBAC</h1>\n"
    );
    for line in preface {
        let _ = writeln!(out, "<p>{}</p>", escape(line));
    }
    for grid in grids {
        if !grid.title.is_empty() {
            let _ = writeln!(out, "<h2>{}</h2>", escape(&grid.title));
        }
        if let Some(problem) = &grid.problem {
            let _ = writeln!(out, "<p class=\"problem\">{}</p>", escape(problem));
        }
        if !grid.rows.is_empty() {
            out.push_str("<div class=\"wide\"><table>\n");
            let cells = |tag: &str, cells: &[String]| -> String {
                cells
                    .iter()
                    .map(|cell| format!("<{tag}>{}</{tag}>", escape(cell)))
                    .collect()
            };
            let head: Vec<String> = grid.head.iter().map(|&head| head.to_owned()).collect();
            let _ = writeln!(out, "<tr>{}</tr>", cells("th", &head));
            for row in &grid.rows {
                let _ = writeln!(out, "<tr>{}</tr>", cells("td", row));
            }
            out.push_str("</table></div>\n");
        }
        for note in &grid.notes {
            let _ = writeln!(out, "<pre>{}</pre>", escape(note));
        }
    }
    out.push_str("</body>\n</html>\n");
    out
}
