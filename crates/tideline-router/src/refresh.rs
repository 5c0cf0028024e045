//! Keeping the slot map: one loop looks at it periodically, and soon when something hints that it is old.

use std::collections::HashSet;
use std::sync::{Arc, PoisonError, Weak};
use std::time::{Duration, Instant};

use futures::StreamExt;
use futures::future::join_all;
use futures::stream::FuturesUnordered;
use rand::seq::SliceRandom;
use tokio::sync::Notify;

use super::clock;
use super::facts::{Finding, Info, NodeSettings, Severity, Version, judge, judge_clocks};
use super::map_outage::MapOutage;
use super::meters;
use super::node::Node;
use super::program::{Allocator, ServerProgram, judge_programs};
use super::router::{PrimaryFacts, SharedRouter};
use super::settings::RouterSettings;
use super::topology::{ReplicatedPrimary, Topology};
use super::view::{ClusterView, Replica, merge, parse_nodes};
use super::wire::{Command, NodeAddr, WireError, denied};
use tideline_model::error::{Error, Result};

/// Nodes asked in one look: a stale one among them is outvoted by configuration epochs.
const ASKED: usize = 3;
/// The time for which a look waits for its first answer, and after that for the others.
const FIRST_ANSWER: Duration = Duration::from_millis(400);
const OTHER_ANSWERS: Duration = Duration::from_millis(40);
/// Shortest time between two looks, however many hints come.
const GAP: Duration = Duration::from_millis(50);
/// Between two looks while a hint is fresh.
const LOOKS_AFTER_HINT: Duration = Duration::from_millis(100);

/// The first look, by the seeds alone; says why if none of them can tell.
pub(crate) async fn first(inner: &Arc<SharedRouter>) -> Result<()> {
    let seeds: Vec<_> = inner.seeds.iter().map(|a| inner.node_at(a)).collect();
    // Each of them ends by itself, once it is connected or has not answered.
    let (views, failures) = ask(inner, &seeds, inner.common.settings.deadline).await;
    if views.is_empty() {
        return Err(no_seed(&failures));
    }
    let view = merge(views);
    if view.primaries.is_empty() {
        return Err(Error::misconfigured(
            "the seeds answer, but no slot is assigned: create the cluster first (`tideline cluster up`, or \
             redis-cli --cluster create)",
        ));
    }
    install(inner, inner.learn(view).0);
    Ok(())
}

/// The error to tell, with advice, if no seed is of use.
fn no_seed(failures: &[Failure]) -> Error {
    let reasons = failures.iter().map(|f| f.why.as_str()).collect::<Vec<_>>().join("; ");
    match failures.iter().any(|f| f.is_refused) {
        true => Error::misconfigured(format!("no seed will do: {reasons}")),
        false => Error::unavailable(format!(
            "no seed answered: {reasons}. Is the address right, and does a server run there? (On this machine \
             `tideline cluster up` starts a cluster, `tideline cluster status` shows where it is.)"
        )),
    }
}

/// Runs until the last router is gone.
pub(crate) async fn keep(inner: Weak<SharedRouter>, hint: Arc<Notify>) {
    let (mut watched_until, mut outage) = (tokio::time::Instant::now(), MapOutage::default());
    loop {
        let Some((period, watch)) = inner.upgrade().map(|i| periods(&i.common.settings)) else { return };
        let is_watched = tokio::time::Instant::now() < watched_until;
        tokio::select! {
            () = hint.notified() => watched_until = tokio::time::Instant::now() + watch,
            () = tokio::time::sleep(if is_watched { period.min(LOOKS_AFTER_HINT) } else { period }) => {}
        }
        let Some(inner) = inner.upgrade() else { return };
        again(&inner, &mut outage).await;
        drop(inner);
        tokio::time::sleep(GAP).await;
    }
}

/// The time between looks without a hint, and the time for which a hint makes us look often.
///
/// Callers of a frozen node hint only when their wait is over: a promotion in between must not wait for them.
fn periods(settings: &RouterSettings) -> (Duration, Duration) {
    (settings.refresh_period, settings.connect_timeout + settings.response_timeout * 2)
}

async fn again(inner: &Arc<SharedRouter>, outage: &mut MapOutage) {
    let views = ask_some(inner).await;
    let view = merge(views);
    if view.primaries.is_empty() {
        meters::refresh("no_answer");
        if let Some(lasts) = outage.failed(Instant::now()) {
            let lasts_s = lasts.as_secs();
            tracing::warn!(lasts_s, "no node could tell who serves which slot; keeping the old map");
        }
        return;
    }
    if let Some(lasted) = outage.ended(Instant::now()) {
        tracing::info!(lasted_s = lasted.as_secs(), "nodes tell again who serves which slot");
    }
    let (view, is_behind) = inner.learn(view);
    let changed = install(inner, view);
    meters::refresh(match (changed, is_behind) {
        (true, _) => "changed",
        (_, true) => "behind",
        _ => "same",
    });
    let topology = inner.topology.load_full();
    let mut tenures = inner.tenures.lock().unwrap_or_else(PoisonError::into_inner);
    tenures.retain(|addr| topology.member(addr).is_some());
    drop(tenures);
    if changed {
        let inner = inner.clone();
        // Beside the looks: a dead primary must not hold them up.
        tokio::spawn(async move {
            if let Err(e) = check_primaries(&inner).await {
                tracing::warn!("{e}");
            }
            for finding in inner.health.load().findings.iter().filter(|f| f.severity == Severity::Refusal) {
                tracing::error!("{finding}");
            }
        });
    }
    for member in &topology.members {
        let (inner, node, config_epoch) = (Arc::downgrade(inner), member.node.clone(), member.config_epoch);
        tokio::spawn(async move {
            let told = node.probe().await;
            let Some(inner) = inner.upgrade() else { return };
            inner.tell_time();
            if let (Some(info), Some(config_epoch)) = (told, config_epoch) {
                tell_restart(&inner, &node.addr, config_epoch, &info);
            }
        });
    }
    report_skew(inner);
}

/// Asks a few nodes at random; returns soon after the first has answered.
async fn ask_some(inner: &Arc<SharedRouter>) -> Vec<ClusterView> {
    let mut known: HashSet<NodeAddr> = inner.seeds.iter().cloned().collect();
    for member in &inner.topology.load().members {
        known.insert(member.node.addr.clone());
        known.extend(member.replicas.iter().flatten().map(|replica| replica.addr.clone()));
    }
    let mut known: Vec<_> = known.into_iter().collect();
    known.shuffle(&mut rand::rng());
    let nodes: Vec<_> = known.iter().take(ASKED).map(|a| inner.node_at(a)).collect();
    let (views, failures) = ask(inner, &nodes, FIRST_ANSWER).await;
    failures.iter().for_each(|f| tracing::debug!("asking for the slot map: {}", f.why));
    views
}

/// Asks all of `nodes` at once; returns soon after the first has answered.
async fn ask(
    inner: &SharedRouter,
    nodes: &[Arc<Node>],
    patience: Duration,
) -> (Vec<ClusterView>, Vec<Failure>) {
    let mut looks: FuturesUnordered<_> = nodes.iter().map(|n| look(inner, n)).collect();
    let (mut views, mut failures) = (Vec::new(), Vec::new());
    let mut until = tokio::time::Instant::now() + patience;
    while let Ok(Some(outcome)) = tokio::time::timeout_at(until, looks.next()).await {
        match outcome {
            Ok(view) => {
                views.push(view);
                until = until.min(tokio::time::Instant::now() + OTHER_ANSWERS);
            }
            Err(failure) => failures.push(failure),
        }
    }
    if views.is_empty() && failures.len() < nodes.len() {
        let silent = nodes.len() - failures.len();
        failures.push(Failure { is_refused: false, why: format!("{silent} more gave no answer in time") });
    }
    (views, failures)
}

/// The reason why a node could not tell.
struct Failure {
    /// The server is there and turns us away: another configuration is needed, not patience.
    is_refused: bool,
    why: String,
}

async fn look(inner: &SharedRouter, node: &Node) -> Result<ClusterView, Failure> {
    let failure = |is_refused, why: String| Failure { is_refused, why: format!("{}: {why}", node.addr) };
    let replies = node.ask([Command::new("CLUSTER").arg("NODES")]).await;
    let replies = replies.map_err(|e| failure(matches!(e, WireError::Refused(_)), e.to_string()))?;
    let reply = replies.into_iter().next().ok_or_else(|| failure(false, "no reply".into()))?;
    match reply.error() {
        Some((_, rest)) if rest.contains("cluster support disabled") => {
            return Err(failure(true, "it runs without cluster mode; set cluster-enabled yes".into()));
        }
        Some((code @ ("NOPERM" | "NOAUTH"), rest)) => {
            return Err(failure(true, denied(code, rest, "+cluster|nodes +info +time")));
        }
        Some((code, rest)) => return Err(failure(false, format!("{code} {rest}"))),
        None => {}
    }
    let text = reply.text().map_err(|e| failure(false, e.to_string()))?;
    parse_nodes(text, &node.addr, inner.common.dialer.is_tls()).map_err(|e| failure(false, e))
}

impl SharedRouter {
    /// Takes in what a look has seen; gives what is to be believed, and whether the look was behind what is known.
    fn learn(&self, seen: ClusterView) -> (ClusterView, bool) {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).learn(seen, Instant::now())
    }
}

/// Replaces the snapshot; true if slots changed hands or primaries came or went.
fn install(inner: &SharedRouter, view: ClusterView) -> bool {
    let member = |p: super::view::Primary| ReplicatedPrimary {
        node: inner.node_at(&p.addr),
        replicas: Some(p.replicas),
        config_epoch: Some(p.config_epoch),
        slots: p.slots,
    };
    let new = Arc::new(Topology::new(view.primaries.into_values().map(member).collect()));
    let old = inner.topology.swap(new.clone());
    let serves =
        |t: &Topology| t.members.iter().map(|m| (m.node.addr.clone(), m.slots.clone())).collect::<Vec<_>>();
    let changed = serves(&old) != serves(&new);
    if changed {
        tracing::info!(primaries = new.members.len(), unserved = new.unserved(), "slot map changed");
    }
    for demoted in old.members.iter().filter(|m| new.member(&m.node.addr).is_none()) {
        // Who waits for its replies would wait in vain.
        demoted.node.demoted.notify_waiters();
    }
    let mut kept: HashSet<&NodeAddr> = inner.seeds.iter().collect();
    kept.extend(new.members.iter().map(|m| &m.node.addr));
    kept.extend(new.members.iter().flat_map(|m| m.replicas.iter().flatten().map(|replica| &replica.addr)));
    inner.nodes().retain(|addr, _| kept.contains(addr));
    changed
}

/// Loads the functions on every primary and reads its settings; fails if a living one refuses the functions.
pub(crate) async fn check_primaries(inner: &SharedRouter) -> Result<()> {
    let topology = inner.topology.load_full();
    let replicas: Vec<_> = topology.members.iter().flat_map(|m| m.replicas.iter().flatten()).collect();
    let primaries = join_all(topology.members.iter().map(|m| check(&m.node)));
    let asked = join_all(replicas.iter().map(|replica| settings_of(inner, replica)));
    let (looks, replicas) = futures::future::join(primaries, asked).await;
    let replicas: Vec<_> = replicas.into_iter().flatten().collect();
    inner.tell_time();
    let (mut facts, mut programs) = (Vec::new(), Vec::new());
    let mut findings = Vec::new();
    let mut refused = Ok(());
    for (member, look) in topology.members.iter().zip(looks) {
        match look {
            Ok((version, config, program)) => {
                facts.push((member.node.addr.clone(), version, config));
                programs.extend(program.map(|program| (member.node.addr.clone(), program)));
            }
            Err(e) if e.kind() == tideline_model::ErrorKind::Misconfigured => refused = Err(e),
            // A dead primary must not keep us from serving the others.
            Err(e) => findings.push(Finding {
                node: Some(member.node.addr.clone()),
                severity: Severity::Warning,
                text: format!("could not be checked: {e}"),
            }),
        }
    }
    let (limits, judged) = judge(&facts, &replicas);
    findings.extend(judged);
    findings.extend(judge_programs(&programs));
    for finding in &findings {
        tracing::warn!("{finding}");
    }
    inner.health.store(Arc::new(PrimaryFacts { limits, findings, programs }));
    refused
}

/// A replica's settings. Whoever doesn't answer is asked again with the next change of the map.
async fn settings_of(inner: &SharedRouter, replica: &Replica) -> Option<(NodeAddr, NodeSettings)> {
    let node = inner.node_at(&replica.addr);
    let told = tokio::time::timeout(FIRST_ANSWER, node.ask([NodeSettings::command()])).await.ok()?.ok()?;
    Some((node.addr.clone(), NodeSettings::parse(told.into_iter().next()?)))
}

async fn check(node: &Node) -> Result<(Version, NodeSettings, Option<ServerProgram>)> {
    let failed = |e: WireError| Error::unavailable(e.to_string());
    let questions = [Info::command(), NodeSettings::command(), ServerProgram::command()];
    let replies = node.ask(questions).await.map_err(failed)?;
    let [info, config, program] =
        <[_; 3]>::try_from(replies).map_err(|_| Error::internal("three commands, other replies"))?;
    let (info, _) = node.observe(&info)?;
    node.probe().await;
    if info.version.is_supported() {
        node.load_library().await?;
    }
    let mut program = ServerProgram::parse(&program);
    if let Some(program) = program.as_mut().filter(|program| program.allocator == Allocator::Libc) {
        let client = node.ask([ServerProgram::second_command()]).await.map_err(failed)?;
        client.iter().for_each(|client| program.look_again(client));
    }
    Ok((info.version, NodeSettings::parse(config), program))
}

/// Tells if a primary is another process than the one that served under this claim before, by what it has said since
/// the map was read: before that it may have been replaced, and have come back.
fn tell_restart(inner: &SharedRouter, addr: &NodeAddr, config_epoch: u64, info: &Info) {
    let mut tenures = inner.tenures.lock().unwrap_or_else(PoisonError::into_inner);
    if info.is_primary && tenures.observe(addr, config_epoch, &info.run_id) {
        meters::restarted(addr);
        for finding in tenures.findings().iter().filter(|finding| finding.node.as_ref() == Some(addr)) {
            tracing::error!("{finding}");
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "a gauge")]
fn report_skew(inner: &SharedRouter) {
    let Some(median) = inner.time.get() else { return };
    let (clocks, own) = (inner.clocks(), clock::wall_offset_us());
    for (node, offset) in &clocks {
        meters::clock_skew(node, (offset - median) as f64 / 1e6);
    }
    meters::own_clock_skew((own - median) as f64 / 1e6);
    let mut told = inner.told_clocks.lock().unwrap_or_else(PoisonError::into_inner);
    for finding in told.due(judge_clocks(median, &clocks, own), Instant::now()) {
        tracing::warn!("{finding}");
    }
}
