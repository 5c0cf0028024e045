//! Adding and removing: many members of many local sets at once, each call one piece.

use std::collections::HashSet;

use super::local::{LocalKey, Spot, Trees};
use super::tree::{DEPTH_MAX, SetState, hash};
use super::{Sets, ended_together};
use crate::cluster::{Reply, Request, TouchedServers};
use crate::error::{Error, ErrorKind, Result};
use crate::functions::{LastRemoval, SetAdd, SetAddAnswer, SetRemove, SetRemoveAnswer};
use crate::inbox::Notice;
use crate::keys::Place;
use crate::nonce::Nonce;

/// Members in one call: a function goes through all of them at once.
const CALL_MAX: usize = 64;
/// Members of one piece in one round: it has no more, and takes no more before it is split.
const PIECE_ROUND_MAX: usize = 256;

/// The outcome of a change of a set.
#[derive(Debug, Clone, Default)]
pub struct Change {
    /// Members that were added, or removed. Of a change that was sent twice only what the last sending did.
    pub members: u64,
    /// Members that the set has now; of one that is spread, the largest part that was added to. Of a removal 0.
    pub len: u64,
    /// Of a removal: the highest score of a member that stays, because its score isn't below the one that was named.
    pub kept: Option<f64>,
    /// The servers that acknowledged it: fence them to have it on their replicas too.
    pub touched: TouchedServers,
}

/// One member to add or to remove, in stored form.
#[derive(Debug, Clone)]
pub(crate) struct MemberChange {
    /// Which of the sets.
    pub(crate) set: usize,
    pub(crate) member: Vec<u8>,
    pub(crate) hash: u32,
    /// Its score; of a removal: only if its score is below.
    pub(crate) score: Option<f64>,
}

impl MemberChange {
    pub(crate) fn new(set: usize, member: &[u8], score: Option<f64>) -> Self {
        Self { set, member: member.into(), hash: hash(member), score }
    }
}

/// A guard: what must be so in each bucket, or nothing is added.
#[derive(Debug, Clone, Copy)]
pub(crate) enum AddGuard<'a> {
    /// Nobody else copies the set.
    Copier(&'a Nonce),
    /// Nothing was taken off lists there since (H126).
    LastRemoval(LastRemoval),
}

/// On what terms something is added, and who is told.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct AddTerms<'a> {
    pub(crate) guard: Option<AddGuard<'a>>,
    /// The tenant's decision that this follows from, if it does.
    pub(crate) decision: Option<u32>,
    /// The inbox of an account in the set's bucket, and what that is told of the one member if it is new.
    pub(crate) told: Option<(&'a [u8], Notice)>,
}

/// Options of adding.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct AddOptions<'a> {
    /// An option of ZADD, or nothing.
    pub(crate) option: &'static str,
    pub(crate) terms: AddTerms<'a>,
    /// The record of the account whose followers they are, if these lie in one place.
    pub(crate) record: Option<&'a [u8]>,
    /// Whose followers they are, if what is written is to be noted.
    pub(crate) noted: Option<&'a [u8]>,
}

/// Options of removing.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RemoveOptions<'a> {
    /// The record of the account whose followers they are, if these lie in one place.
    pub(crate) record: Option<&'a [u8]>,
    /// The tenant's decision that this follows from, if it does.
    pub(crate) decision: Option<u32>,
    /// Whether who adds is told that something was taken off.
    pub(crate) is_told: bool,
}

/// The reason why a whole set took no change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SetRefusal {
    /// It is frozen while somebody copies it.
    Spreading,
    /// It is spread: its members are elsewhere.
    Spread,
    /// Somebody else is copying now.
    Guarded,
    /// Its bucket knows another decision of the tenant than the change follows from.
    Undecided,
}

/// Progress of a change: what is still to be done, and what came of the rest.
struct ChangeProgress {
    trees: Trees,
    open: Vec<MemberChange>,
    /// Pieces that are full: the next call to them may split.
    full: HashSet<(usize, Spot)>,
    members: u64,
    largest: u64,
    kept: Option<f64>,
    refused: Option<SetRefusal>,
}

impl ChangeProgress {
    fn new(trees: Trees, open: Vec<MemberChange>) -> Self {
        Self { trees, open, full: HashSet::new(), members: 0, largest: 0, kept: None, refused: None }
    }
}

impl Sets {
    /// Adds all items. Also tells how many members the largest of the changed sets has.
    pub(crate) async fn add_items(
        &self,
        sets: &[LocalKey],
        items: Vec<MemberChange>,
        how: AddOptions<'_>,
        touched: &mut TouchedServers,
    ) -> Result<Result<(u64, u64), SetRefusal>> {
        let mut progress = ChangeProgress::new(self.trees_of(sets), items);
        self.rounds(
            &mut progress,
            touched,
            |spot, items, may_split| Ok(self.add_request(sets, spot, items, how, may_split)),
            |progress, spot, items, reply| self.read_added(sets, progress, spot, items, reply),
        )
        .await?;
        Ok(progress.refused.map_or(Ok((progress.members, progress.largest)), Err))
    }

    /// Removes all items whose score is below the one they name, or that name none. Gives how many, and the highest
    /// score of those that stay.
    pub(crate) async fn remove_items(
        &self,
        sets: &[LocalKey],
        items: Vec<MemberChange>,
        how: RemoveOptions<'_>,
        touched: &mut TouchedServers,
    ) -> Result<Result<(u64, Option<f64>), SetRefusal>> {
        let mut progress = ChangeProgress::new(self.trees_of(sets), items);
        self.rounds(
            &mut progress,
            touched,
            |spot, items, _| Ok(self.remove_request(sets, spot, items, how)),
            |progress, _, items, reply| match SetRemoveAnswer::parse(reply)? {
                SetRemoveAnswer::Done { removed, kept } => {
                    progress.members += removed;
                    progress.kept = [progress.kept, kept].into_iter().flatten().reduce(f64::max);
                    Ok(())
                }
                SetRemoveAnswer::Tree(tree) => self.relearn(sets, progress, items, &tree),
            },
        )
        .await?;
        Ok(progress.refused.map_or(Ok((progress.members, progress.kept)), Err))
    }

    /// Groups what is open by piece, sends a call for each, reads what came of it; until nothing is open.
    async fn rounds(
        &self,
        progress: &mut ChangeProgress,
        touched: &mut TouchedServers,
        request: impl Fn(Spot, &[MemberChange], bool) -> Result<Request>,
        mut read: impl FnMut(&mut ChangeProgress, Spot, Vec<MemberChange>, Reply) -> Result<()>,
    ) -> Result<()> {
        for _ in 0..super::local::ROUNDS_MAX {
            if progress.open.is_empty() || progress.refused.is_some() {
                return Ok(());
            }
            let (calls, held) = calls(&progress.trees, std::mem::take(&mut progress.open));
            progress.open = held;
            let requests = calls.iter().map(|(spot, items)| {
                let may_split = progress.full.contains(&(items[0].set, *spot));
                request(*spot, items, may_split)
            });
            let answers = self.router().run(requests.collect::<Result<_>>()?).await;
            progress.full.clear();
            // All are read, also behind one that failed: what they tell of their trees is of use to the next caller.
            let ended = calls.into_iter().zip(answers).map(|((spot, items), answer)| {
                answer.and_then(|answer| {
                    touched.add(&answer);
                    read(progress, spot, items, answer.ok()?)
                })
            });
            ended_together(ended)?;
        }
        Err(super::local::overtaken())
    }

    fn add_request(
        &self,
        sets: &[LocalKey],
        spot: Spot,
        items: &[MemberChange],
        how: AddOptions<'_>,
        may_split: bool,
    ) -> Request {
        let set = &sets[items[0].set];
        let may_split = may_split && spot.leaf().depth < DEPTH_MAX;
        let piece = |piece| self.keys().piece(set.place, set.bucket, &set.name, piece);
        let mut keys = vec![self.key(set)];
        if may_split {
            keys.extend([piece(spot.leaf().piece), piece(spot.leaf().partner())]);
        } else if spot != Spot::Small {
            keys.push(piece(spot.leaf().piece));
        }
        let AddTerms { guard, decision, told } = how.terms;
        let guard = guard.map(|guard| match guard {
            AddGuard::Copier(nonce) => (self.keys().guard(set.bucket, &set.name), nonce.to_vec()),
            AddGuard::LastRemoval(last) => (self.keys().last_removal(set.bucket), last.stored()),
        });
        let add = SetAdd {
            keys,
            leaf: spot.numbers(),
            piece_limit: self.piece_limit(),
            option: how.option,
            guard,
            may_split,
            record: how.record.map(Vec::from),
            noted: how.noted.map(|of| (self.keys().notes(set.bucket), of, self.router().now_ms())),
            decision,
            told: told.map(|(inbox, told)| (inbox.to_vec(), told, self.router().now_ms())),
        };
        let pairs = items.iter().map(|item| (item.score.unwrap_or_default(), item.member.as_slice()));
        Request::write(self.slot(set), add.command(pairs))
    }

    fn read_added(
        &self,
        sets: &[LocalKey],
        progress: &mut ChangeProgress,
        spot: Spot,
        mut items: Vec<MemberChange>,
        reply: Reply,
    ) -> Result<()> {
        let set = items[0].set;
        let mut done = |progress: &mut ChangeProgress, pairs: usize, new, total: u64| {
            progress.members += new;
            progress.largest = progress.largest.max(total);
            let rest = items.split_off(pairs.min(items.len()));
            progress.open.extend(rest);
        };
        match SetAddAnswer::parse(reply)? {
            SetAddAnswer::Done { pairs, new, total } => done(progress, pairs, new, total),
            SetAddAnswer::Full { pairs, new, total } => {
                done(progress, pairs, new, total);
                progress.full.insert((set, spot));
            }
            SetAddAnswer::Split { pairs, new, total, tree } => {
                done(progress, pairs, new, total);
                progress.trees[set] = self.learn(&sets[set], &tree)?;
            }
            SetAddAnswer::Guarded => progress.refused = Some(SetRefusal::Guarded),
            SetAddAnswer::Undecided => progress.refused = Some(SetRefusal::Undecided),
            SetAddAnswer::Tree(tree) => self.relearn(sets, progress, items, &tree)?,
        }
        Ok(())
    }

    /// Our copy of a tree was old: the items start over by the new one, unless the set takes no changes now.
    fn relearn(
        &self,
        sets: &[LocalKey],
        progress: &mut ChangeProgress,
        items: Vec<MemberChange>,
        tree: &[u8],
    ) -> Result<()> {
        let number = items[0].set;
        let set = &sets[number];
        progress.trees[number] = self.learn(set, tree)?;
        match progress.trees[number].as_deref().map(|tree| tree.state) {
            None | Some(SetState::Local) => progress.open.extend(items),
            Some(_) if set.place == Place::Part => {
                return Err(Error::internal(format!(
                    "{set:?} is a part of a set that was spread over the buckets, and is being spread itself"
                )));
            }
            Some(SetState::Spreading | SetState::Copied) => progress.refused = Some(SetRefusal::Spreading),
            Some(SetState::Spread) => progress.refused = Some(SetRefusal::Spread),
        }
        Ok(())
    }

    fn remove_request(
        &self,
        sets: &[LocalKey],
        spot: Spot,
        items: &[MemberChange],
        how: RemoveOptions<'_>,
    ) -> Request {
        let set = &sets[items[0].set];
        let mut keys = vec![self.key(set)];
        if spot != Spot::Small {
            keys.push(self.key_at(set, spot));
        }
        let RemoveOptions { record, decision, is_told } = how;
        let told = is_told.then(|| (self.keys().last_removal(set.bucket), self.router().now_ms()));
        let remove = SetRemove { keys, leaf: spot.numbers(), record: record.map(Vec::from), decision, told };
        let members = items.iter().map(|item| (item.score, item.member.as_slice()));
        Request::write(self.slot(set), remove.command(members))
    }
}

/// Groups items by the piece that they belong to, a call's worth at most; and what a piece cannot take in one round.
fn calls(trees: &Trees, open: Vec<MemberChange>) -> (Vec<(Spot, Vec<MemberChange>)>, Vec<MemberChange>) {
    let spot = |item: &MemberChange| Spot::of(trees[item.set].as_deref(), item.hash);
    let mut placed: Vec<(Spot, MemberChange)> = open.into_iter().map(|item| (spot(&item), item)).collect();
    // Stable: members keep their order inside a piece.
    placed.sort_by_key(|(spot, item)| (item.set, *spot));
    let mut calls: Vec<(Spot, Vec<MemberChange>)> = Vec::new();
    let mut held = Vec::new();
    let mut of_piece = 0;
    for (spot, item) in placed {
        let is_same = calls.last().is_some_and(|(s, items)| *s == spot && items[0].set == item.set);
        of_piece = if is_same { of_piece + 1 } else { 1 };
        if of_piece > PIECE_ROUND_MAX {
            held.push(item);
            continue;
        }
        match calls.last_mut() {
            Some((s, items)) if *s == spot && items[0].set == item.set && items.len() < CALL_MAX => {
                items.push(item)
            }
            _ => calls.push((spot, vec![item])),
        }
    }
    (calls, held)
}

/// An error for a set that a change could not reach within the deadline.
pub(crate) fn still_spreading(set: &LocalKey) -> Error {
    Error::new(
        ErrorKind::Unavailable,
        format!(
            "set {} is being spread and takes no changes until that is finished; try again",
            set.name.escape_ascii()
        ),
    )
}
