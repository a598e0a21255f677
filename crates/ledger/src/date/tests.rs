//! Dates against known ones, and there and back.

use super::{DAY_MS, day, month_of, parse, timestamp};

#[test]
fn known_moments() {
    assert_eq!(timestamp(0), "1970-01-01T00:00:00Z");
    assert_eq!(timestamp(951_782_400_000), "2000-02-29T00:00:00Z");
    assert_eq!(timestamp(1_700_000_000_000), "2023-11-14T22:13:20Z");
    assert_eq!(
        parse("2026-12"),
        parse("2026-12-01")
            .zip(parse("2026-12-31"))
            .map(|(a, b)| (a.0, b.1))
    );
    assert_eq!(
        month_of(1_700_000_000_000),
        parse("2023-11").expect("a month")
    );
}

#[test]
fn every_day_of_two_centuries_comes_back() {
    for n in 0..80_000 {
        let ms = n * DAY_MS;
        assert_eq!(parse(&day(ms)), Some((ms, ms + DAY_MS)));
    }
}

#[test]
fn what_is_no_date_is_none() {
    for text in [
        "",
        "2026",
        "2026-13",
        "2026-02-29",
        "2026-1-1",
        "2026-01-00",
        "1969-01-01",
        "2026-01-01x",
    ] {
        assert_eq!(parse(text), None, "{text}");
    }
}
