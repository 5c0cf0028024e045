//! What a user does first.

use tideline::post::{Draft, Edit, PostRef, Visibility};
use tideline::{AccountState, AccountUpdate, ErrorKind, FollowOutcome, Query};

use super::{accounts, drained, engine, walk_home};

#[tokio::test]
async fn a_post_shows_at_its_author_and_its_followers_at_once() {
    let engine = engine().await;
    let people = accounts(&engine, 3).await;
    assert_eq!(engine.follow(people[1], people[0]).await.unwrap().value, FollowOutcome::Following);
    let mut ids = Vec::new();
    for n in 0..50 {
        let published = engine.publish(people[0], &Draft::text(format!("post {n}"))).await.unwrap();
        ids.insert(0, published.id);
        assert_eq!(
            engine.as_reader(people[0]).read(&Query::home().limit(1)).await.unwrap().ids(),
            [published.id]
        );
    }
    drained(&engine).await;
    assert_eq!(walk_home(&engine, people[1], 7).await, ids);
    assert_eq!(walk_home(&engine, people[0], 20).await, ids);
    assert_eq!(walk_home(&engine, people[2], 20).await, []);
    engine.unfollow(people[1], people[0]).await.unwrap();
    assert_eq!(walk_home(&engine, people[1], 20).await, []);
    engine.follow(people[1], people[0]).await.unwrap();
    assert_eq!(walk_home(&engine, people[1], 20).await, ids);
}

#[tokio::test]
async fn posts_of_a_spread_author_reach_everybody() {
    let engine = engine().await;
    let people = accounts(&engine, 80).await;
    for reader in &people[1..] {
        engine.follow(*reader, people[0]).await.unwrap();
        engine.warm(*reader).await.unwrap();
    }
    drained(&engine).await;
    let mut ids = Vec::new();
    for n in 0..30 {
        let mut published = engine.publish(people[0], &Draft::text(format!("post {n}"))).await.unwrap();
        let progress = published.delivery.all().await.unwrap();
        assert_eq!((progress.delivered, progress.skipped), (79, 0));
        ids.insert(0, published.id);
    }
    for reader in &people[1..] {
        assert_eq!(walk_home(&engine, *reader, 11).await, ids);
    }
}

#[tokio::test]
async fn edits_deletes_and_tokens() {
    let engine = engine().await;
    let people = accounts(&engine, 2).await;
    engine.follow(people[1], people[0]).await.unwrap();
    let draft = Draft::text("first").token("once");
    let first = engine.publish(people[0], &draft).await.unwrap();
    let again = engine.publish(people[0], &draft).await.unwrap();
    assert_eq!((again.id, again.is_repeat), (first.id, true));
    let edit = Edit { text: Some("second".into()), ..Edit::default() };
    assert_eq!(engine.edit(people[1], first.id, &edit).await.unwrap_err().kind(), ErrorKind::NotFound);
    engine.edit(people[0], first.id, &edit).await.unwrap();
    let page = engine.as_reader(people[1]).read(&Query::home().hydrated()).await.unwrap();
    let post = page.posts[0].post.clone().unwrap();
    assert_eq!((post.content().text.as_str(), post.header().revision), ("second", 1));
    let repost = Draft::repost(PostRef { id: first.id, author: people[0] });
    let repost = engine.publish(people[1], &repost).await.unwrap();
    assert_eq!(walk_home(&engine, people[1], 5).await, [repost.id, first.id]);
    assert_eq!(engine.delete(people[1], first.id).await.unwrap_err().kind(), ErrorKind::NotFound);
    engine.delete(people[0], first.id).await.unwrap();
    // The repost of a post that is gone doesn't show either.
    assert_eq!(walk_home(&engine, people[1], 5).await, []);
    // A post that was deleted doesn't come back when its publish is retried.
    let again = engine.publish(people[0], &draft).await.unwrap();
    assert_eq!((again.id, again.is_repeat), (first.id, true));
    assert_eq!(walk_home(&engine, people[0], 5).await, []);
}

#[tokio::test]
async fn only_what_one_may_see_is_answered_or_passed_on() {
    let engine = engine().await;
    let people = accounts(&engine, 2).await;
    let [author, other] = people[..] else { unreachable!() };
    let post = async |draft: Draft| PostRef { id: engine.publish(author, &draft).await.unwrap().id, author };
    let public = post(Draft::text("for all")).await;
    let inner = post(Draft::text("for followers").visibility(Visibility::Followers)).await;
    let direct = post(Draft::text("for you").visibility(Visibility::Direct).only_to([other])).await;
    let answer = async |to: PostRef| {
        let answered = engine.publish(other, &Draft::text("well").reply_to(to)).await;
        answered.map(drop).map_err(|e| e.kind())
    };
    let state = async |state| {
        let update = AccountUpdate { state: Some(state), ..AccountUpdate::default() };
        engine.update_account(author, &update).await.unwrap();
    };
    assert_eq!(answer(public).await, Ok(()));
    assert_eq!(answer(direct).await, Ok(()));
    assert_eq!(answer(inner).await, Err(ErrorKind::NotFound));
    state(AccountState::Limited).await;
    for to in [public, inner, direct] {
        assert_eq!(answer(to).await, Err(ErrorKind::NotFound));
    }
    engine.follow(other, author).await.unwrap();
    for to in [public, inner, direct] {
        assert_eq!(answer(to).await, Ok(()));
    }
    state(AccountState::Suspended).await;
    for to in [public, inner, direct] {
        assert_eq!(answer(to).await, Err(ErrorKind::NotFound));
    }
    let repost = engine.publish(other, &Draft::repost(public)).await.unwrap_err();
    assert_eq!(repost.kind(), ErrorKind::NotFound);
}
