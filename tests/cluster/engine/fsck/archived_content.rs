//! What posts that have left memory name, who stands on their lists, and how many they are.

use tideline::FindingKind::*;
use tideline::archive::{ArchivedPost, OwnerChange, PostAsk};
use tideline::post::{Draft, PostRef};

use super::archived::{author_and_reader, change_of};
use super::*;
use crate::engine::archive::{Archived, publish};
use crate::engine::eventually;

/// Where the numbers of replies, reposts, quotes and likes stand in a post.
const COUNTS: std::ops::Range<usize> = 64..80;

/// A post as the archive has it.
async fn row(archived: &Archived, post: PostRef) -> ArchivedPost {
    let bucket = archived.engine.store().keys().buckets().of_account(post.author.get());
    let ask = PostAsk { bucket, id: post.id, owner: Some(post.author) };
    archived.archive.posts(&[ask]).await.unwrap().remove(0).post.unwrap()
}

/// Has the archive forget a post behind the engine's back.
async fn forget(archived: &Archived, post: PostRef) {
    let change = OwnerChange { erased: vec![post.id], ..change_of(archived, post.author).await };
    assert_eq!(archived.archive.change(&[change]).await.unwrap(), [Ok(())]);
}

async fn posts_told(engine: &Engine, account: AccountId) -> u64 {
    engine.stored().account(account).await.unwrap().posts
}

#[tokio::test]
async fn lists_in_memory_lack_no_post_that_has_left_it() {
    let (archived, ada, ben, posts) = author_and_reader().await;
    let engine = &archived.engine;
    let [answered, reposted] = [posts[38], posts[39]].map(|id| PostRef { id, author: ada });
    let answer = Draft::text("so, @ada").reply_to(answered).mentions([ada]);
    let answer = PostRef { id: engine.publish(ben, &answer).await.unwrap().id, author: ben };
    let repost = engine.repost(ben, reposted.id).await.unwrap().id;
    publish(engine, ben, 40).await;
    archived.left_in_memory(24).await;
    let in_memory = archived.in_memory().await;
    assert!(in_memory.contains(&answered.id.get()) && !in_memory.contains(&answer.id.get()));
    let report = fsck(engine, false).await;
    assert!(report.findings.is_empty() && report.is_clean(), "{report:#?}");

    let sets = engine.store().sets();
    let replies = sets.of_post::<PostRef>(answered.id, "replies").unwrap();
    replies.remove(&[answer]).await.unwrap();
    heals(engine, &[ListingMissing, PostCountWrong]).await;
    assert!(replies.score(&answer).await.unwrap().is_some());
    let member = [answer.id.get().to_be_bytes(), ben.to_bytes()].concat();
    raw(engine, bucket_of(engine, ada), ('s', &set_name("mentions", ada)), "ZREM", &[&member]).await;
    heals(engine, &[ListingMissing]).await;
    let noted = sets.of_account::<PostRef>(ben, "reposts").unwrap();
    noted.remove(&[reposted]).await.unwrap();
    heals(engine, &[RepostUnnoted]).await;
    assert!(noted.score(&reposted).await.unwrap().is_some());
    assert!(!archived.in_memory().await.contains(&repost.get()), "nothing had to come back");
    let side = FsckOptions { archive_only: true, ..options(false) };
    noted.remove(&[reposted]).await.unwrap();
    assert!(engine.fsck(&side, &|_| {}).await.unwrap().findings.is_empty(), "it looks at where posts lie");
}

#[tokio::test]
async fn nobody_stands_on_a_list_that_has_left_memory_who_does_not_say_so() {
    let (archived, ada, ben, posts) = author_and_reader().await;
    let engine = &archived.engine;
    let of = PostRef { id: posts[3], author: ada };
    engine.like(ben, of.id).await.unwrap();
    let answer = engine.publish(ben, &Draft::text("so").reply_to(of)).await.unwrap().id;
    let answer = PostRef { id: answer, author: ben };
    publish(engine, ben, 40).await;
    archived.left_in_memory(24).await;
    let report = fsck(engine, false).await;
    assert!(report.findings.is_empty() && report.is_clean(), "{report:#?}");

    engine.store().sets().of_account::<PostRef>(ben, "likes").unwrap().remove(&[of]).await.unwrap();
    heals(engine, &[TieNeedless]).await;
    assert!(engine.as_reader(ada).likers(of.id, &Default::default()).await.unwrap().accounts.is_empty());
    // It has come back for that, and leaves again.
    archived.left_in_memory(24).await;
    assert_eq!(engine.stored().post(of.id).await.unwrap().unwrap().header().replies, 1);
    forget(&archived, answer).await;
    heals(engine, &[CountWrong, ListingNeedless]).await;
    archived.left_in_memory(24).await;
    assert_eq!(engine.stored().post(of.id).await.unwrap().unwrap().header().replies, 0);

    engine.like(ben, of.id).await.unwrap();
    archived.left_in_memory(24).await;
    let mut post = row(&archived, of).await;
    post.stored[COUNTS].copy_from_slice(&[9; 16]);
    let change = OwnerChange { posts: vec![(post, Vec::new())], ..change_of(&archived, ada).await };
    assert_eq!(archived.archive.change(&[change]).await.unwrap(), [Ok(())]);
    heals(engine, &[PostCountWrong]).await;
    let header = *engine.stored().post(of.id).await.unwrap().unwrap().header();
    assert_eq!((header.replies, header.reposts, header.quotes, header.likes), (0, 0, 0, 1));
}

#[tokio::test]
async fn posts_that_have_left_memory_are_counted_too() {
    let (archived, ada, ben, posts) = author_and_reader().await;
    let engine = &archived.engine;
    engine.delete(ada, posts[4]).await.unwrap();
    engine.delete(ada, posts[35]).await.unwrap();
    archived.left_in_memory(11).await;
    assert_eq!(posts_told(engine, ada).await, 38);
    for wrong in [b"37", b"39"] {
        raw_of(engine, ada, 'a', "HSET", &[b"p", wrong]).await;
        heals(engine, &[CountWrong]).await;
        assert_eq!(posts_told(engine, ada).await, 38);
    }
    // So many that its outbox may have been cut before the archive began.
    raw_of(engine, ada, 'a', "HSET", &[b"p", b"200001"]).await;
    let report = fsck(engine, true).await;
    assert!(report.findings.is_empty(), "{report:#?}");
    raw_of(engine, ada, 'a', "HSET", &[b"p", b"38"]).await;
    // One that the archive has lost was never deleted, and nobody has it any more.
    forget(&archived, PostRef { id: posts[5], author: ada }).await;
    heals(engine, &[CountWrong]).await;
    assert_eq!(posts_told(engine, ada).await, 37);
    // One that somebody was deleting, who has died once the archive had forgotten it: it stays. The instance moves what
    // is due by itself, too: until it has not come between.
    let half = PostRef { id: posts[6], author: ada };
    let entry = [half.id.get().to_be_bytes(), ada.to_bytes()].concat();
    eventually("it is in memory alone", async || {
        engine.like(ben, half.id).await.unwrap();
        drained(engine).await;
        let agenda = async |command, arguments: &[&[u8]]| {
            raw(engine, bucket_of(engine, ada), ('F', b""), command, arguments).await
        };
        agenda("ZADD", &[b"XX", b"9000000000000", &entry]).await;
        let stays = !agenda("ZSCORE", &[&entry]).await.is_nil();
        if !stays {
            engine.unlike(ben, half.id).await.unwrap();
        }
        stays && archived.in_memory().await.contains(&half.id.get())
    })
    .await;
    forget(&archived, half).await;
    let report = fsck(engine, true).await;
    assert!(report.findings.is_empty() && report.is_clean(), "{report:#?}");
    assert_eq!(posts_told(engine, ada).await, 37);
}
