//! Time as the API writes it.

use std::time::{SystemTime, UNIX_EPOCH};

/// Now, to the second (`metav1.Time`).
pub(crate) fn now() -> String {
    let (date, _) = written(since_1970());
    format!("{date}Z")
}

/// Now, to the microsecond (`metav1.MicroTime`).
pub(crate) fn now_micro() -> String {
    let (date, micros) = written(since_1970());
    format!("{date}.{micros:06}Z")
}

/// A word that no other moment has.
pub(crate) fn stamp() -> String {
    let (seconds, micros) = since_1970();
    format!("{seconds:x}{micros:05x}")
}

fn since_1970() -> (u64, u32) {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    (since.as_secs(), since.subsec_micros())
}

fn written((seconds, micros): (u64, u32)) -> (String, u32) {
    let (days, of_day) = (seconds / 86_400, seconds % 86_400);
    let [hour, minute, second] = [of_day / 3600, of_day / 60 % 60, of_day % 60];
    // Years from March on, in eras of 400 (the calendar's own period).
    let days = days + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 {
        shifted + 3
    } else {
        shifted - 9
    };
    let year = 400 * era + year + u64::from(month <= 2);
    (
        format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}"),
        micros,
    )
}

#[cfg(test)]
mod tests {
    use super::written;

    #[test]
    fn days_are_those_of_the_calendar() {
        for (seconds, says) in [
            (0, "1970-01-01T00:00:00"),
            (951_782_399, "2000-02-28T23:59:59"),
            (951_782_400, "2000-02-29T00:00:00"),
            (1_735_689_599, "2024-12-31T23:59:59"),
            (1_795_824_000, "2026-11-28T00:00:00"),
            (4_107_542_400, "2100-03-01T00:00:00"),
        ] {
            assert_eq!(written((seconds, 0)).0, says);
        }
    }
}
