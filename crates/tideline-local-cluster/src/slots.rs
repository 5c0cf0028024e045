//! A set of hash slots.

use std::fmt;
use std::ops::RangeInclusive;

/// Slots of a Redis Cluster.
pub(super) const SLOTS: u16 = 16_384;

/// A set of hash slots, one bit each.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct SlotSet(Box<[u64; 256]>);

impl SlotSet {
    pub(super) fn new() -> Self {
        Self(Box::new([0; 256]))
    }

    pub(super) fn insert(&mut self, slot: u16) {
        self.0[usize::from(slot / 64)] |= 1 << (slot % 64);
    }

    pub(super) fn insert_all(&mut self, slots: RangeInclusive<u16>) {
        slots.filter(|slot| *slot < SLOTS).for_each(|slot| self.insert(slot));
    }

    pub(super) fn contains(&self, slot: u16) -> bool {
        self.0[usize::from(slot / 64)] & (1 << (slot % 64)) != 0
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }

    pub(super) fn len(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    pub(super) fn union(&mut self, other: &Self) {
        self.0.iter_mut().zip(other.0.iter()).for_each(|(mine, theirs)| *mine |= theirs);
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = u16> {
        (0..SLOTS).filter(|slot| self.contains(*slot))
    }

    /// The slots that are not in the set.
    pub(super) fn complement(&self) -> Self {
        let mut inverse = self.clone();
        inverse.0.iter_mut().for_each(|word| *word = !*word);
        inverse
    }

    /// The set as the fewest ranges, ascending.
    pub(super) fn ranges(&self) -> Vec<RangeInclusive<u16>> {
        let mut ranges: Vec<RangeInclusive<u16>> = Vec::new();
        for slot in self.iter() {
            match ranges.last_mut() {
                Some(last) if *last.end() + 1 == slot => *last = *last.start()..=slot,
                _ => ranges.push(slot..=slot),
            }
        }
        ranges
    }
}

impl fmt::Debug for SlotSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.ranges()).finish()
    }
}

/// The one of `primaries` that owns `slot` when all own an equal share, in order.
pub(super) fn even_owner(slot: u16, primaries: usize) -> usize {
    usize::from(slot) * primaries / usize::from(SLOTS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_name_every_slot_once() {
        let mut set = SlotSet::new();
        set.insert_all(0..=5);
        set.insert_all(63..=64);
        set.insert(16_383);
        assert_eq!(set.ranges(), [0..=5, 63..=64, 16_383..=16_383]);
        assert_eq!((set.len(), set.complement().len()), (9, 16_375));
    }

    #[test]
    fn equal_shares_cover_all_slots_in_order_and_differ_by_one_at_most() {
        for primaries in 1..=64 {
            let mut shares = vec![0; primaries];
            (0..SLOTS).for_each(|slot| shares[even_owner(slot, primaries)] += 1);
            let (least, most) = (shares.iter().min().unwrap(), shares.iter().max().unwrap());
            assert!(most - least <= 1, "{primaries} primaries: {shares:?}");
        }
    }
}
