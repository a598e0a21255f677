//! Calls to copy: each is three lines that a shell takes as they stand.
//!
//! Not here: the longer introduction (`screen`).

use ratatui_core::text::{Line, Span};

use super::super::screen::{CALLERS, Caller};
use super::super::view::View;
use super::{PLAIN, rule};

/// All of them, or the one whose caller has called least.
pub(super) fn lines(view: &View, width: u16, shows_all: bool) -> Vec<Line<'static>> {
    let mut lines = vec![rule("from another terminal", width)];
    let calls = |caller: &Caller| {
        view.callers
            .get(caller.counted_as)
            .map_or(0, |sums| sums.calls)
    };
    let next = CALLERS.iter().min_by_key(|caller| calls(caller));
    if shows_all {
        lines.extend(CALLERS.iter().flat_map(|caller| call(view, caller)));
    } else {
        lines.extend(next.into_iter().flat_map(|caller| call(view, caller)));
    }
    lines
}

fn call(view: &View, caller: &Caller) -> [Line<'static>; 3] {
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
