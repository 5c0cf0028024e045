//! Pages of a site that runs: nothing is started there, and nothing written.

use std::net::ToSocketAddrs as _;
use std::sync::Arc;

use anyhow::Context as _;
use rand::RngExt as _;
use rand::SeedableRng as _;
use rand::rngs::StdRng;

use super::args::ServeArgs;
use super::open::OpenLoop;
use super::outcome::Outcome;
use super::pages::{PageRequests, SitePages};
use crate::drive;
use crate::http::Clients;
use crate::stats::{count, median, whole};

/// Pages of a turn, for a machine that is far too fast.
const PLANNED: usize = 1_000_000;

/// Reads in both loops: as fast as it goes, and as is due.
pub(super) async fn measure(args: &ServeArgs, url: &str, seed: u64) -> anyhow::Result<Outcome> {
    let host = url.strip_prefix("http://").map(|host| host.trim_end_matches('/'));
    let host = host.with_context(|| format!("--url is {url:?}; it takes http://HOST:PORT, without TLS"))?;
    let address = host.to_socket_addrs().ok().and_then(|mut addresses| addresses.next());
    let address = address.with_context(|| format!("--url {url}: there is no such place"))?;
    let file = args.tokens.as_deref().context("--tokens names a file")?;
    let text = std::fs::read_to_string(file).with_context(|| format!("{} cannot be read", file.display()))?;
    let tokens: Vec<String> =
        text.lines().map(|line| line.trim().to_owned()).filter(|line| !line.is_empty()).collect();
    anyhow::ensure!(!tokens.is_empty(), "{} has no token", file.display());
    let is_token = |token: &String| token.bytes().all(|byte| byte.is_ascii_graphic());
    anyhow::ensure!(tokens.iter().all(is_token), "{}: a token is letters without spaces", file.display());
    let readers = u32::try_from(tokens.len())?;
    let clients = Arc::new(Clients::new(address, args.connections as usize));
    let requests = Arc::new(PageRequests::new(&tokens));
    let pages = Arc::new(SitePages::new(clients.clone(), requests.clone()));
    let mut random = StdRng::seed_from_u64(seed);
    let mut per_second = Vec::new();
    for _ in 0..args.rounds {
        let turn: Vec<u32> = (0..PLANNED).map(|_| random.random_range(0..readers)).collect();
        let (before, began) = (pages.tally.summary().counts.succeeded, std::time::Instant::now());
        drive::closed(&pages, turn, args.connections as usize, args.turn()).await?;
        let read = pages.tally.summary().counts.succeeded - before;
        per_second.push(count(read) / began.elapsed().as_secs_f64());
    }
    let can = median(&per_second).unwrap_or_default();
    let rate = args.rate.or_else(|| u32::try_from(whole(can / super::OPEN_SHARE)).ok()).unwrap_or(1).max(1);
    let open = OpenLoop { args, clients, requests, readers };
    let mut outcome = Outcome::new(args, seed, false);
    outcome.open = Some(open.run(rate, &mut random).await?);
    outcome.page_bytes = pages.bytes_each();
    outcome.pages_per_second = can;
    outcome.pages = Some(pages.tally.summary());
    Ok(outcome)
}
