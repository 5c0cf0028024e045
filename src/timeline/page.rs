//! A reader's question, and the page that it gets.

use std::sync::Arc;

use super::cursor::{Cursor, Range};
use crate::account::Account;
use crate::ids::{AccountId, PostId};
use crate::post::{Post, PostRef, SearchWords, Tag};
use crate::reader::ReaderTies;

/// A timeline, by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(tag = "kind", content = "of", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Timeline {
    /// The posts of all that the reader follows, and its own.
    #[default]
    Home,
    /// The posts of one account, as the reader may see them.
    Profile {
        /// Whose.
        account: AccountId,
        /// Whether its replies to others show.
        replies: bool,
        /// Whether its reposts show.
        reposts: bool,
    },
    /// Posts that mention the reader, as far as it may see them: `mentions_max`, of each author the newest.
    Mentions,
    /// Public posts with a hashtag, by anybody: `tag_posts_max`, of each author the newest.
    Tag(Tag),
    /// Public posts by anybody but reposts and answers to others: `public_posts` of each bucket, of each author the
    /// newest. [`Misconfigured`](crate::ErrorKind::Misconfigured): the tenant keeps none.
    Public,
    /// The replies to a post; [`NotFound`](crate::ErrorKind::NotFound), if the reader may not see that.
    Replies(PostId),
    /// The messages of a chat that the reader is in; [`NotFound`](crate::ErrorKind::NotFound): of any other.
    Chat(AccountId),
    /// Public posts by anybody, and the reader's own, that have all of these words. Read from the newest down only.
    /// [`Misconfigured`](crate::ErrorKind::Misconfigured): the tenant has begun no search.
    Search(SearchWords),
}

/// A question for a page of a timeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct Query {
    /// A timeline, by its name.
    pub timeline: Timeline,
    /// The part of it, in Mastodon's words.
    pub range: Range,
    /// The place where another page ended, to go on from.
    pub cursor: Option<Cursor>,
    /// Posts on the page: 1 to 100; `None`: 20, or what the settings say.
    pub limit: Option<usize>,
    /// Whether the page carries posts, authors and originals, or only ids.
    pub hydrate: bool,
    /// Whether it says what the reader likes, has bookmarked and reposted.
    #[serde(rename = "marks")]
    pub ties: bool,
    /// The number of each post's newest likers that come along: up to 40, and with `limit` posts up to 1,000.
    pub likers: usize,
    /// The number of each post's newest replies that come along, with their authors: up to 40, and with `limit` posts
    /// up to 1,000.
    pub replies: usize,
}

/// Most likers, and most replies, that come along with each post of a page.
pub const AROUND_MAX: usize = 40;

/// Most likers, and most replies, that a page may be asked for with all its posts: with forty of each it has up to 25
/// posts, and a hundred posts come with up to ten. Each may have tens of thousands of bytes.
pub const AROUND_PAGE_MAX: usize = 1_000;

impl Query {
    /// The newest page of the reader's home.
    pub fn home() -> Self {
        Self::default()
    }

    /// The newest page of an account's own posts.
    pub fn profile(account: AccountId) -> Self {
        Self { timeline: Timeline::Profile { account, replies: true, reposts: true }, ..Self::default() }
    }

    /// The newest posts that mention the reader.
    pub fn mentions() -> Self {
        Self { timeline: Timeline::Mentions, ..Self::default() }
    }

    /// The newest posts with a hashtag.
    pub fn tag(tag: Tag) -> Self {
        Self { timeline: Timeline::Tag(tag), ..Self::default() }
    }

    /// The newest public posts of all accounts.
    pub fn public() -> Self {
        Self { timeline: Timeline::Public, ..Self::default() }
    }

    /// The newest posts that have these words.
    pub fn search(words: SearchWords) -> Self {
        Self { timeline: Timeline::Search(words), ..Self::default() }
    }

    /// The newest replies to a post.
    pub fn replies(post: PostId) -> Self {
        Self { timeline: Timeline::Replies(post), ..Self::default() }
    }

    /// The newest messages of a chat that the reader is in.
    pub fn chat(chat: AccountId) -> Self {
        Self { timeline: Timeline::Chat(chat), ..Self::default() }
    }

    /// Sets how many posts the page has.
    #[must_use]
    pub fn limit(self, posts: usize) -> Self {
        Self { limit: Some(posts), ..self }
    }

    /// Goes on from where another page ended.
    #[must_use]
    pub fn after(self, cursor: Cursor) -> Self {
        Self { cursor: Some(cursor), ..self }
    }

    /// Asks for that part of the timeline only.
    #[must_use]
    pub fn range(self, range: Range) -> Self {
        Self { range, ..self }
    }

    /// Asks for the posts with their authors and originals, not for ids alone.
    #[must_use]
    pub fn hydrated(self) -> Self {
        Self { hydrate: true, ..self }
    }

    /// Asks what the reader likes, has bookmarked and reposted: two more trips to the servers at most, none where the
    /// instance remembers that.
    #[must_use]
    pub fn with_ties(self) -> Self {
        Self { ties: true, ..self }
    }

    /// Asks for so many of the newest likers of each post: up to 40.
    #[must_use]
    pub fn with_likers(self, likers: usize) -> Self {
        Self { likers, ..self }
    }

    /// Asks for so many of the newest replies to each post: up to 40.
    #[must_use]
    pub fn with_replies(self, replies: usize) -> Self {
        Self { replies, ..self }
    }
}

/// A post on a page.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct PagePost {
    /// Its id.
    pub id: PostId,
    /// Its author.
    pub author: AccountId,
    /// The post, on a hydrated page.
    pub post: Option<Arc<Post>>,
    /// Its author, on a hydrated page; of a post into a group, the group.
    pub account: Option<Arc<Account>>,
    /// Of a post into a group, who wrote it: on a hydrated page.
    pub writer: Option<Arc<Account>>,
    /// Whom it mentions, as far as the reader may meet them: on a hydrated page, with `shows_profiles` in the settings.
    /// Of replies that come along with another post nobody.
    pub mentioned: Vec<Arc<Account>>,
    /// What it reposts or quotes, on a hydrated page; of a quote only while that is there.
    pub original: Option<Box<PassedOn>>,
    /// The reader's ties to it, if the query asks for them.
    #[serde(rename = "marks")]
    pub ties: Option<ReaderTies>,
    /// Whether the reader has [muted](crate::document::MUTED_CONVERSATIONS) its conversation, of a plain repost that of
    /// its original: on a hydrated page.
    pub is_conversation_muted: bool,
    /// Its newest likers, if the query asks for them, as far as the reader may see them.
    pub likers: Vec<Arc<Account>>,
    /// The newest replies to it, newest first, if the query asks for them, as far as the reader may see them.
    pub replies: Vec<PagePost>,
}

/// A post that a post on a page reposts or quotes.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct PassedOn {
    /// Its id.
    pub id: PostId,
    /// The post.
    pub post: Arc<Post>,
    /// Its author; of a post into a group, the group.
    pub account: Arc<Account>,
    /// Of a post into a group, who wrote it.
    pub writer: Option<Arc<Account>>,
    /// Whom it mentions, as for a [`PagePost`].
    pub mentioned: Vec<Arc<Account>>,
    /// What it quotes itself, where it was reposted without a comment.
    pub original: Option<Box<PassedOn>>,
}

impl PagePost {
    /// Says only that it is there, as on a page that isn't hydrated.
    pub fn bare(PostRef { id, author }: PostRef) -> Self {
        let (mentioned, likers, replies) = (Vec::new(), Vec::new(), Vec::new());
        Self {
            id,
            author,
            post: None,
            account: None,
            writer: None,
            mentioned,
            original: None,
            ties: None,
            is_conversation_muted: false,
            likers,
            replies,
        }
    }

    /// All that it shows: itself, and what it passes on; with whom each of these mentions.
    pub(crate) fn each_shown(&mut self, mut each: impl FnMut(&Post, &mut Vec<Arc<Account>>)) {
        if let Some(post) = &self.post {
            each(post, &mut self.mentioned);
        }
        let mut next = self.original.as_deref_mut();
        while let Some(passed_on) = next {
            each(&passed_on.post, &mut passed_on.mentioned);
            next = passed_on.original.as_deref_mut();
        }
    }

    /// Gives the post that began its conversation, of a plain repost that of its original; `None`: the page has only
    /// its id.
    pub fn conversation(&self) -> Option<PostId> {
        let post = self.post.as_deref()?;
        if post.passes_on().is_none() {
            return Some(post.header().conversation.unwrap_or(self.id));
        }
        let original = self.original.as_deref()?;
        Some(original.post.header().conversation.unwrap_or(original.id))
    }

    /// Tells who wrote it: of a post into a group the member, of any other its author. On a page that isn't hydrated
    /// its author.
    pub fn said_by(&self) -> AccountId {
        self.post.as_ref().map_or(self.author, |post| post.writer())
    }

    /// Gives what is liked, answered and reposted when this is: of a plain repost its original.
    pub fn subject(&self) -> PostRef {
        let original = self.post.as_ref().and_then(|post| post.passes_on());
        original.unwrap_or(PostRef { id: self.id, author: self.author })
    }
}

/// A page of a timeline, newest first.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize)]
pub struct Page {
    /// The posts. A page may be shorter than asked for, even empty, and still have a next one.
    pub posts: Vec<PagePost>,
    /// The next older page; `None`: that was the end.
    pub next: Option<Cursor>,
    /// Hand it over as `min_id` to go on with newer posts.
    pub newer: Option<PostId>,
    /// Whether the archive was away: the page ends where only that could tell what follows, and some of what comes
    /// along may be missing. Its cursors stand there: go on from them, once the archive is back.
    pub lacks_archive: bool,
}

impl Page {
    /// The ids of the page's posts.
    pub fn ids(&self) -> Vec<PostId> {
        self.posts.iter().map(|post| post.id).collect()
    }
}
