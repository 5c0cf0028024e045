//! Inboxes. Most of what stands there comes with what it tells of: `list_set`, `set_add`, `join`, `waiting_set`.

use super::fcall;
use crate::cluster::Command;
use crate::inbox::{Notice, NotificationId};

/// Tells an account of a follow that another slot has, or of what is about to come onto a list of its post in a group.
/// `keys`: inbox, its owner's record. Answers 1; 0: there is no such account.
pub(crate) fn inbox_add(keys: &[Vec<u8>; 2], told: Notice, now_ms: u64) -> Command {
    fcall("inbox_add", keys).arg(&told.to_bytes()).arg(now_ms)
}

/// Takes entries off an inbox: all up to one, and some. Answers how many.
pub(crate) fn inbox_drop(inbox: Vec<u8>, upto: Option<NotificationId>, ids: &[NotificationId]) -> Command {
    let command = fcall("inbox_drop", &[inbox]);
    let command = match upto {
        Some(upto) => command.arg(&upto.get().to_be_bytes()),
        None => command.arg(""),
    };
    ids.iter().fold(command, |command, id| command.arg(&id.get().to_be_bytes()))
}

/// Pushes the notice that an account is told, or nothing.
pub(super) fn push_told(command: Command, told: Option<Notice>) -> Command {
    match told {
        Some(told) => command.arg(&told.to_bytes()),
        None => command.arg(""),
    }
}
