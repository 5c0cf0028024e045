//! Mentions and hashtags beyond their bounds: on lists of the archive.
//!
//! What stands there is a hint, as on the lists in memory: whoever reads it asks the post. So nothing has to be taken
//! off in time, and a late change does no harm. What leaves memory must be there, though: each change gives the list a
//! number, and posts leave once that is found there when it should have settled. Two that change a list at once have
//! two numbers, so one of them finds another one, and begins anew later.

use tokio::time::sleep;

use crate::archive::{
    ListKey, ListPlace, ListedPost, PAGE_MAX, PageOrder, PostListAsk, PostListChange, PostListPage,
};
use crate::bucket::Bucket;
use crate::cluster::{Command, Request};
use crate::error::{Error, ErrorCode, Result};
use crate::ids::PostId;
use crate::keys::set_of_tag;
use crate::post::{NamedList, PostRef};
use crate::stored::AgendaEntry;
use crate::tenant::{Tenant, archive_away, unread};

/// Bits of a stamp that are drawn.
const DRAWN_BITS: u32 = 10;

/// The bucket in which a list lies.
pub(crate) fn bucket_of(tenant: &Tenant, list: NamedList) -> Bucket {
    match list {
        NamedList::Mentions(account) | NamedList::Written(account) | NamedList::Chats(account) => {
            tenant.bucket(account)
        }
        NamedList::Tagged(number) => tenant.keys().buckets().of_bytes(&set_of_tag(number)),
    }
}

pub(super) fn key_of(tenant: &Tenant, list: NamedList) -> ListKey {
    ListKey { bucket: bucket_of(tenant, list), name: list.to_bytes().to_vec() }
}

fn listed(post: &PostRef) -> ListedPost {
    ListedPost { place: ListPlace { unix_ms: post.id.unix_ms(), post: post.id }, author: post.author }
}

/// Notes that a list is too long: the next round of moves looks at it.
pub(crate) async fn note_list(tenant: &Tenant, list: NamedList) -> Result<()> {
    let bucket = bucket_of(tenant, list);
    let note = Command::new("ZADD").arg(&tenant.keys().agenda(bucket)).arg("NX");
    let note = note.arg(tenant.router().now_ms()).arg(&AgendaEntry::List(list).to_bytes());
    tenant.router().call(Request::write(tenant.keys().buckets().slot(bucket), note)).await.map(drop)
}

/// Puts posts on a list of the archive, waits until that has settled, and gives the number that the list is known by.
/// `None`: it isn't there then, or somebody else has changed the list too.
pub(crate) async fn store_listed(tenant: &Tenant, list: NamedList, posts: &[PostRef]) -> Result<Option<u64>> {
    let Some(archive) = tenant.archive()? else { return Ok(None) };
    let drawn = u64::from(rand::random::<u16>()) & ((1 << DRAWN_BITS) - 1);
    let stamp = tenant.router().now_ms() << DRAWN_BITS | drawn;
    let key = key_of(tenant, list);
    let added = posts.iter().map(listed).collect();
    let change = PostListChange { list: key.clone(), added, removed: Vec::new(), stamp };
    archive.change_lists(&[change]).await.map_err(archive_away)?;
    if archive.settles_within().is_zero() {
        return Ok(Some(stamp));
    }
    // H189: a server that has taken over may lack it.
    sleep(archive.settles_within()).await;
    Ok(known_by(tenant, list).await?.filter(|known| *known == stamp))
}

/// The number that a list of the archive is known by; 0: it was never changed. `None`: there is no archive.
pub(super) async fn known_by(tenant: &Tenant, list: NamedList) -> Result<Option<u64>> {
    let Some(archive) = tenant.archive()? else { return Ok(None) };
    let ask = PostListAsk { list: key_of(tenant, list), edge: place(None)?, most: 0 };
    let found = archive.list_pages(&[ask], PageOrder::NewestFirst).await.map_err(archive_away)?.pop();
    Ok(found.map(|page| page.stamp))
}

/// Takes a post off a list of the archive that was deleted.
pub(crate) async fn unlist(tenant: &Tenant, list: NamedList, post: PostRef) -> Result<()> {
    let Some(archive) = tenant.archive()? else { return Ok(()) };
    let removed = vec![listed(&post)];
    let change = PostListChange { list: key_of(tenant, list), added: Vec::new(), removed, stamp: 0 };
    archive.change_lists(&[change]).await.map_err(archive_away)
}

/// Takes all posts off a list whose account was deleted.
pub(crate) async fn drop_listed(tenant: &Tenant, list: NamedList) -> Result<()> {
    let Some(archive) = tenant.archive()? else { return Ok(()) };
    let list = key_of(tenant, list);
    loop {
        let ask = PostListAsk { list: list.clone(), edge: place(None)?, most: PAGE_MAX };
        let page = archive.list_pages(&[ask], PageOrder::NewestFirst).await.map_err(archive_away)?.pop();
        let removed = page.unwrap_or_default().posts;
        if removed.is_empty() {
            return Ok(());
        }
        let change = PostListChange { list: list.clone(), added: Vec::new(), removed, stamp: 0 };
        archive.change_lists(&[change]).await.map_err(archive_away)?;
    }
}

/// The posts that the archive has of a list beyond a post, in that order, at most so many. `stamp`: the number that it
/// must know.
pub(crate) async fn listed_beyond(
    tenant: &Tenant,
    (list, stamp): (NamedList, u64),
    (edge, order): (Option<PostId>, PageOrder),
    most: usize,
) -> Result<Vec<PostRef>> {
    let Some(archive) = tenant.archive()? else { return Ok(Vec::new()) };
    let ask = PostListAsk { list: key_of(tenant, list), edge: place(edge)?, most };
    let page = archive.list_pages(&[ask], order).await.map_err(unread)?.pop();
    let PostListPage { stamp: known, posts } = page.unwrap_or_default();
    // H169: what memory has let go may be missing.
    if known < stamp {
        return Err(Error::new(
            ErrorCode::ArchiveAway,
            format!(
                "the archive lacks posts of the list {list:?} that it once had: it was restored from an older copy, or \
                 another server answers in its place"
            ),
        ));
    }
    Ok(posts.into_iter().map(|post| PostRef { id: post.place.post, author: post.author }).collect())
}

/// The place where a post stands on lists; beyond all without one.
fn place(post: Option<PostId>) -> Result<ListPlace> {
    let post = post.map_or_else(|| PostId::from_u64(u64::MAX >> 1), Ok)?;
    Ok(ListPlace { unix_ms: post.unix_ms(), post })
}
