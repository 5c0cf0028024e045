//! Tells clients how much somebody may still do: in headers of an answer.

use std::time::Duration;

use axum::http::header::RETRY_AFTER;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use tideline::{Error, FrequencyBound};

use super::time::Timestamp;

const LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
const REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
const RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");

/// The standing of a limit: how much is left, and until when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateStanding {
    /// How often something may be done within a span of time.
    pub most: u32,
    /// How often it may be done still.
    pub remaining: u32,
    /// When the span is over.
    pub resets: Timestamp,
}

impl RateStanding {
    /// The standing of what the engine says was done too often.
    pub(super) fn of_error(error: &Error) -> Self {
        // One that doesn't say how often: there is a next time all the same.
        let least = FrequencyBound { most: 1, again_in: Duration::from_secs(1), setting: None };
        let FrequencyBound { most, again_in, .. } = error.frequency_bound().unwrap_or(least);
        let again_ms = u64::try_from(again_in.as_millis()).unwrap_or(u64::MAX);
        Self { most, remaining: 0, resets: Timestamp(Timestamp::now().0.saturating_add(again_ms)) }
    }

    /// Says so in headers.
    pub fn tell(self, headers: &mut HeaderMap) {
        headers.insert(LIMIT, self.most.into());
        headers.insert(REMAINING, self.remaining.into());
        if let Ok(reset) = HeaderValue::from_str(&self.resets.with_micros()) {
            headers.insert(RESET, reset);
        }
    }

    /// Whether an answer says so already.
    pub fn is_told(headers: &HeaderMap) -> bool {
        headers.contains_key(LIMIT)
    }

    /// Says so, and when to come again, to whoever was refused now.
    pub fn tell_refused(self, headers: &mut HeaderMap) {
        self.tell(headers);
        let left_ms = self.resets.0.saturating_sub(Timestamp::now().0);
        headers.insert(RETRY_AFTER, left_ms.div_ceil(1_000).max(1).into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_say_how_much_is_left_and_until_when() {
        let mut headers = HeaderMap::new();
        RateStanding { most: 300, remaining: 7, resets: Timestamp(1_764_243_000_000) }.tell(&mut headers);
        let told =
            ["x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"].map(|name| &headers[name]);
        assert_eq!(told, ["300", "7", "2025-11-27T11:30:00.000000Z"]);
        // What is over by now is over in a second at most.
        RateStanding { most: 1, remaining: 0, resets: Timestamp(0) }.tell_refused(&mut headers);
        assert_eq!(headers["retry-after"], "1");
    }
}
