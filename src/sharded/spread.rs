//! Spreading: moving a set from one slot to all buckets, once, under reads and writes.
//!
//! The record freezes the set; its members are copied; when all copies are on replicas the record says "spread",
//! and the parts are the set. Reads never wait: until the record changes, the frozen set is the whole truth.
//! Changes to this one set wait. Whoever meets a set whose spreading has come to a halt finishes it.
//!
//! A copier that was frozen itself, and wakes when another has finished, must not bring back a member that was
//! removed since. So every copy carries the copier's nonce, and counts only while a guard in its bucket has it.

use std::time::{Duration, Instant};

use tokio::time::timeout_at;

use super::change::{AddHow, Item, Refused, still_spreading};
use super::local::LocalKey;
use super::tree::{BEAT_BIT, Leaf, Nonce, State, Tree};
use super::walk::Checkpoint;
use super::{Layout, Member, SortedSet};
use crate::cluster::{Command, Request, Touched};
use crate::error::{Error, ErrorKind, Result};
use crate::functions::{self, Spread};

/// A copier that shows no sign of life for so long is taken over.
const GRACE: Duration = Duration::from_millis(1_500);
const LOOK_AGAIN: Duration = Duration::from_millis(20);
/// Attempts of one call; each begins anew after a failover or another copier came between.
const ATTEMPTS_MAX: usize = 8;
/// A guard that nobody closed goes by itself: far longer than any copying takes.
const GUARD_TTL_MS: u64 = 24 * 60 * 60 * 1000;

/// How one attempt ended.
enum Attempt {
    Finished,
    /// Somebody else is at it, or was faster.
    Superseded,
}

/// A point of the spreading at which tests let the copier die.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[doc(hidden)]
pub enum Step {
    Guarded,
    Begun,
    CopiedSome,
    Copied,
    Closed,
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

    /// The same, but stops dead after the first step for which `dies` is true, as a killed process would.
    #[doc(hidden)]
    pub async fn spread_until(&self, dies: impl Fn(Step) -> bool) -> Result<()> {
        let lock = self.sets.spreading(&self.home);
        let _only = lock.lock().await;
        for _ in 0..ATTEMPTS_MAX {
            self.sets.look(&[&self.home]).await?;
            let tree = self.sets.tree(&self.home);
            let before = match tree {
                Some(tree) if tree.state == State::Spread => return self.drop_pieces(&dies).await,
                Some(tree) if tree.state == State::Spreading => match self.has_halted(&tree).await? {
                    true => Some(tree.nonce),
                    false => continue,
                },
                _ => None,
            };
            match self.attempt(before, &dies).await {
                Ok(Attempt::Finished) => return Ok(()),
                Ok(Attempt::Superseded) => {}
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
                self.sets.look(&[&self.home]).await?;
                match self.sets.tree(&self.home) {
                    Some(tree) if tree.state == State::Spreading => {
                        if self.has_halted(&tree).await? {
                            self.spread().await?;
                        }
                    }
                    _ => return Ok(()),
                }
            }
        };
        timeout_at(until.into(), finish).await.unwrap_or_else(|_| Err(still_spreading(&self.home)))
    }

    /// Watches another copier for a while; true if it did nothing.
    async fn has_halted(&self, seen: &Tree) -> Result<bool> {
        let since = Instant::now();
        while since.elapsed() < GRACE {
            tokio::time::sleep(LOOK_AGAIN).await;
            self.sets.look(&[&self.home]).await?;
            if self.sets.tree(&self.home).is_none_or(|tree| *tree != *seen) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    async fn attempt(&self, before: Option<Nonce>, dies: &impl Fn(Step) -> bool) -> Result<Attempt> {
        let nonce: Nonce = rand::random();
        let mut touched = Touched::new();
        self.open_guards(&nonce, &mut touched).await?;
        live(dies, Step::Guarded)?;
        let set = self.sets.key(&self.home);
        let piece0 = self.sets.keys().piece(self.home.place, self.home.bucket, &self.home.name, 0);
        let before = before.as_ref().map_or(&[][..], |n| n.as_slice());
        if !self.step(functions::spread_begin(set.clone(), piece0, before, &nonce), &mut touched).await? {
            return Ok(Attempt::Superseded);
        }
        live(dies, Step::Begun)?;
        // A frozen set that thaws again in a failover would take removals that the copies don't know.
        self.sets.router().fence(&touched).await?;
        if let Err(Refused::Guarded | Refused::Spread | Refused::Spreading) =
            self.copy(&nonce, &mut touched, dies).await?
        {
            return Ok(Attempt::Superseded);
        }
        live(dies, Step::Copied)?;
        self.close_guards(&nonce, &mut touched).await?;
        live(dies, Step::Closed)?;
        self.sets.router().fence(&touched).await?;
        let mut ended = Touched::new();
        if !self.step(functions::spread_end(set, &nonce), &mut ended).await? {
            return Ok(Attempt::Superseded);
        }
        live(dies, Step::Ended)?;
        self.sets.router().fence(&ended).await?;
        self.sets.look(&[&self.home]).await?;
        self.drop_pieces(dies).await?;
        Ok(Attempt::Finished)
    }

    /// Sends one step of the record; false if the record is another one by now.
    async fn step(&self, command: Command, touched: &mut Touched) -> Result<bool> {
        let answer = self.sets.router().ask(Request::write(self.sets.slot(&self.home), command)).await?;
        touched.add(&answer);
        match Spread::parse(answer.ok()?)? {
            Spread::Done => Ok(true),
            Spread::Tree(tree) => {
                self.sets.learn(&self.home, &tree)?;
                Ok(false)
            }
        }
    }

    async fn open_guards(&self, nonce: &Nonce, touched: &mut Touched) -> Result<()> {
        let open = |key: Vec<u8>| Command::new("SET").arg(&key).arg(nonce).arg("PX").arg(GUARD_TTL_MS);
        self.at_guards(open, touched).await
    }

    async fn close_guards(&self, nonce: &Nonce, touched: &mut Touched) -> Result<()> {
        self.at_guards(|key| functions::guard_close(key, nonce), touched).await
    }

    async fn at_guards(&self, command: impl Fn(Vec<u8>) -> Command, touched: &mut Touched) -> Result<()> {
        let keys = self.sets.keys();
        let at = |b| Request::write(keys.buckets().slot(b), command(keys.guard(b, &self.home.name)));
        for answer in self.sets.router().run(keys.buckets().all().map(at).collect()).await {
            let answer = answer?;
            touched.add(&answer);
            answer.ok()?;
        }
        Ok(())
    }

    /// Copies all members into the parts. Nobody changes either side meanwhile: members that are there already
    /// came from an earlier copier, with the same score.
    async fn copy(
        &self,
        nonce: &Nonce,
        touched: &mut Touched,
        dies: &impl Fn(Step) -> bool,
    ) -> Result<Result<(), Refused>> {
        let buckets = self.sets.keys().buckets();
        let parts = self.parts();
        let how = AddHow { option: "NX", guard: Some(nonce) };
        let mut next = Some(Checkpoint::START);
        self.sets.look(&[&self.home]).await?;
        let mut pages = 0u32;
        while let Some(from) = next {
            self.beat(pages).await?;
            pages += 1;
            let walked = self.walk(from).await?;
            if self.layout_known() == Layout::Spread {
                return Ok(Err(Refused::Spread));
            }
            let item = |(m, score): &(M, f64)| {
                Item::new(usize::from(m.bucket(buckets).index()), m.to_bytes().as_ref(), Some(*score))
            };
            let items = walked.entries.iter().map(item).collect();
            if let Err(refused) = self.sets.add_items(&parts, items, how, touched).await? {
                return Ok(Err(refused));
            }
            live(dies, Step::CopiedSome)?;
            next = walked.next;
        }
        Ok(Ok(()))
    }

    /// A sign of life for those who wait: a bit of the tree that means nothing else changes with each page.
    async fn beat(&self, pages: u32) -> Result<()> {
        let beat = Command::new("SETBIT").arg(&self.sets.key(&self.home)).arg(BEAT_BIT).arg(pages % 2);
        self.sets.router().call(Request::write(self.sets.slot(&self.home), beat)).await.map(drop)
    }

    /// The set is spread: what was local may go.
    async fn drop_pieces(&self, dies: &impl Fn(Step) -> bool) -> Result<()> {
        let Some(tree) = self.sets.tree(&self.home) else { return Ok(()) };
        let LocalKey { place, bucket, name } = &self.home;
        let slot = self.sets.slot(&self.home);
        let unlink = |leaf: Leaf| {
            let key = self.sets.keys().piece(*place, *bucket, name, leaf.piece);
            Request::write(slot, Command::new("UNLINK").arg(&key))
        };
        for answer in self.sets.router().run(tree.leaves().into_iter().map(unlink).collect()).await {
            answer?.ok()?;
        }
        live(dies, Step::Dropped)?;
        let forget = functions::spread_forget(self.sets.key(&self.home));
        self.sets.router().call(Request::write(slot, forget)).await?;
        self.sets.look(&[&self.home]).await
    }
}

fn live(dies: &impl Fn(Step) -> bool, step: Step) -> Result<()> {
    if dies(step) { Err(Error::unavailable(format!("the copier died after {step:?}"))) } else { Ok(()) }
}
