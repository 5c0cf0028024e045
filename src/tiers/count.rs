//! Counting an account's posts that have left memory.

use crate::archive::{Owner, PAGE_MAX, PageAsk, PageContent, PageOrder};
use crate::error::{Error, Result};
use crate::ids::{AccountId, PostId};
use crate::post::PostRef;
use crate::stored::{AgendaEntry, ArchiveFloor};
use crate::tenant::{Answers, Scan, Tenant, archive_away};

/// How many posts the archive has of an account, up to where it has all.
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

/// How many posts memory has of an account alone below where the archive begins (H202): who was deleting them has had
/// the archive forget them, and has died. They are stored anew when somebody looks at them again.
pub(crate) async fn half_deleted_posts(
    tenant: &Tenant,
    account: AccountId,
    floor: ArchiveFloor,
) -> Result<u64> {
    let (agenda, mut noted) = (tenant.keys().agenda(tenant.bucket(account)), Vec::new());
    let mut scan = Scan::new("ZSCAN", &agenda);
    while let Some(entries) = scan.next(tenant).await? {
        noted.extend(entries.iter().filter_map(|(entry, _)| match AgendaEntry::parse(entry)? {
            AgendaEntry::Post(post) if post.author == account && post.id <= floor.upto => Some(post),
            _ => None,
        }));
    }
    noted.sort_unstable();
    noted.dedup();
    let exist = noted.iter().map(|post: &PostRef| tenant.posts().exists_request(post.id)).collect();
    let (mut exist, mut counted) = (Answers::of(tenant, exist).await?, 0);
    for post in noted {
        let is_in_memory = exist.next()?.int()? == 1;
        counted += u64::from(is_in_memory && !tenant.posts().has_row(post, Some(floor)).await?);
    }
    Ok(counted)
}
