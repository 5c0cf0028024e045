//! Numbers as people type and read them: 500M, 1.2k, 3.4 GB. Pure.

/// Suffixes of counts.
const SUFFIXES: [(char, f64); 4] = [('k', 1e3), ('M', 1e6), ('G', 1e9), ('T', 1e12)];

/// A count: `500M`, `1.5k`, `12_000`, `12,000`.
pub(crate) fn parse(text: &str) -> Result<f64, String> {
    let refused = || format!("\"{text}\" is no number; write 12000, 12k or 1.5M");
    let plain: String = text.chars().filter(|c| !matches!(c, '_' | ',')).collect();
    let last = plain.chars().last().ok_or_else(refused)?;
    let (digits, factor) = match SUFFIXES.iter().find(|(suffix, _)| suffix.eq_ignore_ascii_case(&last)) {
        Some((_, factor)) => (&plain[..plain.len() - 1], *factor),
        None => (plain.as_str(), 1.0),
    };
    if !digits.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return Err(refused());
    }
    let number: f64 = digits.parse().map_err(|_| refused())?;
    let value = number * factor;
    if value.is_finite() { Ok(value) } else { Err(refused()) }
}

/// A count, three digits and a suffix.
pub(crate) fn count(value: f64) -> String {
    scaled(value, &[(1e12, " T"), (1e9, " G"), (1e6, " M"), (1e3, " k")], "")
}

/// Bytes in decimal units.
pub(crate) fn bytes(value: f64) -> String {
    scaled(value, &[(1e15, " PB"), (1e12, " TB"), (1e9, " GB"), (1e6, " MB"), (1e3, " kB")], " B")
}

/// A time in microseconds.
pub(crate) fn time(us: f64) -> String {
    scaled(us, &[(8.64e10, " days"), (3.6e9, " h"), (6e7, " min"), (1e6, " s"), (1e3, " ms")], " us")
}

/// A share in percent, with a digit behind the point, and as many as it takes for two that count.
pub(crate) fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent < 1e-9 {
        return "0 %".to_owned();
    }
    let digits = (1..)
        .find(|digits| percent * 10_f64.powi(*digits) >= 10.0)
        .and_then(|digits| usize::try_from(digits).ok());
    format!("{percent:.0$} %", digits.unwrap_or_default())
}

fn scaled(value: f64, units: &[(f64, &str)], plain: &str) -> String {
    let (factor, unit) = units.iter().find(|(factor, _)| value >= *factor).copied().unwrap_or((1.0, plain));
    let scaled = value / factor;
    let digits = match scaled {
        s if s >= 99.95 => 0,
        s if s >= 9.995 => 1,
        s if s < 1e-9 => 0,
        _ => 2,
    };
    format!("{scaled:.digits$}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suffixes_are_read() {
        for (text, value) in [("500M", 5e8), ("1.5k", 1_500.0), ("12_000", 12_000.0), ("3g", 3e9), ("0", 0.0)]
        {
            assert_eq!(parse(text), Ok(value), "{text}");
        }
        for text in ["", "M", "five", "1.2.3M", "-5", "inf", "nan", "1e999"] {
            assert!(parse(text).unwrap_err().contains("is no number"), "{text}");
        }
    }

    /// Of 129,000 authors who are pulled it was said that they write 0.0 % of all posts.
    #[test]
    fn a_small_share_is_not_told_as_none() {
        assert_eq!(
            [0.0, 0.000_26, 0.005, 0.1, 0.2043, 1.0].map(percent),
            ["0 %", "0.026 %", "0.50 %", "10.0 %", "20.4 %", "100.0 %"]
        );
    }

    #[test]
    fn values_are_told_with_three_digits() {
        assert_eq!([count(5e8), count(1_234.0), count(0.0), count(7.5)], ["500 M", "1.23 k", "0", "7.50"]);
        assert_eq!([bytes(8_400.0), bytes(4.56e12)], ["8.40 kB", "4.56 TB"]);
        assert_eq!([time(5.0), time(125e6), time(1.8e5)], ["5.00 us", "2.08 min", "180 ms"]);
    }
}
