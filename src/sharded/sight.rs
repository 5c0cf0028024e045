//! All that is stored of a local set, as it lies there, whatever its tree says: for who looks for what is out of place.

use super::local::{LocalKey, Spot};
use super::page::ScoredMember;
use super::set::read_scored;
use super::tree::{SetState, Tree, hash};
use super::{Member, Sets, SortedSet};
use crate::cluster::{Batch, Command, Request, TouchedServers};
use crate::error::Result;
use crate::functions::{self, SetRemove, SetRemoveAnswer};
use crate::keys::Place;

/// Pieces read in one batch.
const PIECES_AT_ONCE: usize = 64;
/// State and bits of a tree stand around its count and its nonce.
const BITS_AT: usize = 16;

/// A local set as it is stored.
#[derive(Debug)]
pub(crate) struct Sight {
    /// What stands at its first key; `None`: the set is one sorted set, or nothing.
    pub(crate) stored: Option<Vec<u8>>,
    tree: Option<Tree>,
    /// What its pieces hold, members that belong elsewhere included.
    pub(crate) pieces: Vec<(Spot, Vec<ScoredMember>)>,
}

impl Sight {
    /// The state of the set, as its record says; a small set is local.
    pub(crate) fn state(&self) -> SetState {
        self.tree.as_ref().map_or(SetState::Local, |tree| tree.state)
    }

    /// Whether it is spread, and pieces from before are known still.
    pub(crate) fn has_leftovers(&self) -> bool {
        self.tree.as_ref().is_some_and(|tree| tree.state == SetState::Spread && tree.has_pieces())
    }

    /// Whether the count that the tree keeps is another one than what was read. Pieces may have changed meanwhile.
    pub(crate) fn seems_miscounted(&self) -> bool {
        let Some(stored) = self.stored.as_ref().filter(|_| self.state() == SetState::Local) else {
            return false;
        };
        let told = stored[1..8].iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
        told != self.pieces.iter().map(|(_, members)| members.len() as u64).sum::<u64>()
    }

    /// Its members, with where they lie, and whether they belong into that piece.
    pub(crate) fn members(&self) -> impl Iterator<Item = (Spot, &ScoredMember, bool)> {
        self.pieces.iter().flat_map(|(spot, members)| {
            members.iter().map(|entry| (*spot, entry, spot.leaf().holds(hash(&entry.member))))
        })
    }
}

impl Sets {
    /// Reads a local set as it is stored. Not at one moment: what it seems to show is to be looked at again.
    pub(crate) async fn sight(&self, set: &LocalKey) -> Result<Sight> {
        let root = self.router().ask(Request::read(self.slot(set), Command::new("GET").arg(&self.key(set))));
        let root = root.await?;
        let is_small = matches!(root.reply.error(), Some(("WRONGTYPE", _)));
        let stored = if is_small { None } else { Some(root.ok()?).filter(|r| !r.is_nil()) };
        let stored = stored.map(|reply| reply.bytes().map(Vec::from)).transpose()?;
        let tree = stored.as_deref().map(Tree::parse).transpose()?;
        if tree.as_ref().is_some_and(|tree| tree.state == SetState::Spread) {
            return Ok(Sight { stored, tree, pieces: Vec::new() });
        }
        let mut pieces = Vec::new();
        for spots in Spot::all_from(tree.as_ref(), 0).chunks(PIECES_AT_ONCE) {
            let range = |spot: &Spot| {
                let command = Command::new("ZRANGE").arg(&self.key_at(set, *spot)).arg("0").arg("-1");
                Request::read(self.slot(set), command.arg("WITHSCORES"))
            };
            let answers = self.router().run(spots.iter().map(range).collect::<Batch>()).await;
            for (spot, answer) in spots.iter().zip(answers) {
                pieces.push((*spot, read_scored(answer?.ok()?)?));
            }
        }
        Ok(Sight { stored, tree, pieces })
    }

    /// Counts the members of a set with a tree in one go, and corrects its count if that is wanted: what the tree said,
    /// and what there is. `None`: it is another tree by now.
    pub(crate) async fn recount(
        &self,
        set: &LocalKey,
        seen: &Sight,
        writes: bool,
    ) -> Result<Option<(u64, u64)>> {
        let Some(stored) = &seen.stored else { return Ok(None) };
        let pieces = seen.pieces.iter().map(|(spot, _)| self.key_at(set, *spot));
        let keys: Vec<Vec<u8>> = std::iter::once(self.key(set)).chain(pieces).collect();
        let tree = [&stored[..1], &stored[BITS_AT..]].concat();
        let command = functions::set_recount(&keys, &tree, writes);
        functions::parse_recount(self.router().call(Request::write(self.slot(set), command)).await?)
    }

    /// The keys that a local set has as it is stored.
    pub(crate) async fn stored_keys(&self, set: &LocalKey) -> Result<Vec<Vec<u8>>> {
        let sight = self.sight(set).await?;
        let pieces = sight.pieces.iter().map(|(spot, _)| self.key_at(set, *spot));
        Ok(std::iter::once(self.key(set)).chain(pieces).collect())
    }

    /// Removes a member from a piece in which it doesn't belong.
    pub(crate) async fn remove_at(&self, set: &LocalKey, spot: Spot, member: &[u8]) -> Result<()> {
        let keys = match spot {
            Spot::Small => vec![self.key(set)],
            Spot::Leaf(_) => vec![self.key(set), self.key_at(set, spot)],
        };
        let command = SetRemove { keys, leaf: spot.numbers(), record: None, decision: None, told: None }
            .command([(None, member)]);
        let reply = self.router().call(Request::write(self.slot(set), command)).await?;
        // Another tree by now: the member is looked for again.
        SetRemoveAnswer::parse(reply).map(drop)
    }

    /// Drops a piece that its set doesn't know.
    pub(crate) async fn drop_piece(&self, set: &LocalKey, piece: u32) -> Result<()> {
        let key = self.keys().piece(set.place, set.bucket, &set.name, piece);
        let command = functions::piece_drop(self.key(set), key, piece);
        self.router().call(Request::write(self.slot(set), command)).await.map(drop)
    }

    /// The score of one member each of many sets, wherever these are.
    pub(crate) async fn scores_in<M: Member>(&self, asked: &[(SortedSet<M>, M)]) -> Result<Vec<Option<f64>>> {
        self.scores(asked, None).await
    }

    /// Reads scores of members, and notes which servers have said so.
    pub(crate) async fn scores_said<M: Member>(
        &self,
        asked: &[(SortedSet<M>, M)],
        said: &mut TouchedServers,
    ) -> Result<Vec<Option<f64>>> {
        self.scores(asked, Some(said)).await
    }

    async fn scores<M: Member>(
        &self,
        asked: &[(SortedSet<M>, M)],
        mut said: Option<&mut TouchedServers>,
    ) -> Result<Vec<Option<f64>>> {
        for _ in 0..super::local::ROUNDS_MAX {
            let place = |(set, member): &(SortedSet<M>, M)| match set.is_known_spread() {
                true => set.part(member.bucket(self.keys().buckets())),
                false => set.home.clone(),
            };
            let sets: Vec<LocalKey> = asked.iter().map(place).collect();
            let members: Vec<Vec<u8>> =
                asked.iter().map(|(_, member)| member.to_bytes().as_ref().into()).collect();
            let hashes: Vec<(usize, u32)> = members.iter().map(|member| hash(member)).enumerate().collect();
            let command = |key: &[u8], of: usize| Command::new("ZSCORE").arg(key).arg(&members[of]);
            // One turned out to be spread: it is known now.
            let read = self.read_each(&sets, &hashes, command, said.as_deref_mut());
            let Some(replies) = read.await? else { continue };
            let score = |reply: &crate::cluster::Reply| {
                if reply.is_nil() { Ok(None) } else { reply.double().map(Some) }
            };
            return replies.iter().map(score).collect();
        }
        Err(super::local::overtaken())
    }

    /// Whether a set knows a piece of that number; `None`: it is spread, and has none of its own any more.
    pub(crate) async fn knows_piece(&self, set: &LocalKey, piece: u32) -> Result<Option<bool>> {
        let root = Request::read(self.slot(set), Command::new("GET").arg(&self.key(set)));
        let root = self.router().ask(root).await?;
        if matches!(root.reply.error(), Some(("WRONGTYPE", _))) || root.reply.is_nil() {
            return Ok(Some(false));
        }
        let tree = Tree::parse(root.ok()?.bytes()?)?;
        Ok((tree.state != SetState::Spread).then(|| tree.has_piece(piece)))
    }
}

impl<M: Member> SortedSet<M> {
    /// The set that begins in this local set.
    pub(crate) fn beginning_at(sets: &Sets, root: &LocalKey) -> Self {
        debug_assert_eq!(root.place, Place::Whole);
        Self::new(sets.clone(), root.bucket, root.name.clone())
    }
}
