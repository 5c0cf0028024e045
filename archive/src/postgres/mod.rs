//! An archive in PostgreSQL, for any number of instances.
//!
//! Two pools: pages wait a moment for a connection and then fail, changes have theirs to themselves. Each call has a
//! deadline; a connection that missed one is given up, with whatever it was doing. After some failures in a row calls
//! fail at once (`breaker`), so that a database that is away costs nobody its deadline. Searches take a quarter of what
//! is there for pages, and fail for themselves.

mod breaker;
mod connect;
mod failure;
mod hosts;
mod lease;
mod lists;
mod read;
mod search;
mod settings;
mod write;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tideline_model::archive::{
    Archive, ArchiveName, ArchiveSize, ChangeOutcome, IndexChange, IndexKey, IndexVersion, ListKind,
    MembersAnswer, MembersAsk, Owner, OwnerChange, OwnerPage, OwnerState, PageAsk, PageContent, PageOrder,
    PostAnswer, PostAsk, PostListAsk, PostListChange, PostListPage, SearchAsk, SearchPage, WalkedPost,
};
use tideline_model::bucket::Bucket;
use tideline_model::error::{CallFuture, Result};
use tideline_model::ids::{AccountId, PostId};

use self::lease::Connections;
pub use self::settings::PostgresSettings;
use crate::asked::{
    check_asks, check_changes, check_index_changes, check_indexed, check_list_changes, check_most,
    check_search,
};
use crate::shares::ReaderShare;

/// An archive in PostgreSQL.
#[derive(Clone)]
pub struct PostgresArchive {
    /// For pages, and all else that somebody waits for.
    readers: Arc<Connections>,
    /// For changes.
    writers: Arc<Connections>,
    /// The same as the readers; what comes of searches is remembered apart (H237).
    searchers: Arc<Connections>,
    lookups: ReaderShare,
    searches: ReaderShare,
    settings: Arc<PostgresSettings>,
}

impl PostgresArchive {
    /// Connects, looks whether the server keeps what it commits, and makes the tables that are missing.
    ///
    /// # Errors
    /// `Misconfigured` if the settings or the server's are wrong; the message says which. `Unavailable` if it is away.
    pub async fn connect(settings: PostgresSettings) -> Result<Self> {
        let connector = settings.connector()?;
        connect::prepare(&connector, &settings).await?;
        let readers = Connections::of_readers(&connector, &settings)?;
        let writers = Connections::of_writers(&connector, &settings)?;
        Ok(Self {
            searchers: Arc::new(readers.beside()),
            readers: Arc::new(readers),
            writers: Arc::new(writers),
            lookups: ReaderShare::of_lookups(settings.readers, lease::READER_WAIT),
            searches: ReaderShare::of_searches(settings.readers, lease::READER_WAIT),
            settings: Arc::new(settings),
        })
    }
}

impl fmt::Debug for PostgresArchive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresArchive").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl Archive for PostgresArchive {
    fn name(&self) -> CallFuture<'_, Option<ArchiveName>> {
        Box::pin(read::name(&self.readers))
    }

    fn adopt(&self, name: ArchiveName) -> CallFuture<'_, ArchiveName> {
        Box::pin(write::adopt(&self.writers, name))
    }

    fn change<'a>(&'a self, changes: &'a [OwnerChange]) -> CallFuture<'a, Vec<ChangeOutcome>> {
        Box::pin(async move {
            check_changes(changes)?;
            write::change(&self.writers, changes).await
        })
    }

    fn owners<'a>(&'a self, owners: &'a [Owner]) -> CallFuture<'a, Vec<Option<OwnerState>>> {
        Box::pin(async move {
            check_asks(owners.len(), std::iter::empty())?;
            read::owners(&self.readers, owners).await
        })
    }

    fn settles_within(&self) -> Duration {
        self.settings.settles_within
    }

    fn pages<'a>(
        &'a self,
        asks: &'a [PageAsk],
        order: PageOrder,
        content: PageContent,
    ) -> CallFuture<'a, Vec<OwnerPage>> {
        Box::pin(async move {
            check_asks(asks.len(), asks.iter().map(|ask| ask.most))?;
            match content {
                PageContent::Ids => read::pages_of_ids(&self.readers, asks, order).await,
                PageContent::Posts => read::pages_of_posts(&self.readers, asks, order).await,
            }
        })
    }

    fn posts<'a>(&'a self, asks: &'a [PostAsk]) -> CallFuture<'a, Vec<PostAnswer>> {
        Box::pin(async move {
            check_asks(asks.len(), std::iter::empty())?;
            let _place = match asks.iter().all(|ask| ask.owner.is_some()) {
                true => None,
                false => Some(self.lookups.place().await?),
            };
            read::posts(&self.readers, asks).await
        })
    }

    fn members<'a>(&'a self, asks: &'a [MembersAsk]) -> CallFuture<'a, Vec<MembersAnswer>> {
        Box::pin(async move {
            check_asks(asks.len(), asks.iter().map(|ask| ask.most))?;
            read::members(&self.readers, asks).await
        })
    }

    fn list_kinds<'a>(&'a self, posts: &'a [PostAsk]) -> CallFuture<'a, Vec<Vec<ListKind>>> {
        Box::pin(async move {
            check_asks(posts.len(), std::iter::empty())?;
            read::kinds(&self.readers, posts).await
        })
    }

    fn change_lists<'a>(&'a self, changes: &'a [PostListChange]) -> CallFuture<'a, ()> {
        Box::pin(async move {
            check_list_changes(changes)?;
            lists::change(&self.writers, changes).await
        })
    }

    fn list_pages<'a>(
        &'a self,
        asks: &'a [PostListAsk],
        order: PageOrder,
    ) -> CallFuture<'a, Vec<PostListPage>> {
        Box::pin(async move {
            check_asks(asks.len(), asks.iter().map(|ask| ask.most))?;
            lists::pages(&self.readers, asks, order).await
        })
    }

    fn index_versions<'a>(&'a self, posts: &'a [IndexKey]) -> CallFuture<'a, Vec<Option<IndexVersion>>> {
        Box::pin(async move {
            check_indexed(posts.len())?;
            search::versions(&self.readers, posts).await
        })
    }

    fn index<'a>(&'a self, changes: &'a [IndexChange]) -> CallFuture<'a, Vec<bool>> {
        Box::pin(async move {
            check_index_changes(changes)?;
            search::change(&self.writers, changes).await
        })
    }

    fn search<'a>(&'a self, ask: &'a SearchAsk) -> CallFuture<'a, SearchPage> {
        Box::pin(async move {
            check_search(ask)?;
            let _place = self.searches.place().await?;
            search::find(&self.searchers, ask, self.settings.search_budget()).await
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
            search::walk(&self.readers, bucket, after, most).await
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
            read::walk_owners(&self.readers, bucket, after, most).await
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
            read::walk_posts(&self.readers, bucket, after, most).await
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
            lists::walk(&self.readers, bucket, after.unwrap_or_default(), most).await
        })
    }

    fn size(&self) -> CallFuture<'_, ArchiveSize> {
        Box::pin(read::size(&self.readers))
    }
}
