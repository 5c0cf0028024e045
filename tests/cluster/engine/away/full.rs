//! Servers that are full: who fills them is stopped, and what makes room goes on.

use tideline::post::Draft;
use tideline::sharded::SetSettings;
use tideline::{AccountState, AccountUpdate, Moderation};

use super::super::accounts;
use super::{engine_on, server_of, servers};
use crate::harness::order;

/// H287.
#[tokio::test]
async fn where_memory_is_full_whoever_fills_it_is_suspended_and_bounds_are_lowered() {
    let cluster = servers().await;
    let engine = engine_on(&cluster, SetSettings::default()).await;
    let [flooder] = accounts(&engine, 1).await[..] else { unreachable!() };
    let post = engine.publish(flooder, &Draft::text("all of it")).await.unwrap().id;
    let server = server_of(&engine, flooder);
    order(&server, "CONFIG SET maxmemory 1").await;
    engine.moderate(post, Moderation { hidden: Some(true), ..Moderation::default() }).await.unwrap();
    let suspended = AccountUpdate { state: Some(AccountState::Suspended), ..AccountUpdate::default() };
    engine.update_account(flooder, &suspended).await.unwrap();
    assert_eq!(engine.stored().account(flooder).await.unwrap().state, AccountState::Suspended);
    let number = engine.decision().number;
    let change = engine.decision().change().set("mentions_max", "20").unwrap();
    engine.decide(&change).await.unwrap();
    assert_eq!(engine.decision().number, number + 1);
    engine.delete(flooder, post).await.unwrap();
    order(&server, "CONFIG SET maxmemory 0").await;
}
