//! Every system on real servers, its homes read back with commands of our own.

use clap::Parser;
use tideline::cluster::{Command, Request};
use tideline::keys::slot_of_key;

use super::args::FanoutArgs;
use super::deliveries::Deliveries;
use super::others::home_key;
use super::system::{Kind, System};
use super::world::owner_id;
use crate::bench::Bench;
use crate::target::PRIMARIES;

const HOMES: u64 = 1_400;
/// More than a page of followers.
const FOLLOWERS: u64 = 1_200;

#[derive(Debug, Parser)]
struct Typed {
    #[command(flatten)]
    args: FanoutArgs,
}

#[tokio::test]
async fn every_follower_has_the_newest_posts_in_a_full_home_and_nobody_else_has_them() {
    let args = Typed::parse_from(["fanout", "--list-trim-percent", "100"]).args;
    let bench = Bench::open(&[], (PRIMARIES, 0).into()).await.unwrap();
    for kind in Kind::ALL {
        let system = kind.open(&bench, &args).await.unwrap();
        system.fill(HOMES).await.unwrap();
        let followers: Vec<u64> = (0..FOLLOWERS).rev().collect();
        system.follow(1, &followers).await.unwrap();
        let older = post(&*system, 1).await;
        let newer = post(&*system, 2).await;
        for home in 0..HOMES {
            let follows = home < FOLLOWERS;
            let newest = if kind == Kind::Tideline {
                newest_two_of_ours(&bench, home).await
            } else {
                newest_two(&bench, kind, home).await
            };
            assert_eq!(newest == [shown(kind, newer), shown(kind, older)], follows, "{kind:?} {home}");
            let found = system.look(home, newer).await.unwrap();
            let allowed = kind.cap(&args)..=kind.cap(&args) + kind.overhang(&args);
            assert!(allowed.contains(&found.entries), "{kind:?} {home}: {found:?}");
            assert_eq!(found.has_post, follows, "{kind:?} {home}");
            if kind == Kind::BooksPerNode {
                assert_eq!(
                    encoding(&bench, home).await,
                    "listpack",
                    "{kind:?} {home}: its cost is that of a compact one"
                );
            }
        }
        bench.empty().await.unwrap();
    }
    bench.close().await.unwrap();
}

#[tokio::test]
async fn a_home_that_a_post_did_not_reach_is_counted_as_wrong() {
    let args = Typed::parse_from(["fanout", "--followers", "50", "--background-homes", "0"]).args;
    let world = super::world::World::new(&args, 7);
    let bench = Bench::open(&[], (PRIMARIES, 0).into()).await.unwrap();
    let system = Kind::List.open(&bench, &args).await.unwrap();
    system.fill(50).await.unwrap();
    system.follow(1, &world.followers_of(1)[..49]).await.unwrap();
    let id = post_to(&*system, 1, 49).await;
    let looked = super::measure::look(&*system, &args, &world, Kind::List, (1, id)).await.unwrap();
    assert_eq!(looked, (50, 1));
    drop(system);
    bench.close().await.unwrap();
}

async fn post(system: &dyn System, number: u64) -> u64 {
    post_to(system, number, FOLLOWERS).await
}

async fn post_to(system: &dyn System, number: u64, reached: u64) -> u64 {
    let deliveries = Deliveries::begin();
    let id = system.post(1, number, &deliveries).await.unwrap();
    assert_eq!(deliveries.end().count, reached);
    id
}

/// An id as it stands in a home of that kind.
fn shown(kind: Kind, id: u64) -> String {
    if kind == Kind::List { format!("{id:016x}") } else { id.to_string() }
}

async fn newest_two_of_ours(bench: &Bench, home: u64) -> Vec<String> {
    let engine =
        tideline::Engine::builder().seeds(bench.target.seeds()).prefix(&bench.prefix).start().await.unwrap();
    let held = engine.stored_home(tideline::AccountId::new(owner_id(home).unwrap()).unwrap()).await.unwrap();
    held.iter().rev().take(2).map(|(id, _)| id.to_string()).collect()
}

async fn encoding(bench: &Bench, home: u64) -> String {
    let key = home_key(&bench.prefix, &owner_id(home).unwrap().to_string());
    let ask = Command::new("OBJECT").arg("ENCODING").arg(&key);
    let told = bench.router.call(Request::read(slot_of_key(key.as_bytes()), ask)).await.unwrap();
    told.text().unwrap().to_owned()
}

async fn newest_two(bench: &Bench, kind: Kind, home: u64) -> Vec<String> {
    let key = home_key(&bench.prefix, &owner_id(home).unwrap().to_string());
    let range = if kind == Kind::List { "LRANGE" } else { "ZREVRANGE" };
    let range = Command::new(range).arg(&key).arg("0").arg("1");
    let found = bench.router.call(Request::read(slot_of_key(key.as_bytes()), range)).await.unwrap();
    found.into_array().unwrap().iter().map(|entry| entry.text().unwrap().to_owned()).collect()
}
