//! Feeds: what a timeline is made of, and what differs between timelines. Reading, filtering, merging and cursors know
//! none of them by name: a further one is a value of this kind.

use std::fmt;
use std::sync::Arc;

use futures::future::BoxFuture;

use super::chosen::ChosenSet;
use super::filter::{HiddenBecause, Rules, SeenPost, passes, shown_at_home, shown_on_list, shown_on_page};
use super::page::PagePost;
use super::tagged::TaggedSet;
use super::view::View;
use super::viewpoint::Viewpoint;
use crate::error::Result;
use crate::graph::{self, ListItem, post_list};
use crate::ids::{AccountId, PostId};
use crate::post::{NamedList, Post, PostRef, Reference, SearchWords, Tag};
use crate::search::is_found_by_all;
use crate::sharded::SortedSet;
use crate::tiers::ArchivedList;

/// Whether a post that a feed's sources name shows on it, or why not.
type Admission = Box<dyn Fn(&View<'_>, SeenPost<'_>) -> Result<(), HiddenBecause> + Send + Sync>;

/// A bounded, ordered list of posts with an owner, a rule of admission and a floor.
pub(crate) struct Feed {
    /// Its name in metrics.
    pub(crate) name: &'static str,
    /// Whose it is, and where its posts come from.
    pub(crate) origin: Origin,
    /// Whether anybody can bring posts onto it. Then posts of those whom the reader doesn't want aren't even loaded,
    /// and a page that meets too much that doesn't show ends early.
    pub(crate) is_open_to_all: bool,
    pub(crate) admits: Admission,
    /// What goes on where its outboxes end; `None`: pages end there. For a feed with a store of its own. No feed here
    /// sets it: the archive's floors themselves say that it goes on there.
    pub(crate) below: Option<Arc<dyn BelowFloor>>,
    /// Gives the posts of a page an order of their own. The next page goes on by ids all the same. No feed here sets
    /// it.
    pub(crate) arrange: fn(&mut [PagePost]),
}

/// A source below floors: keeps what outboxes have cut off. It is asked only by pages that are read down, and only
/// below a floor that they have come to.
pub(crate) trait BelowFloor: fmt::Debug + Send + Sync {
    /// Posts with ids below `from` that belong to an origin, about `limit` of them, and down to which id these are all;
    /// 0: nothing follows.
    fn read<'a>(
        &'a self,
        of: &'a Origin,
        from: u64,
        limit: usize,
    ) -> BoxFuture<'a, Result<(Vec<PostRef>, u64)>>;
}

/// The list behind a feed, and its owner.
pub(crate) enum Origin {
    /// The reader's home; below its floor, the outboxes of all it follows.
    Home,
    /// The outbox of an account. What that has cut off is below its floor: gone, or kept [elsewhere](BelowFloor).
    Outbox(AccountId),
    /// The outboxes of those of them whom the reader follows, and its own, if it is among them.
    Chosen(ChosenSet),
    /// Lists that say which posts to look at; whether one belongs there (still) the post says itself.
    Lists(Vec<ListOrigin>),
    /// What all buckets have that is public: hints too.
    Public,
    /// What the index of the archive finds: a hint too.
    Search(SearchWords),
}

/// A list of posts, and how the archive has it, if it may.
pub(crate) type ListOrigin = (SortedSet<ListItem>, Option<ArchivedList>);

impl Feed {
    pub(crate) fn new(
        name: &'static str,
        origin: Origin,
        admits: impl Fn(&View<'_>, SeenPost<'_>) -> Result<(), HiddenBecause> + Send + Sync + 'static,
    ) -> Self {
        Self { name, origin, is_open_to_all: false, admits: Box::new(admits), below: None, arrange: |_| {} }
    }

    /// The posts of all that the reader follows, and its own.
    pub(super) fn home() -> Self {
        Self::new("home", Origin::Home, admits_at_home)
    }

    /// The posts of one account.
    pub(super) fn profile(account: AccountId, replies: bool, reposts: bool) -> Self {
        Self::new("profile", Origin::Outbox(account), move |view, seen| {
            let post = seen.met.post;
            if (!replies && post.answers_others()) || (!reposts && post.is_plain_repost()) {
                return Err(HiddenBecause::NotAsked);
            }
            shown_on_page(view.by.reader, view.state(), seen)
        })
    }

    /// The messages of a chat, but for those of whom the reader doesn't want to meet.
    pub(super) fn chat(chat: AccountId) -> Self {
        Self::new("chat", Origin::Outbox(chat), |view, seen| {
            shown_on_list(view.by.reader, view.state(), seen)
        })
    }

    /// An account's posts, only what bears some hashtags.
    pub(super) fn with_tags(self, tagged: TaggedSet) -> Self {
        let admits = self.admits;
        let admits = Box::new(move |view: &View<'_>, seen: SeenPost<'_>| {
            if tagged.admits(seen.met.post) { admits(view, seen) } else { Err(HiddenBecause::NotAsked) }
        });
        Self { admits, ..self }
    }

    /// The posts of chosen accounts, as they show at home but for the rule for replies, and with whom the reader leaves
    /// out of its home.
    pub(super) fn chosen(chosen: ChosenSet) -> Self {
        let rule = chosen.clone();
        Self::new("chosen", Origin::Chosen(chosen), move |view, seen| {
            rule.admits_reply(view.by.reader, view.state(), seen.met.post)?;
            let rules = Rules { replies_to_strangers: true, leaves_out: false };
            shown_at_home(rules, view.by.reader, view.state(), seen)
        })
    }

    /// Posts that mention the reader.
    pub(super) fn mentions(by: Viewpoint<'_>) -> Result<Self> {
        let (named, reader) = (NamedList::Mentions(by.reader), by.reader);
        let list = (post_list(&by.timelines.tenant, named)?, Some(ArchivedList::Named(named)));
        Ok(Self::list("mentions", list, move |post| post.mentions(reader)))
    }

    /// Public posts with a hashtag.
    pub(super) fn tag(by: Viewpoint<'_>, tag: Tag) -> Result<Self> {
        Ok(Self::list("tag", list_of_tag(by, tag)?, move |post| post.bears(&tag)))
    }

    /// Public posts with one of several hashtags, as far as their further ones admit them.
    pub(super) fn tagged(by: Viewpoint<'_>, tagged: TaggedSet) -> Result<Self> {
        let lists = tagged.any().iter().map(|tag| list_of_tag(by, *tag)).collect::<Result<_>>()?;
        Ok(Self::open_to_all("tagged", Origin::Lists(lists), move |post| {
            post.is_listed_by_tags() && tagged.admits(post)
        }))
    }

    /// The replies to a post, which is no plain repost: to one of those nobody replies, but to its original.
    pub(super) fn replies(by: Viewpoint<'_>, to: PostId) -> Result<Self> {
        let list = graph::list(&by.timelines.tenant, Reference::REPLY, to)?.with_members();
        let of = Some(ArchivedList::OfPost((to, Reference::REPLY)));
        Ok(Self::list("replies", (list, of), move |post| {
            post.header().reply_to.is_some_and(|of| of.id == to)
        }))
    }

    /// Public posts by anybody.
    pub(super) fn public() -> Self {
        Self::open_to_all("public", Origin::Public, Post::is_on_public_timeline)
    }

    /// Public posts, and the reader's own, that have these words.
    pub(super) fn search(words: SearchWords) -> Self {
        let feed = Self::new("search", Origin::Search(words), move |view, seen| {
            let (post, reader) = (seen.met.post, view.by.reader);
            // As it is now: it may have been edited since.
            let is_found = is_found_by_all(post) || post.header().author == reader;
            if !is_found || !words.are_in(post) {
                return Err(HiddenBecause::NotListed);
            }
            shown_on_list(reader, view.state(), seen)
        });
        Self { is_open_to_all: true, ..feed }
    }

    /// A list that is open to all: it is a hint, and the post itself says whether it `belongs` there, as of now.
    fn list(
        name: &'static str,
        list: ListOrigin,
        belongs: impl Fn(&Post) -> bool + Send + Sync + 'static,
    ) -> Self {
        Self::open_to_all(name, Origin::Lists(vec![list]), belongs)
    }

    /// A post that was loaded, if it shows to the reader; or why not.
    pub(super) fn admitted<'v>(
        &self,
        view: &'v View<'_>,
        post: PostRef,
    ) -> Result<SeenPost<'v>, HiddenBecause> {
        let seen = view.loaded.seen(post).ok_or(HiddenBecause::Gone)?;
        (self.admits)(view, seen)?;
        passes(view.by.filter, view.by.reader, seen)?;
        Ok(seen)
    }

    fn open_to_all(
        name: &'static str,
        origin: Origin,
        belongs: impl Fn(&Post) -> bool + Send + Sync + 'static,
    ) -> Self {
        let feed = Self::new(name, origin, move |view, seen| {
            if !belongs(seen.met.post) {
                return Err(HiddenBecause::NotListed);
            }
            shown_on_list(view.by.reader, view.state(), seen)
        });
        Self { is_open_to_all: true, ..feed }
    }
}

fn list_of_tag(by: Viewpoint<'_>, tag: Tag) -> Result<ListOrigin> {
    let named = NamedList::Tagged(tag.number(by.timelines.tenant.tags()));
    Ok((post_list(&by.timelines.tenant, named)?, Some(ArchivedList::Named(named))))
}

pub(crate) fn admits_at_home(view: &View<'_>, seen: SeenPost<'_>) -> Result<(), HiddenBecause> {
    let replies_to_strangers = view.by.timelines.tenant.settings.shows_replies_to_strangers;
    let rules = Rules { replies_to_strangers, leaves_out: true };
    shown_at_home(rules, view.by.reader, view.state(), seen)
}
