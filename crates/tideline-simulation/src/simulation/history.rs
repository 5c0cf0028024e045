//! One history: a small world, random operations of clients, and what goes wrong meanwhile.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};

use super::archive::ArchiveData;
use super::disturbances::{Disturbance, disturb};
use super::ends;
use super::index::check_index;
use super::instances::{ids_in, in_a_world, instance, watch};
use super::link;
use super::lists_of_posts::check_lists;
use super::lua::Sites;
use super::public::check_public;
use super::shape::{
    DECIDE_EVERY, MIXES, Mix, OUTBOX_POSTS, Shape, keeps_all_public, outbox_posts_of, policy_of,
    public_posts_of,
};
use super::truth;
use super::world::{HOUR_MS, world};
use crate::engine::Engine;
use crate::error::{Error, ErrorCode, ErrorKind, Result};
use crate::ids::AccountId;
use crate::post::Draft;
use crate::{Mode, NewAccount, rules};

/// Pages that were held against the model; and those that came beside a stale read, of which only the order was.
pub(super) const PAGES: &str = "page";
pub(super) const STALE_PAGES: &str = "page beside a stale read";
/// Outboxes that some posts have left.
pub(super) const CUT_OUTBOXES: &str = "outbox that was cut";
/// Posts that have left memory, or were deleted since.
pub(super) const FOUND_POSTS: &str = "post in the index";
pub(super) const ARCHIVED_POSTS: &str = "post in the archive";
/// Hours that have passed; posts that were due, and stayed since somebody had touched them.
pub(super) const HOURS: &str = "hours";
pub(super) const WARM_POSTS: &str = "post that stayed warm";

/// Of 1,000 steps: a replica catches up.
const SYNCS: u32 = 25;

/// What came of a history.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) violations: Vec<String>,
    pub(super) commands: u64,
    pub(super) digest: u64,
    pub(super) trace: Vec<String>,
    pub(super) counts: BTreeMap<&'static str, u64>,
    /// Where commands of functions were made to fail.
    pub(super) sites: Sites,
}

/// Lives through the history of a seed.
pub(super) fn live(seed: u64, shape: Shape, rules_out: &[&'static str], is_traced: bool) -> Outcome {
    in_a_world(seed, rules_out, is_traced, || async move {
        rules::short_cuts(seed % 8 < 5);
        world(|w| {
            w.policy = policy_of(seed);
            w.decide_every = DECIDE_EVERY;
            // What waits for an archive has a bound too, at which posts are refused.
            w.outbox_posts = if shape.archive { OUTBOX_POSTS.0 } else { outbox_posts_of(seed) };
            w.public_posts = public_posts_of(seed);
            w.archive = shape.archive.then(ArchiveData::searched);
            w.archive.iter_mut().for_each(|archive| archive.hot_days = u32::from(shape.hours > 0));
        });
        let mix = MIXES[usize::try_from(seed % 4).unwrap_or(0)];
        History::new(shape, mix).await.live().await
    })
}

/// Whether no caller may be told so: a broken promise, or a fence's affair.
fn is_wrong(e: &Error) -> bool {
    e.kind() == ErrorKind::Internal || e.kind() == ErrorKind::Conflict && e.is_of_fence()
}

/// Holds the end of a client's call against what may have run of it: none is told that nothing was written if something
/// may have been.
pub(super) fn note_end<T>(what: &str, (ended, lost): (Result<T>, Option<String>)) {
    let Err(e) = ended else { return world(|w| w.note(|| format!("{what} done"))) };
    if is_wrong(&e) {
        world(|w| w.violated(format!("{what}: {e:?}")));
    }
    let says_no = matches!(e.code(), ErrorCode::Unavailable | ErrorCode::Overloaded | ErrorCode::Conflict);
    if let Some(lost) = lost.filter(|_| says_no) {
        world(|w| w.violated(format!("{what}: {e:?}, though {lost} may have run")));
    }
    world(|w| w.note(|| format!("{what} failed: {e:?}")));
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
        world(|w| {
            w.visible_within = shape.visible_within;
            w.fences_hold = shape.faults.hollow == 0;
        });
        let engines = vec![instance().await, instance().await];
        // Two share a bucket, others don't.
        let mut accounts = ids_in(&[0, 0, 1, 2, 2, 3, 1]);
        for account in &accounts {
            let mode = if world(|w| w.chance(120)) { Mode::Pull } else { Mode::Push };
            let is_locked = world(|w| w.chance(120));
            let new = NewAccount { id: Some(*account), mode, is_locked, ..NewAccount::default() };
            engines[0].1.create_account(new).await.expect("no faults yet");
        }
        watch(&accounts);
        world(|w| w.faults = shape.faults);
        world(|w| w.archive.iter_mut().for_each(|archive| archive.fails = !shape.is_calm()));
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
            if self.shape.hours > 0 && world(|w| w.chance(self.shape.hours)) {
                self.pass_hours().await;
            } else if !self.disturb().await {
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
            // Last: all that comes before is drawn as it was without.
            for reader in self.readers.clone() {
                ends::compare_chosen(&self.engine(), reader).await;
            }
            if world(|w| keeps_all_public(w.public_posts)) {
                check_public(&self.engine(), "at last").await;
            }
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
        let numbers = [self.engines[0].0, self.engines[1].0];
        match disturb(self.shape, SYNCS, numbers) {
            None => return false,
            Some(Disturbance::Sync) => self.count("sync"),
            Some(Disturbance::Death(at)) => {
                let (number, _) = self.engines.remove(at);
                world(|w| w.kill(number));
                self.engines.push(instance().await);
                self.count_met("death");
            }
            Some(Disturbance::Other(what)) => self.count_met(what),
        }
        true
    }

    /// Everything comes to rest, and hours pass: posts become old, and those that were touched cool down.
    async fn pass_hours(&mut self) {
        self.drain().await;
        world(|w| {
            let hours = w.pick(&[2, 7, 25]);
            w.set_clocks(w.now_ms().saturating_add_signed(hours * HOUR_MS));
            w.note(|| format!("{hours} HOURS pass"));
            w.faults = self.shape.faults;
            w.archive.iter_mut().for_each(|archive| archive.fails = !self.shape.is_calm());
        });
        self.count(HOURS);
    }

    /// Counts something that goes wrong, if it meets an operation that is under way.
    fn count_met(&mut self, what: &'static str) {
        if self.under_way.iter().any(|operation| !operation.is_finished()) {
            self.count(what);
        }
    }

    pub(super) fn spawn<T: Send + 'static>(
        &mut self,
        what: &'static str,
        operation: impl Future<Output = Result<T>> + Send + 'static,
    ) {
        self.under_way.push(tokio::spawn(async move {
            note_end(what, link::called(operation).await);
        }));
    }

    /// Everything that is under way ends.
    async fn drain(&mut self) {
        world(|w| w.archive.iter_mut().for_each(|archive| archive.fails = false));
        let deadline = Instant::now() + ends::REST_MAX;
        while ends::run_dry().await {
            for task in self.under_way.drain(..) {
                // Those of instances that died never end.
                if let Ok(Err(e)) = timeout(Duration::from_millis(500), task).await {
                    world(|w| w.violated(format!("a client's operation panicked: {e}")));
                }
            }
            sleep(Duration::from_millis(50)).await;
            if ends::is_at_rest(self.engines.iter().map(|(_, engine)| engine)) {
                break;
            }
            if Instant::now() > deadline {
                world(|w| w.violated("somebody is at something all the time"));
                break;
            }
        }
        // A deletion that broke off half-way is undone: somebody looks at the post again (H175).
        if world(|w| truth::half_forgotten(w)) {
            sleep(Duration::from_secs(11)).await;
            let moved = self.engine().archive_due().await;
            if moved.is_err() || world(|w| truth::half_forgotten(w)) {
                world(|w| w.violated(format!("the archive lacks a post that is there: {moved:?}")));
            }
        }
        // What caches may still show is over.
        sleep(world(|w| w.visible_within)).await;
    }

    async fn check(&mut self, when: &str) {
        if world(|w| w.fences_hold) {
            ends::check_follows(&self.readers, &self.authors, when);
            ends::check_locks(when);
        }
        ends::check_slots();
        ends::check_tokens();
        if world(|w| w.fences_hold) {
            ends::check_modes(when);
            check_lists(when);
            let found = check_index(when);
            *self.counts.entry(FOUND_POSTS).or_default() += found;
            ends::check_followers(&self.engine(), when).await;
        }
        for reader in self.readers.clone() {
            let short = world(|w| w.pick(&[2, 3]));
            for (limit, (_, engine)) in [short, 50].into_iter().zip(self.engines.clone()) {
                ends::compare(&engine, reader, limit, when).await;
            }
        }
    }

    /// Entries and marks that stayed, and do no harm. Followers that don't follow are wrong.
    async fn count_leftovers(&mut self) {
        for (what, many) in world(|w| {
            [
                (PAGES, w.pages[0]),
                (STALE_PAGES, w.pages[1]),
                ("stale read", w.stale_reads),
                ("stray write", w.stray_writes.len() as u64),
                ("torn call", w.torn_calls),
                ("hollow fence", w.hollow_fences),
                (CUT_OUTBOXES, truth::cut_outboxes(w)),
                (ARCHIVED_POSTS, w.archive.as_ref().map_or(0, ArchiveData::len)),
                (WARM_POSTS, w.archive.as_ref().map_or(0, |archive| archive.warm)),
            ]
        }) {
            *self.counts.entry(what).or_default() += many;
        }
        if !world(|w| w.fences_hold) {
            return;
        }
        let engine = self.engine();
        for author in self.authors.clone() {
            ends::check_strays(&engine, author, "at the end").await;
        }
        let needless = ends::check_lists(&engine, "at the end").await;
        if needless > 0 {
            world(|w| w.violated(format!("{needless} posts are on lists that they don't name")));
        }
        for (what, many) in world(|w| truth::needless_marks(w)) {
            *self.counts.entry(what).or_default() += many;
        }
    }
}
