//! What an account remarks on another one, as far as it ends by itself.

use super::call::Switch;
use super::facts::{Fact, Tri, Window};
use super::world::{Pair, World};

impl World {
    /// Whether a reader leaves reposts of an author out. It has said so of a follow or a request, and the remark ends
    /// with that: where others may have ended it since, nobody knows.
    pub(crate) fn hides_reposts(&self, pair: Pair, window: Window) -> Tri {
        let is_on = self.is_on(Switch::Reposts, pair.0, pair.1, window);
        let said = self.switches.get(&(Switch::Reposts, pair.0, pair.1));
        let said = said.and_then(|fact| fact.changes.iter().rfind(|change| change.value));
        let Some(since) = said.map(|change| change.start) else { return is_on };
        let may_end = |fact: &Fact<bool>| fact.influences.iter().any(|i| !i.value && i.until > since);
        let was_answered = self.answers.get(&pair).is_some_and(|answered| answered.to >= since);
        let is_doubtful = was_answered || self.follows.get(&pair).is_some_and(may_end);
        if is_on == Tri::Yes && is_doubtful { Tri::Maybe } else { is_on }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reposts_are_left_out_as_long_as_a_follow_lasts() {
        let mut world = World::default();
        (1..=3).for_each(|account| world.created(account, false));
        let is = |world: &World, time| {
            [(1, 3), (2, 3)].map(|pair| world.hides_reposts(pair, Window { from: time, to: time }))
        };
        for reader in [1, 2] {
            world.followed((reader, 3), 10, 11, true);
            world.switched(Switch::Reposts, (reader, 3), true, (20, 21));
        }
        assert_eq!(is(&world, 30), [Tri::Yes; 2]);
        world.unfollowed((1, 3), 40, 41);
        world.switched(Switch::Block, (3, 2), true, (40, 41));
        assert_eq!(is(&world, 50), [Tri::No, Tri::Maybe]);
        // Said again of a new follow.
        world.switched(Switch::Block, (3, 2), false, (60, 61));
        for reader in [1, 2] {
            world.followed((reader, 3), 70, 71, true);
            world.switched(Switch::Reposts, (reader, 3), true, (80, 81));
        }
        assert_eq!(is(&world, 90), [Tri::Yes; 2]);
    }
}
