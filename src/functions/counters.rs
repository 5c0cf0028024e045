//! Counters: how often something happened within a while.

use std::time::Duration;

use super::fcall;
use crate::cluster::{Command, Reply};
use crate::error::{Error, Result};

/// So many more; a counter that begins with them lasts so long. Answers how many there are then.
pub(crate) fn counter_add(counter: Vec<u8>, more: u32, lasts: Duration) -> Command {
    let lasts_ms = u64::try_from(lasts.as_millis()).unwrap_or(u64::MAX).max(1);
    fcall("counter_add", &[counter]).arg(more).arg(lasts_ms)
}

/// The number that [`counter_add`] answers.
pub(crate) fn parse_counter(reply: &Reply) -> Result<u64> {
    let count = reply.int()?;
    u64::try_from(count).map_err(|_| Error::internal(format!("a counter stands at {count}")))
}
