//! Quotas: how often something may be done within a span of time. Pure.

use std::fmt;
use std::str::FromStr;

use tideline::{rate_in, span_text};

/// So often within so long: `300/5m`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quota {
    /// How often.
    pub most: u32,
    /// Within how many seconds, 30 days at most. Spans follow each other from 1970 on.
    pub span_s: u64,
}

/// A limit, or that there is none (`off`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit(pub Option<Quota>);

impl Limit {
    /// So often within so many seconds.
    pub(super) const fn of(most: u32, span_s: u64) -> Self {
        Self(Some(Quota { most, span_s }))
    }
}

impl Quota {
    /// The number of the span in which a moment lies.
    pub(super) fn span_at(self, now_ms: u64) -> u64 {
        now_ms / (self.span_s * 1_000)
    }

    /// The end of that span.
    pub(super) fn end_of(self, span: u64) -> u64 {
        span.saturating_add(1).saturating_mul(self.span_s * 1_000)
    }
}

impl FromStr for Limit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let refused = || format!("{text:?} is no limit: 300/5m, or off");
        if text == "off" {
            return Ok(Self(None));
        }
        let (most, span_s) = rate_in(text).ok_or_else(refused)?;
        let most = most.parse().ok().filter(|most| *most > 0).ok_or_else(refused)?;
        Ok(Self::of(most, span_s))
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(Quota { most, span_s }) = self.0 else { return f.write_str("off") };
        write!(f, "{most}/{}", span_text(span_s))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_written_as_they_are_read() {
        for text in ["300/5m", "1/1s", "400/1d", "30/90s", "25/36h", "off"] {
            assert_eq!(text.parse::<Limit>().unwrap().to_string(), text);
        }
        assert_eq!("10/3600s".parse::<Limit>().unwrap().to_string(), "10/1h");
        for text in
            ["", "300", "300/5", "0/5m", "-1/5m", "5/0m", "5/m", "5/5mm", "5/31d", "5m/300", "5/5w", "OFF"]
        {
            assert!(text.parse::<Limit>().is_err(), "{text}");
        }
    }

    #[test]
    fn spans_follow_each_other() {
        let quota = Quota { most: 1, span_s: 300 };
        assert_eq!((quota.span_at(299_999), quota.span_at(300_000)), (0, 1));
        assert_eq!(quota.end_of(quota.span_at(300_000)), 600_000);
        assert_eq!(quota.end_of(u64::MAX), u64::MAX);
    }
}
