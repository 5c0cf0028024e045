//! An archive whose servers don't all know what it has answered: one that takes over lacks its last changes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use tempfile::TempDir;
use tideline::archive::{
    Archive, ArchiveName, ArchiveSize, ChangeOutcome, IndexChange, IndexKey, IndexVersion, ListKind,
    MembersAnswer, MembersAsk, Owner, OwnerChange, OwnerPage, OwnerState, PageAsk, PageContent, PageOrder,
    PostAnswer, PostAsk, PostListAsk, PostListChange, PostListPage, SearchAsk, SearchPage, WalkedPost,
};
use tideline::bucket::Bucket;
use tideline::post::{Draft, Edit, PostRef};
use tideline::{AccountId, CallFuture, Engine, ErrorCode, ListQuery, PostId, Query};
use tideline_archive::SqliteArchive;

use super::archive::{Archived, publish};
use super::{PATIENCE, a_millisecond, accounts, at_key, drained, eventually, small};

/// Two servers: one is told what the other one answers, until it isn't any more, and then takes over.
#[derive(Debug)]
pub(super) struct ServerPair {
    first: SqliteArchive,
    second: SqliteArchive,
    is_cut: AtomicBool,
    is_over: AtomicBool,
    /// Fails over once it has answered the next change of lists, which the other one lacks.
    pub(super) loses_a_list: AtomicBool,
    /// Knows nothing of lists.
    pub(super) forgets_lists: AtomicBool,
    /// The second one is told nothing, and is asked for lists of posts all the same.
    lists_lag: AtomicBool,
    list_calls: AtomicUsize,
    /// How long a change takes, in milliseconds.
    change_ms: AtomicU64,
}

impl ServerPair {
    pub(super) async fn new() -> (TempDir, Arc<Self>) {
        let folder = tempfile::tempdir().unwrap();
        let open = async |name| SqliteArchive::open(folder.path().join(name)).await.unwrap();
        let (first, second) = (open("first").await, open("second").await);
        let no = || AtomicBool::new(false);
        let pair = Self {
            first,
            second,
            is_cut: no(),
            is_over: no(),
            loses_a_list: no(),
            forgets_lists: no(),
            lists_lag: no(),
            list_calls: 0.into(),
            change_ms: 0.into(),
        };
        (folder, Arc::new(pair))
    }

    fn serving(&self) -> &SqliteArchive {
        if self.is_over.load(Ordering::SeqCst) { &self.second } else { &self.first }
    }

    pub(super) fn has_changes_take(&self, time: Duration) {
        self.change_ms.store(time.as_millis().try_into().unwrap(), Ordering::SeqCst);
    }

    pub(super) fn cut(&self) {
        self.is_cut.store(true, Ordering::SeqCst);
    }

    pub(super) fn fail_over(&self) {
        self.is_over.store(true, Ordering::SeqCst);
    }
}

impl Archive for ServerPair {
    fn name(&self) -> CallFuture<'_, Option<ArchiveName>> {
        self.serving().name()
    }

    fn adopt(&self, name: ArchiveName) -> CallFuture<'_, ArchiveName> {
        Box::pin(async move {
            self.second.adopt(name).await?;
            self.first.adopt(name).await
        })
    }

    fn change<'a>(&'a self, changes: &'a [OwnerChange]) -> CallFuture<'a, Vec<ChangeOutcome>> {
        Box::pin(async move {
            let answer = self.serving().change(changes).await?;
            tokio::time::sleep(Duration::from_millis(self.change_ms.load(Ordering::SeqCst))).await;
            if !self.is_cut.load(Ordering::SeqCst) && !self.lists_lag.load(Ordering::SeqCst) {
                self.second.change(changes).await?;
            }
            Ok(answer)
        })
    }

    /// Whoever looks whether something has settled asks this: nothing does that one of the two lacks.
    fn owners<'a>(&'a self, owners: &'a [Owner]) -> CallFuture<'a, Vec<Option<OwnerState>>> {
        self.is_over.fetch_or(self.is_cut.load(Ordering::SeqCst), Ordering::SeqCst);
        self.serving().owners(owners)
    }

    fn pages<'a>(
        &'a self,
        asks: &'a [PageAsk],
        order: PageOrder,
        content: PageContent,
    ) -> CallFuture<'a, Vec<OwnerPage>> {
        self.serving().pages(asks, order, content)
    }

    fn posts<'a>(&'a self, asks: &'a [PostAsk]) -> CallFuture<'a, Vec<PostAnswer>> {
        self.serving().posts(asks)
    }

    fn members<'a>(&'a self, asks: &'a [MembersAsk]) -> CallFuture<'a, Vec<MembersAnswer>> {
        self.list_calls.fetch_add(1, Ordering::SeqCst);
        let lags = self.lists_lag.load(Ordering::SeqCst);
        if lags { self.second.members(asks) } else { self.serving().members(asks) }
    }

    fn list_kinds<'a>(&'a self, posts: &'a [PostAsk]) -> CallFuture<'a, Vec<Vec<ListKind>>> {
        self.serving().list_kinds(posts)
    }

    fn change_lists<'a>(&'a self, changes: &'a [PostListChange]) -> CallFuture<'a, ()> {
        Box::pin(async move {
            self.serving().change_lists(changes).await?;
            if self.loses_a_list.swap(false, Ordering::SeqCst) {
                self.fail_over();
            }
            Ok(())
        })
    }

    fn list_pages<'a>(
        &'a self,
        asks: &'a [PostListAsk],
        order: PageOrder,
    ) -> CallFuture<'a, Vec<PostListPage>> {
        if self.forgets_lists.load(Ordering::SeqCst) {
            return Box::pin(async { Ok(vec![PostListPage::default(); asks.len()]) });
        }
        self.serving().list_pages(asks, order)
    }

    fn index_versions<'a>(&'a self, posts: &'a [IndexKey]) -> CallFuture<'a, Vec<Option<IndexVersion>>> {
        self.serving().index_versions(posts)
    }

    fn index<'a>(&'a self, changes: &'a [IndexChange]) -> CallFuture<'a, Vec<bool>> {
        self.serving().index(changes)
    }

    fn search<'a>(&'a self, ask: &'a SearchAsk) -> CallFuture<'a, SearchPage> {
        self.serving().search(ask)
    }

    fn walk_index(
        &self,
        bucket: Bucket,
        after: Option<PostId>,
        most: usize,
    ) -> CallFuture<'_, Vec<(PostId, AccountId)>> {
        self.serving().walk_index(bucket, after, most)
    }

    fn walk_owners(
        &self,
        bucket: Bucket,
        after: Option<AccountId>,
        most: usize,
    ) -> CallFuture<'_, Vec<(AccountId, OwnerState)>> {
        self.serving().walk_owners(bucket, after, most)
    }

    fn walk_posts(
        &self,
        bucket: Bucket,
        after: Option<(AccountId, PostId)>,
        most: usize,
    ) -> CallFuture<'_, Vec<WalkedPost>> {
        self.serving().walk_posts(bucket, after, most)
    }

    fn walk_lists<'a>(
        &'a self,
        bucket: Bucket,
        after: Option<&'a [u8]>,
        most: usize,
    ) -> CallFuture<'a, Vec<Vec<u8>>> {
        self.serving().walk_lists(bucket, after, most)
    }

    fn settles_within(&self) -> Duration {
        Duration::from_millis(100)
    }

    fn size(&self) -> CallFuture<'_, ArchiveSize> {
        self.serving().size()
    }
}

/// A profile, the newest first; `None`: the archive doesn't tell.
pub(super) async fn profile(engine: &Engine, reader: AccountId, author: AccountId) -> Option<Vec<PostId>> {
    let page = engine.as_reader(reader).read(&Query::profile(author).limit(40)).await.unwrap();
    (!page.lacks_archive).then(|| page.ids())
}

/// H186, H187.
#[tokio::test]
async fn what_was_deleted_stays_so_though_the_archive_loses_that_and_the_rest_is_read_again() {
    let (folder, pair) = ServerPair::new().await;
    let archived = Archived::over(small(), folder, pair.clone()).await;
    let engine = &archived.engine;
    let [ada, ben, cid] = accounts(engine, 3).await[..] else { panic!("three were made") };
    let posts = publish(engine, ada, 40).await;
    publish(engine, cid, 40).await;
    archived.left_in_memory(24).await;
    pair.cut();
    for id in &posts[1..4] {
        engine.delete(ada, *id).await.unwrap();
    }
    engine.delete_account(cid).await.unwrap();
    drained(engine).await;
    let left: Vec<PostId> = posts.iter().rev().filter(|id| !posts[1..4].contains(id)).copied().collect();
    pair.fail_over();
    let shown = profile(engine, ben, ada).await;
    assert!(shown.as_ref().is_none_or(|shown| *shown == left), "it lacks what it was told: {shown:?}");
    let buried = Owner { bucket: engine.store().keys().buckets().of_account(cid.get()), account: cid };
    eventually("the archive is told once more", async || {
        engine.archive_due().await.unwrap();
        let states = pair.owners(&[buried]).await.unwrap();
        profile(engine, ben, ada).await.is_some() && states[0].is_some_and(|state| state.is_buried)
    })
    .await;
    assert_eq!(profile(engine, ben, ada).await.as_ref(), Some(&left));
    let all = PageAsk { owner: buried, edge: PostId::from_u64(0).unwrap(), most: 1_000 };
    let pages = pair.pages(&[all], PageOrder::OldestFirst, PageContent::Ids).await.unwrap();
    assert_eq!(pages[0].ids, [], "posts of a deleted account");
    eventually("nothing waits to settle", async || {
        engine.archive_due().await.unwrap();
        unsettled(engine, ada).await.is_empty()
    })
    .await;
}

/// Asked for in advance or not: it holds up what lies below where the archive lacks something of it, and no more.
#[tokio::test]
async fn an_account_of_which_the_archive_lacks_something_holds_up_no_others() {
    // So few that the archive is asked for those of both at once.
    for hot in [12, 5] {
        others_go_on(hot).await;
    }
}

async fn others_go_on(hot: usize) {
    let (folder, pair) = ServerPair::new().await;
    let archived = Archived::over(small(), folder, pair.clone()).await;
    let archived = archived.keeping(small(), u32::try_from(hot).unwrap()).await;
    let engine = &archived.engine;
    let [ada, ben, cid] = accounts(engine, 3).await[..] else { panic!("three were made") };
    for author in [ada, ben] {
        engine.follow(cid, author).await.unwrap();
    }
    pair.lists_lag.store(true, Ordering::SeqCst);
    let old = publish(engine, ada, 40).await;
    archived.left_in_memory(hot).await;
    pair.lists_lag.store(false, Ordering::SeqCst);
    a_millisecond(engine).await;
    let new = publish(engine, ben, 60).await;
    archived.left_in_memory(2 * hot).await;
    pair.fail_over();
    assert_eq!(profile(engine, cid, ada).await, None, "it lacks what it had");
    let above: Vec<PostId> = new.iter().rev().chain(old[40 - hot..].iter().rev()).copied().collect();
    let (mut shown, mut query) = (Vec::new(), Query::home().limit(100));
    while shown.len() < above.len() {
        let page = engine.as_reader(cid).read(&query).await.unwrap();
        shown.extend(page.ids());
        query = query.after(page.next.unwrap());
    }
    assert_eq!(shown[..above.len()], above, "{hot} in memory");
}

/// What is noted of deletions that the archive may lose.
async fn unsettled(engine: &Engine, account: AccountId) -> Vec<u8> {
    let noted = at_key(engine, 'a', account, "HGET", &["ae"]).await;
    if noted.is_nil() { Vec::new() } else { noted.bytes().unwrap().to_vec() }
}

/// H227, H228.
#[tokio::test]
async fn lists_of_many_posts_are_one_question_and_not_read_from_who_lacks_what_it_had() {
    let (folder, pair) = ServerPair::new().await;
    let archived = Archived::over(small(), folder, pair.clone()).await;
    let engine = &archived.engine;
    let [ada, ben, cid, eve] = accounts(engine, 4).await[..] else { panic!("four were made") };
    let root = engine.publish(eve, &Draft::text("root")).await.unwrap().id;
    let mut posts = Vec::new();
    for n in 0..6 {
        let draft = Draft::text(format!("{n}")).reply_to(PostRef { id: root, author: eve });
        let post = engine.publish(ada, &draft).await.unwrap().id;
        engine.like(ben, post).await.unwrap();
        engine.like(cid, post).await.unwrap();
        engine.publish(ben, &Draft::text("so").reply_to(PostRef { id: post, author: ada })).await.unwrap();
        posts.push(post);
    }
    publish(engine, ada, 30).await;
    archived.left_in_memory(1 + 12 + 6).await;
    let query = || Query::profile(ada).limit(100).hydrated().with_likers(5).with_replies(5);
    let reader = engine.as_reader(eve);
    let calls = || pair.list_calls.swap(0, Ordering::SeqCst);
    let counts = |page: &tideline::Page| {
        let of = |id: &PostId| page.posts.iter().find(|post| post.id == *id).unwrap();
        posts.iter().map(of).map(|post| (post.likers.len(), post.replies.len())).collect::<Vec<_>>()
    };

    calls();
    let page = reader.read(&query()).await.unwrap();
    assert_eq!((calls(), counts(&page), page.lacks_archive), (1, vec![(2, 1); 6], false));
    let conversation = reader.conversation(root).await.unwrap();
    assert_eq!((calls(), conversation.descendants.len()), (1, 12));

    pair.lists_lag.store(true, Ordering::SeqCst);
    publish(engine, ada, 40).await;
    archived.left_in_memory(1 + 12 + 6).await;
    let page = reader.read(&query()).await.unwrap();
    assert_eq!((counts(&page), page.lacks_archive), (vec![(0, 0); 6], true));
    let edit = Edit { text: Some("anew".into()), ..Edit::default() };
    let conversation = reader.conversation(root).await.unwrap();
    assert_eq!((conversation.descendants.len(), conversation.lacks_archive), (6, true));
    for refused in [
        reader.likers(posts[1], &ListQuery::default()).await.map(drop),
        // It would come back without those who like it.
        engine.edit(ada, posts[1], &edit).await.map(drop),
    ] {
        assert_eq!(refused.unwrap_err().code(), ErrorCode::ArchiveAway);
    }
    pair.lists_lag.store(false, Ordering::SeqCst);
    engine.edit(ada, posts[1], &edit).await.unwrap();
    let page = reader.read(&query()).await.unwrap();
    assert_eq!((counts(&page), page.lacks_archive), (vec![(2, 1); 6], false));
}

/// H241: each move voided the one before it, which waited to be settled.
#[tokio::test]
async fn more_posts_than_one_move_takes_leave_one_after_the_other() {
    let archived = Archived::that_settles(small(), Duration::from_millis(300)).await;
    let engine = &archived.engine;
    let [ada] = accounts(engine, 1).await[..] else { panic!("one was made") };
    publish(engine, ada, 300).await;
    archived.left_in_memory(12).await;
    // Nobody else moves anything, from before they are back.
    let archived = archived.by_hand(small()).await;
    assert_eq!(archived.engine.restore_newest(ada, 1_000).await.unwrap().back, 288);
    let Archived { engine, options, archive, .. } = archived;
    engine.shutdown(PATIENCE).await.unwrap();
    let mover = Engine::builder().store(options).settings(small()).archive(archive).observe().await.unwrap();
    let mut left = 0;
    eventually("all of them leave", async || {
        left += mover.archive_due().await.unwrap().left;
        left == 288
    })
    .await;
}
