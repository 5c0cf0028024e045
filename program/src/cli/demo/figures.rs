//! Figures for people.

#![expect(clippy::cast_precision_loss, reason = "figures for people")]

use std::time::Duration;

/// Times that many of the same took.
#[derive(Debug, Default)]
pub(super) struct Times(Vec<Duration>);

impl Times {
    /// Of these, in any order.
    pub(super) fn new(times: impl IntoIterator<Item = Duration>) -> Self {
        let mut times: Vec<Duration> = times.into_iter().collect();
        times.sort_unstable();
        Self(times)
    }

    /// Number of these times.
    pub(super) fn count(&self) -> usize {
        self.0.len()
    }

    fn percentile(&self, percent: usize) -> Duration {
        let rank = (self.0.len() * percent).div_ceil(100).max(1);
        self.0.get(rank - 1).copied().unwrap_or_default()
    }

    /// Median and 99th percentile.
    pub(super) fn text(&self) -> String {
        if self.0.is_empty() {
            return "none".into();
        }
        format!("p50 {}, p99 {}", ms(self.percentile(50)), ms(self.percentile(99)))
    }
}

/// Milliseconds, with as many digits as mean something.
pub(super) fn ms(time: Duration) -> String {
    let ms = time.as_secs_f64() * 1e3;
    if ms < 10.0 { format!("{ms:.2} ms") } else { format!("{ms:.0} ms") }
}

/// Seconds.
pub(super) fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

/// Number of `what` a second.
pub(super) fn rate(count: u64, what: &str, time: Duration) -> String {
    let rate = (count as f64 / time.as_secs_f64().max(1e-9)).round();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a rate of this machine")]
    let rate = rate as u64;
    format!("{} {what} a second", grouped(rate))
}

/// A number with its thousands apart.
pub(super) fn grouped(number: impl TryInto<u64>) -> String {
    let digits = number.try_into().unwrap_or(u64::MAX).to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (n, digit) in digits.chars().enumerate() {
        if n > 0 && (digits.len() - n).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_times_that_were_measured() {
        let times = Times::new((1..=200).rev().map(Duration::from_millis));
        assert_eq!(times.text(), "p50 100 ms, p99 198 ms");
        assert_eq!(Times::new([Duration::from_micros(1_234)]).text(), "p50 1.23 ms, p99 1.23 ms");
        assert_eq!(Times::default().text(), "none");
    }

    #[test]
    fn thousands_stand_apart() {
        let texts = [0_u64, 999, 1_000, 1_234_567].map(grouped);
        assert_eq!(texts, ["0", "999", "1,000", "1,234,567"]);
    }
}
