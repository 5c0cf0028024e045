//! What one reader may see of posts that come from anywhere but a timeline: lists, conversations, what it is about to
//! like or to answer. The same filter decides.

use std::sync::Arc;

use futures::future::try_join;

use super::filter::{HiddenBecause, PostFilter, passes, shown_on_profile};
use super::load::{Loaded, named};
use super::merge::Entry;
use super::page::{Marks, PagePost};
use super::state::{Current, ReaderState, Stamps, current};
use super::ties::marks_of;
use crate::account::Account;
use crate::context::{Context, no_post};
use crate::error::Result;
use crate::ids::{AccountId, PostId};
use crate::post::{Post, PostRef};

/// Posts and accounts as one reader may see them.
#[derive(Debug)]
pub(crate) struct View<'a> {
    pub(super) context: &'a Arc<Context>,
    filter: Option<&'a dyn PostFilter>,
    pub(super) reader: AccountId,
    pub(super) stamps: Stamps,
    pub(super) state: Arc<ReaderState>,
    pub(super) loaded: Loaded,
}

impl<'a> View<'a> {
    /// For showing: what others did shows after `visible_within`.
    pub(crate) async fn new(
        context: &'a Arc<Context>,
        filter: Option<&'a dyn PostFilter>,
        reader: AccountId,
    ) -> Result<Self> {
        Ok(Self::under(context, filter, reader, current(context, reader).await?))
    }

    /// For deciding: nothing comes from a cache but the reader's own state, under its stamps.
    pub(crate) async fn fresh(
        context: &'a Arc<Context>,
        filter: Option<&'a dyn PostFilter>,
        reader: AccountId,
    ) -> Result<Self> {
        Ok(Self { loaded: Loaded::fresh(), ..Self::new(context, filter, reader).await? })
    }

    /// Of a reader that was looked at just now.
    pub(super) fn under(
        context: &'a Arc<Context>,
        filter: Option<&'a dyn PostFilter>,
        reader: AccountId,
        Current { stamps, state }: Current,
    ) -> Self {
        Self { context, filter, reader, stamps, state, loaded: Loaded::default() }
    }

    /// For showing posts of which only the ids are known: those that are there are loaded, in the trip that the state
    /// needs. Their authors are not yet.
    pub(crate) async fn of_posts(
        context: &'a Arc<Context>,
        filter: Option<&'a dyn PostFilter>,
        reader: AccountId,
        ids: &[PostId],
    ) -> Result<(Self, Vec<PostRef>)> {
        let mut loaded = Loaded::default();
        let mut entries: Vec<Entry> = ids.iter().map(|id| Entry { id: id.get(), author: 0 }).collect();
        let found = loaded.find_authors(context, &mut entries);
        let (current, ()) = try_join(current(context, reader), found).await?;
        let posts = named(&entries).into_iter().map(|(id, author)| PostRef { id, author }).collect();
        Ok((Self { loaded, ..Self::under(context, filter, reader, current) }, posts))
    }

    /// Loads posts with their authors and originals, and other accounts in the same trip.
    pub(crate) async fn load(&mut self, posts: &[PostRef], others: &[AccountId]) -> Result<()> {
        let entries: Vec<(PostId, AccountId)> = posts.iter().map(|post| (post.id, post.author)).collect();
        self.loaded.entries_and(self.context, self.reader, &entries, others).await
    }

    /// Loads posts, and what the reader has done with these subjects of theirs.
    pub(crate) async fn load_marked(
        &mut self,
        posts: &[PostRef],
        subjects: &[PostRef],
    ) -> Result<Vec<Marks>> {
        let stamps = self.stamps.clone();
        let marks = marks_of(self.context, self.reader, &stamps, subjects);
        Ok(try_join(marks, self.load(posts, &[])).await?.0)
    }

    /// Posts that were loaded as they stand on a page, with what the reader has done with them.
    pub(crate) async fn marked(&self, posts: Vec<PostRef>) -> Result<Vec<PagePost>> {
        let mut posts: Vec<PagePost> = posts.into_iter().map(|post| self.page_post(post)).collect();
        let subjects: Vec<PostRef> = posts.iter().map(PagePost::subject).collect();
        let marks = marks_of(self.context, self.reader, &self.stamps, &subjects).await?;
        posts.iter_mut().zip(marks).for_each(|(post, marks)| post.marks = Some(marks));
        Ok(posts)
    }

    /// Whether a post that was loaded shows to the reader, as on its author's own page.
    pub(crate) fn judge(&self, post: PostRef) -> Result<(), HiddenBecause> {
        let seen = self.loaded.seen(post.id, post.author).ok_or(HiddenBecause::Gone)?;
        shown_on_profile(self.reader, &self.state, seen)?;
        passes(self.filter, self.reader, seen)
    }

    /// Whether it shows among posts of others, where nobody wants to meet whom it mutes.
    pub(crate) fn shows(&self, post: PostRef) -> bool {
        let is_muted = post.author != self.reader && self.state.mutes(post.author.get());
        !is_muted && self.judge(post).is_ok()
    }

    /// A post that was loaded; `None`: it is gone, or another author's.
    pub(crate) fn post(&self, post: PostRef) -> Option<&Arc<Post>> {
        self.loaded.post(post.id, post.author)
    }

    /// What is meant when an account likes, answers or passes on a post, or asks what answers it: of a plain repost its
    /// original. [`ErrorKind::NotFound`]: there is none, or the reader may not see it.
    pub(crate) async fn subject(&mut self, post: PostRef) -> Result<(PostRef, Arc<Post>)> {
        let missing = || no_post(post.id);
        self.load(&[post], &[]).await?;
        self.judge(post).map_err(|_| missing())?;
        let shown = self.post(post).ok_or_else(missing)?;
        // It was loaded with its repost, and the repost shows only if it does.
        let subject = shown.passes_on().unwrap_or(post);
        let shown = self.post(subject).ok_or_else(missing)?;
        Ok((subject, shown.clone()))
    }

    /// A post that was loaded, as it stands on a page.
    pub(crate) fn page_post(&self, post: PostRef) -> PagePost {
        self.loaded.page_post(post.id, post.author)
    }

    /// An account that was loaded, if it is active: also one that doesn't want to meet the reader, or the reader it. For
    /// lists that are the reader's own.
    pub(crate) fn any_account(&self, id: AccountId) -> Option<Arc<Account>> {
        self.loaded.account(id).filter(|account| account.is_active()).cloned()
    }

    pub(crate) fn blocks(&self, id: AccountId) -> bool {
        self.state.blocks(id.get())
    }

    /// Whether the reader may meet an account that was loaded, wanted or not.
    pub(crate) fn may_meet(&self, id: AccountId) -> bool {
        self.loaded.met_account(id).is_some()
    }

    /// An account that was loaded, if the reader may meet it, and wants to.
    pub(crate) fn account(&self, id: AccountId) -> Option<Arc<Account>> {
        let is_unwanted = self.state.mutes(id.get()) || self.state.blocks(id.get());
        self.loaded.met_account(id).filter(|_| !is_unwanted).cloned()
    }
}
