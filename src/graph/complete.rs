//! *Completion*: taking pull marks of an author away, once pushing works: the follower's edge is there, and its home
//! holds what was posted before. For one follow, or for many followers of an author that is pushed again.

mod decide;

use self::decide::{UnmarkFacts, UnmarkStep, above};
use crate::cluster::{Batch, Request, TouchedServers};
use crate::error::{Error, Result};
use crate::functions::{self, AuthorSeen, Join, JoinAnswer, PairAnswer, PairLook, Settle, SettleAnswer};
use crate::graph::Graph;
use crate::ids::AccountId;
use crate::inbox::Notice;
use crate::meters;
use crate::nonce::{Nonce, draw};
use crate::reader::ReaderState;
use crate::sharded::{PiecePlace, SortedSet};
use crate::tenant::Tenant;

/// Ids that a completion reads of an outbox.
const IDS_MAX: u32 = 128;
/// Tries to do an author's side at once: its tree is learned, a full piece is split, and once more for who was faster.
const JOINS_MAX: usize = 3;
/// Rounds in which a tree that has grown is followed.
const ROUNDS_MAX: usize = 16;

/// A follow with a mark that may be taken away.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Follow {
    pub(crate) reader: AccountId,
    pub(crate) since: f64,
    pub(crate) mark: Nonce,
    /// The id down to which the reader's home is complete, if there is one and it isn't being filled.
    pub(crate) floor: Option<u64>,
}

/// The outcome of taking the pull marks of an author away.
#[derive(Debug)]
pub(crate) enum CompletionOutcome {
    AuthorGone,
    /// The author is not pushed (any more): the marks are right.
    Pulled,
    /// What became of each mark.
    Settled(Vec<(AccountId, SettleAnswer)>),
}

/// Looks whether these accounts follow the author, and with which marks. Ticks of those who don't are above `above`
/// too.
pub(crate) async fn look_at(
    tenant: &Tenant,
    author: AccountId,
    readers: &[AccountId],
    above: u64,
    touched: &mut TouchedServers,
) -> Result<Vec<(AccountId, PairAnswer)>> {
    let keys = tenant.keys();
    let mut looks = Vec::with_capacity(readers.len());
    let mut open = readers.to_vec();
    for _ in 0..ROUNDS_MAX {
        let mut batch = Batch::with_capacity(open.len());
        let mut pieces = Vec::with_capacity(open.len());
        for reader in &open {
            let piece = tenant.following(*reader)?.piece_of(&author);
            let [set, place] = tenant.sets().piece_keys(&piece);
            let clock = keys.clock(tenant.bucket(*reader));
            let of = [keys.marks(*reader), keys.home(*reader), clock, set, place];
            let look = PairLook { keys: of, leaf: piece.leaf() };
            // H13: whoever doesn't follow tells a tick of its own bucket: no other clock says what is older.
            let command = look.command(author, tenant.router().now_ms(), above);
            batch.push(Request::write(tenant.slot(*reader), command));
            pieces.push(piece);
        }
        let answers = tenant.run_all(batch).await?;
        let mut again = Vec::new();
        for ((reader, piece), answer) in open.into_iter().zip(pieces).zip(answers) {
            touched.add(&answer);
            match PairAnswer::parse(answer.ok()?)? {
                PairAnswer::Tree(tree) => {
                    tenant.sets().piece_heirs(&piece, &tree)?;
                    again.push(reader);
                }
                seen => looks.push((reader, seen)),
            }
        }
        if again.is_empty() {
            return Ok(looks);
        }
        open = again;
    }
    Err(Error::unavailable(
        "the set of whom a follower follows was split at each of several looks; try again",
    ))
}

/// Takes marks of one author away, as far as the homes hold what they stood for. `have_edges`: the followers' edges
/// were just read.
pub(crate) async fn complete(
    graph: &Graph,
    author: AccountId,
    follows: &[Follow],
    (may_drop, have_edges): (bool, bool),
    touched: &mut TouchedServers,
) -> Result<CompletionOutcome> {
    let followers = graph.tenant.followers(author)?;
    let facts = UnmarkFacts::new(have_edges && followers.is_known_spread());
    let last = LastStep { followers: &followers, may_drop, entry: None };
    unmark(graph, author, follows, facts, &last, touched).await
}

/// Completes one follow, all of whose author's side is simple: one call there. What had it looked at (`entry`, in
/// the reader's journal) is struck in the last call. `None`: it is not that simple, and nothing was done.
pub(crate) async fn complete_at_once(
    graph: &Graph,
    author: AccountId,
    follow: &Follow,
    may_drop: bool,
    entry: Nonce,
    touched: &mut TouchedServers,
) -> Result<Option<CompletionOutcome>> {
    let tenant = &graph.tenant;
    let followers = tenant.followers(author)?;
    for _ in 0..JOINS_MAX {
        // Then its edge belongs into the follower's own slot, and is another call.
        if followers.is_known_spread() {
            return Ok(None);
        }
        let piece = followers.piece_of(&follow.reader);
        let command = join(tenant, author, follow, &piece)?.command();
        let answer = tenant.router().ask(Request::write(tenant.slot(author), command)).await?;
        touched.add(&answer);
        match JoinAnswer::parse(answer.ok()?)? {
            JoinAnswer::Seen(seen) => {
                let last = LastStep { followers: &followers, may_drop, entry: Some(entry) };
                let (follows, facts) = (std::slice::from_ref(follow), UnmarkFacts::joined(seen));
                return unmark(graph, author, follows, facts, &last, touched).await.map(Some);
            }
            JoinAnswer::Tree(tree) => drop(tenant.sets().piece_heirs(&piece, &tree)?),
            JoinAnswer::PieceFull => tenant.sets().split_piece(&piece).await?,
            JoinAnswer::Apart => return Ok(None),
        }
    }
    Ok(None)
}

fn join(tenant: &Tenant, author: AccountId, follow: &Follow, piece: &PiecePlace) -> Result<Join> {
    let (keys, sets) = (tenant.keys(), tenant.sets());
    let [set, place] = sets.piece_keys(piece);
    Ok(Join {
        keys: [
            keys.account(author),
            keys.outbox(author),
            set,
            place,
            tenant.blocks(author)?.root_key(),
            keys.waiting(author),
            keys.approved(author),
            keys.notes(tenant.bucket(author)),
            keys.inbox(author),
        ],
        leaf: piece.leaf(),
        floor: follow.floor,
        ids_most: IDS_MAX,
        piece_limit: sets.piece_limit(),
        spread_at: sets.spread_at(),
        reader: follow.reader,
        since: follow.since,
        author,
        now_ms: tenant.router().now_ms(),
        told: tenant.settings.keeps_notifications.then(|| Notice::of_follow(follow.reader, follow.since)),
    })
}

/// Facts for the last step of a completion.
struct LastStep<'a> {
    followers: &'a SortedSet<AccountId>,
    may_drop: bool,
    /// What is done with it.
    entry: Option<Nonce>,
}

/// Goes from step to step, from those of the author's side that are done.
async fn unmark(
    graph: &Graph,
    author: AccountId,
    follows: &[Follow],
    mut facts: UnmarkFacts,
    last: &LastStep<'_>,
    touched: &mut TouchedServers,
) -> Result<CompletionOutcome> {
    let tenant = &graph.tenant;
    loop {
        match facts.step() {
            UnmarkStep::WriteEdges => {
                let edges: Vec<_> = follows.iter().map(|follow| (follow.reader, follow.since)).collect();
                touched.extend(&last.followers.add_greater(&edges).await?.touched);
                facts.are_written = true;
            }
            UnmarkStep::AskAuthor => {
                let deepest = follows.iter().filter_map(|follow| follow.floor).min();
                let of = (tenant.keys().account(author), tenant.keys().outbox(author));
                let command = functions::author_look(of.0, of.1, deepest, IDS_MAX);
                let answer = tenant.router().ask(Request::read(tenant.slot(author), command)).await?;
                touched.add(&answer);
                facts.seen = Some(AuthorSeen::parse(answer.ok()?)?);
            }
            UnmarkStep::Fence => {
                tenant.router().fence(touched).await?;
                facts.lasts = true;
            }
            UnmarkStep::AuthorGone => return Ok(CompletionOutcome::AuthorGone),
            UnmarkStep::Leave => {
                follows.iter().for_each(|_| meters::completion("pulled"));
                return Ok(CompletionOutcome::Pulled);
            }
            UnmarkStep::Settle(seen) => {
                let is_left = |follow: &&Follow| facts.leaves(follow.floor, last.may_drop);
                let (left, open) = follows.iter().partition(is_left);
                return settle(graph, author, (left, open), seen, last, touched)
                    .await
                    .map(CompletionOutcome::Settled);
            }
        }
    }
}

/// The last step. `left`: those whose marks stay.
async fn settle(
    graph: &Graph,
    author: AccountId,
    (left, mut open): (Vec<&Follow>, Vec<&Follow>),
    seen: &AuthorSeen,
    last: &LastStep<'_>,
    touched: &mut TouchedServers,
) -> Result<Vec<(AccountId, SettleAnswer)>> {
    let tenant = &graph.tenant;
    let keys = tenant.keys();
    let &LastStep { followers, may_drop, entry } = last;
    let mut settled: Vec<(AccountId, SettleAnswer)> =
        left.into_iter().map(|follow| (follow.reader, SettleAnswer::Left)).collect();
    settled.iter().for_each(|(_, outcome)| meters::completion(outcome.label()));
    for _ in 0..ROUNDS_MAX {
        let is_spread = followers.is_known_spread();
        let mut batch = Batch::with_capacity(open.len());
        let mut asked = Vec::with_capacity(open.len());
        for follow in &open {
            let (reader, new_stamp) = (follow.reader, draw());
            let piece = is_spread.then(|| followers.part_piece_of(&reader));
            let settle = Settle {
                keys: [
                    keys.account(reader),
                    keys.marks(reader),
                    keys.home(reader),
                    keys.journal(tenant.bucket(reader)),
                ],
                edge: piece.as_ref().map(|piece| (tenant.sets().piece_keys(piece), piece.leaf())),
                reader,
                author,
                mark: follow.mark,
                new_stamp,
                since: follow.since,
                may_drop,
                reach: seen.reach,
                entry,
                fit: tenant.fit(),
            };
            let command = settle.command(above(&seen.ids, follow.floor));
            // H39c: never sent again as it is: what it draws would be written twice.
            batch.push(Request::write(tenant.slot(reader), command).once());
            asked.push((piece, new_stamp));
        }
        let answers = tenant.run_all(batch).await?;
        let mut again = Vec::new();
        for ((follow, (piece, new_stamp)), answer) in open.into_iter().zip(asked).zip(answers) {
            touched.add(&answer);
            match (SettleAnswer::parse(answer.ok()?)?, piece) {
                (SettleAnswer::Tree(tree), Some(piece)) => {
                    tenant.sets().piece_heirs(&piece, &tree)?;
                    again.push(follow);
                }
                (SettleAnswer::Tree(_), None) => {
                    return Err(Error::internal("settle named a tree that it wasn't given"));
                }
                (outcome, _) => {
                    if let SettleAnswer::Done(Some(stamps)) = outcome {
                        let then = |state: &ReaderState| state.completed(author, new_stamp);
                        graph.readers.renew_state(follow.reader, stamps, then);
                    }
                    meters::completion(outcome.label());
                    settled.push((follow.reader, outcome));
                }
            }
        }
        if again.is_empty() {
            return Ok(settled);
        }
        open = again;
    }
    Err(Error::unavailable(format!(
        "the followers of account {author} were split at each of several looks; try again"
    )))
}
