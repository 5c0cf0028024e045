//! What one of a thing costs, where it is the difference between two things that were measured. Pure.

use crate::report::count;
use crate::systems::PAGE;

/// CPU of the servers and of the client, bytes on the wire.
pub(super) type Sides = [f64; 3];

/// What costs less than nothing: the difference is smaller than what it is the difference of varies.
#[derive(Debug, Default)]
pub(super) struct Noise {
    pub(super) below: Vec<String>,
}

impl Noise {
    /// The same, nothing below 0; whatever of its CPU was, is remembered by this name.
    pub(super) fn above(&mut self, name: &str, sides: Sides) -> Sides {
        for (side, us) in ["servers", "client"].iter().zip(sides) {
            if us < 0.0 {
                self.below.push(format!("{name} ({side})"));
            }
        }
        sides.map(|side| side.max(0.0))
    }
}

pub(super) fn less(this: Sides, other: Sides) -> Sides {
    [0, 1, 2].map(|side| this[side] - other[side])
}

pub(super) fn by(sides: Sides, count: f64) -> Sides {
    sides.map(|side| side / count)
}

/// Pages as they were measured, of a home that holds all posts and of one that pulls all of `mean` authors.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pages {
    pub(super) read: Sides,
    pub(super) check: Sides,
    pub(super) pulled: Sides,
    /// Looks at outboxes for each page that pulls.
    pub(super) looks: f64,
    /// The same three where nothing is remembered: read, check, pulled.
    pub(super) uncached: [Sides; 3],
    pub(super) mean: f64,
}

/// What they tell.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct PageUnits {
    pub(super) load: Sides,
    pub(super) pull: Sides,
    pub(super) look: Sides,
}

impl Pages {
    pub(super) fn units(&self, noise: &mut Noise) -> PageUnits {
        let [read, check, pulled] = self.uncached;
        // A check that finds nothing loads nothing: what it costs more without caches is not of posts and their
        // authors.
        let shown = less(less(read, check), less(self.read, self.check));
        let load = noise.above("load_us", by(shown, 2.0 * count(PAGE as u64)));
        // Without caches a page looks at all outboxes, with them at few.
        let (all, few) = (less(pulled, read), less(self.pulled, self.read));
        let look = noise.above("look_us", by(less(all, few), (self.mean - self.looks).max(1.0)));
        let looks = look.map(|side| side * self.looks);
        let pull = noise.above("pull_us", by(less(few, looks), self.mean));
        PageUnits { load, pull, look }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loads_pulls_and_looks_are_found_from_pages_with_caches_and_without() {
        // A check costs 6, a page 10; without caches each costs 3 more, and 40 loads of 2. A pull costs 1, a look 5; of
        // 100 authors 20 are looked at.
        let same = |us: f64| [us; 3];
        let pages = Pages {
            read: same(10.0),
            check: same(6.0),
            pulled: same(10.0 + 100.0 + 20.0 * 5.0),
            looks: 20.0,
            uncached: [same(13.0 + 80.0), same(9.0), same(13.0 + 80.0 + 100.0 + 500.0)],
            mean: 100.0,
        };
        let mut noise = Noise::default();
        let found = pages.units(&mut noise);
        for (found, wanted) in [(found.load, 2.0), (found.pull, 1.0), (found.look, 5.0)] {
            assert!(found.iter().all(|side| (side - wanted).abs() < 1e-9), "{found:?} {wanted}");
        }
        assert!(noise.below.is_empty());
    }

    #[test]
    fn what_costs_less_than_nothing_is_nothing_and_told() {
        let mut noise = Noise::default();
        assert_eq!(noise.above("pull_us", [-0.1, 0.2, -3.0]), [0.0, 0.2, 0.0]);
        assert_eq!(noise.below, ["pull_us (servers)"]);
    }
}
