//! Calls that wait for what they leave elsewhere: whoever is answered finds it there.

use std::time::Duration;

use tideline::post::{Draft, PostRef, Tag};
use tideline::sharded::SetSettings;
use tideline::{AccountId, Engine, ListQuery, Query};

use super::away::{engine_on, servers, split};
use super::{accounts, drained, engine};

/// Longer than any test machine stands still: what is waited for ends by itself.
const LONG: Duration = Duration::from_secs(60);

async fn followers(engine: &Engine, of: AccountId) -> Vec<AccountId> {
    let listed = engine.as_reader(of).followers(of, &ListQuery::default()).await.unwrap();
    listed.accounts.iter().map(|account| account.id).collect()
}

#[tokio::test]
async fn whoever_waits_for_what_a_call_has_left_finds_it_there_at_once() {
    let engine = engine().await;
    let [ada, ben] = accounts(&engine, 2).await[..] else { panic!("two were made") };
    for round in 0..20 {
        engine.settled(LONG, engine.follow(ben, ada)).await.unwrap();
        assert_eq!(followers(&engine, ada).await, [ben], "round {round}");
        let draft = Draft::text("low tide").hashtags(["tide"]).mentions([ben]);
        let id = engine.settled(LONG, engine.publish(ada, &draft)).await.unwrap().id;
        let tag = engine.as_reader(ben).read(&Query::tag(Tag::new("tide").unwrap())).await.unwrap();
        assert_eq!(tag.ids().first(), Some(&id));
        assert_eq!(engine.as_reader(ben).read(&Query::mentions()).await.unwrap().ids().first(), Some(&id));
        let reply = Draft::text("so").reply_to(PostRef { id, author: ada });
        engine.settled(LONG, engine.publish(ben, &reply)).await.unwrap();
        engine.settled(LONG, engine.like(ben, id)).await.unwrap();
        let post = engine.stored().post(id).await.unwrap().unwrap();
        assert_eq!((post.header().likes, post.header().replies), (1, 1), "round {round}");
        engine.settled(LONG, engine.unfollow(ben, ada)).await.unwrap();
        assert!(followers(&engine, ada).await.is_empty(), "round {round}");
    }
}

#[tokio::test]
async fn a_server_that_is_away_holds_up_nobody_who_waits_for_a_moment() {
    let cluster = servers().await;
    let engine = engine_on(&cluster, SetSettings::default()).await;
    let people = accounts(&engine, 20).await;
    let server = engine.store().router().primaries()[2].clone();
    let (there, living) = split(&engine, &people, &server);
    cluster.node(&server).unwrap().freeze().unwrap();
    let draft = Draft::text("somebody is away").mentions([there[0]]);
    let id = engine.settled(Duration::from_millis(50), engine.publish(living[0], &draft)).await.unwrap().id;
    cluster.node(&server).unwrap().thaw().unwrap();
    drained(&engine).await;
    assert_eq!(engine.as_reader(there[0]).read(&Query::mentions()).await.unwrap().ids(), [id]);
}
