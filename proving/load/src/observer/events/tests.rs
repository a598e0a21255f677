//! Events whole and cut anywhere.

use super::{EVENT_BYTES, Events};

fn events<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<String> {
    let (mut events, mut seen) = (Events::default(), Vec::new());
    for piece in pieces {
        events.feed(piece, &mut |event: &[u8]| {
            seen.push(String::from_utf8_lossy(event).trim_end().to_owned());
        });
    }
    seen
}

#[test]
fn events_are_the_same_wherever_the_bytes_are_cut() {
    for stream in [
        "data: a\n\nevent: x\ndata: b\n\ndata: [DONE]\n\n",
        "data: a\r\n\r\nevent: x\r\ndata: b\r\n\r\ndata: [DONE]\r\n\r\n",
        "\n\n\r\ndata: a\n\n\n\nevent: x\ndata: b\n\r\n\ndata: [DONE]\n\n",
    ] {
        let bytes = stream.as_bytes();
        let whole = events([bytes]);
        let lines: Vec<Vec<&str>> = whole.iter().map(|event| event.lines().collect()).collect();
        let expected = [
            vec!["data: a"],
            vec!["event: x", "data: b"],
            vec!["data: [DONE]"],
        ];
        assert_eq!(lines, expected);
        assert_eq!(events(bytes.chunks(1)), whole);
        for at in 0..bytes.len() {
            assert_eq!(events([&bytes[..at], &bytes[at..]]), whole, "cut at {at}");
        }
    }
}

#[test]
fn an_event_without_its_empty_line_has_not_ended() {
    assert_eq!(events([b"data: a\n\ndata: b\n".as_slice()]).len(), 1);
    assert_eq!(events([b"\n\n\n".as_slice()]).len(), 0);
}

#[test]
fn of_an_endless_event_no_more_than_the_bound_is_kept_and_the_next_one_is_seen() {
    let piece = [b'x'; 4096];
    let mut seen = Vec::new();
    let mut events = Events::default();
    for _ in 0..1000 {
        events.feed(&piece, &mut |_: &[u8]| unreachable!("it has not ended"));
        assert!(events.carry.len() <= EVENT_BYTES);
    }
    events.feed(b"\n\ndata: b\n\n", &mut |event: &[u8]| {
        seen.push(event.len())
    });
    assert_eq!(seen, [EVENT_BYTES, b"data: b\n".len()]);
    events.feed(b"data: cut", &mut |_: &[u8]| {});
    events.reset();
    events.feed(b"data: b\n\n", &mut |event: &[u8]| {
        assert_eq!(event, b"data: b\n")
    });
}
