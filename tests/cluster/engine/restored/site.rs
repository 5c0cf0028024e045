//! A tenant that lives on between two backups, and what readers see of it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tideline::archive::Archive;
use tideline::post::{Draft, Edit, Tag};
use tideline::{
    AccountId, Engine, EngineBuilder, EngineSettings, FsckOptions, FsckReport, NewAccount, PostId, Query,
    StoreOptions,
};
use tideline_local_cluster::ClusterSpec;

use crate::engine::archive::publish;
use crate::engine::{accounts, drained, eventually, small};
use crate::harness::{Own, PATIENCE, options, own};

/// Posts of each account that stay in memory.
const HOT: u32 = 12;

/// A tenant with an archive, on a cluster of its own.
pub(super) struct Site {
    pub(super) cluster: Own,
    pub(super) engine: Engine,
    archive: Arc<dyn Archive>,
    options: StoreOptions,
}

/// What lists of hashtags keep is soon too little.
fn builder(options: &StoreOptions, archive: &Arc<dyn Archive>) -> EngineBuilder {
    let settings = EngineSettings { tag_posts_max: 20, ..small() };
    Engine::builder().store(options.clone()).settings(settings).archive(archive.clone())
}

impl Site {
    /// A new one.
    pub(super) async fn begin(archive: Arc<dyn Archive>) -> Self {
        let cluster = own(ClusterSpec::ephemeral()).await;
        let options = options(cluster.urls());
        let settings = EngineSettings { tag_posts_max: 20, ..small() };
        // Who serves it first decides what is the tenant's.
        let first = Engine::builder().store(options.clone()).settings(settings).start().await.unwrap();
        first.shutdown(PATIENCE).await.unwrap();
        builder(&options, &archive).begin_archive(HOT, 0).await.unwrap();
        let engine = builder(&options, &archive).start().await.unwrap();
        Self { cluster, engine, archive, options }
    }

    pub(super) fn prefix(&self) -> String {
        self.options.prefix.clone()
    }

    /// One that was restored, with a tool beside which nothing moves.
    pub(super) async fn restored(prefix: &str, cluster: Own, archive: Arc<dyn Archive>) -> Self {
        let options = StoreOptions { prefix: prefix.to_owned(), ..options(cluster.urls()) };
        let engine = builder(&options, &archive).assist().await.unwrap();
        Self { cluster, engine, archive, options }
    }

    /// Has an instance serve it.
    pub(super) async fn serve(&mut self) {
        self.engine.shutdown(PATIENCE).await.unwrap();
        self.engine = builder(&self.options, &self.archive).start().await.unwrap();
    }

    /// Has nobody there but a tool.
    async fn leave(&mut self) {
        self.engine.shutdown(PATIENCE).await.unwrap();
        self.engine = builder(&self.options, &self.archive).assist().await.unwrap();
    }

    /// Waits until all has left memory that is due, of these accounts.
    pub(super) async fn moved(&self, authors: &[AccountId]) {
        drained(&self.engine).await;
        eventually("posts leave memory", async || {
            self.engine.archive_all().await.unwrap();
            for author in authors {
                let standing = self.engine.inspect(*author).await.unwrap().archive.unwrap();
                // A deletion stands there too, until it should have been made.
                let is_there = async |id| self.engine.inspect_post(id).await.is_ok();
                let mut stays = standing.waiting > 0;
                for id in standing.warm {
                    stays |= is_there(id).await;
                }
                if stays {
                    return false;
                }
            }
            true
        })
        .await;
    }

    pub(super) async fn fsck(&self, options: FsckOptions) -> FsckReport {
        let options = FsckOptions { pause: Duration::from_millis(100), ..options };
        self.engine.fsck(&options, &|_| {}).await.unwrap()
    }

    /// A look, which changes nothing: first at the archive's side alone. Again where the archive didn't answer in time,
    /// on a busy machine: what that would have told is left out of a report.
    pub(super) async fn look(&self, archive_only: bool) -> FsckReport {
        let since = Instant::now();
        loop {
            let report = self.fsck(FsckOptions { archive_only, ..FsckOptions::default() }).await;
            if report.untold == 0 || since.elapsed() > PATIENCE {
                return report;
            }
        }
    }

    pub(super) async fn repair(&self, accept_loss: bool) -> FsckReport {
        let report = self.fsck(FsckOptions { repair: true, accept_loss, ..FsckOptions::default() }).await;
        drained(&self.engine).await;
        report
    }

    /// A repair where the archive has all that it once had: again, as one, if it didn't answer in time.
    pub(super) async fn repair_all_told(&self) -> FsckReport {
        let (since, mut report) = (Instant::now(), self.repair(false).await);
        while report.untold > 0 && since.elapsed() < PATIENCE {
            let again = self.repair(false).await;
            for (kind, more) in again.findings {
                let of = report.findings.entry(kind).or_default();
                // What was left is found once more.
                of.found += more.found - of.left().min(more.found);
                of.repaired += more.repaired;
                of.is_harmless = more.is_harmless;
            }
            report.untold = again.untold;
        }
        report
    }

    /// Repairs until nothing more is found than what is harmless.
    pub(super) async fn repair_all(&self) -> FsckReport {
        for _ in 0..3 {
            if self.repair(false).await.findings.is_empty() {
                break;
            }
        }
        self.look(false).await
    }

    /// All that a query shows a reader, each once.
    pub(super) async fn read(&self, reader: AccountId, query: Query) -> BTreeSet<PostId> {
        let (mut ids, mut query) = (BTreeSet::new(), query.limit(20).hydrated());
        loop {
            let page = self.engine.as_reader(reader).read(&query).await.unwrap();
            assert!(!page.lacks_archive, "{page:?}");
            for post in &page.posts {
                assert!(post.post.is_some() && ids.insert(post.id), "{post:?}");
            }
            match page.next {
                Some(next) => query = query.after(next),
                None => return ids,
            }
        }
    }

    pub(super) async fn profile(&self, people: &People, author: AccountId) -> BTreeSet<PostId> {
        self.read(people.ben, Query::profile(author)).await
    }

    pub(super) async fn tagged(&self, people: &People) -> BTreeSet<PostId> {
        self.read(people.ben, Query::tag(Tag::new("tides").unwrap())).await
    }

    pub(super) async fn text(&self, people: &People, post: PostId) -> String {
        let page = self.engine.as_reader(people.ben).post(post).await.unwrap();
        page.post.unwrap().content().text.clone()
    }
}

async fn tag(engine: &Engine, author: AccountId, count: usize) -> Vec<PostId> {
    let mut ids = Vec::new();
    for n in 0..count {
        let draft = Draft::text(format!("post {n} of #tides")).hashtags(["tides"]);
        ids.push(engine.publish(author, &draft).await.unwrap().id);
    }
    ids
}

/// Those who live there, and their posts in the order of these.
pub(super) struct People {
    pub(super) ada: AccountId,
    pub(super) ben: AccountId,
    pub(super) cid: AccountId,
    pub(super) dan: AccountId,
    pub(super) of_ada: Vec<PostId>,
    pub(super) of_cid: Vec<PostId>,
}

impl People {
    /// Ben follows ada of 40 posts, cid of 100 with a hashtag, dan of 30. All but 12 of each are in the archive.
    pub(super) async fn live(site: &Site) -> Self {
        let engine = &site.engine;
        let [ada, ben, cid, dan] = accounts(engine, 4).await[..] else { panic!("four were made") };
        for author in [ada, cid, dan] {
            engine.follow(ben, author).await.unwrap();
        }
        drained(engine).await;
        engine.warm(ben).await.unwrap();
        let (of_ada, of_cid) = (publish(engine, ada, 40).await, tag(engine, cid, 100).await);
        publish(engine, dan, 30).await;
        engine.like(ben, of_ada[1]).await.unwrap();
        engine.like(ben, of_ada[30]).await.unwrap();
        site.moved(&[ada, cid, dan]).await;
        // Before both backups: one in the archive, one in memory.
        engine.delete(ada, of_ada[3]).await.unwrap();
        engine.delete(ada, of_ada[38]).await.unwrap();
        site.moved(&[ada, cid, dan]).await;
        engine.count_now().await;
        Self { ada, ben, cid, dan, of_ada, of_cid }
    }

    /// What happens between the two backups.
    pub(super) async fn live_on(&mut self, site: &mut Site) -> AccountId {
        let Self { ada, ben, cid, dan, .. } = *self;
        let (engine, of_ada) = (&site.engine, &mut self.of_ada);
        // It is in memory, and the floor passes it then.
        engine.delete(ada, of_ada[33]).await.unwrap();
        // From here on 40 to 59; up to 47 they leave memory.
        of_ada.extend(publish(engine, ada, 20).await);
        site.moved(&[ada]).await;
        // They come back, one from before and one that has left between, and leave again.
        engine.like(ben, of_ada[5]).await.unwrap();
        engine.like(ben, of_ada[29]).await.unwrap();
        let edit = Edit { text: Some("edited".into()), ..Edit::default() };
        engine.edit(ada, of_ada[6], &edit).await.unwrap();
        // In the archive before; left between; published between, in memory and in the archive.
        for n in [7, 31, 49, 42] {
            engine.delete(ada, of_ada[n]).await.unwrap();
        }
        self.of_cid.extend(tag(engine, cid, 90).await);

        engine.delete(cid, self.of_cid[2]).await.unwrap();
        engine.delete_account(dan).await.unwrap();
        let fay = engine.create_account(NewAccount::default()).await.unwrap().value;
        publish(engine, fay, 20).await;
        site.moved(&[ada, cid, fay]).await;
        engine.count_now().await;
        // They have left between, come back, and stay: no mover is there.
        site.leave().await;
        for n in [28, 41] {
            site.engine.like(ben, self.of_ada[n]).await.unwrap();
        }
        drained(&site.engine).await;
        fay
    }

    /// These of ada's posts.
    pub(super) fn ada_but(&self, range: std::ops::Range<usize>, without: &[usize]) -> BTreeSet<PostId> {
        range.filter(|n| !without.contains(n)).map(|n| self.of_ada[n]).collect()
    }

    pub(super) fn cid_but(&self, range: std::ops::Range<usize>, without: &[usize]) -> BTreeSet<PostId> {
        range.filter(|n| !without.contains(n)).map(|n| self.of_cid[n]).collect()
    }
}
