//! Journal entries and leases.

use std::time::Duration;

use super::fcall;
use super::modes::DeliveryRates;
use crate::cluster::{Command, Reply};
use crate::error::Result;
use crate::fields::RecordField;
use crate::nonce::Nonce;

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
pub(crate) fn journal_take_over(journal: Vec<u8>, entry: &[u8], from: &[u8; 8], to: &[u8; 8]) -> Command {
    fcall("journal_take_over", &[journal]).arg(entry).arg(from).arg(to)
}

/// Moves the checkpoint, which stands behind the first `before` bytes.
pub(crate) fn journal_checkpoint(
    journal: Vec<u8>,
    entry: &[u8],
    owner: &[u8; 8],
    before: usize,
    checkpoint: &str,
) -> Command {
    fcall("journal_checkpoint", &[journal]).arg(entry).arg(owner).arg(before).arg(checkpoint)
}

/// Facts that a fan-out to all followers has found out about its author.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FanoutFacts {
    pub(crate) delivered: u64,
    pub(crate) skipped: u64,
    /// The time now, and how old rates may be.
    pub(crate) now_ms: u64,
    pub(crate) every_ms: u64,
}

/// Strikes an entry, and notes facts, if there are any, in its author's record.
pub(crate) fn journal_strike(
    journal: Vec<u8>,
    entry: &[u8],
    facts: Option<(Vec<u8>, FanoutFacts)>,
) -> Command {
    let Some((record, facts)) = facts else { return fcall("journal_strike", &[journal]).arg(entry) };
    fcall("journal_strike", &[journal, record])
        .arg(entry)
        .arg(facts.now_ms)
        .arg(facts.every_ms)
        .arg(RecordField::RECIPIENTS)
        .arg(facts.delivered + facts.skipped)
        .arg(RecordField::AWAKE)
        .arg(facts.delivered)
}

/// The rates that are known of the author, if facts were noted.
pub(crate) fn parse_struck(reply: Reply) -> Result<Option<DeliveryRates>> {
    let reply = reply.into_array()?;
    let (_, rates) = reply.split_first().ok_or_else(|| super::unexpected("journal_strike", &reply))?;
    if rates.is_empty() { Ok(None) } else { DeliveryRates::parse(rates).map(Some) }
}

/// Renews a lease for so long; zero ends it. Takes away those that are `over`, if they still are what was seen.
pub(crate) fn lease_renew(living: Vec<u8>, name: &[u8], ttl_ms: u64, over: &[(Nonce, Vec<u8>)]) -> Command {
    let command = fcall("lease_renew", &[living]).arg(name).arg(ttl_ms);
    over.iter().fold(command, |command, (name, value)| command.arg(name).arg(value))
}

/// Names and values of all leases.
pub(crate) fn parse_leases(reply: Reply) -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
    let reply = reply.into_array()?;
    reply.chunks_exact(2).map(|pair| Ok((pair[0].bytes()?.to_vec(), pair[1].bytes()?.to_vec()))).collect()
}

/// For how long a lease was taken, if it says so: earlier releases write only until when. `None`: it is none.
pub(crate) fn lease_ttl(value: &[u8]) -> Option<Option<Duration>> {
    let text = std::str::from_utf8(value).ok()?;
    let number = |text: &str| text.parse::<u64>().ok();
    match text.split_once('.') {
        None => number(text).map(|_| None),
        Some((until, ttl)) => number(until).and(number(ttl)).map(|ttl| Some(Duration::from_millis(ttl))),
    }
}
