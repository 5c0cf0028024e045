//! What clients and checks share: the instances, the world, the clock, and what was found.

use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::args::Chaos;
use super::call::{Asked, Call};
use super::check::{Seen, Violation, Wrong, check, check_scroll};
use super::comparisons::{self, Comparisons, Subject};
use super::facts::{Time, Window};
use super::over_http::is_offered;
use super::patience::Patience;
use super::pool::Pool;
use super::told::{Page, Reply, Shown};
use super::under_way::SentCalls;
use super::world::{Pair, PostNo, World};

/// Between two tries of a call.
const PAUSE: Duration = Duration::from_millis(15);

/// By how much an id may be off the time at which its post was published, in milliseconds: less than any clock is set.
const OFF_MAX_MS: u64 = 60_000;
/// The milliseconds of an id are above this many bits.
pub(super) const ID_LOW_BITS: u32 = 16;
/// The kind of error of an instance that is gone.
pub(crate) const GONE: &str = "Gone";

/// How a call ended.
#[derive(Debug)]
pub(crate) enum Ended {
    Done(Reply),
    /// Refused for good. Whether an earlier try may have been carried out.
    Refused {
        kind: String,
        message: String,
        is_unsure: bool,
    },
    /// Not carried out in time.
    Stuck,
}

/// How many calls of one kind ended how.
#[derive(Debug, Clone, Default, serde::Serialize)]
pub(crate) struct CallCounts {
    pub(crate) acknowledged: u64,
    pub(crate) refused: u64,
    pub(crate) repeated: u64,
    pub(crate) skipped: u64,
}

/// How many faults of one kind there were.
#[derive(Debug, Clone, Copy, Default, serde::Serialize)]
pub(crate) struct FaultCounts {
    pub(crate) struck: u64,
    /// Those that met work under way which they can affect: others show nothing.
    pub(crate) met: u64,
}

/// What is counted, and what is wrong.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    pub(crate) counts: BTreeMap<&'static str, CallCounts>,
    pub(crate) errors: BTreeMap<String, u64>,
    pub(crate) violations: Vec<Violation>,
    /// What was counted already: one hole met by many reads is one hole.
    known: HashSet<(Wrong, u64, Option<PostNo>, String)>,
    pub(crate) pages: u64,
    pub(crate) events: BTreeMap<&'static str, u64>,
    /// What went wrong on purpose, and when.
    pub(crate) happened: Vec<(Time, &'static str)>,
    /// Faults of each kind.
    pub(crate) faults: BTreeMap<Chaos, FaultCounts>,
    /// What was held against the model besides pages.
    pub(crate) comparisons: BTreeMap<Subject, Comparisons>,
    /// How accounts were delivered after the last round.
    modes: BTreeMap<u64, Vec<u8>>,
}

/// A run.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) pool: Pool,
    /// All calls, also those under way.
    pub(crate) sent: SentCalls,
    /// The same in milliseconds since 1970, if this machine's clock is as right as the servers'.
    began_ms: Option<u64>,
    /// A call that is not carried out within this time is stuck.
    call_max: Duration,
    world: Mutex<World>,
    findings: Mutex<Findings>,
    /// Pages that are checked when everything that overlaps them is known.
    seen: Mutex<Vec<Seen>>,
    /// Homes by importance, all pages of each: checked with these.
    scrolls: Mutex<Vec<Seen>>,
    /// Changes with every post.
    published: watch::Sender<()>,
    /// Who waits for a delivery.
    awaited: Mutex<Vec<(PostNo, JoinHandle<()>)>>,
    /// A call was not carried out in time: nothing more is asked, so that the run ends.
    has_given_up: AtomicBool,
    /// Whether the archive may be away.
    may_lack_archive: AtomicBool,
    /// When somebody was told so last.
    told_away: AtomicU64,
    /// Whether calls go over HTTP that it has.
    is_over_http: AtomicBool,
}

impl Run {
    pub(crate) fn new(pool: Pool, world: World, (began_ms, call_max): (Option<u64>, Duration)) -> Arc<Self> {
        Arc::new(Self {
            pool,
            sent: SentCalls::new(Instant::now()),
            began_ms,
            call_max,
            world: Mutex::new(world),
            findings: Mutex::default(),
            seen: Mutex::default(),
            scrolls: Mutex::default(),
            published: watch::Sender::new(()),
            awaited: Mutex::default(),
            has_given_up: AtomicBool::new(false),
            may_lack_archive: AtomicBool::new(false),
            told_away: AtomicU64::new(0),
            is_over_http: AtomicBool::new(false),
        })
    }

    pub(crate) fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn findings(&self) -> MutexGuard<'_, Findings> {
        self.findings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn now(&self) -> Time {
        self.sent.now()
    }

    /// Whether an id says another time than that at which its post was published.
    pub(crate) fn is_of_another_time(&self, id: u64, published: Window) -> bool {
        let Some(began_ms) = self.began_ms else { return false };
        let [from, to] = [published.from, published.to].map(|time| began_ms + time / 1_000);
        let taken = id >> ID_LOW_BITS;
        taken + OFF_MAX_MS < from || taken > to + OFF_MAX_MS
    }

    pub(crate) fn event(&self, what: &'static str) {
        self.findings().happened.push((self.now(), what));
        self.count_event(what, 1);
    }

    pub(crate) fn count_event(&self, what: &'static str, many: u64) {
        *self.findings().events.entry(what).or_default() += many;
    }

    /// Notes the largest of what is told of each round.
    pub(crate) fn at_least(&self, what: &'static str, many: u64) {
        let mut findings = self.findings();
        let most = findings.events.entry(what).or_default();
        *most = many.max(*most);
    }

    /// Something went wrong on purpose.
    pub(crate) fn fault(&self, kind: Chaos, has_met: bool) {
        let mut findings = self.findings();
        let counts = findings.faults.entry(kind).or_default();
        counts.struck += 1;
        counts.met += u64::from(has_met);
    }

    /// How accounts are delivered after a round.
    pub(crate) fn note_modes(&self, modes: BTreeMap<u64, Vec<u8>>) {
        let pulled = modes.values().filter(|mode| mode.first() == Some(&b'L')).count();
        let before = std::mem::replace(&mut self.findings().modes, modes.clone());
        let is_other =
            |(account, mode): &(&u64, &Vec<u8>)| before.get(account).is_some_and(|before| before != *mode);
        let changed = modes.iter().filter(is_other).count();
        for (what, many) in [("pulled after a round", pulled), ("other modes than a round before", changed)] {
            self.count_event(what, u64::try_from(many).unwrap_or(u64::MAX));
        }
    }

    /// Whether a call was not carried out in time. What was done since then is not known, so nothing can be checked.
    pub(crate) fn has_given_up(&self) -> bool {
        self.has_given_up.load(Ordering::Relaxed)
    }

    /// Something of that kind should have been held against the model, and wasn't answered.
    pub(crate) fn skipped(&self, subject: Subject, what: &Ended) {
        if !self.has_given_up() {
            tracing::debug!("{subject} not compared: {what:?}");
            let mut findings = self.findings();
            let comparisons = findings.comparisons.entry(subject).or_default();
            comparisons.skipped += 1;
            comparisons.why = format!("{what:?}");
        }
    }

    /// Too many comparisons of one kind that could not be made are a failure: what they would have found nobody knows.
    pub(crate) fn judge_skipped(&self) {
        let few = comparisons::too_few(&self.findings().comparisons);
        if !few.is_empty() {
            self.wrong(Wrong::Stuck, 0, None, format!("too few comparisons: {few}"));
        }
    }

    /// Sends a call to an instance. `None`: that is gone, or has not answered in time.
    async fn send(&self, instance: usize, call: Call) -> Option<Reply> {
        let _under_way = self.sent.begin(instance % self.pool.len(), &call);
        if self.is_over_http() {
            let way = if is_offered(&call) { "calls over HTTP" } else { "calls that HTTP doesn't have" };
            self.count_event(way, 1);
        }
        let answer = tokio::time::timeout(self.call_max, self.pool.call(instance, call)).await;
        let answer = answer.ok().flatten();
        if answer.as_ref().is_some_and(Reply::lacks_archive) {
            self.count_event("answers that said that the archive is away", 1);
            self.told_away.fetch_max(self.now(), Ordering::Relaxed);
        }
        answer
    }

    /// Calls go over HTTP from now on, those that it has.
    pub(crate) fn goes_over_http(&self) {
        self.is_over_http.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_over_http(&self) -> bool {
        self.is_over_http.load(Ordering::Relaxed)
    }

    /// Whether the archive may be away from now on: else pages that it would go on with are asked for again.
    pub(crate) fn may_lack_archive(&self, may: bool) {
        self.may_lack_archive.store(may, Ordering::Relaxed);
    }

    /// Whether a page may lack what the archive has.
    pub(crate) fn archive_may_be_away(&self) -> bool {
        self.may_lack_archive.load(Ordering::Relaxed)
    }

    /// While an archive may be away, who says that it is has answered: the time begins anew. What it has lost is asked
    /// for as long, since it may be written again, unless nobody does.
    fn bears(&self, patience: &mut Patience, answer: Option<&Reply>) {
        let Some(answer) = answer.filter(|answer| answer.lacks_archive()) else { return };
        if answer.tells_loss() && self.world().loses_for_good {
            patience.note_loss();
        } else if self.archive_may_be_away() {
            patience.begin_anew();
        }
    }

    /// Whether somebody was told since then that the archive is away.
    pub(crate) fn was_told_away(&self, since: Time) -> bool {
        self.told_away.load(Ordering::Relaxed) >= since
    }

    /// Calls once: what must not be sent again. Only what is unknown may have been carried out, and what an instance
    /// that is gone was at: every other error says that nothing was written.
    pub(crate) async fn once(&self, instance: usize, call: Call) -> Ended {
        let name = call.name();
        match self.send(instance, call).await {
            Some(Reply::Failed { kind, message, .. }) => {
                self.count_error(&format!("{name}: {kind}"));
                self.count(name, |counts| counts.refused += 1);
                let is_unsure = kind == "Unknown";
                Ended::Refused { kind, message, is_unsure }
            }
            Some(reply) => {
                self.count(name, |counts| counts.acknowledged += 1);
                Ended::Done(reply)
            }
            None => {
                self.count_error(&format!("{name}: instance gone"));
                Ended::Refused { kind: GONE.to_owned(), message: String::new(), is_unsure: true }
            }
        }
    }

    /// The first call that is stuck ends the run.
    fn give_up(&self, reader: u64, text: String) {
        self.has_given_up.store(true, Ordering::Relaxed);
        self.wrong(Wrong::Stuck, reader, None, text);
        self.tell_published();
    }

    pub(crate) fn report(&self, violation: Violation) {
        let mut findings = self.findings();
        let detail = if violation.post.is_some() { String::new() } else { violation.text.clone() };
        if findings.known.insert((violation.wrong, violation.reader, violation.post, detail)) {
            findings.violations.push(violation);
        }
    }

    pub(crate) fn wrong(&self, wrong: Wrong, reader: u64, post: Option<PostNo>, text: String) {
        self.report(Violation { wrong, reader, post, other: None, text, seen: None });
    }

    /// Something is wrong between two accounts.
    pub(crate) fn wrong_between(&self, wrong: Wrong, (one, other): Pair, text: String) {
        self.report(Violation { wrong, reader: one, post: None, other: Some(other), text, seen: None });
    }

    /// Calls until it is carried out or refused: at another instance each time.
    pub(crate) async fn call(&self, instance: usize, call: Call) -> Ended {
        self.repeat(instance, call).await.0
    }

    /// The same, with how often it was sent.
    pub(crate) async fn repeat(&self, instance: usize, call: Call) -> (Ended, usize) {
        let mut patience = Patience::of(self.call_max);
        let name = call.name();
        let (mut tries, mut last) = (0, "its instance is gone".to_owned());
        while !patience.is_over() {
            if self.has_given_up() {
                return (Ended::Stuck, tries);
            }
            let answer = self.send(instance + tries, call.clone()).await;
            self.bears(&mut patience, answer.as_ref());
            match answer {
                // An earlier sending has created it.
                Some(Reply::Failed { kind, .. }) if tries > 0 && name == "create" && kind == "Conflict" => {
                    self.count(name, |counts| counts.acknowledged += 1);
                    return (Ended::Done(Reply::Done), tries + 1);
                }
                Some(Reply::Failed { kind, message, may_retry, .. }) => {
                    self.count_error(&format!("{name}: {kind}"));
                    if !may_retry || kind == "Conflict" && call.may_conflict() {
                        self.count(name, |counts| counts.refused += 1);
                        return (Ended::Refused { kind, message, is_unsure: tries > 0 }, tries + 1);
                    }
                    last = format!("{kind}: {message}");
                    tracing::debug!("{call:?}: {last}");
                }
                Some(reply) => {
                    self.count(name, |counts| counts.acknowledged += 1);
                    if let Some(subject) = Subject::of(&call) {
                        self.findings().comparisons.entry(subject).or_default().made += 1;
                    }
                    return (Ended::Done(reply), tries + 1);
                }
                None => self.count_error(&format!("{name}: instance gone")),
            }
            tries += 1;
            self.count(name, |counts| counts.repeated += 1);
            tokio::time::sleep(PAUSE).await;
        }
        let waited = patience.told();
        self.give_up(0, format!("{call:?} was not carried out {waited}, in {tries} tries; at last {last}"));
        (Ended::Stuck, tries)
    }

    pub(crate) fn count(&self, name: &'static str, how: impl FnOnce(&mut CallCounts)) {
        how(self.findings().counts.entry(name).or_default());
    }

    fn count_error(&self, error: &str) {
        *self.findings().errors.entry(error.to_owned()).or_default() += 1;
    }

    /// Reads a page; it is checked later. A read has no effect, so its time is that of the try that was answered.
    pub(crate) async fn read(&self, instance: usize, asked: Asked) -> Option<Page> {
        let mut patience = Patience::of(self.call_max);
        let (mut number, mut last) = (instance, String::new());
        loop {
            if self.has_given_up() {
                return None;
            }
            let from = self.now();
            let answer = self.send(number, Call::Read(asked)).await;
            self.bears(&mut patience, answer.as_ref());
            let to = self.now();
            match answer {
                Some(Reply::Page(page)) => {
                    self.count("read", |counts| counts.acknowledged += 1);
                    let window = Window { from, to };
                    let instance = number % self.pool.len();
                    let may_lack = self.archive_may_be_away();
                    self.note(Seen { asked, page: page.clone(), window, instance, is_refused: false });
                    if may_lack || !page.lacks_archive {
                        return Some(page);
                    }
                }
                // What it is of may not be there for the reader, or for nobody any more; or the reader.
                Some(Reply::Failed { kind, .. }) if kind == "NotFound" => {
                    self.count("read", |counts| counts.refused += 1);
                    let (window, instance) = (Window { from, to }, number % self.pool.len());
                    self.note(Seen { asked, page: Page::default(), window, instance, is_refused: true });
                    return None;
                }
                Some(Reply::Failed { kind, message, may_retry, .. }) => {
                    self.count_error(&format!("read: {kind}"));
                    last = format!("; at last {kind}: {message}");
                    if !may_retry {
                        let text = format!("a read was refused: {kind}: {message}");
                        self.wrong(Wrong::Stuck, asked.reader, None, text);
                        return None;
                    }
                }
                _ => self.count_error("read: instance gone"),
            }
            if patience.is_over() {
                let waited = patience.told();
                self.give_up(asked.reader, format!("{asked:?} was not answered {waited}{last}"));
                return None;
            }
            self.count("read", |counts| counts.repeated += 1);
            number += 1;
            tokio::time::sleep(PAUSE).await;
        }
    }

    pub(super) fn note(&self, seen: Seen) {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).push(seen);
    }

    pub(super) fn note_scroll(&self, seen: Seen) {
        self.scrolls.lock().unwrap_or_else(PoisonError::into_inner).push(seen);
    }

    /// A post of that author that was on pages since they were checked last, and that nobody knows of: who has seen it,
    /// and how.
    pub(crate) fn unknown_post_of(&self, author: u64) -> Vec<(u64, Shown)> {
        let (seen, world) = (self.seen.lock().unwrap_or_else(PoisonError::into_inner), self.world());
        let all = seen.iter().flat_map(|seen| seen.page.posts.iter().map(|post| (seen.asked.reader, post)));
        let unknown = all.filter(|(_, post)| post.author == author && !world.by_id.contains_key(&post.id));
        let first = unknown.clone().next().map(|(_, post)| post.id);
        unknown.filter(|(_, post)| Some(post.id) == first).map(|(by, post)| (by, post.clone())).collect()
    }

    /// Checks all pages that were read so far: nothing may be under way that overlaps them. Where a call got stuck
    /// nobody knows what overlaps them.
    pub(crate) fn check_pages(&self) {
        let [seen, scrolls] = [&self.seen, &self.scrolls]
            .map(|seen| std::mem::take(&mut *seen.lock().unwrap_or_else(PoisonError::into_inner)));
        if self.has_given_up() {
            return;
        }
        let world = self.world();
        self.findings().pages += u64::try_from(seen.len()).unwrap_or(u64::MAX);
        self.count_event("scrolls by importance", u64::try_from(scrolls.len()).unwrap_or(u64::MAX));
        let pages = seen.iter().flat_map(|page| check(&world, page));
        for violation in pages.chain(scrolls.iter().flat_map(|scroll| check_scroll(&world, scroll))) {
            self.report(violation);
        }
    }

    /// Waits until an account is there.
    pub(crate) async fn known(&self, account: u64) {
        let mut changes = self.published.subscribe();
        while !self.has_given_up() && !self.world().states.contains_key(&account) {
            if tokio::time::timeout(self.call_max * 2, changes.changed()).await.is_err() {
                self.wrong(Wrong::Stuck, account, None, "it was awaited in vain".to_owned());
                return;
            }
        }
    }

    pub(crate) fn tell_published(&self) {
        self.published.send_replace(());
    }

    pub(crate) fn awaits(&self, no: PostNo, delivery: JoinHandle<()>) {
        self.awaited.lock().unwrap_or_else(PoisonError::into_inner).push((no, delivery));
    }

    /// All who wait for a delivery, or did so since the last time.
    pub(crate) fn take_awaited(&self) -> Vec<(PostNo, JoinHandle<()>)> {
        std::mem::take(&mut *self.awaited.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Id and author of a post that another client may still be publishing. `None`: it never came to be.
    pub(crate) async fn reference(&self, no: PostNo, is_over: impl Fn(&World) -> bool) -> Option<(u64, u64)> {
        let mut changes = self.published.subscribe();
        loop {
            {
                let world = self.world();
                if let Some(reference) = world.reference(no) {
                    return Some(reference);
                }
                if is_over(&world) || self.has_given_up() {
                    return None;
                }
            }
            if tokio::time::timeout(self.call_max * 2, changes.changed()).await.is_err() {
                let fact = self.world().post(no).map(|post| format!("{post:?}"));
                self.wrong(Wrong::Stuck, 0, Some(no), format!("post {no} was awaited in vain: {fact:?}"));
                return None;
            }
        }
    }
}
