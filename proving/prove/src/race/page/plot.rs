//! Plots as SVG: lines over an axis, and bars beside their names.
//!
//! Invariant: a plot without a point is no plot at all; where bars would span more than a factor of
//! thirty they are points on a logarithmic axis, for a bar's length means something only from 0.
//! Not here: colours (`style.css`), which figures are plotted (`page`).

use std::fmt::Write;

use experiment::statistics::Spread;

use crate::plot::{Room, Scale, escape, short};

#[cfg(test)]
mod tests;

const WIDTH: f64 = 560.0;
const BOTTOM: f64 = 38.0;
/// Of lines over an axis.
const ROOM: Room = Room {
    width: WIDTH,
    height: 310.0,
    left: 52.0,
    right: 20.0,
    top: 26.0,
    bottom: BOTTOM,
};
/// Room for names, and for values, beside bars.
const NAMES: f64 = 130.0;
const VALUES: f64 = 120.0;
const BAR: f64 = 20.0;
const LOG_FROM: f64 = 30.0;

pub(super) struct Lines<'a> {
    pub(super) title: &'a str,
    pub(super) x: &'a str,
    pub(super) y: &'a str,
    /// Both axes are logarithmic.
    pub(super) log: bool,
    pub(super) series: Vec<Series>,
}

pub(super) struct Series {
    pub(super) name: String,
    pub(super) colour: usize,
    pub(super) points: Vec<Point>,
}

pub(super) struct Point {
    pub(super) x: f64,
    pub(super) y: Spread,
}

pub(super) struct Bar {
    pub(super) name: String,
    pub(super) colour: usize,
    pub(super) value: Spread,
}

/// A line for each series; empty where no series has two points.
pub(super) fn lines(plot: &Lines<'_>) -> String {
    if plot.series.iter().all(|series| series.points.len() < 2) {
        return String::new();
    }
    let points = || plot.series.iter().flat_map(|series| &series.points);
    let x = Scale::over(points().map(|point| point.x), plot.log);
    let y = Scale::over(
        points().flat_map(|point| [point.y.min, point.y.max]),
        plot.log,
    );
    let at_x = |value: f64| ROOM.across(x.place(value));
    let at_y = |value: f64| ROOM.down(y.place(value));
    let mut out = open(plot.title, ROOM.width, ROOM.height);
    ROOM.rows(&mut out, &y);
    ROOM.columns(&mut out, &x, plot.x);
    let _ = writeln!(out, r#"<text x="2" y="10">{}</text>"#, escape(plot.y));
    for series in &plot.series {
        line(&mut out, series, &at_x, &at_y);
    }
    out.push_str("</svg></figure>\n");
    out
}

fn line(out: &mut String, series: &Series, at_x: &dyn Fn(f64) -> f64, at_y: &dyn Fn(f64) -> f64) {
    let _ = write!(out, r#"<g class="c{}">"#, series.colour);
    let path: Vec<String> = series
        .points
        .iter()
        .map(|point| format!("{:.1},{:.1}", at_x(point.x), at_y(point.y.median)))
        .collect();
    let _ = write!(out, r#"<polyline points="{}"/>"#, path.join(" "));
    for point in &series.points {
        let (x, y) = (at_x(point.x), at_y(point.y.median));
        let (low, high) = (at_y(point.y.min), at_y(point.y.max));
        let _ = write!(
            out,
            r#"<line class="spread" x1="{x:.1}" x2="{x:.1}" y1="{low:.1}" y2="{high:.1}"/>"#
        );
        let told = format!("{} at {}: {}", series.name, short(point.x), words(&point.y));
        let _ = write!(
            out,
            r#"<circle cx="{x:.1}" cy="{y:.1}" r="3"><title>{}</title></circle>"#,
            escape(&told)
        );
    }
    out.push_str("</g>\n");
}

/// A bar for each value; empty without values.
pub(super) fn bars(title: &str, bars: &[Bar]) -> String {
    if bars.is_empty() {
        return String::new();
    }
    let medians = bars.iter().map(|bar| bar.value.median);
    let (least, most) = medians.fold((f64::INFINITY, 0.0_f64), |(least, most), value| {
        (least.min(value), most.max(value))
    });
    let log = least > 0.0 && most / least > LOG_FROM;
    let scale = Scale::over(
        bars.iter().flat_map(|bar| [bar.value.min, bar.value.max]),
        log,
    );
    #[expect(clippy::cast_precision_loss, reason = "a handful of bars")]
    let height = bars.len() as f64 * BAR + BOTTOM;
    let at = |value: f64| NAMES + scale.place(value) * (WIDTH - NAMES - VALUES);
    let mut out = open(title, WIDTH, height);
    for tick in scale.ticks() {
        let x = at(tick);
        let _ = write!(
            out,
            r#"<line class="grid" x1="{x:.1}" x2="{x:.1}" y1="0" y2="{:.1}"/>"#,
            height - BOTTOM + 4.0
        );
        let _ = writeln!(
            out,
            r#"<text class="mid" x="{x:.1}" y="{:.1}">{}</text>"#,
            height - BOTTOM + 18.0,
            short(tick)
        );
    }
    if log {
        let _ = writeln!(
            out,
            r#"<text class="mid" x="{:.1}" y="{:.1}">logarithmic</text>"#,
            WIDTH / 2.0,
            height - 5.0
        );
    }
    let mut top = 0.0;
    for bar in bars {
        let (x, middle) = (at(bar.value.median), top + BAR / 2.0);
        let _ = write!(
            out,
            r#"<text class="end" x="{:.1}" y="{:.1}">{}</text><g class="c{}">"#,
            NAMES - 6.0,
            middle + 4.0,
            escape(&bar.name),
            bar.colour
        );
        if log {
            let _ = write!(out, r#"<circle cx="{x:.1}" cy="{middle:.1}" r="5"/>"#);
        } else {
            let _ = write!(
                out,
                r#"<rect x="{NAMES}" y="{:.1}" width="{:.1}" height="{:.1}"/>"#,
                top + 3.0,
                x - NAMES,
                BAR - 6.0
            );
        }
        let (low, high) = (at(bar.value.min), at(bar.value.max));
        let _ = write!(
            out,
            r#"<line class="spread" x1="{low:.1}" x2="{high:.1}" y1="{middle:.1}" y2="{middle:.1}"/></g>"#
        );
        let _ = writeln!(
            out,
            r#"<text x="{:.1}" y="{:.1}">{}</text>"#,
            x.max(high) + 8.0,
            middle + 4.0,
            words(&bar.value)
        );
        top += BAR;
    }
    out.push_str("</svg></figure>\n");
    out
}

fn open(title: &str, width: f64, height: f64) -> String {
    let title = escape(title);
    format!(
        "<figure><figcaption>{title}</figcaption>\n<svg viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{title}\">\n"
    )
}

/// `16.0 (15.1–17.2)`, without the brackets where there is no spread.
fn words(spread: &Spread) -> String {
    let [median, min, max] = [spread.median, spread.min, spread.max].map(short);
    if min == max {
        median
    } else {
        format!("{median} ({min}–{max})")
    }
}
