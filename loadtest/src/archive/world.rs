//! A tenant that is filled here: authors, posts of an earlier time, followers; its archive; and what is in memory of
//! it.

use std::sync::Arc;
use std::time::Duration;

use tideline::archive::Archive;
use tideline::cluster::Command;
use tideline::post::Draft;
use tideline::{
    Engine, EngineBuilder, EngineSettings, ImportedEdge, ImportedPost, Importer, NewAccount, PostId,
    StoreOptions,
};

use crate::bench::Bench;
use crate::keys;
use crate::members::account_id;
use crate::progress;

/// About what a post takes in memory, for the question whether there is enough.
pub(super) const BYTES_PER_POST: u64 = 400;
/// What is imported at a time.
const IMPORT: usize = 100_000;
const TEXT_CHARS: usize = 120;
/// The times of posts and follows that are there at the beginning.
const FOLLOWED_MS: u64 = 1_600_000_000_000;
const FIRST_POST_MS: u64 = 1_700_000_000_000;
const POST_STEP_MS: u64 = 60_000;
/// Posts of an archive asked for at once.
const WALKED: usize = 1_000;
/// What memory servers give back is waited for so long at most, by looks that tell the same.
const LOOKS: u32 = 50;
const LOOK: Duration = Duration::from_millis(200);

/// A tenant of its own.
#[derive(Debug)]
pub(super) struct World<'b> {
    bench: &'b Bench,
    options: StoreOptions,
    archive: Option<Arc<dyn Archive>>,
}

/// The text of all posts.
pub(super) fn text() -> String {
    "a word of the sea ".chars().cycle().take(TEXT_CHARS).collect()
}

impl<'b> World<'b> {
    /// An empty one, with all decided.
    pub(super) async fn new(bench: &'b Bench, name: &str) -> anyhow::Result<Self> {
        let router = bench.router_settings();
        let prefix = format!("{}{name}", bench.prefix);
        let options = StoreOptions { prefix, router, ..StoreOptions::new(bench.target.seeds()) };
        let world = Self { bench, options, archive: None };
        world.builder().import().await?.finish().await?;
        let operator = world.builder().observe().await?;
        let none = operator.decision();
        operator.decide(&none.change().set_all(none.settings)?).await?;
        Ok(world)
    }

    fn builder(&self) -> EngineBuilder {
        let settings = EngineSettings { dormant_after_days: None, ..EngineSettings::default() };
        let builder = Engine::builder().store(self.options.clone()).settings(settings);
        match &self.archive {
            Some(archive) => builder.archive(archive.clone()),
            None => builder,
        }
    }

    /// Imports so many posts of each author, and follows of readers, whose numbers come after the authors'. Gives the
    /// posts' ids, author by author.
    pub(super) async fn fill(
        &self,
        posts: &[u32],
        follows: &[(u32, Vec<u32>)],
    ) -> anyhow::Result<Vec<PostId>> {
        let mut importer = self.builder().import().await?;
        let authors = u32::try_from(posts.len())?;
        let readers = follows.iter().map(|(reader, _)| *reader);
        let account =
            |number: u32| Ok(NewAccount { id: Some(account_id(number.into())?), ..NewAccount::default() });
        let accounts = (0..authors).chain(readers).map(account).collect::<tideline::Result<Vec<_>>>()?;
        importer.accounts(&accounts).await?;
        for (reader, followed) in follows {
            let edge = |author: &u32| {
                let (reader, author) = (account_id((*reader).into())?, account_id((*author).into())?);
                Ok(ImportedEdge { reader, author, since_ms: FOLLOWED_MS })
            };
            importer.edges(&followed.iter().map(edge).collect::<tideline::Result<Vec<_>>>()?).await?;
        }
        let ids = import_posts(&mut importer, posts).await?;
        importer.finish().await?;
        Ok(ids)
    }

    /// Has posts leave memory from now on, as soon as their author has so many newer ones.
    pub(super) async fn begin_archive(
        &mut self,
        archive: Arc<dyn Archive>,
        hot_posts: u32,
    ) -> anyhow::Result<()> {
        self.archive = Some(archive);
        self.builder().begin_archive(hot_posts, 0).await?;
        Ok(())
    }

    /// Somebody who has posts leave memory; nothing else runs beside.
    pub(super) async fn mover(&self) -> anyhow::Result<Engine> {
        Ok(self.builder().observe().await?)
    }

    /// An instance.
    pub(super) async fn instance(&self) -> anyhow::Result<Engine> {
        Ok(self.builder().start().await?)
    }

    /// How many posts are in memory, all keys counted.
    pub(super) async fn posts_in_memory(&self) -> anyhow::Result<u64> {
        let mut posts = 0;
        let mut add = async |keys: Vec<Vec<u8>>| {
            // The letter behind the tag says what a key is.
            let is_post = |key: &&Vec<u8>| key.split(|byte| *byte == b'}').nth(1).is_some_and(is_of_post);
            posts += keys.iter().filter(is_post).count() as u64;
            Ok(())
        };
        for slot in self.bench.slots().values() {
            keys::each(&self.bench.router, *slot, &self.options.prefix, &mut add).await?;
        }
        Ok(posts)
    }

    /// What its keys take.
    pub(super) async fn keys_bytes(&self) -> anyhow::Result<u64> {
        let bytes = self.bench.memory_of(std::slice::from_ref(&self.options.prefix)).await?;
        Ok(bytes.iter().sum())
    }

    /// How many posts the archive has, all counted.
    pub(super) async fn archived(&self, mover: &Engine) -> anyhow::Result<u64> {
        let (Some(archive), mut posts) = (&self.archive, 0) else { return Ok(0) };
        for bucket in mover.store().keys().buckets().all() {
            let mut after = None;
            loop {
                let page = archive.walk_posts(bucket, after, WALKED).await?;
                posts += page.len() as u64;
                let Some(last) = page.last().filter(|_| page.len() == WALKED) else { break };
                after = Some((last.owner, last.id));
            }
        }
        Ok(posts)
    }

    /// Bytes that the archive takes on disk.
    pub(super) async fn disk_bytes(&self) -> anyhow::Result<u64> {
        match &self.archive {
            Some(archive) => Ok(archive.size().await?.bytes),
            None => Ok(0),
        }
    }
}

fn is_of_post(name: &[u8]) -> bool {
    name.first() == Some(&b'w')
}

async fn import_posts(importer: &mut Importer, posts: &[u32]) -> anyhow::Result<Vec<PostId>> {
    let all = posts.iter().map(|posts| u64::from(*posts)).sum();
    let bar = progress::bar(all, "posts loaded".to_owned());
    let text = text();
    let post = |(author, nth): (u32, u32)| {
        // Of each time one post of every author, the next one's a little later.
        let created_ms = FIRST_POST_MS + u64::from(nth) * POST_STEP_MS + u64::from(author) % POST_STEP_MS;
        Ok(ImportedPost { author: account_id(author.into())?, created_ms, draft: Draft::text(text.clone()) })
    };
    let numbered = (0..).zip(posts).flat_map(|(author, posts)| (0..*posts).map(move |nth| (author, nth)));
    let (mut numbered, mut ids) = (numbered.map(post), Vec::new());
    loop {
        let part = numbered.by_ref().take(IMPORT).collect::<tideline::Result<Vec<_>>>()?;
        if part.is_empty() {
            bar.finish_and_clear();
            return Ok(ids);
        }
        ids.extend(importer.posts(&part).await?);
        bar.inc(part.len() as u64);
    }
}

/// What the servers have allocated, once they have given back what they give back beside their work.
pub(super) async fn memory_at_rest(bench: &Bench) -> anyhow::Result<u64> {
    let mut before = bench.used_memory().await?;
    for _ in 0..LOOKS {
        tokio::time::sleep(LOOK).await;
        let now = bench.used_memory().await?;
        // Figures of single clients come and go.
        if before.abs_diff(now) < before / 1_000 {
            return Ok(now);
        }
        before = now;
    }
    Ok(before)
}

/// Keys of all primaries.
pub(super) async fn keys_in_all(bench: &Bench) -> anyhow::Result<u64> {
    let mut keys = 0;
    for (_, reply) in bench.router.ask_primaries(&Command::new("DBSIZE")).await {
        keys += reply?.count()?;
    }
    Ok(keys)
}
