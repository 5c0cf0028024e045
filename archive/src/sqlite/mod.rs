//! An archive in a file.
//!
//! One process has it, which a lock on a file beside it keeps so. One connection writes, a few read; SQLite's calls
//! block, so they run where blocking is allowed. What was written is on disk when a call returns (WAL, `synchronous =
//! FULL`).

mod failure;
mod file;
mod lists;
mod read;
mod search;
mod write;

use std::fmt;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rusqlite::{Connection, TransactionBehavior};
use tideline_model::archive::{
    Archive, ArchiveName, ArchiveSize, ChangeOutcome, IndexChange, IndexKey, IndexVersion, ListKind,
    MembersAnswer, MembersAsk, Owner, OwnerChange, OwnerPage, OwnerState, PageAsk, PageContent, PageOrder,
    PostAnswer, PostAsk, PostListAsk, PostListChange, PostListPage, SearchAsk, SearchPage, WalkedPost,
};
use tideline_model::bucket::Bucket;
use tideline_model::error::{CallFuture, Error, Result};
use tideline_model::ids::{AccountId, PostId};
use tokio::sync::{Mutex as AsyncMutex, Semaphore};
use tokio::task::spawn_blocking;

use self::failure::{Call, failed, fails};
use self::file::{APPLICATION_ID, AbsentFile, check_owner, connect, lock, only_ours, place_of};
use crate::asked::{
    check_asks, check_changes, check_index_changes, check_indexed, check_list_changes, check_most,
    check_search,
};
use crate::migrations;
use crate::shares::ReaderShare;
use crate::windows::SEARCH_TIMEOUT;

/// Reads that run at the same time; others wait.
const READERS: usize = 4;
/// The most time that a search waits for its turn.
const SEARCH_WAIT: Duration = Duration::from_secs(1);

/// An archive in a file, for one process.
#[derive(Clone)]
pub struct SqliteArchive {
    shared: Arc<SharedDatabase>,
    searches: ReaderShare,
    search_timeout: Duration,
}

struct SharedDatabase {
    path: PathBuf,
    writer: Arc<AsyncMutex<Connection>>,
    /// Connections that nobody reads with now.
    readers: Mutex<Vec<Connection>>,
    reading: Arc<Semaphore>,
    /// Held as long as this is: the system frees it however the process ends.
    _lock: File,
}

impl SqliteArchive {
    /// Opens the archive in the file `path`, or makes it.
    ///
    /// # Errors
    /// `Misconfigured` if another process has it, if the file is none of ours, or if a newer release wrote it.
    pub async fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::open_or(path.as_ref(), AbsentFile::Makes).await
    }

    /// Opens the archive in the file `path`, which is there: whoever only reads makes none by a slip of the pen.
    ///
    /// # Errors
    /// As [`open`](Self::open), and `Misconfigured` if there is no such file.
    pub async fn open_existing(path: impl AsRef<Path>) -> Result<Self> {
        Self::open_or(path.as_ref(), AbsentFile::Refuses).await
    }

    async fn open_or(path: &Path, absent: AbsentFile) -> Result<Self> {
        let path = path.to_owned();
        let opened =
            spawn_blocking(move || SharedDatabase::open(place_of(&path, absent)?)).await.map_err(ended)?;
        Ok(Self {
            shared: Arc::new(opened?),
            searches: ReaderShare::of_searches(READERS, SEARCH_WAIT),
            search_timeout: SEARCH_TIMEOUT,
        })
    }

    /// Has a search go on looking for so long beyond the newest few hundred posts of where it begins, instead of a
    /// quarter of a second. Longer: fewer pages that end early with little on them. Shorter: less CPU for each.
    #[must_use]
    pub fn search_timeout(self, search_timeout: Duration) -> Self {
        Self { search_timeout, ..self }
    }

    /// Runs `work` with a connection that sees one moment.
    async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.lend(move |connection| {
            let transaction = connection.transaction().map_err(fails)?;
            work(&transaction)
        })
        .await
    }

    /// Runs `work` with a connection that only reads.
    async fn lend<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Connection) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let shared = Arc::clone(&self.shared);
        // Waits here, not where threads are few; and has its turn until the work ends, also if its caller has gone.
        // Nobody closes it.
        let turn = Arc::clone(&shared.reading).acquire_owned().await;
        let turn = turn.map_err(|e| Error::internal(e.to_string()))?;
        spawn_blocking(move || {
            let _turn = turn;
            shared.lend(work)
        })
        .await
        .map_err(ended)?
    }

    /// Runs `work` in a transaction that nobody else writes beside.
    async fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        // As a read waits for its turn.
        let mut writer = Arc::clone(&self.shared.writer).lock_owned().await;
        spawn_blocking(move || write(&mut writer, work)).await.map_err(ended)?
    }
}

impl SharedDatabase {
    fn open(path: PathBuf) -> Result<Self> {
        only_ours(&path).map_err(|e| e.context(format!("archive {}", path.display())))?;
        let lock = lock(&path)?;
        let mut writer = connect(&path)?;
        begin_tables(&mut writer).map_err(|e| e.context(format!("archive {}", path.display())))?;
        Ok(Self {
            path,
            writer: Arc::new(AsyncMutex::new(writer)),
            readers: Mutex::default(),
            reading: Arc::new(Semaphore::new(READERS)),
            _lock: lock,
        })
    }

    fn lend<T>(&self, work: impl FnOnce(&mut Connection) -> Result<T>) -> Result<T> {
        let kept = self.readers.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut connection = kept.map_or_else(|| connect(&self.path), Ok)?;
        let answer = work(&mut connection)?;
        self.readers.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
        Ok(answer)
    }
}

fn write<T>(writer: &mut Connection, work: impl FnOnce(&Connection) -> Result<T>) -> Result<T> {
    let transaction = writer.transaction_with_behavior(TransactionBehavior::Immediate);
    let transaction = transaction.map_err(fails)?;
    let answer = work(&transaction)?;
    transaction.commit().map_err(|e| failed(Call::Commit, e))?;
    Ok(answer)
}

/// Makes the tables that are missing.
fn begin_tables(connection: &mut Connection) -> Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(fails)?;
    if !check_owner(&transaction)? {
        transaction.pragma_update(None, "application_id", APPLICATION_ID).map_err(fails)?;
    }
    let tables = "CREATE TABLE IF NOT EXISTS store (version INTEGER NOT NULL, name BLOB)";
    transaction.execute_batch(tables).map_err(fails)?;
    let version = transaction.query_row("SELECT coalesce(max(version), -1) FROM store", (), |row| row.get(0));
    let version: i64 = version.map_err(fails)?;
    if version < 0 {
        transaction.execute("INSERT INTO store VALUES (0, NULL)", ()).map_err(fails)?;
    }
    for step in migrations::missing(&migrations::SQLITE, version.max(0))? {
        transaction.execute_batch(step).map_err(fails)?;
    }
    let latest = migrations::SQLITE.len();
    // Who only comes back writes nothing: a disk that is full keeps no instance from starting.
    if i64::try_from(latest).ok() != Some(version) {
        transaction.execute_batch(&format!("UPDATE store SET version = {latest}")).map_err(fails)?;
    }
    transaction.commit().map_err(fails)
}

fn ended(error: tokio::task::JoinError) -> Error {
    Error::internal(format!("the archive's work ended: {error}"))
}

impl fmt::Debug for SqliteArchive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteArchive").field("path", &self.shared.path).finish_non_exhaustive()
    }
}

impl Archive for SqliteArchive {
    fn name(&self) -> CallFuture<'_, Option<ArchiveName>> {
        Box::pin(self.read(read::name))
    }

    fn adopt(&self, name: ArchiveName) -> CallFuture<'_, ArchiveName> {
        Box::pin(self.write(move |connection| write::adopt(connection, name)))
    }

    fn change<'a>(&'a self, changes: &'a [OwnerChange]) -> CallFuture<'a, Vec<ChangeOutcome>> {
        Box::pin(async move {
            check_changes(changes)?;
            let changes = changes.to_vec();
            self.write(move |connection| {
                changes.iter().map(|change| write::change(connection, change)).collect()
            })
            .await
        })
    }

    fn owners<'a>(&'a self, owners: &'a [Owner]) -> CallFuture<'a, Vec<Option<OwnerState>>> {
        Box::pin(async move {
            check_asks(owners.len(), std::iter::empty())?;
            let owners = owners.to_vec();
            self.read(move |connection| {
                owners.iter().map(|owner| read::state(connection, owner.account)).collect()
            })
            .await
        })
    }

    fn pages<'a>(
        &'a self,
        asks: &'a [PageAsk],
        order: PageOrder,
        content: PageContent,
    ) -> CallFuture<'a, Vec<OwnerPage>> {
        Box::pin(async move {
            check_asks(asks.len(), asks.iter().map(|ask| ask.most))?;
            let asks = asks.to_vec();
            self.read(move |connection| {
                asks.iter().map(|ask| read::page(connection, ask, order, content)).collect()
            })
            .await
        })
    }

    fn posts<'a>(&'a self, asks: &'a [PostAsk]) -> CallFuture<'a, Vec<PostAnswer>> {
        Box::pin(async move {
            check_asks(asks.len(), std::iter::empty())?;
            let asks = asks.to_vec();
            self.read(move |connection| asks.iter().map(|ask| read::post(connection, ask)).collect()).await
        })
    }

    fn members<'a>(&'a self, asks: &'a [MembersAsk]) -> CallFuture<'a, Vec<MembersAnswer>> {
        Box::pin(async move {
            check_asks(asks.len(), asks.iter().map(|ask| ask.most))?;
            let asks = asks.to_vec();
            self.read(move |connection| asks.iter().map(|ask| read::members(connection, ask)).collect()).await
        })
    }

    fn list_kinds<'a>(&'a self, posts: &'a [PostAsk]) -> CallFuture<'a, Vec<Vec<ListKind>>> {
        Box::pin(async move {
            check_asks(posts.len(), std::iter::empty())?;
            let posts = posts.to_vec();
            self.read(move |connection| posts.iter().map(|post| read::kinds(connection, post)).collect())
                .await
        })
    }

    fn change_lists<'a>(&'a self, changes: &'a [PostListChange]) -> CallFuture<'a, ()> {
        Box::pin(async move {
            check_list_changes(changes)?;
            let changes = changes.to_vec();
            self.write(move |connection| {
                changes.iter().try_for_each(|change| lists::change(connection, change))
            })
            .await
        })
    }

    fn list_pages<'a>(
        &'a self,
        asks: &'a [PostListAsk],
        order: PageOrder,
    ) -> CallFuture<'a, Vec<PostListPage>> {
        Box::pin(async move {
            check_asks(asks.len(), asks.iter().map(|ask| ask.most))?;
            let asks = asks.to_vec();
            self.read(move |connection| asks.iter().map(|ask| lists::page(connection, ask, order)).collect())
                .await
        })
    }

    fn index_versions<'a>(&'a self, posts: &'a [IndexKey]) -> CallFuture<'a, Vec<Option<IndexVersion>>> {
        Box::pin(async move {
            check_indexed(posts.len())?;
            let posts = posts.to_vec();
            self.read(move |connection| posts.iter().map(|key| search::version(connection, *key)).collect())
                .await
        })
    }

    fn index<'a>(&'a self, changes: &'a [IndexChange]) -> CallFuture<'a, Vec<bool>> {
        Box::pin(async move {
            check_index_changes(changes)?;
            let changes = changes.to_vec();
            self.write(move |connection| {
                changes.iter().map(|change| search::change(connection, change)).collect()
            })
            .await
        })
    }

    fn search<'a>(&'a self, ask: &'a SearchAsk) -> CallFuture<'a, SearchPage> {
        Box::pin(async move {
            check_search(ask)?;
            let (ask, budget) = (ask.clone(), self.search_timeout);
            let place = self.searches.place().await?;
            self.lend(move |connection| {
                let _place = place;
                search::find(connection, &ask, budget)
            })
            .await
        })
    }

    fn walk_index(
        &self,
        bucket: Bucket,
        after: Option<PostId>,
        most: usize,
    ) -> CallFuture<'_, Vec<(PostId, AccountId)>> {
        Box::pin(async move {
            check_most(most)?;
            self.read(move |connection| search::walk(connection, bucket, after, most)).await
        })
    }

    fn walk_owners(
        &self,
        bucket: Bucket,
        after: Option<AccountId>,
        most: usize,
    ) -> CallFuture<'_, Vec<(AccountId, OwnerState)>> {
        Box::pin(async move {
            check_most(most)?;
            self.read(move |connection| read::walk_owners(connection, bucket, after, most)).await
        })
    }

    fn walk_posts(
        &self,
        bucket: Bucket,
        after: Option<(AccountId, PostId)>,
        most: usize,
    ) -> CallFuture<'_, Vec<WalkedPost>> {
        Box::pin(async move {
            check_most(most)?;
            self.read(move |connection| read::walk_posts(connection, bucket, after, most)).await
        })
    }

    fn walk_lists<'a>(
        &'a self,
        bucket: Bucket,
        after: Option<&'a [u8]>,
        most: usize,
    ) -> CallFuture<'a, Vec<Vec<u8>>> {
        Box::pin(async move {
            check_most(most)?;
            let after = after.unwrap_or_default().to_vec();
            self.read(move |connection| lists::walk(connection, bucket, &after, most)).await
        })
    }

    fn size(&self) -> CallFuture<'_, ArchiveSize> {
        Box::pin(self.read(read::size))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No test can cut the power: what keeps a commit then is a setting of each connection.
    #[test]
    fn each_connection_has_its_commits_on_disk_before_it_answers() {
        let folder = tempfile::tempdir().unwrap();
        let connection = connect(&folder.path().join("posts.db")).unwrap();
        let pragma =
            |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0)).unwrap();
        assert_eq!(pragma("synchronous"), 2, "FULL");
        let mode: String = connection.pragma_query_value(None, "journal_mode", |row| row.get(0)).unwrap();
        assert_eq!(mode, "wal");
    }
}
