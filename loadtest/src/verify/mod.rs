//! `loadtest verify`: the oracle. Random histories of everything that accounts do, on several instances, held against a
//! naive model: every page that anybody gets, and in the end everybody's whole timeline.
//!
//! `plan` decides from the seed what is done, `drive` does it and writes down in `world` what was acknowledged when.
//! `rules` says who may see what, written independently of the engine; `check` holds a page against both. Nothing of
//! that does I/O or waits, but for `drive`. A page is checked after its round: by then everything that overlaps it is
//! known. After each round the work is drained, what couldn't be known (`settle`) is looked up, all is compared, and
//! fsck looks through what is stored.
//!
//! `names` and `reports` are models of their own, with the checks of what is told of them. What accounts are told of
//! each other (`inboxes`) follows from the rest.
//!
//! Another operation is an `Action` that `plan` draws now and then, a `Call` that `perform` carries out, what `drive`
//! writes into `world` when it was acknowledged, and what follows from that: in `rules` for what shows, in `settle` for
//! what can be listed or counted. Another fault is a kind of `Chaos`.

mod adopt;
mod answers;
mod archive_broken;
mod archive_ground;
mod archived;
mod args;
mod broken;
mod call;
mod chaos;
mod chats;
mod check;
mod compare;
mod comparisons;
mod content;
mod drive;
mod explain;
mod facts;
mod founder;
mod fsck;
mod gate;
mod ground;
mod group_call;
mod groups;
mod inboxes;
mod lateness;
mod looks;
mod lookups;
mod losses;
mod messenger;
mod modes;
mod names;
mod orphans;
mod outcome;
mod over_http;
mod patience;
mod perform;
mod places;
mod plan;
mod pool;
mod registrar;
mod remarks;
mod reports;
mod rules;
mod run;
mod settle;
mod setup;
mod slept;
mod steps;
mod stored;
mod suspects;
mod told;
mod under_way;
mod walks;
mod worker;
mod world;
mod written;

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rand::SeedableRng;
use rand::rngs::StdRng;
use tokio::sync::Mutex;

use crate::leftover::{self, Leftover, new_prefix};
pub(crate) use args::VerifyArgs;
use args::{ArchiveKind, Policy, Sabotage};
use chaos::Storm;
use gate::Gate;
use ground::Ground;
use outcome::{Basis, Outcome};
use plan::Planner;
use pool::{Instance, Pool};
use run::Run;
use setup::Setup;
use walks::Depth;
use worker::Worker;
pub(crate) use worker::serve;
use world::World;

/// Violations that are explained at length.
const EXPLAINED_MAX: usize = 6;
const BUCKETS: u16 = 16;
/// A call that is not carried out within this time is stuck; and in a run where slots stay open for minutes.
const CALL_MAX: Duration = Duration::from_secs(60);
const CALL_MAX_SHORT: Duration = Duration::from_secs(15);
const CALL_MAX_LONG: Duration = Duration::from_secs(300);

/// Runs the test; true if nothing was wrong.
pub(crate) async fn run(mut args: VerifyArgs) -> anyhow::Result<bool> {
    args.check()?;
    let ground = Ground::open(&mut args).await?;
    let outcome = Box::pin(verify(&args, &ground)).await;
    let closed = ground.target.close().await;
    let outcome = outcome?;
    closed?;
    args.files.tell(&outcome, &outcome.report())?;
    Ok(outcome.is_right())
}

fn setup_of(args: &VerifyArgs, ground: &Ground, seed: u64) -> Setup {
    let by_seed = if seed.is_multiple_of(2) { 0 } else { 200 };
    let visible_within_ms = args.visible_within_ms.unwrap_or(by_seed);
    Setup {
        seeds: ground.target.seeds(),
        prefix: new_prefix(leftover::PREFIX_OF_VERIFY),
        buckets: BUCKETS,
        visible_within_ms,
        home_posts: if seed.is_multiple_of(3) { 40 } else { 16 },
        spread_at: 30,
        policy: args.policy,
        is_replicated: args.has_failovers() && !args.defaults,
        may_lose: args.defaults,
        sabotage: args.sabotage,
        archive: ground.archive.as_ref().map(|archive| archive.address(args, visible_within_ms)),
        hot_posts: if seed % 4 < 2 { 2 } else { 5 },
        service: None,
        keeps_notifications: args.beside.is_none() && args.sabotage != Some(Sabotage::Untold),
        is_at_odds: false,
        clocks: ground.clocks.clone(),
        beside: args.beside.clone(),
    }
}

async fn start(args: &VerifyArgs, setup: &Setup) -> anyhow::Result<Pool> {
    let mut instances = Vec::new();
    // A file is opened once; at a server each has connections of its own, as where it is a process.
    let shared = match args.archive {
        Some(ArchiveKind::Sqlite) if !args.has_processes() => setup.archive().await?,
        _ => None,
    };
    for number in 0..usize::try_from(args.instances)? {
        instances.push(if args.has_processes() {
            Instance::There(Arc::new(Worker::started(&setup.of_instance(number), number).await?))
        } else {
            let archive = if shared.is_some() { shared.clone() } else { setup.archive().await? };
            Instance::Here(Arc::new(worker::started_here(&setup.of_instance(number), archive).await?))
        });
    }
    Ok(Pool::new(instances))
}

/// Makes ready what a tenant needs before anybody works, and starts those who do.
async fn begin(
    args: &VerifyArgs,
    ground: &Ground,
    setup: &mut Setup,
    (world, began_ms, call_max): (World, Option<u64>, Duration),
) -> anyhow::Result<Arc<Run>> {
    if args.over.is_some() {
        setup.begin_service().await?;
    }
    setup.begin_archive().await?;
    ground.begin_archive().await?;
    let run = Run::new(start(args, setup).await?, world, (began_ms, call_max));
    if args.over.is_some() {
        run.goes_over_http();
    }
    Ok(run)
}

/// Who plans what this run can do.
fn planner_of(args: &VerifyArgs, seed: u64, clients: usize) -> Planner {
    let mut planner = Planner::new(seed, u64::from(args.accounts), clients, args.policy == Policy::Mixed);
    if args.defaults {
        planner.only_what_can_be_looked_up();
    }
    if args.beside.is_some() {
        planner.only_what_the_older_knows();
    }
    if args.over.is_some() {
        planner.mostly_what_http_can_say();
    }
    planner
}

async fn verify(args: &VerifyArgs, ground: &Ground) -> anyhow::Result<Outcome> {
    let seed = args.seed.unwrap_or_else(rand::random);
    let mut setup = setup_of(args, ground, seed);
    eprintln!("Verifying {} operations; seed {seed}, {} ms.", args.operations, setup.visible_within_ms);
    if !ground.target.is_own() {
        Leftover::new(&ground.target.seeds(), &setup.prefix).tell_that_they_stay();
    }
    let began = Instant::now();
    let world = World {
        visible_within: setup.visible_within_ms * 1_000,
        may_lose: args.defaults && args.sabotage != Some(Sabotage::Losses),
        is_beside_an_older: args.beside.is_some(),
        servers_take_over: args.has_failovers(),
        waits_for_strays: args.defaults && args.minutes,
        loses_for_good: args.sabotage == Some(Sabotage::Unsettled),
        ..World::default()
    };
    let began_ms = ground.target.is_own().then(SystemTime::now).map(|now| now.duration_since(UNIX_EPOCH));
    let began_ms = began_ms.transpose()?.map(|since| u64::try_from(since.as_millis())).transpose()?;
    let call_max = match args.sabotage {
        // There something gets stuck, and is waited for.
        Some(Sabotage::Leases) => CALL_MAX_SHORT,
        _ if args.minutes => CALL_MAX_LONG,
        _ => CALL_MAX,
    };
    let run = begin(args, ground, &mut setup, (world, began_ms, call_max)).await?;
    let clients = usize::try_from(args.clients)?;
    let mut planner = planner_of(args, seed, clients);
    drive::drive(&run, planner.creations(), clients, &Gate::open()).await?;
    drive::drive(&run, planner.beginnings(), clients, &Gate::open()).await?;
    if args.has_archive_faults() {
        fill_archive(&run, &setup, &mut planner, clients).await?;
    }
    let (mut left, mut rounds) = (args.operations, 0);
    while left > 0 && run.findings().violations.is_empty() {
        let steps = left.min(args.round);
        left -= steps;
        rounds += 1;
        let mut steps = planner.steps(usize::try_from(steps)?);
        if left == 0 && args.sabotage.is_some() {
            steps.extend(planner.victims());
        }
        run.world().posts.resize(planner.posts(), None);
        let gate = Gate::new(steps.len(), gate::portions(&args.chaos));
        let work = drive::drive(&run, steps, clients, &gate);
        if args.chaos.is_empty() {
            let since = run.world().drained;
            work.await?;
            lateness::judge(&run, since);
        } else {
            Box::pin(in_a_storm(&run, &setup, args, ground, (seed, rounds), &gate, work)).await?;
        }
        let (depth, sabotage) = if left == 0 { (Depth::All, args.sabotage) } else { (Depth::Round, None) };
        compare(&run, &setup, (seed, depth, sabotage)).await?;
        if !args.chaos.is_empty() && run.findings().violations.is_empty() {
            publish_in_peace(&run, &mut planner, (clients, lateness::POSTS_AFTER_FAULTS)).await?;
        }
        eprintln!("{} operations after {:.0} s", args.operations - left, began.elapsed().as_secs_f64());
    }
    run.judge_skipped();
    explain(&run, &setup, seed).await?;
    let (seconds, posts) = (began.elapsed().as_secs_f64(), planner.posts());
    let basis = Basis { seed, visible_within_ms: setup.visible_within_ms, seconds, rounds, posts };
    Ok(Outcome::new(args, basis, &run.findings()))
}

/// When nothing is under way any more: looks up what couldn't be known, then holds everything against the model.
async fn compare(
    run: &Arc<Run>,
    setup: &Setup,
    (seed, depth, sabotage): (u64, Depth, Option<Sabotage>),
) -> anyhow::Result<()> {
    let visible = Duration::from_millis(setup.visible_within_ms + 20);
    settle::settle(run, setup).await?;
    stored::note_summed(run, setup).await?;
    if let Some(sabotage) = sabotage.filter(|sabotage| sabotage.is_in_memory()) {
        // Until then nothing that others did is certain, so nothing could be missed.
        tokio::time::sleep(visible).await;
        if sabotage == Sabotage::Leases {
            orphans::leave(run, setup).await?;
            settle::settle(run, setup).await?;
            // If nobody does that work, all that follows would wait for it too.
            if run.has_given_up() {
                return Ok(());
            }
        } else {
            stored::sabotage(run, setup, sabotage).await?;
        }
    }
    if setup.archive.is_some() {
        match depth {
            Depth::All => archived::await_all(run, setup).await?,
            Depth::Round => archived::move_all(run, setup).await?,
        }
        archived::count_all(run).await;
        if let Some(sabotage) = sabotage.filter(|sabotage| sabotage.is_in_archive()) {
            archive_broken::sabotage(run, setup, sabotage).await?;
        }
    }
    tokio::time::sleep(visible).await;
    run.check_pages();
    compare::compare(run).await;
    reports::compare(run).await;
    chats::compare(run).await;
    groups::compare(run).await;
    if setup.beside.is_none() {
        inboxes::compare(run).await;
    }
    lookups::compare(run).await;
    modes::compare(run, setup).await?;
    walks::walk(run, seed, depth).await;
    run.check_pages();
    fsck::look(run, setup).await
}

/// Does the work while things go wrong; all is mended when it returns.
async fn in_a_storm(
    run: &Arc<Run>,
    setup: &Setup,
    args: &VerifyArgs,
    ground: &Ground,
    (seed, round): (u64, usize),
    gate: &Gate,
    work: impl Future<Output = anyhow::Result<()>>,
) -> anyhow::Result<()> {
    let (cluster, bus, archive) = (ground.cluster(), ground.bus.as_ref(), ground.archive.as_ref());
    let buckets = setup.store().await?.keys().buckets();
    let (kinds, minutes) = (&*args.chaos, args.minutes);
    let (keys, open, seen) = (Mutex::default(), Mutex::default(), Mutex::default());
    let promotions = &ground.promotions;
    let storm = Storm {
        run,
        setup,
        cluster,
        bus,
        archive,
        buckets,
        kinds,
        round,
        gate,
        minutes,
        node_timeout: setup::node_timeout(args),
        keys,
        open,
        promotions,
        seen,
    };
    let mut random = StdRng::seed_from_u64(seed.wrapping_add(u64::try_from(round)?));
    let work = async {
        let done = work.await;
        gate.end();
        done
    };
    run.may_lack_archive(args.has_archive_faults());
    let (done, raged) = futures::join!(work, storm.rage(&mut random));
    run.may_lack_archive(false);
    done.and(raged)
}

/// Has something leave memory before the first fault of an archive: else that would find nobody who needs it.
async fn fill_archive(
    run: &Arc<Run>,
    setup: &Setup,
    planner: &mut Planner,
    clients: usize,
) -> anyhow::Result<()> {
    let accounts = run.world().accounts.len();
    publish_in_peace(run, planner, (clients, usize::try_from(setup.hot_posts)? * accounts * 3)).await?;
    archived::move_all(run, setup).await
}

/// Posts by everybody, once all is mended, drained and compared: whatever went wrong, none of them may be late. Not
/// before that: they would cut out of homes what is held against the model.
async fn publish_in_peace(
    run: &Arc<Run>,
    planner: &mut Planner,
    (clients, posts): (usize, usize),
) -> anyhow::Result<()> {
    let since = run.now();
    let mut steps = planner.posts_by_all(posts);
    run.world().posts.resize(planner.posts(), None);
    while !steps.is_empty() {
        let rest = steps.split_off(steps.len().min(lateness::POSTS_AT_ONCE));
        drive::drive(run, std::mem::replace(&mut steps, rest), clients, &Gate::open()).await?;
        tokio::time::sleep(lateness::PAUSE).await;
    }
    lateness::judge(run, since);
    Ok(())
}

/// Says what is known about the first violations.
async fn explain(run: &Arc<Run>, setup: &Setup, seed: u64) -> anyhow::Result<()> {
    let violations = run.findings().violations.clone();
    if !violations.is_empty() {
        eprintln!("{}", explain::happened(&run.findings().happened, &run.world().losses));
    }
    for violation in violations.iter().take(EXPLAINED_MAX) {
        let stored = stored::describe(setup, violation, run).await.unwrap_or_else(|e| format!("{e:#}\n"));
        eprintln!("{}", explain::explain(&run.world(), violation, &stored));
    }
    for violation in violations.iter().skip(EXPLAINED_MAX) {
        eprintln!("== {:?}, account {}: {}", violation.wrong, violation.reader, violation.text);
    }
    if !violations.is_empty() {
        eprintln!("Seed {seed}; the same seed plans the same operations again: --seed {seed}");
    }
    Ok(())
}
