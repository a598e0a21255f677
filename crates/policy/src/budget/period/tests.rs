//! Where periods begin and end.

use super::*;

const EVERY: [Every; 3] = [Every::Day, Every::Week, Every::Month];

fn ms(days: u64) -> u64 {
    days * 86_400_000
}

#[test]
fn the_day_the_week_and_the_month_of_a_known_saturday() {
    // 2026-11-21 is day 20,778 since 1970-01-01.
    let now = ms(20_778) + 12_345;
    let span = |every, east_min| {
        let calendar = Calendar { every, east_min };
        let (from, to) = calendar.span(calendar.of(now));
        [timestamp(from), timestamp(to)]
    };
    let of = |from: &str, to: &str| [format!("{from}Z"), format!("{to}Z")];
    let day = of("2026-11-21T00:00:00", "2026-11-22T00:00:00");
    assert_eq!(span(Every::Day, 0), day);
    let week = of("2026-11-16T00:00:00", "2026-11-23T00:00:00");
    assert_eq!(span(Every::Week, 0), week);
    let month = of("2026-11-01T00:00:00", "2026-12-01T00:00:00");
    assert_eq!(span(Every::Month, 0), month);
    let east = of("2026-10-31T18:30:00", "2026-11-30T18:30:00");
    assert_eq!(span(Every::Month, 330), east);
    let west = of("2026-11-20T05:00:00", "2026-11-21T05:00:00");
    assert_eq!(span(Every::Day, -300), west);
}

#[test]
fn periods_follow_one_another_through_the_leap_years() {
    for every in EVERY {
        for east_min in [-720, -300, 0, 330, 840] {
            let calendar = Calendar { every, east_min };
            let mut period = calendar.of(ms(400));
            while period < calendar.of(ms(60_000)) {
                let (from, to) = calendar.span(period);
                assert_eq!((calendar.of(from), calendar.of(to - 1)), (period, period));
                let next = Period(period.0 + 1);
                assert_eq!(calendar.of(to), next, "{calendar:?}");
                assert!(to - from <= ms(every.days_max()), "{calendar:?}");
                period = next;
            }
        }
    }
}

#[test]
fn the_end_of_time_is_no_panic() {
    for every in EVERY {
        let calendar = Calendar {
            every,
            east_min: 840,
        };
        let _span = calendar.span(calendar.of(u64::MAX));
        let _span = calendar.span(calendar.of(0));
    }
}
