//! Reports.

use super::{fcall, fcall_ro, read_nonce, unexpected};
use crate::cluster::{Command, Reply};
use crate::error::Result;
use crate::ids::AccountId;
use crate::nonce::Nonce;

/// Somebody reports an account.
#[derive(Debug)]
pub(crate) struct ReportAdd<'a> {
    /// Open, resolved ones, of each reporter.
    pub(crate) keys: [Vec<u8>; 3],
    /// The token's key, and for how many milliseconds it is remembered.
    pub(crate) token: Option<(Vec<u8>, u64)>,
    /// That are open, of one reporter.
    pub(crate) most: [u32; 2],
    pub(crate) id: u64,
    pub(crate) reporter: AccountId,
    pub(crate) value: &'a [u8],
}

/// The outcome of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReportAddAnswer {
    /// Its id; that of an earlier one with the same token, if there is one.
    Is(u64),
    /// Too many are open.
    Full,
    /// Too many of this reporter's are.
    FullOfReporter,
}

impl ReportAdd<'_> {
    pub(crate) fn command(self) -> Command {
        let (token, ttl) = self.token.map_or((None, 0), |(key, ttl)| (Some(key), ttl.max(1)));
        let keys: Vec<Vec<u8>> = self.keys.into_iter().chain(token).collect();
        let command = fcall("report_add", &keys).arg(self.most[0]).arg(self.most[1]);
        command.arg(&self.id.to_be_bytes()).arg(&self.reporter.to_bytes()).arg(self.value).arg(ttl)
    }
}

impl ReportAddAnswer {
    pub(crate) fn parse(reply: Reply) -> Result<Self> {
        let reply = reply.into_array()?;
        let unknown = || unexpected("report_add", &reply);
        match reply.as_slice() {
            [word, id] if word.bytes()? == b"ok" => Ok(Self::Is(u64::from_be_bytes(read_nonce(id)?))),
            [word] => match word.bytes()? {
                b"busy" => Ok(Self::Full),
                b"limit" => Ok(Self::FullOfReporter),
                _ => Err(unknown()),
            },
            _ => Err(unknown()),
        }
    }
}

/// A report is resolved, or opened again. `keys`: where it is, where it goes, of each reporter; `most`: of the resolved
/// ones, if it goes there. Answers as [`CompareAnswer`](super::CompareAnswer).
pub(crate) fn report_move(
    keys: &[Vec<u8>; 3],
    (id, reporter): (u64, AccountId),
    seen: &Nonce,
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
