//! The reach of one search: window by window, the newest first, each of them longer than the one before. So one for a
//! common word is over in a moment, one for a rare word comes to the beginning of time in a dozen steps, and one for
//! words of which each is common, and that no post has together, ends early instead of going through everything.
//!
//! The first window has a few hundred posts, and its time isn't bounded: what a call looks through at least, so that
//! whoever goes on from page to page comes to an end. Each further one has half of the time that is left. One that
//! takes longer is given up, and a quarter of it tried; from then on they grow by half as much, and after a second one
//! no more.

use std::time::{Duration, Instant};

use tideline_model::archive::SearchPage;
use tideline_model::error::Result;
use tideline_model::ids::{AccountId, PostId};

use crate::rows::{to_account, to_post};

/// Posts of the first window: of a word that one in ten has, a page of them.
pub(crate) const FIRST_POSTS: usize = 300;
/// Time for looking through windows behind the first one.
pub(crate) const SEARCH_TIMEOUT: Duration = Duration::from_millis(250);
/// The shortest span that windows grow from, one minute of ids: their lowest 16 bits are no time.
const LEAST_SPAN: u64 = 60_000 << 16;
/// By how much a window is longer than the one before, and what is given up longer than what is tried instead.
const GROWTH: u64 = 4;
/// The least time that a search has to have left for a further window to be begun.
const LEAST_TIME: Duration = Duration::from_millis(2);

/// The extent of what lies below where a search begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SearchExtent {
    pub(crate) lowest: i64,
    pub(crate) highest: i64,
    /// The lowest of the newest [`FIRST_POSTS`]; none: there aren't as many.
    pub(crate) first: Option<i64>,
}

/// A window to look through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SearchWindow {
    pub(crate) from: i64,
    /// Itself isn't in it.
    pub(crate) below: i64,
    /// How many posts are wanted.
    pub(crate) most: usize,
    /// Within which time; none: however long it takes, since it is the first one.
    pub(crate) within: Option<Duration>,
}

/// The windows of one search, and what was found in them.
#[derive(Debug)]
pub(crate) struct Windows {
    /// Where the next one ends; itself isn't in it.
    below: u64,
    /// The lowest id that there is.
    lowest: u64,
    span: u64,
    growth: u64,
    most: usize,
    until: Instant,
    page: SearchPage,
    is_first: bool,
    is_over: bool,
}

impl Windows {
    /// `extent`: none if there is nothing below where the search begins.
    pub(crate) fn new(below: u64, most: usize, extent: Option<SearchExtent>, budget: Duration) -> Self {
        let is_over = extent.is_none() || most == 0;
        let extent = extent.unwrap_or(SearchExtent { lowest: 0, highest: 0, first: None });
        let below_first = below.min(extent.highest.cast_unsigned().saturating_add(1));
        Self {
            below: below_first,
            lowest: extent.lowest.cast_unsigned(),
            span: below_first.saturating_sub(extent.first.unwrap_or(extent.lowest).cast_unsigned()),
            growth: GROWTH,
            most,
            until: Instant::now() + budget,
            page: SearchPage { posts: Vec::new(), from: if most == 0 { below } else { 0 } },
            is_first: true,
            is_over,
        }
    }

    /// The next window; none: the search is over, or its time is.
    pub(crate) fn next(&self) -> Option<SearchWindow> {
        let left = self.until.saturating_duration_since(Instant::now());
        if self.is_over || !self.is_first && left < LEAST_TIME {
            return None;
        }
        Some(SearchWindow {
            from: self.from().cast_signed(),
            below: self.below.cast_signed(),
            most: self.most - self.page.posts.len(),
            // So that time is left to try less.
            within: (!self.is_first).then_some(left / 2),
        })
    }

    /// Takes what was found in the window, ids and authors, the newest first.
    pub(crate) fn take(&mut self, found: &[(i64, i64)]) -> Result<()> {
        for (id, author) in found {
            self.page.posts.push(post(*id, *author)?);
        }
        self.below = self.from();
        let least = if self.growth == GROWTH { LEAST_SPAN } else { 1 };
        self.span = self.span.saturating_mul(self.growth).max(least);
        self.page.from = if self.below <= self.lowest { 0 } else { self.below };
        if self.page.posts.len() >= self.most {
            // In this window there may be more.
            self.page.from = self.page.posts.last().map_or(0, |(id, _)| id.get());
        }
        self.is_first = false;
        self.is_over = self.page.from == 0 || self.page.posts.len() >= self.most;
        Ok(())
    }

    /// Gives the window up, which took too long (H236).
    pub(crate) fn give_up(&mut self) {
        self.span = (self.span.min(self.below - self.lowest) / GROWTH).max(1);
        // The first one may have been dear for the way it was looked for, which its length has no part in.
        self.growth = (self.growth / 2).max(1);
    }

    fn from(&self) -> u64 {
        self.below.saturating_sub(self.span).max(self.lowest)
    }

    pub(crate) fn into_page(self) -> SearchPage {
        self.page
    }
}

fn post(id: i64, author: i64) -> Result<(PostId, AccountId)> {
    Ok((to_post(id)?, to_account(author)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: i64 = 60_000 << 16;
    const LONG: Duration = Duration::from_secs(1 << 30);

    fn extent(lowest: i64, highest: i64, first: i64) -> Option<SearchExtent> {
        Some(SearchExtent { lowest, highest, first: Some(first) })
    }

    fn bounds(windows: &Windows) -> Option<(i64, i64, usize)> {
        windows.next().map(|window| (window.from, window.below, window.most))
    }

    #[test]
    fn windows_come_to_the_lowest_id_in_a_dozen_steps() {
        // Ten years.
        let (low, high) = (7, 7 + MINUTE * 5_256_000);
        let mut windows = Windows::new(u64::MAX, 5, extent(low, high, high - MINUTE), LONG);
        let (mut steps, mut end) = (0, high + 1);
        while let Some((from, below, wanted)) = bounds(&windows) {
            assert_eq!((below, wanted), (end, 5));
            windows.take(&[]).unwrap();
            (steps, end) = (steps + 1, from);
        }
        assert_eq!((end, windows.into_page()), (low, SearchPage::default()));
        assert!((10..=14).contains(&steps), "{steps}");
    }

    #[test]
    fn the_first_window_has_some_posts_and_those_behind_it_are_longer() {
        let (low, high) = (7, 7 + MINUTE * 100);
        let begun = |first| Windows::new(u64::MAX, 5, extent(low, high, first), LONG);
        // A minute at least, however close the first posts lie together.
        for (first, then) in [(high - MINUTE * 3, high - MINUTE * 15), (high - 1_000, high - 1_000 - MINUTE)]
        {
            let mut windows = begun(first);
            assert_eq!(bounds(&windows), Some((first, high + 1, 5)));
            windows.take(&[]).unwrap();
            assert!(bounds(&windows).unwrap().0.abs_diff(then) < 10, "{windows:?}");
        }
        let few = SearchExtent { lowest: low, highest: high, first: None };
        for mut whole in [begun(low), Windows::new(u64::MAX, 5, Some(few), LONG)] {
            assert_eq!(bounds(&whole), Some((low, high + 1, 5)));
            whole.take(&[]).unwrap();
            assert_eq!(whole.next(), None);
        }
    }

    #[test]
    fn without_time_the_first_window_alone_is_looked_through_and_what_is_full_ends_at_its_last_post() {
        let below = MINUTE.unsigned_abs() * 50;
        let mut late = Windows::new(below, 5, extent(1, MINUTE * 100, MINUTE * 49), Duration::ZERO);
        let first = SearchWindow { from: MINUTE * 49, below: MINUTE * 50, most: 5, within: None };
        assert_eq!(late.next(), Some(first));
        late.take(&[(MINUTE * 49 + 7, 3)]).unwrap();
        assert_eq!(late.next(), None);
        let page = late.into_page();
        assert_eq!((page.posts.len(), page.from), (1, MINUTE.unsigned_abs() * 49));

        let mut full = Windows::new(u64::MAX, 1, extent(1, MINUTE * 100, MINUTE * 99), LONG);
        full.take(&[(MINUTE * 100 - 3, 3)]).unwrap();
        assert_eq!((full.next(), full.into_page().from), (None, (MINUTE * 100 - 3).unsigned_abs()));

        let nothing = Windows::new(9, 5, None, LONG);
        assert_eq!((nothing.next(), nothing.into_page()), (None, SearchPage::default()));
    }

    #[test]
    fn of_a_window_that_takes_too_long_a_quarter_is_tried_and_those_behind_it_grow_less() {
        let mut windows = Windows::new(u64::MAX, 5, extent(1, MINUTE * 100, MINUTE * 80), LONG);
        windows.take(&[]).unwrap();
        let whole = windows.next().unwrap();
        assert_eq!((whole.from, whole.below), (1, MINUTE * 80));
        assert!(whole.within.unwrap() <= LONG / 2 && whole.within.unwrap() > LONG / 4, "{whole:?}");
        windows.give_up();
        let quarter = windows.next().unwrap();
        assert!(quarter.below == whole.below && quarter.from.abs_diff(MINUTE * 60) < 10, "{quarter:?}");
        windows.take(&[]).unwrap();
        let next = windows.next().unwrap();
        assert_eq!(next.below, quarter.from);
        assert!(next.from.abs_diff(MINUTE * 20) < 10, "{next:?}");
        windows.give_up();
        for from in [50, 40] {
            assert!(windows.next().unwrap().from.abs_diff(MINUTE * from) < 10, "{windows:?}");
            windows.take(&[]).unwrap();
        }
        let next = windows.next().unwrap();
        // However often: each has something in it.
        for _ in 0..99 {
            windows.give_up();
        }
        assert_eq!(bounds(&windows), Some((next.below - 1, next.below, 5)));
        windows.take(&[]).unwrap();
        assert_eq!(windows.into_page().from, next.below.unsigned_abs() - 1);
    }
}
