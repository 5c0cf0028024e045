//! Archives to test with, and short ways to say what is put in.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use tideline_archive::{Archive, PostgresArchive, PostgresSettings, SqliteArchive};
use tideline_local_cluster::LocalPostgres;
use tideline_model::archive::{
    ArchiveToken, ArchivedPost, Owner, OwnerChange, PageAsk, Prerequisite, WalkedPost,
};
use tideline_model::bucket::{Bucket, Buckets};
use tideline_model::ids::{AccountId, PostId};
use tokio::sync::OnceCell;

/// One for all tests that don't break it; the process that watches over it ends it with this one.
static POSTGRES: OnceCell<LocalPostgres> = OnceCell::const_new();
static SCHEMAS: AtomicU32 = AtomicU32::new(0);

/// A backend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Sqlite,
    Postgres,
}

/// An empty archive of a test.
pub(crate) struct Place {
    pub(crate) archive: Box<dyn Archive>,
    _folder: Option<tempfile::TempDir>,
}

pub(crate) async fn server() -> &'static LocalPostgres {
    POSTGRES.get_or_init(async || LocalPostgres::up().await.expect("PostgreSQL")).await
}

/// Settings with a schema that nobody else has.
pub(crate) fn settings(url: &str) -> PostgresSettings {
    let mut settings = PostgresSettings::new(url).expect("an address");
    // Machines are slow: what is about time says so itself.
    settings.page_timeout = Duration::from_secs(20);
    // And nothing takes over from this one.
    settings.settles_within = Duration::ZERO;
    settings.schema = format!("test-{}", SCHEMAS.fetch_add(1, Ordering::Relaxed));
    settings
}

/// Each backend, empty.
pub(crate) async fn each() -> Vec<(Kind, Place)> {
    // As with pages: what is found at once is found at once.
    each_searching_for(Duration::from_secs(10)).await
}

/// The same, with so long for a search.
pub(crate) async fn each_searching_for(search_timeout: Duration) -> Vec<(Kind, Place)> {
    let folder = tempfile::tempdir().expect("a folder");
    let sqlite = SqliteArchive::open(folder.path().join("posts.db")).await.expect("SQLite");
    let sqlite = sqlite.search_timeout(search_timeout);
    let mut settings = settings(&server().await.url());
    settings.search_timeout = search_timeout;
    let postgres = PostgresArchive::connect(settings).await.expect("PostgreSQL");
    vec![
        (Kind::Sqlite, Place { archive: Box::new(sqlite), _folder: Some(folder) }),
        (Kind::Postgres, Place { archive: Box::new(postgres), _folder: None }),
    ]
}

pub(crate) fn account(number: u64) -> AccountId {
    AccountId::new(number).expect("an account")
}

pub(crate) fn id(number: u64) -> PostId {
    PostId::from_u64(number).expect("a post")
}

pub(crate) fn bucket_of(account: u64) -> Bucket {
    Buckets::new(16).expect("16").of_account(account)
}

pub(crate) fn owner(number: u64) -> Owner {
    Owner { bucket: bucket_of(number), account: account(number) }
}

pub(crate) fn token(number: u64) -> ArchiveToken {
    ArchiveToken { number, nonce: number.to_be_bytes() }
}

/// A post whose bytes say which it is.
pub(crate) fn post(of: u64, number: u64) -> ArchivedPost {
    ArchivedPost::new(id(number), account(of), number, format!("post {number}").into_bytes())
}

/// A change that brings in posts of one owner.
pub(crate) fn change(of: u64, number: u64, posts: &[u64]) -> OwnerChange {
    OwnerChange {
        owner: owner(of),
        token: token(number),
        needs: Prerequisite::default(),
        upto: id(posts.iter().copied().max().unwrap_or(0)),
        posts: posts.iter().map(|number| (post(of, *number), Vec::new())).collect(),
        erased: Vec::new(),
        buries: false,
    }
}

pub(crate) fn ask(of: u64, edge: u64, most: usize) -> PageAsk {
    PageAsk { owner: owner(of), edge: id(edge), most }
}

/// All posts of an archive, bucket by bucket, three at a time.
pub(crate) async fn walk(archive: &dyn Archive) -> Vec<WalkedPost> {
    let mut all = Vec::new();
    for bucket in Buckets::new(16).expect("16").all() {
        let mut after = None;
        loop {
            let page = archive.walk_posts(bucket, after, 3).await.expect("a page of the walk");
            let Some(last) = page.last() else { break };
            after = Some((last.owner, last.id));
            all.extend(page);
        }
    }
    all
}

/// A file in a folder that goes with it.
pub(crate) fn file() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("posts.db");
    (folder, path)
}

/// Waits until `is_so`: the bound is there so that "never" fails.
pub(crate) async fn eventually(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let since = Instant::now();
    while !is_so().await {
        assert!(since.elapsed() < Duration::from_secs(120), "never happened: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
