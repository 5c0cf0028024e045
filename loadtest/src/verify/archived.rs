//! Posts that have left memory for the archive: where that is, and what it has.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tideline::archive::{Archive, Owner, PageAsk, PageContent, PageOrder};
use tideline::{AccountId, Engine, PostId};
use tideline_archive::{PostgresArchive, PostgresSettings, SqliteArchive};

use super::call::Call;
use super::check::Wrong;
use super::perform::{Performer, account, id_of};
use super::run::{Ended, Run};
use super::setup::Setup;
use super::stored::outbox;
use super::told::Reply;

/// Posts asked for at once.
const PAGE: usize = 1_000;
/// Looks at what is due after a round: the archive may have to settle between two of them.
const LOOKS: usize = 2;
const SETTLED: Duration = Duration::from_millis(50);
/// Within which all leaves memory in the end that should: what an instance has begun and not ended is begun anew after
/// half a minute, and twice the time in which an archive settles.
const LEFT_WITHIN: Duration = Duration::from_secs(120);
const PAUSE: Duration = Duration::from_secs(1);
/// How often an instance looks what is due.
const MOVE_EVERY: Duration = Duration::from_millis(300);

/// Where old posts go. Goes to other processes with the rest of the setup.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum ArchiveAddress {
    /// A server; what a page waits for, and what one that takes over may lack, in milliseconds.
    Postgres { url: String, page_ms: u64, settles_ms: u64 },
    /// A file.
    Sqlite(PathBuf),
}

impl ArchiveAddress {
    pub(crate) async fn open(&self) -> tideline::Result<Arc<dyn Archive>> {
        Ok(match self {
            Self::Postgres { url, page_ms, settles_ms } => {
                let mut settings = PostgresSettings::new(url)?;
                settings.settles_within = Duration::from_millis(*settles_ms);
                settings.page_timeout = Duration::from_millis(*page_ms);
                Arc::new(PostgresArchive::connect(settings).await?)
            }
            Self::Sqlite(path) => Arc::new(SqliteArchive::open(path).await?),
        })
    }

    fn settles_within(&self) -> Duration {
        match self {
            Self::Postgres { settles_ms, .. } => Duration::from_millis(*settles_ms),
            Self::Sqlite(_) => Duration::ZERO,
        }
    }
}

/// Has all that is due leave memory, so that what is compared then lies on both sides; and counts it.
pub(super) async fn move_all(run: &Arc<Run>, setup: &Setup) -> anyhow::Result<()> {
    let Some(address) = &setup.archive else { return Ok(()) };
    for _ in 0..LOOKS {
        match run.call(0, Call::MoveDue).await {
            Ended::Done(Reply::Moved { left, warm }) => {
                run.count_event("posts that left memory", left);
                run.count_event("posts that stayed for a while", warm);
            }
            Ended::Stuck => return Ok(()),
            other => run.wrong(Wrong::Stuck, 0, None, format!("what is due doesn't leave memory: {other:?}")),
        }
        tokio::time::sleep(address.settles_within() + SETTLED).await;
    }
    Ok(())
}

/// Counts what the archive has.
pub(super) async fn count_all(run: &Arc<Run>) {
    if let Ended::Done(Reply::Ids(many)) = run.call(0, Call::Archived { account: None }).await {
        run.count_event("posts in the archive after a round", many.iter().sum());
    }
}

/// Waits until all posts have left memory that should, also those that somebody was at who is gone, or whom the archive
/// didn't answer.
pub(super) async fn await_all(run: &Arc<Run>, setup: &Setup) -> anyhow::Result<()> {
    let (store, since) = (setup.store().await?, Instant::now());
    // Posts leave several at once: an account is looked at when so many more have come than stay, or twice as many.
    let most = usize::try_from(setup.hot_posts)? * 3;
    loop {
        move_all(run, setup).await?;
        let (accounts, mut late) = (run.world().accounts.clone(), Vec::new());
        for account in accounts {
            if outbox(&store, account).await?.len() > most {
                late.push(account);
            }
        }
        if late.is_empty() || run.has_given_up() {
            return Ok(());
        }
        if since.elapsed() > LEFT_WITHIN {
            let text = format!("posts of {} accounts don't leave memory: {late:?}", late.len());
            run.wrong(Wrong::Stuck, late[0], None, text);
            return Ok(());
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// The posts of an account that the archive has.
pub(super) async fn posts_of(run: &Arc<Run>, setup: &Setup, account: u64) -> Vec<u64> {
    if setup.archive.is_none() {
        return Vec::new();
    }
    match run.call(0, Call::Archived { account: Some(account) }).await {
        Ended::Done(Reply::Ids(ids)) => ids,
        _ => Vec::new(),
    }
}

/// Has what is due leave memory at once, as long as the instance is there: by itself it would every ten seconds.
pub(super) async fn move_again_and_again(engine: Engine) {
    loop {
        // Servers fail, and so does the archive.
        let _ = engine.archive_due().await;
        tokio::time::sleep(MOVE_EVERY).await;
    }
}

impl Performer {
    /// What is asked about the archive when a history is checked.
    pub(super) async fn look_into_archive(&self, call: Call) -> tideline::Result<Reply> {
        match (call, &self.archive) {
            (Call::MoveDue, _) => {
                let moved = self.engine.archive_due().await?;
                Ok(Reply::Moved { left: moved.left, warm: moved.warm })
            }
            (Call::ReachArchive, Some(archive)) => {
                // Pages and changes have connections of their own, and may find out at different times.
                if let Some(name) = archive.name().await? {
                    let _ = archive.adopt(name).await?;
                }
                Ok(Reply::Done)
            }
            (Call::Archived { account: Some(of) }, Some(archive)) => {
                self.archived_of(&**archive, account(of)?).await.map(Reply::Ids)
            }
            (_, Some(archive)) => Ok(Reply::Ids(vec![self.archived(&**archive).await?])),
            (_, None) => Ok(Reply::Ids(Vec::new())),
        }
    }

    /// How many posts the archive has.
    async fn archived(&self, archive: &dyn Archive) -> tideline::Result<u64> {
        let mut all = 0;
        for bucket in self.engine.store().keys().buckets().all() {
            let mut after = None;
            loop {
                let page = archive.walk_posts(bucket, after, PAGE).await?;
                all += u64::try_from(page.len()).unwrap_or(u64::MAX);
                let Some(last) = page.last().filter(|_| page.len() == PAGE) else { break };
                after = Some((last.owner, last.id));
            }
        }
        Ok(all)
    }

    async fn archived_of(&self, archive: &dyn Archive, account: AccountId) -> tideline::Result<Vec<u64>> {
        let bucket = self.engine.store().keys().buckets().of_account(account.get());
        let (owner, mut all) = (Owner { bucket, account }, Vec::new());
        loop {
            let ask = PageAsk { owner, edge: id_of(all.last().copied().unwrap_or(0))?, most: PAGE };
            let page = archive.pages(&[ask], PageOrder::OldestFirst, PageContent::Ids).await?.pop();
            let ids = page.map(|page| page.ids).unwrap_or_default();
            let is_last = ids.len() < PAGE;
            all.extend(ids.into_iter().map(PostId::get));
            if is_last {
                return Ok(all);
            }
        }
    }
}
