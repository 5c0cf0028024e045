//! The mode in which accounts' posts reach their followers: changing it, and telling followers.

use super::{fcall, unexpected};
use crate::account::Mode;
use crate::cluster::{Command, Reply};
use crate::error::Result;
use crate::ids::AccountId;
use crate::nonce::Nonce;

/// The changer of a mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ModeChanger {
    /// Who carries a change out.
    Executor,
    /// The policy: refused if somebody told by hand.
    Policy,
    /// Somebody: what is told from now on (a mode's letter), and graph stamps, the one that was seen and a new one.
    Hand(Option<u8>, [Nonce; 2]),
}

/// Changes an account's mode if it is `seen` (as stored, empty for none) to `new` (empty: it stays), and adds a journal
/// entry. `keys`: record, outbox, journal. Answers as [`CompareAnswer`](super::CompareAnswer).
pub(crate) fn mode_set(
    keys: &[Vec<u8>; 3],
    (seen, new): (&[u8], &[u8]),
    by: ModeChanger,
    journal_most: u32,
    entry: Option<(&Nonce, &[u8])>,
) -> Command {
    let command = fcall("mode_set", keys).arg(seen).arg(new);
    let command = match by {
        ModeChanger::Executor => command.arg("x").arg("").arg("").arg(""),
        ModeChanger::Policy => command.arg("p").arg("").arg("").arg(""),
        ModeChanger::Hand(told, [seen, new]) => command.arg("h").arg(told.as_slice()).arg(&seen).arg(&new),
    };
    let command = command.arg(journal_most);
    entry.into_iter().fold(command, |command, (entry, value)| command.arg(entry).arg(value))
}

/// Notes how often an account was pulled; answers as [`DeliveryRates`], or with nothing where there is no
/// account.
pub(crate) fn pulls_add(record: Vec<u8>, times: u64, now_ms: u64, every_ms: u64) -> Command {
    fcall("pulls_add", &[record]).arg(times).arg(now_ms).arg(every_ms)
}

/// Rates of how an account is delivered, as its record knows them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct DeliveryRates {
    pub(crate) mode: Mode,
    /// Whether it was told by hand.
    pub(crate) is_forced: bool,
    pub(crate) posts_per_day: f64,
    pub(crate) pulls_per_day: f64,
    /// Followers at the last fan-out, and how many of them had a home.
    pub(crate) followers: u64,
    pub(crate) delivered: u64,
}

impl DeliveryRates {
    pub(crate) fn parse(reply: &[Reply]) -> Result<Self> {
        let [mode, forced, posts, pulls, followers, delivered] = reply else {
            return Err(unexpected("what a policy asks", reply));
        };
        Ok(Self {
            mode: Mode::from_letter(mode.bytes()?.first().copied().unwrap_or_default()),
            is_forced: !forced.bytes()?.is_empty(),
            posts_per_day: posts.double()?,
            pulls_per_day: pulls.double()?,
            followers: followers.count()?,
            delivered: delivered.count()?,
        })
    }
}

/// A pull mark of an author, as it is written for its readers: drawn anew for every sending.
#[derive(Debug)]
pub(crate) struct PullMarking<'a> {
    /// The beginning that all keys of the bucket have in common.
    pub(crate) key_prefix: &'a [u8],
    pub(crate) author: AccountId,
    pub(crate) mark: Nonce,
    pub(crate) stamp: Nonce,
}

impl PullMarking<'_> {
    fn push(&self, command: Command) -> Command {
        command.arg(self.key_prefix).arg(&self.author.to_bytes()).arg(&self.mark).arg(&self.stamp)
    }

    /// All followers in a piece.
    pub(crate) fn piece(&self, set: Vec<u8>, piece: Vec<u8>, leaf: Option<(u32, u32)>) -> Command {
        self.push(super::sets::leaf_args(fcall("marks_piece", &[set, piece]), leaf))
    }

    /// These accounts, as far as they follow; `marks`: the marks' key of one of them.
    pub(crate) fn accounts(&self, marks: Vec<u8>, accounts: &[AccountId]) -> Command {
        let command = self.push(fcall("marks_add", &[marks]));
        accounts.iter().fold(command, |command, account| command.arg(&account.to_bytes()))
    }
}

/// The outcome of a call for all members of a piece.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum VisitAnswer {
    /// So many were reached, of so many members.
    Done { reached: u64, members: u64 },
    /// The caller's copy of the tree is old; empty: the set is small.
    Tree(Vec<u8>),
}

impl VisitAnswer {
    pub(crate) fn parse(reply: Reply) -> Result<Self> {
        let reply = reply.into_array()?;
        match reply.as_slice() {
            [word, reached, members] if word.bytes()? == b"ok" => {
                Ok(Self::Done { reached: reached.count()?, members: members.count()? })
            }
            [word, tree] if word.bytes()? == b"tree" => Ok(Self::Tree(tree.bytes()?.to_vec())),
            _ => Err(unexpected("a visit of a piece", &reply)),
        }
    }
}
