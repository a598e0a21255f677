//! Records and rows, whichever comes first.

use std::time::Duration;

use super::{CALLS_MAX, Call, Ending, Event, Settled, Tokens, View};

pub(crate) fn call(id: &str, who: &str, ending: Ending) -> Call {
    Call {
        id: id.to_owned(),
        at: "22:40:01".to_owned(),
        who: who.to_owned(),
        to: "frontier".to_owned(),
        model: "gemini-2.5-flash".to_owned(),
        status: 200,
        ending,
        why: String::new(),
        first_byte: Some(Duration::from_millis(81)),
        took: Some(Duration::from_millis(940)),
        own: Some(Duration::from_micros(42)),
        engine: Some(tokens(412, 61)),
        gate: None,
        cost_pico: None,
    }
}

pub(crate) fn refused(who: &str, status: u16, why: &str) -> Call {
    Call {
        status,
        why: why.to_owned(),
        to: String::new(),
        engine: None,
        ..call("refused", who, Ending::Refused)
    }
}

pub(crate) fn tokens(input: u64, output: u64) -> Tokens {
    Tokens { input, output }
}

pub(crate) fn row(id: &str, who: &str) -> Settled {
    Settled {
        id: id.to_owned(),
        who: who.to_owned(),
        engine: Some(tokens(412, 61)),
        gate: Some(tokens(410, 60)),
        cost_pico: Some(276_100_000),
    }
}

#[test]
fn a_call_has_its_record_and_its_row_whichever_comes_first() {
    for row_first in [false, true] {
        let mut view = View::default();
        let mut events = [
            Event::Ended(call("a", "w", Ending::Streamed)),
            Event::Settled(row("a", "w")),
        ];
        if row_first {
            events.reverse();
        }
        events.into_iter().for_each(|event| view.apply(event));
        let call = &view.calls[0];
        assert_eq!(call.gate, Some(tokens(410, 60)));
        assert_eq!(call.cost_pico, Some(276_100_000));
        let all = view.all();
        assert_eq!((all.calls, all.refused), (1, 0));
        assert_eq!((all.engine, all.gate), (tokens(412, 61), tokens(410, 60)));
        assert_eq!(view.due(false).len(), 1);
        assert_eq!(view.due(false).len(), 0, "once");
    }
}

#[test]
fn a_call_that_waits_for_its_row_holds_up_others_for_a_while() {
    let mut view = View::default();
    // Looks at which nothing waits use no patience up.
    assert!((0..100).all(|_| view.due(false).is_empty()));
    view.apply(Event::Ended(call("a", "w", Ending::Whole)));
    view.apply(Event::Ended(refused("", 404, "workload_not_registered")));
    let looks = (0..100).find(|_| !view.due(false).is_empty());
    assert!(looks.is_some_and(|n| n >= 10), "{looks:?}");
    view.apply(Event::Ended(call("b", "w", Ending::Whole)));
    assert_eq!(view.due(true).len(), 1, "nothing is waited for at the end");
}

#[test]
fn so_many_calls_are_kept_and_all_are_counted() {
    let mut view = View::default();
    for n in 0..CALLS_MAX + 10 {
        view.apply(Event::Ended(call(&n.to_string(), "w", Ending::Whole)));
        view.apply(Event::Settled(row(&n.to_string(), "w")));
        if n == 5 {
            assert_eq!(view.due(false).len(), 6);
        }
    }
    assert_eq!(view.calls.len(), CALLS_MAX);
    assert_eq!(view.all().calls, CALLS_MAX as u64 + 10);
    // Ten had to go, six of which were taken.
    assert_eq!(view.lost(), 4);
    assert_eq!(view.due(false).len(), CALLS_MAX);
}
