//! A campaign's summary on a terminal: the verdict, the figures, the objectives, where the report lies.
//!
//! Invariant: no line is longer than a terminal of eighty columns, and nothing in it is obeyed by one.
//! Not here: what is told (`summary`).

use std::path::Path;

use super::clip::clipped;
use super::figure::{maybe, plain};
use super::summary::Summary;
use crate::report::document::Document;
use crate::text::{WIDTH, add, folded};

/// Room for the names of figures.
const NAMES: usize = 18;

pub(super) fn page(document: &Document, report: &Path, bold: bool) -> String {
    let summary = Summary::of(document);
    let shown = |text: &str| clipped(text).into_owned();
    let (on, off) = if bold {
        ("\u{1b}[1m", "\u{1b}[0m")
    } else {
        ("", "")
    };
    let mut out = String::new();
    let word = document.verdict.word();
    add!(out, "{on}{}{off}  {word}", summary.word);
    add!(out, "{}", folded(WIDTH, &shown(summary.sentence), 0));
    if let Some(says) = summary.simulated {
        add!(out, "{on}{}{off}", folded(WIDTH, says, 0));
    }
    add!(out);
    for figure in &summary.figures {
        let says = format!(
            "  {:<NAMES$}{}  ({})",
            figure.name,
            shown(&figure.value),
            shown(&figure.note)
        );
        add!(out, "{}", folded(WIDTH, &says, NAMES + 2));
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
        add!(out, "{}", folded(WIDTH, &says, 4));
    }
    add!(out);
    let at = format!("report: {}", shown(&report.display().to_string()));
    add!(out, "{}", folded(WIDTH, &at, 8));
    out
}
