//! `loadtest kills`: servers of a site are killed while clients write over HTTP, and all that was answered is there in
//! the end.
//!
//! `servers` are those that die, `person` is one of those who write, `notes` is what they were answered; `killing` says
//! what dies when, `check` looks at everything in the end.

mod args;
mod check;
mod killing;
mod notes;
mod outcome;
mod person;
mod servers;

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use futures::future::join_all;
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use serde_json::Value;
use tideline::cluster::Seed;
use tideline_local_cluster::{ClusterSpec, LocalCluster};
use tokio::process::Command;

use crate::common::{End, Told as _};
use crate::http::Ask;
use crate::progress;
use crate::site::{SiteSettings, refused};
use crate::target::PRIMARIES;
pub(crate) use args::KillsArgs;
use check::Checking;
use killing::{Killed, Killing, NODE_TIMEOUT};
use notes::Notes;
use outcome::Outcome;
use person::{Person, Town};
use servers::{Servers, Settled};

/// What the killed have left is done by others within this time.
const SETTLED_MAX: Duration = Duration::from_secs(180);
const LOOK: Duration = Duration::from_millis(500);
/// Looks in a row that find nothing left.
const LOOKS: u32 = 4;
/// What servers of the site are set to: passwords that cost little; work of the dead is taken over soon; and nothing is
/// answered that a failover may lose.
const VARIABLES: [(&str, &str); 8] = [
    ("SERVER_REGISTRATIONS", "open"),
    ("REGISTRATION_MEMORY_KIB", "8"),
    ("REGISTRATION_PASSES", "1"),
    ("CLUSTER_BUCKETS", "64"),
    ("ENGINE_LEASE_TTL_MS", "4000"),
    ("ENGINE_LEASE_RENEWAL_MS", "1000"),
    ("ENGINE_SCAN_PERIOD_MS", "500"),
    ("ENGINE_VISIBLE_WITHIN_MS", "500"),
];
const REPLICATED: [(&str, &str); 2] =
    [("ENGINE_ACKNOWLEDGE", "replicated"), ("CLUSTER_REPLICAS", "required")];

/// Runs the test: right, if all that was answered is there.
pub(crate) async fn run(args: KillsArgs) -> anyhow::Result<End> {
    let seed = args.seed.unwrap_or_else(rand::random);
    let replicas = u16::from(args.has_failovers());
    eprintln!("Starting a cluster of {PRIMARIES} primaries with {replicas} replicas each; seed {seed}.");
    let spec = ClusterSpec::ephemeral().primaries(PRIMARIES).replicas(replicas).node_timeout(NODE_TIMEOUT);
    let cluster = LocalCluster::up(spec).await.context("no local cluster could be started")?;
    let outcome = Box::pin(on_cluster(&args, &cluster, seed)).await;
    cluster.down().await?;
    let outcome = outcome?;
    args.files.tell(&outcome, &outcome.report())?;
    Ok(outcome.is_right().into())
}

async fn on_cluster(args: &KillsArgs, cluster: &LocalCluster, seed: u64) -> anyhow::Result<Outcome> {
    let program = args.program.path()?;
    let more: &[_] = if args.has_failovers() { &REPLICATED } else { &[] };
    let variables = VARIABLES.iter().chain(more).map(|(name, value)| (*name, (*value).to_owned()));
    let settings = SiteSettings {
        program: program.clone(),
        seeds: cluster.urls().into_iter().map(Seed::from).collect(),
        prefix: String::new(),
        variables: variables.collect(),
    };
    let servers = Arc::new(Servers::start(settings.clone(), seed).await?);
    let worked = Box::pin(work(args, cluster, &servers, seed)).await;
    let settled = match &worked {
        Ok(_) => settle(&servers).await,
        Err(_) => Ok(()),
    };
    let checked = async {
        let (mut outcome, town, notes) = worked?;
        settled?;
        let mut checking = Checking::new(&town, &notes);
        checking.run().await?;
        let wrong = notes.iter().flat_map(|notes| notes.wrong.clone()).chain(checking.wrong);
        outcome.looked_at = checking.looked_at;
        outcome.count(wrong.collect());
        (outcome.out_of_step, outcome.findings) = fsck(&program, &settings.seeds).await?;
        anyhow::Ok(outcome)
    };
    let checked = Box::pin(checked).await;
    servers.end().await;
    let mut outcome = checked?;
    outcome.panics = servers.panics();
    Ok(outcome)
}

/// People write, and servers are killed; all are there again in the end.
async fn work(
    args: &KillsArgs,
    cluster: &LocalCluster,
    servers: &Arc<Servers>,
    seed: u64,
) -> anyhow::Result<(Outcome, Town, Vec<Notes>)> {
    let began = Instant::now();
    let (town, people) = move_in(args, servers).await?;
    let town = Arc::new(town);
    let mut random = StdRng::seed_from_u64(seed);
    let is_over = Arc::new(AtomicBool::new(false));
    let people = people.into_iter().enumerate().map(|(place, notes)| {
        let mut person = Person::new(town.clone(), place, notes, StdRng::from_rng(&mut random));
        let is_over = is_over.clone();
        tokio::spawn(async move {
            while !is_over.load(Ordering::Relaxed) {
                person.act().await?;
            }
            anyhow::Ok(person.notes)
        })
    });
    let people: Vec<_> = people.collect();
    let bar = progress::bar(args.kills.into(), "kills".to_owned());
    let mut killing = Killing { args, servers, cluster, promoted: HashMap::new() };
    let killed = killing.run(&mut random, |nth| bar.set_position(nth.into())).await;
    bar.finish_and_clear();
    is_over.store(true, Ordering::Relaxed);
    let mut notes = Vec::new();
    for person in join_all(people).await {
        notes.push(person??);
    }
    let (answered, unanswered) = servers.counted();
    let outcome = outcome(args, seed, killed?, &notes);
    let outcome = Outcome { seconds: began.elapsed().as_secs_f64(), answered, unanswered, ..outcome };
    let town = Arc::into_inner(town).context("somebody is still at work")?;
    Ok((outcome, town, notes))
}

fn outcome(args: &KillsArgs, seed: u64, killed: Killed, notes: &[Notes]) -> Outcome {
    let sum = |of: fn(&Notes) -> usize| notes.iter().map(|notes| of(notes) as u64).sum();
    Outcome {
        command: "kills",
        settings: args.clone(),
        seed,
        seconds: 0.0,
        killed,
        answered: 0,
        unanswered: 0,
        tokens: sum(|notes| notes.tokens.len() + notes.revoked.len()),
        sign_ups: sum(|notes| notes.newcomers.len()),
        posts: sum(|notes| notes.posts.len()),
        refused_rightly: notes.iter().map(|notes| notes.refused).sum(),
        looked_at: 0,
        missing: 0,
        doubled: 0,
        leaked: 0,
        miscounted: 0,
        refused_wrongly: 0,
        out_of_step: 0,
        panics: 0,
        wrong: Vec::new(),
        findings: String::new(),
    }
}

/// People sign up, before anything is killed.
async fn move_in(args: &KillsArgs, servers: &Arc<Servers>) -> anyhow::Result<(Town, Vec<Notes>)> {
    let application = servers.application().await?;
    let mut people = Vec::new();
    for place in 0..args.people {
        let login = format!("person{place}");
        let Settled { answer, unanswered: doubtful_sessions } =
            servers.settle(&application.sign_up(&login)).await?;
        anyhow::ensure!(answer.is_success(), refused("a sign-up", &answer));
        let token = answer.json()["access_token"].as_str().context("a sign-up without a token")?.to_owned();
        let own = Ask::get("/api/v1/accounts/verify_credentials").token(&token);
        let id = servers.settle(&own).await?.answer.json()["id"].as_str().unwrap_or_default().to_owned();
        people.push(Notes { login, id, tokens: vec![token], doubtful_sessions, ..Notes::default() });
    }
    let ids = people.iter().map(|notes| notes.id.clone()).collect();
    Ok((Town::new(servers.clone(), application, ids), people))
}

/// Waits until nothing is left to do of what the killed have left.
async fn settle(servers: &Servers) -> anyhow::Result<()> {
    let (since, mut quiet) = (Instant::now(), 0);
    while quiet < LOOKS {
        anyhow::ensure!(since.elapsed() < SETTLED_MAX, "work is left {SETTLED_MAX:?} after the last kill");
        tokio::time::sleep(LOOK).await;
        let left = servers.metric("tideline_journal_entries").await?;
        quiet = if left > 0.0 { 0 } else { quiet + 1 };
    }
    Ok(())
}

/// What attempts at names leave behind whose server was killed: fsck finds and removes it, and a sign-up goes on
/// without.
const LEFT_BY_THE_KILLED: [&str; 2] = ["attempt_left", "claim_needless"];

/// What fsck says is wrong: how much, and what it told.
async fn fsck(program: &Path, seeds: &[Seed]) -> anyhow::Result<(u64, String)> {
    let seeds: Vec<&str> = seeds.iter().map(Seed::url).collect();
    let mut command = Command::new(program);
    command.args(["fsck", "--json"]).env("TIDELINE_CLUSTER", seeds.join(","));
    let output = command.output().await?;
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    let report: Value = serde_json::from_str(&told).unwrap_or_default();
    let (Some(findings), Some(in_flight)) = (report["findings"].as_object(), report["in_flight"].as_u64())
    else {
        anyhow::bail!("fsck could not look: {told}{}", String::from_utf8_lossy(&output.stderr));
    };
    let counts = findings
        .iter()
        .filter(|(kind, of)| of["is_harmless"] != true && !LEFT_BY_THE_KILLED.contains(&kind.as_str()));
    let found: u64 = counts.filter_map(|(_, of)| of["found"].as_u64()).sum();
    Ok((found + in_flight, told))
}
