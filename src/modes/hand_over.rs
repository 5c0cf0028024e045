//! Telling all followers of an account that they must pull it, or no longer need to.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;

use super::StoredMode;
use crate::account::Mode;
use crate::bucket::Bucket;
use crate::cluster::{Batch, Command, Request, TouchedServers};
use crate::delivery::{Ledger, Round, Visit};
use crate::error::{Error, Result};
use crate::fields::RecordField;
use crate::functions::{self, ModeChanger, PairAnswer, PullMarking, SettleAnswer, VisitAnswer};
use crate::graph::Graph;
use crate::graph::{self, CompletionOutcome, Follow, PairTask};
use crate::ids::AccountId;
use crate::journal::{self, JournalEntry, Reporter, RunOutcome};
use crate::meters;
use crate::nonce::draw;
use crate::reader::is_new_mark;
use crate::sharded::{Checkpoint, PiecePlace};
use crate::tenant::Tenant;

/// Followers that one call marks, where they are named.
const MARKED_AT_ONCE: usize = 64;
/// Followers that are completed in one go.
const COMPLETED_AT_ONCE: usize = 256;

/// Marks every follower anew, and stops delivering once all marks are on replicas.
pub(super) async fn promote(
    tenant: &Tenant,
    entry: &mut JournalEntry,
    author: AccountId,
    promoting: &StoredMode,
    reporter: &Reporter,
    touched: &mut TouchedServers,
) -> Result<()> {
    // H25: first the marks, on replicas too, or whoever is not marked yet neither gets nor pulls a post.
    let mut ledger = Ledger::open(tenant, entry).await;
    let visit = &PullMarker { tenant, author, reporter };
    if let Err(e) = (Round { tenant, author, visit }).run(entry, &mut ledger).await {
        // H110: what an earlier run could not fence is not forgotten with this one.
        ledger.keep(entry);
        return Err(e);
    }
    ledger.fence(tenant).await;
    ledger.close(entry)?;
    tenant.router().fence(touched).await?;
    let pull = Mode::Pull.stored(promoting.random().unwrap_or_default());
    // H25: only if it is this promotion still. Sent twice, the second finds it done, or overtaken: both will do.
    let keys = super::keys_of(tenant, author);
    let command = functions::mode_set(&keys, (&promoting.0, &pull), ModeChanger::Executor, 0, None);
    let answer = tenant.router().ask(Request::write(tenant.slot(author), command)).await?;
    touched.add(&answer);
    answer.ok().map(drop)
}

/// Takes followers' marks away, as far as their homes hold what was posted since. The others keep theirs, and ask
/// themselves when they read.
pub(super) async fn demote(
    graph: &Arc<Graph>,
    entry: &mut JournalEntry,
    author: AccountId,
    reporter: &Reporter,
    touched: &mut TouchedServers,
) -> Result<()> {
    let tenant = &graph.tenant;
    let followers = tenant.followers(author)?;
    let mut next = Some(match entry.checkpoint.as_str() {
        "" => Checkpoint::START,
        text => text.parse()?,
    });
    while let Some(from) = next {
        let page = followers.walk(from).await?;
        for edges in page.entries.chunks(COMPLETED_AT_ONCE) {
            let (follows, mut open) = follows(tenant, author, edges, touched).await?;
            let mut is_over = false;
            if !follows.is_empty() {
                match graph::complete(graph, author, &follows, (false, true), touched).await? {
                    CompletionOutcome::Settled(settled) => {
                        reporter.add(settled.len() as u64, 0);
                        let is_open = |outcome: &SettleAnswer| {
                            matches!(outcome, SettleAnswer::Changed | SettleAnswer::NoEdge)
                        };
                        open.extend(
                            settled.into_iter().filter(|(_, outcome)| is_open(outcome)).map(|(r, _)| r),
                        );
                    }
                    // Another change of mode has come: the marks are right.
                    CompletionOutcome::Pulled | CompletionOutcome::AuthorGone => {
                        is_over = true;
                        open.extend(follows.iter().map(|follow| follow.reader));
                    }
                }
            }
            // Who has unfollowed meanwhile may have lost its edge before ours was written.
            for reader in open {
                let settled = graph::settle_pair(graph, reader, author, false, touched).await?;
                // What has to wait is looked at by itself: a round through all followers doesn't stop for one.
                if let RunOutcome::Later = settled {
                    let task = PairTask { reader, author, may_drop: false };
                    journal::add(&graph.journal, tenant.bucket(reader), task).await?;
                }
            }
            if is_over {
                return Ok(());
            }
        }
        if let Some(then) = page.next {
            journal::move_checkpoint(tenant, entry, then.to_string(), touched).await?;
        }
        next = page.next;
    }
    Ok(())
}

/// Finds those of an author's followers that follow it, with a mark; and those that don't follow it, but have an edge.
/// Whose edge is older than its follow has followed again: what is journaled for that completes it.
async fn follows(
    tenant: &Tenant,
    author: AccountId,
    edges: &[(AccountId, f64)],
    touched: &mut TouchedServers,
) -> Result<(Vec<Follow>, Vec<AccountId>)> {
    let (mut follows, mut strangers) = (Vec::new(), Vec::new());
    let edges: BTreeMap<AccountId, f64> = edges.iter().copied().collect();
    let readers: Vec<AccountId> = edges.keys().copied().collect();
    for (reader, look) in graph::look_at(tenant, author, &readers, 0, touched).await? {
        match look {
            // A new mark is of a follow that is under way, and stays for that one.
            PairAnswer::Following { since, mark: Some(mark), floor }
                if edges[&reader] >= since && !is_new_mark(&mark) =>
            {
                follows.push(Follow { reader, since, mark, floor });
            }
            PairAnswer::Following { .. } => {}
            PairAnswer::Not(_) | PairAnswer::Tree(_) => strangers.push(reader),
        }
    }
    Ok((follows, strangers))
}

/// Has followers pull an author.
struct PullMarker<'a> {
    tenant: &'a Tenant,
    author: AccountId,
    reporter: &'a Reporter,
}

impl PullMarker<'_> {
    fn marking(&self, bucket: Bucket) -> PullMarking<'_> {
        let key_prefix = self.tenant.keys().key_prefix(bucket);
        // H25, H27: another mark also where one stands: a completion that has stalled compares it, and leaves this
        // one.
        PullMarking { key_prefix, author: self.author, mark: draw(), stamp: draw() }
    }

    async fn mark(&self, accounts: &[AccountId], touched: &mut TouchedServers) -> Result<()> {
        let tenant = self.tenant;
        let mut by_bucket: BTreeMap<Bucket, Vec<AccountId>> = BTreeMap::new();
        for account in accounts {
            by_bucket.entry(tenant.bucket(*account)).or_default().push(*account);
        }
        let calls: Vec<(Bucket, &[AccountId])> = by_bucket
            .iter()
            .flat_map(|(bucket, accounts)| accounts.chunks(MARKED_AT_ONCE).map(|part| (*bucket, part)))
            .collect();
        let request = |(bucket, accounts): &(Bucket, &[AccountId])| {
            let command = self.marking(*bucket).accounts(tenant.keys().marks(accounts[0]), accounts);
            // H34: never with ASKING: at the target of a moving slot a follow that has not come yet looks like none.
            Request::write(tenant.keys().buckets().slot(*bucket), command).unless_moving().once()
        };
        let answers = tenant.run_all(calls.iter().map(request).collect::<Batch>()).await?;
        for ((_, accounts), answer) in calls.iter().zip(answers) {
            touched.add(&answer);
            if answer.is_moving() {
                self.mark_plainly(accounts, touched).await?;
            } else if let VisitAnswer::Done { reached, members } = VisitAnswer::parse(answer.ok()?)? {
                self.reached(reached, members);
            }
        }
        Ok(())
    }

    /// Key by key, while their slot moves.
    async fn mark_plainly(&self, accounts: &[AccountId], touched: &mut TouchedServers) -> Result<()> {
        let tenant = self.tenant;
        for account in accounts {
            // "Not following" must be as lasting as a mark, so it counts only from a server whose epoch is known.
            let before = tenant.router().ask(tenant.account_request(*account)).await?;
            let follows = tenant.following(*account)?.score(&self.author).await?.is_some();
            let after = tenant.router().ask(tenant.account_request(*account)).await?;
            if before.epoch != after.epoch {
                return Err(Error::unavailable(format!(
                    "the server of account {account} failed over while that was told to pull {}; try again",
                    self.author
                )));
            }
            touched.add(&after);
            if !follows {
                self.reached(0, 1);
                continue;
            }
            let keys = tenant.keys();
            let mark = functions::mark_renew(&[keys.marks(*account)], self.author, &draw(), None, None);
            let stamp =
                Command::new("HSET").arg(&keys.account(*account)).arg(RecordField::MARKS_STAMP).arg(&draw());
            // As the function does: with a new stamp and without the mark a reader would believe that it need not pull.
            // H35: the mark before the stamp that tells of it.
            for command in [mark, stamp] {
                let answer = tenant.once(tenant.slot(*account), command).await?;
                touched.add(&answer);
                answer.ok()?;
            }
            self.reached(1, 1);
        }
        Ok(())
    }
}

impl Visit for PullMarker<'_> {
    fn piece(&self, [set, members]: [Vec<u8>; 2], piece: &PiecePlace) -> Request {
        let command = self.marking(piece.bucket()).piece(set, members, piece.leaf());
        let slot = self.tenant.keys().buckets().slot(piece.bucket());
        Request::write(slot, command).unless_moving().once()
    }

    fn accounts<'s>(&'s self, accounts: &'s [AccountId], ledger: &'s mut Ledger) -> BoxFuture<'s, ()> {
        async move {
            let mut touched = TouchedServers::new();
            let marked = self.mark(accounts, &mut touched).await;
            for bucket in accounts.iter().map(|account| self.tenant.bucket(*account)) {
                match &marked {
                    // Which server has told of which bucket nobody kept apart: each counts with all of them.
                    Ok(()) => touched.epochs().iter().for_each(|epoch| ledger.visited(bucket, epoch)),
                    Err(e) => ledger.left(bucket, e.clone()),
                }
            }
        }
        .boxed()
    }

    fn reached(&self, marked: u64, of: u64) {
        meters::marks_set(marked);
        self.reporter.add(marked, of - marked);
    }
}
