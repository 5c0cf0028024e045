//! One reader's view of posts that come from anywhere but a timeline: lists, conversations, what it is about to like or
//! to answer. The same filter decides.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures::future::try_join;

use super::filter::{HiddenBecause, SeenPost, passes, shown_on_profile, shows_with};
use super::load::{LoadedPosts, UntoldPosts};
use super::page::PagePost;
use super::viewpoint::Viewpoint;
use crate::account::{Account, AccountKind, AccountState};
use crate::error::Result;
use crate::ids::{AccountId, PostId};
use crate::post::{Post, PostRef};
use crate::reader::{CurrentReader, ReaderState, ReaderTies, current, ties_with};
use crate::tenant::{MissingPost, no_post};

/// Most accounts that come along because the posts of a page mention them; whom those mention beyond that don't.
const MENTIONED_MAX: usize = 500;

/// Posts and accounts as one reader may see them.
#[derive(Debug)]
pub(crate) struct View<'a> {
    pub(super) by: Viewpoint<'a>,
    pub(super) current: CurrentReader,
    pub(super) loaded: LoadedPosts,
}

impl<'a> View<'a> {
    /// For showing: what others did shows after `visible_within`.
    pub(crate) async fn new(by: Viewpoint<'a>) -> Result<Self> {
        Ok(Self::under(by, current(&by.timelines.graph.readers, by.reader).await?))
    }

    /// Of a reader that was looked at just now.
    pub(super) fn under(by: Viewpoint<'a>, current: CurrentReader) -> Self {
        Self { by, current, loaded: LoadedPosts::default() }
    }

    /// For showing posts of which only the ids are known: those that are there are loaded, in the trip that the state
    /// needs, and never from the cache. Their authors are not yet. Which of them only the archive could tell who loads
    /// them is told.
    pub(crate) async fn of_posts(by: Viewpoint<'a>, ids: &[PostId]) -> Result<(Self, Vec<PostRef>)> {
        Self::of_posts_with(by, ids, LoadedPosts::default()).await
    }

    /// Loads what one post needs; [`NotFound`](crate::ErrorKind::NotFound): it is not there.
    /// [`Unavailable`](crate::ErrorKind::Unavailable): only the archive could tell.
    pub(crate) async fn of_post(by: Viewpoint<'a>, id: PostId) -> Result<(Self, PostRef)> {
        Self::of_post_with(by, id, LoadedPosts::default()).await
    }

    /// Loads what one post needs, for deciding: nothing comes from a cache but the reader's own state, under its
    /// stamps.
    pub(crate) async fn deciding(by: Viewpoint<'a>, id: PostId) -> Result<(Self, PostRef)> {
        Self::of_post_with(by, id, LoadedPosts::fresh()).await
    }

    async fn of_post_with(by: Viewpoint<'a>, id: PostId, loaded: LoadedPosts) -> Result<(Self, PostRef)> {
        let (mut view, found) = Self::of_posts_with(by, &[id], loaded).await?;
        view.loaded.take_untold().map_or(Ok(()), |untold| Err(untold.because))?;
        Ok((view, *found.first().ok_or_else(|| no_post(id))?))
    }

    async fn of_posts_with(
        by: Viewpoint<'a>,
        ids: &[PostId],
        mut loaded: LoadedPosts,
    ) -> Result<(Self, Vec<PostRef>)> {
        let found = loaded.find(by.timelines, ids);
        let (current, posts) = try_join(current(&by.timelines.graph.readers, by.reader), found).await?;
        Ok((Self { by, current, loaded }, posts))
    }

    pub(super) fn state(&self) -> &ReaderState {
        &self.current.state
    }

    /// Loads posts with their authors and originals, and other accounts in the same trip.
    ///
    /// [`Unavailable`](crate::ErrorKind::Unavailable): only the archive could tell some.
    pub(crate) async fn load(&mut self, posts: &[PostRef], others: &[AccountId]) -> Result<()> {
        self.load_as_told(posts, others).await?.map_or(Ok(()), |untold| Err(untold.because))
    }

    /// Loads posts for who can do without some, and is told which only the archive could tell.
    pub(crate) async fn load_as_told(
        &mut self,
        posts: &[PostRef],
        others: &[AccountId],
    ) -> Result<Option<UntoldPosts>> {
        self.loaded.posts(self.by, posts, others).await?;
        Ok(self.loaded.take_untold())
    }

    /// Loads posts in a trip less, where not nearly all of it is remembered: who restricts the reader is asked along.
    pub(super) async fn load_ahead(
        &mut self,
        posts: &[PostRef],
        others: &[AccountId],
    ) -> Result<Option<UntoldPosts>> {
        self.loaded.ask_ahead();
        self.load_as_told(posts, others).await
    }

    /// The accounts mentioned in posts that are to be shown, if that shows: up to [`MENTIONED_MAX`].
    pub(super) fn mentioned_in(&self, posts: &mut [PagePost]) -> Vec<AccountId> {
        let mut all = BTreeSet::new();
        if self.by.timelines.tenant.settings.shows_profiles {
            posts.iter_mut().for_each(|post| post.each_shown(|post, _| all.extend(&post.content().mentions)));
        }
        all.into_iter().take(MENTIONED_MAX).collect()
    }

    /// Fills in whom posts mention, as far as they were loaded for that and the reader may meet them.
    pub(super) fn show_mentioned(&self, posts: &mut [PagePost]) {
        if self.by.timelines.tenant.settings.shows_profiles {
            let met = |post: &Post| {
                let mentions = &post.content().mentions;
                mentions.iter().filter_map(|id| self.loaded.met_account(*id).cloned()).collect()
            };
            posts.iter_mut().for_each(|post| post.each_shown(|post, mentioned| *mentioned = met(post)));
        }
    }

    /// Adds whom posts mention, if that shows: a trip, where they are not all remembered.
    pub(crate) async fn add_mentioned(&mut self, posts: &mut [PagePost]) -> Result<()> {
        let mentioned = self.mentioned_in(posts);
        if !mentioned.is_empty() {
            self.load_ahead(&[], &mentioned).await?;
            self.show_mentioned(posts);
        }
        Ok(())
    }

    /// Loads posts, and what the reader has done with these subjects of theirs; with those that only the archive could
    /// tell.
    pub(crate) async fn load_with_ties(
        &mut self,
        posts: &[PostRef],
        subjects: &[PostRef],
    ) -> Result<(Vec<(PostRef, ReaderTies)>, Option<UntoldPosts>)> {
        let (Viewpoint { timelines, reader, .. }, stamps) = (self.by, self.current.stamps.clone());
        let ties = ties_with(&timelines.graph.readers, reader, &stamps, subjects);
        let (ties, untold) = try_join(ties, self.load_as_told(posts, &[])).await?;
        Ok((posts.iter().copied().zip(ties).collect(), untold))
    }

    /// Whether of a post that was loaded, or of what it passes on, only the archive could tell.
    pub(crate) fn is_untold(&self, post: PostRef, untold: Option<&UntoldPosts>) -> bool {
        untold.is_some_and(|untold| self.loaded.shows_untold(post, untold))
    }

    /// Posts that were loaded with these ties, as they stand on a page.
    pub(crate) async fn with_ties(
        &mut self,
        posts: impl Iterator<Item = (PostRef, ReaderTies)>,
    ) -> Result<Vec<PagePost>> {
        let page_post = |(post, ties)| PagePost { ties: Some(ties), ..self.page_post(post) };
        let mut posts: Vec<PagePost> = posts.map(page_post).collect();
        self.add_mentioned(&mut posts).await?;
        Ok(posts)
    }

    /// Posts that were loaded as they stand on a page, with what the reader has done with them.
    pub(crate) async fn tied(&mut self, posts: Vec<PostRef>) -> Result<Vec<PagePost>> {
        let mut posts: Vec<PagePost> = posts.into_iter().map(|post| self.page_post(post)).collect();
        let subjects: Vec<PostRef> = posts.iter().map(PagePost::subject).collect();
        let (Viewpoint { timelines, reader, .. }, stamps) = (self.by, self.current.stamps.clone());
        let ties = ties_with(&timelines.graph.readers, reader, &stamps, &subjects);
        let (ties, ()) = try_join(ties, self.add_mentioned(&mut posts)).await?;
        posts.iter_mut().zip(ties).for_each(|(post, ties)| post.ties = Some(ties));
        Ok(posts)
    }

    /// Whether a post that was loaded shows to the reader, as on its author's own page.
    pub(crate) fn judge(&self, post: PostRef) -> Result<(), HiddenBecause> {
        let seen = self.loaded.seen(post).ok_or(HiddenBecause::Gone)?;
        shown_on_profile(self.by.reader, self.state(), seen)?;
        passes(self.by.filter, self.by.reader, seen)
    }

    /// Whether it shows among what the reader is told, also of whom it mutes and is told of.
    pub(crate) fn tells(&self, post: PostRef) -> bool {
        let is_silenced = self.sayers(post).any(|account| self.state().silences(account.get()));
        !is_silenced && self.judge(post).is_ok()
    }

    /// Whether it shows among posts of others, where nobody wants to meet whom it mutes.
    pub(crate) fn shows(&self, post: PostRef) -> bool {
        let is_muted = self.sayers(post).any(|account| self.state().mutes(account.get()));
        !is_muted && self.judge(post).is_ok()
    }

    /// The accounts that say what a post says, but for the reader: its author, and of one into a group who wrote it.
    fn sayers(&self, post: PostRef) -> impl Iterator<Item = AccountId> {
        let writer = self.post(post).map(|post| post.writer()).filter(|writer| *writer != post.author);
        [Some(post.author), writer].into_iter().flatten().filter(|account| *account != self.by.reader)
    }

    /// A post that was loaded; `None`: it is gone, or another author's.
    pub(crate) fn post(&self, post: PostRef) -> Option<&Arc<Post>> {
        self.loaded.post(post)
    }

    /// The post that is meant when an account likes, answers or passes on a post, or asks what answers it: of a plain
    /// repost its original. `NotFound`: there is none, or the reader may not see it.
    pub(crate) async fn subject(&mut self, post: PostRef) -> Result<(PostRef, Arc<Post>)> {
        let missing = || no_post(post.id);
        self.load(&[post], &[]).await?;
        if self.judge(post).is_err() {
            let untold = self.untold_if_gone(&[post]).await?;
            return Err(untold.map_or_else(missing, |untold| untold.because));
        }
        let shown = self.post(post).ok_or_else(missing)?;
        // It was loaded with its repost, and the repost shows only if it does.
        let subject = shown.passes_on().unwrap_or(post);
        let shown = self.post(subject).ok_or_else(missing)?;
        Ok((subject, shown.clone()))
    }

    /// Of posts that are there and don't show: those of which only the archive could tell, were they gone. H296: while
    /// it is away, nobody says of them what can be said of no other. Whoever wrote one knows of it anyhow.
    pub(crate) async fn untold_if_gone(&self, hidden: &[PostRef]) -> Result<Option<UntoldPosts>> {
        let is_own = |post: &Arc<Post>| post.writer() == self.by.reader;
        let hidden = hidden.iter().filter(|post| !self.post(**post).is_some_and(is_own));
        let gone: Vec<PostId> = hidden.map(|post| post.id).collect();
        if gone.is_empty() {
            return Ok(None);
        }
        let asked: Vec<MissingPost> = gone.iter().map(|post| (*post, None)).collect();
        let (_, untold) = self.by.timelines.tenant.posts().left(&asked).await?;
        Ok(UntoldPosts::of(&gone, untold))
    }

    /// The post that is meant by one that was loaded, before it is known whether that may be seen: of a plain repost
    /// its original.
    pub(crate) fn meant(&self, post: PostRef) -> PostId {
        self.page_post(post).subject().id
    }

    /// A post that was loaded, as it stands on a page.
    pub(crate) fn page_post(&self, post: PostRef) -> PagePost {
        let mut shown = self.loaded.page_post(post);
        // H270: of a message that shows although what it quotes doesn't.
        if shown.post.as_ref().is_some_and(|post| post.chat().is_some()) && !self.shows_quoted(post) {
            shown.original = None;
        }
        shown.is_conversation_muted =
            shown.conversation().is_some_and(|root| self.state().mutes_conversation(root.get()));
        shown
    }

    fn shows_quoted(&self, post: PostRef) -> bool {
        let Some(SeenPost { met, original: Some(original), .. }) = self.loaded.seen(post) else {
            return false;
        };
        shows_with(self.by.reader, self.state(), met, original).is_ok()
    }

    /// Whether the reader wants to be told nothing of the conversation of a post that was loaded.
    pub(crate) fn mutes_conversation(&self, post: PostRef) -> bool {
        let root = self.post(post).map(|of| of.header().conversation.unwrap_or(post.id));
        root.is_some_and(|root| self.state().mutes_conversation(root.get()))
    }

    /// An account that was loaded, if it is active: also one that doesn't want to meet the reader, or the reader it.
    /// For lists that are the reader's own.
    pub(crate) fn any_account(&self, id: AccountId) -> Option<Arc<Account>> {
        // Who has left a chat blocks it: that is no affair of people.
        let is_shown = |account: &&Arc<Account>| account.is_active() && account.kind != AccountKind::Chat;
        self.loaded.account(id).filter(is_shown).cloned()
    }

    pub(crate) fn follows(&self, id: AccountId) -> bool {
        self.state().follows(id.get())
    }

    pub(crate) fn blocks(&self, id: AccountId) -> bool {
        self.state().blocks(id.get())
    }

    /// Whether the reader may meet an account that was loaded, wanted or not.
    pub(crate) fn may_meet(&self, id: AccountId) -> bool {
        self.loaded.met_account(id).is_some()
    }

    /// Whether the reader may know who is in a group that was loaded, and that somebody is: of a private one only
    /// members may. Of all other accounts everybody may.
    pub(crate) fn knows_members(&self, id: AccountId) -> bool {
        let is_private = |account: &&Arc<Account>| account.kind.is_group() && account.is_locked;
        let private = self.loaded.account(id).filter(is_private);
        private.is_none_or(|group| self.by.reader == id || self.state().is_let_in(group))
    }

    /// An account that was loaded, if the reader may meet it, and wants to be told what it does. Who is limited tells
    /// those alone who follow it: what it does would bring its name to strangers.
    pub(crate) fn teller(&self, id: AccountId) -> Option<Arc<Account>> {
        let is_unwanted = self.state().silences(id.get()) || self.state().blocks(id.get());
        let tells = |account: &&Arc<Account>| account.state != AccountState::Limited || self.follows(id);
        self.loaded.met_account(id).filter(|_| !is_unwanted).filter(tells).cloned()
    }

    /// An account that was loaded, if the reader may meet it, and wants to.
    pub(crate) fn account(&self, id: AccountId) -> Option<Arc<Account>> {
        let is_unwanted = self.state().mutes(id.get()) || self.state().blocks(id.get());
        self.loaded.met_account(id).filter(|_| !is_unwanted).cloned()
    }
}
