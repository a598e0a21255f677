//! Moments in whatever order they come.

use super::super::json_writer::JsonWriter;
use super::{DAY_MS, Timestamp};

fn text(timestamp: &mut Timestamp, ms: u64) -> String {
    let mut room = vec![0; 64];
    let left = timestamp
        .write(JsonWriter::new(&mut room), ms)
        .left()
        .unwrap();
    room.truncate(64 - left);
    String::from_utf8(room).unwrap()
}

#[test]
fn timestamps_have_milliseconds() {
    let mut timestamp = Timestamp::default();
    assert_eq!(text(&mut timestamp, 0), "1970-01-01T00:00:00.000Z");
    assert_eq!(
        text(&mut timestamp, 951_782_399_999),
        "2000-02-28T23:59:59.999Z"
    );
    assert_eq!(
        text(&mut timestamp, 951_782_400_007),
        "2000-02-29T00:00:00.007Z"
    );
}

#[test]
fn a_kept_date_never_shows_on_another_day() {
    let mut kept = Timestamp::default();
    let midnight = 951_782_400_000;
    for ms in [
        midnight - 1,
        midnight,
        midnight - 1,
        midnight + DAY_MS,
        1,
        0,
    ] {
        assert_eq!(text(&mut kept, ms), text(&mut Timestamp::default(), ms));
    }
}

#[test]
fn a_clock_far_off_is_still_a_timestamp() {
    let ms = (253_402_300_800 + 1) * 1000;
    assert_eq!(
        text(&mut Timestamp::default(), ms),
        "10000-01-01T00:00:01.000Z"
    );
    assert!(text(&mut Timestamp::default(), u64::MAX).ends_with('Z'));
}
