//! Comparing an archive with its copy: which accounts, posts, versions and lists there are. What was lost with a server
//! that failed over shows here: lists of posts' members come with their post, or not at all.

use tideline_model::archive::{Archive, PAGE_MAX};
use tideline_model::bucket::Bucket;
use tideline_model::error::{Error, ErrorKind, Result};

use super::{BEGIN_ANEW, again, lists};

pub(super) async fn bucket(from: &dyn Archive, to: &dyn Archive, bucket: Bucket) -> Result<()> {
    owners(from, to, bucket).await?;
    posts(from, to, bucket).await?;
    listed(from, to, bucket).await
}

async fn owners(from: &dyn Archive, to: &dyn Archive, bucket: Bucket) -> Result<()> {
    let mut after = None;
    loop {
        let page = again(|| from.walk_owners(bucket, after, PAGE_MAX)).await?;
        let copied = again(|| to.walk_owners(bucket, after, PAGE_MAX)).await?;
        check_same("accounts", bucket, &page, &copied)?;
        let Some((last, _)) = page.last() else { return Ok(()) };
        after = Some(*last);
    }
}

async fn posts(from: &dyn Archive, to: &dyn Archive, bucket: Bucket) -> Result<()> {
    let mut after = None;
    loop {
        let page = again(|| from.walk_posts(bucket, after, PAGE_MAX)).await?;
        let copied = again(|| to.walk_posts(bucket, after, PAGE_MAX)).await?;
        check_same("posts", bucket, &page, &copied)?;
        let Some(last) = page.last() else { return Ok(()) };
        after = Some((last.owner, last.id));
    }
}

async fn listed(from: &dyn Archive, to: &dyn Archive, bucket: Bucket) -> Result<()> {
    let mut after: Option<Vec<u8>> = None;
    loop {
        let names = lists::walk(from, bucket, after.as_deref()).await?;
        let copied = lists::walk(to, bucket, after.as_deref()).await?;
        check_same("lists", bucket, &names, &copied)?;
        let Some(last) = names.last() else { return Ok(()) };
        after = Some(last.clone());
        let mut open = lists::asks(bucket, names)?;
        while !open.is_empty() {
            let asked = lists::next_asks(&open);
            let (pages, copied) = (lists::read(from, &asked).await?, lists::read(to, &asked).await?);
            check_same("posts on lists", bucket, &pages, &copied)?;
            open = lists::rest(&asked, &pages);
        }
    }
}

fn check_same<T: PartialEq>(what: &str, bucket: Bucket, page: &[T], copied: &[T]) -> Result<()> {
    if page == copied {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::Conflict,
        format!(
            "{what} of bucket {} differ in the copy: somebody has changed one of the two meanwhile, or a server has \
             lost something; {BEGIN_ANEW}",
            bucket.index()
        ),
    ))
}
