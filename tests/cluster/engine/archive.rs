//! Posts that have left memory for the archive: they show, change and go as others do.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tempfile::TempDir;
use tideline::archive::{Archive, ArchiveToken, Owner, OwnerChange, Prerequisite};
use tideline::post::{Draft, Edit, PostRef};
use tideline::{
    AccountId, Engine, EngineBuilder, EngineSettings, ErrorKind, ListQuery, Moderation, PostId, Query,
    StoreOptions,
};
use tideline_archive::{PostgresArchive, PostgresSettings, SqliteArchive};
use tideline_local_cluster::LocalPostgres;
use tokio::sync::OnceCell;

use super::{PATIENCE, accounts, all_keys, drained, eventually, letter_and_name, small, tenant, walk_home};

/// Posts of each account that stay in memory.
const HOT: u32 = 12;

/// One for all tests here; the process that watches over it ends it with this one.
static POSTGRES: OnceCell<LocalPostgres> = OnceCell::const_new();
static SCHEMAS: AtomicU32 = AtomicU32::new(0);

/// An archive in PostgreSQL that nobody else has. Machines are slow, and nothing takes over from this one, however long
/// that is waited for.
pub(crate) async fn postgres(settles_within: Duration) -> Arc<dyn Archive> {
    let server = POSTGRES.get_or_init(async || LocalPostgres::up().await.unwrap()).await;
    let mut settings = PostgresSettings::new(&server.url()).unwrap();
    settings.schema = format!("engine-{}", SCHEMAS.fetch_add(1, Ordering::Relaxed));
    settings.page_timeout = PATIENCE;
    settings.settles_within = settles_within;
    Arc::new(PostgresArchive::connect(settings).await.unwrap())
}

/// A tenant with an archive.
pub(crate) struct Archived {
    pub(crate) engine: Engine,
    pub(crate) options: StoreOptions,
    pub(crate) archive: Arc<dyn Archive>,
    pub(crate) folder: TempDir,
}

impl Archived {
    /// One with each backend.
    pub(crate) async fn each() -> [Self; 2] {
        Self::each_with(small).await
    }

    /// The same with settings.
    pub(crate) async fn each_with(settings: impl Fn() -> EngineSettings) -> [Self; 2] {
        [Self::new(settings()).await, Self::that_settles(settings(), Duration::ZERO).await]
    }

    /// One with PostgreSQL, in which so much time passes until something leaves memory.
    pub(crate) async fn that_settles(settings: EngineSettings, within: Duration) -> Self {
        Self::over(settings, tempfile::tempdir().unwrap(), postgres(within).await).await
    }

    /// One with a file.
    pub(crate) async fn new(settings: EngineSettings) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let archive = SqliteArchive::open(folder.path().join("posts")).await.unwrap();
        Self::over(settings, folder, Arc::new(archive)).await
    }

    pub(crate) async fn over(settings: EngineSettings, folder: TempDir, archive: Arc<dyn Archive>) -> Self {
        Self::at(tenant(1_000), settings, folder, archive).await
    }

    pub(crate) async fn at(
        options: StoreOptions,
        settings: EngineSettings,
        folder: TempDir,
        archive: Arc<dyn Archive>,
    ) -> Self {
        // Begun by who serves it first, which decides what is the tenant's.
        let first =
            Engine::builder().store(options.clone()).settings(settings.clone()).start().await.unwrap();
        first.shutdown(PATIENCE).await.unwrap();
        let builder = || Engine::builder().store(options.clone()).settings(settings.clone());
        builder().archive(archive.clone()).begin_archive(HOT, 0).await.unwrap();
        let engine = builder().archive(archive.clone()).start().await.unwrap();
        Self { engine, options, archive, folder }
    }

    /// The same, with search begun.
    pub(crate) async fn searched(self, settings: EngineSettings) -> Self {
        self.changed(settings, async |builder| {
            assert!(builder.begin_search().await.unwrap().archive.is_some_and(|archive| archive.search));
        })
        .await
    }

    /// The same, where so many posts of each account stay in memory.
    pub(crate) async fn keeping(self, settings: EngineSettings, hot: u32) -> Self {
        self.changed(settings, async |builder| {
            builder.keep_in_memory(Some(hot), None).await.unwrap();
        })
        .await
    }

    /// The same, with something that is decided while nobody serves the tenant.
    async fn changed(self, settings: EngineSettings, decide: impl AsyncFnOnce(EngineBuilder)) -> Self {
        let Self { engine, options, archive, folder } = self;
        engine.shutdown(PATIENCE).await.unwrap();
        let builder = || {
            let of = Engine::builder().store(options.clone()).settings(settings.clone());
            of.archive(archive.clone())
        };
        decide(builder()).await;
        let engine = builder().start().await.unwrap();
        Self { engine, options, archive, folder }
    }

    /// The same, with an instance that has posts leave memory only where it is asked to, however long a test takes.
    pub(crate) async fn by_hand(self, settings: EngineSettings) -> Self {
        let Self { engine, options, archive, folder } = self;
        engine.shutdown(PATIENCE).await.unwrap();
        let builder = Engine::builder().store(options.clone()).settings(settings);
        let engine = builder.archive(archive.clone()).assist().await.unwrap();
        Self { engine, options, archive, folder }
    }

    /// Waits until so many posts lie in memory. The instance moves what is due by itself, too.
    pub(crate) async fn left_in_memory(&self, posts: usize) {
        drained(&self.engine).await;
        eventually("posts leave memory", async || {
            // Beside others a database may refuse one: the next one does it.
            self.engine.archive_due().await.is_ok() && self.in_memory().await.len() == posts
        })
        .await;
    }

    /// Posts that lie in memory.
    pub(crate) async fn in_memory(&self) -> BTreeSet<u64> {
        let keys = all_keys(&self.engine).await;
        let of = keys.iter().map(|key| letter_and_name(key)).filter(|(letter, _)| *letter == 'w');
        of.map(|(_, name)| u64::from_be_bytes(name.try_into().unwrap())).collect()
    }
}

pub(crate) async fn publish(engine: &Engine, author: AccountId, count: usize) -> Vec<PostId> {
    let mut ids = Vec::new();
    for n in 0..count {
        ids.push(engine.publish(author, &Draft::text(format!("post {n}"))).await.unwrap().id);
    }
    ids
}

pub(crate) async fn walk(engine: &Engine, reader: AccountId, author: AccountId, limit: usize) -> Vec<PostId> {
    let mut ids = Vec::new();
    let mut query = Query::profile(author).limit(limit).hydrated();
    loop {
        let page = engine.as_reader(reader).read(&query).await.unwrap();
        assert!(page.posts.iter().all(|post| post.post.is_some()), "{page:?}");
        ids.extend(page.ids());
        let Some(next) = page.next else { return ids };
        query = query.after(next);
    }
}

fn newest_first(mut ids: Vec<PostId>) -> Vec<PostId> {
    ids.reverse();
    ids
}

#[tokio::test]
async fn profiles_homes_and_single_posts_go_on_in_the_archive() {
    for archived in Archived::each().await {
        read_on(archived).await;
    }
}

async fn read_on(archived: Archived) {
    let engine = &archived.engine;
    let [ada, ben, eve] = accounts(engine, 3).await[..] else { panic!("three were made") };
    engine.follow(ben, ada).await.unwrap();
    engine.follow(ben, eve).await.unwrap();
    drained(engine).await;
    let (mut of_ada, mut all) = (Vec::new(), Vec::new());
    for n in 0..60 {
        of_ada.extend(publish(engine, ada, 1).await);
        all.push(of_ada[n]);
        if n % 3 > 0 {
            all.extend(publish(engine, eve, 1).await);
        }
    }
    all.sort_unstable();
    archived.left_in_memory(24).await;
    let hot: BTreeSet<u64> = archived.in_memory().await;
    assert!(of_ada[48..].iter().all(|id| hot.contains(&id.get())));
    for limit in [1, 7, 100] {
        assert_eq!(walk(engine, ben, ada, limit).await, newest_first(of_ada.clone()), "{limit}");
        assert_eq!(walk_home(engine, ben, limit).await, newest_first(all.clone()), "{limit}");
    }
    // A home that is filled anew begins where the archive ends.
    engine.sweep(0).await.unwrap();
    assert_eq!(walk_home(engine, ben, 9).await, newest_first(all.clone()));
    let old = engine.as_reader(ben).post(of_ada[3]).await.unwrap();
    assert_eq!(old.post.unwrap().content().text, "post 0");
    assert_eq!(engine.stored().post(of_ada[40]).await.unwrap().unwrap().header().author, ada);
    assert_eq!(archived.in_memory().await, hot, "reading brings nothing back");
}

#[tokio::test]
async fn what_somebody_changes_comes_back_and_leaves_again() {
    for archived in Archived::each().await {
        come_back(archived).await;
    }
}

async fn come_back(archived: Archived) {
    let engine = &archived.engine;
    let [ada, ben, eve] = accounts(engine, 3).await[..] else { panic!("three were made") };
    engine.follow(ben, ada).await.unwrap();
    let posts = publish(engine, ada, 40).await;
    let at = |n: usize| PostRef { id: posts[n], author: ada };
    engine.like(eve, posts[1]).await.unwrap();
    let before = engine.publish(ben, &Draft::text("so").reply_to(at(1))).await.unwrap().id;
    archived.left_in_memory(13).await;
    assert!(!archived.in_memory().await.contains(&posts[1].get()));

    engine.like(ben, posts[1]).await.unwrap();
    engine.edit(ada, posts[2], &Edit { text: Some("anew".into()), ..Edit::default() }).await.unwrap();
    engine.moderate(posts[3], Moderation { sensitive: Some(true), hidden: None }).await.unwrap();
    let answer = engine.publish(eve, &Draft::text("no").reply_to(at(4))).await.unwrap().id;
    let repost = engine.repost(eve, posts[5]).await.unwrap().id;
    drained(engine).await;
    let hot = archived.in_memory().await;
    assert!(posts[1..=5].iter().all(|id| hot.contains(&id.get())), "{hot:?}");
    let check = async || {
        let header = async |n: usize| *engine.stored().post(posts[n]).await.unwrap().unwrap().header();
        assert_eq!((header(1).await.likes, header(1).await.replies), (2, 1));
        let text = engine.stored().post(posts[2]).await.unwrap().unwrap();
        assert_eq!((text.content().text.as_str(), text.header().revision), ("anew", 1));
        assert!(header(3).await.is_sensitive());
        assert_eq!((header(4).await.replies, header(5).await.reposts), (1, 1));
        assert_eq!(walk(engine, ben, ada, 9).await, newest_first(posts.clone()));
    };
    check().await;
    let likers = async || {
        let page = engine.as_reader(ada).likers(posts[1], &ListQuery::default()).await.unwrap();
        page.accounts.iter().map(|account| account.id).collect::<Vec<_>>()
    };
    assert_eq!(likers().await, [ben, eve]);
    // They are quiet long enough a second later.
    eventually("they leave again", async || {
        engine.archive_due().await.unwrap();
        let hot = archived.in_memory().await;
        (1..=5).all(|n| !hot.contains(&posts[n].get()))
    })
    .await;
    check().await;
    // An unlike finds its way too.
    engine.unlike(eve, posts[1]).await.unwrap();
    drained(engine).await;
    assert_eq!(likers().await, [ben]);
    for id in [before, answer, repost] {
        assert!(engine.stored().post(id).await.unwrap().is_some());
    }
}

#[tokio::test]
async fn a_post_in_the_archive_is_deleted_there_before_that_is_acknowledged() {
    for archived in Archived::each().await {
        deleted(archived).await;
    }
}

async fn deleted(archived: Archived) {
    let engine = &archived.engine;
    let [ada, ben] = accounts(engine, 2).await[..] else { panic!("two were made") };
    let mut posts = publish(engine, ada, 40).await;
    engine.like(ben, posts[6]).await.unwrap();
    // One that is deleted above the floor, which then passes it.
    engine.delete(ada, posts[9]).await.unwrap();
    archived.left_in_memory(12).await;
    engine.delete(ada, posts[5]).await.unwrap();
    engine.delete(ada, posts[6]).await.unwrap();
    // And one that was brought back before.
    engine.like(ben, posts[7]).await.unwrap();
    drained(engine).await;
    engine.delete(ada, posts[7]).await.unwrap();
    for id in [posts[5], posts[6], posts[7], posts[9]] {
        assert_eq!(engine.stored().post(id).await.unwrap(), None);
        // Deleted once more it is deleted.
        engine.delete(ada, id).await.unwrap();
        assert_eq!(engine.as_reader(ben).post(id).await.unwrap_err().kind(), ErrorKind::NotFound);
    }
    assert_eq!(engine.delete(ben, posts[8]).await.unwrap_err().kind(), ErrorKind::NotFound);
    let gone = [posts[5], posts[6], posts[7], posts[9]];
    posts.retain(|id| !gone.contains(id));
    assert_eq!(walk(engine, ben, ada, 9).await, newest_first(posts.clone()));
    assert_eq!(engine.stored().account(ada).await.unwrap().posts, 36);
    // More of it moves all the same.
    posts.extend(publish(engine, ada, 30).await);
    archived.left_in_memory(12).await;
    assert_eq!(walk(engine, ben, ada, 9).await, newest_first(posts));

    engine.delete_account(ada).await.unwrap();
    drained(engine).await;
    assert_eq!(archived.archive.size().await.unwrap().posts, 0);
    assert_eq!(archived.in_memory().await, BTreeSet::new());
}

#[tokio::test]
async fn nobody_starts_without_the_archive_of_a_tenant_or_with_another_one() {
    let archived = Archived::new(small()).await;
    let Archived { options, folder, archive, .. } = &archived;
    let other = Arc::new(SqliteArchive::open(folder.path().join("other")).await.unwrap());
    let builder = || Engine::builder().store(options.clone()).settings(small());
    let failures = [
        builder().start().await.err(),
        builder().observe().await.err(),
        builder().assist().await.err(),
        builder().import().await.err(),
        builder().archive(other.clone()).start().await.err(),
        Engine::builder().store(tenant(40)).archive(other.clone()).start().await.err(),
    ];
    for failure in failures {
        let failure = failure.expect("it doesn't start");
        assert_eq!(failure.kind(), ErrorKind::Misconfigured, "{failure}");
        assert!(failure.to_string().contains("archive"), "{failure}");
    }
    // While it is served nothing is begun.
    let served = builder().archive(archive.clone()).begin_archive(HOT, 0).await.unwrap_err();
    assert_eq!(served.kind(), ErrorKind::Conflict, "{served}");
    archived.engine.shutdown(PATIENCE).await.unwrap();
    let again = builder().archive(archive.clone()).begin_archive(HOT, 0).await.unwrap();
    assert_eq!(again.archive.map(|archive| archive.name), archive.name().await.unwrap());
    let two = builder().archive(other).begin_archive(HOT, 0).await.unwrap_err();
    assert_eq!(two.kind(), ErrorKind::Misconfigured, "{two}");
}

/// What an outbox begins with.
async fn first_of(engine: &Engine, account: AccountId) -> Vec<u8> {
    let reply = super::at_key(engine, 'o', account, "LINDEX", &["0"]).await;
    reply.bytes().unwrap().to_vec()
}

#[tokio::test]
async fn an_archive_that_lacks_what_it_had_is_told_and_never_taken_for_an_empty_one() {
    let archived = Archived::new(small()).await;
    let Archived { engine, options, archive, folder } = archived;
    let [ada, ben] = accounts(&engine, 2).await[..] else { panic!("two were made") };
    let posts = publish(&engine, ada, 40).await;
    let copy = folder.path().join("copy");
    drained(&engine).await;
    eventually("posts leave memory", async || {
        engine.archive_due().await.unwrap();
        first_of(&engine, ada).await[0] == b'A'
    })
    .await;
    engine.shutdown(PATIENCE).await.unwrap();
    let name = archive.name().await.unwrap().unwrap();
    drop(engine);
    drop(archive);
    // Of the same name, and empty: an early copy.
    let older = Arc::new(SqliteArchive::open(&copy).await.unwrap());
    older.adopt(name).await.unwrap();
    let engine =
        Engine::builder().store(options).settings(small()).archive(older.clone()).start().await.unwrap();
    let page = engine.as_reader(ben).read(&Query::profile(ada).limit(12)).await.unwrap();
    assert_eq!(page.ids(), newest_first(posts[28..].to_vec()));
    let below = Query::profile(ada).after(page.next.unwrap());
    let failure = engine.as_reader(ben).read(&below).await.unwrap_err();
    assert_eq!(failure.kind(), ErrorKind::Unavailable, "{failure}");
    assert!(failure.to_string().contains("lacks posts"), "{failure}");
    assert_eq!(engine.delete(ada, posts[2]).await.unwrap_err().kind(), ErrorKind::Unavailable);
    publish(&engine, ada, 40).await;
    drained(&engine).await;
    assert_eq!(engine.archive_due().await.unwrap().left, 0, "nothing is added on top");
    assert_eq!(older.size().await.unwrap().posts, 0);
}

/// With room for few posts that wait: they wait where the archive takes nothing.
#[tokio::test]
async fn an_account_whose_posts_wait_for_the_archive_is_refused_more_and_loses_none() {
    let archived = Archived::new(EngineSettings { outbox_posts: 100, ..small() }).await;
    let Archived { engine, archive, .. } = &archived;
    let [ada, ben] = accounts(engine, 2).await[..] else { panic!("two were made") };
    // Somebody else has taken the account's place there: nothing of it is taken in.
    let owner = Owner { bucket: engine.store().keys().buckets().of_account(ada.get()), account: ada };
    let token = ArchiveToken { number: 1, nonce: [0; 8] };
    let upto = PostId::from_u64(0).unwrap();
    let needs = Prerequisite::default();
    let (posts_in, erased) = (Vec::new(), Vec::new());
    let buries = OwnerChange { owner, token, needs, upto, posts: posts_in, erased, buries: true };
    assert_eq!(archive.change(&[buries]).await.unwrap(), [Ok(())]);
    let mut posts = publish(engine, ada, 20).await;
    let refused = loop {
        match engine.publish(ada, &Draft::text("more")).await {
            Ok(published) => posts.push(published.id),
            Err(e) => break e,
        }
        assert!(posts.len() < 1_000, "it is never refused");
    };
    assert_eq!(refused.kind(), ErrorKind::Overloaded, "{refused}");
    assert!(posts.len() > 600);
    assert_eq!(engine.archive_due().await.unwrap().left, 0);
    assert_eq!(walk(engine, ben, ada, 100).await, newest_first(posts));
    engine.publish(ben, &Draft::text("others may")).await.unwrap();
}
