//! Calls to copy: each is three lines that a shell takes as they stand.
//!
//! Not here: the longer introduction (`screen`).

use ratatui_core::text::{Line, Span};

use super::{PLAIN, rule};
use crate::screen::{CALLERS, Caller};
use crate::view::View;

/// Lines of one.
const EACH: usize = 3;

/// As many as have room below a title, and always one: first those whose callers have called least.
pub(super) fn lines(view: &View, width: u16, room: usize) -> Vec<Line<'static>> {
    let made = |caller: &&Caller| {
        view.callers
            .get(caller.counted_as)
            .map_or(0, |sums| sums.calls)
    };
    let mut shown: Vec<&Caller> = CALLERS.iter().collect();
    shown.sort_by_key(made);
    shown.truncate((room.saturating_sub(1) / EACH).max(1));
    let mut lines = vec![rule("from another terminal", width)];
    lines.extend(shown.into_iter().flat_map(|caller| call(view, caller)));
    lines
}

fn call(view: &View, caller: &Caller) -> [Line<'static>; EACH] {
    let Caller { name, model, .. } = caller;
    let line = |text: String| Line::from(Span::styled(text, PLAIN));
    [
        line(format!("curl -i {}/v1/chat/completions \\", view.data)),
        line(format!(
            " -H 'content-type: application/json' -H 'x-workload-app: {name}' \\"
        )),
        line(format!(
            " -d '{{\"model\":\"{model}\",\"messages\":[{{\"role\":\"user\",\"content\":\"Hi\"}}]}}'"
        )),
    ]
}
