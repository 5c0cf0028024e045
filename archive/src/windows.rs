//! How far one search looks: window by window, the newest first, each of them longer than the one before. So one for a
//! common word is over in a moment, one for a rare word comes to the beginning of time in a dozen steps, and one for
//! words of which each is common, and that no post has together, ends early instead of going through everything.

use std::time::{Duration, Instant};

use tideline_model::archive::SearchPage;
use tideline_model::error::Result;
use tideline_model::ids::{AccountId, PostId};

use crate::rows::{to_account, to_post};

/// Ids of one minute: their lowest 16 bits are no time.
const FIRST_SPAN: u64 = 60_000 << 16;
/// By how much a window is longer than the one before.
const GROWTH: u64 = 4;
/// No further window is begun after this time.
pub(crate) const BUDGET: Duration = Duration::from_millis(250);

/// The windows of one search, and what was found in them.
#[derive(Debug)]
pub(crate) struct Windows {
    /// Where the next one ends; itself isn't in it.
    below: u64,
    /// The lowest id that there is.
    lowest: u64,
    span: u64,
    most: usize,
    until: Instant,
    page: SearchPage,
    is_over: bool,
}

impl Windows {
    /// `ids`: the lowest and the highest id that there is below where the search begins; none: there is nothing.
    pub(crate) fn new(below: u64, most: usize, ids: Option<(i64, i64)>, budget: Duration) -> Self {
        let (lowest, highest) = ids.map_or((0, 0), |(low, high)| (low.cast_unsigned(), high.cast_unsigned()));
        Self {
            below: below.min(highest.saturating_add(1)),
            lowest,
            span: FIRST_SPAN,
            most,
            until: Instant::now() + budget,
            page: SearchPage { posts: Vec::new(), from: if most == 0 { below } else { 0 } },
            is_over: ids.is_none() || most == 0,
        }
    }

    /// Has the first window begin with this id, instead of a minute before its end.
    pub(crate) fn first_from(self, from: i64) -> Self {
        Self { span: self.below.saturating_sub(from.cast_unsigned()), ..self }
    }

    /// The next window: from which id on, below which, and how many posts are wanted.
    pub(crate) fn next(&self) -> Option<(i64, i64, usize)> {
        let from = self.below.saturating_sub(self.span).max(self.lowest);
        let wanted = self.most - self.page.posts.len();
        (!self.is_over).then_some((from.cast_signed(), self.below.cast_signed(), wanted))
    }

    /// Takes what was found in a window, ids and authors, the newest first.
    pub(crate) fn take(&mut self, found: &[(i64, i64)]) -> Result<()> {
        for (id, author) in found {
            self.page.posts.push(post(*id, *author)?);
        }
        self.below = self.below.saturating_sub(self.span).max(self.lowest);
        self.span = self.span.saturating_mul(GROWTH).max(FIRST_SPAN);
        self.page.from = if self.below <= self.lowest { 0 } else { self.below };
        if self.page.posts.len() >= self.most {
            // In this window there may be more.
            self.page.from = self.page.posts.last().map_or(0, |(id, _)| id.get());
        }
        let is_late = Instant::now() >= self.until;
        self.is_over = self.page.from == 0 || self.page.posts.len() >= self.most || is_late;
        Ok(())
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

    #[test]
    fn windows_come_to_the_lowest_id_in_a_dozen_steps() {
        // Ten years.
        let (low, high) = (7, 7 + MINUTE * 5_256_000);
        let mut windows = Windows::new(u64::MAX, 5, Some((low, high)), Duration::MAX / 4);
        let (mut steps, mut end) = (0, high + 1);
        while let Some((from, below, wanted)) = windows.next() {
            assert_eq!((below, wanted), (end, 5));
            windows.take(&[]).unwrap();
            (steps, end) = (steps + 1, from);
        }
        assert_eq!((end, windows.into_page()), (low, SearchPage::default()));
        assert!((10..=14).contains(&steps), "{steps}");
    }

    #[test]
    fn a_first_window_may_begin_anywhere_and_those_behind_it_are_longer() {
        let (low, high) = (7, 7 + MINUTE * 100);
        let begun = |from| Windows::new(u64::MAX, 5, Some((low, high)), Duration::MAX / 4).first_from(from);
        // A minute at least, however close the first posts lie together.
        for (from, then) in [(high - MINUTE * 3, high - MINUTE * 15), (high - 1_000, high - 1_000 - MINUTE)] {
            let mut windows = begun(from);
            assert_eq!(windows.next(), Some((from, high + 1, 5)));
            windows.take(&[]).unwrap();
            assert!(windows.next().unwrap().0.abs_diff(then) < 10, "{windows:?}");
        }
        let mut whole = begun(low);
        whole.take(&[]).unwrap();
        assert_eq!(whole.next(), None);
    }

    #[test]
    fn what_takes_long_ends_at_a_window_and_what_is_full_at_its_last_post() {
        let ids = Some((1, MINUTE * 100));
        let mut late = Windows::new(MINUTE.unsigned_abs() * 50, 5, ids, Duration::ZERO);
        assert_eq!(late.next(), Some((MINUTE * 49, MINUTE * 50, 5)));
        late.take(&[(MINUTE * 49 + 7, 3)]).unwrap();
        assert_eq!(late.next(), None);
        let page = late.into_page();
        assert_eq!((page.posts.len(), page.from), (1, MINUTE.unsigned_abs() * 49));

        let mut full = Windows::new(u64::MAX, 1, ids, Duration::MAX / 4);
        full.take(&[(MINUTE * 100 - 3, 3)]).unwrap();
        assert_eq!((full.next(), full.into_page().from), (None, (MINUTE * 100 - 3).unsigned_abs()));

        let nothing = Windows::new(9, 5, None, Duration::MAX / 4);
        assert_eq!((nothing.next(), nothing.into_page()), (None, SearchPage::default()));
    }
}
