//! An archive in a file.
//!
//! One process has it, which a lock on a file beside it keeps so. One connection writes, a few read; SQLite's calls
//! block, so they run where blocking is allowed. What was written is on disk when a call returns (WAL, `synchronous =
//! FULL`).

mod failure;
mod lists;
mod read;
mod write;

use std::fmt;
use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::{Connection, TransactionBehavior};
use tideline_model::archive::{
    Archive, ArchiveName, ArchiveSize, ChangeOutcome, ListMember, MembersAsk, Owner, OwnerChange, OwnerPage,
    OwnerState, PageAsk, PageContent, PageOrder, PostAnswer, PostAsk, PostListAsk, PostListChange,
    PostListPage, WalkedPost,
};
use tideline_model::bucket::Bucket;
use tideline_model::error::{CallFuture, Error, Result};
use tideline_model::ids::{AccountId, PostId};
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

use self::failure::{Call, failed, fails};
use crate::asked::{check_asks, check_changes, check_list_changes, check_most};
use crate::migrations;

/// Reads that run at the same time; others wait.
const READERS: usize = 4;
/// How many statements a connection keeps prepared: more than there are.
const STATEMENTS: usize = 32;

/// An archive in a file, for one process.
#[derive(Clone)]
pub struct SqliteArchive {
    shared: Arc<Shared>,
}

struct Shared {
    path: PathBuf,
    writer: Mutex<Connection>,
    /// Connections that nobody reads with now.
    readers: Mutex<Vec<Connection>>,
    reading: Semaphore,
    /// Held as long as this is: the system frees it however the process ends.
    _lock: File,
}

impl SqliteArchive {
    /// Opens the archive in the file `path`, or makes it.
    ///
    /// # Errors
    /// `Misconfigured` if another process has it, if the file is none of ours, or if a newer release wrote it.
    pub async fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = std::path::absolute(path.as_ref())
            .map_err(|e| Error::misconfigured(format!("archive {}: {e}", path.as_ref().display())))?;
        let opened = spawn_blocking(move || Shared::open(path)).await.map_err(ended)?;
        Ok(Self { shared: Arc::new(opened?) })
    }

    /// Runs `work` with a connection that sees one moment.
    async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let shared = Arc::clone(&self.shared);
        // Waits here, not where threads are few. Nobody closes it.
        let _turn = self.shared.reading.acquire().await.map_err(|e| Error::internal(e.to_string()))?;
        spawn_blocking(move || shared.read(work)).await.map_err(ended)?
    }

    /// Runs `work` in a transaction that nobody else writes beside.
    async fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let shared = Arc::clone(&self.shared);
        spawn_blocking(move || shared.write(work)).await.map_err(ended)?
    }
}

impl Shared {
    fn open(path: PathBuf) -> Result<Self> {
        let lock = lock(&path)?;
        let mut writer = connect(&path)?;
        begin_tables(&mut writer).map_err(|e| e.context(format!("archive {}", path.display())))?;
        Ok(Self {
            path,
            writer: Mutex::new(writer),
            readers: Mutex::default(),
            reading: Semaphore::new(READERS),
            _lock: lock,
        })
    }

    fn read<T>(&self, work: impl FnOnce(&Connection) -> Result<T>) -> Result<T> {
        let kept = self.readers.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut connection = kept.map_or_else(|| connect(&self.path), Ok)?;
        let transaction = connection.transaction().map_err(fails)?;
        let answer = work(&transaction)?;
        drop(transaction);
        self.readers.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
        Ok(answer)
    }

    fn write<T>(&self, work: impl FnOnce(&Connection) -> Result<T>) -> Result<T> {
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let transaction = writer.transaction_with_behavior(TransactionBehavior::Immediate);
        let transaction = transaction.map_err(fails)?;
        let answer = work(&transaction)?;
        transaction.commit().map_err(|e| failed(Call::Commit, e))?;
        Ok(answer)
    }
}

/// A second process would write what the first one doesn't see coming: both would decide by what they remember.
fn lock(path: &Path) -> Result<File> {
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    let file = OpenOptions::new().create(true).append(true).open(&name);
    let file = file.map_err(|e| Error::misconfigured(format!("archive {}: {e}", path.display())))?;
    file.try_lock().map_err(|_| {
        Error::misconfigured(format!(
            "archive {}: another process has it; several instances need PostgreSQL",
            path.display()
        ))
    })?;
    Ok(file)
}

fn connect(path: &Path) -> Result<Connection> {
    let open = || {
        let connection = Connection::open(path)?;
        connection.set_prepared_statement_cache_capacity(STATEMENTS);
        // FULL: each transaction is on disk before it is answered. Readers never wait for the writer (WAL).
        connection.pragma_update(None, "journal_mode", "wal")?;
        connection.pragma_update(None, "synchronous", "full")?;
        Ok(connection)
    };
    open().map_err(|e| fails(e).context(format!("archive {}", path.display())))
}

/// Makes the tables that are missing.
fn begin_tables(connection: &mut Connection) -> Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(fails)?;
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
    let done = format!("UPDATE store SET version = {}", migrations::SQLITE.len());
    transaction.execute_batch(&done).map_err(fails)?;
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

    fn members<'a>(&'a self, ask: &'a MembersAsk) -> CallFuture<'a, Vec<ListMember>> {
        Box::pin(async move {
            check_most(ask.most)?;
            let ask = ask.clone();
            self.read(move |connection| read::members(connection, &ask)).await
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

    fn list_pages<'a>(&'a self, asks: &'a [PostListAsk]) -> CallFuture<'a, Vec<PostListPage>> {
        Box::pin(async move {
            check_asks(asks.len(), asks.iter().map(|ask| ask.most))?;
            let asks = asks.to_vec();
            self.read(move |connection| asks.iter().map(|ask| lists::page(connection, ask)).collect()).await
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

    fn size(&self) -> CallFuture<'_, ArchiveSize> {
        Box::pin(self.read(read::size))
    }
}
