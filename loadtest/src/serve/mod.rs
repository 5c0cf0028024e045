//! `loadtest serve`: home pages over HTTP, as clients of Mastodon read them, from the program `tideline serve`.
//!
//! `world` fills a site, `writes` is what others do there meanwhile; `pages` are read in three ways, which `turns` has
//! take turns; `bare` is the least that an answer costs, `check` holds pages against those of a server that remembers
//! nothing, while others are read, `open` tells how long pages take, `published` what a post costs. `foreign` reads
//! pages of a site that runs.

mod args;
mod bare;
mod check;
mod costs;
mod foreign;
mod open;
mod outcome;
mod pages;
mod published;
mod turns;
mod world;
mod writes;

use std::sync::Arc;

use rand::SeedableRng as _;
use rand::rngs::StdRng;

use crate::bench::{Bench, on_cluster};
use crate::common::End;
use crate::drive;
use crate::http::Clients;
use crate::progress;
use crate::site::{SiteServer, SiteSettings};
use crate::stats::{count, median, whole};
use crate::target::PRIMARIES;
pub(crate) use args::ServeArgs;
use bare::BareServer;
pub(crate) use bare::{BareArgs, serve as serve_bare};
use check::{Compared, Comparing};
use costs::PageCosts;
use open::OpenLoop;
use outcome::Outcome;
use pages::{BarePages, EnginePages, PageRequests, SitePages};
use turns::{CpuRound, Field};
use world::World;
use writes::{Writers, Writing};

/// Connections of those who write.
const WRITING: usize = 16;
/// What a server is set to that remembers nothing of posts, accounts, readers, tokens: so of no status either.
const FORGETFUL: (&str, &str) = ("ENGINE_VISIBLE_WITHIN_MS", "0");
/// What a server is set to where passwords are to cost little.
const CHEAP: [(&str, &str); 2] = [("REGISTRATION_MEMORY_KIB", "8"), ("REGISTRATION_PASSES", "1")];
/// By default the open loop asks for so many times fewer pages than the closed one got.
const OPEN_SHARE: f64 = 4.0;

/// Runs the test: right, if all was answered, and every page that was compared is as it has to be.
pub(crate) async fn run(args: ServeArgs) -> anyhow::Result<End> {
    args.check()?;
    let seed = args.common.begin()?;
    let outcome = match &args.url {
        Some(url) => foreign::measure(&args, url, seed).await?,
        None => {
            let measure = async |bench: &Bench| Box::pin(measure(&args, bench, seed)).await;
            on_cluster(&args.common.cluster, (PRIMARIES, 0), measure).await?
        }
    };
    args.common.end(&outcome)
}

async fn measure(args: &ServeArgs, bench: &Bench, seed: u64) -> anyhow::Result<Outcome> {
    let program = args.program.path()?;
    eprintln!("Filling a site: {} accounts that follow {} each; seed {seed}.", args.readers, args.followees);
    let world = World::load(args, bench, seed).await?;
    let settings = SiteSettings {
        program,
        seeds: bench.target.seeds(),
        prefix: bench.prefix.clone(),
        variables: vec![("SERVER_REGISTRATIONS", "open".to_owned())],
    };
    let (forgetful, mut servers) =
        (SiteSettings { variables: forgets(&settings), ..settings.clone() }, Vec::new());
    let measured = async {
        let tokens = tokens(&settings, args.readers).await?;
        for settings in [settings, forgetful] {
            servers.push(SiteServer::start(settings).await?);
        }
        Box::pin(on_site(args, (bench, &world, &servers), tokens, seed)).await
    };
    let measured = measured.await;
    for server in servers {
        server.end().await;
    }
    world.stopped().await;
    measured
}

/// A token for everybody, by a log-in at a server to which a password costs little: to one that is measured it would
/// cost as much as it does in a service, for each.
async fn tokens(settings: &SiteSettings, readers: u32) -> anyhow::Result<Vec<String>> {
    let cheap = CHEAP.map(|(name, value)| (name, value.to_owned()));
    let variables = settings.variables.iter().cloned().chain(cheap).collect();
    let server = SiteServer::start(SiteSettings { variables, ..settings.clone() }).await?;
    let tokens = world::tokens(&Clients::new(server.address(), WRITING), readers).await;
    server.end().await;
    tokens
}

fn forgets(settings: &SiteSettings) -> Vec<(&'static str, String)> {
    let forgetful = (FORGETFUL.0, FORGETFUL.1.to_owned());
    settings.variables.iter().cloned().chain([forgetful]).collect()
}

async fn on_site(
    args: &ServeArgs,
    (bench, world, servers): (&Bench, &World, &[SiteServer]),
    tokens: Vec<String>,
    seed: u64,
) -> anyhow::Result<Outcome> {
    let [server, forgetful] = servers else { unreachable!("two were started") };
    let clients = Arc::new(Clients::new(server.address(), args.connections as usize));
    let forgetful = Arc::new(Clients::new(forgetful.address(), args.connections as usize));
    let tokens = Arc::new(tokens);
    let requests = Arc::new(PageRequests::new(&tokens));
    let comparing =
        Comparing { requests: requests.clone(), clients: clients.clone(), forgetful: forgetful.clone() };
    let mut random = StdRng::seed_from_u64(seed);
    let site_pages = Arc::new(SitePages::new(clients.clone(), requests.clone()));
    let engine_pages = Arc::new(EnginePages::new(world.engine.clone()));
    let page_bytes = warm_up(args, &clients, &requests, &engine_pages).await?;
    let bare = BareServer::start(usize::try_from(whole(page_bytes))?).await?;
    let bare_pages = BarePages::new(Clients::new(bare.address, args.connections as usize));
    let bare_pages = Arc::new(bare_pages);
    let field = Field { args, bench, server, bare: &bare, site_pages, engine_pages, bare_pages };
    let writers = Clients::new(server.address(), WRITING);
    let writers = Arc::new(Writers::new(writers, tokens, &world.posts, args.text_chars));
    let writing = Writing::begin(&writers, args, seed);
    let (rounds, compared) = rounds(&field, &comparing, &mut random).await?;
    let pages_per_second: Vec<f64> =
        rounds.iter().map(|round| count(round.site.pages) / round.site.seconds).collect();
    let can = median(&pages_per_second).unwrap_or_default();
    let rate = args.rate.or_else(|| u32::try_from(whole(can / OPEN_SHARE)).ok()).unwrap_or(1).max(1);
    let open = OpenLoop { args, clients, requests, readers: args.readers };
    let open = open.run(rate, &mut random).await?;
    drop(writing);
    let (authors, followers) = world.with_followers(args.followers);
    let post = published::run(&field, &writers, (&authors, followers)).await?;
    let costs =
        PageCosts::new(rounds, [&field.site_pages.tally, &field.engine_pages.tally, &field.bare_pages.tally]);
    let panics = servers.iter().map(|server| server.log().matches("panicked").count() as u64).sum();
    let mut outcome = Outcome::new(args, seed, bench.target.is_own());
    outcome.page_bytes = field.site_pages.bytes_each();
    outcome.pages_per_second = can;
    outcome.costs = Some(costs);
    outcome.open = Some(open);
    outcome.post = Some(post);
    outcome.compared = (args.compare_every > 0).then_some(compared);
    outcome.written = Some(writers.written());
    outcome.panics = panics;
    Ok(outcome)
}

/// Has everybody's home filled, and caches too; tells how many bytes a page has.
async fn warm_up(
    args: &ServeArgs,
    clients: &Arc<Clients>,
    requests: &Arc<PageRequests>,
    engine: &Arc<EnginePages>,
) -> anyhow::Result<f64> {
    let bar = progress::bar(2, "everybody's first page".to_owned());
    let first = Arc::new(SitePages::new(clients.clone(), requests.clone()));
    let (all, longest) = ((0..args.readers).collect::<Vec<_>>(), std::time::Duration::from_secs(600));
    drive::closed(&first, all.clone(), args.connections as usize, longest).await?;
    bar.inc(1);
    drive::closed(engine, all, args.connections as usize, longest).await?;
    bar.finish_and_clear();
    let counts = first.tally.summary().counts;
    anyhow::ensure!(counts.failed() == 0, "first pages were refused: {:?}", counts.errors);
    Ok(first.bytes_each())
}

/// All rounds of the closed loop; what was compared behind each.
async fn rounds(
    field: &Field<'_>,
    comparing: &Comparing,
    random: &mut StdRng,
) -> anyhow::Result<(Vec<CpuRound>, Compared)> {
    let (mut rounds, mut compared) = (Vec::new(), Compared::default());
    let bar = progress::bar(field.args.rounds.into(), "rounds".to_owned());
    for number in 0..field.args.rounds {
        let round = field.round(number, random).await?;
        compared.add(comparing.beside(field, &round.site, random).await?);
        rounds.push(round);
        bar.inc(1);
    }
    bar.finish_and_clear();
    Ok((rounds, compared))
}
