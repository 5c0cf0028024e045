//! Posts that this release can't read: damaged, of another type, or written by a later one.
//!
//! One such post made the home of everybody who follows its author `Internal`, and the author's own page; its author
//! could not delete it, and fsck left it alone. A page of likes would have taken back the like of what it could not
//! read.
use metrics_util::debugging::DebuggingRecorder;
use tideline::FindingKind::{self, *};
use tideline::cluster::{Command, Reply, Request};
use tideline::post::{Draft, PostRef, Tag};
use tideline::{AccountId, Engine, ErrorKind, FsckOptions, FsckReport, ListQuery, Moderation, PostId, Query};

use super::{accounts, all_keys, drained, engine, letter_and_name};
use crate::harness::eventually;
use crate::router::counted;

/// What somebody has done to a post.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Harm {
    /// How far it goes is nothing that this release knows.
    Visibility,
    Format,
    CutOff,
    OtherType,
}

const ALL: [Harm; 4] = [Harm::Visibility, Harm::Format, Harm::CutOff, Harm::OtherType];

async fn say(engine: &Engine, key: &[u8], command: &str, arguments: &[&[u8]]) -> Reply {
    let command = Command::new(command).arg(key).args(arguments.iter().copied());
    let slot = tideline::keys::slot_of_key(key);
    engine.store().router().call(Request::write(slot, command)).await.unwrap()
}

async fn key_of(engine: &Engine, post: PostId) -> Vec<u8> {
    let is_it = |key: &Vec<u8>| letter_and_name(key) == ('w', &post.get().to_be_bytes());
    all_keys(engine).await.into_iter().find(is_it).unwrap()
}

/// Harms a post; gives what it was.
pub(super) async fn harm(engine: &Engine, post: PostId, harm: Harm) -> Vec<u8> {
    let key = key_of(engine, post).await;
    let before = say(engine, &key, "GET", &[]).await.bytes().unwrap().to_vec();
    match harm {
        Harm::Visibility => drop(say(engine, &key, "SETRANGE", &[b"1", &[4]]).await),
        Harm::Format => drop(say(engine, &key, "SETRANGE", &[b"0", &[2]]).await),
        Harm::CutOff => drop(say(engine, &key, "SET", &[&before[..20]]).await),
        Harm::OtherType => {
            say(engine, &key, "DEL", &[]).await;
            say(engine, &key, "HSET", &[b"what", b"ever"]).await;
        }
    }
    before
}

/// Ada is followed by Ben and Eve, who follow Carl too. One of Ada's posts is liked, bookmarked, answered, quoted and
/// reposted, itself answers one of Carl's, mentions Ben and bears a hashtag; around it are others.
struct Site {
    engine: Engine,
    ada: AccountId,
    ben: AccountId,
    eve: AccountId,
    /// The one that is harmed.
    post: PostRef,
    parent: PostId,
    reply: PostId,
    quote: PostId,
    /// What Ben's home shows without it, newest first.
    rest: Vec<PostId>,
}

fn tag() -> Tag {
    Tag::new("tide").unwrap()
}

impl Site {
    async fn new() -> Self {
        let engine = engine().await;
        let [ada, ben, eve, carl] = accounts(&engine, 4).await[..] else { panic!("four were made") };
        for reader in [ben, eve] {
            engine.follow(reader, ada).await.unwrap();
            engine.follow(reader, carl).await.unwrap();
            engine.warm(reader).await.unwrap();
        }
        let publish = async |by, draft: Draft| engine.publish(by, &draft).await.unwrap().id;
        let parent = publish(carl, Draft::text("parent").hashtags(["tide"])).await;
        let draft = Draft::text("harmed").reply_to(PostRef { id: parent, author: carl });
        let post = PostRef { id: publish(ada, draft.mentions([ben]).hashtags(["tide"])).await, author: ada };
        let reply = publish(carl, Draft::text("so").reply_to(post)).await;
        let quote = publish(carl, Draft { repost_of: Some(post), ..Draft::text("see") }).await;
        publish(eve, Draft::repost(post)).await;
        let last = publish(carl, Draft::text("last").mentions([ben]).hashtags(["tide"])).await;
        engine.like(ben, post.id).await.unwrap();
        engine.like(ben, parent).await.unwrap();
        engine.bookmark(ben, post.id).await.unwrap();
        drained(&engine).await;
        let rest = vec![last, quote, parent];
        Self { engine, ada, ben, eve, post, parent, reply, quote, rest }
    }

    /// Everything that anybody reads shows the rest.
    async fn shows_the_rest(&self) {
        let Self { engine, ada, ben, post, .. } = self;
        let read = async |reader, query: Query| engine.as_reader(reader).read(&query).await.unwrap().ids();
        let without: Vec<PostId> = read(*ben, Query::home()).await;
        assert!(self.rest.iter().all(|id| without.contains(id)), "{without:?}");
        assert!(!without.contains(&post.id));
        assert_eq!(read(*ada, Query::home()).await, []);
        assert_eq!(read(*ben, Query::profile(*ada)).await, []);
        let last = self.rest[0];
        assert_eq!(read(*ben, Query::mentions()).await, [last]);
        assert_eq!(read(*ben, Query::tag(tag())).await, [last, self.parent]);
        assert_eq!(read(*ben, Query::replies(self.parent)).await, []);
        let list = ListQuery::default();
        let ids = |posts: Vec<tideline::PagePost>| posts.iter().map(|post| post.id).collect::<Vec<_>>();
        assert_eq!(ids(engine.as_reader(*ben).likes(&list).await.unwrap().posts), [self.parent]);
        assert_eq!(ids(engine.as_reader(*ben).bookmarks(&list).await.unwrap().posts), []);
        let around = engine.as_reader(*ben).conversation(self.reply).await.unwrap();
        assert_eq!(around.ancestors.iter().map(|post| post.id).filter(|id| *id == post.id).count(), 0);
        assert_eq!(
            ids(engine.as_reader(*ben).posts(&[post.id, self.parent]).await.unwrap().posts),
            [self.parent]
        );
        assert_eq!(engine.as_reader(*ben).post(self.quote).await.unwrap().id, self.quote);
    }

    /// Nothing can be done with it.
    async fn is_not_there(&self) {
        let Self { engine, ben, eve, post, ada, .. } = self;
        let refused = [
            engine.as_reader(*ben).post(post.id).await.map(drop),
            engine.like(*eve, post.id).await.map(drop),
            engine.repost(*ben, post.id).await.map(drop),
            engine.as_reader(*ben).likers(post.id, &ListQuery::default()).await.map(drop),
            engine.as_reader(*ben).conversation(post.id).await.map(drop),
            engine.publish(*ben, &Draft::text("so").reply_to(*post)).await.map(drop),
            engine.as_reader(*ben).read(&Query::replies(post.id)).await.map(drop),
            engine.delete(*ben, post.id).await.map(drop),
        ];
        for (n, refused) in refused.into_iter().enumerate() {
            assert_eq!(refused.unwrap_err().kind(), ErrorKind::NotFound, "{n}");
        }
        let told = engine.stored().post(post.id).await.unwrap_err();
        assert!(told.kind() == ErrorKind::Internal && told.to_string().contains("delete"), "{told}");
        let edit = tideline::post::Edit { text: Some("?".into()), ..Default::default() };
        assert_eq!(engine.edit(*ada, post.id, &edit).await.unwrap_err().kind(), ErrorKind::Internal);
    }
}

pub(super) async fn fsck(engine: &Engine, repair: bool, drop_unreadable: bool) -> FsckReport {
    let pause = std::time::Duration::from_millis(50);
    let options = FsckOptions { repair, drop_unreadable, pause, ..FsckOptions::default() };
    engine.fsck(&options, &|_| {}).await.unwrap()
}

fn kinds(report: &FsckReport) -> Vec<FindingKind> {
    report.findings.keys().copied().collect()
}

#[tokio::test]
async fn a_post_that_can_t_be_read_is_one_missing_post_and_comes_back_whole() {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let _guard = metrics::set_default_local_recorder(&recorder);
    let left_out = || counted(snapshotter.snapshot(), "tideline_posts_unreadable_total", []);
    for wanted in ALL {
        let site = Site::new().await;
        let before = harm(&site.engine, site.post.id, wanted).await;
        site.shows_the_rest().await;
        assert!(left_out() > 0, "{wanted:?}");
        site.is_not_there().await;
        // Looked at, and not repaired unless somebody says so.
        for repair in [false, true] {
            assert_eq!(kinds(&fsck(&site.engine, repair, false).await), [Unreadable], "{wanted:?}");
        }
        let hidden =
            site.engine.moderate(site.post.id, Moderation { hidden: Some(true), sensitive: None }).await;
        assert_eq!(hidden.is_ok(), wanted == Harm::Visibility, "{hidden:?}");
        // A release that can read it finds all of it as it was: also the like, which a page of likes has met.
        let key = key_of(&site.engine, site.post.id).await;
        say(&site.engine, &key, "DEL", &[]).await;
        say(&site.engine, &key, "SET", &[&before]).await;
        let home = site.engine.as_reader(site.eve).read(&Query::home()).await.unwrap().ids();
        assert!(home.contains(&site.post.id), "{wanted:?}");
        let ties = site.engine.as_reader(site.ben).ties(&[site.post]).await.unwrap();
        assert!(ties[0].is_liked && ties[0].is_bookmarked, "{wanted:?}");
        drained(&site.engine).await;
        let report = fsck(&site.engine, false, false).await;
        assert!(report.findings.is_empty(), "{wanted:?}: {report:#?}");
    }
}

#[tokio::test]
async fn its_author_deletes_what_can_t_be_read_and_so_does_fsck_if_it_is_told_to() {
    for wanted in ALL {
        for by_fsck in [false, true] {
            let site = Site::new().await;
            harm(&site.engine, site.post.id, wanted).await;
            if by_fsck {
                assert!(fsck(&site.engine, true, true).await.is_clean(), "{wanted:?}");
            } else {
                site.engine.delete(site.ada, site.post.id).await.unwrap();
                // Deleted is deleted.
                site.engine.delete(site.ada, site.post.id).await.unwrap();
            }
            drained(&site.engine).await;
            site.shows_the_rest().await;
            assert_eq!(site.engine.stored().post(site.post.id).await.unwrap(), None, "{wanted:?}");
            assert_eq!(site.engine.stored().account(site.ada).await.unwrap().posts, 0, "{wanted:?}");
            // What it was on nobody could read any more: fsck takes that off.
            drop(fsck(&site.engine, true, false).await);
            let report = fsck(&site.engine, false, false).await;
            assert!(report.findings.keys().all(|kind| kind.is_harmless()), "{wanted:?}: {report:#?}");
        }
    }
}

/// Where its journal takes nothing nothing is done, and that is said.
#[tokio::test]
async fn what_can_t_be_read_is_not_deleted_half_way() {
    let site = Site::new().await;
    harm(&site.engine, site.post.id, Harm::Format).await;
    let key = key_of(&site.engine, site.post.id).await;
    let journal = [&key[..key.iter().position(|byte| *byte == b'}').unwrap() + 1], b"j"].concat();
    say(&site.engine, &journal, "SET", &[b"no journal"]).await;
    let error = site.engine.delete(site.ada, site.post.id).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Internal, "{error}");
    assert!(!say(&site.engine, &key, "GET", &[]).await.is_nil());
    assert_eq!(site.engine.stored().account(site.ada).await.unwrap().posts, 1);
    say(&site.engine, &journal, "DEL", &[]).await;
    site.engine.delete(site.ada, site.post.id).await.unwrap();
    site.shows_the_rest().await;
}

/// Of a later release, whose posts have their authors elsewhere.
#[tokio::test]
async fn what_a_journal_says_about_a_post_that_can_t_be_read_waits_for_who_can_read_it() {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let _guard = metrics::set_default_local_recorder(&recorder);
    let site = Site::new().await;
    let Site { engine, post, parent, reply, quote, ben, ada, .. } = &site;
    let (keys, buckets) = (engine.store().keys(), engine.store().keys().buckets());
    let key = key_of(engine, post.id).await;
    let before = harm(engine, post.id, Harm::Format).await;
    say(engine, &key, "SETRANGE", &[b"8", &[0xAA; 8]]).await;
    let harmed = say(engine, &key, "GET", &[]).await.bytes().unwrap().to_vec();

    // What it answers is looked at once more: somebody who is dead has left that. And what answers it goes.
    let carl = engine.stored().post(*reply).await.unwrap().unwrap().header().author;
    let bucket = buckets.of_account(ada.get());
    let journal = format!("{}{{{}}}j", keys.prefix(), buckets.tag(bucket));
    let mut entry = b"nobody..R".to_vec();
    for part in [post.id.get().to_be_bytes(), ada.get().to_be_bytes()] {
        entry.extend(part);
    }
    entry.push(b'r');
    for part in [parent.get().to_be_bytes(), carl.get().to_be_bytes()] {
        entry.extend(part);
    }
    say(engine, journal.as_bytes(), "HSET", &[b"an entry", &entry]).await;
    engine.delete(carl, *reply).await.unwrap();
    eventually("both are under way", async || engine.tasks() == 2).await;
    // Each task that fails in such a way is counted once.
    let mut failed = 0;
    eventually("both have failed", async || {
        failed += counted(snapshotter.snapshot(), "tideline_tasks_stuck_total", []);
        failed == 2
    })
    .await;
    assert_eq!(engine.tasks(), 2, "decided");
    assert_eq!(say(engine, &key, "GET", &[]).await.bytes().unwrap(), harmed);

    say(engine, &key, "SET", &[&before]).await;
    drained(engine).await;
    let replies = async |of| engine.as_reader(*ben).read(&Query::replies(of)).await.unwrap().ids();
    assert_eq!(replies(*parent).await, [post.id]);
    assert_eq!(replies(post.id).await, []);
    assert!(engine.stored().post(*quote).await.unwrap().is_some());
    let report = fsck(engine, false, false).await;
    assert!(report.findings.is_empty(), "{report:#?}");
}

#[tokio::test]
async fn an_account_is_buried_with_posts_that_can_t_be_read() {
    for wanted in ALL {
        let site = Site::new().await;
        harm(&site.engine, site.post.id, wanted).await;
        site.engine.delete_account(site.ada).await.unwrap();
        drained(&site.engine).await;
        let posts = all_keys(&site.engine).await;
        let left =
            posts.iter().filter(|key| letter_and_name(key) == ('w', &site.post.id.get().to_be_bytes()));
        assert_eq!(left.count(), 0, "{wanted:?}");
    }
}

/// A record of another type is an account that isn't there; a profile of another type says nothing.
#[tokio::test]
async fn an_account_that_can_t_be_read_is_one_missing_account() {
    let site = Site::new().await;
    let of = |letter: char| {
        let keys = site.engine.store().keys();
        let bucket = keys.buckets().of_account(site.ada.get());
        let mut key = format!("{}{{{}}}{letter}", keys.prefix(), keys.buckets().tag(bucket)).into_bytes();
        key.extend(site.ada.get().to_be_bytes());
        key
    };
    say(&site.engine, &of('a'), "DEL", &[]).await;
    say(&site.engine, &of('a'), "SET", &[b"?"]).await;
    let home = site.engine.as_reader(site.ben).read(&Query::home()).await.unwrap().ids();
    assert!(site.rest.iter().all(|id| home.contains(id)), "{home:?}");
    assert!(!home.contains(&site.post.id));
}
