//! Spreading: moving a set from one slot to all buckets, once, under reads and writes.
//!
//! The record freezes the set; its members are copied; when all copies are on replicas the record says "copied",
//! and when that is on replicas "spread": the parts are the set. Reads never wait: until the record changes, the
//! frozen set is the whole truth. Changes to this one set wait. Whoever meets a set whose spreading has come to a
//! halt finishes it.
//!
//! Why two records: with the first change of a part the frozen set is old. A failover that loses "spread" leaves
//! "copied" behind, from which nobody copies again; "spreading" would bring removed members back.
//!
//! A copier that was frozen itself, and wakes when another has finished, must not bring back a member that was
//! removed since. So every copy carries the copier's nonce, and counts only while a guard in its bucket has it.

use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use super::change::{AddGuard, AddOptions, AddTerms, MemberChange, SetRefusal, still_spreading};
use super::local::LocalKey;
use super::tree::{Leaf, SetState, Tree};
use super::walk::Checkpoint;
use super::{Layout, Member, SortedSet, written_together};
use crate::cluster::{Command, Request, TouchedServers};
use crate::error::{Error, ErrorKind, Result};
use crate::functions::{self, SpreadAnswer};
use crate::nonce::Nonce;

/// A copier that shows no sign of life for so long is taken over.
const GRACE: Duration = Duration::from_millis(1_500);
const LOOK_AGAIN: Duration = Duration::from_millis(20);
/// Pieces dropped in one call.
const DROP_MAX: usize = 64;
/// Attempts of one call; each begins anew after a failover or another copier came between.
const ATTEMPTS_MAX: usize = 8;
/// A guard that nobody closed goes by itself: far longer than any copying takes.
const GUARD_TTL_MS: u64 = 24 * 60 * 60 * 1000;

/// The outcome of one attempt.
enum SpreadAttempt {
    Finished,
    /// Somebody else is at it, or was faster.
    Superseded,
}

/// A point of the spreading at which tests let the copier die.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[doc(hidden)]
pub enum SpreadStep {
    Begun,
    Guarded,
    /// A page is read and not copied yet.
    Walked,
    CopiedSome,
    Copied,
    Closed,
    /// The record says that all is copied.
    Proven,
    Ended,
    Dropped,
}

impl<M: Member> SortedSet<M> {
    /// Spreads the set over all buckets; does nothing if it is spread already. It never comes back.
    ///
    /// It happens by itself when the set grows past the threshold. While it runs, changes to this set wait (about
    /// 10 us for each member), reads do not. If it fails, call it again, or let the next change do that.
    pub async fn spread(&self) -> Result<()> {
        self.spread_until(|_| false).await
    }

    /// Spreads the set, and stops dead after the first step for which `dies` is true, as a killed process would.
    #[doc(hidden)]
    pub async fn spread_until(&self, dies: impl Fn(SpreadStep) -> bool) -> Result<()> {
        let lock = self.sets.spreading(&self.home);
        let _only = lock.lock().await;
        let until = Instant::now() + self.sets.router().settings().deadline;
        let mut attempts = 0;
        while attempts < ATTEMPTS_MAX {
            let before = match self.sets.look_at(&self.home).await? {
                Some(tree) if tree.state == SetState::Spread => return self.drop_pieces(&dies).await,
                Some(tree) if tree.state == SetState::Copied => match self.finish(&tree.nonce, &dies).await {
                    Ok(SpreadAttempt::Finished) => return Ok(()),
                    Err(e) if e.kind() != ErrorKind::Conflict => return Err(e),
                    _ if Instant::now() < until => continue,
                    _ => break,
                },
                Some(tree) if tree.state == SetState::Spreading => match self.has_halted(&tree).await? {
                    true => Some(tree.nonce),
                    // Each sign of life of another copier is one look; they are no attempts of ours.
                    false if Instant::now() < until => continue,
                    false => break,
                },
                _ => None,
            };
            attempts += 1;
            match self.attempt(before, &dies).await {
                Ok(SpreadAttempt::Finished) => return Ok(()),
                Ok(SpreadAttempt::Superseded) => {}
                // A server failed over: what it acknowledged may be gone, so all is copied again.
                Err(e) if e.kind() == ErrorKind::Conflict => tracing::info!("spreading starts over: {e}"),
                Err(e) => return Err(e),
            }
        }
        Err(still_spreading(&self.home))
    }

    /// Waits until the set takes changes again; finishes the spreading itself if nobody else does.
    pub(super) async fn await_spread(&self, until: Instant) -> Result<()> {
        let finish = async {
            loop {
                match self.sets.look_at(&self.home).await? {
                    Some(tree) if matches!(tree.state, SetState::Spreading | SetState::Copied) => {
                        if tree.state == SetState::Copied || self.has_halted(&tree).await? {
                            self.spread().await?;
                        }
                    }
                    _ => return Ok(()),
                }
            }
        };
        timeout_at(until, finish).await.unwrap_or_else(|_| Err(still_spreading(&self.home)))
    }

    /// Watches another copier for a while; true if it did nothing.
    async fn has_halted(&self, seen: &Tree) -> Result<bool> {
        let since = Instant::now();
        while since.elapsed() < GRACE {
            tokio::time::sleep(LOOK_AGAIN).await;
            if self.sets.look_at(&self.home).await?.is_none_or(|tree| *tree != *seen) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    async fn attempt(
        &self,
        before: Option<Nonce>,
        dies: &impl Fn(SpreadStep) -> bool,
    ) -> Result<SpreadAttempt> {
        let nonce: Nonce = rand::random();
        let mut touched = TouchedServers::new();
        let set = self.sets.key(&self.home);
        let piece0 = self.sets.keys().piece(self.home.place, self.home.bucket, &self.home.name, 0);
        if before.is_none() {
            // Frozen, it would take no changes until somebody has given that server a replica.
            let buckets = self.sets.keys().buckets();
            self.sets.router().expect_replicas(buckets.all().map(|bucket| buckets.slot(bucket)))?;
        }
        let before = before.as_ref().map_or(&[][..], |n| n.as_slice());
        if !self.step(functions::spread_begin(set.clone(), piece0, before, &nonce), &mut touched).await? {
            return Ok(SpreadAttempt::Superseded);
        }
        live(dies, SpreadStep::Begun)?;
        // Only who has the record: of several who take over at once the losers must not touch the winner's guards.
        self.open_guards(&nonce, &mut touched).await?;
        live(dies, SpreadStep::Guarded)?;
        // A frozen set that thaws again in a failover would take removals that the copies don't know.
        self.sets.router().fence_patiently(&touched).await?;
        if let Err(SetRefusal::Guarded | SetRefusal::Spread | SetRefusal::Spreading | SetRefusal::Undecided) =
            self.copy(&nonce, &mut touched, dies).await?
        {
            return Ok(SpreadAttempt::Superseded);
        }
        live(dies, SpreadStep::Copied)?;
        self.close_guards(&nonce, &mut touched).await?;
        live(dies, SpreadStep::Closed)?;
        // Said to be copied, it is read at the copies: they last first (H31).
        self.sets.router().fence_patiently(&touched).await?;
        self.finish(&nonce, dies).await
    }

    /// All copies are on replicas: says so in the record, first that nobody copies again, then that it is done.
    async fn finish(&self, nonce: &Nonce, dies: &impl Fn(SpreadStep) -> bool) -> Result<SpreadAttempt> {
        let set = self.sets.key(&self.home);
        let mut copied = TouchedServers::new();
        if !self.step(functions::spread_copied(set.clone(), nonce), &mut copied).await? {
            return Ok(SpreadAttempt::Superseded);
        }
        live(dies, SpreadStep::Proven)?;
        // H37: where the record loses that, changes would go to the pieces again, and nobody copies them any more.
        self.sets.router().fence_patiently(&copied).await?;
        let mut ended = TouchedServers::new();
        if !self.step(functions::spread_end(set, nonce), &mut ended).await? {
            return Ok(SpreadAttempt::Superseded);
        }
        live(dies, SpreadStep::Ended)?;
        self.sets.router().fence_patiently(&ended).await?;
        self.sets.look_at(&self.home).await?;
        self.drop_pieces(dies).await?;
        Ok(SpreadAttempt::Finished)
    }

    /// Sends one step of the record; false if the record is another one by now.
    async fn step(&self, command: Command, touched: &mut TouchedServers) -> Result<bool> {
        let answer = self.sets.router().ask(Request::write(self.sets.slot(&self.home), command)).await?;
        touched.add(&answer);
        match SpreadAnswer::parse(answer.ok()?)? {
            SpreadAnswer::Done => Ok(true),
            SpreadAnswer::Tree(tree) => {
                self.sets.learn(&self.home, &tree)?;
                Ok(false)
            }
        }
    }

    async fn open_guards(&self, nonce: &Nonce, touched: &mut TouchedServers) -> Result<()> {
        let open = |key: Vec<u8>| Command::new("SET").arg(&key).arg(nonce).arg("PX").arg(GUARD_TTL_MS);
        self.at_guards(open, touched).await
    }

    async fn close_guards(&self, nonce: &Nonce, touched: &mut TouchedServers) -> Result<()> {
        self.at_guards(|key| functions::guard_close(key, nonce), touched).await
    }

    async fn at_guards(
        &self,
        command: impl Fn(Vec<u8>) -> Command,
        touched: &mut TouchedServers,
    ) -> Result<()> {
        let keys = self.sets.keys();
        let at = |b| Request::write(keys.buckets().slot(b), command(keys.guard(b, &self.home.name)));
        let answers = self.sets.router().run(keys.buckets().all().map(at).collect()).await;
        written_together(answers, touched)
    }

    /// Copies all members into the parts. Nobody changes either side meanwhile: members that are there already
    /// came from an earlier copier, with the same score.
    async fn copy(
        &self,
        nonce: &Nonce,
        touched: &mut TouchedServers,
        dies: &impl Fn(SpreadStep) -> bool,
    ) -> Result<Result<(), SetRefusal>> {
        let buckets = self.sets.keys().buckets();
        let parts = self.parts();
        let terms = AddTerms { guard: Some(AddGuard::Copier(nonce)), ..AddTerms::default() };
        let how = AddOptions { terms, ..AddOptions::default() };
        // Whose word it is that these are all: a primary that was replaced knows who was there before (H124).
        let mut said = TouchedServers::new();
        let count = functions::count(self.sets.key(&self.home));
        let count = self.sets.router().ask(Request::read(self.sets.slot(&self.home), count)).await?;
        said.add(&count);
        let (wanted, _) = functions::parse_count(count.ok()?)?;
        let mut copied = 0;
        let mut next = Some(Checkpoint::START);
        self.sets.look_at(&self.home).await?;
        let mut pages = 0u32;
        while let Some(from) = next {
            if !self.beat(nonce, pages).await? {
                return Ok(Err(SetRefusal::Guarded));
            }
            pages += 1;
            let walked = self.walk_said(from, &mut said).await?;
            if self.layout_known() == Layout::Spread {
                return Ok(Err(SetRefusal::Spread));
            }
            live(dies, SpreadStep::Walked)?;
            let item = |(m, score): &(M, f64)| {
                MemberChange::new(usize::from(m.bucket(buckets).index()), m.to_bytes().as_ref(), Some(*score))
            };
            let items = walked.entries.iter().map(item).collect();
            copied += walked.entries.len() as u64;
            if let Err(refused) = self.sets.add_items(&parts, items, how, touched).await? {
                return Ok(Err(refused));
            }
            live(dies, SpreadStep::CopiedSome)?;
            next = walked.next;
        }
        // H124: one that was replaced tells an old list, which the copies must not be taken from.
        touched.extend(&said);
        if copied < wanted && copied < self.counted_anew().await? {
            self.sets.router().fence_patiently(touched).await?;
            // The set is frozen, so this would be our own mistake; its members must not pay for it.
            let text =
                format!("only {copied} of {wanted} members of {} were met", self.home.name.escape_ascii());
            return Err(Error::internal(text));
        }
        Ok(Ok(()))
    }

    /// Counts the members of a frozen set by its pieces; its tree says that number from now on. A removal that failed
    /// half-way has left a number that is too high: the set would stay frozen, and nothing could be done with it
    /// (H135).
    async fn counted_anew(&self) -> Result<u64> {
        let seen = self.sets.sight(&self.home).await?;
        let counted = self.sets.recount(&self.home, &seen, true).await?;
        Ok(counted.map_or(u64::MAX, |(_, members)| members))
    }

    /// A sign of life for those who wait, with each page. False: somebody else copies by now.
    async fn beat(&self, nonce: &Nonce, pages: u32) -> Result<bool> {
        let beat = functions::spread_beat(self.sets.key(&self.home), nonce, pages % 2);
        let reply = self.sets.router().call(Request::write(self.sets.slot(&self.home), beat)).await?;
        Ok(reply.count()? == 1)
    }

    /// Tells where changes go; waits while the record says "copied" but not yet "spread".
    pub(super) async fn layout_for_change(&self) -> Result<Layout> {
        loop {
            match self.sets.tree(&self.home).map(|tree| tree.state) {
                Some(SetState::Spread) => return Ok(Layout::Spread),
                Some(SetState::Copied) => {
                    self.await_spread(Instant::now() + self.sets.router().settings().deadline).await?;
                }
                Some(SetState::Local | SetState::Spreading) | None => return Ok(Layout::Local),
            }
        }
    }

    /// The set is spread: what was local may go.
    pub(super) async fn drop_pieces(&self, dies: &impl Fn(SpreadStep) -> bool) -> Result<()> {
        let Some(tree) = self.sets.tree(&self.home).filter(|tree| tree.has_pieces()) else { return Ok(()) };
        let LocalKey { place, bucket, name } = &self.home;
        let piece = |leaf: &Leaf| self.sets.keys().piece(*place, *bucket, name, leaf.piece);
        let (set, slot) = (self.sets.key(&self.home), self.sets.slot(&self.home));
        for leaves in tree.leaves().chunks(DROP_MAX) {
            // Only the function may drop: it looks whether the record really says "spread".
            let drop = functions::spread_drop(&set, leaves.iter().map(piece));
            if self.sets.router().call(Request::write(slot, drop)).await?.count()? == 0 {
                return Ok(());
            }
        }
        live(dies, SpreadStep::Dropped)?;
        self.sets.router().call(Request::write(slot, functions::spread_forget(set))).await?;
        self.sets.look_at(&self.home).await.map(drop)
    }
}

fn live(dies: &impl Fn(SpreadStep) -> bool, step: SpreadStep) -> Result<()> {
    if dies(step) { Err(Error::unavailable(format!("the copier died after {step:?}"))) } else { Ok(()) }
}
