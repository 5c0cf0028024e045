//! Limits on how often an account may do something within a span of time.

use std::time::Duration;

use super::{fcall, unexpected};
use crate::cluster::{Command, Reply};
use crate::error::{Error, ErrorCode, FrequencyBound, Result};
use crate::ids::AccountId;
use crate::meters;

/// Parts of a span, each of which is counted by itself: `PARTS` of the function.
const PARTS: u64 = 12;

/// A limit of what an account may do within a span of time, counted in a field of its record, of two letters.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TimeLimit {
    pub(crate) field: &'static str,
    pub(crate) span: Duration,
    pub(crate) most: u16,
    /// Of an account that is new.
    pub(crate) most_new: u16,
    /// How often this counts.
    pub(crate) cost: u16,
    /// What it is that is done, for people: "has *posted*", "`setting`".
    pub(crate) words: (&'static str, &'static str),
}

/// Limits that an act counts against, all of it or nothing.
#[derive(Debug, Clone, Default)]
pub(crate) struct TimeLimits {
    /// How long an account that was registered is new.
    pub(crate) new_for: Duration,
    pub(crate) limits: Vec<TimeLimit>,
}

/// A limit that an account has reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ReachedLimit {
    /// Which one of those that were named.
    number: usize,
    /// So often the account may.
    most: u16,
    /// Once so many parts of the span have begun it may again; 0: what it wants to do is more by itself.
    parts: u64,
}

/// The answer to who wants to do something that is limited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TimeLimitAnswer {
    /// It is counted.
    Counted,
    Reached(ReachedLimit),
    NoAccount,
}

fn ms(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX >> 1)
}

impl TimeLimit {
    /// The time until so many parts of the span have begun.
    fn parts_in(self, parts: u64, now_ms: u64) -> Duration {
        let part_ms = (ms(self.span) / PARTS).max(1);
        Duration::from_millis(part_ms * parts.clamp(1, PARTS + 1) - now_ms % part_ms)
    }
}

impl TimeLimits {
    /// The limits as functions take them; '' if there are none.
    pub(crate) fn as_arg(&self) -> Vec<u8> {
        if self.limits.is_empty() {
            return Vec::new();
        }
        let mut packed = ms(self.new_for).to_be_bytes().to_vec();
        for limit in &self.limits {
            debug_assert_eq!(limit.field.len(), 2, "functions take two letters");
            packed.extend(limit.field.as_bytes());
            packed.extend(limit.cost.to_be_bytes());
            packed.extend(ms(limit.span).to_be_bytes());
            packed.extend(limit.most.to_be_bytes());
            packed.extend(limit.most_new.to_be_bytes());
        }
        packed
    }

    pub(crate) fn take(&self, record: Vec<u8>, now_ms: u64) -> Command {
        fcall("window_take", &[record]).arg(&self.as_arg()).arg(now_ms)
    }

    /// The error for an account that has reached a limit.
    pub(crate) fn reached(&self, account: AccountId, reached: ReachedLimit, now_ms: u64) -> Error {
        let ReachedLimit { number, most, parts } = reached;
        let Some(limit) = self.limits.get(number) else {
            return Error::internal(format!("an act has no limit number {number}"));
        };
        let ((what, setting), span_s) = (limit.words, limit.span.as_secs());
        if parts == 0 {
            let text = format!(
                "account {account} would have {what} {} times at once; at most {most} times within {span_s} s are \
                 allowed (`{setting}`)",
                limit.cost
            );
            return Error::new(ErrorCode::LimitReached, text);
        }
        meters::limited(setting);
        Error::too_often(
            FrequencyBound {
                most: most.into(),
                again_in: limit.parts_in(parts, now_ms),
                setting: Some(limit.words.1),
            },
            format!(
                "account {account} has {what} as often as it may: {most} times within {span_s} s (`{setting}`); later"
            ),
        )
    }
}

impl ReachedLimit {
    pub(super) fn parse([number, most, parts]: [&Reply; 3]) -> Result<Self> {
        Ok(Self {
            number: usize::try_from(number.count()?).unwrap_or(usize::MAX),
            most: u16::try_from(most.count()?).unwrap_or(u16::MAX),
            parts: parts.count()?,
        })
    }
}

impl TimeLimitAnswer {
    pub(crate) fn parse(reply: Reply) -> Result<Self> {
        let reply = reply.into_array()?;
        Ok(match reply.as_slice() {
            [word] if word.bytes()? == b"ok" => Self::Counted,
            [word] if word.bytes()? == b"gone" => Self::NoAccount,
            [word, number, most, parts] if word.bytes()? == b"often" => {
                Self::Reached(ReachedLimit::parse([number, most, parts])?)
            }
            _ => return Err(unexpected("window_take", &reply)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: TimeLimit = TimeLimit {
        field: "lx",
        span: Duration::from_secs(3_600),
        most: 9,
        most_new: 3,
        cost: 2,
        words: ("knocked", "limits.knocks"),
    };

    #[test]
    fn a_limit_that_is_reached_is_asked_again_once_enough_of_its_span_is_over() {
        assert_eq!(LIMIT.parts_in(1, 7 * 300_000), Duration::from_secs(300));
        assert_eq!(LIMIT.parts_in(1, 8 * 300_000 - 1), Duration::from_millis(1));
        assert_eq!(LIMIT.parts_in(13, 7 * 300_000 + 1_000), Duration::from_secs(13 * 300 - 1));
        let parts =
            include_str!("lua/windows.lua").lines().find_map(|line| line.strip_prefix("local PARTS = "));
        assert_eq!(parts, Some(PARTS.to_string().as_str()));
    }

    #[test]
    fn limits_are_packed_as_the_function_reads_them() {
        assert!(TimeLimits::default().as_arg().is_empty());
        let limits = TimeLimits { new_for: Duration::from_secs(1), limits: vec![LIMIT, LIMIT] };
        let packed = limits.as_arg();
        assert_eq!(packed.len(), 8 + 2 * 16);
        assert_eq!(packed[..8], 1_000u64.to_be_bytes());
        assert_eq!(packed[8..24], *b"lx\x00\x02\x00\x00\x00\x00\x00\x36\xee\x80\x00\x09\x00\x03");
        let layout = include_str!("lua/windows.lua")
            .lines()
            .find_map(|line| line.strip_prefix("local LIMIT, LIMIT_LEN = "));
        assert_eq!(layout, Some("'>I2I8I2I2', 16"));
    }

    #[test]
    fn who_has_reached_a_limit_is_told_which_and_when_it_may_again() {
        let limits = TimeLimits { new_for: Duration::ZERO, limits: vec![LIMIT] };
        let reached = |parts| {
            limits.reached(AccountId::new(7).unwrap(), ReachedLimit { number: 0, most: 3, parts }, 299_000)
        };
        let error = reached(1);
        let bound = error.frequency_bound().unwrap();
        assert_eq!((bound.most, bound.again_in), (3, Duration::from_secs(1)));
        assert!(
            error.to_string().contains(
                "account 7 has knocked as often as it may: 3 times within 3600 s (`limits.knocks`)"
            )
        );
        // What is too much by itself is never allowed later, and nobody has done it.
        let error = reached(0);
        assert_eq!((error.code(), error.frequency_bound()), (ErrorCode::LimitReached, None));
        assert!(error.to_string().contains("would have knocked 2 times at once; at most 3"), "{error}");
    }
}
