//! Dates of the calendar, there and back.

use super::{date, noon_of};

#[test]
fn dates_are_those_of_the_calendar() {
    for (clock, format, shown) in [
        (0, "%Y-%m-%d %A", "1970-01-01 Thursday"),
        (951_782_400, "%d %b %Y", "29 Feb 2000"),
        (
            1_751_112_000,
            "%B %-d, %y %H:%M:%S %%",
            "June 28, 25 12:00:00 %",
        ),
        (-86_400, "%Y-%m-%d %a", "1969-12-31 Wed"),
        (4_107_542_400, "%Y-%m-%d", "2100-03-01"),
    ] {
        assert_eq!(date(clock, format), shown);
    }
}

#[test]
fn the_noon_of_a_day_is_on_that_day() {
    for day in ["1970-01-01", "2000-02-29", "2025-06-28", "1969-12-31"] {
        assert_eq!(date(noon_of(day), "%Y-%m-%d %H:%M"), format!("{day} 12:00"));
    }
    assert_eq!(date(noon_of("no day"), "%F"), "1970-01-01");
}
