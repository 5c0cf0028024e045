//! An account's posts, by its outbox, by its bucket's agenda and by the archive, and how many they are.

use crate::archive::{Owner, PAGE_MAX, PageAsk, PageContent, PageOrder};
use crate::cluster::{Batch, Command, Reply, Request};
use crate::error::{Error, Result};
use crate::ids::{AccountId, PostId};
use crate::post::PostRef;
use crate::stored::{AgendaEntry, ArchiveFloor, DELETED};
use crate::tenant::{Scan, Tenant, archive_away};

/// Elements of an outbox read at once.
const IDS_AT_ONCE: usize = 2_000;

/// Counts the posts that the archive has of an account, up to where it has all.
pub(crate) async fn archived_posts(tenant: &Tenant, account: AccountId, floor: ArchiveFloor) -> Result<u64> {
    let Some(archive) = tenant.archive()? else { return Ok(0) };
    let owner = Owner { bucket: tenant.bucket(account), account };
    let (mut counted, mut edge) = (0, PostId::from_u64(floor.upto.get() + 1)?);
    loop {
        let ask = PageAsk { owner, edge, most: PAGE_MAX };
        let page = archive.pages(&[ask], PageOrder::NewestFirst, PageContent::Ids).await;
        let page = page.map_err(archive_away)?.pop();
        let page = page.ok_or_else(|| Error::internal("the archive has not answered"))?;
        floor.check(account, page.owner)?;
        counted += page.ids.len() as u64;
        match page.ids.last().filter(|_| page.ids.len() == PAGE_MAX) {
            Some(last) => edge = *last,
            None => return Ok(counted),
        }
    }
}

/// Counts the posts of an account that memory alone has below where the archive begins (H202): who was deleting them
/// has had the archive forget them, and has died. They are stored anew when somebody looks at them again.
pub(crate) async fn half_deleted_posts(
    tenant: &Tenant,
    account: AccountId,
    floor: ArchiveFloor,
) -> Result<u64> {
    let noted = noted_posts(tenant, account).await?;
    let mut counted = 0;
    for id in those_in_memory(tenant, noted.into_iter().filter(|id| *id <= floor.upto).collect()).await? {
        let post = PostRef { id, author: account };
        counted += u64::from(!tenant.posts().has_row(post, Some(floor)).await?);
    }
    Ok(counted)
}

/// Posts that an account's outbox lists, but for those that were deleted.
pub(crate) async fn listed_posts(tenant: &Tenant, account: AccountId) -> Result<Vec<PostId>> {
    let (outbox, mut listed, mut from) = (tenant.keys().outbox(account), Vec::new(), 0);
    // Floors are longer.
    let live = |element: &Reply| {
        let id = u64::from_be_bytes(element.bytes().ok()?.try_into().ok()?);
        PostId::from_u64(id).ok().filter(|_| id & DELETED == 0)
    };
    loop {
        let range = Command::new("LRANGE").arg(&outbox).arg(from).arg(from + IDS_AT_ONCE - 1);
        let elements =
            tenant.router().call(Request::read(tenant.slot(account), range)).await?.into_array()?;
        listed.extend(elements.iter().filter_map(live));
        from += elements.len();
        if elements.len() < IDS_AT_ONCE {
            return Ok(listed);
        }
    }
}

/// Posts of an account that its bucket's agenda names, ascending.
pub(super) async fn noted_posts(tenant: &Tenant, account: AccountId) -> Result<Vec<PostId>> {
    let agenda = tenant.keys().agenda(tenant.bucket(account));
    let (mut noted, mut scan) = (Vec::new(), Scan::new("ZSCAN", &agenda));
    while let Some(entries) = scan.next(tenant).await? {
        noted.extend(entries.iter().filter_map(|(entry, _)| match AgendaEntry::parse(entry)? {
            AgendaEntry::Post(post) if post.author == account => Some(post.id),
            _ => None,
        }));
    }
    noted.sort_unstable();
    noted.dedup();
    Ok(noted)
}

/// Finds the ones of these posts that are in memory, in their order.
pub(super) async fn those_in_memory(tenant: &Tenant, posts: Vec<PostId>) -> Result<Vec<PostId>> {
    let exists: Batch = posts.iter().map(|id| tenant.posts().exists_request(*id)).collect();
    let mut there = Vec::new();
    for (id, answer) in posts.into_iter().zip(tenant.run_all(exists).await?) {
        there.extend((answer.ok()?.int()? == 1).then_some(id));
    }
    Ok(there)
}
