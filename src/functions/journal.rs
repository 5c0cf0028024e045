//! Journal entries and leases.

use super::fcall;
use crate::cluster::{Command, Reply};
use crate::error::Result;

/// Adds entries, unless the journal would then hold more than `most`.
pub(crate) fn journal_add<'e>(
    journal: Vec<u8>,
    most: u32,
    entries: impl IntoIterator<Item = (&'e [u8], &'e [u8])>,
) -> Command {
    let command = fcall("journal_add", &[journal]).arg(most);
    entries.into_iter().fold(command, |command, (entry, value)| command.arg(entry).arg(value))
}

/// Whether a `journal_add` found room.
pub(crate) fn parse_added(reply: Reply) -> Result<bool> {
    let reply = reply.into_array()?;
    match reply.as_slice() {
        [word] => Ok(word.bytes()? == b"ok"),
        _ => Err(super::unexpected("journal_add", &reply)),
    }
}

/// Takes an entry over; answers with its value, or nothing.
pub(crate) fn journal_claim(journal: Vec<u8>, entry: &[u8], from: &[u8; 8], to: &[u8; 8]) -> Command {
    fcall("journal_claim", &[journal]).arg(entry).arg(from).arg(to)
}

/// Moves the checkpoint, which stands behind the first `before` bytes.
pub(crate) fn journal_mark(
    journal: Vec<u8>,
    entry: &[u8],
    owner: &[u8; 8],
    before: usize,
    checkpoint: &str,
) -> Command {
    fcall("journal_mark", &[journal]).arg(entry).arg(owner).arg(before).arg(checkpoint)
}

/// Strikes an entry, and notes facts, if there are any, in a record of the same bucket.
pub(crate) fn journal_strike(
    journal: Vec<u8>,
    entry: &[u8],
    record: Vec<u8>,
    facts: &[(&str, u64)],
) -> Command {
    let keys = if facts.is_empty() { vec![journal] } else { vec![journal, record] };
    let command = fcall("journal_strike", &keys).arg(entry);
    facts.iter().fold(command, |command, (field, value)| command.arg(*field).arg(*value))
}

/// Renews a lease for so long; zero ends it. Answers with the names of all that live.
pub(crate) fn lease_renew(living: Vec<u8>, name: &[u8], ttl_ms: u64) -> Command {
    fcall("lease_renew", &[living]).arg(name).arg(ttl_ms)
}
