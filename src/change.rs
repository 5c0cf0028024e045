//! One conditional write to an account's bucket: what a caller decided by what it saw is written all at once if it is
//! still so, with the tasks that follow from it; else the caller looks and decides again. Here live the tries of that,
//! and what is done about each refusal; who is asked what, and what may be written, is the callers' affair.
//!
//! Invariant kept here: a task is accepted only once its entry stands in the journal, together with what it is for.

use std::sync::Arc;

use crate::account::AccountState;
#[cfg(feature = "registration")]
use crate::bucket::Bucket;
use crate::cluster::{Answer, Command, Epoch};
use crate::error::{Error, ErrorCode, ErrorKind, Result};
use crate::functions::{
    BucketWrite, Cell, ExpectedValue, MadeWrite, MemberPlace, TimeLimits, WriteAnswer, WriteRefusal,
};
use crate::ids::{AccountId, PostId};
use crate::journal::{Journal, JournalEntry, Task, accept, journal_full};
use crate::member::Member;
use crate::sharded::{PiecePlace, SortedSet};
use crate::tenant::{Tenant, changed_always, no_account};

/// Tries of one change between others of the same account.
const TRIES_MAX: usize = 16;
/// Tries of one change of a post.
const TRIES_OF_POST_MAX: usize = 64;
/// Tries of one change where a set may have to be split between them, once for each level of its tree.
const TRIES_BETWEEN_SPLITS_MAX: usize = 64;

/// A bound on what an account has, and the words for it: "account 7 *likes* 100 *posts* already".
#[derive(Debug, Clone, Copy)]
pub(crate) struct SetBound {
    pub(crate) most: u32,
    pub(crate) verb: &'static str,
    pub(crate) noun: &'static str,
}

impl SetBound {
    pub(crate) fn reached(self, account: AccountId) -> Error {
        let Self { most, verb, noun } = self;
        Error::new(
            ErrorCode::LimitReached,
            format!("account {account} {verb} {most}{noun} already, which is the limit"),
        )
    }

    fn exceeded(self, account: AccountId) -> Error {
        let Self { most, verb, noun } = self;
        Error::new(
            ErrorCode::LimitReached,
            format!("account {account} {verb} {most}{noun} at most, and would have more"),
        )
    }
}

/// The bounds on a hash in which a cell changes: on how many fields it has, where this adds one, and on the bytes of
/// all values together.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct CellBounds {
    pub(crate) fields: Option<SetBound>,
    pub(crate) bytes: Option<SetBound>,
}

impl From<Option<SetBound>> for CellBounds {
    fn from(fields: Option<SetBound>) -> Self {
        Self { fields, bytes: None }
    }
}

/// The tries of one change: between two of them the caller looks and decides again.
///
/// Once an answer was lost, no error of a later try is told but that (H152): a read that fails has seen nothing, and
/// whatever a try was refused for, the lost one may have been made before that. Only an answer that says what is ends
/// as it would have: what it is based on is another than what the lost one compares, so that runs no more.
#[derive(Debug)]
pub(crate) struct Tries {
    what: (&'static str, u64),
    left: usize,
    lost: Option<Error>,
}

impl Tries {
    pub(crate) fn of(account: AccountId) -> Self {
        Self { what: ("account", account.get()), left: TRIES_MAX, lost: None }
    }

    /// More of them, for what changes sets.
    pub(crate) fn between_splits(account: AccountId) -> Self {
        Self { left: TRIES_BETWEEN_SPLITS_MAX, ..Self::of(account) }
    }

    pub(crate) fn of_post(post: PostId) -> Self {
        Self { what: ("post", post.get()), left: TRIES_OF_POST_MAX, lost: None }
    }

    pub(crate) fn of_report(report: u64) -> Self {
        Self { what: ("report", report), left: TRIES_MAX, lost: None }
    }

    /// Of a ticket, which an error names by its bucket alone.
    #[cfg(feature = "registration")]
    pub(crate) fn of_ticket(bucket: Bucket) -> Self {
        Self { what: ("a ticket in bucket", bucket.index().into()), left: TRIES_MAX, lost: None }
    }

    /// Takes the outcome of one try. `None`: whoever tries is to look and decide again.
    pub(crate) fn ended<T>(&mut self, once: Result<Option<T>>) -> Result<Option<T>> {
        self.left = self.left.saturating_sub(1);
        let (what, id) = self.what;
        let told = match once {
            Ok(None) if self.left == 0 => changed_always(ErrorKind::Conflict, format_args!("{what} {id}")),
            Err(e) => e,
            done => return done,
        };
        Err(self.lost.take().unwrap_or(told))
    }

    /// Sends a command whose random bytes must not be written twice. `None`: no answer came, and it may have run.
    pub(crate) async fn send(
        &mut self,
        tenant: &Tenant,
        slot: u16,
        command: Command,
    ) -> Result<Option<Answer>> {
        match tenant.once(slot, command).await {
            Err(e) if e.kind() == ErrorKind::Unknown => {
                self.lost = Some(e);
                Ok(None)
            }
            answer => answer.map(Some),
        }
    }

    /// Whether one may have been made, because its answer was lost: the next look at the truth tells.
    pub(crate) fn may_be_made(&self) -> bool {
        self.lost.is_some()
    }
}

/// A change that was made.
#[derive(Debug)]
pub(crate) struct MadeChange {
    /// Who acknowledged it.
    pub(crate) epoch: Epoch,
    pub(crate) written: MadeWrite,
}

/// A conditional write to an account's bucket, for one try: random bytes and entries are drawn anew for the next. Its
/// parts are named in the order of the methods below.
#[derive(Debug)]
pub(crate) struct BucketChange<'c> {
    journal: &'c Arc<Journal>,
    account: AccountId,
    write: BucketWrite,
    unable: &'static str,
    tells_unconfirmed: bool,
    entries: Vec<JournalEntry>,
    cell_bounds: Vec<CellBounds>,
    pieces: Vec<(PiecePlace, SetBound)>,
    limits: TimeLimits,
    home: Option<Vec<u8>>,
}

impl<'c> BucketChange<'c> {
    /// A change by such a write. `unable`: what an account that may not does not do, for an error: "cannot *follow*".
    pub(crate) fn new(
        journal: &'c Arc<Journal>,
        account: AccountId,
        write: BucketWrite,
        unable: &'static str,
    ) -> Self {
        let (entries, cell_bounds, pieces, home) = (Vec::new(), Vec::new(), Vec::new(), None);
        let (tells_unconfirmed, limits) = (false, TimeLimits::default());
        Self {
            journal,
            account,
            write,
            unable,
            tells_unconfirmed,
            entries,
            cell_bounds,
            pieces,
            limits,
            home,
        }
    }

    /// Says of an account that is still being registered that it may not; else there is no such account yet.
    pub(crate) fn tell_unconfirmed(mut self) -> Self {
        self.tells_unconfirmed = true;
        self
    }

    /// Has something looked at afterwards. The caller has [reserved](crate::journal::reserve) a place for it.
    pub(crate) fn task(mut self, task: impl Into<Task>) -> Self {
        let entry =
            JournalEntry::new(self.journal.tenant.bucket(self.account), self.journal.tenant.instance, task);
        self.write.entry(&entry.id, &entry.stored());
        self.entries.push(entry);
        self
    }

    /// Compares and changes a field of a hash of the account.
    pub(crate) fn cell(
        mut self,
        hash: &[u8],
        field: &[u8],
        (must_be, becomes): (ExpectedValue, Option<&[u8]>),
        bounds: impl Into<CellBounds>,
    ) -> Self {
        let bounds = bounds.into();
        let [most, bytes_most] = [bounds.fields, bounds.bytes].map(|bound| bound.map(|bound| bound.most));
        self.write.cell(hash, Cell { field, must_be, becomes, most, bytes_most });
        self.cell_bounds.push(bounds);
        self
    }

    /// Puts a member into a set that stays local, with a new tick of the bucket, or removes it. `count_field`: the
    /// record's for the set's size, or ''.
    pub(crate) fn member<M: Member>(
        mut self,
        (set, member): (&SortedSet<M>, &M),
        is_put: bool,
        bound: SetBound,
        count_field: &'static str,
    ) -> Self {
        let (sets, piece) = (self.journal.tenant.sets(), set.piece_of(member));
        let place =
            MemberPlace { is_put, leaf: piece.leaf(), piece_most: sets.piece_limit(), set_most: bound.most };
        self.write.member(&sets.piece_keys(&piece), place, member.to_bytes().as_ref(), count_field);
        self.pieces.push((piece, bound));
        self
    }

    /// Counts the change against limits, unless it finds itself made. Comes last.
    pub(crate) fn limits(mut self, limits: TimeLimits) -> Self {
        self.write.limits(&limits);
        self.limits = limits;
        self
    }

    /// Has the floor of the account's home told, with what was compared.
    pub(crate) fn tell_floor(mut self) -> Self {
        self.home = Some(self.journal.tenant.keys().home(self.account));
        self
    }

    /// Tries it. `None`: something is another by now than the caller saw, or nobody knows whether it was made.
    pub(crate) async fn write(self, tries: &mut Tries) -> Result<Option<MadeChange>> {
        self.write_then(tries, |_, _| {}).await
    }

    /// Tries the write; `then` may add to the entries of what was made, before they are run.
    pub(crate) async fn write_then(
        self,
        tries: &mut Tries,
        then: impl FnOnce(&MadeChange, &mut [JournalEntry]),
    ) -> Result<Option<MadeChange>> {
        let Self { journal, account, unable, tells_unconfirmed, mut entries, .. } = self;
        let Self { cell_bounds, pieces, limits, .. } = self;
        let tenant = &journal.tenant;
        let (keys, bucket, most) = (tenant.keys(), tenant.bucket(account), tenant.settings.journal_max);
        let now_ms = tenant.router().now_ms();
        let command =
            self.write.command(now_ms, || keys.clock(bucket), self.home, (|| keys.journal(bucket), most));
        let Some(answer) = tries.send(tenant, tenant.slot(account), command).await? else {
            return Ok(None);
        };
        let epoch = answer.epoch.clone();
        let refusal = match WriteAnswer::parse(answer.ok()?)? {
            WriteAnswer::Refused(refusal) => refusal,
            WriteAnswer::Made(written) => {
                let made = MadeChange { epoch, written };
                then(&made, &mut entries);
                if made.written.has_changed {
                    entries.into_iter().for_each(|entry| drop(accept(journal, entry)));
                }
                return Ok(Some(made));
            }
        };
        match refusal {
            WriteRefusal::Changed => {}
            WriteRefusal::Tree(n, tree) => drop(tenant.sets().piece_heirs(&nth(&pieces, n)?.0, &tree)?),
            WriteRefusal::PieceFull(n) => tenant.sets().split_piece(&nth(&pieces, n)?.0).await?,
            WriteRefusal::NoRecord => return Err(no_account(account)),
            WriteRefusal::State(state) => {
                return Err(match AccountState::from_letter(state) {
                    AccountState::Deleted => no_account(account),
                    AccountState::Unconfirmed if !tells_unconfirmed => no_account(account),
                    state => Error::new(
                        ErrorCode::NotActive,
                        format!("account {account} is {state}: it cannot {unable}"),
                    ),
                });
            }
            WriteRefusal::Limit(n, most) => {
                return Err(SetBound { most, ..nth(&pieces, n)?.1 }.reached(account));
            }
            WriteRefusal::NoRoom(n) => {
                let bound = nth(&cell_bounds, n)?.fields;
                return Err(bound.ok_or_else(unbounded)?.reached(account));
            }
            WriteRefusal::TooLarge(n) => {
                let bound = nth(&cell_bounds, n)?.bytes;
                return Err(bound.ok_or_else(unbounded)?.exceeded(account));
            }
            WriteRefusal::TooOften(reached) => {
                return Err(tenant.refusal(account, &limits, reached, now_ms));
            }
            WriteRefusal::Busy => return Err(journal_full(tenant)),
        }
        Ok(None)
    }
}

fn nth<T>(items: &[T], n: usize) -> Result<&T> {
    items.get(n).ok_or_else(|| Error::internal(format!("a change has no part number {n}")))
}

fn unbounded() -> Error {
    Error::internal("a write was refused by a bound that it does not name")
}
