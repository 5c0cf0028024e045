//! How many trips a page takes whose reader's instance knows whom that follows and how lists are split, and nothing
//! else.

use std::time::Duration;

use futures::FutureExt as _;
use futures::future::LocalBoxFuture;
use tokio::time::Instant;

use super::Stage;
use crate::engine::Engine;
use crate::ids::AccountId;
use crate::post::{Draft, PostRef};
use crate::simulation::instances::instance;
use crate::simulation::world::world;
use crate::timeline::Query;

const TRIP: Duration = Duration::from_millis(1);

/// One after the other: what goes out together is one.
async fn trips(engine: &Engine, reader: AccountId, query: &Query) -> u128 {
    let began = Instant::now();
    let page = engine.as_reader(reader).read(query).await.expect("a page");
    assert_eq!(page.posts.len(), 2);
    began.elapsed().as_millis()
}

fn expect(what: &str, found: u128, trips: u128) {
    if found != trips {
        world(|w| w.violated(format!("{what}: {found} trips, not {trips}")));
    }
}

/// Posts with likers and replies, by accounts of which some block others, some the reader.
pub(in crate::simulation) fn of_a_full_page() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [reader, author, ben, eve, other]) = Stage::with([1, 3, 0, 2, 0]).await;
        let [first, second] = [0, 1].map(|at| stage.engines[at].clone());
        world(|w| w.shows_profiles = true);
        let shows_profiles = instance().await.1;
        stage.follow(0, reader, author).await;
        stage.home_of(reader).await;
        let elsewhere = PostRef { id: stage.publish(0, ben).await, author: ben };
        for _ in 0..2 {
            let draft = Draft::text("x").mentions([ben]);
            let post = PostRef { id: first.publish(author, &draft).await.expect("a post").id, author };
            for who in [ben, eve] {
                first.like(who, post.id).await.expect("a like");
                let reply = Draft::text("so").reply_to(post);
                drop(first.publish(who, &reply).await.expect("a reply"));
            }
        }
        first.block(ben, other).await.expect("a block");
        first.block(eve, reader).await.expect("a block");
        stage.settled().await;
        let plain = Query::home().limit(2).hydrated();
        let full = plain.with_ties().with_likers(2).with_replies(2);
        for engine in [&second, &shows_profiles] {
            drop(engine.as_reader(reader).read(&full).await.expect("a page"));
        }

        world(|w| w.trip = TRIP);
        let page = trips(&second, reader, &plain).await;
        expect("with ties that are remembered", trips(&second, reader, &plain.with_ties()).await, page);
        expect("a full page", trips(&second, reader, &full).await, page + 2);
        expect("with whom posts mention", trips(&shows_profiles, reader, &plain).await, page + 1);
        expect("a full page with them", trips(&shows_profiles, reader, &full).await, page + 2);
        let shown = second.as_reader(reader).read(&full).await.expect("a page");
        let met = shown.posts.iter().map(|post| (post.likers.len(), post.replies.len()));
        // Of whom blocks the reader neither shows.
        if !met.eq([(1, 1), (1, 1)]) {
            world(|w| w.violated(format!("{shown:?}")));
        }
        world(|w| w.trip = Duration::ZERO);

        // Only a reply itself says what it quotes.
        let quote =
            Draft::text("look").quoting(elsewhere).reply_to(PostRef { id: shown.posts[0].id, author });
        first.publish(ben, &quote).await.expect("a reply");
        stage.settled().await;
        drop(second.as_reader(reader).read(&full).await.expect("a page"));
        world(|w| w.trip = TRIP);
        expect("a full page with a reply that quotes", trips(&second, reader, &full).await, page + 3);
        world(|w| w.trip = Duration::ZERO);
        stage.ends_well().await;
    }
    .boxed_local()
}
