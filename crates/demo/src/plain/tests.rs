//! Lines of calls.

use super::{heading, line};
use crate::view::tests::{call, refused, row};
use crate::view::{Ending, Event, View};

#[test]
fn a_line_has_both_witnesses_and_the_cost_or_the_reason() {
    let mut view = View::default();
    view.apply(Event::Ended(call("a", "toolbench-agent", Ending::Streamed)));
    view.apply(Event::Settled(row("a", "toolbench-agent")));
    assert_eq!(
        heading(),
        "time      who               to       verdict        engine       gate       USD"
    );
    assert_eq!(
        line(&view.calls[0]),
        "22:40:01  toolbench-agent   frontier 200 stream     412/61     410/60  0.000276"
    );
    assert_eq!(
        line(&refused("", 404, "workload_not_registered")),
        "22:40:01  (unregistered)             404 workload_not_registered"
    );
}

#[test]
fn no_line_is_longer_than_eighty_characters_or_has_control_characters() {
    let mut odd = call("a", &"w".repeat(300), Ending::Failed);
    odd.to = "t\x1b[2J".repeat(99);
    odd.engine = Some(crate::view::tests::tokens(u64::MAX, u64::MAX));
    let mut why = refused("w\r", 429, &"x".repeat(500));
    why.at = "\u{7}".to_owned();
    for call in [odd, why] {
        let line = line(&call);
        assert!(line.chars().count() <= 80, "{line}");
        assert!(!line.chars().any(char::is_control), "{line:?}");
    }
}
