//! What a reader has done with posts: looked up in its own slot, for a whole page in one go.

use super::page::Marks;
use crate::context::Context;
use crate::error::Result;
use crate::ids::{AccountId, PostId};
use crate::post::PostRef;
use crate::sharded::{Questions, Told};

/// Asks what a reader has done with these posts: three questions.
pub(crate) fn ask(
    context: &Context,
    reader: AccountId,
    posts: &[PostRef],
    questions: &mut Questions,
) -> Result<()> {
    for set in [context.likes(reader)?, context.bookmarks(reader)?, context.reposts(reader)?] {
        questions.scores(&set, posts.iter().copied());
    }
    Ok(())
}

/// Reads the answers to [`ask`], the next three of `told`; in the order of the posts.
pub(crate) fn read(
    context: &Context,
    reader: AccountId,
    told: &mut impl Iterator<Item = Told>,
) -> Result<Vec<Marks>> {
    let (buckets, bucket) = (context.keys().buckets(), context.bucket(reader));
    let mut next = || told.next().map(Told::scores).unwrap_or_default();
    let (likes, bookmarks, reposts) = (next(), next(), next());
    let mark = |((like, bookmark), repost): ((Option<f64>, Option<f64>), Option<f64>)| {
        Ok(Marks {
            is_liked: like.is_some(),
            is_bookmarked: bookmark.is_some(),
            repost: repost.map(|place| PostId::at_place(buckets, bucket, place)).transpose()?,
        })
    };
    likes.into_iter().zip(bookmarks).zip(reposts).map(mark).collect()
}

/// What a reader has done with these posts.
pub(crate) async fn marks_of(context: &Context, reader: AccountId, posts: &[PostRef]) -> Result<Vec<Marks>> {
    if posts.is_empty() {
        return Ok(Vec::new());
    }
    let mut questions = Questions::default();
    ask(context, reader, posts, &mut questions)?;
    read(context, reader, &mut questions.ask(context.sets()).await?.into_iter())
}
