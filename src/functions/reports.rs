//! Reports.

use super::{Mark, fcall, fcall_ro};
use crate::cluster::Command;
use crate::ids::AccountId;

/// Somebody reports an account. `keys`: open, resolved ones, of each reporter; `most`: that are open, of one reporter.
/// Answers as [`Compared`](super::Compared); a full journal stands for too many that are open, something else than was
/// seen for too many of this reporter.
pub(crate) fn report_add(
    keys: &[Vec<u8>; 3],
    most: [u32; 2],
    id: u64,
    reporter: AccountId,
    value: &[u8],
) -> Command {
    let command = fcall("report_add", keys).arg(most[0]).arg(most[1]);
    command.arg(&id.to_be_bytes()).arg(&reporter.to_bytes()).arg(value)
}

/// A report is resolved, or opened again. `keys`: where it is, where it goes, of each reporter; `most`: of the resolved
/// ones, if it goes there. Answers as [`Compared`](super::Compared).
pub(crate) fn report_move(
    keys: &[Vec<u8>; 3],
    (id, reporter): (u64, AccountId),
    seen: &Mark,
    value: &[u8],
    most: Option<u32>,
) -> Command {
    let most = most.map(|most| most.to_string()).unwrap_or_default();
    fcall("report_move", keys)
        .arg(&id.to_be_bytes())
        .arg(seen)
        .arg(value)
        .arg(&*most)
        .arg(&reporter.to_bytes())
}

/// The newest reports below an id, newest first.
pub(crate) fn report_ids(reports: Vec<u8>, below: Option<u64>, most: usize) -> Command {
    let below = below.map(u64::to_be_bytes);
    fcall_ro("report_ids", &[reports]).arg(below.as_ref().map_or(&[][..], |id| id)).arg(most)
}
