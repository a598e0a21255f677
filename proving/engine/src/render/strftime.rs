//! The engine's day as a template writes it.
//!
//! Invariant: it is noon: an engine is given a date and no hour. A form that is not known stays as it is.
//! Not here: which day it is (`state`).

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const DAYS: [&str; 7] = [
    "Sunday",
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
];

struct Day {
    year: i64,
    month: i64,
    day: i64,
    /// From 0.
    of_year: i64,
    /// From Sunday, 0.
    weekday: i64,
}

impl Day {
    fn of(date: &str) -> Self {
        let mut parts = date.splitn(3, '-').map(|part| part.parse::<i64>().ok());
        let mut next = |other: i64| parts.next().flatten().unwrap_or(other);
        let (year, month, day) = (next(1970), next(1).clamp(1, 12), next(1));
        let is_leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
        let lengths = [
            31,
            if is_leap { 29 } else { 28 },
            31,
            30,
            31,
            30,
            31,
            31,
            30,
            31,
            30,
            31,
        ];
        let before: i64 = lengths
            .iter()
            .take(usize::try_from(month - 1).unwrap_or(0))
            .sum();
        let of_year = before + day - 1;
        // The weekday of the first of January, by the days since the first of January of year 1, a Monday.
        let past = year - 1;
        let days = past * 365 + past.div_euclid(4) - past.div_euclid(100) + past.div_euclid(400);
        Self {
            year,
            month,
            day,
            of_year,
            weekday: (days + 1 + of_year).rem_euclid(7),
        }
    }

    /// Year and week by ISO 8601: that of the Thursday.
    fn iso(&self) -> (i64, i64) {
        let monday = (self.weekday + 6) % 7;
        let week = (self.of_year - monday + 10).div_euclid(7);
        if week >= 1 && !(week == 53 && self.month == 12 && self.day - monday >= 29) {
            return (self.year, week);
        }
        if week > 1 {
            return (self.year + 1, 1);
        }
        let last = Self::of(&format!("{}-12-31", self.year - 1));
        (self.year - 1, last.iso().1)
    }
}

/// Writes `date`, `YYYY-MM-DD`, in the form of C's `strftime`, as in the C locale.
pub(super) fn written(date: &str, form: &str) -> String {
    let (day, mut out, mut letters) = (Day::of(date), String::new(), form.chars());
    while let Some(letter) = letters.next() {
        if letter != '%' {
            out.push(letter);
            continue;
        }
        let (flag, kind) = match letters.next() {
            Some(flag @ ('-' | '_' | '0')) => (Some(flag), letters.next()),
            kind => (None, kind),
        };
        let Some(kind) = kind else {
            out.push('%');
            break;
        };
        match one(&day, kind, flag) {
            Some(text) => out.push_str(&text),
            None => out.extend(['%', kind]),
        }
    }
    out
}

fn one(day: &Day, kind: char, flag: Option<char>) -> Option<String> {
    let (name, weekday) = (
        MONTHS.get(usize::try_from(day.month - 1).ok()?)?,
        DAYS.get(usize::try_from(day.weekday).ok()?)?,
    );
    let number = |value: i64, width: usize| match flag {
        Some('-') => value.to_string(),
        Some('_') => format!("{value:>width$}"),
        _ => format!("{value:0width$}"),
    };
    let spaced = |value: i64| match flag {
        None => format!("{value:>2}"),
        Some(_) => number(value, 2),
    };
    let again = |forms: &[char], between: &str| -> Option<String> {
        let parts: Option<Vec<String>> = forms.iter().map(|form| one(day, *form, None)).collect();
        Some(parts?.join(between))
    };
    let monday = (day.weekday + 6) % 7;
    Some(match kind {
        'Y' => day.year.to_string(),
        'C' => number(day.year / 100, 2),
        'y' => number(day.year % 100, 2),
        'G' => day.iso().0.to_string(),
        'V' => number(day.iso().1, 2),
        'm' => number(day.month, 2),
        'd' => number(day.day, 2),
        'e' => spaced(day.day),
        'j' => number(day.of_year + 1, 3),
        'U' => number((day.of_year + 7 - day.weekday) / 7, 2),
        'W' => number((day.of_year + 7 - monday) / 7, 2),
        'u' => (monday + 1).to_string(),
        'w' => day.weekday.to_string(),
        'B' => (*name).to_owned(),
        'b' | 'h' => name.get(..3)?.to_owned(),
        'A' => (*weekday).to_owned(),
        'a' => weekday.get(..3)?.to_owned(),
        'H' | 'I' => number(12, 2),
        'k' | 'l' => spaced(12),
        'M' | 'S' => number(0, 2),
        'p' => "PM".to_owned(),
        'F' => again(&['Y', 'm', 'd'], "-")?,
        'T' | 'X' => again(&['H', 'M', 'S'], ":")?,
        'R' => again(&['H', 'M'], ":")?,
        'D' | 'x' => again(&['m', 'd', 'y'], "/")?,
        'n' => "\n".to_owned(),
        't' => "\t".to_owned(),
        '%' => "%".to_owned(),
        _ => return None,
    })
}
