//! The engine, in several instances, with a policy.

use std::time::Duration;

use anyhow::Context as _;
use futures::future::{BoxFuture, FutureExt as _, join_all};
use tideline::post::Draft;
use tideline::{
    AccountFacts, Delivery, DeliveryWay, Engine, EngineSettings, ImportedEdge, ImportedPost, Importer, Mode,
    NewAccount, Policy, PostId, Query, Range, StoreOptions,
};

use super::{PAGE, Shown, Timelines, id_of};
use crate::bench::Bench;
use crate::graph::Graph;
use crate::progress;
use crate::scenario::Scenario;

/// Fan-outs that may wait in an instance: the most that the setting allows.
const TASKS_MAX: usize = 1_000_000;
/// What an account may follow: the most that the setting allows. An import doesn't ask, so a graph must not have more
/// either.
const FOLLOWING_MAX: u32 = 20_000;
const _: () = assert!(crate::graph::FOLLOWING_MAX < FOLLOWING_MAX as usize);
/// What is imported at a time.
const IMPORT: usize = 100_000;
/// The times of posts and follows that are there at the beginning.
const FOLLOWED_MS: u64 = 1_600_000_000_000;
const FIRST_POST_MS: u64 = 1_700_000_000_000;
const POST_STEP_MS: u64 = 60_000;
/// So long what was accepted may take to come to its end, and so often it is looked at.
const SETTLING_MAX: Duration = Duration::from_secs(30);
const SETTLING_LOOK: Duration = Duration::from_millis(1);

/// Whoever is pushed stays so, and who is pulled too: what is measured does not change meanwhile.
#[derive(Debug)]
struct Keep;

impl Policy for Keep {
    fn way(&self, facts: &AccountFacts) -> DeliveryWay {
        facts.now
    }
}

/// A network in a tenant of its own.
#[derive(Debug)]
pub(crate) struct Tideline {
    /// An account always meets the same one.
    engines: Vec<Engine>,
}

impl Tideline {
    /// Imports a network into a tenant that nobody has used, and starts the instances.
    pub(crate) async fn load(
        bench: &Bench,
        prefix: &str,
        scenario: &Scenario,
        graph: &Graph,
        ways: &[DeliveryWay],
    ) -> anyhow::Result<Self> {
        let router = bench.router_settings();
        let options = StoreOptions {
            prefix: prefix.to_owned(),
            buckets: Some(scenario.drive.buckets),
            router,
            ..StoreOptions::new(bench.target.seeds())
        };
        let settings = EngineSettings {
            visible_within: scenario.policies.visible_within(),
            following_max: FOLLOWING_MAX,
            dormant_after_days: None,
            // Who publishes faster than is delivered sees the fan-outs lag here, where a service would be told to slow
            // down.
            tasks_max: TASKS_MAX,
            ..EngineSettings::default()
        };
        let builder = || Engine::builder().store(options.clone()).settings(settings.clone());
        let mut importer = builder().import().await?;
        // A tenant that an import begins has decided nothing: whoever runs it does.
        let operator = builder().observe().await?;
        let none = operator.decision();
        operator.decide(&none.change().set_all(none.settings)?).await?;
        import(&mut importer, scenario, graph, ways).await?;
        importer.finish().await?;
        let mut engines = Vec::with_capacity(scenario.drive.instances);
        for _ in 0..scenario.drive.instances {
            engines.push(builder().policy(Keep).start().await.context("an instance of the engine")?);
        }
        Ok(Self { engines })
    }

    /// The instance that an account meets.
    fn engine(&self, account: u32) -> &Engine {
        &self.engines[account as usize % self.engines.len()]
    }
}

async fn import(
    importer: &mut Importer,
    scenario: &Scenario,
    graph: &Graph,
    ways: &[DeliveryWay],
) -> anyhow::Result<()> {
    let account = |(number, way): (u32, &DeliveryWay)| {
        let mode = if *way == DeliveryWay::Pull { Mode::Pull } else { Mode::Push };
        Ok(NewAccount { id: Some(id_of(number)?), mode, ..NewAccount::default() })
    };
    let accounts = (0..).zip(ways).map(account).collect::<tideline::Result<Vec<_>>>()?;
    importer.accounts(&accounts).await?;
    let posts = scenario.activity.history * accounts.len() as u64;
    let bar = progress::bar(graph.follows() as u64 + posts, "follows and posts loaded".to_owned());
    let edge = |(reader, author): (u32, u32)| {
        Ok(ImportedEdge { reader: id_of(reader)?, author: id_of(author)?, since_ms: FOLLOWED_MS })
    };
    let mut edges = graph.all().map(edge);
    while let Some(part) = next(&mut edges)? {
        importer.edges(&part).await?;
        bar.inc(part.len() as u64);
    }
    let text = "x".repeat(scenario.activity.text_chars);
    let accounts = u32::try_from(graph.accounts())?;
    let post = |(author, nth): (u32, u64)| {
        let created_ms = FIRST_POST_MS + nth * POST_STEP_MS + u64::from(author) % POST_STEP_MS;
        Ok(ImportedPost { author: id_of(author)?, created_ms, draft: Draft::text(text.clone()) })
    };
    let history = scenario.activity.history;
    let mut posts = (0..accounts).flat_map(|author| (0..history).map(move |nth| (author, nth))).map(post);
    while let Some(part) = next(&mut posts)? {
        importer.posts(&part).await?;
        bar.inc(part.len() as u64);
    }
    bar.finish_and_clear();
    Ok(())
}

/// The next of these that are imported together; nothing: there are no more.
fn next<T>(all: &mut impl Iterator<Item = tideline::Result<T>>) -> tideline::Result<Option<Vec<T>>> {
    let part = all.by_ref().take(IMPORT).collect::<tideline::Result<Vec<_>>>()?;
    Ok((!part.is_empty()).then_some(part))
}

impl Timelines for Tideline {
    fn post<'a>(&'a self, author: u32, text: &'a str) -> BoxFuture<'a, tideline::Result<Option<Delivery>>> {
        async move {
            let published = self.engine(author).publish(id_of(author)?, &Draft::text(text)).await?;
            Ok(Some(published.delivery))
        }
        .boxed()
    }

    fn page(&self, reader: u32, since: u64) -> BoxFuture<'_, tideline::Result<Shown>> {
        async move {
            let since_id = (since > 0).then(|| PostId::from_u64(since)).transpose()?;
            let query = Query::home().limit(PAGE).range(Range { since_id, ..Range::default() }).hydrated();
            let page = self.engine(reader).as_reader(id_of(reader)?).read(&query).await?;
            Ok(Shown { posts: page.posts.len(), newest: page.posts.first().map_or(0, |post| post.id.get()) })
        }
        .boxed()
    }

    fn follow(&self, reader: u32, author: u32) -> BoxFuture<'_, tideline::Result<()>> {
        async move { self.engine(reader).follow(id_of(reader)?, id_of(author)?).await.map(drop) }.boxed()
    }

    fn unfollow(&self, reader: u32, author: u32) -> BoxFuture<'_, tideline::Result<()>> {
        async move { self.engine(reader).unfollow(id_of(reader)?, id_of(author)?).await.map(drop) }.boxed()
    }

    fn warm(&self, reader: u32) -> BoxFuture<'_, tideline::Result<()>> {
        async move { self.engine(reader).warm(id_of(reader)?).await.map(drop) }.boxed()
    }

    fn set_way(&self, account: u32, way: DeliveryWay) -> BoxFuture<'_, tideline::Result<()>> {
        async move { self.engine(account).set_way(id_of(account)?, Some(way)).await?.all().await.map(drop) }
            .boxed()
    }

    fn settled(&self) -> BoxFuture<'_, ()> {
        let settle = async move {
            while self.engines.iter().any(|engine| engine.tasks() > 0) {
                tokio::time::sleep(SETTLING_LOOK).await;
            }
        };
        tokio::time::timeout(SETTLING_MAX, settle).map(drop).boxed()
    }

    fn stopped(&self) -> BoxFuture<'_, ()> {
        let stop = |engine: &Engine| {
            let engine = engine.clone();
            async move {
                if let Err(e) = engine.shutdown(SETTLING_MAX).await {
                    eprintln!("An engine did not stop in order: {e}");
                }
            }
        };
        join_all(self.engines.iter().map(stop)).map(drop).boxed()
    }
}
