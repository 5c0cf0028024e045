//! `loadtest archive`: what it costs that old posts leave memory, and what it saves.
//!
//! `backend` is where posts go, `world` a tenant that is filled; `moving` has posts leave that are all due, `open`
//! those that become due while others are published, `pages` reads them. Every part begins with empty servers.

mod args;
mod backend;
mod moving;
mod open;
mod outcome;
mod pages;
mod world;

use crate::bench::{Bench, on_cluster};
use crate::common::End;
use crate::target::PRIMARIES;
pub(crate) use args::ArchiveArgs;
use args::Part;
use backend::Backend;
use moving::Backlog;
use outcome::Outcome;

/// Runs the test: right, if every post is where it has to be, and every page showed what it had to.
pub(crate) async fn run(args: ArchiveArgs) -> anyhow::Result<End> {
    args.check()?;
    let seed = args.common.begin()?;
    let backend = Backend::start(args.backend).await?;
    let measure = async |bench: &Bench| Box::pin(measure(&args, bench, &backend, seed)).await;
    let outcome = on_cluster(&args.common.cluster, (PRIMARIES, 0), measure).await?;
    args.common.end(&outcome)
}

async fn measure(args: &ArchiveArgs, bench: &Bench, backend: &Backend, seed: u64) -> anyhow::Result<Outcome> {
    let backlog = |name, authors, posts| Backlog {
        name,
        authors,
        posts,
        hot_posts: args.hot_posts,
        settles_within: args.settles_within(),
    };
    let mut outcome = Outcome::new(args, seed);
    if args.has(Part::Backlog) {
        let backlog = backlog("backlog", args.backlog_authors, args.backlog_posts);
        outcome.backlog = Some(backlog.run(bench, backend).await?);
    }
    if args.has(Part::Open) {
        outcome.open = Some(open::run(args, bench, backend, seed).await?);
    }
    if args.has(Part::Memory) {
        let backlog = backlog("memory", args.posts_authors, args.posts / args.posts_authors);
        outcome.memory = Some(backlog.run(bench, backend).await?);
    }
    if args.has(Part::Pages) {
        outcome.pages = Some(pages::run(args, bench, backend).await?);
    }
    outcome.judge();
    Ok(outcome)
}
