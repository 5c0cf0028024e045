//! Timelines that need no home: an account's own posts, and lists of posts. The reader's state and the first posts come
//! in one trip, what they stand for in a second one.

use futures::future::try_join;

use super::read::{ROUNDS_MAX, Reading};
use super::view::View;
use crate::error::Result;
use crate::graph::{self, Listed, post_list};
use crate::ids::{AccountId, PostId};
use crate::meters;
use crate::post::{PostList, Reference, Tag};
use crate::reader::{Current, current};
use crate::sharded::SortedSet;
use crate::timeline::Page;

impl Reading<'_> {
    /// An account's own posts.
    pub(super) async fn profile(&mut self, account: AccountId) -> Result<Page> {
        let timelines = self.timelines;
        timelines.existing(account).await?;
        let reader = current(&timelines.readers, self.reader).await?;
        self.sources.add_outbox(account, None);
        self.go_on(reader, "profile").await
    }

    /// What mentions the reader.
    pub(super) async fn mentions(&mut self) -> Result<Page> {
        let list = post_list(self.timelines, PostList::Mentions(self.reader))?;
        self.list(list, "mentions").await
    }

    /// Public posts with a hashtag.
    pub(super) async fn tag(&mut self, tag: &Tag) -> Result<Page> {
        let list = post_list(self.timelines, PostList::Tagged(tag.number(self.timelines.tags())))?;
        self.list(list, "tag").await
    }

    async fn list(&mut self, list: SortedSet<Listed>, kind: &'static str) -> Result<Page> {
        let (timelines, reader) = (self.timelines, self.reader);
        self.sources.add_list(list);
        // Neither says anything about the other: nothing is claimed by both together.
        let asked = self.sources.ask(timelines, self.limit);
        let (reader, ()) = try_join(current(&timelines.readers, reader), asked).await?;
        self.go_on(reader, kind).await
    }

    /// The replies to a post that the reader may see; to a plain repost nobody replies, but to its original.
    pub(super) async fn replies(&mut self, post: PostId) -> Result<Page> {
        let timelines = self.timelines;
        let (mut view, post) = View::of_post(timelines, self.filter, self.reader, post).await?;
        let subject = view.meant(post);
        self.answered = Some(subject);
        self.sources.add_list(graph::list(timelines, Reference::REPLY, subject)?.with_members());
        let asked = self.sources.ask(timelines, self.limit);
        try_join(asked, view.subject(post)).await?;
        self.loaded = view.loaded;
        self.go_on(Current { stamps: view.stamps, state: view.state }, "replies").await
    }

    /// Shows what has come, and asks for more, until the page is full or there is no more.
    async fn go_on(&mut self, reader: Current, kind: &'static str) -> Result<Page> {
        let state = &reader.state.clone();
        self.current = Some(reader);
        for _ in 0..ROUNDS_MAX {
            self.show(state).await?;
            if self.is_done() || self.is_dear() {
                break;
            }
            self.sources.ask(self.timelines, self.missing()).await?;
        }
        // What the last round brought.
        self.show(state).await?;
        meters::read(kind);
        Ok(self.page())
    }
}
