//! Moments as clients read them: `2026-11-27T11:30:00.000Z`. Pure, but for the clock of this machine.

use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Serialize, Serializer};

const DAY_MS: u64 = 24 * 60 * 60 * 1_000;
/// The last moment that has four digits for its year.
const LAST_MS: u64 = 253_402_300_799_999;

/// A moment, in milliseconds since 1970: shown to the millisecond, in UTC.
///
/// What lies behind the year 9999 is shown as its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(pub u64);

/// A day: that of a moment in UTC, shown as `2026-11-27`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Day(pub Timestamp);

impl Timestamp {
    /// Now, by the clock of this machine.
    pub fn now() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self(u64::try_from(since.as_millis()).unwrap_or(LAST_MS))
    }

    /// Reads a moment: a day; behind it, after `T` or a space, a time with seconds or without, with any decimals (those
    /// of milliseconds count), with `Z` or an offset from UTC; without either it is in UTC.
    ///
    /// `None`: it has another form, names a day that the calendar doesn't have, or lies before 1970.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let (date, time) = match text.find(['T', 't', ' ']) {
            Some(at) => (&text[..at], &text[at + 1..]),
            None => (text, "00:00"),
        };
        let mut parts = date.split('-');
        let (year, month, day) =
            (digits(parts.next()?, 4)?, digits(parts.next()?, 2)?, digits(parts.next()?, 2)?);
        if parts.next().is_some() || !(1..=12).contains(&month) || !(1..=days_of(year, month)).contains(&day)
        {
            return None;
        }
        let (time, offset_min) = split_offset(time)?;
        let of_day = time_of_day(time)?;
        let ms = days_since_1970(year, month, day) * DAY_MS.cast_signed() + of_day - offset_min * 60_000;
        u64::try_from(ms).ok().filter(|ms| *ms <= LAST_MS).map(Self)
    }

    /// Writes the time with microseconds, as the headers of rate limits have it.
    pub fn with_micros(self) -> String {
        let text = self.to_string();
        format!("{}000Z", text.trim_end_matches('Z'))
    }
}

/// Digits alone, as many.
fn digits(text: &str, len: usize) -> Option<i64> {
    let fits = text.len() == len && text.bytes().all(|b| b.is_ascii_digit());
    fits.then(|| text.parse().ok()).flatten()
}

/// A time of the day and the minutes by which its clocks are ahead of UTC.
fn split_offset(text: &str) -> Option<(&str, i64)> {
    if let Some(time) = text.strip_suffix(['Z', 'z']) {
        return Some((time, 0));
    }
    let Some(at) = text.rfind(['+', '-']) else { return Some((text, 0)) };
    let (time, offset) = text.split_at(at);
    let (sign, offset) = offset.split_at(1);
    let (hours, minutes) = match offset.split_once(':') {
        Some((hours, minutes)) => (digits(hours, 2)?, digits(minutes, 2)?),
        None if offset.len() == 2 => (digits(offset, 2)?, 0),
        None => (digits(offset.get(..2)?, 2)?, digits(offset.get(2..)?, 2)?),
    };
    if hours > 23 || minutes > 59 {
        return None;
    }
    let minutes = hours * 60 + minutes;
    Some((time, if sign == "-" { -minutes } else { minutes }))
}

/// Milliseconds since midnight.
fn time_of_day(text: &str) -> Option<i64> {
    let (text, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let mut parts = text.split(':');
    let (hour, minute) = (digits(parts.next()?, 2)?, digits(parts.next()?, 2)?);
    let second = parts.next().map_or(Some(0), |second| digits(second, 2))?;
    let is_number = !fraction.is_empty() && fraction.bytes().all(|b| b.is_ascii_digit());
    // A second that was put in counts as the one before it.
    if parts.next().is_some() || hour > 23 || minute > 59 || second > 60 || !is_number {
        return None;
    }
    let ms = digits(&format!("{fraction:0<3}")[..3], 3)?;
    Some(((hour * 60 + minute) * 60 + second.min(59)) * 1_000 + ms)
}

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

fn days_of(year: i64, month: i64) -> i64 {
    match month {
        2 => 28 + i64::from(is_leap(year)),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days from 1970-01-01 to a day of the Gregorian calendar, by years that begin in March: the day that comes and goes
/// is their last.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let year = year - i64::from(month <= 2);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    365 * year + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400) + of_year - 719_468
}

/// Year, month and day so many days after 1970-01-01.
fn date_after(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (era * 400 + year + u64::from(month <= 2), month, day)
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = self.0.min(LAST_MS) % DAY_MS;
        let (seconds, ms) = (ms / 1_000, ms % 1_000);
        let (hour, minute, second) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
        write!(f, "{}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z", Day(*self))
    }
}

impl fmt::Display for Day {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = date_after(self.0.0.min(LAST_MS) / DAY_MS);
        write!(f, "{year:04}-{month:02}-{day:02}")
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Serialize for Day {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_moment_is_shown_to_the_millisecond() {
        for (ms, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (1_798_372_496_007, "2026-12-27T11:54:56.007Z"),
            (4_107_542_399_999, "2100-02-28T23:59:59.999Z"),
            (u64::MAX, "9999-12-31T23:59:59.999Z"),
        ] {
            assert_eq!(Timestamp(ms).to_string(), text);
        }
        assert_eq!(Day(Timestamp(951_868_800_000)).to_string(), "2000-03-01");
        assert_eq!(Timestamp(1).with_micros(), "1970-01-01T00:00:00.001000Z");
        assert_eq!(serde_json::to_string(&Day(Timestamp(0))).unwrap(), "\"1970-01-01\"");
    }

    #[test]
    fn the_forms_that_clients_write_are_read() {
        let noon = 1_798_372_496_000;
        for (text, ms) in [
            ("2026-12-27T11:54:56Z", noon),
            ("2026-12-27T11:54:56.123456Z", noon + 123),
            ("2026-12-27 12:54:56+01:00", noon),
            ("2026-12-27t06:24:56.0-0530", noon),
            ("2026-12-27T11:54:56", noon),
            ("2026-12-27T11:54", noon - 56_000),
            ("2026-12-27", noon - (11 * 3_600 + 54 * 60 + 56) * 1_000),
        ] {
            assert_eq!(Timestamp::parse(text), Some(Timestamp(ms)), "{text}");
        }
    }

    #[test]
    fn what_is_no_moment_is_none() {
        for text in [
            "",
            "now",
            "2026-13-01",
            "2026-02-29",
            "2100-02-29",
            "2026-00-10",
            "2026-1-1",
            "1969-12-31T23:59:59Z",
            "26-01-01",
            "2026-01-01T24:00Z",
            "2026-01-01T10:60Z",
            "2026-01-01T10:00:00.Z",
            "2026-01-01T10:00+24:00",
            "2026-01-01T",
            "2026-01-01T10:00+1",
            "2026-01-01T10:00+é",
            "-2026-01-01",
            "2026-01-01T10:00:00:00",
        ] {
            assert_eq!(Timestamp::parse(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_moment_is_read_as_it_is_shown(ms in 0..=LAST_MS) {
            prop_assert_eq!(Timestamp::parse(&Timestamp(ms).to_string()), Some(Timestamp(ms)));
        }

        #[test]
        fn any_text_is_read_or_none(text in "[0-9TZ:.+ é-]{0,30}|.{0,40}") {
            if let Some(moment) = Timestamp::parse(&text) {
                prop_assert_eq!(Timestamp::parse(&moment.to_string()), Some(moment));
            }
        }
    }
}
