//! `strftime` for the formats that templates ask of `strftime_now`.
//!
//! Not here: the calendar (`wire::date`), any clock; the moment is an argument.

use wire::date::{Date, weekday_name};

/// Writes a moment, in seconds since 1970; a directive that is not known stays as it is.
pub(crate) fn date(clock_s: i64, format: &str) -> String {
    let (days, second_of_day) = (clock_s.div_euclid(86_400), clock_s.rem_euclid(86_400));
    let date = Date::of_day(days);
    let Date { year, month, day } = date;
    let (hour, minute, second) = (
        second_of_day / 3600,
        second_of_day / 60 % 60,
        second_of_day % 60,
    );
    let (month_name, weekday) = (date.month_name(), weekday_name(days));
    let mut out = String::new();
    let mut chars = format.chars();
    while let Some(char) = chars.next() {
        if char != '%' {
            out.push(char);
            continue;
        }
        match chars.next() {
            Some('Y') => out.push_str(&year.to_string()),
            Some('y') => out.push_str(&format!("{:02}", year.rem_euclid(100))),
            Some('m') => out.push_str(&format!("{month:02}")),
            Some('d') => out.push_str(&format!("{day:02}")),
            Some('-') => match chars.next() {
                Some('d') => out.push_str(&day.to_string()),
                Some('m') => out.push_str(&month.to_string()),
                other => out.extend(['%', '-'].into_iter().chain(other)),
            },
            Some('B') => out.push_str(month_name),
            Some('b') => out.push_str(month_name.get(..3).unwrap_or_default()),
            Some('A') => out.push_str(weekday),
            Some('a') => out.push_str(weekday.get(..3).unwrap_or_default()),
            Some('H') => out.push_str(&format!("{hour:02}")),
            Some('M') => out.push_str(&format!("{minute:02}")),
            Some('S') => out.push_str(&format!("{second:02}")),
            Some('%') => out.push('%'),
            other => out.extend(['%'].into_iter().chain(other)),
        }
    }
    out
}
