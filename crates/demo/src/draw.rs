//! The picture: what is known of the calls, as cells of a terminal.
//!
//! Invariant: a pure function of the view and the size; nothing is drawn outside, whatever the size. At 80 columns calls
//! stand above limits; at 199 and more there is a second column.
//! Not here: what is known (`view`), the terminal (`terminal`).

mod bar;
mod calls;
mod panel;
mod tries;

use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_core::style::{Color, Modifier, Style};
use ratatui_core::text::{Line, Span};

use super::view::{Tokens, View};
use super::words::{clipped, cost, short};

/// The second column, where there is one.
const SIDE: u16 = 79;
/// From here on there is one: what stands beside it loses nothing.
const WIDE: u16 = calls::DETAILS + 1 + SIDE;
/// Lines of the log in the picture.
const NOTES: usize = 2;

const FAINT: Style = Style::new().fg(Color::DarkGray);
const PLAIN: Style = Style::new();
const NAME: Style = Style::new().fg(Color::Cyan);
const GOOD: Style = Style::new().fg(Color::Green);
const SOME: Style = Style::new().fg(Color::Yellow);
const BAD: Style = Style::new().fg(Color::Red);
const STRONG: Style = Style::new().add_modifier(Modifier::BOLD);

/// Draws all of it.
pub(crate) fn draw(view: &View, on: &mut Buffer) {
    let all = on.area;
    if all.height < 2 {
        return;
    }
    let top = Rect { height: 1, ..all };
    let bottom = Rect {
        y: all.bottom() - 1,
        height: 1,
        ..all
    };
    let between = Rect {
        y: all.y + 1,
        height: all.height - 2,
        ..all
    };
    lines(on, top, &[header(view, all.width)]);
    lines(on, bottom, &[totals(view)]);
    if all.width >= WIDE {
        let left = Rect {
            width: all.width - SIDE - 1,
            ..between
        };
        let right = Rect {
            x: left.right() + 1,
            width: SIDE,
            ..between
        };
        calls::draw(view, on, left);
        lines(on, right, &side(view, right.width));
    } else {
        let below = below(view, between);
        let room = between.height.saturating_sub(height(&below)).max(1);
        let (first, second) = cut(between, room);
        calls::draw(view, on, first);
        lines(on, second, &below);
    }
}

/// What stands below the calls where there is one column. Of the calls to copy there are as many as those that were
/// made leave room for, and always one.
fn below(view: &View, between: Rect) -> Vec<Line<'static>> {
    let mut below = panel::levels(view, between.width);
    let notes = notes(view, between.width);
    if view.plan.is_none() {
        let made = view.calls.len() + 1;
        let taken = made + below.len() + notes.len();
        let room = usize::from(between.height).saturating_sub(taken);
        below.extend(tries::lines(view, between.width, room));
    }
    below.extend(notes);
    below
}

/// The second column.
fn side(view: &View, width: u16) -> Vec<Line<'static>> {
    let mut side = panel::levels(view, width);
    side.push(Line::default());
    side.extend(panel::callers(view, width));
    side.push(Line::default());
    side.extend(tries::lines(view, width, usize::MAX));
    side.extend(notes(view, width));
    side
}

fn header(view: &View, width: u16) -> Line<'static> {
    let left = format!(" Tollgate demo  http://{}/v1", view.data);
    let seconds = view.elapsed.as_secs();
    let mut right = format!("{}:{:02}  Ctrl-C ends ", seconds / 60, seconds % 60);
    if let Some((name, of)) = view.plan {
        right = format!("{name} {}/{of}  {right}", view.made);
    }
    let style = Style::new().fg(Color::Black).bg(Color::Cyan);
    between(left, right, width, style)
}

/// Words at both ends of a line.
fn between(left: String, right: String, width: u16, style: Style) -> Line<'static> {
    let room = usize::from(width).saturating_sub(left.chars().count());
    let right = clipped(&right, room);
    Line::from(Span::styled(format!("{left}{right:>room$}"), style))
}

fn totals(view: &View) -> Line<'static> {
    let all = view.all();
    let pair = |tokens: Tokens| format!("{}/{}", short(tokens.input), short(tokens.output));
    let agrees = all.engine == all.gate;
    let mut spans = vec![
        Span::raw(" "),
        Span::styled(all.calls.to_string(), STRONG),
        Span::styled(
            if all.calls == 1 {
                " call  "
            } else {
                " calls  "
            },
            FAINT,
        ),
        Span::styled(
            all.refused.to_string(),
            if all.refused > 0 { SOME } else { STRONG },
        ),
        Span::styled(" refused  ", FAINT),
        Span::styled(view.open.to_string(), STRONG),
        Span::styled(" open  engine ", FAINT),
        Span::styled(pair(all.engine), STRONG),
        Span::styled("  gate ", FAINT),
        Span::styled(pair(all.gate), if agrees { STRONG } else { SOME }),
        Span::styled("  ", FAINT),
        Span::styled(cost(all.cost_pico), STRONG),
        Span::styled(" USD", FAINT),
    ];
    if view.missed > 0 {
        spans.push(Span::styled(format!("  {} not shown", view.missed), SOME));
    }
    Line::from(spans)
}

fn notes(view: &View, width: u16) -> Vec<Line<'static>> {
    let last = view.notes.iter().rev().take(NOTES).rev();
    let width = usize::from(width).saturating_sub(1);
    let line = |note: &String| {
        Line::from(Span::styled(
            format!(" {}", clipped(&legible(note), width)),
            SOME,
        ))
    };
    last.map(line).collect()
}

/// A line of the log without its colours and its moment.
fn legible(note: &str) -> String {
    let mut pieces = note.trim_end().split('\x1b');
    let first = pieces.next().unwrap_or_default().to_owned();
    let rest = pieces.map(|piece| piece.split_once('m').map_or("", |(_, text)| text));
    let text: String = std::iter::once(first.as_str()).chain(rest).collect();
    let text = text.trim_start();
    let without = text.split_once("Z ").map_or(text, |(_, rest)| rest);
    without
        .chars()
        .filter(|c| !c.is_control())
        .collect::<String>()
        .trim()
        .to_owned()
}

/// A line across with a title in it.
fn rule(title: &str, width: u16) -> Line<'static> {
    let rest = usize::from(width).saturating_sub(title.chars().count() + 4);
    Line::from(vec![
        Span::styled("── ", FAINT),
        Span::styled(title.to_owned(), STRONG),
        Span::styled(format!(" {}", "─".repeat(rest)), FAINT),
    ])
}

/// Draws lines from the top of an area, as many as it has.
fn lines(on: &mut Buffer, area: Rect, lines: &[Line<'static>]) {
    for (y, line) in (area.y..area.bottom()).zip(lines) {
        on.set_line(area.x, y, line, area.width);
    }
}

fn height(lines: &[Line<'_>]) -> u16 {
    u16::try_from(lines.len()).unwrap_or(u16::MAX)
}

/// The first rows of an area, and the others.
fn cut(area: Rect, rows: u16) -> (Rect, Rect) {
    let rows = rows.min(area.height);
    let first = Rect {
        height: rows,
        ..area
    };
    let second = Rect {
        y: area.y + rows,
        height: area.height - rows,
        ..area
    };
    (first, second)
}

#[cfg(test)]
mod tests;
