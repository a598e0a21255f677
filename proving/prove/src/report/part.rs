//! The parts of a report, in the order in which they are read: what a director needs first, what is needed to do it
//! again last.
//!
//! Invariant: a part whose data are absent says so in a line.
//! Not here: how a part looks (`html`, `markdown`), the verdict above all (`summary`).

mod appendix;
mod course;
mod money;
mod overhead;
mod setting;
mod soak;

use super::chart::{Chart, Mark, Side};
use super::content::Section;
use crate::report::document::Document;

pub(super) use course::ttft_against_users;

/// All of them.
pub(super) fn parts(document: &Document) -> Vec<Section> {
    vec![
        setting::under_test(document),
        setting::policies(document),
        setting::corpus(document),
        setting::arrivals(document),
        course::phases(document),
        course::decisions(document),
        course::saturation(document),
        soak::latency(document),
        soak::profiles(document),
        soak::ttft(document),
        soak::hardware(document),
        overhead::overhead(document),
        money::tokens(document),
        money::errors(document),
        money::objectives(document),
        money::published(document),
        appendix::generator(document),
        appendix::reproduce(document),
    ]
}

/// Adds a series of the document to a chart, its values times `factor`.
pub(super) fn left(chart: &mut Chart, document: &Document, (key, name): (&str, &str), factor: f64) {
    add_series(chart, document, (key, name, Side::Left), factor);
}

/// As [`left`], on the axis to the right.
fn right(chart: &mut Chart, document: &Document, (key, name): (&str, &str), factor: f64) {
    add_series(chart, document, (key, name, Side::Right), factor);
}

fn add_series(
    chart: &mut Chart,
    document: &Document,
    (key, name, side): (&str, &str, Side),
    factor: f64,
) {
    if let Some(series) = document.series.get(key) {
        let points = series.points.iter();
        let scaled = points.map(|(x, y)| (*x, y.map(|y| y * factor)));
        let _ = chart.line(name, side, scaled);
    }
}

/// Marks where each phase began.
fn add_phases(chart: &mut Chart, document: &Document) {
    for phase in &document.phases {
        chart.marks.push(Mark::Across {
            at: phase.from_s,
            says: phase.name.clone(),
        });
    }
}

/// Where a series comes from, as a sentence.
fn source(document: &Document, key: &str) -> String {
    let series = document.series.get(key);
    series.map_or_else(String::new, |series| format!(" {key}: {}.", series.source))
}
