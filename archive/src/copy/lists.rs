//! Copying lists of posts, with the numbers that they are known by.

use tideline_model::archive::{
    Archive, LISTED_MAX, ListKey, ListPlace, PAGE_MAX, PageOrder, PostListAsk, PostListChange, PostListPage,
};
use tideline_model::bucket::Bucket;
use tideline_model::error::Result;
use tideline_model::ids::PostId;

use super::{CopiedCount, again};

/// Lists that are copied at the same time.
const LISTS_AT_ONCE: usize = 64;

pub(super) async fn copy(
    from: &dyn Archive,
    to: &dyn Archive,
    bucket: Bucket,
    count: &mut CopiedCount,
    progress: &impl Fn(CopiedCount),
) -> Result<()> {
    let mut after: Option<Vec<u8>> = None;
    loop {
        let names = walk(from, bucket, after.as_deref()).await?;
        let Some(last) = names.last() else { return Ok(()) };
        after = Some(last.clone());
        let mut open = asks(bucket, names)?;
        while !open.is_empty() {
            let asked = next_asks(&open);
            let pages = read(from, &asked).await?;
            open = rest(&asked, &pages);
            count.listed += pages.iter().map(|page| page.posts.len() as u64).sum::<u64>();
            let change = |(ask, page): (PostListAsk, PostListPage)| {
                let PostListPage { stamp, posts } = page;
                PostListChange { list: ask.list, added: posts, removed: Vec::new(), stamp }
            };
            let changes: Vec<PostListChange> = asked.into_iter().zip(pages).map(change).collect();
            again(|| to.change_lists(&changes)).await?;
            progress(*count);
        }
    }
}

/// Names of some lists of a bucket.
pub(super) async fn walk(
    archive: &dyn Archive,
    bucket: Bucket,
    after: Option<&[u8]>,
) -> Result<Vec<Vec<u8>>> {
    again(|| archive.walk_lists(bucket, after, LISTS_AT_ONCE)).await
}

/// Questions for all of these lists.
pub(super) fn asks(bucket: Bucket, names: Vec<Vec<u8>>) -> Result<Vec<PostListAsk>> {
    let edge = ListPlace { unix_ms: 0, post: PostId::from_u64(0)? };
    let ask = |name| PostListAsk { list: ListKey { bucket, name }, edge, most: 0 };
    Ok(names.into_iter().map(ask).collect())
}

/// Puts the same questions again, for as much as is read and written at once.
pub(super) fn next_asks(open: &[PostListAsk]) -> Vec<PostListAsk> {
    let most = PAGE_MAX.min(LISTED_MAX / open.len().max(1));
    open.iter().map(|ask| PostListAsk { most, ..ask.clone() }).collect()
}

pub(super) async fn read(archive: &dyn Archive, asks: &[PostListAsk]) -> Result<Vec<PostListPage>> {
    again(|| archive.list_pages(asks, PageOrder::OldestFirst)).await
}

/// Questions for what follows on those lists that have more.
pub(super) fn rest(asked: &[PostListAsk], pages: &[PostListPage]) -> Vec<PostListAsk> {
    let next = |(ask, page): (&PostListAsk, &PostListPage)| {
        let edge = page.posts.last().filter(|_| page.posts.len() == ask.most)?.place;
        Some(PostListAsk { edge, ..ask.clone() })
    };
    asked.iter().zip(pages).filter_map(next).collect()
}
