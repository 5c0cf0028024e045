//! One conditional write to a bucket: how it goes over the wire. What tries it again: `change.rs`.
//!
//! Arguments have one name here and in `lua/write.lua`; a test compares them.

use super::accounts::or_empty;
use super::packed::{PackedNumber, SMALL, pack};
use super::windows::{ReachedLimit, TimeLimits};
use super::{fcall_with, read_nonce, unexpected};
use crate::cluster::{Command, Reply};
use crate::error::Result;
use crate::nonce::Nonce;

/// The accounts that may write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LeastState {
    /// Any account that has a record, a deleted one too: it only takes back.
    Recorded,
    /// An account that is neither deleted nor still being registered.
    There,
    /// An account that is not suspended either.
    Active,
}

/// An expectation of what stands there, or the write is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExpectedValue {
    Anything,
    /// These bytes, and in a hash beside the record what begins with them; `None`: nothing stands there.
    Exactly(Option<Nonce>),
}

impl ExpectedValue {
    fn as_arg(&self) -> &[u8] {
        match self {
            Self::Anything => b"*",
            Self::Exactly(value) => or_empty(value.as_ref()),
        }
    }
}

/// A field of a hash that is compared and changed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cell<'b> {
    pub(crate) field: &'b [u8],
    pub(crate) must_be: ExpectedValue,
    /// Not empty; `None`: it goes.
    pub(crate) becomes: Option<&'b [u8]>,
    /// Fields that the hash must have fewer of before.
    pub(crate) most: Option<u32>,
    /// Bytes that all its values may have together, if this one grows.
    pub(crate) bytes_most: Option<u32>,
}

/// The place of a member of a local set, and what its set may hold.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MemberPlace {
    pub(crate) is_put: bool,
    /// `None`: the set is small.
    pub(crate) leaf: Option<(u32, u32)>,
    pub(crate) piece_most: u32,
    pub(crate) set_most: u32,
}

/// A write to one bucket that is made only if what it was decided by is still so. Its parts are named in the order of
/// the methods below.
#[derive(Debug)]
pub(crate) struct BucketWrite {
    /// The name under which the function is called: a slow log, and tests, tell uses apart by it.
    name: &'static str,
    keys: Command,
    args: Command,
    head: Head,
}

/// The head of a [`BucketWrite`]: flags, and how many of each part follow.
#[derive(Debug, Default)]
struct Head {
    least_state: u8,
    takes_tick: bool,
    only_changes: bool,
    compared: u8,
    fields: u8,
    entries: u8,
    cells: u8,
    limited: bool,
}

impl BucketWrite {
    pub(crate) fn new(name: &'static str, record: &[u8], least_state: LeastState) -> Self {
        let head = Head { least_state: least_state as u8, ..Head::default() };
        Self { name, keys: Command::default().arg(record), args: Command::default(), head }
    }

    /// Has nothing but fields of the record written where no set changes.
    pub(crate) fn only_changes(mut self) -> Self {
        self.head.only_changes = true;
        self
    }

    /// Compares fields of the record.
    pub(crate) fn compare<const N: usize>(mut self, fields: [(&'static str, ExpectedValue); N]) -> Self {
        debug_assert!(self.args.count() == 0, "what is compared comes first");
        for (field, _) in &fields {
            self.args.push(*field);
            self.head.compared += 1;
        }
        fields.iter().for_each(|(_, must_be)| _ = self.args.push(must_be.as_arg()));
        self
    }

    /// Sets a field of the record.
    pub(crate) fn set(mut self, field: &str, value: &[u8]) -> Self {
        debug_assert!(self.head.entries == 0, "fields come before entries");
        self.args.push(field).push(value);
        self.head.fields += 1;
        self
    }

    /// Adds an entry to the journal.
    pub(crate) fn entry(&mut self, entry: &Nonce, value: &[u8]) {
        debug_assert!(self.head.cells == 0, "entries come before cells");
        self.args.push(entry).push(value);
        self.head.entries += 1;
    }

    /// Compares and changes a field of a hash.
    pub(crate) fn cell(&mut self, hash: &[u8], cell: Cell<'_>) {
        let Cell { field, must_be, becomes, most, bytes_most } = cell;
        self.keys.push(hash);
        self.args.push(field).push(must_be.as_arg()).push(becomes.unwrap_or_default());
        for bound in [most, bytes_most] {
            match bound {
                Some(most) => self.args.push(most),
                None => self.args.push(""),
            };
        }
        self.head.cells += 1;
    }

    /// Puts a member into a set, or removes it. `keys`: the set, and its piece; the set again while it is small.
    /// `count_field`: the record's for the size of the set, or ''.
    pub(crate) fn member(
        &mut self,
        keys: &[Vec<u8>; 2],
        place: MemberPlace,
        member: &[u8],
        count_field: &str,
    ) {
        self.keys.push(&keys[0]).push(&keys[1]);
        self.args.push(&pack::<14, _>(place.numbers())).push(member).push(count_field);
        self.head.takes_tick |= place.is_put;
    }

    /// Counts what is done against limits, unless it is so already. Comes last.
    pub(crate) fn limits(&mut self, limits: &TimeLimits) {
        if !limits.limits.is_empty() {
            self.args.push(&limits.as_arg());
            self.head.limited = true;
        }
    }

    /// The call. `clock` and `journal` (with its most entries) are the bucket's; `home`: its floor is told.
    pub(crate) fn command(
        mut self,
        caller_ms: u64,
        clock: impl FnOnce() -> Vec<u8>,
        home: Option<Vec<u8>>,
        (journal, journal_most): (impl FnOnce() -> Vec<u8>, u32),
    ) -> Command {
        // A key that isn't needed isn't named: in a slot that moves one that is not there holds the call up.
        let Head { takes_tick, entries, .. } = self.head;
        let further = [takes_tick.then(clock), home, (entries > 0).then(journal)];
        let tells_floor = further[1].is_some();
        debug_assert!(takes_tick || !tells_floor, "the tick is told with the floor");
        further.iter().flatten().for_each(|key| _ = self.keys.push(key));
        let mut command = fcall_with(self.name, &self.keys);
        command.push(&pack::<19, _>(self.head.numbers(caller_ms, journal_most, tells_floor)));
        command.extend(&self.args);
        command
    }

    /// The call, of a write to the record alone.
    pub(crate) fn alone(self) -> Command {
        self.command(0, Vec::new, None, (Vec::new, 0))
    }
}

impl Head {
    fn numbers(&self, caller_ms: u64, journal_most: u32, tells_floor: bool) -> [PackedNumber; 11] {
        [
            ("caller_ms", 6, caller_ms),
            ("journal_most", 4, journal_most.into()),
            ("least_state", 1, self.least_state.into()),
            ("takes_tick", 1, self.takes_tick.into()),
            ("tells_floor", 1, tells_floor.into()),
            ("only_changes", 1, self.only_changes.into()),
            ("compared", 1, self.compared.into()),
            ("fields", 1, self.fields.into()),
            ("entries", 1, self.entries.into()),
            ("cells", 1, self.cells.into()),
            ("limited", 1, self.limited.into()),
        ]
    }
}

impl MemberPlace {
    fn numbers(&self) -> [PackedNumber; 5] {
        let (piece, depth) = self.leaf.unwrap_or(SMALL);
        [
            ("is_put", 1, self.is_put.into()),
            ("piece", 4, piece.into()),
            ("depth", 1, depth.into()),
            ("piece_most", 4, self.piece_most.into()),
            ("set_most", 4, self.set_most.into()),
        ]
    }
}

/// The outcome of a [`BucketWrite`].
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum WriteAnswer {
    Made(MadeWrite),
    Refused(WriteRefusal),
}

/// A write that was made.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct MadeWrite {
    /// Whether a set changed; with other writes, whether anything was written.
    pub(crate) has_changed: bool,
    /// If the home's floor was asked for.
    pub(crate) told: Option<FloorAnswer>,
}

/// The answer to a write that asked for the home's floor.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct FloorAnswer {
    /// The tick that is the score of what was put.
    pub(crate) since: u64,
    /// `None`: the home isn't whole.
    pub(crate) floor: Option<u64>,
    /// What was compared, as it was until then.
    pub(crate) before: Vec<Option<Nonce>>,
}

/// The reason why a write was not made. Nothing was written then.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum WriteRefusal {
    /// There is no record.
    NoRecord,
    /// The account's state (its letter) forbids it.
    State(u8),
    /// Something is another by now than the caller saw.
    Changed,
    /// The journal is full.
    Busy,
    /// The hash of the cell with that number has as many fields as it may have.
    NoRoom(usize),
    /// The values of the hash of the cell with that number would have more bytes than they may have.
    TooLarge(usize),
    /// What is done counts against a limit that is reached: which one, and how often the account may.
    TooOften(ReachedLimit),
    /// The set of the membership with that number has as many members as it may have: so many.
    Limit(usize, u32),
    /// The piece of the membership with that number must be split.
    PieceFull(usize),
    /// The caller's copy of a tree is old: of which membership, and what it is.
    Tree(usize, Vec<u8>),
}

impl WriteAnswer {
    pub(crate) fn parse(reply: Reply) -> Result<Self> {
        let reply = reply.into_array()?;
        let number = |n: &Reply| n.count().map(|n| usize::try_from(n).unwrap_or(usize::MAX));
        let [word, rest @ ..] = reply.as_slice() else {
            return Err(unexpected("a conditional write", &reply));
        };
        Ok(Self::Refused(match (word.bytes()?, rest) {
            (b"ok", [changed, told @ ..]) => {
                return Ok(Self::Made(MadeWrite {
                    has_changed: changed.int()? == 1,
                    told: FloorAnswer::parse(told)?,
                }));
            }
            (b"gone", []) => WriteRefusal::NoRecord,
            (b"state", [state]) => WriteRefusal::State(state.bytes()?.first().copied().unwrap_or_default()),
            (b"changed", []) => WriteRefusal::Changed,
            (b"busy", []) => WriteRefusal::Busy,
            (b"often", [number, most, parts]) => {
                WriteRefusal::TooOften(ReachedLimit::parse([number, most, parts])?)
            }
            (b"room", [cell]) => WriteRefusal::NoRoom(number(cell)?),
            (b"bytes", [cell]) => WriteRefusal::TooLarge(number(cell)?),
            (b"limit", [of, most]) => {
                WriteRefusal::Limit(number(of)?, u32::try_from(most.count()?).unwrap_or(u32::MAX))
            }
            (b"full", [of]) => WriteRefusal::PieceFull(number(of)?),
            (b"tree", [of, tree]) => WriteRefusal::Tree(number(of)?, tree.bytes()?.to_vec()),
            _ => return Err(unexpected("a conditional write", &reply)),
        }))
    }
}

impl FloorAnswer {
    fn parse(told: &[Reply]) -> Result<Option<Self>> {
        let [since, floor, before @ ..] = told else { return Ok(None) };
        let nonce = |reply: &Reply| match reply.is_nil() || reply.bytes()?.is_empty() {
            true => Ok(None),
            false => read_nonce(reply).map(Some),
        };
        Ok(Some(Self {
            since: since.count()?,
            floor: nonce(floor)?.map(u64::from_be_bytes),
            before: before.iter().map(nonce).collect::<Result<_>>()?,
        }))
    }
}

#[cfg(test)]
mod tests;
