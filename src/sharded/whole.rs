//! A set that is small enough to be stored elsewhere whole, as it stands in its own slot.

use super::page::ScoredMember;
use super::set::{SortedSet, read_scored};
use super::tree::{Tree, hash};
use super::{Member, Spot};
use crate::cluster::{Answer, Command, Request};
use crate::error::{Error, Result};

/// A set as it is stored: its tree, if it has pieces, and what each of its keys holds.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct WholeSet {
    /// Of a small one empty.
    pub(crate) tree: Vec<u8>,
    /// The keys of the pieces; of a small set none.
    pub(crate) piece_keys: Vec<Vec<u8>>,
    /// Of a small set its members, else those of each piece.
    pub(crate) sets: Vec<Vec<ScoredMember>>,
}

impl WholeSet {
    /// A set without members.
    pub(crate) fn empty() -> Self {
        Self { sets: vec![Vec::new()], ..Self::default() }
    }

    /// All members, each once. A split that broke off may have left copies of some that live elsewhere.
    pub(crate) fn members(&self) -> Result<Vec<ScoredMember>> {
        if self.tree.is_empty() {
            return Ok(self.sets.iter().flatten().cloned().collect());
        }
        let tree = Tree::parse(&self.tree)?;
        let pieces = tree.leaves().into_iter().zip(&self.sets);
        let lives_here = |(leaf, set): (super::tree::Leaf, &Vec<ScoredMember>)| {
            let here: Vec<ScoredMember> =
                set.iter().filter(|e| leaf.holds(hash(&e.member))).cloned().collect();
            here
        };
        Ok(pieces.flat_map(lives_here).collect())
    }

    /// Puts a set together again that had this tree and these members.
    pub(crate) fn of(tree: Vec<u8>, members: Vec<ScoredMember>) -> Result<Self> {
        if tree.is_empty() {
            return Ok(Self { sets: vec![members], ..Self::default() });
        }
        let leaves = Tree::parse(&tree)?.leaves();
        let mut sets = vec![Vec::new(); leaves.len()];
        for member in members {
            let hash = hash(&member.member);
            let place = leaves.iter().position(|leaf| leaf.holds(hash));
            let place = place.ok_or_else(|| Error::internal("a tree has no piece for a member"))?;
            sets[place].push(member);
        }
        Ok(Self { tree, piece_keys: Vec::new(), sets })
    }
}

impl<M: Member> SortedSet<M> {
    /// The keys of the pieces that a tree of this set knows.
    pub(crate) fn piece_keys_of(&self, tree: &[u8]) -> Result<Vec<Vec<u8>>> {
        let leaves = Tree::parse(tree)?.leaves().into_iter();
        Ok(leaves.map(|leaf| self.sets.key_at(&self.home, Spot::Leaf(leaf))).collect())
    }

    /// Reads what the set has in its own slot. `None`: it has more than `most` members, or more pieces than functions
    /// are told of, or has changed meanwhile.
    pub(crate) async fn whole(&self, most: usize) -> Result<Option<WholeSet>> {
        let (router, slot) = (self.sets.router(), self.sets.slot(&self.home));
        let range = |key: &[u8]| {
            Request::read(slot, Command::new("ZRANGE").arg(key).arg("0").arg(most).arg("WITHSCORES"))
        };
        let root = self.root_key();
        let small = router.ask(range(&root)).await?;
        if !is_of_another_type(&small) {
            let members = read_scored(small.ok()?)?;
            let is_whole = members.len() <= most;
            return Ok(is_whole.then(|| WholeSet { sets: vec![members], ..WholeSet::default() }));
        }
        let tree = router.ask(Request::read(slot, Command::new("GET").arg(&root))).await?;
        if is_of_another_type(&tree) || tree.reply.is_nil() {
            return Ok(None);
        }
        let tree = tree.ok()?.bytes()?.to_vec();
        let keys = self.piece_keys_of(&tree)?;
        if keys.len() > usize::from(u8::MAX) {
            return Ok(None);
        }
        let mut sets = Vec::with_capacity(keys.len());
        for answer in router.run(keys.iter().map(|key| range(key)).collect()).await {
            sets.push(read_scored(answer?.ok()?)?);
        }
        let is_whole = sets.iter().map(Vec::len).sum::<usize>() <= most;
        Ok(is_whole.then_some(WholeSet { tree, piece_keys: keys, sets }))
    }
}

fn is_of_another_type(answer: &Answer) -> bool {
    matches!(answer.reply.error(), Some(("WRONGTYPE", _)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_of_pieces_is_put_together_as_it_was() {
        // Split once: two pieces.
        let tree = [b"L".as_slice(), &[0; 15], &[0b0100_0000]].concat();
        let members: Vec<ScoredMember> =
            (0u8..40).map(|n| ScoredMember { score: f64::from(n), member: vec![n, 7] }).collect();
        let whole = WholeSet::of(tree.clone(), members.clone()).unwrap();
        assert_eq!(whole.sets.len(), 2);
        assert!(whole.sets.iter().all(|set| !set.is_empty()));
        let mut again = whole.members().unwrap();
        again.sort_by(|a, b| a.score.total_cmp(&b.score));
        assert_eq!(again, members);
        // A copy that a split has left in the lower piece is nobody's.
        let mut broken_off = whole.clone();
        let copy = whole.sets[1][0].clone();
        broken_off.sets[0].push(copy);
        assert_eq!(broken_off.members().unwrap().len(), 40);
        let small = WholeSet::of(Vec::new(), members.clone()).unwrap();
        assert_eq!((small.members().unwrap(), small.sets.len()), (members, 1));
    }
}
