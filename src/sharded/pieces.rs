//! The places of a set's pieces, for functions of others that work on them: who changes an edge together with something
//! else in its slot, or delivers to all members of a piece. Such a function compares the tree itself; if our copy was
//! old it answers with the tree as it is.

use std::sync::Arc;

use super::change::{AddOptions, MemberChange};
use super::local::{LocalKey, Probe, Spot};
use super::tree::{DEPTH_MAX, SetState, Tree, hash};
use super::walk::read_members;
use super::{Layout, Member, Sets, SortedSet, ended_together};
use crate::bucket::Bucket;
use crate::cluster::{Command, Request, TouchedServers};
use crate::error::{Error, Result};
use crate::functions;

/// Parts of a spread set that are dropped at once.
const PARTS_AT_ONCE: usize = 128;

/// One piece of a local set, as far as is known: it may have been split since.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PiecePlace {
    set: LocalKey,
    spot: Spot,
}

impl PiecePlace {
    /// Piece and depth, as functions take them; `None`: the set is small.
    pub(crate) fn leaf(&self) -> Option<(u32, u32)> {
        self.spot.numbers()
    }

    /// The bucket in which it lies.
    pub(crate) fn bucket(&self) -> Bucket {
        self.set.bucket
    }
}

impl Sets {
    /// The keys of a piece: its set, and itself (the set again while that is small).
    pub(crate) fn piece_keys(&self, piece: &PiecePlace) -> [Vec<u8>; 2] {
        [self.key(&piece.set), self.key_at(&piece.set, piece.spot)]
    }

    /// A function has answered with another tree: the pieces in place of this one. `None`: pieces have come back
    /// that were split (a failover), so all of the set must be gone through again.
    pub(crate) fn piece_heirs(&self, piece: &PiecePlace, tree: &[u8]) -> Result<Option<Vec<PiecePlace>>> {
        let tree = self.learn(&piece.set, tree)?;
        let heirs = piece.spot.heirs(tree.as_deref());
        let at = |spot| PiecePlace { set: piece.set.clone(), spot };
        Ok((!heirs.is_empty()).then(|| heirs.into_iter().map(at).collect()))
    }

    /// Splits a piece that a function found full.
    pub(crate) async fn split_piece(&self, piece: &PiecePlace) -> Result<()> {
        let leaf = piece.spot.leaf();
        if leaf.depth >= DEPTH_MAX {
            return Ok(());
        }
        let key = |piece_number| {
            self.keys().piece(piece.set.place, piece.set.bucket, &piece.set.name, piece_number)
        };
        let (of, partner) = (key(leaf.piece), key(leaf.partner()));
        let command = functions::set_split(self.key(&piece.set), of, partner, piece.leaf());
        let reply = self.router().call(Request::write(self.slot(&piece.set), command)).await?;
        match functions::SpreadAnswer::parse(reply)? {
            functions::SpreadAnswer::Tree(tree) => self.learn(&piece.set, &tree).map(drop),
            functions::SpreadAnswer::Done => {
                Err(Error::internal("the function set_split answered \"done\" instead of the set's new tree"))
            }
        }
    }

    /// All members of several sets that stay local, in one go.
    pub(crate) async fn members_of<M: Member>(&self, sets: &[&SortedSet<M>]) -> Result<Vec<Vec<M>>> {
        self.members_at(&sets.iter().map(|set| set.home.clone()).collect::<Vec<_>>(), None).await
    }

    async fn members_at<M: Member>(
        &self,
        sets: &[LocalKey],
        said: Option<&mut TouchedServers>,
    ) -> Result<Vec<Vec<M>>> {
        let command = |key: &[u8]| Command::new("ZRANGE").arg(key).arg("0").arg("-1");
        let read = self
            .read_all(sets, command, said)
            .await?
            .ok_or_else(|| Error::internal("a set that must stay local was spread"))?;
        let mut members: Vec<Vec<M>> = sets.iter().map(|_| Vec::new()).collect();
        for (Probe { set, spot, .. }, reply) in read {
            members[set].extend(read_members::<M>(spot, reply)?);
        }
        Ok(members)
    }
}

/// A set, and what is to be added to it.
pub(crate) type Addition<M> = (SortedSet<M>, Vec<(M, f64)>);

impl Sets {
    /// Adds members to many sets that stay local, or don't need to be spread yet, in one go. `None`: one of them is
    /// spread, or is being spread; nothing is known of the others then, and adding again is safe.
    pub(crate) async fn add_to_many<M: Member>(&self, adds: &[Addition<M>]) -> Result<Option<()>> {
        let keys: Vec<LocalKey> = adds.iter().map(|(set, _)| set.home.clone()).collect();
        let item = |(number, (_, pairs)): (usize, &Addition<M>)| {
            let item =
                move |(m, score): &(M, f64)| MemberChange::new(number, m.to_bytes().as_ref(), Some(*score));
            pairs.iter().map(item).collect::<Vec<_>>()
        };
        let items = adds.iter().enumerate().flat_map(item).collect();
        let added = self.add_items(&keys, items, AddOptions::default(), &mut TouchedServers::new()).await?;
        Ok(added.ok().map(drop))
    }

    /// Counts the members of each of several sets that stay local.
    pub(crate) async fn len_of_many<M: Member>(&self, sets: &[SortedSet<M>]) -> Result<Vec<u64>> {
        let count =
            |set: &SortedSet<M>| Request::read(self.slot(&set.home), functions::count(set.root_key()));
        let answers = self.router().run(sets.iter().map(count).collect()).await;
        answers.into_iter().map(|answer| Ok(functions::parse_count(answer?.ok()?)?.0)).collect()
    }
}

impl<M: Member> SortedSet<M> {
    /// The piece where a member is while the set is local.
    pub(crate) fn piece_of(&self, member: &M) -> PiecePlace {
        self.piece_in(self.home.clone(), member)
    }

    /// The piece where a member is once the set is spread.
    pub(crate) fn part_piece_of(&self, member: &M) -> PiecePlace {
        self.piece_in(self.part(member.bucket(self.sets.keys().buckets())), member)
    }

    fn piece_in(&self, set: LocalKey, member: &M) -> PiecePlace {
        let spot = Spot::of(self.sets.tree(&set).as_deref(), hash(member.to_bytes().as_ref()));
        PiecePlace { set, spot }
    }

    /// All pieces in a bucket of the set, which is spread.
    pub(crate) fn part_pieces(&self, bucket: Bucket) -> Vec<PiecePlace> {
        let set = self.part(bucket);
        let spots = Spot::all_from(self.sets.tree(&set).as_deref(), 0);
        spots.into_iter().map(|spot| PiecePlace { set: set.clone(), spot }).collect()
    }

    /// All members in a bucket of the set, which is spread: key by key, for slots that move. `said`: whose word that
    /// is.
    pub(crate) async fn part_members(&self, bucket: Bucket, said: &mut TouchedServers) -> Result<Vec<M>> {
        Ok(self.sets.members_at(&[self.part(bucket)], Some(said)).await?.pop().unwrap_or_default())
    }

    /// Every key that the set has in its own slot, as far as is known: for dropping it when it is needed no more.
    pub(crate) async fn keys_at_home(&self) -> Result<Vec<Vec<u8>>> {
        let tree = self.sets.look_at(&self.home).await?;
        let spots =
            Spot::all_from(tree.as_deref(), 0).into_iter().map(|spot| self.sets.key_at(&self.home, spot));
        Ok(std::iter::once(self.root_key()).chain(spots).collect())
    }

    /// Drops what the set has in other slots than its own, if it is spread: for one that is needed no more. What is in
    /// its own slot says that there are parts, and goes last.
    pub(crate) async fn drop_parts(&self) -> Result<()> {
        let tree = self.sets.look_at(&self.home).await?;
        if tree.is_some_and(|tree| matches!(tree.state, SetState::Spreading | SetState::Copied)) {
            // Somebody still copies into the parts, or died at that.
            self.spread().await?;
        }
        if !self.is_known_spread() {
            return Ok(());
        }
        let parts = self.parts();
        for parts in parts.chunks(PARTS_AT_ONCE) {
            let trees = self.sets.look(&parts.iter().collect::<Vec<_>>()).await?;
            let unlink = |(part, tree): (&LocalKey, &Option<Arc<Tree>>)| {
                let spots = Spot::all_from(tree.as_deref(), 0).into_iter();
                let keys = spots.map(|spot| self.sets.key_at(part, spot)).chain([self.sets.key(part)]);
                Request::write(self.sets.slot(part), keys.fold(Command::new("UNLINK"), |c, key| c.arg(&key)))
            };
            let batch = parts.iter().zip(&trees).map(unlink).collect();
            let answers = self.sets.router().run(batch).await;
            ended_together(answers.into_iter().map(|answer| answer?.ok().map(drop)))?;
        }
        Ok(())
    }

    /// The bucket in which the set begins.
    pub(crate) fn home_bucket(&self) -> Bucket {
        self.home.bucket
    }

    /// The key that says whether the set is spread, as functions take it.
    pub(crate) fn root_key(&self) -> Vec<u8> {
        self.sets.key(&self.home)
    }

    /// Whether this process knows that the set is spread, which is for ever.
    pub(crate) fn is_known_spread(&self) -> bool {
        self.layout_known() == Layout::Spread
    }
}
