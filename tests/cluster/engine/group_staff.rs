//! What the staff of a group needs to look after it, whatever members do, and whoever is gone.

use tideline::{AccountId, AccountKind, Engine, ErrorKind, FollowOutcome, ListQuery, PostId, Query};

use super::groups::{found, posted};
use super::{accounts, drained, engine};
use crate::harness::eventually;

async fn members(engine: &Engine, reader: AccountId, group: AccountId) -> Vec<AccountId> {
    let listed = engine.as_reader(reader).followers(group, &ListQuery::default()).await.unwrap();
    let mut members: Vec<AccountId> = listed.accounts.iter().map(|account| account.id).collect();
    members.sort_unstable();
    members
}

/// A member who blocked the staff posted what it liked: nobody who could take it away saw it.
#[tokio::test]
async fn a_member_gets_away_from_the_staff_by_no_block() {
    let engine = engine().await;
    let [ada, ben, cy, mallory] = accounts(&engine, 4).await[..] else { unreachable!() };
    let group = found(&engine, ada, AccountKind::Group, false).await;
    for member in [ben, cy, mallory] {
        engine.join_group(group, member).await.unwrap();
    }
    for unwanted in [ada, ben] {
        engine.block(mallory, unwanted).await.unwrap();
    }
    let post = posted(&engine, mallory, group, "spam").await;
    drained(&engine).await;
    let page = async |reader: AccountId| -> Vec<PostId> {
        engine.as_reader(reader).read(&Query::profile(group)).await.unwrap().ids()
    };
    let home = async |reader: AccountId| engine.as_reader(reader).read(&Query::home()).await.unwrap().ids();
    assert_eq!((page(ada).await, page(cy).await, page(ben).await), (vec![post], vec![post], vec![]));
    assert_eq!(home(ada).await, [post]);
    assert_eq!(engine.as_reader(ada).post(post).await.unwrap().id, post);
    let all = vec![ada, ben, cy, mallory];
    assert_eq!(members(&engine, ada, group).await, all);
    assert_eq!(members(&engine, ben, group).await, [ada, ben, cy]);
    // A page of its own posts is the member's own affair.
    let own = engine.publish(mallory, &tideline::post::Draft::text("mine")).await.unwrap().id;
    assert_eq!(page_of(&engine, ada, mallory).await, []);
    assert!(engine.as_reader(ada).post(own).await.is_err());
    // Whom the staff doesn't want to see itself it doesn't see.
    engine.block(ada, mallory).await.unwrap();
    assert_eq!((page(ada).await, members(&engine, ada, group).await), (vec![], vec![ada, ben, cy]));
}

async fn page_of(engine: &Engine, reader: AccountId, of: AccountId) -> Vec<PostId> {
    engine.as_reader(reader).read(&Query::profile(of)).await.unwrap().ids()
}

/// Whoever had asked first waited for ever, though it was invited.
#[tokio::test]
async fn who_has_asked_to_join_is_in_once_it_is_invited() {
    let engine = engine().await;
    let [ada, ben] = accounts(&engine, 2).await[..] else { unreachable!() };
    let group = found(&engine, ada, AccountKind::Group, true).await;
    assert_eq!(engine.join_group(group, ben).await.unwrap().value, FollowOutcome::Requested);
    engine.invite_to_group(group, ada, ben, true).await.unwrap();
    eventually("it is a member", async || members(&engine, ada, group).await == [ada, ben]).await;
    posted(&engine, ben, group, "here I am").await;
    // What it was invited with lets it in no second time.
    engine.turn_out(group, ada, ben).await.unwrap();
    drained(&engine).await;
    assert_eq!(engine.join_group(group, ben).await.unwrap().value, FollowOutcome::Requested);
}

/// What was said of somebody who is gone could never be taken back, and took up room for good.
#[tokio::test]
async fn what_was_said_of_who_is_gone_is_taken_back() {
    let engine = engine().await;
    let [ada, ben, cy, dee] = accounts(&engine, 4).await[..] else { unreachable!() };
    let group = found(&engine, ada, AccountKind::Group, true).await;
    engine.block(ada, ben).await.unwrap();
    engine.follow(cy, ada).await.unwrap();
    engine.block(ada, cy).await.unwrap();
    engine.ban_from_group(group, ada, ben, true).await.unwrap();
    engine.invite_to_group(group, ada, dee, true).await.unwrap();
    for gone in [ben, cy, dee] {
        engine.delete_account(gone).await.unwrap();
    }
    drained(&engine).await;
    for gone in [ben, cy] {
        let left = engine.as_reader(gone).relationships(&[ada]).await.unwrap_err();
        assert_eq!(left.kind(), ErrorKind::NotFound);
        for _ in 0..2 {
            engine.unblock(ada, gone).await.unwrap();
        }
    }
    engine.ban_from_group(group, ada, ben, false).await.unwrap();
    engine.invite_to_group(group, ada, dee, false).await.unwrap();
    assert_eq!(engine.inspect(ada).await.unwrap().sets.blocks, 0);
    assert_eq!(engine.inspect(group).await.unwrap().sets.blocks, 0);
}
