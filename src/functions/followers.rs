//! The number of an account's followers.

use super::fcall;
use crate::cluster::Command;

/// Somebody may have come or gone. Answers 1 if they are to be summed up; 0: their number stands there.
pub(crate) fn followers_note(record: Vec<u8>, followers: Vec<u8>, now_ms: u64) -> Command {
    fcall("followers_note", &[record, followers]).arg(now_ms)
}

/// They have been summed up; `seen`: what stood there before. Answers 1, or 0: somebody else has done that meanwhile.
pub(crate) fn followers_counted(record: Vec<u8>, seen: &[u8], sum: u64, now_ms: u64) -> Command {
    fcall("followers_counted", &[record]).arg(seen).arg(sum).arg(now_ms)
}
