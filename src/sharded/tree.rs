//! The tree of a local set that has pieces: which piece holds which members. Pure.
//!
//! The header of `tideline.lua` says how it is stored. A tree only grows while its set lives: a leaf of an old
//! copy is a leaf still, or has been split into pieces with the same low bits. Only a failover that loses a split makes
//! it shrink; then members are back in lower pieces, and who read by the old copy starts over.

use crate::error::{Error, Result};
use crate::nonce::Nonce;

const HEADER_LEN: usize = 16;
/// A piece at this depth is never split again, however full: hashes are 31 bits, and a tree stays below 128 kB.
pub(crate) const DEPTH_MAX: u32 = 20;

/// Hashes a member: the low bits tell where it lies. The Lua code computes the same.
pub(crate) fn hash(member: &[u8]) -> u32 {
    const PRIME: u64 = 2_147_483_647;
    let h = member.iter().fold(7, |h, byte| (h * 1_000_003 + u64::from(*byte)) % PRIME);
    u32::try_from((h * 2_097_143 + 11) % PRIME).unwrap_or_default()
}

/// The state of a set, as its record says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SetState {
    /// All members are here.
    Local,
    /// All members are here, and nothing changes until they are copied.
    Spreading,
    /// All members are in the parts too, and on replicas, and nothing changes until the record says so.
    Copied,
    /// The members are in the parts.
    Spread,
}

/// A piece, and how many bits of the hash decide about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Leaf {
    pub(crate) piece: u32,
    pub(crate) depth: u32,
}

impl Leaf {
    /// The only piece of a set that was never split.
    pub(crate) const ROOT: Self = Self { piece: 0, depth: 0 };

    pub(crate) fn holds(self, hash: u32) -> bool {
        hash & ((1 << self.depth) - 1) == self.piece
    }

    /// Whether `other` is this leaf or one that came from it.
    fn covers(self, other: Self) -> bool {
        other.depth >= self.depth && self.holds(other.piece)
    }

    /// The piece that a split of this one creates.
    pub(crate) fn partner(self) -> u32 {
        self.piece | 1 << self.depth
    }

    /// Offsets in the stored string of the bits that say whether this node, and the one above, were split.
    pub(crate) fn bits(self) -> (usize, usize) {
        let above =
            self.depth.checked_sub(1).map(|depth| Self { piece: self.piece & ((1 << depth) - 1), depth });
        let offset = |node: usize| HEADER_LEN * 8 + node;
        (offset(self.node()), offset(above.map_or(0, Self::node)))
    }

    fn node(self) -> usize {
        (1 << self.depth) | self.piece as usize
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tree {
    pub(crate) state: SetState,
    pub(crate) nonce: Nonce,
    bits: Box<[u8]>,
}

impl Tree {
    pub(crate) fn parse(stored: &[u8]) -> Result<Self> {
        let broken = || Error::internal(format!("a set's tree is unreadable: {}", stored.escape_ascii()));
        let (header, bits) = stored.split_at_checked(HEADER_LEN).ok_or_else(broken)?;
        let state = match header[0] {
            b'L' => SetState::Local,
            b'G' => SetState::Spreading,
            b'C' => SetState::Copied,
            b'S' => SetState::Spread,
            _ => return Err(broken()),
        };
        let nonce = header[8..].try_into().map_err(|_| broken())?;
        Ok(Self { state, nonce, bits: bits.into() })
    }

    fn is_split(&self, leaf: Leaf) -> bool {
        let node = leaf.node();
        self.bits.get(node / 8).is_some_and(|byte| byte >> (7 - node % 8) & 1 == 1)
    }

    /// Whether it knows of pieces; that of a set which was spread forgets them when they are gone.
    pub(crate) fn has_pieces(&self) -> bool {
        self.state != SetState::Spread || !self.bits.is_empty()
    }

    /// Whether the parts hold everything: reads go there. Changes wait for the record to say that they may.
    pub(crate) fn is_spread(&self) -> bool {
        matches!(self.state, SetState::Copied | SetState::Spread)
    }

    /// The leaf that holds members with this hash.
    pub(crate) fn leaf_of(&self, hash: u32) -> Leaf {
        let mut leaf = Leaf::ROOT;
        while self.is_split(leaf) && leaf.depth < DEPTH_MAX {
            let depth = leaf.depth + 1;
            leaf = Leaf { piece: hash & ((1 << depth) - 1), depth };
        }
        leaf
    }

    /// The leaf with the lowest piece number from `piece` on.
    pub(crate) fn leaf_from(&self, piece: u32) -> Option<Leaf> {
        // No leaf is deeper than the bits reach, so no piece number is higher.
        let end = (u32::try_from(self.bits.len()).unwrap_or(u32::MAX).saturating_mul(8) * 2).max(1);
        (piece..end)
            .map(|p| self.leaf_of(p))
            .zip(piece..)
            .find(|(leaf, p)| leaf.piece == *p)
            .map(|(leaf, _)| leaf)
    }

    /// All leaves, by ascending piece number.
    pub(crate) fn leaves(&self) -> Vec<Leaf> {
        let mut leaves = Vec::new();
        let mut open = vec![Leaf::ROOT];
        while let Some(leaf) = open.pop() {
            if self.is_split(leaf) && leaf.depth < DEPTH_MAX {
                open.push(Leaf { piece: leaf.partner(), depth: leaf.depth + 1 });
                open.push(Leaf { depth: leaf.depth + 1, ..leaf });
            } else {
                leaves.push(leaf);
            }
        }
        leaves.sort_unstable();
        leaves
    }

    /// The leaves that a leaf of an older copy has become: itself, or those that it was split into. Empty: it never was
    /// split off, as far as this tree knows; a failover that lost the split has brought its members back.
    pub(crate) fn heirs(&self, of: Leaf) -> Vec<Leaf> {
        self.leaves().into_iter().filter(|leaf| of.covers(*leaf)).collect()
    }

    /// Whether a walk that stands at `piece` finds there what it has not met: not if that piece is gone.
    pub(crate) fn has_piece(&self, piece: u32) -> bool {
        self.leaf_of(piece).piece == piece
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A tree as the server would grow it: splits of leaves, chosen by the hashes given.
    fn grown(splits: &[u32]) -> Tree {
        let mut tree = Tree { state: SetState::Local, nonce: [0; 8], bits: Box::default() };
        for hash in splits {
            let leaf = tree.leaf_of(*hash);
            if leaf.depth == DEPTH_MAX {
                continue;
            }
            let node = leaf.node();
            let mut bits = tree.bits.to_vec();
            bits.resize(bits.len().max(node / 8 + 1), 0);
            bits[node / 8] |= 1 << (7 - node % 8);
            tree.bits = bits.into();
        }
        tree
    }

    proptest! {
        #[test]
        fn every_hash_has_exactly_one_leaf(
            splits in proptest::collection::vec(any::<u32>(), 0..60), hashes: [u32; 20]
        ) {
            let tree = grown(&splits);
            let leaves = tree.leaves();
            prop_assert!(leaves.is_sorted());
            for hash in hashes {
                let holding: Vec<Leaf> = leaves.iter().copied().filter(|l| l.holds(hash)).collect();
                prop_assert_eq!(holding, vec![tree.leaf_of(hash)]);
            }
        }

        #[test]
        fn stepping_from_leaf_to_leaf_meets_all(splits in proptest::collection::vec(0u32..4096, 0..60)) {
            let tree = grown(&splits);
            let mut met = Vec::new();
            let mut next = tree.leaf_from(0);
            while let Some(leaf) = next {
                met.push(leaf);
                next = tree.leaf_from(leaf.piece + 1);
            }
            prop_assert_eq!(met, tree.leaves());
        }

        #[test]
        fn members_only_move_to_higher_pieces_and_heirs_are_where_they_went(
            splits in proptest::collection::vec(any::<u32>(), 1..60), cut in 0usize..60, hash: u32
        ) {
            let old = grown(&splits[..cut.min(splits.len())]);
            let new = grown(&splits);
            let (before, after) = (old.leaf_of(hash), new.leaf_of(hash));
            prop_assert!(after.piece >= before.piece);
            prop_assert!(new.heirs(before).contains(&after));
        }

        #[test]
        fn reading_never_panics(stored: Vec<u8>) {
            if let Ok(tree) = Tree::parse(&stored) {
                tree.leaf_of(12_345);
                tree.leaf_from(3);
            }
        }
    }

    #[test]
    fn the_hash_spreads_ids_of_every_shape_over_all_its_low_bits() {
        type Shape = (&'static str, fn(u64) -> Vec<u8>);
        let shapes: [Shape; 5] = [
            ("sequential", |i| i.to_be_bytes().into()),
            ("snowflakes", |i| ((1_700_000_000_000 + i * 977) << 16).to_be_bytes().into()),
            ("mixed", |i| crate::bucket::mix64(i).to_be_bytes().into()),
            ("decimal", |i| i.to_string().into_bytes()),
            ("names", |i| format!("user-{i}@example.org").into_bytes()),
        ];
        for (shape, member) in shapes {
            for bits in [1, 3, 6] {
                let mut counts = vec![0u32; 1 << bits];
                (0..20_000).for_each(|i| counts[(hash(&member(i)) & ((1 << bits) - 1)) as usize] += 1);
                let mean = 20_000 >> bits;
                // Five standard deviations of a fair spread.
                let most = f64::from(mean) + 5.0 * f64::from(mean).sqrt();
                assert!(counts.iter().all(|n| f64::from(*n) < most), "{shape}, {bits} bits: {counts:?}");
            }
        }
    }

    #[test]
    fn refuses_what_is_no_tree() {
        for stored in [&b""[..], b"L", b"X123456789012345", b"short of sixteen"] {
            assert!(Tree::parse(stored).is_err());
        }
    }
}
