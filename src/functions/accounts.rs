//! Accounts: records, what they follow, their pull marks.

use super::homes::HomeFit;
use super::inbox::push_told;
use super::sets::leaf_args;
use super::{fcall, fcall_ro, unexpected};
use crate::cluster::{Command, Reply};
use crate::error::{Error, Result};
use crate::ids::AccountId;
use crate::inbox::Notice;
use crate::nonce::Nonce;

/// Creates an account's record; answers 1, or 0 if there is one.
pub(crate) fn account_create<'f>(
    record: Vec<u8>,
    fields: impl IntoIterator<Item = (&'f str, Vec<u8>)>,
) -> Command {
    with_fields(fcall("account_create", &[record]), fields)
}

/// The outcome of a write that compares what the caller saw.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CompareAnswer {
    Done,
    /// It is something else by now.
    Changed,
    NoAccount,
    JournalFull,
}

impl CompareAnswer {
    pub(crate) fn parse(reply: Reply) -> Result<Self> {
        let reply = reply.into_array()?;
        let word = reply.first().ok_or_else(|| unexpected("a comparing function", &reply))?;
        match word.bytes()? {
            b"ok" => Ok(Self::Done),
            b"stamp" => Ok(Self::Changed),
            b"gone" => Ok(Self::NoAccount),
            b"busy" => Ok(Self::JournalFull),
            _ => Err(unexpected("a comparing function", &reply)),
        }
    }
}

fn with_fields<'f>(command: Command, fields: impl IntoIterator<Item = (&'f str, Vec<u8>)>) -> Command {
    fields.into_iter().fold(command, |command, (field, value)| command.arg(field).arg(&value))
}

/// Notes on which day an account has read.
pub(crate) fn account_read(record: Vec<u8>, days: Vec<u8>, account: AccountId, day: u32) -> Command {
    fcall("account_read", &[record, days]).arg(&account.to_bytes()).arg(day)
}

pub(super) fn or_empty(mark: Option<&Nonce>) -> &[u8] {
    mark.map_or(&[], |mark| mark.as_slice())
}

/// Reads 8 bytes.
pub(crate) fn read_nonce(reply: &Reply) -> Result<Nonce> {
    let bytes = reply.bytes()?;
    bytes.try_into().map_err(|_| Error::internal(format!("{} bytes where 8 are expected", bytes.len())))
}

/// Reads 8 bytes that may be missing.
pub(crate) fn maybe_nonce(reply: &Reply) -> Result<Option<Nonce>> {
    if reply.is_nil() { Ok(None) } else { read_nonce(reply).map(Some) }
}

/// Reads 8 bytes, or nothing.
fn some_nonce(reply: &Reply) -> Result<Option<Nonce>> {
    if reply.bytes()?.is_empty() { Ok(None) } else { read_nonce(reply).map(Some) }
}

/// Whether one account follows another.
#[derive(Debug)]
pub(crate) struct PairLook {
    /// Marks, home, clock, following, its piece (following again while it is small).
    pub(crate) keys: [Vec<u8>; 5],
    pub(crate) leaf: Option<(u32, u32)>,
}

/// The answer to a [`PairLook`].
#[derive(Debug, PartialEq)]
pub(crate) enum PairAnswer {
    /// Since when, the pull mark, and the floor of the home if it is whole.
    Following {
        since: f64,
        mark: Option<Nonce>,
        floor: Option<u64>,
    },
    /// Not, and this tick is above those of all follows there ever were.
    Not(u64),
    Tree(Vec<u8>),
}

impl PairLook {
    /// `above`: what the tick is to be above, besides all follows that the bucket knows of.
    pub(crate) fn command(self, author: AccountId, now_ms: u64, above: u64) -> Command {
        let command = leaf_args(fcall("pair_look", &self.keys), self.leaf).arg(&author.to_bytes());
        command.arg(now_ms).arg(above)
    }
}

impl PairAnswer {
    pub(crate) fn parse(reply: Reply) -> Result<Self> {
        let reply = reply.into_array()?;
        Ok(match reply.as_slice() {
            [word, since, of, floor] if word.bytes()? == b"following" => Self::Following {
                since: since.double()?,
                mark: some_nonce(of)?,
                floor: some_nonce(floor)?.map(u64::from_be_bytes),
            },
            [word, tick] if word.bytes()? == b"not" => Self::Not(tick.count()?),
            [word, tree] if word.bytes()? == b"tree" => Self::Tree(tree.bytes()?.to_vec()),
            _ => return Err(unexpected("pair_look", &reply)),
        })
    }
}

fn id(reply: &Reply) -> Result<u64> {
    Ok(u64::from_be_bytes(read_nonce(reply)?))
}

/// An author's mode and newest posts, down to a floor.
pub(crate) fn author_look(record: Vec<u8>, outbox: Vec<u8>, floor: Option<u64>, most: u32) -> Command {
    let floor = floor.map(u64::to_be_bytes);
    fcall_ro("author_look", &[record, outbox]).arg(or_empty(floor.as_ref())).arg(most)
}

/// An author, as it is seen.
#[derive(Debug)]
pub(crate) struct AuthorSeen {
    pub(crate) mode: u8,
    /// The id above which the ids are all.
    pub(crate) reach: u64,
    /// Newest first.
    pub(crate) ids: Vec<u64>,
}

impl AuthorSeen {
    pub(crate) fn parse(reply: Reply) -> Result<Self> {
        Self::of(&reply.into_array()?)
    }

    fn of(reply: &[Reply]) -> Result<Self> {
        let [mode, reach, ids @ ..] = reply else {
            return Err(unexpected("author_look", reply));
        };
        let mode = mode.bytes()?.first().copied().unwrap_or(b'P');
        Ok(Self { mode, reach: id(reach)?, ids: ids.iter().map(id).collect::<Result<_>>()? })
    }
}

/// The author's side of a follow, all at once.
#[derive(Debug)]
pub(crate) struct Join {
    /// Record, outbox, followers, their piece (followers again while it is small), blocks, who waits, who was approved,
    /// the bucket's notes, the author's inbox.
    pub(crate) keys: [Vec<u8>; 9],
    pub(crate) leaf: Option<(u32, u32)>,
    pub(crate) floor: Option<u64>,
    pub(crate) ids_most: u32,
    pub(crate) piece_limit: u32,
    /// Members from which the set is to be spread.
    pub(crate) spread_at: u64,
    pub(crate) reader: AccountId,
    pub(crate) since: f64,
    pub(crate) author: AccountId,
    pub(crate) now_ms: u64,
    /// What the author is told if the edge is new.
    pub(crate) told: Option<Notice>,
}

impl Join {
    pub(crate) fn command(self) -> Command {
        let floor = self.floor.map(u64::to_be_bytes);
        let command = fcall("join", &self.keys).arg(or_empty(floor.as_ref())).arg(self.ids_most);
        let mut command = leaf_args(command, self.leaf).arg(self.piece_limit).arg(self.spread_at);
        super::sets::push_score(&mut command, self.since);
        let command = command.arg(&self.reader.to_bytes()).arg(&self.author.to_bytes()).arg(self.now_ms);
        push_told(command, self.told)
    }
}

/// The outcome of a [`Join`].
#[derive(Debug)]
pub(crate) enum JoinAnswer {
    /// The edge is there, and this was seen after that.
    Seen(AuthorSeen),
    /// Our copy of the tree is old.
    Tree(Vec<u8>),
    /// The piece must be split.
    PieceFull,
    /// It is not that simple.
    Apart,
}

impl JoinAnswer {
    pub(crate) fn parse(reply: Reply) -> Result<Self> {
        let reply = reply.into_array()?;
        Ok(match reply.as_slice() {
            [word] if word.bytes()? == b"apart" => Self::Apart,
            [word] if word.bytes()? == b"full" => Self::PieceFull,
            [word, tree] if word.bytes()? == b"tree" => Self::Tree(tree.bytes()?.to_vec()),
            seen => Self::Seen(AuthorSeen::of(seen)?),
        })
    }
}

/// The keys of a set's piece, and where it is.
pub(crate) type SettleEdge = ([Vec<u8>; 2], Option<(u32, u32)>);

/// Takes a pull mark away, if the home holds what it stood for.
#[derive(Debug)]
pub(crate) struct Settle {
    /// Record, marks, home, journal.
    pub(crate) keys: [Vec<u8>; 4],
    /// Of an author whose followers are spread: its followers in this bucket, the piece, and where that is.
    pub(crate) edge: Option<SettleEdge>,
    pub(crate) reader: AccountId,
    pub(crate) author: AccountId,
    pub(crate) mark: Nonce,
    pub(crate) new_stamp: Nonce,
    pub(crate) since: f64,
    pub(crate) may_drop: bool,
    pub(crate) reach: u64,
    /// The journal's entry that is done with that.
    pub(crate) entry: Option<Nonce>,
    pub(crate) fit: HomeFit,
}

/// The outcome of a [`Settle`].
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum SettleAnswer {
    /// The mark is gone; the stamps until then.
    Done(Option<(Nonce, Nonce)>),
    /// It was another one, or none.
    Changed,
    /// The edge is missing.
    NoEdge,
    /// The home is being filled, with this nonce.
    Busy(Nonce),
    /// The ids don't reach: the mark stays.
    Left,
    Tree(Vec<u8>),
}

impl Settle {
    /// `ids`: newest first.
    pub(crate) fn command(self, ids: &[u64]) -> Command {
        let (edge_keys, leaf) = self.edge.map_or((None, None), |(keys, leaf)| (Some(keys), leaf));
        let keys: Vec<Vec<u8>> = self.keys.into_iter().chain(edge_keys.into_iter().flatten()).collect();
        let mut command =
            fcall("settle", &keys).arg(&self.author.to_bytes()).arg(&self.mark).arg(&self.new_stamp);
        super::sets::push_score(&mut command, self.since);
        let command = leaf_args(command, leaf)
            .arg(if self.may_drop { "1" } else { "" })
            .arg(&self.reach.to_be_bytes())
            .arg(&self.reader.to_bytes())
            .arg(or_empty(self.entry.as_ref()));
        ids.iter().fold(self.fit.push(command), |command, id| command.arg(&id.to_be_bytes()))
    }
}

impl SettleAnswer {
    /// Its name in metrics.
    pub(crate) fn label(&self) -> &'static str {
        match self {
            Self::Done(_) => "done",
            Self::Busy(_) => "busy",
            Self::Left => "left",
            Self::Changed | Self::NoEdge | Self::Tree(_) => "changed",
        }
    }

    pub(crate) fn parse(reply: Reply) -> Result<Self> {
        let reply = reply.into_array()?;
        Ok(match reply.as_slice() {
            [word] => match word.bytes()? {
                b"changed" => Self::Changed,
                b"edge" => Self::NoEdge,
                b"left" => Self::Left,
                _ => return Err(unexpected("settle", &reply)),
            },
            [word, graph, marks] if word.bytes()? == b"ok" => {
                Self::Done(some_nonce(graph)?.zip(some_nonce(marks)?))
            }
            [word, nonce] if word.bytes()? == b"busy" => Self::Busy(read_nonce(nonce)?),
            [word, tree] if word.bytes()? == b"tree" => Self::Tree(tree.bytes()?.to_vec()),
            _ => return Err(unexpected("settle", &reply)),
        })
    }
}

/// Puts another mark in the place of one; a new one stays new, unless it is named. `keys`: marks; with a stamp: record.
/// Answers 1; 0: it is not the one that was named, or that stamp stands there by now (H157).
pub(crate) fn mark_renew(
    keys: &[Vec<u8>],
    author: AccountId,
    mark: &Nonce,
    seen: Option<&Nonce>,
    stamp: Option<&Nonce>,
) -> Command {
    let command = fcall("mark_renew", keys).arg(&author.to_bytes()).arg(mark);
    command.arg(or_empty(seen)).arg(or_empty(stamp))
}

/// Lists who waits for an account's answer, notes that, and tells the account of a request that is new. `keys`: who
/// waits, the bucket's notes, the account's inbox and record.
pub(crate) fn waiting_set(
    keys: &[Vec<u8>; 4],
    (reader, author): (AccountId, AccountId),
    request: &Nonce,
    is_told: bool,
    now_ms: u64,
) -> Command {
    let command = fcall("waiting_set", keys).arg(&reader.to_bytes()).arg(request);
    let command = command.arg(&author.to_bytes()).arg(now_ms);
    push_told(command, is_told.then(|| Notice::of_request(reader, *request)))
}

/// Drops a field of a hash if it still has that value.
pub(crate) fn field_drop(hash: Vec<u8>, field: &[u8], value: &[u8]) -> Command {
    fcall("field_drop", &[hash]).arg(field).arg(value)
}

/// Drops keys of a deleted account, and adds journal entries; `keys`: its record and journal first. `all`: and what its
/// record tells. Answers 1; 0: it is not deleted; -1: the journal is full.
pub(crate) fn account_bury(
    keys: &[Vec<u8>],
    all: bool,
    journal_most: u32,
    entries: &[(Nonce, Vec<u8>)],
) -> Command {
    let command = fcall("account_bury", keys).arg(if all { "1" } else { "" }).arg(journal_most);
    entries.iter().fold(command, |command, (entry, value)| command.arg(entry).arg(value))
}
