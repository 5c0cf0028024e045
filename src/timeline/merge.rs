//! Merging sources into pages: what may be shown yet, and whom to ask for more. Pure: no I/O, no clock.
//!
//! A *source* is entries plus a bound. Reading down, a source with bound b has given everything that belongs to it
//! with an id >= b; reading up, with an id <= b. Entries are hints, in any order and as often as they like; with
//! its bound a source vouches for them. So an entry may be shown as soon as every source has vouched for its id, and
//! not before: a source that lags behind could still name a newer one.
//!
//! ```text
//! let mut merge = Merge::new(direction, from, until);      // then open(), and feed() the first answers
//! loop {
//!     page.extend(merge.take(limit.saturating_sub(page.len())));
//!     if page.len() >= limit || merge.is_exhausted() || rounds are used up { break }
//!     for source in merge.wanting_for(limit - page.len()) { ask it beyond what it gave, feed() the answer }
//! }
//! the next page starts from merge.reached(), unless merge.is_exhausted()
//! ```

use std::collections::BinaryHeap;

#[cfg(test)]
mod tests;

/// A direction in which a page is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Direction {
    /// Newest first.
    Down,
    /// Oldest first.
    Up,
}

/// A post as timelines know it: ordered by its id. After an unsynced failover two authors may hold the same id;
/// these are two entries, and whoever loads the post finds out which of them is true.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct PageEntry {
    /// The post's id.
    pub(crate) id: u64,
    /// Its author's id.
    pub(crate) author: u64,
}

/// Merges the sources of one page.
///
/// All fields think downwards; reading up, ids and authors are stored as their complements, which turns the order
/// around without a second set of rules.
#[derive(Debug)]
pub(crate) struct Merge {
    direction: Direction,
    /// Entries lie below this.
    from: u64,
    /// Entries lie above this. Never above `from`.
    until: u64,
    /// Everything from here on upwards has been taken. Never below the highest bound, never above `from`.
    passed: u64,
    /// Each source's bound; 0 for a retired one.
    bounds: Vec<u64>,
    /// What has been fed and not been taken, doubles included: all below `passed` and above `until`.
    entries: BinaryHeap<PageEntry>,
}

impl Merge {
    /// A page of the entries between `from` and `until`, neither included: down, the ids in (until, from); up, those
    /// in (from, until). The other way round nothing lies between them. Down from the newest to the end: from
    /// `u64::MAX` until 0. So neither 0 nor `u64::MAX` can be the id of an entry.
    pub(crate) fn new(direction: Direction, from: u64, until: u64) -> Self {
        let (from, until) = (mirror(direction, from), mirror(direction, until));
        Self {
            direction,
            from,
            until: until.min(from),
            passed: from,
            bounds: Vec::new(),
            entries: BinaryHeap::new(),
        }
    }

    /// Adds a source about which nothing is known, and returns its number: nothing can be taken until it has been
    /// fed. While there is no source at all, nothing limits.
    ///
    /// # Panics
    /// When something has been taken already: what this source has above that would be lost without a trace.
    pub(crate) fn open(&mut self) -> usize {
        self.open_at(mirror(self.direction, self.from))
    }

    /// Adds a source that owes nothing on the near side of `bound`, because another one has given that: the pull of
    /// the followees that takes the home's place. Returns its number.
    ///
    /// # Panics
    /// When more has been taken already than `bound` covers, as for [`open`](Self::open).
    pub(crate) fn open_at(&mut self, bound: u64) -> usize {
        let bound = mirror(self.direction, bound).min(self.from);
        assert!(
            bound <= self.passed,
            "a source was opened at {}, but entries up to {} have been taken",
            mirror(self.direction, bound),
            mirror(self.direction, self.passed)
        );
        self.bounds.push(bound);
        self.bounds.len() - 1
    }

    /// Takes in what a source has answered: entries, and how far it is complete now. Of its bounds the best one counts.
    /// Entries beyond the bound are hints: they wait until every source has passed them. Entries outside the page's
    /// ends, and those that come after their place has been taken, are left out.
    ///
    /// # Panics
    /// On a number that no `open` has returned.
    pub(crate) fn feed(&mut self, source: usize, entries: impl IntoIterator<Item = PageEntry>, bound: u64) {
        let direction = self.direction;
        let entries = entries.into_iter().filter(self.takes());
        self.entries.extend(entries.map(|entry| mirror_entry(direction, entry)));
        self.bounds[source] = self.bounds[source].min(mirror(direction, bound));
    }

    /// Whether an entry has a place on this page as it is now: the cheapest question about it, and the first.
    pub(crate) fn takes(&self) -> impl Fn(&PageEntry) -> bool + use<> {
        let (direction, until, passed) = (self.direction, self.until, self.passed);
        move |entry| {
            let id = mirror(direction, entry.id);
            until < id && id < passed
        }
    }

    /// A source is replaced by others: it no longer limits, what it gave stays. Returns its bound, where the others
    /// must be opened ([`open_at`](Self::open_at)) before the next [`take`](Self::take).
    ///
    /// # Panics
    /// On a number that no `open` has returned.
    pub(crate) fn retire(&mut self, source: usize) -> u64 {
        mirror(self.direction, std::mem::take(&mut self.bounds[source]))
    }

    /// Tells how far all sources together are complete: down, for ids >= this; up, for ids <= this. `until`, once
    /// nothing is missing before it.
    #[cfg(test)]
    pub(crate) fn bound(&self) -> u64 {
        mirror(self.direction, self.highest())
    }

    /// Takes the next entries that are safe to show, newest first when reading down, oldest first when reading up.
    ///
    /// Up to `limit` of them, and those that share the last one's id: a cursor is an id, so a page that ended
    /// between two entries of one id would lose the second. Don't cut the answer for the same reason.
    pub(crate) fn take(&mut self, limit: usize) -> Vec<PageEntry> {
        let highest = self.highest();
        let mut taken = Vec::with_capacity(limit.min(self.entries.len()));
        let mut last = None;
        while let Some(&next) = self.entries.peek()
            && next.id >= highest
            && (taken.len() < limit || next.id == self.passed)
        {
            self.entries.pop();
            self.passed = next.id;
            if last.replace(next) != Some(next) {
                taken.push(mirror_entry(self.direction, next));
            }
        }
        taken
    }

    /// The sources that hold everything up: to be asked for more beyond the bound. None: all are
    /// complete up to `until`.
    pub(crate) fn wanting(&self) -> Vec<usize> {
        self.wanting_for(0)
    }

    /// As [`wanting`](Self::wanting), and with them the sources that would hold up the next `missing` entries, as
    /// far as these are known: asking them in the same round saves the later ones. A guess: what they answer may
    /// show that some of them needn't have been asked. Each is to be asked beyond its own bound.
    pub(crate) fn wanting_for(&self, missing: usize) -> Vec<usize> {
        let highest = self.highest();
        if highest == self.until {
            return Vec::new();
        }
        let least = highest.min(self.place_of(missing).saturating_add(1));
        let wanting = self.bounds.iter().enumerate().filter(|&(_, &bound)| bound >= least);
        wanting.map(|(source, _)| source).collect()
    }

    /// Tells how far one source is complete: where it is to be asked on.
    pub(crate) fn bound_of(&self, source: usize) -> u64 {
        mirror(self.direction, self.bounds[source])
    }

    /// Whether the page has come to its end: all sources are complete up to `until`, and everything was taken.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.entries.is_empty() && self.highest() == self.until
    }

    /// Tells how far this page has gone, where the next one starts from (exclusive): everything on the near side of
    /// this, itself included, has been taken or doesn't exist. It moves with the bound even while nothing is taken.
    pub(crate) fn reached(&self) -> u64 {
        let highest = self.highest();
        let more = self.entries.peek().is_some_and(|next| next.id >= highest);
        mirror(self.direction, if more { self.passed } else { highest })
    }

    /// The highest bound; `until`, when nothing can lie between the two.
    fn highest(&self) -> u64 {
        let highest = self.bounds.iter().copied().max().unwrap_or(0);
        if highest <= self.until.saturating_add(1) { self.until } else { highest }
    }

    /// The id of the `nth` of the entries that are known, the first being 1; the last possible id when there are not
    /// so many. Doubles count: this is for guesses.
    fn place_of(&self, nth: usize) -> u64 {
        let Some(before) = nth.checked_sub(1) else { return u64::MAX };
        if before >= self.entries.len() {
            return self.until.saturating_add(1);
        }
        let mut ids: Vec<u64> = self.entries.iter().map(|entry| entry.id).collect();
        *ids.select_nth_unstable_by(before, |a, b| b.cmp(a)).1
    }
}

/// An id as [`Merge`] stores it, and back.
fn mirror(direction: Direction, id: u64) -> u64 {
    match direction {
        Direction::Down => id,
        Direction::Up => !id,
    }
}

fn mirror_entry(direction: Direction, entry: PageEntry) -> PageEntry {
    PageEntry { id: mirror(direction, entry.id), author: mirror(direction, entry.author) }
}
