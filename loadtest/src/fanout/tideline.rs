//! `tideline`: the engine itself, as its users call it.

use futures::future::{BoxFuture, FutureExt as _};
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use tideline::post::Draft;
use tideline::{AccountId, Engine, NewAccount, PushOnly, StoreOptions};

use super::deliveries::Deliveries;
use super::system::{Look, System};
use super::world::{old_entry, owner_id};
use crate::bench::Bench;
use crate::members::{account_id, tick_at_start};
use crate::systems::home_posts;

const FILL_BATCH: u64 = 150;
const FILL_BATCHES: usize = 4;
const FOLLOWS_PER_CALL: usize = 20_000;
/// Homes in use are at any point between two watermarks; filled alike, they would all come to the next one at once.
const PHASES: u64 = 16;

pub(crate) struct Tideline<'a> {
    bench: &'a Bench,
    engine: Engine,
}

impl<'a> Tideline<'a> {
    pub(crate) async fn open(bench: &'a Bench) -> anyhow::Result<Self> {
        let router = bench.router_settings();
        let store =
            StoreOptions { prefix: bench.prefix.clone(), router, ..StoreOptions::new(bench.target.seeds()) };
        // Deliveries are what is measured: also of accounts that a policy would have pulled.
        let engine = Engine::builder().store(store).policy(PushOnly).start().await?;
        Ok(Self { bench, engine })
    }

    pub(crate) fn engine(&self) -> Engine {
        self.engine.clone()
    }

    async fn fill_homes(&self, homes: u64) -> anyhow::Result<()> {
        let batches = (0..homes).step_by(usize::try_from(FILL_BATCH)?);
        stream::iter(batches)
            .map(|first| async move {
                let homes =
                    (first..homes.min(first + FILL_BATCH)).map(home_of).collect::<Result<Vec<_>, _>>()?;
                self.engine.stock_homes(&homes).await?;
                self.bench.wait_for_replicas().await
            })
            .buffer_unordered(FILL_BATCHES)
            .try_collect()
            .await
    }

    async fn make_author(&self, author: u64, followers: &[u64]) -> anyhow::Result<()> {
        let id = account_id(author)?;
        self.engine.create_account(NewAccount { id: Some(id), ..NewAccount::default() }).await?;
        let set = self.engine.store().sets().of_account::<AccountId>(id, "followers")?;
        for chunk in followers.chunks(FOLLOWS_PER_CALL) {
            let pair = |home: &u64| Ok((AccountId::new(owner_id(*home)?)?, tick_at_start(*home)));
            set.add(&chunk.iter().map(pair).collect::<tideline::Result<Vec<_>>>()?).await?;
        }
        Ok(())
    }
}

/// A home with the owner that all systems give it.
fn home_of(home: u64) -> tideline::Result<(AccountId, Vec<(u64, u64)>)> {
    let author = account_id(home % 1_000)?.get();
    let posts = (0..u64::from(home_posts()) + home % PHASES).map(|entry| (old_entry(home, entry).0, author));
    Ok((AccountId::new(owner_id(home)?)?, posts.collect()))
}

impl System for Tideline<'_> {
    fn fill(&self, homes: u64) -> BoxFuture<'_, anyhow::Result<()>> {
        self.fill_homes(homes).boxed()
    }

    fn follow<'a>(&'a self, author: u64, followers: &'a [u64]) -> BoxFuture<'a, anyhow::Result<()>> {
        self.make_author(author, followers).boxed()
    }

    fn post<'a>(
        &'a self,
        author: u64,
        number: u64,
        deliveries: &'a Deliveries,
    ) -> BoxFuture<'a, anyhow::Result<u64>> {
        let post = async move {
            let draft = Draft::text(format!("post {number}"));
            let mut published = self.engine.publish(account_id(author)?, &draft).await?;
            let mut noted = 0;
            loop {
                let progress = published.delivery.first(noted + 1).await?;
                deliveries.note(progress.delivered - noted);
                noted = progress.delivered;
                if progress.is_done {
                    return Ok(published.id.get());
                }
            }
        };
        post.boxed()
    }

    fn look(&self, home: u64, post_id: u64) -> BoxFuture<'_, anyhow::Result<Look>> {
        let look = async move {
            let held = self.engine.stored_home(AccountId::new(owner_id(home)?)?).await?;
            let has_post = held.iter().any(|(id, _)| *id == post_id);
            Ok(Look { entries: held.len() as u64, has_post })
        };
        look.boxed()
    }
}
