//! Local sets: finding the piece that a member is in, by a copy of the tree that may be old.
//!
//! Writes are functions that compare the copy first. Reads are plain one-key commands, each group of them followed
//! by a look at the tree: a leaf that is a leaf still *after* it was read was read rightly. So reads go on, key by
//! key, in a slot that moves.

use std::sync::Arc;

use super::Sets;
use super::tree::{Leaf, Tree};
use crate::bucket::Bucket;
use crate::cluster::{Answer, Batch, Command, Reply, Request, TouchedServers};
use crate::error::{Error, Result};
use crate::keys::Place;

/// Rounds in which copies of trees are brought up to date; each one only repeats what splits have overtaken.
pub(super) const ROUNDS_MAX: usize = 64;
/// Leaves of one set read in one ordered group.
const GROUP_MAX: usize = 64;

/// The key of a local set.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct LocalKey {
    pub(crate) place: Place,
    pub(crate) bucket: Bucket,
    pub(crate) name: Arc<[u8]>,
}

/// A spot in a local set: the set itself while it is small, else a leaf of its tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Spot {
    Small,
    Leaf(Leaf),
}

impl Spot {
    pub(crate) fn leaf(self) -> Leaf {
        match self {
            Self::Small => Leaf::ROOT,
            Self::Leaf(leaf) => leaf,
        }
    }

    /// Piece and depth, as the functions take them.
    pub(crate) fn numbers(self) -> Option<(u32, u32)> {
        match self {
            Self::Small => None,
            Self::Leaf(leaf) => Some((leaf.piece, leaf.depth)),
        }
    }
}

/// Trees of an operation's sets, as far as it knows them, in their order; `None`: small. It is the operation's own:
/// what others learn or forget meanwhile doesn't disturb it.
pub(crate) type Trees = Vec<Option<Arc<Tree>>>;

/// One thing to read: of set number `set`, at a spot, for whatever the caller numbers `of`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Probe {
    pub(crate) set: usize,
    pub(crate) spot: Spot,
    pub(crate) of: usize,
}

impl Sets {
    pub(crate) fn key(&self, set: &LocalKey) -> Vec<u8> {
        self.keys().set(set.place, set.bucket, &set.name)
    }

    pub(crate) fn slot(&self, set: &LocalKey) -> u16 {
        self.keys().buckets().slot(set.bucket)
    }

    /// The sorted set that holds what is at that spot.
    pub(crate) fn key_at(&self, set: &LocalKey, spot: Spot) -> Vec<u8> {
        match spot {
            Spot::Small => self.key(set),
            Spot::Leaf(leaf) => self.keys().piece(set.place, set.bucket, &set.name, leaf.piece),
        }
    }

    /// The trees of these sets, as far as they are known.
    pub(crate) fn trees_of(&self, sets: &[LocalKey]) -> Trees {
        sets.iter().map(|set| self.tree(set)).collect()
    }

    /// Notes a tree as a server told it; empty: the set is small.
    pub(crate) fn learn(&self, set: &LocalKey, stored: &[u8]) -> Result<Option<Arc<Tree>>> {
        if stored.is_empty() {
            self.trees().remove(set);
            return Ok(None);
        }
        let tree = Arc::new(Tree::parse(stored).map_err(|e| e.context(format!("{set:?}")))?);
        self.trees().insert(set.clone(), tree.clone());
        Ok(Some(tree))
    }

    /// Reads the trees of these sets anew.
    pub(crate) async fn look(&self, sets: &[&LocalKey]) -> Result<Trees> {
        let gets = sets.iter().map(|s| Request::read(self.slot(s), Command::new("GET").arg(&self.key(s))));
        let answers = self.router().run(gets.collect()).await;
        let read = sets.iter().zip(answers).map(|(set, answer)| {
            let answer = answer?;
            match answer.reply.error() {
                Some(("WRONGTYPE", _)) => self.learn(set, b""),
                None if answer.reply.is_nil() => self.learn(set, b""),
                None => self.learn(set, answer.reply.bytes()?),
                Some(_) => {
                    Err(answer.ok().err().unwrap_or_else(overtaken).context(format!("tree of {set:?}")))
                }
            }
        });
        read.collect()
    }

    /// Reads the tree of one set anew.
    pub(crate) async fn look_at(&self, set: &LocalKey) -> Result<Option<Arc<Tree>>> {
        Ok(self.look(&[set]).await?.pop().flatten())
    }

    /// Reads at every probe. `None`: the tree of that set in `trees` was old; it is a new one now. Probes of one
    /// set should stand together.
    pub(crate) async fn probe(
        &self,
        sets: &[LocalKey],
        trees: &mut Trees,
        probes: &[Probe],
        command: impl Fn(&[u8], usize) -> Command,
        mut said: Option<&mut TouchedServers>,
    ) -> Result<Vec<Option<Reply>>> {
        let mut batch = Batch::with_capacity(probes.len() * 2);
        let mut groups = Vec::new();
        let mut rest = probes;
        while let Some(first) = rest.first() {
            let same =
                rest.iter().take(GROUP_MAX).take_while(|p| p.set == first.set && first.spot != Spot::Small);
            let (group, after) = rest.split_at(same.count().max(1));
            let set = &sets[first.set];
            let reads =
                group.iter().map(|p| Request::read(self.slot(set), command(&self.key_at(set, p.spot), p.of)));
            let check =
                (first.spot != Spot::Small).then(|| Request::read(self.slot(set), self.check(set, group)));
            batch.push_ordered(reads.chain(check));
            groups.push(group);
            rest = after;
        }
        let mut answers = self.router().run(batch).await.into_iter();
        let mut replies = Vec::with_capacity(probes.len());
        let mut old = Vec::new();
        for group in groups {
            let read: Vec<Answer> = answers.by_ref().take(group.len()).collect::<Result<_>>()?;
            if let Some(said) = &mut said {
                read.iter().for_each(|answer| said.add(answer));
            }
            let fresh = if group[0].spot == Spot::Small {
                vec![!is_wrong_type(&read[0].reply)]
            } else {
                let check = answers.next().unwrap_or_else(|| {
                    Err(Error::internal("reads of a set's pieces have no answer about its tree"))
                })?;
                still_leaves(check, group)?
            };
            if fresh.contains(&false) {
                old.push(group[0].set);
            }
            for (answer, is_fresh) in read.into_iter().zip(fresh) {
                replies.push(if is_fresh { Some(answer.ok()?) } else { None });
            }
        }
        if !old.is_empty() {
            let keys: Vec<&LocalKey> = old.iter().map(|set| &sets[*set]).collect();
            for (set, tree) in old.into_iter().zip(self.look(&keys).await?) {
                trees[set] = tree;
            }
        }
        Ok(replies)
    }

    /// Asks the tree whether the leaves of a group are leaves still.
    fn check(&self, set: &LocalKey, group: &[Probe]) -> Command {
        let look = Command::new("BITFIELD_RO").arg(&self.key(set)).arg("GET").arg("u8").arg("0");
        group.iter().fold(look, |look, probe| {
            let (own, above) = probe.spot.leaf().bits();
            look.arg("GET").arg("u1").arg(own).arg("GET").arg("u1").arg(above)
        })
    }

    /// Reads something of each of `hashes`, each of a set: in rounds, until no split has overtaken any. `None`: a
    /// set turns out to be spread.
    pub(crate) async fn read_each(
        &self,
        sets: &[LocalKey],
        hashes: &[(usize, u32)],
        command: impl Fn(&[u8], usize) -> Command,
        mut said: Option<&mut TouchedServers>,
    ) -> Result<Option<Vec<Reply>>> {
        let mut trees = self.trees_of(sets);
        let mut replies: Vec<Option<Reply>> = vec![None; hashes.len()];
        let mut open: Vec<usize> = (0..hashes.len()).collect();
        for _ in 0..ROUNDS_MAX {
            let probe = |of: &usize| {
                let (set, hash) = hashes[*of];
                Probe { set, spot: Spot::of(trees[set].as_deref(), hash), of: *of }
            };
            let mut probes: Vec<Probe> = open.iter().map(probe).collect();
            probes.sort_by_key(|p| (p.set, p.spot));
            let read = self.probe(sets, &mut trees, &probes, &command, said.as_deref_mut()).await?;
            if trees.iter().flatten().any(|tree| tree.is_spread()) {
                return Ok(None);
            }
            open.clear();
            for (probe, reply) in probes.iter().zip(read) {
                match reply {
                    None => open.push(probe.of),
                    some => replies[probe.of] = some,
                }
            }
            if open.is_empty() {
                return Ok(replies.into_iter().collect());
            }
        }
        Err(overtaken())
    }

    /// Reads something of every spot of these sets, and of what becomes of a spot meanwhile. `None`: a set turns
    /// out to be spread.
    pub(crate) async fn read_all(
        &self,
        sets: &[LocalKey],
        command: impl Fn(&[u8]) -> Command,
        mut said: Option<&mut TouchedServers>,
    ) -> Result<Option<Vec<(Probe, Reply)>>> {
        let mut trees = self.trees_of(sets);
        let mut open = all_probes(&trees);
        let mut done = Vec::with_capacity(open.len());
        for _ in 0..ROUNDS_MAX {
            let command = |key: &[u8], _| command(key);
            let read = self.probe(sets, &mut trees, &open, command, said.as_deref_mut()).await?;
            if trees.iter().flatten().any(|tree| tree.is_spread()) {
                return Ok(None);
            }
            let mut again = Vec::new();
            let mut has_shrunk = false;
            for (probe, reply) in open.into_iter().zip(read) {
                match reply {
                    Some(reply) => done.push((probe, reply)),
                    None => {
                        let heirs = probe.spot.heirs(trees[probe.set].as_deref());
                        has_shrunk |= heirs.is_empty();
                        again.extend(heirs.into_iter().map(|spot| Probe { spot, ..probe }));
                    }
                }
            }
            if has_shrunk {
                // What was read elsewhere may hold the same members again, or lack those that came back there.
                done.clear();
                open = all_probes(&trees);
                continue;
            }
            if again.is_empty() {
                return Ok(Some(done));
            }
            open = again;
        }
        Err(overtaken())
    }
}

impl Spot {
    /// The spot where members with this hash are.
    pub(crate) fn of(tree: Option<&Tree>, hash: u32) -> Self {
        tree.map_or(Self::Small, |tree| Self::Leaf(tree.leaf_of(hash)))
    }

    /// All spots from piece `piece` on, ascending.
    pub(crate) fn all_from(tree: Option<&Tree>, piece: u32) -> Vec<Self> {
        match tree {
            None if piece == 0 => vec![Self::Small],
            None => Vec::new(),
            Some(tree) => tree.leaves().into_iter().filter(|l| l.piece >= piece).map(Self::Leaf).collect(),
        }
    }
}

impl Spot {
    /// The spots that have taken its place when its leaf has been split; none if the tree has lost that leaf.
    pub(crate) fn heirs(self, tree: Option<&Tree>) -> Vec<Self> {
        match (self, tree) {
            (Self::Small, None) => vec![self],
            (Self::Leaf(_), None) => Vec::new(),
            (spot, Some(tree)) => tree.heirs(spot.leaf()).into_iter().map(Self::Leaf).collect(),
        }
    }
}

/// A probe for every spot of every set.
fn all_probes(trees: &Trees) -> Vec<Probe> {
    let of_set = |(set, tree): (usize, &Option<Arc<Tree>>)| {
        Spot::all_from(tree.as_deref(), 0).into_iter().map(move |spot| Probe { set, spot, of: 0 })
    };
    trees.iter().enumerate().flat_map(of_set).collect()
}

fn is_wrong_type(reply: &Reply) -> bool {
    matches!(reply.error(), Some(("WRONGTYPE", _)))
}

/// Tells which leaves of a group are leaves still, by what the tree answered.
fn still_leaves(check: Answer, group: &[Probe]) -> Result<Vec<bool>> {
    let none = vec![false; group.len()];
    if is_wrong_type(&check.reply) {
        return Ok(none);
    }
    let bits: Vec<i64> = check.ok()?.into_array()?.iter().map(Reply::int).collect::<Result<_>>()?;
    let Some((state, bits)) = bits.split_first() else { return Ok(none) };
    if bits.len() != group.len() * 2 || !is_frozen_or_local(*state) {
        return Ok(none);
    }
    let holds =
        // H39b, H49: a piece is a leaf still after it was read.
        |(probe, bits): (&Probe, &[i64])| bits[0] == 0 && (probe.spot.leaf().depth == 0 || bits[1] == 1);
    Ok(group.iter().zip(bits.chunks_exact(2)).map(holds).collect())
}

/// Whether a set is, all of it, where its tree is: not spread (or copied) meanwhile.
fn is_frozen_or_local(state: i64) -> bool {
    // H36: the record is read after the walk, and the set isn't spread by then.
    matches!(u8::try_from(state), Ok(b'L' | b'G'))
}

pub(super) fn overtaken() -> Error {
    Error::unavailable(format!(
        "pieces of the set were split {ROUNDS_MAX} times while it was looked at; try again"
    ))
}
