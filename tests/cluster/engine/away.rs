//! A primary that is frozen, or has no memory left, delays what lies on it, and nothing else.

mod full;
mod half_moved;
mod instances;
mod measured;
mod stopping;

use std::collections::BTreeMap;
use std::time::Duration;

use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use tideline::cluster::{Command, Finding, NodeAddr, Request, RouterSettings};
use tideline::post::{Draft, Edit, PostRef};
use tideline::sharded::SetSettings;
use tideline::{
    AccountId, AccountUpdate, DeliveryWay, Engine, EngineSettings, Health, Moderation, PostAck, PostId,
    Query, StoreOptions,
};
use tideline_local_cluster::ClusterSpec;

use super::{accounts, drained, engine_with, slot_of, small};
use crate::harness::{Own, PATIENCE, eventually, impatient, in_the_end, options, order, own};

/// Posts that are published while a server is away: far more than an instance has places for.
const POSTS: usize = 100;
/// Places for tasks in all, and how many may be under way: what waits for a server must take none.
const PLACES: usize = 16;
const AT_ONCE: usize = 4;

/// Three primaries without replicas that nobody declares dead.
pub(super) async fn servers() -> Own {
    own(ClusterSpec::ephemeral().node_timeout(Duration::from_secs(300))).await
}

pub(super) async fn engine_on(cluster: &Own, sets: SetSettings) -> Engine {
    engine_with(StoreOptions { sets, ..tenant_on(cluster) }, few_places()).await
}

fn tenant_on(cluster: &Own) -> StoreOptions {
    // Nobody who lives is silent for so long, on whatever machine: else a post would come twice to whom it lay with.
    let response_timeout = Duration::from_secs(3);
    let router = RouterSettings { response_timeout, ..impatient() };
    StoreOptions { router, buckets: Some(64), ..options(cluster.urls()) }
}

fn few_places() -> EngineSettings {
    EngineSettings { home_posts: 400, tasks_max: PLACES, tasks_at_once: AT_ONCE, ..small() }
}

pub(super) fn server_of(engine: &Engine, account: AccountId) -> NodeAddr {
    engine.store().router().owner(slot_of(engine, account)).unwrap()
}

/// Who lies on this server, and who elsewhere.
pub(super) fn split(
    engine: &Engine,
    all: &[AccountId],
    server: &NodeAddr,
) -> (Vec<AccountId>, Vec<AccountId>) {
    all.iter().partition(|account| server_of(engine, **account) == *server)
}

/// An engine with so many accounts: those on this server, and those elsewhere.
async fn two_sides(
    cluster: &Own,
    sets: SetSettings,
    people: usize,
    server: &NodeAddr,
) -> (Engine, Vec<AccountId>, Vec<AccountId>) {
    let engine = engine_on(cluster, sets).await;
    let people = accounts(&engine, people).await;
    let (there, living) = split(&engine, &people, server);
    (engine, there, living)
}

/// Has all of these readers follow all of these authors, and gives them homes.
async fn followed(engine: &Engine, readers: &[AccountId], authors: &[AccountId]) {
    for reader in readers {
        for author in authors {
            engine.follow(*reader, *author).await.unwrap();
        }
        drained(engine).await;
        engine.warm(*reader).await.unwrap();
    }
}

/// Publishes one post after the other by each author, each as soon as its first `homes` homes have the one before.
async fn published(engine: &Engine, authors: &[AccountId], posts: usize, homes: usize) -> Vec<PostId> {
    let each = |author: AccountId| async move {
        let mut ids = Vec::new();
        for n in 0..posts / authors.len() {
            let mut published = engine.publish(author, &Draft::text(format!("post {n}"))).await?;
            published.delivery.first(homes as u64).await?;
            ids.push(published.id);
        }
        Ok::<_, tideline::Error>(ids)
    };
    let all = stream::iter(authors.iter().copied()).map(each).buffer_unordered(AT_ONCE).try_concat();
    tokio::time::timeout(PATIENCE * 2, all).await.expect("the living get everything").unwrap()
}

/// Publishes a post that meets the server that is away, so that it is known to be.
async fn met(engine: &Engine, author: AccountId) -> PostId {
    let id = engine.publish(author, &Draft::text("somebody is away")).await.unwrap().id;
    eventually("the post waits in its journal", async || engine.tasks() == 0).await;
    id
}

/// How often each of these posts stands in a reader's home.
async fn copies(engine: &Engine, reader: AccountId, posts: &[PostId]) -> BTreeMap<PostId, usize> {
    let mut copies: BTreeMap<PostId, usize> = posts.iter().map(|id| (*id, 0)).collect();
    for (id, _) in engine.stored_home(reader).await.unwrap() {
        copies.entry(PostId::from_u64(id).unwrap()).and_modify(|count| *count += 1);
    }
    copies
}

async fn have_each_once(engine: &Engine, readers: &[AccountId], posts: &[PostId]) {
    for reader in readers {
        let copies = copies(engine, *reader, posts).await;
        assert!(copies.values().all(|count| *count == 1), "home of {reader}: {copies:?}");
    }
}

/// Takes all entries out of the journal that this account's writes go to.
async fn strike_all(engine: &Engine, account: AccountId) {
    let (keys, buckets) = (engine.store().keys(), engine.store().keys().buckets());
    let bucket = buckets.of_account(account.get());
    let journal = format!("{}{{{}}}j", keys.prefix(), buckets.tag(bucket));
    let command = Command::new("UNLINK").arg(&journal);
    let reply = engine.store().router().call(Request::write(buckets.slot(bucket), command)).await.unwrap();
    assert_eq!(reply.int().unwrap(), 1, "{journal}");
}

/// Once nothing is under way any more: what waits takes no place.
async fn nothing_is_under_way(engine: &Engine) {
    eventually("only journals hold what waits", async || engine.tasks() == 0).await;
}

#[tokio::test]
async fn while_one_primary_after_the_other_is_frozen_the_living_get_each_post_once() {
    let cluster = servers().await;
    let engine = engine_on(&cluster, SetSettings::default()).await;
    let people = accounts(&engine, 60).await;
    // The first of them holds the leases.
    for server in engine.store().router().primaries() {
        let (there, living) = split(&engine, &people, &server);
        let (authors, living, there) = (&living[..4], &living[4..7], &there[..2]);
        followed(&engine, &[living, there].concat(), authors).await;
        cluster.node(&server).unwrap().freeze().unwrap();
        let first = met(&engine, authors[0]).await;
        let posts = published(&engine, authors, POSTS, living.len()).await;
        nothing_is_under_way(&engine).await;
        have_each_once(&engine, living, &[&posts[..], &[first]].concat()).await;
        cluster.node(&server).unwrap().thaw().unwrap();
        drained(&engine).await;
        have_each_once(&engine, living, &[&posts[..], &[first]].concat()).await;
        have_each_once(&engine, there, &posts).await;
        // This one lay in the server's sockets when it froze: it came twice at most.
        let copies = copies(&engine, there[0], &[first]).await[&first];
        assert!((1..=2).contains(&copies), "{copies} copies");
        for reader in [living, there].concat() {
            for author in authors {
                engine.unfollow(reader, *author).await.unwrap();
            }
        }
        drained(&engine).await;
    }
}

/// All that an author and a reader write about each other.
async fn written(engine: &Engine, author: AccountId, reader: AccountId) -> tideline::Result<()> {
    let post = engine.publish(author, &Draft::text("first")).await?.id;
    let edit = Edit { text: Some("second".into()), ..Edit::default() };
    engine.edit(author, post, &edit).await?;
    engine.follow(reader, author).await?;
    engine.like(reader, post).await?;
    engine.unlike(reader, post).await?;
    engine.unfollow(reader, author).await?;
    engine.delete(author, post).await.map(drop)
}

/// All else that the living write about each other: `approver` is locked. What they leave to do is done in between:
/// there are few places for it.
async fn written_besides(
    engine: &Engine,
    author: AccountId,
    [reader, approver]: [AccountId; 2],
) -> tideline::Result<()> {
    let rest = async || nothing_is_under_way(engine).await;
    let post = engine.publish(author, &Draft::text("first").mentions([reader])).await?.id;
    let at = PostRef { id: post, author };
    engine.publish(reader, &Draft::text("well").reply_to(at)).await?;
    engine.publish(reader, &Draft::text("see").quoting(at)).await?;
    rest().await;
    engine.repost(reader, post).await?;
    engine.undo_repost(reader, post).await?;
    rest().await;
    engine.bookmark(reader, post).await?;
    engine.unbookmark(reader, post).await?;
    engine.moderate(post, Moderation { sensitive: Some(true), ..Moderation::default() }).await?;
    rest().await;
    engine.mute(reader, author).await?;
    engine.unmute(reader, author).await?;
    engine.hide_from(author, reader).await?;
    engine.show_to(author, reader).await?;
    rest().await;
    engine.block(reader, author).await?;
    engine.unblock(reader, author).await?;
    rest().await;
    for (requester, is_approved) in [(reader, true), (author, false)] {
        engine.follow(requester, approver).await?;
        // Its request stands once the author's side has heard of it.
        rest().await;
        match is_approved {
            true => engine.approve(approver, requester).await?,
            false => engine.reject(approver, requester).await?,
        };
        rest().await;
    }
    engine.unfollow(reader, approver).await?;
    for is_locked in [true, false] {
        let lock = AccountUpdate { is_locked: Some(is_locked), ..AccountUpdate::default() };
        engine.update_account(author, &lock).await?;
        rest().await;
    }
    for way in [Some(DeliveryWay::Pull), None] {
        engine.set_way(author, way).await?;
        rest().await;
    }
    engine.delete(author, post).await.map(drop)
}

#[tokio::test]
async fn while_one_primary_after_the_other_is_frozen_no_write_among_the_living_is_refused() {
    let cluster = servers().await;
    let engine = engine_on(&cluster, SetSettings::default()).await;
    let people = accounts(&engine, 40).await;
    for server in engine.store().router().primaries() {
        let (there, living) = split(&engine, &people, &server);
        followed(&engine, &there[..1], &living[..1]).await;
        cluster.node(&server).unwrap().freeze().unwrap();
        met(&engine, living[0]).await;
        // More in all than there are places.
        for author in &living[..5] {
            in_the_end("writes among the living", written(&engine, *author, living[5])).await.unwrap();
            nothing_is_under_way(&engine).await;
        }
        let lock = |is_locked| AccountUpdate { is_locked: Some(is_locked), ..AccountUpdate::default() };
        engine.update_account(living[7], &lock(true)).await.unwrap();
        let besides = written_besides(&engine, living[5], [living[6], living[7]]);
        in_the_end("all else that the living write", besides).await.unwrap();
        nothing_is_under_way(&engine).await;
        // The next server's living may be others.
        engine.update_account(living[7], &lock(false)).await.unwrap();
        cluster.node(&server).unwrap().thaw().unwrap();
        drained(&engine).await;
        engine.unfollow(there[0], living[0]).await.unwrap();
        drained(&engine).await;
    }
}

#[tokio::test]
async fn a_frozen_primary_keeps_only_its_own_of_a_large_fan_out_waiting() {
    let cluster = servers().await;
    let sets = SetSettings { piece_limit: Some(16), spread_at: Some(40), ..SetSettings::default() };
    let server = cluster.nodes()[2].addr();
    let (engine, there, mut living) = two_sides(&cluster, sets, 100, &server).await;
    let author = living.pop().unwrap();
    for reader in living.iter().chain(&there) {
        engine.follow(*reader, author).await.unwrap();
        // One after the other: what a follow leaves to do takes one of few places until it is done.
        drained(&engine).await;
        engine.warm(*reader).await.unwrap();
    }
    cluster.node(&server).unwrap().freeze().unwrap();
    let first = met(&engine, author).await;
    let posts = published(&engine, &[author], 10, living.len()).await;
    nothing_is_under_way(&engine).await;
    have_each_once(&engine, &living, &[&posts[..], &[first]].concat()).await;
    cluster.node(&server).unwrap().thaw().unwrap();
    drained(&engine).await;
    have_each_once(&engine, &living, &[&posts[..], &[first]].concat()).await;
    have_each_once(&engine, &there, &posts).await;
}

/// It is written: an error would have it published again.
#[tokio::test]
async fn who_waits_for_homes_that_are_away_is_told_what_a_post_has_reached_without_them() {
    let cluster = servers().await;
    let server = cluster.nodes()[2].addr();
    let tenant = tenant_on(&cluster);
    let router = RouterSettings { deadline: Duration::from_secs(4), ..tenant.router };
    let engine = engine_with(StoreOptions { router, ..tenant }, few_places()).await;
    let (there, living) = split(&engine, &accounts(&engine, 20).await, &server);
    let (author, readers) = (living[0], [living[1], there[0]]);
    followed(&engine, &readers, &[author]).await;
    cluster.node(&server).unwrap().freeze().unwrap();
    let mut posts = Vec::new();
    for (token, ack) in [("a", PostAck::First), ("b", PostAck::Delivered)] {
        let draft = Draft::text("somebody is away").token(token);
        for is_repeat in [false, true] {
            let waited = engine.publish_with(author, &draft, ack);
            let published = in_the_end("a publish that waits for a frozen server", waited).await.unwrap();
            assert_eq!((published.is_repeat, published.reached), (is_repeat, PostAck::Accepted), "{ack:?}");
            posts.push(published.id);
        }
    }
    posts.dedup();
    assert_eq!(posts.len(), 2, "{posts:?}");
    cluster.node(&server).unwrap().thaw().unwrap();
    drained(&engine).await;
    have_each_once(&engine, &living[1..2], &posts).await;
    assert!(copies(&engine, there[0], &posts).await.values().all(|count| *count >= 1));
    let draft = Draft::text("all are there");
    let published = engine.publish_with(author, &draft, PostAck::Delivered).await.unwrap();
    assert_eq!(published.reached, PostAck::First, "nothing has a replica");
}

/// A server that answers and can't say what lasts is in nobody's way: its replica is silent, and nobody has called it
/// dead.
#[tokio::test]
async fn while_a_replica_is_frozen_fan_outs_wait_for_it_in_their_journals() {
    let cluster = own(ClusterSpec::ephemeral().replicas(1).node_timeout(Duration::from_secs(300))).await;
    let server = cluster.nodes()[1].addr();
    let (engine, there, living) = two_sides(&cluster, SetSettings::default(), 40, &server).await;
    let (authors, living, there) = (&living[..4], &living[4..7], &there[..2]);
    followed(&engine, &[living, there].concat(), authors).await;
    let replica = cluster.replica_of(&server).await.unwrap();
    replica.freeze().unwrap();
    let first = met(&engine, authors[0]).await;
    let posts = published(&engine, authors, POSTS, living.len()).await;
    nothing_is_under_way(&engine).await;
    let all = [&posts[..], &[first]].concat();
    // Who lies on that server has them, too: only that they last is open.
    have_each_once(&engine, &[living, there].concat(), &all).await;
    let is_told = async || {
        let cannot_vouch = |found: &Finding| found.to_string().starts_with(&format!("{server}: it works"));
        engine.health().await.unwrap().findings.iter().any(cannot_vouch)
    };
    assert!(is_told().await);
    replica.thaw().unwrap();
    drained(&engine).await;
    have_each_once(&engine, &[living, there].concat(), &all).await;
    eventually("it can be fenced again", async || !is_told().await).await;
}

/// One of those whom a post mentions is away: it is on the lists of all others.
#[tokio::test]
async fn a_mention_of_who_is_away_keeps_a_post_off_no_other_list() {
    let cluster = servers().await;
    let server = cluster.nodes()[2].addr();
    let (engine, there, living) = two_sides(&cluster, SetSettings::default(), 30, &server).await;
    let (author, named) = (living[0], [there[0], living[1], living[2]]);
    cluster.node(&server).unwrap().freeze().unwrap();
    let post = engine.publish(author, &Draft::text("all of you").mentions(named)).await.unwrap().id;
    let is_named = async |reader: AccountId| {
        engine.as_reader(reader).read(&Query::mentions()).await.is_ok_and(|page| page.ids().contains(&post))
    };
    for reader in &named[1..] {
        eventually("the living are mentioned", async || is_named(*reader).await).await;
    }
    cluster.node(&server).unwrap().thaw().unwrap();
    drained(&engine).await;
    assert!(is_named(there[0]).await);
}

#[tokio::test]
async fn who_waits_for_a_delivery_that_is_no_longer_ours_is_told() {
    let cluster = servers().await;
    let server = cluster.nodes()[0].addr();
    let (engine, there, living) = two_sides(&cluster, SetSettings::default(), 30, &server).await;
    followed(&engine, &there[..1], &living[..1]).await;
    cluster.node(&server).unwrap().freeze().unwrap();
    // Its journal is lost in a failover, or another instance has carried it out.
    let mut struck = engine.publish(living[0], &Draft::text("struck by others")).await.unwrap().delivery;
    nothing_is_under_way(&engine).await;
    assert!(struck.progress().is_held_up);
    strike_all(&engine, living[0]).await;
    cluster.node(&server).unwrap().thaw().unwrap();
    assert!(in_the_end("what is not ours any more", struck.all()).await.is_err());
    drained(&engine).await;
    // And when the instance ends.
    cluster.node(&server).unwrap().freeze().unwrap();
    let mut left = engine.publish(living[0], &Draft::text("left to others")).await.unwrap().delivery;
    nothing_is_under_way(&engine).await;
    let shutdown = engine.shutdown(Duration::from_millis(10));
    let (told, _) = tokio::join!(in_the_end("what is left to others", left.all()), shutdown);
    assert!(told.is_err());
}

#[tokio::test]
async fn a_primary_without_memory_keeps_only_its_own_waiting() {
    let cluster = servers().await;
    let server = cluster.nodes()[1].addr();
    let (engine, there, living) = two_sides(&cluster, SetSettings::default(), 40, &server).await;
    let (authors, living, there) = (&living[..4], &living[4..7], &there[..2]);
    followed(&engine, &[living, there].concat(), authors).await;
    order(&server, "CONFIG SET maxmemory 1").await;
    let posts = published(&engine, authors, POSTS, living.len()).await;
    nothing_is_under_way(&engine).await;
    have_each_once(&engine, living, &posts).await;
    order(&server, "CONFIG SET maxmemory 0").await;
    drained(&engine).await;
    have_each_once(&engine, &[living, there].concat(), &posts).await;
}

#[tokio::test]
async fn what_lies_between_two_accounts_waits_without_a_place_while_one_of_them_is_away() {
    let cluster = servers().await;
    let server = cluster.nodes()[2].addr();
    let (engine, there, living) = two_sides(&cluster, SetSettings::default(), 60, &server).await;
    let authors = &there[..2];
    for reader in &living {
        for author in authors {
            engine.follow(*reader, *author).await.unwrap();
        }
        drained(&engine).await;
    }
    cluster.node(&server).unwrap().freeze().unwrap();
    // More than there are places.
    for reader in &living {
        for author in authors {
            engine.unfollow(*reader, *author).await.unwrap();
            eventually("the edge waits in its journal", async || engine.tasks() == 0).await;
        }
    }
    // Who has nothing to do with it goes on.
    let mut published = engine.publish(living[0], &Draft::text("to nobody")).await.unwrap();
    published.delivery.all().await.unwrap();
    engine.follow(living[1], living[0]).await.unwrap();
    eventually("a follow is settled", async || engine.tasks() == 0).await;
    cluster.node(&server).unwrap().thaw().unwrap();
    drained(&engine).await;
    for author in authors {
        let page =
            engine.stored().followers(*author, None, 100, tideline::sharded::Order::Ascending).await.unwrap();
        assert!(page.entries.is_empty(), "{:?}", page.entries);
    }
}

#[tokio::test]
async fn who_waits_for_a_delivery_is_told_though_it_was_put_aside_meanwhile() {
    let cluster = servers().await;
    let server = cluster.nodes()[0].addr();
    let (engine, there, living) = two_sides(&cluster, SetSettings::default(), 30, &server).await;
    followed(&engine, &[living[1], there[0]], &living[..1]).await;
    cluster.node(&server).unwrap().freeze().unwrap();
    let mut published = engine.publish(living[0], &Draft::text("to two")).await.unwrap();
    nothing_is_under_way(&engine).await;
    let progress = published.delivery.progress();
    assert_eq!((progress.delivered, progress.is_done), (1, false));
    cluster.node(&server).unwrap().thaw().unwrap();
    let progress = published.delivery.all().await.unwrap();
    assert_eq!((progress.delivered, progress.is_done), (2, true));
}

#[tokio::test]
async fn health_says_who_does_not_answer_and_tells_the_rest() {
    // It asked all journals, and waited for that server's as long as a command is tried: here for an hour.
    let cluster = servers().await;
    let tenant = tenant_on(&cluster);
    let router = RouterSettings { deadline: Duration::from_secs(3_600), ..tenant.router };
    let engine = engine_with(StoreOptions { router, ..tenant }, few_places()).await;
    let buckets = engine.store().keys().buckets();
    let server = cluster.nodes()[1].addr();
    let owners = buckets.all().map(|bucket| engine.store().router().owner(buckets.slot(bucket)).unwrap());
    let lost = owners.filter(|owner| *owner == server).count();
    // Others may be named for their settings.
    let named = |health: &Health| {
        let absent =
            |found: &Finding| found.to_string().starts_with(&format!("{server}: it does not answer"));
        health.findings.iter().any(absent)
    };
    let before = engine.health().await.unwrap();
    assert!(!named(&before) && before.journals_unknown == 0, "{before:?}");
    cluster.node(&server).unwrap().freeze().unwrap();
    // As soon as that is known, and before.
    for _ in 0..2 {
        let health = in_the_end("a look at how it is", engine.health()).await.unwrap();
        assert!(named(&health) && health.journals_unknown == lost && health.is_well, "{health:?}");
    }
    cluster.node(&server).unwrap().thaw().unwrap();
    eventually("it is back", async || {
        let health = engine.health().await.unwrap();
        !named(&health) && health.journals_unknown == 0
    })
    .await;
}
