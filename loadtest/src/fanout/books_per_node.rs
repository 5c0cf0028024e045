//! `books_per_node`: the books' commands, collected for each node by the router.

use futures::future::{BoxFuture, FutureExt as _};
use futures::stream::TryStreamExt as _;
use tideline::cluster::Batch;

use super::args::FanoutArgs;
use super::deliveries::Deliveries;
use super::system::{Look, System};
use super::world::post_id;
use super::{books, followers};
use crate::bench::{Bench, run};

/// Followers whose deliveries go into one batch, which the router makes into pipelines of 500.
pub(super) const BATCH: usize = 5_000;
/// While one batch runs, the next is read and made.
pub(super) const BATCHES_AT_ONCE: usize = 2;

pub(crate) struct BooksPerNode<'a> {
    bench: &'a Bench,
    cap: u64,
}

impl<'a> BooksPerNode<'a> {
    pub(crate) fn open(bench: &'a Bench, args: &FanoutArgs) -> Self {
        Self { bench, cap: args.books_cap }
    }
}

impl System for BooksPerNode<'_> {
    fn fill(&self, homes: u64) -> BoxFuture<'_, anyhow::Result<()>> {
        books::fill(self.bench, homes, self.cap).boxed()
    }

    fn follow<'a>(&'a self, author: u64, followers: &'a [u64]) -> BoxFuture<'a, anyhow::Result<()>> {
        followers::follow(self.bench, author, followers).boxed()
    }

    fn post<'a>(
        &'a self,
        author: u64,
        number: u64,
        deliveries: &'a Deliveries,
    ) -> BoxFuture<'a, anyhow::Result<u64>> {
        let post = async move {
            let router = &self.bench.router;
            let (ms, cap) = (router.now_ms(), i64::try_from(self.cap)?);
            let id = post_id(ms, number);
            let deliver = async |homes: Vec<String>| {
                let mut batch = Batch::with_capacity(2 * homes.len());
                homes.iter().for_each(|home| books::deliver(&mut batch, home, ms, id, cap));
                run(router, batch).await?;
                deliveries.note(homes.len() as u64);
                Ok(())
            };
            followers::homes(router, &self.bench.prefix, author, BATCH)
                .try_for_each_concurrent(BATCHES_AT_ONCE, deliver)
                .await?;
            Ok(id)
        };
        post.boxed()
    }

    fn look(&self, home: u64, post_id: u64) -> BoxFuture<'_, anyhow::Result<Look>> {
        books::look(self.bench, home, post_id).boxed()
    }
}
