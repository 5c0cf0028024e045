//! The merge against a naive model: sort everything, drop doubles, cut what lies outside.
//!
//! Simulated sources answer as Redis does: batches of any size, in any order, with doubles, late hints, bounds that
//! stand still. After each step everything taken must be a prefix of the naive answer, and covered by every source.

use proptest::prelude::*;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};

use super::*;
use crate::ids::PostId;
use crate::timeline::cursor::{Cursor, Range};

use Direction::{Down, Up};

/// The ends of a page; ids themselves, nothing mirrored.
#[derive(Debug, Clone, Copy)]
struct Ends {
    direction: Direction,
    from: u64,
    until: u64,
}

impl Ends {
    fn holds(self, id: u64) -> bool {
        match self.direction {
            Down => self.until < id && id < self.from,
            Up => self.from < id && id < self.until,
        }
    }

    /// Whether a source with this bound vouches for `id`.
    fn covers(self, bound: u64, id: u64) -> bool {
        match self.direction {
            Down => id >= bound,
            Up => id <= bound,
        }
    }

    /// In the page's order, without doubles.
    fn sorted(self, entries: impl IntoIterator<Item = PageEntry>) -> Vec<PageEntry> {
        let mut all: Vec<PageEntry> = entries.into_iter().collect();
        all.sort_unstable();
        all.dedup();
        if self.direction == Down {
            all.reverse();
        }
        all
    }

    fn naive(self, entries: impl IntoIterator<Item = PageEntry>) -> Vec<PageEntry> {
        self.sorted(entries.into_iter().filter(|entry| self.holds(entry.id)))
    }
}

/// A source as the merge sees it from outside.
#[derive(Debug, Clone)]
struct Source {
    number: usize,
    /// All that it holds, in the page's order, also outside its ends, also what it does not vouch for.
    holds: Vec<PageEntry>,
    /// How far it has vouched for being complete.
    bound: u64,
    /// How far it can ever vouch for.
    end: u64,
}

struct Reader {
    ends: Ends,
    merge: Merge,
    sources: Vec<Source>,
    expected: Vec<PageEntry>,
    taken: Vec<PageEntry>,
    rng: StdRng,
}

impl Reader {
    fn new(ends: Ends, entries: &[PageEntry], rng: StdRng) -> Self {
        let merge = Merge::new(ends.direction, ends.from, ends.until);
        let expected = ends.naive(entries.iter().copied());
        Self { ends, merge, sources: Vec::new(), expected, taken: Vec::new(), rng }
    }

    fn end(&self) -> u64 {
        if self.ends.direction == Down { 0 } else { u64::MAX }
    }

    fn add(&mut self, holds: impl IntoIterator<Item = PageEntry>, end: u64) {
        let number = self.merge.open();
        let holds = self.ends.sorted(holds);
        self.sources.push(Source { number, holds, bound: self.ends.from, end });
    }

    /// One answer: its next few entries, shuffled, some twice, with hints from anywhere beyond.
    fn ask(&mut self, at: usize) {
        let (ends, rng) = (self.ends, &mut self.rng);
        let Source { number, holds, bound, end } = &mut self.sources[at];
        let mut next = match holds.iter().filter(|e| !ends.covers(*bound, e.id)).nth(rng.random_range(0..6)) {
            // As an outbox: the oldest that was read. Or as a home: the watermark after it.
            Some(entry) if rng.random() => entry.id,
            Some(entry) if ends.direction == Down => entry.id.saturating_add(1),
            Some(entry) => entry.id.saturating_sub(1),
            None => *end,
        };
        if ends.covers(next, *end) && next != *end {
            next = *end;
        }
        let hint = if rng.random() { 0.0 } else { 0.3 };
        let mut answer = Vec::new();
        for &entry in holds.iter() {
            if ends.covers(next, entry.id) && !ends.covers(*bound, entry.id) || rng.random_bool(hint) {
                answer.push(entry);
            }
        }
        answer.extend_from_within(..answer.len() / 3);
        answer.shuffle(rng);
        self.merge.feed(*number, answer, next);
        // A worse bound, as of an answer that was overtaken, changes nothing.
        if rng.random_bool(0.1) {
            self.merge.feed(*number, [], *bound);
        }
        if !ends.covers(*bound, next) {
            *bound = next;
        }
    }

    fn is_covered(&self, id: u64) -> bool {
        self.sources.iter().all(|source| self.ends.covers(source.bound, id))
    }

    fn take(&mut self, limit: usize) -> usize {
        let page = self.merge.take(limit);
        for entry in &page {
            assert!(self.is_covered(entry.id), "{entry:?} was taken before it was safe");
        }
        if let Some(over) = page.get(limit.saturating_sub(1)..).filter(|_| limit > 0) {
            assert!(over.iter().all(|entry| entry.id == page[limit - 1].id), "{page:?} is more than {limit}");
        }
        self.taken.extend(&page);
        assert!(
            self.expected.starts_with(&self.taken),
            "{:?} is no prefix of {:?}",
            self.taken,
            self.expected
        );
        let rest = &self.expected[self.taken.len()..];
        if let (Some(last), Some(next)) = (self.taken.last(), rest.first()) {
            assert_ne!(last.id, next.id, "cut between two entries of one id");
        }
        if page.len() < limit
            && let Some(next) = rest.first()
        {
            assert!(!self.is_covered(next.id), "{next:?} was safe and not taken");
        }
        let reached = self.merge.reached();
        assert!(self.taken.iter().all(|entry| self.ends.covers(reached, entry.id)));
        assert!(!rest.iter().any(|entry| self.ends.covers(reached, entry.id)));
        page.len()
    }

    /// Source 0 is a home that vouches for no more: whole outboxes take its place where it ends.
    fn replace_home(&mut self, outboxes: &[Vec<PageEntry>]) {
        let floor = self.merge.retire(0);
        assert_eq!(floor, self.sources[0].bound);
        self.sources[0].bound = self.end();
        self.sources[0].holds.clear();
        for outbox in outboxes {
            let number = self.merge.open_at(floor);
            let (holds, end) = (self.ends.sorted(outbox.iter().copied()), self.end());
            self.sources.push(Source { number, holds, bound: floor, end });
        }
    }

    /// Takes and asks until `limit` entries are there, for `rounds`, and until the page has moved at all. Returns
    /// whether more may follow.
    fn read(&mut self, limit: usize, rounds: usize, outboxes: &[Vec<PageEntry>]) -> bool {
        let mut missing = limit;
        let mut is_home = true;
        for round in 0..100_000 {
            if round >= rounds && self.merge.reached() != self.ends.from {
                return true;
            }
            let step = self.rng.random_range(0..5).min(missing);
            missing = missing.saturating_sub(self.take(step));
            let wanting = self.merge.wanting();
            let is_done = self.merge.is_exhausted();
            assert_eq!(is_done, wanting.is_empty() && self.taken.len() == self.expected.len());
            if is_done || missing == 0 {
                return !is_done;
            }
            for &number in &wanting {
                assert_eq!(self.sources[number].bound, self.merge.bound(), "not what holds the page up");
            }
            let more = self.merge.wanting_for(self.rng.random_range(0..8));
            assert!(wanting.iter().all(|number| more.contains(number)));
            let home_ends = is_home && wanting.contains(&0) && self.sources[0].bound == self.sources[0].end;
            if is_home && (home_ends || self.rng.random_bool(0.02)) {
                is_home = false;
                self.replace_home(outboxes);
                continue;
            }
            let ask = if self.rng.random() { wanting } else { more };
            let some = self.rng.random_range(1..=ask.len().max(1));
            ask.into_iter().take(some).for_each(|number| self.ask(number));
        }
        panic!("it came to no end")
    }
}

/// Everything that exists, each author with a whole outbox; a home that has it all down to its floor and hints below.
#[derive(Debug, Clone)]
struct World {
    outboxes: Vec<Vec<PageEntry>>,
    home: Vec<PageEntry>,
    floor: u64,
}

impl World {
    fn all(&self) -> Vec<PageEntry> {
        self.outboxes.concat()
    }

    fn reader(&self, ends: Ends, rng: StdRng) -> Reader {
        let mut reader = Reader::new(ends, &self.all(), rng);
        let covers = |entry: &PageEntry| ends.covers(self.floor, entry.id);
        let home = self.all().into_iter().filter(covers).chain(self.home.iter().copied());
        reader.add(home, self.floor);
        // Some are pulled from the start, though the home has them too.
        for outbox in &self.outboxes[..self.outboxes.len() / 3] {
            reader.add(outbox.iter().copied(), reader.end());
        }
        reader
    }
}

fn id() -> impl Strategy<Value = u64> {
    // Few ids, so that authors share them; both ends of what there is.
    prop_oneof![8 => 1..60_u64, 1 => u64::MAX - 20..u64::MAX, 1 => Just(1 << 62)]
}

fn end() -> impl Strategy<Value = u64> {
    prop_oneof![3 => id(), 1 => Just(0), 1 => Just(u64::MAX)]
}

fn ends() -> impl Strategy<Value = Ends> {
    let whole = prop_oneof![
        Just(Ends { direction: Down, from: u64::MAX, until: 0 }),
        Just(Ends { direction: Up, from: 0, until: u64::MAX }),
    ];
    let any = (any::<bool>(), end(), end()).prop_map(|(down, from, until)| {
        let direction = if down { Down } else { Up };
        Ends { direction, from, until }
    });
    prop_oneof![whole, any]
}

fn world() -> impl Strategy<Value = World> {
    let entries = prop::collection::vec((id(), 0..9_u64, any::<bool>()), 0..120);
    (entries, end()).prop_map(|(entries, floor)| {
        let mut world = World { outboxes: vec![Vec::new(); 9], home: Vec::new(), floor };
        for (id, index, is_hint) in entries {
            // Authors' ids from both ends as well.
            let author = if index % 2 == 0 { index } else { u64::MAX - index };
            let entry = PageEntry { id, author };
            world.outboxes[usize::try_from(index).unwrap()].push(entry);
            world.home.extend(is_hint.then_some(entry));
        }
        world
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn any_sources_give_what_sorting_gives(world in world(), ends in ends(), seed: u64) {
        let mut reader = world.reader(ends, StdRng::seed_from_u64(seed));
        prop_assert!(!reader.read(usize::MAX, usize::MAX, &world.outboxes));
        prop_assert_eq!(&reader.taken, &reader.expected);
        let reached = reader.merge.reached();
        prop_assert_eq!(reached, reader.merge.bound());
        prop_assert!(reached == ends.until || !ends.holds(reached));
        prop_assert!(reader.merge.take(10).is_empty());
    }

    #[test]
    fn a_walk_by_cursors_shows_every_entry_once(
        world in world(), limit in 1..12_usize, rounds in 2..20_usize, seed: u64
    ) {
        let mut shown = Vec::new();
        let mut cursor = None;
        for page in 0_u64.. {
            let (direction, from, until) = Range::default().window(cursor);
            let ends = Ends { direction, from, until };
            let mut reader = world.reader(ends, StdRng::seed_from_u64(seed.wrapping_add(page)));
            let more = reader.read(limit, rounds, &world.outboxes);
            shown.extend(reader.taken);
            if !more {
                break;
            }
            let next = Cursor::below(reader.merge.reached());
            prop_assert!(next.id() < from, "the cursor has not moved");
            cursor = Some(next.to_string().parse().unwrap());
        }
        let newest = Ends { direction: Down, from: u64::MAX, until: 0 };
        prop_assert_eq!(shown, newest.naive(world.all()));
    }

    #[test]
    fn any_range_gives_the_page_that_mastodon_gives(
        since in prop::option::of(0..12_u64), min in prop::option::of(0..12_u64), max in prop::option::of(0..12_u64),
        limit in 1..12_usize, seed: u64,
    ) {
        let inside = |id: &u64| max.is_none_or(|max| *id < max) && Some(*id) > since && Some(*id) > min;
        let mut ids: Vec<u64> = (1..=10).filter(inside).collect();
        if min.is_none() {
            ids.reverse();
        }
        ids.truncate(limit);
        if min.is_some() {
            ids.reverse();
        }
        prop_assert_eq!(page_of_ten(range(since, min, max), limit, seed), ids);
    }
}

fn range(since: Option<u64>, min: Option<u64>, max: Option<u64>) -> Range {
    let post = |id: Option<u64>| id.map(|id| PostId::from_u64(id).unwrap());
    Range { since_id: post(since), min_id: post(min), max_id: post(max) }
}

/// A page of the posts 1 to 10, which lie about in three sources at random, newest first.
fn page_of_ten(range: Range, limit: usize, seed: u64) -> Vec<u64> {
    let mut rng = StdRng::seed_from_u64(seed);
    let mut outboxes = vec![Vec::new(); 3];
    for id in 1..=10 {
        outboxes[rng.random_range(0..3)].push(PageEntry { id, author: 7 });
    }
    let (direction, from, until) = range.window(None);
    let ends = Ends { direction, from, until };
    let mut reader = Reader::new(ends, &outboxes.concat(), rng);
    outboxes.iter().for_each(|outbox| reader.add(outbox.iter().copied(), reader.end()));
    reader.read(limit, usize::MAX, &outboxes);
    if direction == Up {
        reader.taken.reverse();
    }
    reader.taken.iter().map(|entry| entry.id).collect()
}

#[test]
fn the_examples_of_mastodons_documentation() {
    for seed in 0..100 {
        assert_eq!(page_of_ten(range(None, None, None), 3, seed), [10, 9, 8], "seed {seed}");
        assert_eq!(page_of_ten(range(Some(2), None, None), 3, seed), [10, 9, 8], "seed {seed}");
        assert_eq!(page_of_ten(range(None, Some(2), None), 3, seed), [5, 4, 3], "seed {seed}");
        assert_eq!(page_of_ten(range(None, Some(2), Some(5)), 3, seed), [4, 3], "seed {seed}");
        assert_eq!(page_of_ten(range(Some(3), Some(2), Some(5)), 3, seed), [4], "seed {seed}");
    }
}

fn entries(ids: impl IntoIterator<Item = u64>) -> Vec<PageEntry> {
    ids.into_iter().map(|id| PageEntry { id, author: 1 }).collect()
}

#[test]
fn nothing_is_taken_before_every_source_was_asked() {
    let mut merge = Merge::new(Down, u64::MAX, 0);
    let (home, outbox) = (merge.open(), merge.open());
    merge.feed(home, entries(1..50), 0);
    assert_eq!(merge.take(10), []);
    assert_eq!(merge.wanting(), [outbox]);
    assert_eq!(merge.reached(), u64::MAX);
    merge.feed(outbox, [], 0);
    assert_eq!(merge.take(2), entries([49, 48]));
    assert_eq!(merge.reached(), 48);
}

#[test]
fn an_empty_page_has_a_cursor_that_moved() {
    let mut merge = Merge::new(Down, 1000, 0);
    let outbox = merge.open();
    merge.feed(outbox, [], 700);
    assert_eq!(merge.take(10), []);
    assert_eq!((merge.reached(), merge.is_exhausted()), (700, false));
}

#[test]
fn a_page_never_ends_between_two_entries_of_one_id() {
    for (direction, from, until) in [(Down, 9, 1), (Up, 1, 9)] {
        let mut merge = Merge::new(direction, from, until);
        let source = merge.open();
        let twins = [PageEntry { id: 5, author: 1 }, PageEntry { id: 5, author: 2 }];
        merge.feed(source, twins.into_iter().chain(entries([4, 6])), until);
        let mut page = merge.take(2);
        page.sort_unstable();
        assert_eq!(page.len(), 3);
        assert!(twins.iter().all(|twin| page.contains(twin)));
        assert_eq!(merge.reached(), 5);
        assert_eq!(merge.take(2).len(), 1);
    }
}

#[test]
fn sources_that_would_hold_up_the_missing_entries_are_wanted_with_the_first() {
    let mut merge = Merge::new(Down, 1000, 0);
    let numbers: Vec<usize> = (0..4).map(|_| merge.open()).collect();
    for (number, bound) in numbers.into_iter().zip([900, 800, 500, 0]) {
        merge.feed(number, entries([bound + 5, bound + 1]), bound);
    }
    assert_eq!(merge.wanting(), [0]);
    assert_eq!(merge.wanting_for(2), [0], "901 is safe where 1 stands");
    assert_eq!(merge.wanting_for(5), [0, 1], "the fifth is 505");
    assert_eq!(merge.wanting_for(8), [0, 1, 2], "the eighth is 1");
    assert_eq!(merge.wanting_for(9), [0, 1, 2], "complete sources are never asked");
}

#[test]
fn a_late_source_owes_only_what_lies_beyond_its_place() {
    let mut merge = Merge::new(Down, 1000, 0);
    let home = merge.open();
    merge.feed(home, entries([900, 600, 300]), 501);
    assert_eq!(merge.take(10), entries([900, 600]));
    assert_eq!(merge.retire(home), 501);
    let outbox = merge.open_at(501);
    assert_eq!((merge.wanting(), merge.bound()), (vec![outbox], 501));
    merge.feed(home, entries([400]), 0);
    assert_eq!(merge.take(10), [], "a late answer of the home vouches for nothing");
    merge.feed(outbox, entries([300, 200]), 0);
    assert_eq!(merge.take(10), entries([400, 300, 200]));
    assert!(merge.is_exhausted());
}

#[test]
#[should_panic(expected = "entries up to 600 have been taken")]
fn a_source_that_comes_too_late_is_our_mistake() {
    let mut merge = Merge::new(Down, 1000, 0);
    let home = merge.open();
    merge.feed(home, entries([900, 600]), 501);
    merge.take(10);
    merge.open();
}

#[test]
fn a_source_that_has_come_next_to_the_end_is_complete() {
    for (direction, from, until, next) in [(Down, 10, 5, 6), (Up, 5, 10, 9)] {
        let mut merge = Merge::new(direction, from, until);
        let source = merge.open();
        merge.feed(source, [], next);
        assert_eq!((merge.bound(), merge.reached(), merge.is_exhausted()), (until, until, true));
        assert!(merge.wanting().is_empty());
    }
}

#[test]
fn a_page_with_no_room_between_its_ends_asks_nobody() {
    let ids = [0, 1, 2, 5, u64::MAX - 1, u64::MAX];
    for (from, until) in ids.into_iter().flat_map(|from| ids.map(|until| (from, until))) {
        for direction in [Down, Up] {
            let has_room = match direction {
                Down => from.saturating_sub(until) > 1,
                Up => until.saturating_sub(from) > 1,
            };
            let mut merge = Merge::new(direction, from, until);
            let source = merge.open();
            assert_eq!(merge.is_exhausted(), !has_room, "{direction:?} {from} {until}");
            assert_eq!(merge.wanting().is_empty(), !has_room, "{direction:?} {from} {until}");
            for bound in ids {
                merge.feed(source, entries(ids), bound);
                let (page, reached) = (merge.take(100), merge.reached());
                let ends = Ends { direction, from, until };
                assert!(page.iter().all(|entry| ends.holds(entry.id)), "{ends:?} {page:?}");
                assert!(ends.holds(reached) || reached == from || reached == until, "{ends:?} {reached}");
                assert!(has_room || ends.covers(reached, from), "{ends:?}: {reached} lies before the start");
            }
            assert!(merge.is_exhausted());
        }
    }
}
