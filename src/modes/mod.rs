//! Push or pull: how an account's posts reach its followers, and the hand-over between the two while everything goes
//! on.
//!
//! A pull mark is always right, only slower: whoever has one pulls the author, whatever its mode. So *promotion* (to
//! pull) marks every follower first and stops delivering afterwards; *demotion* (to push) delivers first and takes the
//! marks away afterwards, as far as homes hold what they stood for.
//!
//! Invariants kept here: posts are delivered until every follower that still follows has a new mark, on replicas too; a
//! change of mode that was overtaken by another does nothing more.

mod ask_policy;
mod hand_over;
mod job;
mod overruled;
mod policy;
mod traffic;

use std::sync::Arc;
use std::time::Instant;

use crate::account::{AccountState, Mode};
use crate::change::Tries;
use crate::cluster::{Command, Epoch, Finding, Request, TouchedServers};
use crate::error::{Error, Result};
use crate::fields::RecordField;
use crate::functions::{self, CompareAnswer, ModeChanger};
use crate::graph::Graph;
use crate::ids::AccountId;
use crate::journal::{self, Delivery, Journal, JournalEntry, Reporter, RunOutcome};
use crate::meters;
use crate::nonce::{Nonce, draw};
use crate::tenant::{Tenant, no_account};

use ask_policy::Judge;
pub(crate) use ask_policy::{FanoutJudge, PulledAuthorLooks, judge_pulled};
pub(crate) use job::ModeTask;
pub use policy::{AccountFacts, AsItIs, CostModel, DeliveryWay, Policy, PullOnly, PushOnly, Threshold};
pub(crate) use traffic::Traffic;

/// The parts that a decision about an account's mode touches: the policy, what is counted for it, and the graph.
#[derive(Debug)]
pub(crate) struct Modes {
    pub(crate) graph: Arc<Graph>,
    judge: Judge,
    traffic: Arc<Traffic>,
}

impl Modes {
    pub(crate) fn new(graph: Arc<Graph>, traffic: Arc<Traffic>, policy: Arc<dyn Policy>) -> Arc<Self> {
        let judge = Judge::new(policy, graph.tenant.settings.modes.decide_every);
        Arc::new(Self { graph, judge, traffic })
    }

    /// The health finding about them, if there is one.
    pub(crate) fn finding(&self) -> Option<Finding> {
        self.judge.overruled.finding(Instant::now())
    }
}

/// A mode as a record holds it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct StoredMode(Vec<u8>);

impl StoredMode {
    pub(crate) fn mode(&self) -> Mode {
        Mode::from_letter(self.0.first().copied().unwrap_or_default())
    }

    /// The random bytes of the change that made it.
    fn random(&self) -> Option<Nonce> {
        self.0.get(1..)?.try_into().ok()
    }
}

/// A mode as it was seen: what is compared before it changes.
struct SeenMode {
    mode: StoredMode,
    /// What it was told by hand; empty: nothing.
    told: Vec<u8>,
    graph: Nonce,
}

/// Tells how an account is delivered, and who told; `None`: there is no such account.
async fn look(tenant: &Tenant, account: AccountId) -> Result<(Option<SeenMode>, Epoch)> {
    let fields = [RecordField::STATE, RecordField::MODE, RecordField::MODE_BY_HAND, RecordField::GRAPH_STAMP];
    let fields = Command::new("HMGET").arg(&tenant.keys().account(account)).args(fields);
    let answer = tenant.router().ask(Request::read(tenant.slot(account), fields)).await?;
    let epoch = answer.epoch.clone();
    let fields = answer.ok()?.into_array()?;
    let bytes = |n: usize| fields.get(n).and_then(|field| field.bytes().ok());
    let (Some(state), Some(graph)) = (bytes(0), bytes(3)) else { return Ok((None, epoch)) };
    if AccountState::parse(state) == AccountState::Deleted {
        return Ok((None, epoch));
    }
    let graph = graph.try_into().map_err(|_| Error::internal("a graph stamp has 8 bytes"))?;
    let mode = StoredMode(bytes(1).unwrap_or_default().to_vec());
    let told = bytes(2).unwrap_or_default().to_vec();
    Ok((Some(SeenMode { mode, told, graph }), epoch))
}

/// A wish for another mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ModeWish {
    /// The policy does.
    Policy(DeliveryWay),
    /// Somebody says so by hand; `None`: the policy is to decide again.
    Hand(Option<DeliveryWay>),
}

impl ModeWish {
    fn way(self) -> Option<DeliveryWay> {
        match self {
            Self::Policy(way) => Some(way),
            Self::Hand(way) => way,
        }
    }

    fn told(self) -> Option<u8> {
        self.way().map(|way| if way == DeliveryWay::Pull { Mode::Pull.letter() } else { Mode::Push.letter() })
    }
}

/// Has an account pushed, or pulled. What is returned tells how many followers know.
pub(crate) async fn change(
    journal: &Arc<Journal>,
    account: AccountId,
    wish: ModeWish,
) -> Result<(Delivery, Epoch)> {
    let tenant = &journal.tenant;
    let keys = keys_of(tenant, account);
    let most = tenant.settings.journal_max;
    // What we sent and have no answer to.
    let mut lost: Option<JournalEntry> = None;
    let tries = &mut Tries::of(account);
    loop {
        let once = async {
            let _place = journal::reserve(journal, 1)?;
            let (seen, epoch) = look(tenant, account).await?;
            let seen = seen.ok_or_else(|| no_account(account))?;
            // It was written after all, and its entry with it, in one function: it is ours to run.
            if let Some(entry) = lost.take_if(|entry| ModeTask::carries_out(&entry.task, seen.mode.random()))
            {
                return Ok(Some((journal::accept(journal, entry), epoch)));
            }
            let way = wish.way().filter(|way| *way != DeliveryWay::of(seen.mode.mode()));
            let by = match wish {
                // What was told by hand no policy changes; the function looks at that again.
                ModeWish::Policy(_) if way.is_none() || !seen.told.is_empty() => {
                    return Ok(Some((Delivery(None), epoch)));
                }
                ModeWish::Policy(_) => ModeChanger::Policy,
                // By the graph stamp, which is renewed: a copy that comes late would tell again what was taken back
                // since.
                ModeWish::Hand(_) => ModeChanger::Hand(wish.told(), [seen.graph, draw()]),
            };
            // H25: whoever promotes goes on delivering until everybody knows.
            let mode = way.map(|way| if way == DeliveryWay::Pull { Mode::Promoting } else { Mode::Push });
            // H131: anew for each try, with another entry: one that finds its own entry there was sent before, failed
            // between the two, and writes nothing.
            let random = draw();
            let new = mode.map(|mode| mode.stored(random)).unwrap_or_default();
            let entry = JournalEntry::new(
                tenant.bucket(account),
                tenant.instance,
                ModeTask { author: account, random },
            );
            let value = entry.stored();
            let journaled = mode.map(|_| (&entry.id, value.as_slice()));
            let command = functions::mode_set(&keys, (&seen.mode.0, &new), by, most, journaled);
            let Some(answer) = tries.send(tenant, tenant.slot(account), command).await? else {
                lost = mode.map(|_| entry);
                return Ok(None);
            };
            let epoch = answer.epoch.clone();
            match CompareAnswer::parse(answer.ok()?)? {
                CompareAnswer::Done => {
                    let Some(way) = way else { return Ok(Some((Delivery(None), epoch))) };
                    meters::mode_change(way.label());
                    Ok(Some((journal::accept(journal, entry), epoch)))
                }
                CompareAnswer::Changed => Ok(None),
                CompareAnswer::NoAccount => Err(no_account(account)),
                CompareAnswer::JournalFull => Err(journal::journal_full(tenant)),
            }
        };
        let once = once.await;
        if let Some(changed) = tries.ended(once)? {
            return Ok(changed);
        }
    }
}

/// The keys that `mode_set` takes.
fn keys_of(tenant: &Tenant, account: AccountId) -> [Vec<u8>; 3] {
    let keys = tenant.keys();
    [keys.account(account), keys.outbox(account), keys.journal(tenant.bucket(account))]
}

/// Carries out the change of mode that wrote `random`, if it is the last one still.
pub(crate) async fn settle(
    graph: &Arc<Graph>,
    entry: &mut JournalEntry,
    author: AccountId,
    random: Nonce,
    reporter: &Reporter,
    touched: &mut TouchedServers,
) -> Result<RunOutcome> {
    let (seen, epoch) = look(&graph.tenant, author).await?;
    // Who was replaced knows of older changes only, and would have this one struck as overtaken.
    touched.add_epoch(&epoch);
    // What it says of the change was written with the entry.
    entry.seen_in = Some(epoch);
    let is_ours = |stored: &StoredMode| stored.random() == Some(random);
    // H25: an entry stands for one change: once there is a newer one, nothing of it is to be done.
    let Some(stored) = seen.map(|seen| seen.mode).filter(is_ours) else {
        return Ok(RunOutcome::Done);
    };
    reporter.restart();
    match stored.mode() {
        Mode::Promoting => {
            hand_over::promote(&graph.tenant, entry, author, &stored, reporter, touched).await?
        }
        Mode::Push => hand_over::demote(graph, entry, author, reporter, touched).await?,
        Mode::Pull => {}
    }
    Ok(RunOutcome::Done)
}
