//! What a tenant has decided, and instances that would have it otherwise.

use futures::FutureExt as _;
use futures::future::LocalBoxFuture;

use super::{Stage, close, pause};
use crate::charter::{Decision, TenantSettings};
use crate::charter::{tell_buckets, write};
use crate::cluster::{Command, Request};
use crate::graph::post_list;
use crate::ids::AccountId;
use crate::post::{Draft, NamedList, Tag};
use crate::simulation::gates::At;
use crate::simulation::operations::TAGS;
use crate::simulation::world::world;

/// How many posts a hashtag's list holds, its floor not counted.
async fn tagged(stage: &Stage) -> u64 {
    let tenant = stage.engines[2].tenant();
    let number = Tag::new(TAGS[0]).expect("a hashtag").number(tenant.tags());
    let list = post_list(tenant, NamedList::Tagged(number)).expect("a list");
    let has_floor = list
        .score(&crate::graph::ListItem::Number(crate::graph::ListNumber::Floor))
        .await
        .expect("a score")
        .is_some();
    list.len().await.expect("a length") - u64::from(has_floor)
}

fn listed_of(author: AccountId) -> u64 {
    let length = world(|w| {
        let command = Command::new("LLEN").arg(&w.keys.outbox(author));
        w.execute(9, &Request::read(w.keys.slot_of(author), command)).expect("an answer").reply.count()
    });
    length.expect("a length") - 1
}

async fn publish_tagged(stage: &Stage, at: usize, author: AccountId, many: usize) {
    for _ in 0..many {
        let draft = Draft::text("x").hashtags([TAGS[0]]);
        stage.engines[at].publish(author, &draft).await.expect("a post");
        stage.turns().await;
    }
}

fn must_hold(what: &str, holds: u64, least: u64) {
    if holds < least {
        world(|w| w.violated(format!("{what} holds {holds} posts, and should hold {least}")));
    }
}

/// H65: instance 1 would have its authors list two posts, and hashtags one.
pub(in crate::simulation) fn settings_differ() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [author]) = Stage::with([1]).await;
        publish_tagged(&stage, 0, author, 4).await;
        stage.settled().await;
        for _ in 0..3 {
            stage.publish(1, author).await;
        }
        publish_tagged(&stage, 1, author, 1).await;
        stage.settled().await;
        must_hold("the outbox", listed_of(author), 8);
        must_hold("the hashtag", tagged(&stage).await, 4);
        stage.ends_well().await;
    }
    .boxed_local()
}

/// H66: instance 0 is about to cut a hashtag's list; the tenant decides that lists may be long; instance 0 goes on.
pub(in crate::simulation) fn slept_through_a_decision() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [author]) = Stage::with([1]).await;
        let cutting = close(0, At::Before, "set_remove");
        publish_tagged(&stage, 0, author, 6).await;
        cutting.reached().await;
        let (store, now) = (stage.engines[1].store(), stage.engines[1].decision());
        let settings = TenantSettings { tag_posts_max: 50, ..now.settings };
        let next = Decision { number: now.number + 1, settings, archive: None };
        write(store.router(), store.keys(), &next).await.expect("written");
        tell_buckets(store.router(), store.keys(), &next).await.expect("told");
        cutting.open();
        stage.settled().await;
        must_hold("the hashtag", tagged(&stage).await, 6);
        // It hears of it.
        pause(500).await;
        if stage.engines[0].decision() != next {
            world(|w| w.violated(format!("decision {} is not heard of", next.number)));
        }
        stage.ends_well().await;
    }
    .boxed_local()
}
