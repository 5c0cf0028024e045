//! Applying a change to an account's sets: read, decide, compare-and-set; again if something came between.

use std::sync::Arc;

use futures::future::BoxFuture;

use super::complete::Follow;
use super::jobs::FollowHint;
use super::new_mark::draw_new;
use crate::change::{BucketChange, SetBound, Tries};
use crate::cluster::{Command, Epoch, Request};
use crate::error::Result;
use crate::fields::RecordField;
use crate::functions::{BucketWrite, ExpectedValue, LeastState, read_nonce};
use crate::graph::Graph;
use crate::ids::AccountId;
use crate::journal::{Hint, Task};
use crate::limits::AccountLimit;
use crate::nonce::{Nonce, draw};
use crate::reader::{ReaderState, is_new_mark};
use crate::sharded::SortedSet;
use crate::tenant::{Tenant, no_account};

/// One edge that is to change.
pub(super) struct WantedEdge {
    pub(super) set: SortedSet<AccountId>,
    pub(super) is_put: bool,
    pub(super) member: AccountId,
    pub(super) bound: SetBound,
    /// Where the record keeps the size of the set, or ''.
    pub(super) count_field: &'static str,
}

/// A field of one of an account's own hashes that is to change.
pub(super) struct OwnCell {
    pub(super) hash: Vec<u8>,
    /// Which other account it says something of.
    pub(super) of: AccountId,
    /// What it must be now; `None`: whatever it is.
    pub(super) is_now: Option<Nonce>,
    /// Not empty; `None`: it goes.
    pub(super) becomes: Option<Vec<u8>>,
    /// How many the hash may have, if this adds one.
    pub(super) bound: Option<SetBound>,
}

impl OwnCell {
    /// A field that goes, whatever it says.
    pub(super) fn gone(hash: Vec<u8>, of: AccountId) -> Self {
        Self { hash, of, is_now: None, becomes: None, bound: None }
    }
}

/// The intent of one change, all at once.
#[derive(Default)]
pub(super) struct ChangeIntent {
    pub(super) edges: Vec<WantedEdge>,
    /// Accounts that get another pull mark, and whether they have not been asked yet if they are locked.
    pub(super) marked: Vec<(AccountId, bool)>,
    /// Other fields of the account's own hashes.
    pub(super) cells: Vec<OwnCell>,
    /// Whose request changes, what it must be now, and what it becomes.
    pub(super) request: Option<(AccountId, Option<Nonce>, Option<Nonce>)>,
    /// What is to be looked at afterwards.
    pub(super) tasks: Vec<Task>,
    /// Whether it counts as a follow: one that its account has begun.
    pub(super) counts: bool,
}

impl ChangeIntent {
    /// Adds this change of a field, instead of any other of it.
    pub(super) fn cell(mut self, cell: OwnCell) -> Self {
        self.cells.retain(|other| other.of != cell.of || other.hash != cell.hash);
        self.cells.push(cell);
        self
    }
}

/// Applies what was decided by what this instance remembers of `account`. `None`: that is not so any more, or nobody
/// knows whether it was done.
pub(super) async fn apply_known(
    graph: &Arc<Graph>,
    account: AccountId,
    known: &ReaderState,
    intent: ChangeIntent,
    tries: &mut Tries,
) -> Result<Option<Epoch>> {
    attempt(graph, account, known.stamps().0, intent, tries).await
}

/// Applies what `decide` wants of `account`, unless it wants nothing any more. Tells who acknowledged it; if nothing
/// was left to do, who said so: an earlier sending may have done it, and may not be on replicas yet.
pub(super) async fn apply<'a>(
    graph: &Arc<Graph>,
    account: AccountId,
    decide: impl Fn() -> BoxFuture<'a, Result<Option<ChangeIntent>>> + Send,
) -> Result<Epoch> {
    apply_after(graph, account, &mut Tries::between_splits(account), decide).await
}

/// Makes a change after tries that came to nothing.
pub(super) async fn apply_after<'a>(
    graph: &Arc<Graph>,
    account: AccountId,
    tries: &mut Tries,
    decide: impl Fn() -> BoxFuture<'a, Result<Option<ChangeIntent>>> + Send,
) -> Result<Epoch> {
    loop {
        let once = async {
            // H21: first the stamp, then what the decision is based on: what changes that in between renews the stamp.
            let (seen, epoch) = graph_stamp(&graph.tenant, account).await?;
            let Some(intent) = decide().await? else { return Ok(Some(epoch)) };
            attempt(graph, account, seen, intent, tries).await
        };
        let once = once.await;
        if let Some(epoch) = tries.ended(once)? {
            return Ok(epoch);
        }
    }
}

/// An account's graph stamp, and who told it.
pub(crate) async fn graph_stamp(tenant: &Tenant, account: AccountId) -> Result<(Nonce, Epoch)> {
    let command = Command::new("HGET").arg(&tenant.keys().account(account)).arg(RecordField::GRAPH_STAMP);
    let answer = tenant.router().ask(Request::read(tenant.slot(account), command)).await?;
    let epoch = answer.epoch.clone();
    let stamp = answer.ok()?;
    if stamp.is_nil() { Err(no_account(account)) } else { Ok((read_nonce(&stamp)?, epoch)) }
}

/// One try. `None`: what it was based on has changed, or nobody knows whether it was made.
async fn attempt(
    graph: &Arc<Graph>,
    account: AccountId,
    seen: Nonce,
    intent: ChangeIntent,
    tries: &mut Tries,
) -> Result<Option<Epoch>> {
    // H39c: anew for each try, and its marks too: a copy that comes late must not look like what was written since.
    let stamps = [draw(), draw()];
    let marked: Vec<_> = intent.marked.iter().map(|(author, is_new)| (*author, mark(*is_new))).collect();
    let change = bucket_change(graph, account, (seen, stamps), &intent, &marked);
    let made = change.write_then(tries, |made, entries| {
        let ([(author, mark)], Some(told), [entry]) = (&marked[..], &made.written.told, entries) else {
            return;
        };
        #[expect(clippy::cast_precision_loss, reason = "ticks are below 2^53")]
        let since = told.since as f64;
        let follow = Follow { reader: account, since, mark: *mark, floor: told.floor };
        entry.hint = Some(Hint::new(FollowHint { follow, said: made.epoch.clone() }));
        // From the stamps that the change found: of what others have changed before it nothing is known.
        if let [_, Some(marks_before)] = told.before[..] {
            let then = |state: &ReaderState| state.followed(*author, stamps, is_new_mark(mark));
            graph.readers.renew_state(account, (seen, marks_before), then);
        }
    });
    Ok(made.await?.map(|made| made.epoch))
}

fn mark(is_new: bool) -> Nonce {
    if is_new { draw_new() } else { draw() }
}

fn bucket_change<'c>(
    graph: &'c Graph,
    account: AccountId,
    (seen, [stamp, marks]): (Nonce, [Nonce; 2]),
    intent: &ChangeIntent,
    marked: &[(AccountId, Nonce)],
) -> BucketChange<'c> {
    let keys = graph.tenant.keys();
    let asks = intent.request.is_some_and(|(_, _, becomes)| becomes.is_some());
    let says = intent.cells.iter().any(|cell| cell.becomes.is_some());
    // Whoever is suspended or deleted only takes back: an account that is being deleted must come to an end.
    let is_more = asks || says || intent.edges.iter().any(|wanted| wanted.is_put);
    let least_state = if is_more { LeastState::Active } else { LeastState::Recorded };
    let must_be =
        |seen: Option<Nonce>| seen.map_or(ExpectedValue::Anything, |seen| ExpectedValue::Exactly(Some(seen)));
    // H21: the graph stamp is compared, so a copy that comes late changes nothing. H50: the marks stamp isn't:
    // completions renew it all the time, and follows would fail because of that.
    let write = BucketWrite::new("change", &keys.account(account), least_state)
        .compare([
            (RecordField::GRAPH_STAMP, ExpectedValue::Exactly(Some(seen))),
            (RecordField::MARKS_STAMP, ExpectedValue::Anything),
        ])
        .set(RecordField::GRAPH_STAMP, &stamp)
        .set(RecordField::MARKS_STAMP, &marks);
    let mut change = BucketChange::new(&graph.journal, account, write, "follow, mute, block, hide or remark");
    for task in &intent.tasks {
        change = change.task(*task);
    }
    let hash = keys.marks(account);
    for (author, mark) in marked {
        change = change.cell(&hash, &author.to_bytes(), (ExpectedValue::Anything, Some(mark)), None);
    }
    for OwnCell { hash, of, is_now, becomes, bound } in &intent.cells {
        change = change.cell(hash, &of.to_bytes(), (must_be(*is_now), becomes.as_deref()), *bound);
    }
    if let Some((author, seen, becomes)) = intent.request {
        let bound =
            SetBound { most: graph.tenant.settings.requests_max, verb: "waits for", noun: " answers" };
        let bound = becomes.is_some().then_some(bound);
        let becomes = becomes.as_ref().map(Nonce::as_slice);
        change = change.cell(&keys.requested(account), &author.to_bytes(), (must_be(seen), becomes), bound);
    }
    for WantedEdge { set, is_put, member, bound, count_field } in &intent.edges {
        change = change.member((set, member), *is_put, *bound, count_field);
    }
    if intent.counts {
        change = change.limits(graph.tenant.limits_of(&[(AccountLimit::Follows, 1)]));
    }
    if marked.is_empty() { change } else { change.tell_floor() }
}
