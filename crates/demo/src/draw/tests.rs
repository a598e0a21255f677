//! Pictures beside this file; `UPDATE=1` writes them anew.

use std::path::Path;
use std::time::Duration;

use ratatui_core::backend::TestBackend;
use ratatui_core::terminal::Terminal;

use super::draw;
use crate::view::tests::{call, refused, row, tokens};
use crate::view::{Ending, Event, Level, View};

fn level(name: &str, what: &str, left: f64, of: f64, refills: &str) -> Level {
    Level {
        name: name.to_owned(),
        what: what.to_owned(),
        left,
        of,
        refills: refills.to_owned(),
    }
}

fn begun(plan: Option<(&'static str, u32)>) -> View {
    let mut view = View::of(plan);
    view.data = "127.0.0.1:1975".to_owned();
    view.apply(Event::Levels(vec![
        level(
            "toolbench-agent",
            "tokens",
            51_234.0,
            60_000.0,
            "full in 5 s",
        ),
        level("swe-rebench-ide", "requests", 0.0, 2.0, "full in 54 s"),
        level(
            "swe-rebench-ide",
            "tokens",
            99_512.0,
            100_000.0,
            "full in 1 s",
        ),
        level("terminal-bench-ci", "requests", 1.0, 2.0, "full in 24 s"),
        level("terminal-bench-ci", "tokens", 100_000.0, 100_000.0, ""),
        level("everybody", "USD", 0.0372, 0.05, "each day"),
    ]));
    view
}

/// Sixty calls of everybody, some of which wait for their row.
fn busy(plan: Option<(&'static str, u32)>) -> View {
    let mut view = begun(plan);
    for n in 0..60 {
        let id = n.to_string();
        let ended = match n % 10 {
            3 => refused("swe-rebench-ide", 429, "over its limit of requests"),
            6 => refused("", 404, "workload_not_registered"),
            7 => call(&id, "swe-rebench-ide", Ending::Whole),
            8 => call(&id, "toolbench-agent", Ending::Left),
            _ => call(&id, "toolbench-agent", Ending::Streamed),
        };
        let (who, is_refused) = (ended.who.clone(), ended.ending == Ending::Refused);
        view.apply(Event::Ended(ended));
        if !is_refused && n < 58 {
            let mut row = row(&id, &who);
            if n % 4 > 0 {
                row.gate = Some(tokens(412, 61));
            }
            view.apply(Event::Settled(row));
        }
    }
    view.apply(Event::Open(3));
    view.apply(Event::Now(Duration::from_millis(75_400), 63));
    view
}

fn drawn(view: &View, width: u16, height: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a terminal");
    let drawn = terminal.draw(|frame| draw(view, frame.buffer_mut()));
    drawn.expect("a picture");
    let buffer = terminal.backend().buffer();
    let rows = buffer.content().chunks(usize::from(width.max(1)));
    let line = |row: &[ratatui_core::buffer::Cell]| -> String {
        let cells = row.iter().map(ratatui_core::buffer::Cell::symbol);
        cells.collect::<String>().trim_end().to_owned() + "\n"
    };
    rows.map(line).collect()
}

fn check(name: &str, picture: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("src/draw")
        .join(name);
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, picture).expect("is written");
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        kept == picture,
        "{name} is another (UPDATE=1 writes it):\n{picture}"
    );
}

#[test]
fn the_picture_at_80_columns() {
    check("waiting_80.txt", &drawn(&begun(None), 80, 24));
    check("busy_80.txt", &drawn(&busy(None), 80, 24));
    check("driven_80.txt", &drawn(&busy(Some(("mixed", 80))), 80, 24));
}

#[test]
fn the_picture_at_200_columns() {
    check("waiting_200.txt", &drawn(&begun(None), 200, 50));
    check("busy_200.txt", &drawn(&busy(None), 200, 50));
}

#[test]
fn as_many_calls_to_copy_stay_as_have_room_and_always_one() {
    let calls = |view: &View, width, height| drawn(view, width, height).matches("curl -i").count();
    assert_eq!(calls(&begun(None), 80, 24), 3);
    let mut four = begun(None);
    for n in 0..4 {
        four.apply(Event::Ended(call(
            &n.to_string(),
            "toolbench-agent",
            Ending::Whole,
        )));
    }
    assert_eq!(calls(&four, 80, 24), 3);
    four.apply(Event::Ended(refused("", 404, "workload_not_registered")));
    assert_eq!(calls(&four, 80, 24), 2);
    let picture = drawn(&four, 80, 24);
    assert!(
        picture.contains("x-workload-app: swe-rebench-ide") && picture.contains("404"),
        "{picture}"
    );
    assert_eq!(calls(&busy(None), 80, 24), 1);
    assert_eq!(calls(&busy(None), 80, 80), 3);
    assert_eq!(calls(&busy(None), 200, 50), 3);
}

#[test]
fn a_wider_terminal_shows_no_less_of_a_call() {
    let view = busy(None);
    for width in 80..220 {
        let picture = drawn(&view, width, 50);
        assert!(
            picture.contains("412/61     410/60 0.000276"),
            "{width}\n{picture}"
        );
        assert_eq!(
            picture.contains("gemini-2.5-flash      412/61"),
            width >= 119,
            "{width}"
        );
    }
}

/// A caller's own words reach the terminal as words.
#[test]
fn no_name_and_no_line_of_the_log_draws_elsewhere() {
    let mut view = begun(None);
    let mut odd = call("a", "w\x1b[2J\r\n", Ending::Failed);
    odd.model = "m\x1b]0;title\x07".to_owned();
    view.apply(Event::Ended(odd));
    let line = "2026-11-25T22:40:01.1Z \x1b[33m WARN\x1b[0m tollgate: odd\x07 thing\n";
    view.apply(Event::Noted(line.to_owned()));
    let picture = drawn(&view, 200, 50);
    assert!(
        !picture.contains('\x1b') && !picture.contains('\x07'),
        "{picture}"
    );
    assert!(picture.contains("WARN tollgate: odd thing"), "{picture}");
}

#[test]
fn a_picture_of_any_size_is_drawn() {
    let view = busy(None);
    for width in [0, 1, 2, 20, 79, 198, 199, 400] {
        for height in [0, 1, 2, 3, 10, 23, 36, 100] {
            drawn(&view, width, height);
        }
    }
}
