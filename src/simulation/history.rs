//! One history: a small world, random operations of clients, and what goes wrong meanwhile.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};

use super::ends;
use super::instances::{ids_in, in_a_world, instance, watch};
use super::lists_of_posts::check_lists;
use super::moving::Moving;
use super::shape::{DECIDE_EVERY, MIXES, Mix, Shape, policy_of};
use super::truth;
use super::world::{Toggle, world};
use crate::engine::Engine;
use crate::error::{ErrorKind, Result};
use crate::ids::AccountId;
use crate::post::Draft;
use crate::{Mode, NewAccount, rules};

/// What came of a history.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) violations: Vec<String>,
    pub(super) commands: u64,
    pub(super) digest: u64,
    pub(super) trace: Vec<String>,
    pub(super) counts: BTreeMap<&'static str, u64>,
}

/// Lives through the history of a seed.
pub(super) fn live(seed: u64, shape: Shape, rules_out: &[&'static str], is_traced: bool) -> Outcome {
    in_a_world(seed, rules_out, is_traced, || async move {
        rules::short_cuts(seed % 8 < 5);
        world(|w| {
            w.policy = policy_of(seed);
            w.decide_every = DECIDE_EVERY;
        });
        let mix = MIXES[usize::try_from(seed % 4).unwrap_or(0)];
        History::new(shape, mix).await.live().await
    })
}

pub(super) struct History {
    shape: Shape,
    pub(super) mix: Mix,
    pub(super) engines: Vec<(usize, Engine)>,
    pub(super) readers: Vec<AccountId>,
    pub(super) authors: Vec<AccountId>,
    under_way: Vec<JoinHandle<()>>,
    counts: BTreeMap<&'static str, u64>,
}

impl History {
    async fn new(shape: Shape, mix: Mix) -> Self {
        world(|w| w.visible_within = shape.visible_within);
        let engines = vec![instance().await, instance().await];
        // Two share a bucket, others don't.
        let mut accounts = ids_in(&[0, 0, 1, 2, 2, 3, 1]);
        for account in &accounts {
            let mode = if world(|w| w.chance(120)) { Mode::Pull } else { Mode::Push };
            let is_locked = world(|w| w.chance(120));
            if is_locked {
                // Whoever asks may be let in at any time.
                world(|w| w.open.extend(accounts.iter().map(|a| ((Toggle::Follow, *a, *account), 1))));
            }
            let new = NewAccount { id: Some(*account), mode, is_locked, ..NewAccount::default() };
            engines[0].1.create_account(new).await.expect("no faults yet");
        }
        watch(&accounts);
        world(|w| w.faults = shape.faults);
        let authors = accounts.split_off(4);
        Self {
            shape,
            mix,
            engines,
            readers: accounts,
            authors,
            under_way: Vec::new(),
            counts: BTreeMap::new(),
        }
    }

    async fn live(mut self) -> BTreeMap<&'static str, u64> {
        for _ in 0..self.shape.steps {
            let pause = world(|w| Duration::from_millis(w.below(9)));
            sleep(pause).await;
            if !self.disturb().await {
                self.act();
            }
            if !world(|w| w.violations.is_empty()) {
                return self.counts;
            }
        }
        self.drain().await;
        self.check("at the end").await;
        self.count_leftovers().await;
        if world(|w| w.violations.is_empty()) {
            // An edge that is missing shows with the next post.
            for author in self.authors.clone() {
                let engine = self.engine();
                let published = engine.publish(author, &Draft::text("last")).await;
                if let Err(e) = published
                    && !world(|w| truth::is_deleted(w, author))
                {
                    world(|w| w.violated(format!("the last post fails: {e:?}")));
                }
            }
            self.drain().await;
            self.check("with one more post").await;
        }
        self.counts
    }

    pub(super) fn count(&mut self, what: &'static str) {
        *self.counts.entry(what).or_default() += 1;
    }

    pub(super) fn engine(&self) -> Engine {
        let at = world(|w| w.below(self.engines.len() as u64));
        self.engines[usize::try_from(at).unwrap_or(0)].1.clone()
    }

    /// Something goes wrong, perhaps.
    async fn disturb(&mut self) -> bool {
        let Shape { failovers, deaths, freezes, moves, .. } = self.shape;
        let (dice, bucket) =
            world(|w| (u32::try_from(w.below(1_000)).unwrap_or(0), usize::try_from(w.below(4)).unwrap_or(0)));
        let mut end = 0;
        let mut is = |share: u32| {
            end += share;
            dice < end
        };
        if is(25) {
            world(|w| w.sync(bucket));
            self.count("sync");
        } else if is(failovers) {
            world(|w| {
                let clock_ahead_ms = w.pick(&[0, 0, 5, 20, 60]);
                w.fail_over(bucket, clock_ahead_ms);
            });
            self.count("failover");
        } else if is(deaths) {
            let at = usize::from(world(|w| w.chance(500)));
            let (number, _) = self.engines.remove(at);
            world(|w| w.kill(number));
            self.engines.push(instance().await);
            self.count("death");
        } else if is(freezes) {
            let at = usize::from(world(|w| w.chance(500)));
            let number = self.engines[at].0;
            world(|w| {
                let ms = w.pick(&[50, 150, 400, 900]);
                w.instances[number].frozen_until = Instant::now() + Duration::from_millis(ms);
                w.note(|| format!("FREEZE of {number} for {ms} ms"));
            });
            self.count("freeze");
        } else if is(moves) {
            world(|w| {
                let (salt, share) = (w.below(u64::MAX), w.below(257));
                let node = &mut w.nodes[bucket];
                node.moving = if node.moving.is_some() { None } else { Some(Moving { salt, share }) };
                w.note(|| format!("MOVE of {bucket} begins or ends"));
            });
            self.count("move");
        } else {
            return false;
        }
        true
    }

    pub(super) fn spawn(
        &mut self,
        what: &'static str,
        operation: impl Future<Output = Result<()>> + Send + 'static,
    ) {
        self.under_way.push(tokio::spawn(async move {
            match operation.await {
                Err(e) if e.kind() == ErrorKind::Internal => world(|w| w.violated(format!("{what}: {e:?}"))),
                Err(e) => world(|w| w.note(|| format!("{what} failed: {e:?}"))),
                Ok(()) => {}
            }
        }));
    }

    /// Everything that is under way ends.
    async fn drain(&mut self) {
        while ends::run_dry().await {
            for task in self.under_way.drain(..) {
                // Those of instances that died never end.
                if let Ok(Err(e)) = timeout(Duration::from_millis(500), task).await {
                    world(|w| w.violated(format!("a client's operation panicked: {e}")));
                }
            }
            sleep(Duration::from_millis(50)).await;
            if world(|w| truth::journal_entries(w)) == 0 {
                break;
            }
        }
        // What caches may still show is over.
        sleep(world(|w| w.visible_within)).await;
    }

    async fn check(&mut self, when: &str) {
        ends::check_follows(&self.readers, &self.authors, when);
        ends::check_slots();
        ends::check_modes(when);
        ends::check_tokens();
        check_lists(when);
        ends::check_followers(&self.engine(), when).await;
        for reader in self.readers.clone() {
            let short = world(|w| w.pick(&[2, 3]));
            for (limit, (_, engine)) in [short, 50].into_iter().zip(self.engines.clone()) {
                ends::compare(&engine, reader, limit, when).await;
            }
        }
    }

    /// Followers that don't follow, marks that stayed.
    async fn count_leftovers(&mut self) {
        let engine = self.engine();
        for author in self.authors.clone() {
            *self.counts.entry("stray edge").or_default() += ends::strays(&engine, author).await.len() as u64;
        }
        let needless = ends::check_lists(&engine, "at the end").await;
        if needless > 0 && self.shape.is_calm() {
            world(|w| {
                w.violated(format!(
                    "{needless} posts are on lists that they don't name, and nothing went wrong"
                ))
            });
        }
        *self.counts.entry("needlessly listed").or_default() += needless;
        for (what, many) in world(|w| truth::needless_marks(w)) {
            *self.counts.entry(what).or_default() += many;
        }
    }
}
