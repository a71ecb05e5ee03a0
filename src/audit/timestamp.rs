//! Times as RFC 3339 has them.

use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serializer;

/// UTC, to the millisecond.
pub(super) fn serialize<S: Serializer>(time: &SystemTime, serializer: S) -> Result<S::Ok, S::Error> {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let (days, second) = (since.as_secs() / 86_400, since.as_secs() % 86_400);
    let (year, month, day) = date(days);
    let (hour, minute, second, milli) = (second / 3600, second / 60 % 60, second % 60, since.subsec_millis());
    serializer.collect_str(&format_args!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milli:03}Z"))
}

/// Year, month and day, so many days after 1970-01-01.
const fn date(days: u64) -> (u64, u64, u64) {
    const ERA: u64 = 146_097; // days in 400 years
    // Counted from 0000-03-01, so that the day that comes and goes is the last of a year.
    let days = days + 719_468;
    let (era, day) = (days / ERA, days % ERA);
    let year = (day - day / 1460 + day / 36_524 - day / (ERA - 1)) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (era * 400 + year + next, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[track_caller]
    fn is(seconds: u64, millis: u64, text: &str) {
        let time = UNIX_EPOCH + Duration::from_secs(seconds) + Duration::from_millis(millis);
        assert_eq!(serialize(&time, serde_json::value::Serializer).unwrap(), text);
    }

    #[test]
    fn times_read_as_people_write_them() {
        is(0, 0, "1970-01-01T00:00:00.000Z");
        is(951_782_399, 999, "2000-02-28T23:59:59.999Z");
        is(951_782_400, 0, "2000-02-29T00:00:00.000Z");
        is(1_709_164_800, 0, "2024-02-29T00:00:00.000Z");
        is(1_798_761_599, 7, "2026-12-31T23:59:59.007Z");
        is(4_107_542_400, 0, "2100-03-01T00:00:00.000Z");
    }

    #[test]
    fn every_day_follows_the_one_before() {
        let mut before = date(0);
        for days in 1..200_000 {
            let (year, month, day) = date(days);
            let is_next = match before {
                (y, m, d) if (year, month) == (y, m) => day == d + 1,
                (y, m, d) if year == y => month == m + 1 && day == 1 && d >= 28,
                (y, m, d) => year == y + 1 && (month, day) == (1, 1) && (m, d) == (12, 31),
            };
            assert!(is_next, "{before:?}, {:?}", (year, month, day));
            before = (year, month, day);
        }
    }
}
