//! A site that is filled here: accounts with names, profiles and passwords, whom they follow, what they have posted;
//! and the engine in this process that shows the same pages.

use std::time::Duration;

use anyhow::Context as _;
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use rand::rngs::StdRng;
use rand::seq::index;
use rand::{RngExt as _, SeedableRng as _};
use tideline::cluster::RouterSettings;
use tideline::post::Draft;
use tideline::profile::ProfileUpdate;
use tideline::registration::{Registration, RegistrationSettings};
use tideline::{
    AccountId, Engine, EngineBuilder, EngineSettings, ImportedEdge, ImportedPost, NewAccount, PostId,
    StoreOptions,
};

use super::args::ServeArgs;
use crate::bench::Bench;
use crate::http::Clients;
use crate::members::account_id;
use crate::progress;
use crate::site::{Application, PASSWORD};

/// What is imported at a time.
const IMPORT: usize = 100_000;
const FOLLOWED_MS: u64 = 1_600_000_000_000;
const FIRST_POST_MS: u64 = 1_700_000_000_000;
const POST_STEP_MS: u64 = 60_000;
/// People who get their names, or tokens, at once.
const PEOPLE_AT_ONCE: usize = 16;
/// Public posts of each bucket, as `tideline serve` has them.
const PUBLIC_POSTS: u32 = 256;
/// What is left at the end gets so long.
const STOPPING_MAX: Duration = Duration::from_secs(20);

/// A site's data, and those who live there.
#[derive(Debug)]
pub(super) struct World {
    pub(super) engine: Engine,
    /// Of each account those who follow it.
    followers: Vec<u32>,
    /// Posts that were there at the beginning.
    pub(super) posts: Vec<PostId>,
}

/// What an account is called.
pub(super) fn login(number: u32) -> String {
    format!("reader{number}")
}

pub(super) fn id_of(number: u32) -> tideline::Result<AccountId> {
    account_id(number.into())
}

/// Hashtags that posts have, one each.
const TAGS: u64 = 50;

/// A text of so many letters, with a hashtag as people write them.
pub(super) fn text(number: u64, chars: usize) -> String {
    let begin = format!("Post {number} from the shore. #{} ", tag(number));
    begin.chars().chain("a word of the sea ".chars().cycle()).take(chars).collect()
}

fn tag(number: u64) -> String {
    format!("tide{}", number % TAGS)
}

impl World {
    /// Fills a tenant that nobody has used.
    pub(super) async fn load(args: &ServeArgs, bench: &Bench, seed: u64) -> anyhow::Result<Self> {
        let router = RouterSettings { replicas: bench.replicas(), ..RouterSettings::default() };
        let options =
            StoreOptions { prefix: bench.prefix.clone(), router, ..StoreOptions::new(bench.target.seeds()) };
        // As `tideline serve` has it.
        let settings = EngineSettings {
            shows_profiles: true,
            keeps_notifications: true,
            public_posts: PUBLIC_POSTS,
            ..EngineSettings::default()
        };
        let builder = || Engine::builder().store(options.clone()).settings(settings.clone());
        let (followers, posts) = import(args, builder, seed).await?;
        let engine = builder().start().await.context("the engine of this process")?;
        let world = Self { engine, followers, posts };
        match world.name(args.readers).await {
            Ok(()) => Ok(world),
            Err(error) => {
                world.stopped().await;
                Err(error)
            }
        }
    }

    /// Gives everybody a name, a profile and a password that costs little to check.
    async fn name(&self, readers: u32) -> anyhow::Result<()> {
        let cheap = RegistrationSettings { memory_kib: 8, passes: 1, ..RegistrationSettings::default() };
        let registration = Registration::new(&self.engine, cheap).await?;
        let bar = progress::bar(readers.into(), "names".to_owned());
        let name = async |number: u32| {
            let id = id_of(number)?;
            registration.set_login(id, &login(number)).await?;
            registration.set_password(id, PASSWORD).await?;
            let update = ProfileUpdate {
                display_name: Some(format!("Reader {number} of the Shore")),
                bio: Some("Reads what the tide brings, and says so now and then.".to_owned()),
                fields: Some(vec![("Where".to_owned(), "between the marks".to_owned())]),
                ..ProfileUpdate::default()
            };
            registration.update_profile(id, &update).await?;
            bar.inc(1);
            anyhow::Ok(())
        };
        let named = stream::iter(0..readers).map(name).buffer_unordered(PEOPLE_AT_ONCE).try_collect().await;
        bar.finish_and_clear();
        named
    }

    /// The accounts that have as many followers, or as near to that as it goes, and how many they have.
    pub(super) fn with_followers(&self, wanted: u32) -> (Vec<u32>, u32) {
        let nearest = self.followers.iter().copied().min_by_key(|followers| followers.abs_diff(wanted));
        let nearest = nearest.unwrap_or_default();
        let all = (0..).zip(&self.followers).filter(|(_, followers)| **followers == nearest);
        (all.map(|(number, _)| number).collect(), nearest)
    }

    pub(super) async fn stopped(self) {
        if let Err(error) = self.engine.shutdown(STOPPING_MAX).await {
            eprintln!("The engine of this process did not stop in order: {error}");
        }
    }
}

/// A token for each account.
pub(super) async fn tokens(clients: &Clients, readers: u32) -> anyhow::Result<Vec<String>> {
    let application = Application::register(clients).await?;
    let bar = progress::bar(readers.into(), "tokens".to_owned());
    let token = async |number: u32| {
        let token = application.token_of(clients, &login(number)).await?;
        bar.inc(1);
        anyhow::Ok(token)
    };
    let tokens = stream::iter(0..readers).map(token).buffered(PEOPLE_AT_ONCE).try_collect().await;
    bar.finish_and_clear();
    tokens
}

/// Imports accounts, follows and posts; gives how many follow each account, and the posts.
async fn import(
    args: &ServeArgs,
    builder: impl Fn() -> EngineBuilder,
    seed: u64,
) -> anyhow::Result<(Vec<u32>, Vec<PostId>)> {
    let mut importer = builder().import().await?;
    // A tenant that an import begins has decided nothing: whoever runs it does.
    let operator = builder().observe().await?;
    let none = operator.decision();
    operator.decide(&none.change().set_all(none.settings)?).await?;
    let account = |number| Ok(NewAccount { id: Some(id_of(number)?), ..NewAccount::default() });
    importer.accounts(&(0..args.readers).map(account).collect::<tideline::Result<Vec<_>>>()?).await?;
    let mut random = StdRng::seed_from_u64(seed);
    let (mut followers, mut edges) = (vec![0; args.readers as usize], Vec::new());
    for reader in 0..args.readers {
        for nth in index::sample(&mut random, args.readers as usize - 1, args.followees as usize) {
            // Of all others: itself is left out.
            let author = u32::try_from(nth)? + u32::from(nth >= reader as usize);
            followers[author as usize] += 1;
            edges.push(ImportedEdge {
                reader: id_of(reader)?,
                author: id_of(author)?,
                since_ms: FOLLOWED_MS,
            });
        }
    }
    let bar = progress::bar(edges.len() as u64, "follows loaded".to_owned());
    for part in edges.chunks(IMPORT) {
        importer.edges(part).await?;
        bar.inc(part.len() as u64);
    }
    bar.finish_and_clear();
    let (mut posts, mut ids) = (Vec::new(), Vec::new());
    for nth in 0..args.history {
        for author in 0..args.readers {
            let created_ms =
                FIRST_POST_MS + u64::from(nth) * POST_STEP_MS + random.random_range(0..POST_STEP_MS);
            let number = u64::from(nth) * u64::from(args.readers) + u64::from(author);
            let draft = Draft::text(text(number, args.text_chars)).hashtags([tag(number)]);
            posts.push(ImportedPost { author: id_of(author)?, created_ms, draft });
        }
    }
    for part in posts.chunks(IMPORT) {
        ids.extend(importer.posts(part).await?);
    }
    importer.finish().await?;
    Ok((followers, ids))
}
