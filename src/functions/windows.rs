//! How often an account may do something within a span of time.

use std::time::Duration;

use super::{fcall, unexpected};
use crate::cluster::{Command, Reply};
use crate::error::Result;

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
    pub(crate) fn take(self, record: Vec<u8>, now_ms: u64) -> Command {
        let span = u64::try_from(self.span.as_millis()).unwrap_or(u64::MAX >> 1);
        fcall("window_take", &[record]).arg(self.field).arg(span).arg(u32::from(self.most)).arg(now_ms)
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
