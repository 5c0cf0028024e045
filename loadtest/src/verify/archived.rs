//! Posts that have left memory for the archive.

use std::sync::Arc;
use std::time::Duration;

use tideline::archive::{Owner, PageAsk, PageContent, PageOrder};
use tideline::{AccountId, PostId};

use super::run::Run;
use super::setup::Setup;

/// Posts asked for at once.
const PAGE: usize = 1_000;
/// Tries to move what is due, one after the other.
const TRIES: usize = 20;
const PAUSE: Duration = Duration::from_millis(500);

/// Has all that is due leave memory, so that what is compared then lies on both sides; and counts it.
pub(super) async fn move_all(run: &Arc<Run>, setup: &Setup) -> anyhow::Result<()> {
    let engine = setup.observer().await?;
    for _ in 0..TRIES {
        match engine.archive_due().await {
            Ok(moved) => {
                run.count_event("posts that left memory", moved.left);
                run.count_event("posts that stayed for a while", moved.warm);
                break;
            }
            Err(e) => tracing::debug!("posts don't leave memory: {e}"),
        }
        tokio::time::sleep(PAUSE).await;
    }
    run.count_event("posts in the archive after a round", all(setup).await?);
    Ok(())
}

/// How many posts the archive has.
async fn all(setup: &Setup) -> anyhow::Result<u64> {
    let (Some(archive), mut all) = (setup.archive().await?, 0) else { return Ok(0) };
    for bucket in setup.store().await?.keys().buckets().all() {
        let mut after = None;
        loop {
            let page = archive.walk_posts(bucket, after, PAGE).await?;
            all += u64::try_from(page.len())?;
            let Some(last) = page.last().filter(|_| page.len() == PAGE) else { break };
            after = Some((last.owner, last.id));
        }
    }
    Ok(all)
}

/// The posts of an account that the archive has.
pub(super) async fn posts_of(setup: &Setup, account: u64) -> anyhow::Result<Vec<u64>> {
    let (Some(archive), account) = (setup.archive().await?, AccountId::new(account)?) else {
        return Ok(Vec::new());
    };
    let bucket = setup.store().await?.keys().buckets().of_account(account.get());
    let (owner, mut all) = (Owner { bucket, account }, Vec::new());
    loop {
        let edge = PostId::from_u64(all.last().copied().unwrap_or(0))?;
        let ask = PageAsk { owner, edge, most: PAGE };
        let page = archive.pages(&[ask], PageOrder::OldestFirst, PageContent::Ids).await?.pop();
        let ids = page.map(|page| page.ids).unwrap_or_default();
        let is_last = ids.len() < PAGE;
        all.extend(ids.into_iter().map(PostId::get));
        if is_last {
            return Ok(all);
        }
    }
}
