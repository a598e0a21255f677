//! A campaign's summary on a terminal: the verdict, the figures, the objectives, where the report lies.
//!
//! Invariant: no line is longer than a terminal of eighty columns, and nothing in it is obeyed by one.
//! Not here: what is told (`summary`).

use std::path::Path;

use super::clip::clipped;
use super::figure::{maybe, plain};
use super::summary::Summary;
use crate::report::document::Document;
use crate::text::{add, printable, wrapped};

/// Room for the names of figures.
const NAMES: usize = 18;

pub(super) fn page(document: &Document, report: &Path, bold: bool) -> String {
    let summary = Summary::of(document);
    let shown = |text: &str| printable(&clipped(text));
    let (on, off) = if bold {
        ("\u{1b}[1m", "\u{1b}[0m")
    } else {
        ("", "")
    };
    let mut out = String::new();
    add!(
        out,
        "{on}{}{off}  {}",
        summary.word,
        document.verdict.word()
    );
    add!(out, "{}", line(&shown(summary.sentence), 0));
    if let Some(says) = summary.simulated {
        add!(out, "{on}{}{off}", line(says, 0));
    }
    add!(out);
    for figure in &summary.figures {
        let says = format!(
            "  {:<NAMES$}{}  ({})",
            figure.name,
            shown(&figure.value),
            shown(&figure.note)
        );
        add!(out, "{}", line(&says, NAMES + 2));
    }
    if !document.objectives.is_empty() {
        add!(out);
    }
    for objective in &document.objectives {
        let mark = if objective.kept { '✓' } else { '✗' };
        let says = format!(
            "  {mark} {}: {} (limit {})",
            shown(&objective.name),
            maybe(objective.value, plain),
            plain(objective.limit)
        );
        add!(out, "{}", line(&says, 4));
    }
    add!(out);
    add!(
        out,
        "{}",
        line(
            &format!("report: {}", shown(&report.display().to_string())),
            8
        )
    );
    out
}

/// A text of lines that fit, words that do not fit among them broken.
fn line(text: &str, indent: usize) -> String {
    let room = crate::text::WIDTH - indent - 2;
    let mut words = String::new();
    let mut length = 0;
    for c in text.chars() {
        length = if c == ' ' { 0 } else { length + 1 };
        if length > room {
            words.push(' ');
            length = 1;
        }
        words.push(c);
    }
    wrapped(&words, indent)
}
