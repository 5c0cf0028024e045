//! How often an account may do something within a span of time.

use std::time::Duration;

use super::{fcall, unexpected};
use crate::cluster::{Command, Reply};
use crate::error::Result;

/// Parts of a span, each of which is counted by itself: `PARTS` of the function.
const PARTS: u64 = 12;

/// A limit of what an account may do within a span of time, counted in a field of its record.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TimeLimit {
    pub(crate) field: &'static str,
    pub(crate) span: Duration,
    pub(crate) most: u16,
}

/// What was answered to who wants to do something that is limited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TimeLimitAnswer {
    /// It is counted.
    Counted,
    Reached,
    NoAccount,
}

impl TimeLimit {
    fn span_ms(self) -> u64 {
        u64::try_from(self.span.as_millis()).unwrap_or(u64::MAX >> 1)
    }

    /// How long it is until the next part of the span begins: until then a limit that is reached stays so.
    pub(crate) fn next_part_in(self, now_ms: u64) -> Duration {
        let part_ms = (self.span_ms() / PARTS).max(1);
        Duration::from_millis(part_ms - now_ms % part_ms)
    }

    pub(crate) fn take(self, record: Vec<u8>, now_ms: u64) -> Command {
        fcall("window_take", &[record])
            .arg(self.field)
            .arg(self.span_ms())
            .arg(u32::from(self.most))
            .arg(now_ms)
    }
}

impl TimeLimitAnswer {
    pub(crate) fn parse(reply: &Reply) -> Result<Self> {
        Ok(match reply.int()? {
            1 => Self::Counted,
            0 => Self::Reached,
            -1 => Self::NoAccount,
            _ => return Err(unexpected("window_take", std::slice::from_ref(reply))),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_that_is_reached_is_asked_again_once_a_part_of_its_span_is_over() {
        let limit = TimeLimit { field: "x", span: Duration::from_secs(3_600), most: 1 };
        assert_eq!(limit.next_part_in(7 * 300_000), Duration::from_secs(300));
        assert_eq!(limit.next_part_in(8 * 300_000 - 1), Duration::from_millis(1));
        let parts =
            include_str!("lua/windows.lua").lines().find_map(|line| line.strip_prefix("local PARTS = "));
        assert_eq!(parts, Some(PARTS.to_string().as_str()));
    }
}
