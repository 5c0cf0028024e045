//! A look at what is stored of a post: whom it is for, what moderators say of it, the lengths of its lists beside what
//! it says of them, and the lists of others that it is on. Not what it says.

use serde::Serialize;

use super::archive::{PostTier, tier};
use super::{Engine, OpenTask, journal};
use crate::cluster::{Command, Request};
use crate::error::{CallFuture, ErrorCode, Result};
use crate::graph;
use crate::ids::{AccountId, PostId};
use crate::post::{Audience, NamedList, Post, PostRef, Reference, Tag, TagKey, Visibility};
use crate::sharded::Member as _;
use crate::stored::public_entries;
use crate::tenant::{Tenant, no_post};
use crate::tiers::{ListOf, archived_len, archived_score};

/// A look at what is stored of a post, but for what it says.
///
/// It is read in several trips, as an [`Inspection`](super::Inspection).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PostInspection {
    /// Its id.
    pub id: PostId,
    /// Its author.
    pub author: AccountId,
    /// The bucket in which it and its lists lie.
    pub bucket: u16,
    /// The slot of that bucket.
    pub slot: u16,
    /// The time at which it was written, in milliseconds since 1970.
    pub written_ms: u64,
    /// Where it lies, if the tenant has an archive.
    pub tier: Option<PostTier>,
    /// Its length as stored.
    pub bytes: usize,
    /// The number of its edits.
    pub revision: u32,
    /// Its visibility.
    pub visibility: Visibility,
    /// The number of accounts that alone may read it; 0: it is not limited so.
    pub only_to: usize,
    /// The number of accounts that may not read it.
    pub not_to: usize,
    /// A moderator hides it from all but its author.
    pub is_hidden: bool,
    /// Its attachments are hidden at first: its author or a moderator says so.
    pub is_sensitive: bool,
    /// A moderator says so.
    pub is_called_sensitive: bool,
    /// The post that it reposts or quotes.
    pub original: Option<PostRef>,
    /// It reposts that, and says nothing itself.
    pub is_plain_repost: bool,
    /// The post that it answers.
    pub reply_to: Option<PostRef>,
    /// The first post of the conversation.
    pub conversation: Option<PostId>,
    /// Its own lists.
    pub lists: Vec<ListLength>,
    /// The lists of other posts, accounts and hashtags that it is to be on, or may be for what it once said.
    pub listings: Vec<PostListing>,
    /// What the journal of its bucket holds that is about it, up to a hundred entries.
    pub journal: Vec<OpenTask>,
}

/// The length of a list of a post.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ListLength {
    /// `replies`, `reposts`, `quotes` or `likes`.
    pub list: &'static str,
    /// The length that the post says.
    pub said: u32,
    /// The number of members that there are.
    pub members: u64,
}

/// Whether a post is on a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PostListing {
    /// The list, in words.
    pub list: String,
    /// Whether the post belongs there as it is now; if not, an earlier revision named it.
    pub is_named: bool,
    /// Whether it is there.
    pub place: ListMembership,
}

/// Whether a post is on a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ListMembership {
    /// It is.
    On,
    /// It is not.
    Off,
    /// It is not (any more): the list holds newer posts only.
    TooOld,
    /// Only the archive could tell, and it doesn't.
    Untold,
}

impl Engine {
    /// A look at what is stored of a post, but for what it says. Changes nothing; for people who look for a fault.
    ///
    /// [`NotFound`](crate::ErrorKind::NotFound): there is no such post, or it was deleted.
    pub fn inspect_post(&self, id: PostId) -> CallFuture<'_, PostInspection> {
        Box::pin(async move {
            let (tenant, graph) = (&self.tenant, &self.graph);
            let buckets = tenant.keys().buckets();
            let bucket = id.bucket(buckets);
            let with_bytes = |bytes: &[u8]| Ok((Post::parse(bytes)?, bytes.to_vec()));
            let stored = tenant.posts().get_as(id, with_bytes).await?.readable()?;
            let (post, bytes) = stored.ok_or_else(|| no_post(id))?;
            let header = *post.header();
            let (only_to, not_to) = match post.audience() {
                Audience::Unnamed => (0, 0),
                Audience::Only(accounts) => (accounts.len(), 0),
                Audience::Not(accounts) => (0, accounts.len()),
            };
            Ok(PostInspection {
                id,
                author: header.author,
                bucket: bucket.index(),
                slot: buckets.slot(bucket),
                written_ms: id.unix_ms(),
                tier: tier(tenant, PostRef { id, author: header.author }).await?,
                bytes: bytes.len(),
                revision: header.revision,
                visibility: header.visibility,
                only_to,
                not_to,
                is_hidden: header.is_hidden(),
                is_sensitive: header.is_sensitive(),
                is_called_sensitive: header.is_called_sensitive(),
                original: header.original,
                is_plain_repost: post.is_plain_repost(),
                reply_to: header.reply_to,
                conversation: header.conversation,
                lists: lengths(tenant, id, &bytes).await?,
                listings: listings(tenant, id, &post).await?,
                journal: journal(&graph.journal, bucket, |task| task.is_about(id)).await?,
            })
        })
    }
}

/// The lengths of a post's lists, and what its bytes say of them.
async fn lengths(tenant: &Tenant, id: PostId, bytes: &[u8]) -> Result<Vec<ListLength>> {
    let mut lengths = Vec::with_capacity(graph::LISTS.len());
    for (letter, list, offset) in graph::LISTS {
        let said = bytes.get(offset..).and_then(<[u8]>::first_chunk).copied().map_or(0, u32::from_be_bytes);
        let mut members = tenant.sets().of_post::<AccountId>(id, list)?.len().await?;
        if members == 0 {
            members = archived_len(tenant, (id, letter)).await?.unwrap_or_default();
        }
        lengths.push(ListLength { list, said, members });
    }
    Ok(lengths)
}

/// The lists that it is to be on, and those that an earlier revision named.
async fn listings(tenant: &Tenant, id: PostId, post: &Post) -> Result<Vec<PostListing>> {
    let author = post.header().author;
    let me = PostRef { id, author };
    let on = |list: String, place: ListMembership| PostListing { list, is_named: true, place };
    let mut listings = Vec::new();
    if let Some(original) = post.passes_on() {
        let place = tenant.reposts(author)?.score(&original).await?;
        let is_on = place == Some(id.place(tenant.keys().buckets()));
        let place = if is_on { ListMembership::On } else { ListMembership::Off };
        listings.push(on(format!("what {author} reposts"), place));
    }
    for Reference { kind, to } in Reference::of_post(post) {
        let place = match graph::list(tenant, kind, to.id)?.score(&me).await? {
            Some(_) => ListMembership::On,
            None => in_archive(tenant, (to.id, kind), me).await?,
        };
        let of = graph::LISTS.iter().find(|(of, ..)| *of == kind).map_or("?", |(_, name, _)| name);
        listings.push(on(format!("{of} of post {} of {}", to.id, to.author), place));
    }
    if let Some(list) = tenant.public_list_of(post) {
        let all = Command::new("GETRANGE").arg(&list).arg("0").arg("-1");
        let listed = tenant.router().call(Request::read(tenant.slot(author), all)).await?;
        let is_on = public_entries(listed.bytes()?).any(|post| post == me);
        let place = if is_on { ListMembership::On } else { ListMembership::TooOld };
        listings.push(on("the public timeline".into(), place));
    }
    let named = post.lists(tenant.tags());
    for list in post.lists_ever(tenant.tags()) {
        let standing = graph::standing(tenant, list, me).await?;
        let place = match (standing.score, standing.has_left) {
            (Some(_), _) => ListMembership::On,
            (None, true) => ListMembership::TooOld,
            (None, false) => ListMembership::Off,
        };
        listings.push(PostListing {
            list: in_words(list, post, tenant.tags()),
            is_named: named.contains(&list),
            place,
        });
    }
    Ok(listings)
}

/// Whether a post is on a list that may have left memory together with its post.
async fn in_archive(tenant: &Tenant, of: ListOf, post: PostRef) -> Result<ListMembership> {
    match archived_score(tenant, of, &post.to_bytes()).await {
        Ok(Some(_)) => Ok(ListMembership::On),
        Ok(None) => Ok(ListMembership::Off),
        Err(e) if e.code() == ErrorCode::ArchiveAway => Ok(ListMembership::Untold),
        Err(e) => Err(e),
    }
}

/// A hashtag's name is known only while the post bears it: lists have numbers.
fn in_words(list: NamedList, post: &Post, key: TagKey) -> String {
    match list {
        NamedList::Mentions(_) | NamedList::Written(_) | NamedList::Chats(_) => list.to_string(),
        NamedList::Tagged(number) => {
            let mut tags = post.content().hashtags.iter().filter_map(|tag| Tag::new(tag).ok());
            let tag = tags.find(|tag| tag.number(key) == number);
            tag.map_or_else(|| list.to_string(), |tag| format!("hashtag {tag}"))
        }
    }
}
