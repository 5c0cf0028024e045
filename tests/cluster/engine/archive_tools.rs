//! Looking at where posts lie, and bringing them back by hand.

use std::collections::BTreeSet;

use tideline::post::{Draft, PostRef};
use tideline::{AccountId, Engine, ErrorKind, ListMembership, PostId, PostTier, RestoredPosts};

use super::archive::{Archived, publish};
use super::{accounts, drained, eventually, small};

/// Two people, and 40 posts of the first, of which 12 are in memory and one that isn't is liked.
async fn lived_in() -> (Archived, AccountId, AccountId, Vec<PostId>) {
    let archived = Archived::new(small()).await;
    let [ada, ben] = accounts(&archived.engine, 2).await[..] else { panic!("two were made") };
    let posts = publish(&archived.engine, ada, 40).await;
    archived.engine.like(ben, posts[3]).await.unwrap();
    archived.left_in_memory(12).await;
    (archived, ada, ben, posts)
}

async fn kind_of(refused: impl Future<Output = tideline::Result<RestoredPosts>>) -> ErrorKind {
    refused.await.unwrap_err().kind()
}

#[tokio::test]
async fn posts_of_an_author_come_back_the_newest_first_and_leave_again() {
    let (archived, ada, ben, posts) = lived_in().await;
    let engine = &archived.engine;
    let newest: BTreeSet<u64> = posts[23..].iter().map(|id| id.get()).collect();
    // The instance moves what is due by itself, too: until it has not come between.
    eventually("the newest five are back", async || {
        let restored = engine.restore_newest(ada, 5).await.unwrap();
        restored == RestoredPosts { back: 5, ..RestoredPosts::default() }
            && archived.in_memory().await == newest
    })
    .await;
    engine.delete(ada, posts[8]).await.unwrap();
    let all = [posts[3], posts[39], posts[8]];
    let restored = engine.restore_archived(ada, &all).await.unwrap();
    assert_eq!(restored, RestoredPosts { back: 1, were_there: 1, missing: vec![posts[8]] });
    assert_eq!(engine.stored().post(posts[3]).await.unwrap().unwrap().header().likes, 1);
    // Others' are not its own.
    let others = engine.restore_archived(ben, &[posts[4]]).await.unwrap();
    assert_eq!(others, RestoredPosts { missing: vec![posts[4]], ..RestoredPosts::default() });
    archived.left_in_memory(12).await;
    // More than there are: all but those that are there.
    assert_eq!(engine.restore_newest(ada, 1_000).await.unwrap().back, 27);
    assert_eq!(engine.restore_newest(ben, 5).await.unwrap(), RestoredPosts::default());
    archived.left_in_memory(12).await;
}

#[tokio::test]
async fn a_restore_has_a_bound_and_needs_an_archive_an_account_and_somebody_who_may_write() {
    let (archived, ada, ben, posts) = lived_in().await;
    let engine = &archived.engine;
    assert_eq!(kind_of(engine.restore_newest(ada, 1_001)).await, ErrorKind::Invalid);
    assert_eq!(kind_of(engine.restore_archived(ada, &[posts[3]; 1_001])).await, ErrorKind::Invalid);
    assert_eq!(kind_of(engine.restore_newest(AccountId::new(77).unwrap(), 1)).await, ErrorKind::NotFound);
    engine.delete_account(ben).await.unwrap();
    assert_eq!(kind_of(engine.restore_newest(ben, 1)).await, ErrorKind::NotFound);
    let observer = Engine::builder().store(archived.options.clone()).archive(archived.archive.clone());
    let observer = observer.observe().await.unwrap();
    assert_eq!(kind_of(observer.restore_newest(ada, 1)).await, ErrorKind::Unavailable);
    let without = super::engine().await;
    let eve = accounts(&without, 1).await[0];
    assert_eq!(kind_of(without.restore_newest(eve, 1)).await, ErrorKind::Invalid);
}

#[tokio::test]
async fn an_inspection_tells_where_posts_lie_and_what_both_sides_say_of_their_author() {
    let (archived, ada, ben, posts) = lived_in().await;
    let engine = &archived.engine;
    let standing = engine.inspect(ada).await.unwrap().archive.unwrap();
    let owner = standing.owner.unwrap();
    assert_eq!((standing.upto, owner.upto, owner.is_buried), (Some(posts[27]), posts[27], false));
    assert!(owner.token >= standing.settled && standing.token >= owner.token && standing.settled > 0);
    assert_eq!((standing.waiting, standing.looked_at_ms, standing.unsettled), (0, None, 0), "{standing:?}");
    assert_eq!((standing.warm.as_slice(), standing.owner_error), ([].as_slice(), None));
    publish(engine, ada, 2).await;
    assert_eq!(engine.inspect(ada).await.unwrap().archive.unwrap().waiting, 2);
    let standing = engine.inspect(ben).await.unwrap().archive.unwrap();
    assert_eq!((standing.upto, standing.token, standing.owner), (None, 0, None));

    let hot = engine.inspect_post(posts[39]).await.unwrap();
    assert_eq!(hot.tier, Some(PostTier::Memory));
    let cold = engine.inspect_post(posts[3]).await.unwrap();
    assert_eq!(cold.tier, Some(PostTier::Archive));
    let likes = cold.lists.iter().find(|list| list.list == "likes").unwrap();
    assert_eq!((likes.said, likes.members), (1, 1));
    eventually("a post lies in both", async || {
        engine.like(ben, posts[5]).await.unwrap();
        drained(engine).await;
        let warm = engine.inspect(ada).await.unwrap().archive.unwrap().warm;
        let tier = engine.inspect_post(posts[5]).await.unwrap().tier;
        engine.unlike(ben, posts[5]).await.unwrap();
        warm == [posts[5]] && tier == Some(PostTier::Both)
    })
    .await;
    let answer = Draft::text("so").reply_to(PostRef { id: posts[6], author: ada });
    let answer = engine.publish(ben, &answer).await.unwrap().id;
    archived.left_in_memory(13).await;
    let listings = engine.inspect_post(answer).await.unwrap().listings;
    assert_eq!(listings.iter().map(|listing| listing.place).collect::<Vec<_>>(), [ListMembership::On]);
    let without = super::engine().await;
    let eve = accounts(&without, 1).await[0];
    let post = publish(&without, eve, 1).await[0];
    assert_eq!(without.inspect(eve).await.unwrap().archive, None);
    assert_eq!(without.inspect_post(post).await.unwrap().tier, None);
}
