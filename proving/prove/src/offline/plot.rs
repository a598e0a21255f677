//! Running and waiting requests over time, recorded beside simulated.
//!
//! Invariant: both panels share the time axis; a series that is missing is left out.
//! Not here: files.

use std::fmt::Write;

use simulator::trace::Sample;

const WIDTH: f64 = 900.0;
const PANEL: f64 = 220.0;
const LEFT: f64 = 50.0;
const GAP: f64 = 40.0;

/// What of a sample is drawn.
type Value = fn(&Sample) -> f64;

/// An SVG with two panels.
pub(super) fn draw(recorded: &[Sample], simulated: &[Sample]) -> String {
    let last = |series: &[Sample]| series.last().map_or(1.0, |sample| sample.at_s);
    let seconds = last(recorded).max(last(simulated));
    let height = 2.0 * (PANEL + GAP) + 10.0;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {:.0} {height:.0}\" font-family=\"sans-serif\" \
         font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
        WIDTH + LEFT + 20.0
    );
    let panels = [
        ("running", (|s| s.running) as Value),
        ("waiting", |s| s.waiting),
    ];
    for (i, (name, value)) in panels.into_iter().enumerate() {
        let top = 30.0 + i as f64 * (PANEL + GAP);
        let most = recorded
            .iter()
            .chain(simulated)
            .map(value)
            .fold(1.0, f64::max);
        let _ = writeln!(
            svg,
            "<text x=\"{LEFT}\" y=\"{:.0}\">{name} requests: <tspan fill=\"#444\">recorded</tspan>, \
             <tspan fill=\"#d33\">simulated</tspan></text>\n\
             <path d=\"M{LEFT} {top:.0} V{bottom:.0} H{:.0}\" fill=\"none\" stroke=\"#999\"/>\n\
             <text x=\"{:.0}\" y=\"{:.0}\" text-anchor=\"end\">{most:.0}</text>\n\
             <text x=\"{:.0}\" y=\"{:.0}\" text-anchor=\"end\">{seconds:.0} s</text>",
            top - 8.0,
            LEFT + WIDTH,
            LEFT - 4.0,
            top + 10.0,
            LEFT + WIDTH,
            top + PANEL + 16.0,
            bottom = top + PANEL,
        );
        for (series, colour) in [(recorded, "#444"), (simulated, "#d33")] {
            let points: Vec<String> = series
                .iter()
                .map(|sample| {
                    let x = LEFT + sample.at_s / seconds * WIDTH;
                    let y = top + PANEL * (1.0 - value(sample) / most);
                    format!("{x:.1},{y:.1}")
                })
                .collect();
            if !points.is_empty() {
                let _ = writeln!(
                    svg,
                    "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.5\"/>",
                    points.join(" ")
                );
            }
        }
    }
    svg.push_str("</svg>\n");
    svg
}
