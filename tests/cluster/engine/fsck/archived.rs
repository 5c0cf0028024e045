//! A tenant with an archive: what has left memory isn't taken for gone, and what is wrong between the two is found.

use std::collections::BTreeMap;

use tideline::FindingKind::*;
use tideline::archive::{ArchiveToken, ArchivedPost, Owner, OwnerChange, OwnerState, PostAsk, Prerequisite};
use tideline::cluster::{Command, Request};
use tideline::keys::slot_of_key;
use tideline::post::{Draft, Edit, PostRef};

use tideline::{ListMembership, NewAccount, PostTier};
use tideline_local_cluster::LocalPostgres;

use super::*;
use crate::engine::archive::{Archived, publish, walk};
use crate::engine::{all_keys, archive_away, eventually, letter_and_name, small};

/// What accounts follow, like, keep and have reposted, and what names them, as it lies there.
async fn sets(engine: &Engine) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let mut found = BTreeMap::new();
    for key in all_keys(engine).await {
        if matches!(letter_and_name(&key), ('s' | 't' | 'p' | 'q' | 'h', _)) {
            let dump = Request::read(slot_of_key(&key), Command::new("DUMP").arg(&key));
            let dump = engine.store().router().call(dump).await.unwrap();
            found.insert(key, dump.bytes().unwrap().to_vec());
        }
    }
    found
}

/// People who have liked, kept, answered, reposted and quoted posts that then left memory, some of which came back, or
/// were deleted.
async fn lived_in(archived: &Archived) -> (Vec<AccountId>, Vec<PostId>) {
    let engine = &archived.engine;
    let people = accounts(engine, 5).await;
    let [ada, ben, cid, dan, eve] = people[..] else { panic!("five were made") };
    for reader in [ben, cid, eve] {
        engine.follow(reader, ada).await.unwrap();
        engine.warm(reader).await.unwrap();
    }
    let mut posts = Vec::new();
    for n in 0..40 {
        let draft = match n % 5 {
            0 => Draft::text("of #tides").mentions([ben]).hashtags(["tides"]),
            _ => Draft::text(format!("post {n}")),
        };
        posts.push(engine.publish(ada, &draft).await.unwrap().id);
    }
    let at = |n: usize| PostRef { id: posts[n], author: ada };
    for liker in [ben, cid, dan] {
        for n in [1, 2, 3, 30] {
            engine.like(liker, posts[n]).await.unwrap();
        }
    }
    // Others than those that somebody who is deleted has liked: these come back.
    engine.like(ben, posts[12]).await.unwrap();
    engine.publish(eve, &Draft::text("so").reply_to(at(13))).await.unwrap();
    engine.bookmark(eve, posts[2]).await.unwrap();
    engine.bookmark(eve, posts[38]).await.unwrap();
    for author in [ben, eve, dan] {
        engine.publish(author, &Draft::text("so").reply_to(at(3))).await.unwrap();
        engine.repost(author, posts[4]).await.unwrap();
        engine.publish(author, &Draft::text("see").quoting(at(5))).await.unwrap();
    }
    for author in [ben, dan] {
        publish(engine, author, 30).await;
    }
    // 12 of ada, ben and dan each, 4 of eve.
    engine.archive_all().await.unwrap();
    archived.left_in_memory(40).await;
    // What has left is liked, kept and answered, and comes back.
    engine.like(eve, posts[3]).await.unwrap();
    engine.unlike(ben, posts[1]).await.unwrap();
    engine.bookmark(cid, posts[6]).await.unwrap();
    engine.repost(cid, posts[7]).await.unwrap();
    engine
        .edit(ada, posts[10], &Edit { text: Some("of #tides, late".into()), ..Edit::default() })
        .await
        .unwrap();
    engine.delete(ada, posts[8]).await.unwrap();
    engine.delete(ada, posts[35]).await.unwrap();
    engine.delete_account(dan).await.unwrap();
    drained(engine).await;
    engine.count_now().await;
    (people, posts)
}

#[tokio::test]
async fn nothing_is_found_in_a_tenant_with_posts_in_both_tiers_and_a_repair_changes_nothing() {
    for archived in Archived::each().await {
        let engine = &archived.engine;
        let (_, posts) = lived_in(&archived).await;
        let (sets_before, memory_before) = (sets(engine).await, archived.in_memory().await);
        let report = fsck(engine, true).await;
        assert!(report.findings.is_empty() && report.in_flight == 0, "{report:#?}");
        assert!(report.is_clean() && report.accounts == 5, "{report:#?}");
        let count = report.archived.unwrap();
        // Of ada 28 but for the one that was deleted, of ben 21; dan's are gone.
        assert_eq!((count.owners, count.posts), (3, 48), "{report:#?}");
        assert!(count.bytes > 84 * 48, "{report:#?}");
        let memory_after = archived.in_memory().await;
        assert!(memory_after.is_subset(&memory_before), "it has brought something back");
        // Once what came back has left again.
        eventually("they leave again", async || {
            engine.archive_due().await.unwrap();
            !archived.in_memory().await.contains(&posts[3].get())
        })
        .await;
        let report = fsck(engine, true).await;
        assert!(report.findings.is_empty() && report.in_flight == 0, "{report:#?}");
        let mut of_accounts = (sets_before, sets(engine).await);
        let is_list = |name: &[u8]| name.windows(2).any(|part| part == b"}s") && name.contains(&b'#');
        of_accounts.0.retain(|key, _| !is_list(key));
        of_accounts.1.retain(|key, _| !is_list(key));
        assert_eq!(of_accounts.0, of_accounts.1);
    }
}

/// An author of 40 posts, of which 12 are in memory, and a reader.
pub(super) async fn author_and_reader() -> (Archived, AccountId, AccountId, Vec<PostId>) {
    let archived = Archived::new(small()).await;
    let [ada, ben] = accounts(&archived.engine, 2).await[..] else { panic!("two were made") };
    let posts = publish(&archived.engine, ada, 40).await;
    archived.left_in_memory(12).await;
    (archived, ada, ben, posts)
}

async fn agenda(engine: &Engine, of: AccountId, command: &str, arguments: &[&[u8]]) -> Reply {
    raw(engine, bucket_of(engine, of), ('F', b""), command, arguments).await
}

fn owner_of(engine: &Engine, account: AccountId) -> Owner {
    Owner { bucket: engine.store().keys().buckets().of_account(account.get()), account }
}

async fn state_of(archived: &Archived, account: AccountId) -> Option<OwnerState> {
    archived.archive.owners(&[owner_of(&archived.engine, account)]).await.unwrap()[0]
}

pub(super) async fn has_row(archived: &Archived, post: PostRef) -> bool {
    let bucket = owner_of(&archived.engine, post.author).bucket;
    let ask = PostAsk { bucket, id: post.id, owner: Some(post.author) };
    archived.archive.posts(&[ask]).await.unwrap()[0].post.is_some()
}

/// A change behind the engine's back, in which nothing changes yet.
pub(super) async fn change_of(archived: &Archived, account: AccountId) -> OwnerChange {
    let number = state_of(archived, account).await.map_or(0, |state| state.token.number);
    OwnerChange {
        owner: owner_of(&archived.engine, account),
        token: ArchiveToken { number: number + 1, nonce: [7; 8] },
        needs: Prerequisite::default(),
        upto: PostId::from_u64(0).unwrap(),
        posts: Vec::new(),
        erased: Vec::new(),
        buries: false,
    }
}

async fn store(archived: &Archived, post: PostRef, stored: Vec<u8>) {
    let posts = vec![(ArchivedPost::new(post.id, post.author, 1, stored), Vec::new())];
    let change = OwnerChange { posts, ..change_of(archived, post.author).await };
    assert_eq!(archived.archive.change(&[change]).await.unwrap(), [Ok(())]);
}

#[tokio::test]
async fn a_like_of_an_archived_post_is_compared_with_the_list_that_the_archive_has() {
    let (archived, ada, ben, posts) = author_and_reader().await;
    let engine = &archived.engine;
    let likes = engine.store().sets().of_account::<PostRef>(ben, "likes").unwrap();
    let at = |n: usize| PostRef { id: posts[n], author: ada };
    likes.add(&[(at(3), 1_000.0)]).await.unwrap();
    heals(engine, &[TieUnlisted]).await;
    let likers = engine.as_reader(ada).likers(posts[3], &Default::default()).await.unwrap();
    assert_eq!(likers.accounts.iter().map(|account| account.id).collect::<Vec<_>>(), [ben]);
    // Of one that is neither in memory nor in the archive.
    engine.delete(ada, posts[4]).await.unwrap();
    assert!(fsck(engine, false).await.findings.is_empty());
    likes.add(&[(at(4), 1_000.0)]).await.unwrap();
    heals(engine, &[TieOfNothing]).await;
    assert_eq!(likes.score(&at(4)).await.unwrap(), None);
}

#[tokio::test]
async fn an_archived_post_in_memory_that_no_agenda_names_is_noted_and_leaves() {
    let (archived, ada, ben, posts) = author_and_reader().await;
    let engine = &archived.engine;
    let entry = [posts[3].get().to_be_bytes(), ada.get().to_be_bytes()].concat();
    // The instance moves what is due by itself, too: until it has not come between.
    eventually("a post stays", async || {
        engine.like(ben, posts[3]).await.unwrap();
        drained(engine).await;
        let was_noted = agenda(engine, ada, "ZREM", &[&entry]).await.int().unwrap() == 1;
        engine.archive_due().await.unwrap();
        let stays = was_noted && archived.in_memory().await.contains(&posts[3].get());
        if !stays {
            engine.unlike(ben, posts[3]).await.unwrap();
        }
        stays
    })
    .await;
    let report = fsck(engine, false).await;
    assert_eq!(kinds(&report), [PostUnnoted], "{report:#?}");
    heals(engine, &[PostUnnoted]).await;
    eventually("it leaves", async || {
        engine.archive_due().await.unwrap();
        !archived.in_memory().await.contains(&posts[3].get())
    })
    .await;
    assert!(fsck(engine, false).await.findings.is_empty());
}

#[tokio::test]
async fn entries_of_an_agenda_that_are_nobodys_go_and_unknown_ones_stay() {
    let (archived, ada, ..) = author_and_reader().await;
    let engine = &archived.engine;
    let later = b"9000000000000".as_slice();
    let nobody = 77u64.to_be_bytes();
    let of_nobody = [&b"E"[..], &nobody].concat();
    let post_of_nobody = [nobody, nobody].concat();
    agenda(engine, ada, "ZADD", &[later, &nobody, later, &of_nobody, later, &post_of_nobody]).await;
    let report = fsck(engine, false).await;
    assert_eq!((kinds(&report), report.findings[&AgendaNeedless].found), (vec![AgendaNeedless], 3));
    assert!(report.is_clean(), "they go once they are due: {report:#?}");
    heals(engine, &[AgendaNeedless]).await;
    agenda(engine, ada, "ZADD", &[later, b"of a later release"]).await;
    let report = fsck(engine, true).await;
    assert_eq!((kinds(&report), report.findings[&EntryUnknown].left()), (vec![EntryUnknown], 1));
    assert_eq!(agenda(engine, ada, "ZREM", &[b"of a later release"]).await.int().unwrap(), 1);
}

#[tokio::test]
async fn of_an_archive_that_is_behind_it_is_told_and_nothing_that_it_could_not_tell_is_repaired() {
    let (archived, ada, ben, posts) = author_and_reader().await;
    let engine = &archived.engine;
    engine.bookmark(ben, posts[4]).await.unwrap();
    engine.like(ben, posts[3]).await.unwrap();
    let answer = Draft::text("so").reply_to(PostRef { id: posts[5], author: ada });
    engine.publish(ben, &answer).await.unwrap();
    archived.left_in_memory(13).await;
    // What the outbox says was settled in the archive, a copy of that lacks.
    let first = raw_of(engine, ada, 'o', "LINDEX", &[b"0"]).await.bytes().unwrap().to_vec();
    let ahead = [b"A", &9_999u64.to_be_bytes()[..], &first[9..]].concat();
    raw_of(engine, ada, 'o', "LSET", &[b"0", &ahead]).await;
    let before = sets(engine).await;
    let report = fsck(engine, true).await;
    assert_eq!((kinds(&report), report.findings[&ArchiveBehind].left()), (vec![ArchiveBehind], 1));
    let alone = FsckOptions { archive_only: true, ..options(true) };
    let side = engine.fsck(&alone, &|_| {}).await.unwrap();
    // What accounts like it doesn't look at.
    assert_eq!((side.findings, side.untold), (report.findings.clone(), 0));
    let told = &report.findings[&ArchiveBehind].examples[0];
    assert!(told.contains(&format!("account {ada} it has token")) && told.contains("token 9999"), "{told}");
    // The like, the bookmark, and the answer.
    assert!(report.untold >= 3 && !report.is_clean(), "{report:#?}");
    assert_eq!(sets(engine).await, before);
    raw_of(engine, ada, 'o', "LSET", &[b"0", &first]).await;
    let report = fsck(engine, false).await;
    assert!(report.findings.is_empty() && report.is_clean(), "{report:#?}");
    // One that has lost these posts must not be taken for one in which they were deleted.
    let lost = OwnerChange { erased: posts[3..6].to_vec(), ..change_of(&archived, ada).await };
    assert_eq!(archived.archive.change(&[lost]).await.unwrap(), [Ok(())]);
    raw_of(engine, ada, 'o', "LSET", &[b"0", &ahead]).await;
    let report = fsck(engine, true).await;
    assert_eq!(kinds(&report), [ArchiveBehind], "{report:#?}");
    assert_eq!(sets(engine).await, before);
}

#[tokio::test]
async fn while_the_archive_is_away_that_is_told_and_nothing_is_repaired_that_it_could_tell() {
    let mut server = LocalPostgres::up().await.unwrap();
    let archived = archive_away::archived(&server).await;
    let engine = &archived.engine;
    let (people, posts) = lived_in(&archived).await;
    let likes = engine.store().sets().of_account::<PostRef>(people[1], "likes").unwrap();
    let liked = PostRef { id: posts[2], author: people[0] };
    assert!(likes.score(&liked).await.unwrap().is_some());
    server.kill().await.unwrap();
    let before = sets(engine).await;
    raw_of(engine, people[0], 'a', "HSET", &[b"nf", b"9"]).await;
    let report = fsck(engine, true).await;
    // What memory can tell is put right all the same.
    assert_eq!((kinds(&report), report.findings[&CountWrong].left()), (vec![CountWrong], 0), "{report:#?}");
    assert!(report.untold > 0 && !report.is_clean(), "{report:#?}");
    assert_eq!(sets(engine).await, before);
    let standing = engine.inspect(people[0]).await.unwrap().archive.unwrap();
    assert!(standing.owner_error.is_some() && standing.owner.is_none() && standing.upto.is_some());
    assert_eq!(engine.inspect_post(posts[39]).await.unwrap().tier, Some(PostTier::MemoryAtLeast));
    let answer = engine.inspect(people[4]).await.unwrap().outbox.newest[0].id;
    let listings = engine.inspect_post(answer).await.unwrap().listings;
    assert!(listings.iter().any(|listing| listing.place == ListMembership::Untold), "{listings:?}");
    server.start().await.unwrap();
    eventually("the archive answers again", async || archived.archive.name().await.is_ok()).await;
    let report = fsck(engine, true).await;
    assert!(report.findings.is_empty() && report.is_clean(), "{report:#?}");
}

#[tokio::test]
async fn what_the_archive_has_of_nobody_and_what_nobody_can_read_is_told_and_left_there() {
    let (archived, ada, _, posts) = author_and_reader().await;
    let engine = &archived.engine;
    let buckets = engine.store().keys().buckets();
    let nobody = AccountId::new(77).unwrap();
    let post_of = |author: AccountId, sequence| {
        let (bucket, ms) = (buckets.of_account(author.get()), posts[39].unix_ms() + 1_000);
        PostRef { id: PostId::new(buckets, bucket, ms, sequence).unwrap(), author }
    };
    let [of_nobody, unlisted] = [post_of(nobody, 1), post_of(ada, 2)];
    store(&archived, of_nobody, b"a post".to_vec()).await;
    store(&archived, unlisted, b"a post".to_vec()).await;
    for repair in [false, true] {
        let report = fsck(engine, repair).await;
        assert_eq!(kinds(&report), [ArchivedOfNobody, ArchivedUnlisted], "{report:#?}");
        assert!(report.findings.values().all(|f| f.left() == 1) && report.is_clean(), "{report:#?}");
    }
    assert!(has_row(&archived, of_nobody).await && has_row(&archived, unlisted).await);
}

#[tokio::test]
async fn a_post_above_its_floor_that_only_the_archive_has_comes_back() {
    let (archived, ada, _, posts) = author_and_reader().await;
    let engine = &archived.engine;
    let bucket = bucket_of(engine, ada);
    let newest = PostRef { id: posts[39], author: ada };
    let key = newest.id.get().to_be_bytes();
    let stored = raw(engine, bucket, ('w', &key), "GET", &[]).await.bytes().unwrap().to_vec();
    store(&archived, newest, stored.clone()).await;
    assert!(fsck(engine, false).await.findings.is_empty(), "as a mover leaves it that is at it");
    raw(engine, bucket, ('w', &key), "UNLINK", &[]).await;
    // One that nobody has is gone.
    raw(engine, bucket, ('w', &posts[38].get().to_be_bytes()), "UNLINK", &[]).await;
    heals(engine, &[PostGone, FloorLies]).await;
    assert_eq!(raw_of(engine, ada, 'o', "LINDEX", &[b"-1"]).await.bytes().unwrap(), key);
    assert_eq!(raw(engine, bucket, ('w', &key), "GET", &[]).await.bytes().unwrap(), stored);
    let read = walk(engine, ada, ada, 100).await;
    assert!(read.contains(&posts[39]) && !read.contains(&posts[38]) && read.len() == 39);
}

#[tokio::test]
async fn a_post_that_was_deleted_above_its_floor_and_that_the_archive_has_does_not_come_back() {
    let (archived, ada, _, posts) = author_and_reader().await;
    let engine = &archived.engine;
    // As a mover leaves it that has died.
    let key = posts[39].get().to_be_bytes();
    let stored = raw(engine, bucket_of(engine, ada), ('w', &key), "GET", &[]).await.bytes().unwrap().to_vec();
    store(&archived, PostRef { id: posts[39], author: ada }, stored).await;
    engine.delete(ada, posts[39]).await.unwrap();
    drained(engine).await;
    let report = fsck(engine, true).await;
    assert!(report.findings.is_empty(), "{report:#?}");
    assert!(!walk(engine, ada, ada, 100).await.contains(&posts[39]));
}

/// H224: as an import has left it that couldn't ask the archive, or a failover that gave an id twice.
#[tokio::test]
async fn a_post_under_an_id_that_the_archive_has_of_another_author_comes_into_no_outbox() {
    let (archived, ada, _, posts) = author_and_reader().await;
    let engine = &archived.engine;
    let bens_id = (1..).filter_map(|id| AccountId::new(id).ok());
    let bens_id = bens_id.filter(|id| *id != ada).find(|id| bucket_of(engine, *id) == bucket_of(engine, ada));
    let ben = engine.create_account(NewAccount { id: bens_id, ..NewAccount::default() }).await.unwrap().value;
    let [twice, bens] = [posts[3], publish(engine, ben, 1).await[0]].map(|id| id.get().to_be_bytes());
    let stored = raw(engine, bucket_of(engine, ben), ('w', &bens), "GET", &[]).await;
    raw(engine, bucket_of(engine, ada), ('w', &twice), "SET", &[stored.bytes().unwrap()]).await;
    for repair in [false, true] {
        let report = fsck(engine, repair).await;
        assert_eq!((kinds(&report), report.findings[&IdTwice].left()), (vec![IdTwice], 1), "{report:#?}");
        assert!(!report.is_clean());
    }
    let outbox = raw_of(engine, ben, 'o', "LRANGE", &[b"1", b"-1"]).await.into_array().unwrap();
    assert_eq!(outbox.iter().map(|id| id.bytes().unwrap()).collect::<Vec<_>>(), [bens]);
    assert!(has_row(&archived, PostRef { id: posts[3], author: ada }).await);
}

#[tokio::test]
async fn what_is_left_in_the_archive_of_a_deleted_account_goes() {
    let (archived, ada, ben, posts) = author_and_reader().await;
    let engine = &archived.engine;
    engine.like(ben, posts[3]).await.unwrap();
    archived.left_in_memory(12).await;
    // As if its burial had ended without the archive.
    raw_of(engine, ada, 'a', "HSET", &[b"s", b"d"]).await;
    raw_of(engine, ada, 'a', "HDEL", &[b"k"]).await;
    let report = fsck(engine, false).await;
    assert_eq!(report.findings[&ArchivedAfterBurial].left(), 1, "{report:#?}");
    fsck(engine, true).await;
    drained(engine).await;
    let report = fsck(engine, true).await;
    assert!(report.is_clean(), "{report:#?}");
    assert!(state_of(&archived, ada).await.unwrap().is_buried);
    assert!(!has_row(&archived, PostRef { id: posts[3], author: ada }).await);
}
