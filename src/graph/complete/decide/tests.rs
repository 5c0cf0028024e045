//! Facts and the step that follows from them; and the steps against a small model of an author and a home.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

fn seen(mode: u8, reach: u64, ids: &[u64]) -> AuthorSeen {
    AuthorSeen { mode, reach, ids: ids.to_vec() }
}

#[test]
fn a_mark_goes_after_the_edge_the_authors_word_and_a_fence_in_this_order_and_only_if_it_is_pushed() {
    let mut facts = UnmarkFacts::new(false);
    assert!(matches!(facts.step(), UnmarkStep::WriteEdges));
    facts.are_written = true;
    assert!(matches!(facts.step(), UnmarkStep::AskAuthor));
    for had in [facts, UnmarkFacts::new(true), UnmarkFacts::joined(seen(b'P', 0, &[]))] {
        let mut facts = had;
        assert!(facts.seen.is_some() || matches!(facts.step(), UnmarkStep::AskAuthor));
        for (mode, is_settled) in [(b'P', true), (b'Q', false), (b'L', false), (b'X', false)] {
            (facts.seen, facts.lasts) = (Some(seen(mode, 3, &[9, 7])), false);
            assert!(matches!(facts.step(), UnmarkStep::Fence), "{facts:?}");
            facts.lasts = true;
            match facts.step() {
                UnmarkStep::Settle(seen) => assert!(is_settled && seen.ids == [9, 7], "{facts:?}"),
                UnmarkStep::AuthorGone => assert_eq!(mode, b'X'),
                UnmarkStep::Leave => assert!(!is_settled && mode != b'X', "{facts:?}"),
                step => panic!("{step:?} of {facts:?}"),
            }
        }
    }
}

#[test]
fn a_mark_is_left_unasked_only_by_who_wrote_no_edge_and_may_not_drop_the_home_that_the_ids_do_not_reach() {
    let table = [
        // (writes, may drop, the home's floor, reach), left
        ((false, false, Some(5), 6), true),
        ((false, false, Some(5), 5), false),
        ((false, false, Some(5), 0), false),
        ((false, false, None, 6), false),
        ((false, true, Some(5), 6), false),
        ((true, false, Some(5), 6), false),
    ];
    for ((writes, may_drop, floor, reach), left) in table {
        let facts = UnmarkFacts { seen: Some(seen(b'P', reach, &[])), ..UnmarkFacts::new(!writes) };
        assert_eq!(facts.leaves(floor, may_drop), left, "{facts:?}, {floor:?}, {may_drop}");
    }
}

/// An event that may happen beside a completion, before any of its steps.
#[derive(Debug, Clone, Copy)]
enum Beside {
    Nothing,
    Posts,
    /// The author is pulled from now on, on replicas too, and its followers have new marks.
    IsPromoted,
    /// The author is pushed again: not on replicas yet.
    IsDemoted,
    /// The author's server fails over: what is not on replicas is lost.
    FailsOver,
    /// The home is cut to its newest post.
    IsCut,
}

/// An author, as its server tells it.
#[derive(Debug, Clone, Default)]
struct Author {
    outbox: Vec<u64>,
    is_pulled: bool,
    has_edge: bool,
}

/// An author, and one that follows it.
#[derive(Debug, Default)]
struct World {
    author: Author,
    replicated: Author,
    life: u32,
    last_id: u64,
    mark: Option<u32>,
    last_mark: u32,
    /// Floor and posts.
    home: (u64, BTreeSet<u64>),
}

/// Ids that the model reads of an outbox.
const IDS_MAX: usize = 3;

impl World {
    fn beside(&mut self, what: Beside) {
        match what {
            Beside::Nothing => {}
            Beside::Posts => {
                self.last_id += 1;
                self.author.outbox.push(self.last_id);
                // A post that is lost is nobody's hole.
                self.replicated.outbox = self.author.outbox.clone();
                if self.author.has_edge && !self.author.is_pulled {
                    self.home.1.insert(self.last_id);
                }
            }
            Beside::IsPromoted => {
                self.last_mark += 1;
                self.mark = Some(self.last_mark);
                self.author.is_pulled = true;
                self.replicated = self.author.clone();
            }
            Beside::IsDemoted => self.author.is_pulled = false,
            Beside::FailsOver => {
                self.author = self.replicated.clone();
                self.life += 1;
            }
            Beside::IsCut => {
                self.home.0 = self.home.0.max(self.last_id.saturating_sub(1));
                self.home.1.retain(|id| *id > self.home.0);
            }
        }
    }

    fn seen(&self, floor: u64) -> AuthorSeen {
        let mut ids: Vec<u64> = self.author.outbox.iter().copied().filter(|id| *id > floor).rev().collect();
        let reach = ids.get(IDS_MAX).copied().unwrap_or(floor);
        ids.truncate(IDS_MAX);
        seen(if self.author.is_pulled { b'L' } else { b'P' }, reach, &ids)
    }

    /// As the function: by the floor as it is now.
    fn settle(&mut self, mark: u32, seen: &AuthorSeen, ids: &[u64]) {
        if self.mark == Some(mark) && seen.reach <= self.home.0 {
            self.mark = None;
            self.home.1.extend(ids.iter().filter(|id| **id > self.home.0));
        }
    }

    fn hole(&self) -> Option<u64> {
        let is_missing = |id: &&u64| **id > self.home.0 && !self.home.1.contains(id);
        self.author.outbox.iter().find(|id| self.mark.is_none() && is_missing(id)).copied()
    }
}

fn beside() -> impl Strategy<Value = Vec<Beside>> {
    use Beside::{FailsOver, IsCut, IsDemoted, IsPromoted, Nothing, Posts};
    let one = prop_oneof![
        4 => Just(Nothing), 4 => Just(Posts), 1 => Just(IsPromoted),
        2 => Just(IsDemoted), 2 => Just(FailsOver), 1 => Just(IsCut),
    ];
    proptest::collection::vec(one, 7)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    /// H15, H16, H17, H26: whatever happens beside it, and if the author's server fails over right after.
    #[test]
    fn a_mark_goes_only_when_the_home_holds_what_it_stood_for(
        before in 0_u64..6, floor in 0_u64..6, is_pulled: bool, beside in beside(),
    ) {
        let mut world = World { mark: Some(0), home: (floor.min(before), BTreeSet::new()), ..World::default() };
        world.author.is_pulled = is_pulled;
        (0..before).for_each(|_| world.beside(Beside::Posts));
        world.replicated = world.author.clone();
        let (mark, floor, mut life) = (0, world.home.0, None);
        let mut facts = UnmarkFacts::new(false);
        let mut is_over = false;
        for what in beside {
            world.beside(what);
            let first_life = *life.get_or_insert(world.life);
            match facts.step() {
                _ if is_over => {}
                UnmarkStep::WriteEdges => {
                    world.author.has_edge = true;
                    facts.are_written = true;
                }
                UnmarkStep::AskAuthor => facts.seen = Some(world.seen(floor)),
                // What that life has told may be lost.
                UnmarkStep::Fence if world.life != first_life => is_over = true,
                UnmarkStep::Fence => {
                    world.replicated = world.author.clone();
                    facts.lasts = true;
                }
                UnmarkStep::Settle(seen) => {
                    world.settle(mark, seen, above(&seen.ids, Some(floor)));
                    is_over = true;
                }
                UnmarkStep::AuthorGone | UnmarkStep::Leave => is_over = true,
            }
            prop_assert_eq!(world.hole(), None, "{:?}", world);
        }
        world.beside(Beside::FailsOver);
        world.beside(Beside::Posts);
        prop_assert_eq!(world.hole(), None, "{:?}", world);
    }

    #[test]
    fn a_home_is_given_all_ids_above_its_floor(
        ids in proptest::collection::btree_set(0_u64..20, 0..12), floor in proptest::option::of(0_u64..20),
    ) {
        let newest_first: Vec<u64> = ids.iter().rev().copied().collect();
        let naive: Vec<u64> =
            newest_first.iter().copied().filter(|id| floor.is_none_or(|floor| *id > floor)).collect();
        prop_assert_eq!(above(&newest_first, floor), naive);
    }
}
