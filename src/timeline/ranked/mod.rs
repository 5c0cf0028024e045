//! Timelines by importance: an order of the same feeds. The newest posts that show, a window of them, are scored once;
//! what a page doesn't show of its window stands in the cursor, in that order, and behind it comes the next window.
//!
//! So nothing that happens to scores between two pages has any part in what a scroll shows (H206), and to its end that
//! is what a walk by time shows. Pure parts: `score`, `cursor`, `bits`.

mod bits;
mod cursor;
mod score;

use std::time::Duration;

pub use cursor::{RANKED_CURSOR_LEN_MAX, RankedCursor};
pub use score::{Importance, PostScorer, SCORE_TERMS_MAX, Score, ScoreFacts};

use super::around;
use super::chosen::{ChosenAuthors, ChosenSet};
use super::cursor::Cursor;
use super::draft::{DraftedPage, JudgedPost};
use super::feed::Feed;
use super::filter::SeenPost;
use super::page::{Page, PagePost, Query};
use super::read::{ReadRequest, limit_of};
use super::view::View;
use super::viewpoint::Viewpoint;
use crate::error::{ErrorCode, Result};
use crate::ids::{AccountId, IdMap, PostId};
use crate::meters;
use crate::post::PostRef;
use crate::reader::look_at_ties;

/// Posts of a window, where there are as many.
const WINDOW: usize = 120;
/// Windows that one page is made of at most: some may show little. Then it ends early, with a cursor that has moved.
const WINDOWS_MAX: usize = 4;
/// So many posts a window is made shorter by, as often as its cursor would be too long.
const SHORTER: usize = 8;
/// An act on a post of two weeks ago counts half.
const HALF_MS: f64 = 14.0 * 86_400_000.0;

/// A timeline that can be read by importance.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(tag = "kind", content = "of", rename_all = "snake_case")]
#[non_exhaustive]
pub enum RankedFeed {
    /// The posts of all that the reader follows, and its own.
    #[default]
    Home,
    /// Of these what some accounts have posted.
    Chosen(ChosenAuthors),
    /// The posts of one account.
    Profile(AccountId),
}

/// A question for a page by importance.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct RankedQuery {
    /// Of which timeline.
    pub feed: RankedFeed,
    /// The place where another page ended, to go on from.
    pub cursor: Option<RankedCursor>,
    /// Posts on the page: 1 to 100; `None`: 20, or what the settings say.
    pub limit: Option<usize>,
    /// Whether it says what the reader likes, has bookmarked and reposted.
    #[serde(rename = "marks")]
    pub ties: bool,
}

impl RankedQuery {
    /// The most important of the newest posts of a timeline.
    pub fn of(feed: RankedFeed) -> Self {
        Self { feed, ..Self::default() }
    }

    /// Sets how many posts the page has.
    #[must_use]
    pub fn limit(self, posts: usize) -> Self {
        Self { limit: Some(posts), ..self }
    }

    /// Goes on from where another page ended.
    #[must_use]
    pub fn after(self, cursor: RankedCursor) -> Self {
        Self { cursor: Some(cursor), ..self }
    }

    /// Asks what the reader likes, has bookmarked and reposted.
    #[must_use]
    pub fn with_ties(self) -> Self {
        Self { ties: true, ..self }
    }
}

/// A page by importance.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize)]
pub struct RankedPage {
    /// The posts, the most important first, with authors and originals. A page may be shorter than asked for, even
    /// empty, and still have a next one.
    pub posts: Vec<PagePost>,
    /// The next page; `None`: that was the end.
    pub next: Option<RankedCursor>,
    /// Whether the archive was away, as on a [`Page`].
    pub lacks_archive: bool,
}

/// A post of the newest window, and how it was scored.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct ScoredPost {
    /// Its id.
    pub id: PostId,
    /// Its author.
    pub author: AccountId,
    /// The sum of its terms.
    pub total: f64,
    /// Its score, term by term.
    pub score: Score,
}

/// A ranking: what is scored, by what, for whom.
struct Ranking<'a> {
    by: Viewpoint<'a>,
    scorer: &'a dyn PostScorer,
    feed: Feed,
    /// Whether all of it stands in one account's outbox.
    is_profile: bool,
    /// With what pages come along.
    along: Query,
}

/// Posts of a feed by time that are to be ranked.
struct RankedWindow<'a> {
    view: View<'a>,
    /// Those that show, newest first.
    posts: Vec<PostRef>,
    below: Option<u64>,
    lacks_archive: bool,
    judged: Vec<JudgedPost>,
}

/// Reads a page by importance.
pub(crate) async fn read_ranked(
    by: Viewpoint<'_>,
    scorer: &dyn PostScorer,
    query: &RankedQuery,
) -> Result<RankedPage> {
    let ranking = Ranking::new(by, scorer, query).await?;
    let limit = limit_of(by, query.limit)?;
    meters::read("ranked");
    let mut page = RankedPage::default();
    let mut below = Some(u64::MAX);
    if let Some(cursor) = &query.cursor {
        let left = ranking.show_rest(cursor, limit, &mut page).await?;
        below = cursor.below();
        if left > 0 {
            page.next = Some(cursor.with_last(left));
            return Ok(page);
        }
    }
    for _ in 0..WINDOWS_MAX {
        let missing = limit - page.posts.len();
        let Some(from) = below.filter(|_| missing > 0 && !page.lacks_archive) else { break };
        let rest = match ranking.show_window(from, missing, &mut page).await {
            // What stands on the page already shows.
            Err(e) if e.code() == ErrorCode::ArchiveAway && !page.posts.is_empty() => {
                page.lacks_archive = true;
                break;
            }
            rest => rest?,
        };
        below = rest.below();
        if !rest.rest().is_empty() {
            page.next = Some(rest);
            return Ok(page);
        }
    }
    page.next = below.map(RankedCursor::below_id);
    Ok(page)
}

/// Tells how the newest posts of a home are scored, in the order in which they show. Changes nothing.
pub(crate) async fn explain_ranked(
    by: Viewpoint<'_>,
    scorer: &dyn PostScorer,
    query: &RankedQuery,
) -> Result<(Vec<ScoredPost>, Vec<JudgedPost>)> {
    let ranking = Ranking::new(by, scorer, query).await?;
    let window = ranking.window(u64::MAX, true).await?;
    let scores = ranking.scores(&window, |score| score).await?;
    let totals: Vec<f64> = scores.iter().map(Score::total).collect();
    let scored = |at: usize| {
        let PostRef { id, author } = window.posts[at];
        ScoredPost { id, author, total: totals[at], score: scores[at] }
    };
    let ordered = ranking.order(&window, window.posts.len(), &totals);
    Ok((ordered.into_iter().map(scored).collect(), window.judged))
}

impl<'a> Ranking<'a> {
    async fn new(by: Viewpoint<'a>, scorer: &'a dyn PostScorer, query: &RankedQuery) -> Result<Self> {
        let feed = match &query.feed {
            RankedFeed::Home => Feed::home(),
            RankedFeed::Chosen(chosen) => Feed::chosen(ChosenSet::new(chosen)?),
            RankedFeed::Profile(account) => {
                by.timelines.tenant.existing(*account).await?.no_chat()?;
                Feed::profile(*account, true, true)
            }
        };
        let is_profile = matches!(query.feed, RankedFeed::Profile(_));
        Ok(Self {
            by,
            scorer,
            feed,
            is_profile,
            along: Query { ties: query.ties, ..Query::default() }.hydrated(),
        })
    }

    /// Puts what is left of a window onto a page, as far as it shows now; gives how many are left then.
    ///
    /// H207: each of them is judged as of now, by the same rule as in its window: it may be gone, or not for the reader
    /// any more, and a cursor that somebody has made up names what it likes.
    async fn show_rest(&self, cursor: &RankedCursor, limit: usize, page: &mut RankedPage) -> Result<usize> {
        let mut rest = cursor.rest();
        while !rest.is_empty() && page.posts.len() < limit {
            let (now, later) = rest.split_at(rest.len().min(limit - page.posts.len()));
            let (mut view, found) = View::of_posts(self.by, now).await?;
            let untold = view.load_as_told(&found, &[]).await?;
            let is_untold = |id: &PostId| {
                let post = found.iter().find(|post| post.id == *id);
                untold.as_ref().is_some_and(|untold| {
                    untold.has(*id) || post.is_some_and(|post| view.is_untold(*post, Some(untold)))
                })
            };
            let told = now.iter().position(is_untold).unwrap_or(now.len());
            let shows =
                |post: &PostRef| now[..told].contains(&post.id) && self.feed.admitted(&view, *post).is_ok();
            let shown: Vec<PostRef> = found.iter().copied().filter(shows).collect();
            self.put(&mut view, &shown, page).await?;
            rest = &rest[told..];
            if let Some(untold) = untold.filter(|_| told < now.len()) {
                if page.posts.is_empty() {
                    return Err(untold.because);
                }
                meters::archive_away();
                page.lacks_archive = true;
                return Ok(rest.len());
            }
            rest = later;
        }
        Ok(rest.len())
    }

    /// Puts the most important of a window onto a page; gives where to go on.
    async fn show_window(&self, from: u64, missing: usize, page: &mut RankedPage) -> Result<RankedCursor> {
        let mut window = self.window(from, false).await?;
        page.lacks_archive = window.lacks_archive && window.posts.len() < missing;
        let totals = self.scores(&window, |score| score.total()).await?;
        let (mut count, mut below) = (window.posts.len(), window.below);
        loop {
            let ordered = self.order(&window, count, &totals);
            let ordered: Vec<PostRef> = ordered.into_iter().map(|at| window.posts[at]).collect();
            let (shown, rest) = ordered.split_at(missing.min(count));
            let rest: Vec<PostId> = rest.iter().map(|post| post.id).collect();
            if let Some(cursor) = RankedCursor::of(self.by.timelines.tenant.keys().buckets(), &rest, below) {
                self.put(&mut window.view, shown, page).await?;
                return Ok(cursor);
            }
            // Posts that lie years apart: the oldest of them belong to the next window then.
            count = count.saturating_sub(SHORTER).max(missing.min(count));
            below = window.posts.get(count - 1).map(|post| post.id.get()).or(below);
        }
    }

    /// The order of so many posts of a window, in which only so many of one author stand in a row: in a group's own
    /// feed, of one member; elsewhere a group is one author.
    fn order(&self, window: &RankedWindow<'_>, count: usize, totals: &[f64]) -> Vec<usize> {
        let by = |post: &PostRef| match self.is_profile.then(|| window.view.loaded.seen(*post)).flatten() {
            Some(seen) => seen.met.post.writer(),
            None => post.author,
        };
        let posts = window.posts[..count].iter().zip(totals);
        score::order(&posts.map(|(post, total)| (by(post), *total)).collect::<Vec<_>>())
    }

    /// The newest posts below an id that show.
    async fn window(&self, from: u64, is_explained: bool) -> Result<RankedWindow<'a>> {
        let query = Query { cursor: Some(Cursor::below(from)), ..Query::default() };
        let request = ReadRequest { limit: WINDOW, ..ReadRequest::new(self.by, &query, is_explained)? };
        let (view, page) = request.reading_of(&self.feed, None).await?.drafted()?;
        let DraftedPage { posts, next, lacks_archive, judged, .. } = page;
        // The view outlives what it was begun for.
        let view = View { by: self.by, ..view };
        Ok(RankedWindow { view, posts, below: next.map(Cursor::id), lacks_archive, judged })
    }

    /// Scores the posts of a window; gives what is `wanted` of each score.
    async fn scores<T>(&self, window: &RankedWindow<'_>, wanted: impl Fn(Score) -> T) -> Result<Vec<T>> {
        let (timelines, reader) = (self.by.timelines, self.by.reader);
        let (readers, view) = (&timelines.graph.readers, &window.view);
        let stamps = &view.current.stamps;
        let acts = look_at_ties(readers, reader, stamps).await?.acts(readers, reader, stamps).await?;
        let now_ms = timelines.tenant.router().now_ms();
        let seen = |post: &PostRef| view.loaded.seen(*post);
        let mut affinities: IdMap<AccountId, f64> = IdMap::default();
        let mut count = |act: PostRef| {
            #[expect(clippy::cast_precision_loss, reason = "milliseconds of an age")]
            let age_ms = now_ms.saturating_sub(act.id.unix_ms()) as f64;
            *affinities.entry(act.author).or_default() += (-age_ms / HALF_MS).exp2();
        };
        acts.into_iter().for_each(&mut count);
        // What it answers and quotes stands in its own posts, of which the newest are here.
        let is_own = |own: &SeenPost<'_>| own.met.post.writer() == reader;
        for own in window.posts.iter().filter_map(seen).filter(is_own) {
            let header = own.met.post.header();
            let quoted = header.original.filter(|_| !own.met.post.is_plain_repost());
            header.reply_to.into_iter().chain(quoted).filter(|act| act.author != reader).for_each(&mut count);
        }
        let affinity = |author: AccountId| affinities.get(&author).copied().unwrap_or_default();
        let score = |post: &PostRef| {
            let Some(seen) = seen(post) else { return wanted(Score::default()) };
            let original = seen.original.filter(|_| seen.met.post.is_plain_repost());
            let header = original.map_or(seen.met.post, |original| original.post).header();
            let of_original = original.map_or(0.0, |original| affinity(original.author.id));
            let score = self.scorer.score(&ScoreFacts {
                reader,
                post: seen.met.post,
                original: original.map(|original| original.post),
                age: Duration::from_millis(now_ms.saturating_sub(post.id.unix_ms())),
                likes: header.likes,
                reposts: header.reposts.saturating_add(header.quotes),
                replies: header.replies,
                affinity: affinity(post.author).max(of_original),
            });
            wanted(score)
        };
        Ok(window.posts.iter().map(score).collect())
    }

    /// Puts posts that were loaded onto a page, with what comes along.
    async fn put(&self, view: &mut View<'_>, posts: &[PostRef], page: &mut RankedPage) -> Result<()> {
        let mut part =
            Page { posts: posts.iter().map(|post| view.page_post(*post)).collect(), ..Page::default() };
        around::add(view, &self.along, &mut part).await?;
        page.posts.extend(part.posts);
        Ok(())
    }
}
