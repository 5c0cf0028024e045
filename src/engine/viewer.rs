//! Viewers: what is read through one is what that viewer may see. What is stored, whoever asks, stands apart
//! (`stored`).

use std::fmt::Debug;
use std::future::ready;
use std::ops::Deref;

use tracing::Instrument as _;

use super::Engine;
use crate::error::{CallFuture, Error, ErrorCode, Result};
use crate::graph::{self, Relationship};
use crate::ids::{AccountId, PostId};
use crate::post::PostRef;
use crate::timeline::{
    self, ChosenAuthors, FurtherTags, Page, Query, RankedFeed, RankedPage, RankedQuery, Timeline, View,
    Viewpoint,
};

/// A viewer of timelines, posts and accounts, on whose behalf they are read: an account, or a guest. It is shown what
/// it may see. Making or copying one costs nothing: nobody is asked who that is until something is read.
#[derive(Debug, Clone, Copy)]
pub struct Viewer<'a> {
    pub(crate) engine: &'a Engine,
    /// [`AccountId::NOBODY`]: a guest.
    pub(crate) reader: AccountId,
}

/// An account that reads: a [`Viewer`], and what is its own affair.
#[derive(Debug, Clone, Copy)]
pub struct Reader<'a> {
    viewer: Viewer<'a>,
    /// Who that is.
    pub(crate) account: AccountId,
}

impl<'a> Deref for Reader<'a> {
    type Target = Viewer<'a>;

    fn deref(&self) -> &Viewer<'a> {
        &self.viewer
    }
}

impl Engine {
    /// Gives what somebody without an account may see: what is public, of whoever is. A guest has no home and no
    /// mentions.
    ///
    /// Whom an account blocks or hides from can look as a guest, too: what is public is.
    pub fn as_nobody(&self) -> Viewer<'_> {
        Viewer { engine: self, reader: AccountId::NOBODY }
    }

    /// Gives what this account may see: pages, posts, lists.
    ///
    /// ```no_run
    /// # async fn example(engine: tideline::Engine, ben: tideline::AccountId) -> tideline::Result<()> {
    /// use tideline::Query;
    ///
    /// let page = engine.as_reader(ben).read(&Query::home().hydrated()).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn as_reader(&self, account: AccountId) -> Reader<'_> {
        Reader { viewer: Viewer { engine: self, reader: account }, account }
    }
}

impl<'a> Viewer<'a> {
    /// Reads a page of a timeline. [`ErrorKind::Invalid`](crate::ErrorKind::Invalid): a guest asks for a home, for
    /// mentions or a chat.
    ///
    /// The first read of a reader that has no home (a new one, or one that was away for long) fills it from the
    /// outboxes of all it follows; where that can't be, the page is read from these. Cancel-safe: it changes nothing
    /// else.
    pub fn read(self, query: &'a Query) -> CallFuture<'a, Page> {
        let reader = self.reader;
        if reader.is_nobody()
            && matches!(query.timeline, Timeline::Home | Timeline::Mentions | Timeline::Chat(_))
        {
            return Box::pin(ready(Err(needs_account(&query.timeline))));
        }
        let span = tracing::debug_span!("read", %reader, timeline = ?query.timeline);
        Box::pin(timeline::read(self.viewpoint(), query).instrument(span))
    }

    /// Reads a page of public posts with the hashtag of the query, or with one of further ones; of these only posts
    /// that have all of some hashtags, and none of others. Or a page of an account's posts, only those of which that
    /// holds.
    ///
    /// The query is one for a hashtag, or for a profile. [`ErrorKind::Invalid`](crate::ErrorKind::Invalid): it is for
    /// another timeline, or there are too many hashtags. Cancel-safe: it changes nothing.
    ///
    /// ```no_run
    /// # async fn example(engine: tideline::Engine) -> tideline::Result<()> {
    /// use tideline::post::Tag;
    /// use tideline::{FurtherTags, Query};
    ///
    /// let further = FurtherTags { none: vec![Tag::new("spoiler")?], ..FurtherTags::default() };
    /// let page = engine.as_nobody().read_tagged(&further, &Query::tag(Tag::new("tide")?)).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn read_tagged(self, further: &'a FurtherTags, query: &'a Query) -> CallFuture<'a, Page> {
        let span = tracing::debug_span!("read_tagged", reader = %self.reader, timeline = ?query.timeline);
        Box::pin(timeline::read_tagged(self.viewpoint(), further, query).instrument(span))
    }

    /// Reads a page of a timeline by importance: of the newest 120 posts that show to the viewer, the most important
    /// first, then of the next 120, to the end. What is important a [scorer](crate::PostScorer) says; of one author
    /// two stand one behind the other at most, while there are others.
    ///
    /// A scroll, page by page by the cursor, shows each of them once that is still there and still shows, whatever
    /// becomes of their scores meanwhile, on any instance; what is new since it began is the next scroll's. A page is
    /// hydrated. Its first one costs up to three times one by time. Cancel-safe as [`read`](Self::read).
    /// [`ErrorKind::Invalid`](crate::ErrorKind::Invalid): a guest asks for a home, or a part of one.
    ///
    /// ```no_run
    /// # async fn example(engine: tideline::Engine, ben: tideline::AccountId) -> tideline::Result<()> {
    /// use tideline::{RankedFeed, RankedQuery};
    ///
    /// let page = engine.as_reader(ben).read_ranked(&RankedQuery::of(RankedFeed::Home)).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn read_ranked(self, query: &'a RankedQuery) -> CallFuture<'a, RankedPage> {
        if self.reader.is_nobody() && !matches!(query.feed, RankedFeed::Profile(_)) {
            return Box::pin(ready(Err(needs_account(&query.feed))));
        }
        let span = tracing::debug_span!("read_ranked", reader = %self.reader);
        let scorer = &*self.engine.scorer;
        Box::pin(timeline::read_ranked(self.viewpoint(), scorer, query).instrument(span))
    }

    pub(crate) fn viewpoint(self) -> Viewpoint<'a> {
        let Self { engine, reader } = self;
        Viewpoint { timelines: &engine.timelines, filter: engine.filter.as_deref(), reader }
    }

    /// The view of what it may see.
    pub(crate) async fn view(self) -> Result<View<'a>> {
        View::new(self.viewpoint()).await
    }

    /// The view of a post by its id. [`ErrorKind::NotFound`](crate::ErrorKind::NotFound): it is not there.
    pub(crate) async fn view_of(self, post: PostId) -> Result<(View<'a>, PostRef)> {
        View::of_post(self.viewpoint(), post).await
    }

    /// The view of several posts: those that are there.
    pub(crate) async fn view_of_all(self, posts: &[PostId]) -> Result<(View<'a>, Vec<PostRef>)> {
        View::of_posts(self.viewpoint(), posts).await
    }
}

impl<'a> Reader<'a> {
    /// Reads a page of what some accounts have posted, up to [`CHOSEN_MAX`](crate::CHOSEN_MAX) of them: for the
    /// timelines of lists. It shows what the account's home would, also beyond what a home holds, but for replies: of
    /// these [`ChosenAuthors`] says which ones. Whom the account doesn't follow (any more) is left out; it may choose
    /// itself.
    ///
    /// The query is one for the home. [`ErrorKind::Invalid`](crate::ErrorKind::Invalid): it is for another timeline, or
    /// there are too many accounts. Cancel-safe: it changes nothing.
    pub fn read_chosen(self, chosen: &'a ChosenAuthors, query: &'a Query) -> CallFuture<'a, Page> {
        let (reader, authors) = (self.account, chosen.authors.len());
        let span = tracing::debug_span!("read_chosen", %reader, authors);
        Box::pin(timeline::read_chosen(self.viewpoint(), chosen, query).instrument(span))
    }

    /// Tells how the account stands to others: up to [`ASKED_MAX`](crate::ASKED_MAX), in their order, in two batches.
    /// `None`: there is no such account (any more). Whom it hides from, asks or mutes others needn't know.
    ///
    /// What was acknowledged shows. [`ErrorKind::NotFound`](crate::ErrorKind::NotFound): the account itself isn't
    /// there.
    pub fn relationships(self, others: &'a [AccountId]) -> CallFuture<'a, Vec<Option<Relationship>>> {
        Box::pin(graph::relationships(self.engine.tenant(), self.account, others))
    }
}

fn needs_account(timeline: &impl Debug) -> Error {
    let text = format!("timeline {timeline:?} is an account's: ask as its reader, not as a guest");
    Error::new(ErrorCode::AccountRequired, text)
}
