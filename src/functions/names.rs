//! Lists of names by how they begin.

use super::fcall;
use crate::cluster::Command;

/// Puts a name on a list of at most so many.
pub(crate) fn names_add(list: Vec<u8>, most: usize, score: u64, member: &[u8]) -> Command {
    fcall("names_add", &[list]).arg(most).arg(score).arg(member)
}

/// Takes a name off a list, unless it was put there anew.
pub(crate) fn names_drop(list: Vec<u8>, score: u64, member: &[u8]) -> Command {
    fcall("names_drop", &[list]).arg(score).arg(member)
}
