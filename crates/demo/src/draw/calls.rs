//! Calls as they end, the newest below.
//!
//! Not here: sums (`panel`).

use std::time::Duration;

use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_core::style::Style;
use ratatui_core::text::{Line, Span};

use super::{BAD, FAINT, GOOD, NAME, PLAIN, SOME};
use crate::view::{Call, Ending, View};
use crate::words::{NAME_WIDTH, clipped, cost, ending, named, tokens};

/// From here on a row has the model and its times, too.
pub(super) const DETAILS: u16 = 119;

pub(super) fn draw(view: &View, on: &mut Buffer, area: Rect) {
    let is_detailed = area.width >= DETAILS;
    let room = usize::from(area.height.saturating_sub(1));
    let mut lines = vec![heading(is_detailed, area.width)];
    let last = view.calls.iter().rev().take(room).rev();
    lines.extend(last.map(|call| row(call, is_detailed)));
    if view.calls.is_empty() && room > 0 {
        let says = match view.plan {
            None => " waiting for the first call: copy one, and run it in another terminal",
            Some(_) => " waiting for the first call",
        };
        lines.push(Line::from(Span::styled(says, FAINT)));
    }
    super::lines(on, area, &lines);
}

fn heading(is_detailed: bool, width: u16) -> Line<'static> {
    let mut heads = format!(" {:<8} {:<17} {:<8} {:<11}", "time", "who", "to", "verdict");
    if is_detailed {
        heads += &format!(" {:<16}", "model");
    }
    heads += &format!(" {:>11} {:>10} {:>8}", "engine i/o", "gate i/o", "USD");
    if is_detailed {
        heads += &format!(" {:>6} {:>6} {:>7}", "first", "took", "own");
    }
    let width = usize::from(width);
    let style = FAINT.add_modifier(ratatui_core::style::Modifier::UNDERLINED);
    Line::from(Span::styled(format!("{heads:<width$}"), style))
}

fn row(call: &Call, is_detailed: bool) -> Line<'static> {
    let mut spans = vec![
        Span::styled(format!(" {:<8}", call.at), FAINT),
        Span::styled(format!(" {:<NAME_WIDTH$}", named(&call.who)), name(call)),
        Span::styled(format!(" {:<8}", clipped(&call.to, 8)), PLAIN),
    ];
    if call.ending == Ending::Refused {
        let why = format!(" {} {}", call.status, call.why);
        spans.push(Span::styled(why, SOME));
        return Line::from(spans);
    }
    let verdict = format!(" {} {:<7}", call.status, ending(call));
    spans.push(Span::styled(verdict, judged(call)));
    if is_detailed {
        spans.push(Span::styled(
            format!(" {:<16}", clipped(&call.model, 16)),
            PLAIN,
        ));
    }
    let agrees = call.gate.is_none() || call.gate == call.engine;
    spans.push(Span::styled(format!(" {:>11}", tokens(call.engine)), PLAIN));
    spans.push(Span::styled(
        format!(" {:>10}", tokens(call.gate)),
        if agrees { PLAIN } else { SOME },
    ));
    let cost = call
        .cost_pico
        .map_or_else(|| "·".to_owned(), |pico| cost(pico.into()));
    spans.push(Span::styled(format!(" {cost:>8}"), PLAIN));
    if is_detailed {
        let times = format!(
            " {:>6} {:>6} {:>7}",
            ms(call.first_byte),
            ms(call.took),
            us(call.own)
        );
        spans.push(Span::styled(times, FAINT));
    }
    Line::from(spans)
}

fn name(call: &Call) -> Style {
    if call.who.is_empty() { SOME } else { NAME }
}

fn judged(call: &Call) -> Style {
    match call.ending {
        Ending::Failed => BAD,
        Ending::Left | Ending::Refused => SOME,
        Ending::Whole | Ending::Streamed if call.status >= 400 => BAD,
        Ending::Whole | Ending::Streamed => GOOD,
    }
}

fn ms(time: Option<Duration>) -> String {
    time.map_or_else(String::new, |time| format!("{}ms", time.as_millis()))
}

fn us(time: Option<Duration>) -> String {
    time.map_or_else(String::new, |time| format!("{}us", time.as_micros()))
}
