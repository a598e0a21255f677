//! A chart as SVG: lines or points over one axis, with a second axis to the right where it is needed.
//!
//! Lines differ in colour, in dashes and in the shape of their marks, so that no colour has to be told from another.
//! The values of every line stand in the drawing as text, from which `hover.js` tells all of those at one place.
//! Invariant: a gap in the data is a gap in the line.
//! Not here: colours (`style.css`), which charts there are (`part`).

use std::fmt::Write;

use self::label::{Drawn, Letters, Place};
use crate::plot::{Room, Scale, escape, short};
use crate::text::printable;

const ROOM: Room = Room {
    width: 760.0,
    height: 330.0,
    left: 62.0,
    right: 62.0,
    top: 34.0,
    bottom: 52.0,
};
/// Words that are farther from a level than this are beside it no longer.
const FAR: f64 = 30.0;
/// Marks are drawn on lines of so few points.
const MOST_MARKS: usize = 60;

/// The style sheet has so many.
const COLOURS: usize = 16;

/// What is across where a campaign's time is; it is shown in the unit that fits its length.
pub(crate) const TIME: &str = "seconds since the beginning";
/// Longer than this, a time is in the next unit, which has so many seconds.
const UNITS: [(f64, f64, &str); 2] = [
    (10_800.0, 3_600.0, "hours since the beginning"),
    (900.0, 60.0, "minutes since the beginning"),
];

/// One chart.
#[derive(Debug, Clone)]
pub(crate) struct Chart {
    /// With the figure's number where it has one.
    pub(crate) title: String,
    /// What one sees.
    pub(crate) caption: String,
    /// What is across, with its unit.
    pub(crate) x: String,
    /// What is up on the left, with its unit.
    pub(crate) left: String,
    pub(crate) right: Option<String>,
    /// Whether the axis below is logarithmic.
    pub(crate) log_x: bool,
    /// Whether the axis on the left is.
    pub(crate) log_left: bool,
    pub(crate) lines: Vec<Line>,
    pub(crate) marks: Vec<Mark>,
}

/// Values over what is across.
#[derive(Debug, Clone)]
pub(crate) struct Line {
    pub(crate) name: String,
    pub(crate) side: Side,
    pub(crate) kind: Kind,
    pub(crate) points: Vec<(f64, Option<f64>)>,
    /// What a point is called beside its value; empty, or one for each.
    pub(crate) labels: Vec<String>,
    /// What stands beside a point; empty, or one for each.
    pub(crate) names: Vec<String>,
    /// From where to where a point's value was seen; empty, or one for each.
    pub(crate) spreads: Vec<(f64, f64)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Left,
    Right,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Line,
    /// A value holds until the next.
    Steps,
    /// From 0, one bar for each value.
    Bars,
}

/// A line through the whole chart, with a word.
#[derive(Debug, Clone)]
pub(crate) enum Mark {
    Across { at: f64, says: String },
    Level { at: f64, says: String },
}

impl Chart {
    pub(crate) fn new(title: &str, x: &str, left: &str) -> Self {
        Self {
            title: title.into(),
            caption: String::new(),
            x: x.into(),
            left: left.into(),
            right: None,
            log_x: false,
            log_left: false,
            lines: Vec::new(),
            marks: Vec::new(),
        }
    }

    /// Adds a line; one without a value is left out.
    pub(crate) fn line(
        &mut self,
        name: &str,
        side: Side,
        points: impl IntoIterator<Item = (f64, Option<f64>)>,
    ) -> Option<&mut Line> {
        let finite = |value: &f64| value.is_finite();
        let points: Vec<(f64, Option<f64>)> = points
            .into_iter()
            .filter(|(x, _)| x.is_finite())
            .map(|(x, y)| (x, y.filter(finite)))
            .collect();
        if points.iter().all(|(_, y)| y.is_none()) {
            return None;
        }
        self.lines.push(Line {
            name: name.into(),
            side,
            kind: Kind::Line,
            points,
            labels: Vec::new(),
            names: Vec::new(),
            spreads: Vec::new(),
        });
        self.lines.last_mut()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// The drawing, and what its lines are called above it.
    pub(crate) fn svg(&self) -> String {
        match self.unit() {
            Some((seconds, says)) => self.in_unit(seconds, says).drawing(),
            None => self.drawing(),
        }
    }

    /// The unit that fits a time, where seconds do not.
    fn unit(&self) -> Option<(f64, &'static str)> {
        let places = self.lines.iter().flat_map(|line| &line.points);
        let most = places.map(|(x, _)| *x).fold(0.0, f64::max);
        let mut units = UNITS.iter().filter(|_| self.x == TIME);
        let (_, seconds, says) = units.find(|(from, _, _)| most >= *from)?;
        Some((*seconds, says))
    }

    fn in_unit(&self, seconds: f64, says: &str) -> Self {
        let mut chart = self.clone();
        chart.x = says.to_owned();
        let points = chart.lines.iter_mut().flat_map(|line| &mut line.points);
        points.for_each(|(x, _)| *x /= seconds);
        for mark in &mut chart.marks {
            if let Mark::Across { at, .. } = mark {
                *at /= seconds;
            }
        }
        chart
    }

    fn drawing(&self) -> String {
        let axes = Axes::of(self);
        let title = text(&self.title);
        let mut out = String::new();
        self.legend(&mut out);
        let _ = writeln!(
            out,
            r#"<svg class="chart" viewBox="0 0 {} {}" role="img" aria-label="{title}" tabindex="0" data-left="{}" data-right="{}" data-x="{}" data-from="{}" data-to="{}"{}>"#,
            ROOM.width,
            ROOM.height,
            ROOM.left,
            ROOM.width - ROOM.right,
            text(&self.x),
            axes.x.low(),
            axes.x.high(),
            if self.log_x { " data-log" } else { "" }
        );
        axes.draw(&mut out, self);
        for (index, line) in self.lines.iter().enumerate() {
            axes.line(&mut out, line, index);
        }
        let points = self.lines.iter().flat_map(|line| axes.shown(line));
        let mut drawn = Drawn::new(ROOM.width, ROOM.height, points.collect());
        axes.marks(&mut out, &self.marks, &mut drawn);
        for line in self.lines.iter().filter(|line| line.has_marks()) {
            axes.names(&mut out, line, &mut drawn);
        }
        out.push_str("</svg>\n");
        out
    }

    fn legend(&self, out: &mut String) {
        out.push_str("<ul class=\"legend\">\n");
        for (index, line) in self.lines.iter().enumerate() {
            let name = text(&line.name);
            let axis = match (line.side, &self.right) {
                (Side::Right, Some(_)) => " <span>(right axis)</span>",
                _ => "",
            };
            let _ = writeln!(
                out,
                r#"<li><svg class="swatch s{}" viewBox="0 0 34 12" aria-hidden="true"><line x1="0" x2="34" y1="6" y2="6"/>{}</svg>{name}{axis}</li>"#,
                index % COLOURS,
                shape(index, 17.0, 6.0)
            );
        }
        out.push_str("</ul>\n");
    }
}

impl Line {
    fn has_marks(&self) -> bool {
        let shown = self.points.iter().filter(|(_, y)| y.is_some());
        shown.count() <= MOST_MARKS && self.kind == Kind::Line
    }
}

/// The scales of a chart.
struct Axes {
    x: Scale,
    left: Scale,
    right: Scale,
}

impl Axes {
    fn of(chart: &Chart) -> Self {
        let values = |side: Side| {
            let lines = chart.lines.iter().filter(move |line| line.side == side);
            lines.flat_map(|line| {
                let spreads = line.spreads.iter().flat_map(|(low, high)| [*low, *high]);
                line.points.iter().filter_map(|(_, y)| *y).chain(spreads)
            })
        };
        let levels = chart.marks.iter().filter_map(|mark| match mark {
            Mark::Level { at, .. } => Some(*at),
            Mark::Across { .. } => None,
        });
        let across = chart.marks.iter().filter_map(|mark| match mark {
            Mark::Across { at, .. } => Some(*at),
            Mark::Level { .. } => None,
        });
        let places = chart.lines.iter().flat_map(|line| &line.points);
        Self {
            x: Scale::up_to(places.map(|(x, _)| *x).chain(across), chart.log_x),
            left: Scale::close(values(Side::Left).chain(levels), chart.log_left),
            right: Scale::close(values(Side::Right), false),
        }
    }

    fn draw(&self, out: &mut String, chart: &Chart) {
        ROOM.rows(out, &self.left);
        ROOM.columns(out, &self.x, &printable(&chart.x));
        let _ = writeln!(
            out,
            r#"<text class="title" x="4" y="20">{}</text>"#,
            text(&chart.left)
        );
        let Some(right) = &chart.right else { return };
        for tick in self.right.ticks() {
            let _ = writeln!(
                out,
                r#"<text x="{:.1}" y="{:.1}">{}</text>"#,
                ROOM.width - ROOM.right + 6.0,
                ROOM.down(self.right.place(tick)) + 4.0,
                short(tick)
            );
        }
        let _ = writeln!(
            out,
            r#"<text class="end title" x="{}" y="20">{}</text>"#,
            ROOM.width - 4.0,
            text(right)
        );
    }

    fn at(&self, side: Side, (x, y): (f64, f64)) -> (f64, f64) {
        let scale = match side {
            Side::Left => &self.left,
            Side::Right => &self.right,
        };
        (ROOM.across(self.x.place(x)), ROOM.down(scale.place(y)))
    }

    fn line(&self, out: &mut String, line: &Line, index: usize) {
        let _ = write!(
            out,
            r#"<g class="s{} line" data-name="{}" data-values=""#,
            index % COLOURS,
            text(&line.name)
        );
        let shown = line.points.iter().filter_map(|(x, y)| Some((*x, (*y)?)));
        for (x, y) in shown.clone() {
            let _ = write!(out, "{},{} ", digits(x, 6), digits(y, 5));
        }
        out.push_str("\">");
        match line.kind {
            Kind::Line | Kind::Steps => self.path(out, line),
            Kind::Bars => self.bars(out, line),
        }
        if line.has_marks() {
            let shown: Vec<(f64, f64)> = shown.collect();
            self.dots(out, line, index, &shown);
        }
        out.push_str("</g>\n");
    }

    /// A mark for each value.
    fn dots(&self, out: &mut String, line: &Line, index: usize, shown: &[(f64, f64)]) {
        for (at, (x, y)) in shown.iter().enumerate() {
            let (across, down) = self.at(line.side, (*x, *y));
            let told = match line.labels.get(at) {
                Some(label) => format!("{}: {label}", line.name),
                None => format!("{}: {} at {}", line.name, digits(*y, 4), digits(*x, 6)),
            };
            let _ = write!(
                out,
                "<g class=\"dot\">{}<title>{}</title></g>",
                shape(index, across, down),
                text(&told)
            );
            if let Some((low, high)) = line.spreads.get(at) {
                let [low, high] = [*low, *high].map(|y| self.at(line.side, (*x, y)).1);
                let _ = write!(
                    out,
                    r#"<line class="spread" x1="{across:.1}" x2="{across:.1}" y1="{low:.1}" y2="{high:.1}"/>"#
                );
            }
        }
    }

    /// What each point is called, where that covers no point and no other words.
    fn names(&self, out: &mut String, line: &Line, drawn: &mut Drawn) {
        for (name, (x, y)) in line.names.iter().zip(self.shown(line)) {
            let beside = [
                (-4.0, -9.0, true),
                (7.0, -9.0, false),
                (7.0, 19.0, false),
                (-4.0, 19.0, true),
            ];
            let places = beside.map(|(across, down, is_end)| Place {
                x: x + across,
                y: y + down,
                is_end,
            });
            if let Some(place) = drawn.free(name, Letters::POINT, places) {
                let class = if place.is_end { "point end" } else { "point" };
                let _ = write!(
                    out,
                    r#"<text class="{class}" x="{:.1}" y="{:.1}">{}</text>"#,
                    place.x,
                    place.y,
                    text(name)
                );
            }
        }
    }

    /// Where the values of a line are drawn.
    fn shown(&self, line: &Line) -> impl Iterator<Item = (f64, f64)> {
        let values = line.points.iter().filter_map(|(x, y)| Some((*x, (*y)?)));
        values.map(|value| self.at(line.side, value))
    }

    fn path(&self, out: &mut String, line: &Line) {
        out.push_str("<path d=\"");
        let mut is_open = false;
        let mut before = 0.0;
        for (x, y) in &line.points {
            let Some(y) = y else {
                is_open = false;
                continue;
            };
            let (across, down) = self.at(line.side, (*x, *y));
            let _ = match (is_open, line.kind) {
                (false, _) => write!(out, "M{across:.1} {down:.1}"),
                (true, Kind::Steps) => {
                    write!(out, "L{across:.1} {before:.1}L{across:.1} {down:.1}")
                }
                (true, _) => write!(out, "L{across:.1} {down:.1}"),
            };
            (is_open, before) = (true, down);
        }
        let name = text(&line.name);
        let _ = write!(out, "\"><title>{name}</title></path>");
    }

    fn bars(&self, out: &mut String, line: &Line) {
        for (x, y) in line.points.iter().filter_map(|(x, y)| Some((*x, (*y)?))) {
            let (across, down) = self.at(line.side, (x, y));
            let told = format!("{}: {} at {}", line.name, digits(y, 4), digits(x, 6));
            let _ = write!(
                out,
                r#"<rect x="{:.1}" y="{down:.1}" width="6" height="{:.1}"><title>{}</title></rect>"#,
                across - 3.0,
                ROOM.down(0.0) - down,
                text(&told)
            );
        }
    }

    fn marks(&self, out: &mut String, marks: &[Mark], drawn: &mut Drawn) {
        let level = |mark: &Mark| match mark {
            Mark::Level { at, .. } => Some(ROOM.down(self.left.place(*at))),
            Mark::Across { .. } => None,
        };
        let levels: Vec<f64> = marks.iter().filter_map(level).collect();
        for mark in marks {
            let (ends, says, places) = match mark {
                Mark::Across { at, says } => {
                    let x = ROOM.across(self.x.place(*at));
                    let ends = [x, x, ROOM.top, ROOM.height - ROOM.bottom];
                    (ends, says, beside(x))
                }
                Mark::Level { at, says } => {
                    let y = ROOM.down(self.left.place(*at));
                    let ends = [ROOM.left, ROOM.width - ROOM.right, y, y];
                    (ends, says, along(y, &levels))
                }
            };
            let [from_x, to_x, from_y, to_y] = ends;
            let _ = write!(
                out,
                r#"<line class="mark" x1="{from_x:.1}" x2="{to_x:.1}" y1="{from_y:.1}" y2="{to_y:.1}"/>"#
            );
            let Some(place) = drawn.best(says, Letters::MARK, places) else {
                continue;
            };
            // Words that stand apart from their level are led to it.
            let down = if to_y > place.y {
                place.y + 5.0
            } else {
                place.y - 16.0
            };
            let is_level = matches!(mark, Mark::Level { .. });
            if is_level && (to_y - down).abs() > FAR / 2.0 {
                let x = place.x + 3.0;
                drawn.upright(x, (down.min(to_y), down.max(to_y)));
                let _ = write!(
                    out,
                    r#"<line class="lead" x1="{x:.1}" x2="{x:.1}" y1="{down:.1}" y2="{to_y:.1}"/>"#
                );
            }
            let class = if place.is_end { "end mark" } else { "mark" };
            let _ = writeln!(
                out,
                r#"<text class="{class}" x="{:.1}" y="{:.1}">{}</text>"#,
                place.x,
                place.y,
                text(says)
            );
        }
    }
}

/// Places for the words of an upright, from the top down, on either side of it.
fn beside(x: f64) -> Vec<Place> {
    let rows = std::iter::successors(Some(ROOM.top + 14.0), |y| Some(y + 12.0));
    let rows = rows.take_while(|y| *y < ROOM.height - ROOM.bottom - 4.0);
    let both = |y| {
        [(5.0, false), (-5.0, true)].map(|(across, is_end)| Place {
            x: x + across,
            y,
            is_end,
        })
    };
    rows.flat_map(both).collect()
}

/// Places for the words of a level, from the left, above it and below; then farther from it, where no other level is near.
fn along(y: f64, levels: &[f64]) -> Vec<Place> {
    let columns = std::iter::successors(Some(ROOM.left + 6.0), |x| Some(x + 24.0));
    let columns = columns.take_while(|x| *x < ROOM.width - ROOM.right);
    let (above, below) = (y - 6.0, y + 20.0);
    let lowest = (ROOM.height - ROOM.bottom).max(above);
    let farther = std::iter::successors(Some(12.0), |by| Some(by + 12.0));
    let farther = farther.take_while(|by| *by < ROOM.height);
    let rows = std::iter::once(0.0).chain(farther);
    let rows = rows.map(|by| [above - by, below + by]);
    let is_its_own = |row: f64| {
        let near = |level: f64| (row - 6.0 - level).abs();
        levels.iter().all(|level| near(*level) >= near(y).min(FAR))
    };
    let places = rows.flat_map(|row| {
        let columns = columns.clone();
        columns.flat_map(move |x| {
            row.map(|y| Place {
                x,
                y,
                is_end: false,
            })
        })
    });
    let is_seen = |place: &Place| place.y > ROOM.top + 14.0 && place.y <= lowest;
    let places = places.filter(|place| is_seen(place) && is_its_own(place.y));
    places.collect()
}

/// The mark of a line's points: a shape of its own for each of five lines.
fn shape(index: usize, x: f64, y: f64) -> String {
    match index % 5 {
        0 => format!(r#"<circle cx="{x:.1}" cy="{y:.1}" r="3.4"/>"#),
        1 => format!(
            r#"<rect x="{:.1}" y="{:.1}" width="6.4" height="6.4"/>"#,
            x - 3.2,
            y - 3.2
        ),
        2 => format!(r#"<path d="M{x:.1} {:.1}l4 7h-8z"/>"#, y - 4.4),
        3 => format!(
            r#"<path d="M{x:.1} {:.1}l4.4 4.4l-4.4 4.4l-4.4 -4.4z"/>"#,
            y - 4.4
        ),
        _ => format!(r#"<path d="M{x:.1} {:.1}l4 -7h-8z"/>"#, y + 4.4),
    }
}

/// A number with so many digits that count, and none that do not.
fn digits(value: f64, digits: i32) -> String {
    if value == 0.0 || !value.is_finite() {
        return "0".into();
    }
    let decimals = (f64::from(digits) - 1.0 - value.abs().log10().floor()).clamp(0.0, 12.0);
    let text = format!("{value:.*}", decimals as usize);
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

fn text(text: &str) -> String {
    escape(&printable(text))
}

mod label;
#[cfg(test)]
mod tests;
