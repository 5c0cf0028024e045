//! Local sets: finding the piece that a member is in, by a copy of the tree that may be old.
//!
//! Writes are functions that compare the copy first. Reads are plain one-key commands, each group of them followed
//! by a look at the tree: a leaf that is a leaf still *after* it was read was read rightly. So reads go on, key by
//! key, in a slot that moves.

use std::sync::Arc;

use super::Sets;
use super::tree::{Leaf, State, Tree};
use crate::bucket::Bucket;
use crate::cluster::{Answer, Batch, Command, Reply, Request};
use crate::error::{Error, Result};
use crate::keys::Place;

/// Rounds in which copies of trees are brought up to date; each one only repeats what splits have overtaken.
pub(super) const ROUNDS_MAX: usize = 64;
/// Leaves of one set read in one ordered group.
const GROUP_MAX: usize = 64;

/// Which local set.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct LocalKey {
    pub(crate) place: Place,
    pub(crate) bucket: Bucket,
    pub(crate) name: Arc<[u8]>,
}

/// Where in a local set: the set itself while it is small, else a leaf of its tree.
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

    /// Where members with this hash are, as far as we know.
    pub(crate) fn spot_of(&self, set: &LocalKey, hash: u32) -> Spot {
        self.tree(set).map_or(Spot::Small, |tree| Spot::Leaf(tree.leaf_of(hash)))
    }

    /// All spots from piece `piece` on, ascending.
    pub(crate) fn spots_from(&self, set: &LocalKey, piece: u32) -> Vec<Spot> {
        match self.tree(set) {
            None if piece == 0 => vec![Spot::Small],
            None => Vec::new(),
            Some(tree) => tree.leaves().into_iter().filter(|l| l.piece >= piece).map(Spot::Leaf).collect(),
        }
    }

    /// Notes a tree as a server told it; empty: the set is small.
    pub(crate) fn learn(&self, set: &LocalKey, stored: &[u8]) -> Result<()> {
        if stored.is_empty() {
            self.trees().remove(set);
            return Ok(());
        }
        let tree = Tree::parse(stored).map_err(|e| e.context(format!("{set:?}")))?;
        self.trees().insert(set.clone(), Arc::new(tree));
        Ok(())
    }

    /// Reads the trees of these sets anew.
    pub(crate) async fn look(&self, sets: &[&LocalKey]) -> Result<()> {
        let gets = sets.iter().map(|s| Request::read(self.slot(s), Command::new("GET").arg(&self.key(s))));
        let answers = self.router().run(gets.collect()).await;
        for (set, answer) in sets.iter().zip(answers) {
            let reply = answer?.reply;
            match reply.error() {
                Some(("WRONGTYPE", _)) => self.learn(set, b"")?,
                None if reply.is_nil() => self.learn(set, b"")?,
                None => self.learn(set, reply.bytes()?)?,
                Some((code, rest)) => return Err(Error::internal(format!("tree of {set:?}: {code} {rest}"))),
            }
        }
        Ok(())
    }

    /// Reads at every probe. `None`: the copy of that set's tree was old; it is a new one now, or the set is
    /// spread. Probes of one set should stand together.
    pub(crate) async fn probe(
        &self,
        sets: &[LocalKey],
        probes: &[Probe],
        command: impl Fn(&[u8], usize) -> Command,
    ) -> Result<Vec<Option<Reply>>> {
        let mut batch = Batch::with_capacity(probes.len() * 2);
        let mut groups = Vec::new();
        let mut rest = probes;
        while let Some(first) = rest.first() {
            let same = rest.iter().take(GROUP_MAX).take_while(|p| p.set == first.set && first.spot != Spot::Small);
            let (group, after) = rest.split_at(same.count().max(1));
            let set = &sets[first.set];
            let reads = group.iter().map(|p| Request::read(self.slot(set), command(&self.key_at(set, p.spot), p.of)));
            let check = (first.spot != Spot::Small).then(|| Request::read(self.slot(set), self.check(set, group)));
            batch.push_ordered(reads.chain(check));
            groups.push(group);
            rest = after;
        }
        let mut answers = self.router().run(batch).await.into_iter();
        let mut replies = Vec::with_capacity(probes.len());
        let mut old = Vec::new();
        for group in groups {
            let read: Vec<Answer> = answers.by_ref().take(group.len()).collect::<Result<_>>()?;
            let set = &sets[group[0].set];
            let fresh = if group[0].spot == Spot::Small {
                vec![!matches!(read[0].reply.error(), Some(("WRONGTYPE", _)))]
            } else {
                let check = answers.next().unwrap_or_else(|| Err(Error::internal("no look at the tree")))?;
                still_leaves(&check.reply, group)
            };
            if fresh.contains(&false) {
                old.push(set);
            }
            for (answer, is_fresh) in read.into_iter().zip(fresh) {
                replies.push(if is_fresh { Some(answer.ok()?) } else { None });
            }
        }
        if !old.is_empty() {
            self.look(&old).await?;
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

    /// Reads something of each of `hashes`, each of a set: in rounds, until no split has overtaken any.
    pub(crate) async fn read_each(
        &self,
        sets: &[LocalKey],
        hashes: &[(usize, u32)],
        command: impl Fn(&[u8], usize) -> Command,
    ) -> Result<Vec<Option<Reply>>> {
        let mut replies = vec![None; hashes.len()];
        let mut open: Vec<usize> = (0..hashes.len()).collect();
        for _ in 0..ROUNDS_MAX {
            let probe = |i: &usize| Probe {
                set: hashes[*i].0,
                spot: self.spot_of(&sets[hashes[*i].0], hashes[*i].1),
                of: *i,
            };
            let mut probes: Vec<Probe> = open.iter().map(probe).collect();
            probes.sort_by_key(|p| (p.set, p.spot));
            let read = self.probe(sets, &probes, &command).await?;
            open.clear();
            for (probe, reply) in probes.iter().zip(read) {
                match reply {
                    None if self.is_spread(&sets[probe.set]) => {}
                    None => open.push(probe.of),
                    some => replies[probe.of] = some,
                }
            }
            if open.is_empty() {
                return Ok(replies);
            }
        }
        Err(overtaken())
    }

    /// Reads something of every spot of these sets, and of what becomes of a spot meanwhile. A set that turns out
    /// to be spread ends it with `None`.
    pub(crate) async fn read_all(
        &self,
        sets: &[LocalKey],
        command: impl Fn(&[u8]) -> Command,
    ) -> Result<Option<Vec<(Probe, Reply)>>> {
        let spots = |set: usize| {
            let all = self.spots_from(&sets[set], 0).into_iter();
            all.map(move |spot| Probe { set, spot, of: 0 }).collect::<Vec<_>>()
        };
        let mut done = Vec::new();
        let mut open: Vec<Probe> = (0..sets.len()).flat_map(spots).collect();
        for _ in 0..ROUNDS_MAX {
            let read = self.probe(sets, &open, |key, _| command(key)).await?;
            let mut again = Vec::new();
            for (probe, reply) in open.into_iter().zip(read) {
                match reply {
                    Some(reply) => done.push((probe, reply)),
                    None if self.is_spread(&sets[probe.set]) => return Ok(None),
                    None => again.extend(self.heirs(&sets[probe.set], probe)),
                }
            }
            if again.is_empty() {
                return Ok(Some(done));
            }
            open = again;
        }
        Err(overtaken())
    }

    /// The probes that take the place of one whose leaf has been split.
    pub(crate) fn heirs(&self, set: &LocalKey, probe: Probe) -> Vec<Probe> {
        match self.tree(set) {
            None => vec![Probe { spot: Spot::Small, ..probe }],
            Some(tree) => {
                let heirs = tree.heirs(probe.spot.leaf()).into_iter();
                heirs.map(|leaf| Probe { spot: Spot::Leaf(leaf), ..probe }).collect()
            }
        }
    }

    pub(crate) fn is_spread(&self, set: &LocalKey) -> bool {
        self.tree(set).is_some_and(|tree| tree.state == State::Spread)
    }
}

fn still_leaves(check: &Reply, group: &[Probe]) -> Vec<bool> {
    let none = vec![false; group.len()];
    let Ok(bits) = check.clone().into_array() else { return none };
    let bits: Vec<i64> = bits.iter().filter_map(|b| b.int().ok()).collect();
    let Some((state, bits)) = bits.split_first() else { return none };
    if bits.len() != group.len() * 2 || !matches!(u8::try_from(*state), Ok(b'L' | b'G')) {
        return none;
    }
    let holds = |(probe, bits): (&Probe, &[i64])| bits[0] == 0 && (probe.spot.leaf().depth == 0 || bits[1] == 1);
    group.iter().zip(bits.chunks_exact(2)).map(holds).collect()
}

pub(super) fn overtaken() -> Error {
    Error::unavailable(format!("pieces of the set were split {ROUNDS_MAX} times while it was looked at; try again"))
}
