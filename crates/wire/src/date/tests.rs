//! Dates against known ones, and there and back.

use super::{Date, month_of, timestamp, weekday_name};

#[test]
fn known_moments() {
    assert_eq!(timestamp(0), "1970-01-01T00:00:00Z");
    assert_eq!(timestamp(951_782_400_000), "2000-02-29T00:00:00Z");
    assert_eq!(timestamp(1_700_000_000_000), "2023-11-14T22:13:20Z");
    assert_eq!(timestamp(253_402_300_800_000), "10000-01-01T00:00:00Z");
    assert_eq!(Date::of_day(-719_162).year, 1);
    assert_eq!(weekday_name(-1), "Wednesday");
    assert_eq!(Date::of_day(19_782).month_name(), "February");
    assert_eq!(month_of("Feb"), Some(2));
    assert_eq!(month_of("feb"), None);
}

#[test]
fn dates_follow_the_calendar() {
    // Walk the calendar day by day beside the arithmetic.
    let (mut year, mut month, mut day) = (1970, 1, 1);
    for days in 0..200_000 {
        let date = Date { year, month, day };
        assert_eq!(Date::of_day(days), date, "day {days}");
        assert_eq!(date.to_day(), days);
        assert_eq!(Date::first_of(date.months()), Date { day: 1, ..date });
        let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        let last = match month {
            2 => 28 + u32::from(leap),
            4 | 6 | 9 | 11 => 30,
            _ => 31,
        };
        day += 1;
        if day > last {
            (month, day) = (month + 1, 1);
        }
        if month > 12 {
            (year, month) = (year + 1, 1);
        }
    }
}

#[test]
fn days_before_1970_come_back() {
    for day in -1_000_000..0 {
        assert_eq!(Date::of_day(day).to_day(), day);
    }
}

#[test]
fn a_clock_far_off_has_a_date() {
    assert!(timestamp(u64::MAX).starts_with("584556"));
    assert!(Date::of_day(i64::MAX).year > 0);
}
