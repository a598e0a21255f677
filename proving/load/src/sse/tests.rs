//! Events whole and cut anywhere.

use super::EventCounter;

fn count<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> u64 {
    let mut counter = EventCounter::default();
    pieces.into_iter().map(|piece| counter.feed(piece)).sum()
}

#[test]
fn events_are_counted_at_their_boundaries_wherever_the_bytes_are_cut() {
    for stream in [
        "data: a\n\nevent: x\ndata: b\n\ndata: [DONE]\n\n",
        "data: a\r\n\r\nevent: x\r\ndata: b\r\n\r\ndata: [DONE]\r\n\r\n",
    ] {
        let bytes = stream.as_bytes();
        assert_eq!(count([bytes]), 3);
        assert_eq!(count(bytes.chunks(1)), 3);
        for at in 0..bytes.len() {
            assert_eq!(count([&bytes[..at], &bytes[at..]]), 3, "cut at {at}");
        }
    }
}

#[test]
fn an_event_without_its_empty_line_is_not_counted() {
    assert_eq!(count([b"data: a\n\ndata: b\n".as_slice()]), 1);
    assert_eq!(count([b"\n\n\n".as_slice()]), 0);
}
