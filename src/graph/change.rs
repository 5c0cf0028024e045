//! Applying a change to an account's sets: read, decide, compare-and-set; again if something came between.

use std::sync::Arc;

use futures::future::BoxFuture;

use super::complete::Follow;
use super::jobs::FollowHint;
use super::new_mark::draw_new;
use crate::account::AccountState;
use crate::cluster::{Command, Epoch, Request};
use crate::error::{Error, ErrorKind, Result};
use crate::functions::{Changed, Edge, EdgeOp, GraphChange, read_nonce};
use crate::graph::Graph;
use crate::ids::AccountId;
use crate::journal::{Entry, Hint, Task, accept, journal_full};
use crate::nonce::{Nonce, draw};
use crate::reader::ReaderState;
use crate::reader::is_new_mark;
use crate::sharded::{PieceAt, SortedSet};
use crate::tenant::{Tenant, changed_always, no_account};

/// Tries of one change; each begins anew after another change of the same account, or a split, came between.
const TRIES_MAX: usize = 64;

/// One edge that is to change.
pub(super) struct Wanted {
    pub(super) set: SortedSet<AccountId>,
    pub(super) op: EdgeOp,
    pub(super) member: AccountId,
    /// Most members of the set.
    pub(super) limit: u32,
    /// Where the record keeps the size of the set, or ''.
    pub(super) count_field: &'static str,
    /// For messages.
    pub(super) what: &'static str,
}

/// What one change is to do, all at once.
#[derive(Default)]
pub(super) struct Intent {
    pub(super) edges: Vec<Wanted>,
    /// Accounts that get another pull mark, and whether they have not been asked yet if they are locked.
    pub(super) marked: Vec<(AccountId, bool)>,
    /// Accounts whose pull mark goes, and what it must be now.
    pub(super) unmarked: Vec<(AccountId, Option<Nonce>)>,
    /// Whose request changes, what it must be now, and what it becomes.
    pub(super) request: Option<(AccountId, Option<Nonce>, Option<Nonce>)>,
    /// What is to be looked at afterwards.
    pub(super) tasks: Vec<Task>,
}

/// Applies what was decided by what this instance remembers of `account`. `None`: that is not so any more, or nobody knows
/// whether it was done.
pub(super) async fn apply_known(
    graph: &Arc<Graph>,
    account: AccountId,
    known: &ReaderState,
    intent: Intent,
) -> Result<Option<Epoch>> {
    match attempt(graph, account, known.stamps().0, intent).await {
        Err(e) if e.kind() == ErrorKind::Unknown => Ok(None),
        outcome => outcome,
    }
}

/// Applies what `decide` wants of `account`, unless it wants nothing any more. Tells who acknowledged it; if nothing
/// was left to do, who said so: an earlier sending may have done it, and may not be on replicas yet.
pub(super) async fn apply<'a>(
    graph: &Arc<Graph>,
    account: AccountId,
    decide: impl Fn() -> BoxFuture<'a, Result<Option<Intent>>> + Send,
) -> Result<Epoch> {
    let mut last = None;
    for _ in 0..TRIES_MAX {
        // First the stamp, then what the decision is based on.
        let (seen, epoch) = graph_stamp(graph, account).await?;
        let Some(intent) = decide().await? else { return Ok(epoch) };
        match attempt(graph, account, seen, intent).await {
            Ok(Some(epoch)) => return Ok(epoch),
            Ok(None) => {}
            // It may have run: the next look at the truth tells.
            Err(e) if e.kind() == ErrorKind::Unknown => last = Some(e),
            Err(e) => return Err(e),
        }
    }
    Err(last.unwrap_or_else(|| changed_always(account)))
}

/// An account's graph stamp, and who told it.
pub(crate) async fn graph_stamp(tenant: &Tenant, account: AccountId) -> Result<(Nonce, Epoch)> {
    let command = Command::new("HGET").arg(&tenant.keys().account(account)).arg("g");
    let answer = tenant.router().ask(Request::read(tenant.slot(account), command)).await?;
    let epoch = answer.epoch.clone();
    let stamp = answer.ok()?;
    if stamp.is_nil() { Err(no_account(account)) } else { Ok((read_nonce(&stamp)?, epoch)) }
}

/// One try. `None`: what it was based on has changed.
async fn attempt(
    graph: &Arc<Graph>,
    account: AccountId,
    seen: Nonce,
    intent: Intent,
) -> Result<Option<Epoch>> {
    let bucket = graph.bucket(account);
    let mut entries: Vec<Entry> =
        intent.tasks.iter().map(|task| Entry::new(bucket, graph.instance, *task)).collect();
    let pieces: Vec<PieceAt> = intent.edges.iter().map(|w| w.set.piece_of(&w.member)).collect();
    let change = graph_change(graph, account, seen, &intent, &entries, &pieces);
    let (stamps, marks) = (change.stamps, change.marks.clone());
    let command = change.command(graph.router().now_ms());
    let answer = graph.once(graph.slot(account), command).await?;
    let epoch = answer.epoch.clone();
    match Changed::parse(answer.ok()?)? {
        Changed::Done(made) => {
            if let ([(author, Some(mark), _)], [entry]) = (&marks[..], &mut entries[..]) {
                #[expect(clippy::cast_precision_loss, reason = "stamps are below 2^53")]
                let since = made.since as f64;
                let follow = Follow { reader: account, since, mark: *mark, floor: made.floor };
                entry.hint = Some(Hint::new(FollowHint { follow, said: epoch.clone() }));
                if let Some(marks_before) = made.marks_before {
                    let then = |state: &ReaderState| state.followed(*author, stamps, is_new_mark(mark));
                    graph.readers.renew_state(account, (seen, marks_before), then);
                }
            }
            entries.into_iter().for_each(|entry| drop(accept(&graph.journal, entry)));
            return Ok(Some(epoch));
        }
        Changed::Stamp(_) | Changed::Request => {}
        Changed::Tree(n, tree) => drop(graph.sets().piece_heirs(nth(&pieces, n)?, &tree)?),
        Changed::PieceFull(n) => graph.sets().split_piece(nth(&pieces, n)?).await?,
        Changed::NoAccount => return Err(no_account(account)),
        Changed::State(state) => {
            let state = AccountState::from_letter(state);
            return Err(match state {
                AccountState::Deleted | AccountState::Unconfirmed => no_account(account),
                _ => Error::invalid(format!(
                    "account {account} is {state:?}: it cannot follow, mute, block or hide"
                )),
            });
        }
        Changed::Limit(n) => {
            let wanted = nth(&intent.edges, n)?;
            return Err(Error::invalid(format!(
                "account {account} {} {} already",
                wanted.what, wanted.limit
            )));
        }
        Changed::Requests => {
            let most = graph.settings.requests_max;
            return Err(Error::invalid(format!("account {account} waits for {most} answers already")));
        }
        Changed::JournalFull => return Err(journal_full(graph)),
    }
    Ok(None)
}

fn nth<T>(items: &[T], n: usize) -> Result<&T> {
    items.get(n).ok_or_else(|| Error::internal(format!("a change has no edge number {n}")))
}

fn graph_change(
    tenant: &Tenant,
    account: AccountId,
    seen: Nonce,
    intent: &Intent,
    entries: &[Entry],
    pieces: &[PieceAt],
) -> GraphChange {
    let keys = tenant.keys();
    let bucket = tenant.bucket(account);
    let edge = |(wanted, piece): (&Wanted, &PieceAt)| Edge {
        op: wanted.op,
        keys: tenant.sets().piece_keys(piece),
        leaf: piece.leaf(),
        piece_limit: tenant.sets().piece_limit(),
        set_limit: wanted.limit,
        count_field: wanted.count_field,
        member: wanted.member,
    };
    let mark = |is_new: bool| if is_new { draw_new() } else { draw() };
    let marked = intent.marked.iter().map(|(author, is_new)| (*author, Some(mark(*is_new)), None));
    GraphChange {
        keys: [
            keys.account(account),
            keys.marks(account),
            keys.requested(account),
            keys.journal(bucket),
            keys.clock(bucket),
            keys.home(account),
        ],
        seen,
        stamps: [draw(), draw()],
        journal_most: tenant.settings.journal_max,
        entries: entries.iter().map(|entry| (entry.id, entry.stored())).collect(),
        marks: marked.chain(intent.unmarked.iter().map(|(author, seen)| (*author, None, *seen))).collect(),
        request: intent.request,
        requests_max: tenant.settings.requests_max,
        edges: intent.edges.iter().zip(pieces).map(edge).collect(),
    }
}
