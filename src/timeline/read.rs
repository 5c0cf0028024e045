//! Reading a page of any feed: what its sources have, then posts and authors; more of both as long as the page isn't
//! full.

use std::time::Duration;

use futures::future::try_join;
use tokio::time::timeout;

use super::around;
use super::chosen::{ChosenAuthors, ChosenSet};
use super::draft::{DraftedPage, JudgedPost, PageDraft};
use super::feed::{Feed, Origin};
use super::filter::{HiddenBecause, unwanted_on_lists};
use super::home_page::filled;
use super::load::{UntoldPosts, named};
use super::merge::Direction;
use super::page::{Page, PagePost, Query, Timeline};
use super::public;
use super::sources::Sources;
use super::tagged::{FurtherTags, TaggedSet};
use super::view::View;
use super::viewpoint::Viewpoint;
use crate::error::{Error, Result};
use crate::graph::Chat;
use crate::meters;
use crate::post::PostRef;
use crate::settings::{PAGE_LEN_MAX, page_length};

/// Tries of one read; each begins anew because the reader's state has changed. The last one doesn't ask whether it has.
const TRIES_MAX: usize = 4;
/// Rounds in which sources are asked for more; then the page ends early, with a cursor that has moved.
const ROUNDS_MAX: usize = 24;
/// Posts that a page of a list looks at before it asks for no more: others put them there, and they may all be hidden.
const LOOKED_AT_MAX: usize = 300;

/// So long a page waits for its home to be filled; usually that takes a few milliseconds.
const FILL_MAX: Duration = Duration::from_millis(200);

/// Reads a page.
pub(crate) async fn read(by: Viewpoint<'_>, query: &Query) -> Result<Page> {
    Ok(page(&ReadRequest::new(by, query, false)?).await?.0)
}

/// Reads a page of the posts of chosen accounts: of the reader's home only what these post.
pub(crate) async fn read_chosen(by: Viewpoint<'_>, chosen: &ChosenAuthors, query: &Query) -> Result<Page> {
    if query.timeline != Timeline::Home {
        return Err(Error::invalid(format!(
            "timeline {:?} is no part of a home: a page of chosen accounts is asked for as one of the home",
            query.timeline
        )));
    }
    let feed = Feed::chosen(ChosenSet::new(chosen)?);
    Ok(ReadRequest::new(by, query, false)?.page_of(&feed, None).await?.0)
}

/// Reads a page of public posts with one of several hashtags, or of an account's posts with some.
pub(crate) async fn read_tagged(by: Viewpoint<'_>, further: &FurtherTags, query: &Query) -> Result<Page> {
    let feed = match query.timeline {
        Timeline::Tag(tag) => Feed::tagged(by, TaggedSet::new(Some(tag), further)?)?,
        Timeline::Profile { account, replies, reposts } => {
            let tagged = TaggedSet::new(None, further)?;
            by.timelines.tenant.existing(account).await?.no_chat()?;
            Feed::profile(account, replies, reposts).with_tags(tagged)
        }
        _ => {
            return Err(Error::invalid(format!(
                "timeline {:?} is no hashtag's and no account's: further hashtags go with a page that is asked for as \
                 one of these",
                query.timeline
            )));
        }
    };
    Ok(ReadRequest::new(by, query, false)?.page_of(&feed, None).await?.0)
}

/// Reads a page as [`read`] does, and tells of each entry that it met why it shows or not. Changes nothing.
pub(crate) async fn explain(by: Viewpoint<'_>, query: &Query) -> Result<(Page, Vec<JudgedPost>)> {
    page(&ReadRequest::new(by, query, true)?).await
}

/// Here alone a timeline's name becomes what it stands for.
async fn page(request: &ReadRequest<'_>) -> Result<(Page, Vec<JudgedPost>)> {
    let (by, mut start) = (request.by, None::<Box<(View<'_>, PostRef)>>);
    let feed = match request.query.timeline {
        Timeline::Home => Feed::home(),
        Timeline::Profile { account, replies, reposts } => {
            by.timelines.tenant.existing(account).await?.no_chat()?;
            Feed::profile(account, replies, reposts)
        }
        Timeline::Chat(chat) => {
            Chat::of_member(&by.timelines.tenant, chat, by.reader).await?;
            Feed::chat(chat)
        }
        Timeline::Mentions => Feed::mentions(by)?,
        Timeline::Tag(tag) => Feed::tag(by, tag)?,
        Timeline::Public => {
            public::check_kept(&by.timelines.tenant)?;
            Feed::public()
        }
        Timeline::Search(words) => Feed::search(words),
        Timeline::Replies(post) => {
            let (view, post) = &**start.insert(Box::new(View::of_post(by, post).await?));
            Feed::replies(by, view.meant(*post))?
        }
    };
    request.page_of(&feed, start).await
}

/// The number of posts on a page that is asked for with so many, or without a number.
pub(super) fn limit_of(by: Viewpoint<'_>, asked: Option<usize>) -> Result<usize> {
    page_length(asked.unwrap_or(by.timelines.tenant.settings.page_length), PAGE_LEN_MAX)
}

/// A request for a page, by whom.
#[derive(Debug)]
pub(crate) struct ReadRequest<'a> {
    pub(super) by: Viewpoint<'a>,
    pub(super) query: &'a Query,
    pub(super) limit: usize,
    /// Which way, from where and until where, as for [`Merge::new`](super::merge::Merge::new).
    pub(super) window: (Direction, u64, u64),
    /// Whether it is only explained: such a read leaves no traces.
    pub(super) is_explained: bool,
}

/// A try of a page, once it is known what the reader follows.
#[expect(clippy::large_enum_variant, reason = "there is one for each page, and it is moved once")]
pub(super) enum PageTry<'a> {
    Page(View<'a>),
    /// The reader's state has changed meanwhile.
    Again,
    /// There is no home, and it has to be filled first.
    Homeless,
}

impl<'a> ReadRequest<'a> {
    pub(crate) fn new(by: Viewpoint<'a>, query: &'a Query, is_explained: bool) -> Result<Self> {
        let limit = limit_of(by, query.limit)?;
        around::check(query, limit)?;
        Ok(Self { by, query, limit, window: query.range.window(query.cursor), is_explained })
    }

    /// Whether its posts come with what they say.
    fn hydrates(&self) -> bool {
        self.query.hydrate || around::is_wanted(self.query)
    }

    /// A page of that feed. `start`: the post that it belongs to, whose view is begun already, and which the reader
    /// must be allowed to see.
    pub(crate) async fn page_of(
        &self,
        feed: &Feed,
        start: Option<Box<(View<'a>, PostRef)>>,
    ) -> Result<(Page, Vec<JudgedPost>)> {
        let (mut view, mut page, judged) = self.reading_of(feed, start).await?.page()?;
        if self.hydrates() {
            around::add(&mut view, self.query, &mut page).await?;
        }
        Ok((page, judged))
    }

    /// Reads a page, before anything comes along with its posts.
    pub(super) async fn reading_of<'r>(
        &'r self,
        feed: &'r Feed,
        mut start: Option<Box<(View<'a>, PostRef)>>,
    ) -> Result<Reading<'r>> {
        let mut fills_first = !self.is_explained;
        for tried in 1..=TRIES_MAX {
            // Out of all outboxes, by what the reader follows at one moment: it costs more, and whatever changes
            // meanwhile, it never has to begin anew.
            let is_last = tried == TRIES_MAX;
            let mut sources = Sources::new(self.window, self.is_explained, feed.below.clone());
            match self.open(feed, start.take(), &mut sources, fills_first, is_last).await? {
                PageTry::Page(view) => {
                    let draft = PageDraft::new(self.window.0, self.limit, self.is_explained);
                    let mut reading =
                        Reading { request: self, feed, view, sources, draft, lacks: None, looked_at: 0 };
                    if reading.go_on().await? {
                        return Ok(reading);
                    }
                }
                PageTry::Again => {}
                PageTry::Homeless => {
                    // Once, and not for long: in a slot that moves no home can be created, and the outboxes can be
                    // read.
                    fills_first = false;
                    drop(timeout(FILL_MAX, filled(self.by)).await);
                }
            }
        }
        Err(Error::internal(format!(
            "the last of {TRIES_MAX} tries to read a page of account {} asked for another one",
            self.by.reader
        )))
    }

    async fn open(
        &self,
        feed: &Feed,
        start: Option<Box<(View<'a>, PostRef)>>,
        sources: &mut Sources,
        fills_first: bool,
        is_last: bool,
    ) -> Result<PageTry<'a>> {
        let view = match &feed.origin {
            Origin::Home if is_last => self.open_outboxes(sources).await?,
            Origin::Home => return self.open_home(sources, fills_first).await,
            Origin::Outbox(account) => {
                sources.add_outbox(*account, None);
                View::new(self.by).await?
            }
            Origin::Chosen(chosen) => {
                // The state first: whom the reader no longer follows is not even asked.
                let view = View::new(self.by).await?;
                sources.pull(chosen.counting(self.by.reader, view.state()), view.state(), self.by.reader);
                view
            }
            Origin::Public => {
                // Neither says anything about the other, as with a list.
                let newest = public::newest(&self.by.timelines.tenant, &self.by.timelines.public_looks);
                let (view, window) = try_join(View::new(self.by), newest).await?;
                sources.add_public(&self.by.timelines.tenant, &window);
                view
            }
            Origin::Search(words) => {
                if self.window.0 == Direction::Up {
                    return Err(Error::invalid(
                        "a search is read from the newest down: by `max_id`, `since_id` or a cursor, not by `min_id`",
                    ));
                }
                sources.add_search(*words, self.by.reader);
                let asked = sources.ask(&self.by.timelines.tenant, self.limit);
                try_join(View::new(self.by), asked).await?.0
            }
            Origin::Lists(lists) => {
                lists.iter().for_each(|list| sources.add_list(list.clone()));
                // Neither says anything about the other: nothing is vouched for by both together.
                let asked = sources.ask(&self.by.timelines.tenant, self.limit);
                match start {
                    None => try_join(View::new(self.by), asked).await?.0,
                    Some(mut start) => {
                        let (view, post) = &mut *start;
                        try_join(asked, Box::pin(view.subject(*post))).await?;
                        start.0
                    }
                }
            }
        };
        Ok(PageTry::Page(view))
    }
}

/// One try of reading one page.
pub(super) struct Reading<'a> {
    request: &'a ReadRequest<'a>,
    feed: &'a Feed,
    pub(super) view: View<'a>,
    pub(super) sources: Sources,
    draft: PageDraft,
    /// Why the archive doesn't tell what the page would go on with.
    lacks: Option<Error>,
    /// Posts that were loaded to see whether they show.
    looked_at: usize,
}

impl<'a> Reading<'a> {
    /// Shows what has come, and asks for more, until the page is full or there is no more. `false`: the reader's state
    /// has changed meanwhile.
    async fn go_on(&mut self) -> Result<bool> {
        for _ in 0..ROUNDS_MAX {
            self.show().await?;
            if self.is_done() {
                break;
            }
            if !self.look_deeper().await? {
                return Ok(false);
            }
            self.sources.ask(&self.view.by.timelines.tenant, self.draft.missing()).await?;
        }
        // What the last round brought; without it a page that found nothing might not move its cursor.
        self.show().await?;
        meters::read(self.sources.home_depth.unwrap_or(self.feed.name));
        if self.sources.home_depth.is_some() {
            meters::merge_width(self.sources.len());
        }
        Ok(true)
    }

    /// Whether the page is full, or there is no more to show on it. H64: one of a list that has loaded much that
    /// doesn't show ends here too, with a cursor that has moved; and so does one that would need an archive that is
    /// away. H236: and a search whose time is up.
    fn is_done(&self) -> bool {
        let is_dear = self.feed.is_open_to_all && self.looked_at >= LOOKED_AT_MAX;
        let is_untold = self.draft.untold.is_some() || self.sources.is_held_up();
        self.draft.missing() == 0
            || self.sources.merge.is_exhausted()
            || is_dear
            || is_untold
            || self.sources.is_searched_long
    }

    /// Takes what is safe to show, loads it, and keeps what the reader may see.
    async fn show(&mut self) -> Result<()> {
        while self.draft.missing() > 0 && self.draft.untold.is_none() {
            let taken = self.sources.merge.take(self.draft.missing());
            let Some(last) = taken.last() else { return Ok(()) };
            self.draft.last = Some(last.id);
            let mut posts = named(&taken);
            let wanted: Vec<PostRef> =
                posts.iter().copied().filter(|post| self.unwanted(*post).is_none()).collect();
            self.looked_at += wanted.len();
            self.view.loaded.have_left(self.sources.archived.drain(..));
            if let Some(untold) = self.view.load_as_told(&wanted, &[]).await? {
                self.cut(&mut posts, untold);
            }
            for post in posts {
                let verdict = self.unwanted(post).map_or_else(|| self.judge(post), Err);
                self.draft.take(post, verdict);
            }
        }
        Ok(())
    }

    /// H182: leaves out the first post of which only the archive could tell something, and all behind it.
    fn cut(&mut self, posts: &mut Vec<PostRef>, untold: UntoldPosts) {
        let is_untold = |post: &PostRef| self.view.loaded.shows_untold(*post, &untold);
        let Some(first) = posts.iter().find(|post| is_untold(post)).map(|post| post.id) else { return };
        // Two authors may hold one id, and a cursor stands beside both.
        posts.truncate(posts.iter().position(|post| post.id == first).unwrap_or(0));
        self.draft.untold = Some(first);
        self.draft.last = posts.last().map(|post| post.id.get());
        self.lacks = Some(untold.because);
    }

    /// Tells why the post needn't be loaded, if that is so.
    fn unwanted(&self, post: PostRef) -> Option<HiddenBecause> {
        let View { by, current, .. } = &self.view;
        self.feed.is_open_to_all.then(|| unwanted_on_lists(by.reader, &current.state, post.author)).flatten()
    }

    fn judge(&mut self, post: PostRef) -> Result<(), HiddenBecause> {
        let seen = self.feed.admitted(&self.view, post)?;
        match seen.met.post.passes_on() {
            Some(original) => self.draft.collapse(original.id, post.id),
            None => Ok(()),
        }
    }

    /// The page, without what comes along with its posts, and what it was read by.
    fn page(self) -> Result<(View<'a>, Page, Vec<JudgedPost>)> {
        let (hydrates, arrange) = (self.request.hydrates(), self.feed.arrange);
        let (view, DraftedPage { posts, next, newer, lacks_archive, judged }) = self.drafted()?;
        let post = |post| if hydrates { view.page_post(post) } else { PagePost::bare(post) };
        let mut page = Page { posts: posts.into_iter().map(post).collect(), next, newer, lacks_archive };
        arrange(&mut page.posts);
        Ok((view, page, judged))
    }

    /// The page's posts, and the view that it was read by.
    pub(super) fn drafted(mut self) -> Result<(View<'a>, DraftedPage)> {
        let merge = &self.sources.merge;
        let (is_full, is_held_up) = (self.draft.missing() == 0, self.sources.is_held_up());
        let held_up = self.sources.held_up.take_if(|_| is_held_up);
        let lacks = self.lacks.or(held_up).filter(|_| !is_full);
        let mut page = self.draft.finish((merge.reached(), merge.is_exhausted()));
        page.lacks_archive = lacks.is_some();
        if page.lacks_archive {
            meters::archive_away();
        }
        if let Some(because) = lacks.filter(|_| page.posts.is_empty()) {
            return Err(because);
        }
        Ok((self.view, page))
    }
}
