//! Ties of a reader to posts: likes, bookmarks, reposts. What is small is remembered whole, under the record's ties
//! stamp: every change of it renews that, and every read brings it along. Of what is large the posts of a page are
//! asked.

use std::sync::Arc;

use futures::future::try_join;

use super::Readers;
use super::state::{Stamps, stamps};
use super::tie::Tie;
use crate::error::Result;
use crate::ids::{AccountId, PostId};
use crate::meters;
use crate::nonce::Nonce;
use crate::post::PostRef;
use crate::sharded::{Member as _, Questions, SetAnswer, SortedSet};
use crate::tenant::Tenant;

/// Pieces of a set that is remembered whole: about a thousand members at most.
const PIECES_MAX: usize = 8;
/// Most members of a remembered set that grows: beyond that it is asked again, from the next change on.
const MEMBERS_MAX: usize = 1_024;

/// Of what is not remembered whole, so many of the newest tell for whom a reader cares.
const ACTS_MAX: usize = 128;

/// The ties of a reader to a post: what it has done with it. Of a plain repost: with its original, which is what is
/// liked and answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct ReaderTies {
    /// The reader likes it.
    pub is_liked: bool,
    /// The reader has bookmarked it.
    pub is_bookmarked: bool,
    /// The reader's own repost of it, without a comment.
    pub repost: Option<PostId>,
}

/// A set with its scores, by members; `None`: too large to be remembered.
type KeptSet = Option<Arc<[(PostRef, f64)]>>;

/// Ties of an account: what it likes, has bookmarked and reposted, as of its ties stamp.
#[derive(Debug, Clone)]
pub(crate) struct Ties {
    stamp: Option<Nonce>,
    /// In the order of [`sets_of`].
    kept: [KeptSet; 3],
}

impl Ties {
    pub(crate) fn stamp(&self) -> Option<Nonce> {
        self.stamp
    }

    /// The number of posts that it is about, plus one.
    pub(super) fn weight(&self) -> u64 {
        1 + self.kept.iter().flatten().map(|kept| kept.len() as u64).sum::<u64>()
    }

    /// The ties once a post is liked or bookmarked, or no longer.
    pub(crate) fn changed(&self, what: Tie, post: PostRef, on: bool, stamp: Nonce) -> Self {
        let mut kept = self.kept.clone();
        let number = match what {
            Tie::Like => 0,
            Tie::Bookmark => 1,
        };
        kept[number] = kept[number].take().and_then(|tied| with(tied, post, on));
        Self { stamp: Some(stamp), kept }
    }
}

/// Members, and one more or one less; that one's score says nothing.
fn with(tied: Arc<[(PostRef, f64)]>, post: PostRef, on: bool) -> KeptSet {
    let at = match (tied.binary_search_by_key(&post, |(post, _)| *post), on) {
        (Err(at), true) => at,
        (Ok(at), false) => return Some(tied[..at].iter().chain(&tied[at + 1..]).copied().collect()),
        _ => return Some(tied),
    };
    if tied.len() >= MEMBERS_MAX {
        return None;
    }
    let (below, above) = tied.split_at(at);
    Some(below.iter().copied().chain([(post, 0.0)]).chain(above.iter().copied()).collect())
}

fn sets_of(tenant: &Tenant, reader: AccountId) -> Result<[SortedSet<PostRef>; 3]> {
    Ok([tenant.likes(reader)?, tenant.bookmarks(reader)?, tenant.reposts(reader)?])
}

/// A look at a reader's ties, as a read knows it.
#[derive(Debug)]
pub(crate) struct TiesLook {
    ties: Arc<Ties>,
    /// It was read just now, and is not remembered yet.
    is_new: bool,
}

/// Looks at what a reader has done: at what is remembered, if the stamps that the read began with say so.
pub(crate) async fn look(readers: &Readers, reader: AccountId, stamps: &Stamps) -> Result<TiesLook> {
    if reader.is_nobody() {
        let kept = [(); 3].map(|()| Some(Arc::from([])));
        return Ok(TiesLook { ties: Arc::new(Ties { stamp: None, kept }), is_new: false });
    }
    let known = readers.ties.get(&reader);
    let is_same = |ties: &Arc<Ties>| ties.stamp == stamps.ties;
    let known = known.filter(is_same);
    meters::cache("ties", usize::from(known.is_some()), usize::from(known.is_none()));
    if let Some(ties) = known {
        return Ok(TiesLook { ties, is_new: false });
    }
    let mut questions = Questions::default();
    sets_of(&readers.tenant, reader)?.iter().for_each(|set| questions.whole(set, PIECES_MAX));
    let mut told = questions.ask(readers.tenant.sets()).await?.into_iter().map(SetAnswer::whole);
    let mut next = || {
        told.next()
            .flatten()
            .map(|entries| {
                let tied = entries.iter().map(|entry| Ok((PostRef::from_bytes(&entry.member)?, entry.score)));
                let mut tied = tied.collect::<Result<Vec<_>>>()?;
                tied.sort_unstable_by_key(|(post, _)| *post);
                // A leaf that was split while it was read may stand beside its heirs.
                tied.dedup_by_key(|(post, _)| *post);
                Ok(tied.into())
            })
            .transpose()
    };
    let kept = [next()?, next()?, next()?];
    Ok(TiesLook { ties: Arc::new(Ties { stamp: stamps.ties, kept }), is_new: true })
}

impl TiesLook {
    /// The posts that the reader has liked, bookmarked and reposted: all of them, and of a set that is too large for
    /// that the newest [`ACTS_MAX`]. Remembers what was read, as [`with`](Self::with) does.
    pub(crate) async fn acts(
        self,
        readers: &Readers,
        reader: AccountId,
        stamps: &Stamps,
    ) -> Result<Vec<PostRef>> {
        let mut questions = Questions::default();
        for (set, kept) in sets_of(&readers.tenant, reader)?.iter().zip(&self.ties.kept) {
            if kept.is_none() {
                questions.newest(set, ACTS_MAX);
            }
        }
        let (told, ()) =
            try_join(questions.ask(readers.tenant.sets()), self.remember(readers, reader, stamps)).await?;
        let kept = self.ties.kept.iter().flatten().flat_map(|kept| kept.iter().map(|(post, _)| *post));
        let mut acts: Vec<PostRef> = kept.collect();
        for newest in told {
            acts.extend(newest.newest::<PostRef>()?);
        }
        Ok(acts)
    }

    /// Tells what the reader has done with these posts; and remembers what was read for that, if nothing has changed
    /// since.
    pub(crate) async fn with(
        self,
        readers: &Readers,
        reader: AccountId,
        stamps: &Stamps,
        posts: &[PostRef],
    ) -> Result<Vec<ReaderTies>> {
        let mut questions = Questions::default();
        for (set, kept) in sets_of(&readers.tenant, reader)?.iter().zip(&self.ties.kept) {
            if kept.is_none() && !posts.is_empty() {
                questions.scores(set, posts.iter().copied());
            }
        }
        let (told, ()) =
            try_join(questions.ask(readers.tenant.sets()), self.remember(readers, reader, stamps)).await?;
        let mut told = told.into_iter().map(SetAnswer::scores);
        let mut scores = self.ties.kept.iter().map(|kept| match kept {
            Some(tied) => posts.iter().map(|post| score_in(tied, post)).collect(),
            None => told.next().unwrap_or_default(),
        });
        let mut next = || scores.next().unwrap_or_default();
        let (likes, bookmarks, reposts) = (next(), next(), next());
        let (buckets, bucket) = (readers.tenant.keys().buckets(), readers.tenant.bucket(reader));
        let tie = |((like, bookmark), repost): ((Option<f64>, Option<f64>), Option<f64>)| {
            Ok(ReaderTies {
                is_liked: like.is_some(),
                is_bookmarked: bookmark.is_some(),
                repost: repost.map(|place| PostId::at_place(buckets, bucket, place)).transpose()?,
            })
        };
        likes.into_iter().zip(bookmarks).zip(reposts).map(tie).collect()
    }

    /// Equal stamps before and after, from the same life of the same server: nothing changed between.
    async fn remember(&self, readers: &Readers, reader: AccountId, before: &Stamps) -> Result<()> {
        if self.is_new {
            let after = stamps(&readers.tenant, reader).await?;
            let is_same = before.epoch == after.epoch && before.ties == after.ties;
            // Of other stamps, a failover may have taken back what was read.
            if is_same {
                readers.ties.insert(reader, self.ties.clone());
            }
        }
        Ok(())
    }
}

fn score_in(tied: &[(PostRef, f64)], post: &PostRef) -> Option<f64> {
    let at = tied.binary_search_by_key(post, |(post, _)| *post).ok()?;
    Some(tied[at].1)
}

/// Tells of each of these posts whether the reader likes, reposts or bookmarks it. `stamps`: those that the read began
/// with.
pub(crate) async fn ties_with(
    readers: &Readers,
    reader: AccountId,
    stamps: &Stamps,
    posts: &[PostRef],
) -> Result<Vec<ReaderTies>> {
    if posts.is_empty() {
        return Ok(Vec::new());
    }
    look(readers, reader, stamps).await?.with(readers, reader, stamps, posts).await
}
