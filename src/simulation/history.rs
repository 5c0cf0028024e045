//! One history: a small world, random operations of clients, and what goes wrong meanwhile.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};

use super::checks::{Before, whole_timeline};
use super::link::Link;
use super::lua;
use super::truth::{self, State};
use super::world::{Faults, Instance, Moving, Toggle, World, world};
use crate::cluster::{Command, Request, Router};
use crate::engine::Engine;
use crate::error::{ErrorKind, Result};
use crate::ids::{AccountId, PostId};
use crate::post::{Draft, Visibility};
use crate::settings::EngineSettings;
use crate::sharded::SetSettings;
use crate::store::Store;
use crate::timeline::{Cursor, Query, Range};
use crate::{Mode, NewAccount, rules};

/// How a history is shaped.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shape {
    pub(super) steps: u32,
    pub(super) faults: Faults,
    /// Failovers, deaths, freezes, moves of slots: of 1,000 steps.
    pub(super) failovers: u32,
    pub(super) deaths: u32,
    pub(super) freezes: u32,
    pub(super) moves: u32,
}

impl Shape {
    /// Everything goes wrong.
    pub(super) const HARSH: Self = Self {
        steps: 70,
        faults: Faults { lost: 25, slow: 30 },
        failovers: 70,
        deaths: 12,
        freezes: 20,
        moves: 15,
    };
    /// Nothing does, but everything interleaves.
    pub(super) const CALM: Self = Self {
        steps: 70,
        faults: Faults { lost: 0, slow: 30 },
        failovers: 0,
        deaths: 0,
        freezes: 0,
        moves: 0,
    };
}

/// What clients do, and how many of them.
#[derive(Debug, Clone, Copy)]
struct Mix {
    readers: usize,
    authors: usize,
    /// Of 1,000 operations; the rest are reads.
    shares: [(&'static str, u64); 12],
}

const fn mix(readers: usize, authors: usize, of: [u64; 12]) -> Mix {
    let shares = [
        ("publish", of[0]),
        ("follow", of[1]),
        ("unfollow", of[2]),
        ("delete", of[3]),
        ("restrict", of[4]),
        ("spread", of[5]),
        ("drop", of[6]),
        ("sweep", of[7]),
        ("warm", of[8]),
        ("answer", of[9]),
        ("upwards", of[10]),
        ("bury", of[11]),
    ];
    Mix { readers, authors, shares }
}

/// Everything; one pair of accounts; one reader; one author with many followers.
const MIXES: [Mix; 4] = [
    mix(4, 3, [270, 150, 80, 30, 50, 20, 35, 3, 60, 25, 30, 4]),
    mix(2, 1, [220, 240, 230, 5, 10, 15, 25, 3, 40, 10, 20, 1]),
    mix(1, 3, [330, 100, 30, 10, 10, 3, 110, 3, 150, 5, 20, 1]),
    mix(4, 1, [260, 260, 140, 5, 5, 50, 20, 3, 20, 10, 20, 0]),
];

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
    rules::within(|| {
        rules::take_out(rules_out);
        rules::draw_from(seed ^ 0x5eed);
        lua::load(rules_out);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        let runtime = runtime.expect("a runtime");
        let counts = runtime.block_on(async {
            World::begin(seed, is_traced);
            let mix = MIXES[usize::try_from(seed % 4).unwrap_or(0)];
            History::new(shape, mix).await.live().await
        });
        drop(runtime);
        world(|w| Outcome {
            violations: std::mem::take(&mut w.violations),
            commands: w.commands,
            digest: w.digest,
            trace: w.trace.take().unwrap_or_default(),
            counts,
        })
    })
}

struct History {
    shape: Shape,
    mix: Mix,
    engines: Vec<(usize, Engine)>,
    readers: Vec<AccountId>,
    authors: Vec<AccountId>,
    under_way: Vec<JoinHandle<()>>,
    counts: BTreeMap<&'static str, u64>,
    settings: (EngineSettings, SetSettings),
}

fn settings() -> (EngineSettings, SetSettings) {
    let engine = EngineSettings {
        visible_within: Duration::ZERO,
        home_posts: 5,
        home_margin: 1,
        page_length: 3,
        outbox_posts: 1_000,
        lease_ttl: Duration::from_millis(260),
        lease_renewal: Duration::from_millis(80),
        scan_period: Duration::from_millis(70),
        fanout_chunk: 2,
        states_cached: 100,
        posts_cached: 100,
        accounts_cached: 100,
        outboxes_cached: 100,
        ..EngineSettings::default()
    };
    let sets = SetSettings { piece_limit: Some(1), spread_at: Some(1_000), trees_cached: 1_000 };
    (engine, sets)
}

/// One more instance.
async fn instance((engine, sets): &(EngineSettings, SetSettings)) -> (usize, Engine) {
    let (number, keys) = world(|w| {
        w.instances.push(Instance { is_dead: false, frozen_until: Instant::now() });
        (w.instances.len() - 1, w.keys.clone())
    });
    let router = Router::simulated(Arc::new(Link(number))).expect("a router");
    let store = Store::simulated(router, keys, sets.clone()).expect("a store");
    loop {
        // Its first lease may be lost.
        if let Ok(engine) = Engine::over(store.clone(), engine.clone(), crate::engine::Own::default()).await {
            return (number, engine);
        }
    }
}

impl History {
    async fn new(shape: Shape, mix: Mix) -> Self {
        let settings = settings();
        let engines = vec![instance(&settings).await, instance(&settings).await];
        // Accounts in buckets of their own choice: two share one, others don't.
        let wanted = [0, 0, 1, 2, 2, 3, 1];
        let mut accounts = Vec::new();
        let mut id = 100;
        for bucket in wanted {
            let account = world(|w| {
                loop {
                    id += 1;
                    let account = AccountId::new(id).expect("an id");
                    if w.keys.bucket_of(account).index() == bucket {
                        break account;
                    }
                }
            });
            accounts.push(account);
        }
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
        world(|w| {
            w.accounts = accounts.clone();
            (0..w.nodes.len()).for_each(|number| {
                w.note_states(number, true);
                w.sync(number);
            });
            for account in &accounts {
                w.past.entry(*account).or_default()[0].0 = 0;
            }
            w.faults = shape.faults;
        });
        let authors = accounts.split_off(4);
        let under_way = Vec::new();
        Self { shape, mix, engines, readers: accounts, authors, under_way, counts: BTreeMap::new(), settings }
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
        self.compare("at the end").await;
        self.count_strays().await;
        self.check_tokens();
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
            self.compare("with one more post").await;
        }
        self.counts
    }

    fn count(&mut self, what: &'static str) {
        *self.counts.entry(what).or_default() += 1;
    }

    fn engine(&self) -> Engine {
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
            world(|w| w.fail_over(bucket));
            self.count("failover");
        } else if is(deaths) {
            let at = usize::from(world(|w| w.chance(500)));
            let (number, _) = self.engines.remove(at);
            world(|w| {
                w.instances[number].is_dead = true;
                w.note(|| format!("DEATH of {number}"));
            });
            self.engines.push(instance(&self.settings).await);
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

    /// A client does something.
    fn act(&mut self) {
        let engine = self.engine();
        let mix = self.mix;
        let (reader, author) =
            world(|w| (w.pick(&self.readers[..mix.readers]), w.pick(&self.authors[..mix.authors])));
        let mut dice = world(|w| w.below(1_000));
        let chosen = mix.shares.iter().find(|(_, share)| {
            let is_this = dice < *share;
            dice = dice.saturating_sub(*share);
            is_this
        });
        let what = chosen.map_or("read", |(what, _)| what);
        self.count(what);
        match what {
            "publish" => {
                let by = if world(|w| w.chance(750)) { author } else { reader };
                let draft = self.draft();
                self.spawn(what, async move { retried(&engine, by, &draft).await });
            }
            "follow" => self.spawn(what, toggle(Toggle::Follow, engine, reader, author)),
            "unfollow" => self.spawn(what, toggle(Toggle::Unfollow, engine, reader, author)),
            "delete" => self.spawn(what, delete(engine, author)),
            "restrict" => self.restrict(engine, reader, author),
            "spread" => {
                let followers = engine.store().sets().of_account::<AccountId>(author, "followers");
                self.spawn(what, async move { followers?.spread().await });
            }
            "drop" => world(|w| {
                let home = w.keys.home(reader);
                let request = Request::write(w.keys.slot_of(reader), Command::new("DEL").arg(&home));
                drop(w.execute(9, &request));
            }),
            "answer" => self.spawn(what, async move {
                match world(|w| w.chance(800)) {
                    true => engine.approve(author, reader).await,
                    false => engine.reject(author, reader).await,
                }
            }),
            "upwards" => self.spawn(what, upwards(engine, reader)),
            "bury" => {
                let whom = if world(|w| w.chance(500)) { author } else { reader };
                world(|w| w.ends_all_follows(whom));
                self.spawn(what, async move { engine.delete_account(whom).await });
            }
            "sweep" => self.spawn(what, async move { engine.sweep(0).await.map(drop) }),
            "warm" => self.spawn(what, async move { engine.warm(reader).await.map(drop) }),
            _ => {
                let engines: Vec<Engine> = self.engines.iter().map(|(_, engine)| engine.clone()).collect();
                self.spawn(what, scroll(engines, reader));
            }
        }
    }

    fn draft(&self) -> Draft {
        let (kind, named, token) =
            world(|w| (w.below(10), [w.pick(&self.readers), w.pick(&self.readers)], w.below(u64::MAX)));
        let draft = Draft::text(if token % 2 == 0 { token.to_string() } else { "x".into() });
        let draft = match kind {
            0 => draft.visibility(Visibility::Direct).only_to(named),
            1 => draft.only_to(named),
            2 => draft.not_to([named[0]]),
            3 => draft.visibility(Visibility::Followers),
            _ => draft,
        };
        if token % 2 == 0 { Draft { token: Some(token.to_string()), ..draft } } else { draft }
    }

    fn restrict(&mut self, engine: Engine, reader: AccountId, author: AccountId) {
        let (by, whom) = if world(|w| w.chance(500)) { (reader, author) } else { (author, reader) };
        let kind = world(|w| w.below(6));
        if kind == 2 {
            // It ends both follows, sooner or later.
            world(|w| {
                *w.open.entry((Toggle::Unfollow, by, whom)).or_default() += 1;
                *w.open.entry((Toggle::Unfollow, whom, by)).or_default() += 1;
            });
        }
        self.spawn("restrict", async move {
            match kind {
                0 => engine.mute(by, whom).await,
                1 => engine.unmute(by, whom).await,
                2 => engine.block(by, whom).await,
                3 => engine.unblock(by, whom).await,
                4 => engine.hide_from(by, whom).await,
                _ => engine.show_to(by, whom).await,
            }
        });
    }

    fn spawn(&mut self, what: &'static str, operation: impl Future<Output = Result<()>> + Send + 'static) {
        self.under_way.push(tokio::spawn(async move {
            match operation.await {
                Err(e) if e.kind() == ErrorKind::Internal => world(|w| w.violated(format!("{what}: {e:?}"))),
                Err(e) => world(|w| w.note(|| format!("{what} failed: {e:?}"))),
                Ok(()) => {}
            }
        }));
    }

    /// Nothing goes wrong any more; everything that is under way ends.
    async fn drain(&mut self) {
        world(|w| {
            w.note(|| "DRAIN".into());
            w.faults = Faults::default();
            w.nodes.iter_mut().for_each(|node| node.moving = None);
        });
        let deadline = Instant::now() + Duration::from_secs(120);
        loop {
            sleep(Duration::from_millis(100)).await;
            let (left, late) = world(|w| (truth::journal_entries(w), w.late));
            if left == 0 && late == 0 {
                break;
            }
            if Instant::now() > deadline {
                return world(|w| w.violated(format!("{left} entries stay in the journals")));
            }
        }
        for task in self.under_way.drain(..) {
            // Those of instances that died never end.
            if let Ok(Err(e)) = timeout(Duration::from_millis(500), task).await {
                world(|w| w.violated(format!("a client's operation panicked: {e}")));
            }
        }
        sleep(Duration::from_millis(50)).await;
        if world(|w| truth::journal_entries(w)) > 0 {
            Box::pin(self.drain()).await;
        }
    }

    /// Followers that don't follow, marks that stayed: they cost something, and show nothing that is wrong. A follow
    /// of what is deleted is wrong.
    async fn count_strays(&mut self) {
        for author in self.authors.clone() {
            let engine = self.engine();
            let followers = engine.followers(author, None, 100, crate::sharded::Order::Ascending).await;
            for (reader, _) in followers.map(|page| page.entries).unwrap_or_default() {
                if world(|w| !State::of(w, reader).following.contains_key(&author)) {
                    self.count("stray edge");
                }
            }
            for reader in self.readers.clone() {
                let is_left = |w: &World| {
                    (truth::is_deleted(w, author) || truth::is_deleted(w, reader))
                        && State::of(w, reader).following.contains_key(&author)
                };
                if world(|w| is_left(w)) {
                    world(|w| w.violated(format!("{reader} follows {author}, and one of them is deleted")));
                }
            }
        }
        let marks = world(|w| {
            let marks =
                |a: &AccountId| w.data_of(*a).hash(&w.keys.marks(*a)).ok().flatten().map_or(0, BTreeMap::len);
            w.accounts.iter().map(marks).sum::<usize>()
        });
        *self.counts.entry("marks left").or_default() += marks as u64;
    }

    /// What was published with a token is there once.
    fn check_tokens(&self) {
        for author in self.authors.iter().chain(&self.readers) {
            let mut seen = BTreeSet::new();
            for text in world(|w| truth::texts(w, *author)) {
                if text != "x" && !seen.insert(text.clone()) {
                    world(|w| w.violated(format!("DOUBLE: {author} has published {text} twice")));
                }
            }
        }
    }

    /// Every reader's walk equals the truth.
    async fn compare(&mut self, when: &str) {
        for reader in self.readers.clone() {
            for author in self.authors.clone() {
                if world(|w| truth::is_forgotten(w, reader, author)) {
                    world(|w| {
                        w.violated(format!("{when}: {author} has approved {reader}, which doesn't follow it"))
                    });
                }
            }
            if world(|w| truth::is_deleted(w, reader)) {
                continue;
            }
            let short = world(|w| w.pick(&[2, 3]));
            for (limit, (_, engine)) in [short, 50].into_iter().zip(self.engines.clone()) {
                let walked = walk(&engine, reader, limit).await;
                let wanted = whole_timeline(reader);
                if walked != wanted {
                    let lacks: Vec<_> = wanted.iter().filter(|e| !walked.contains(e)).collect();
                    let extra: Vec<_> = walked.iter().filter(|e| !wanted.contains(e)).collect();
                    world(|w| {
                        w.violated(format!(
                            "{when}, walk of {reader}, {limit} a page: lacks {lacks:?}, shows {extra:?} too"
                        ));
                    });
                    return;
                }
            }
        }
    }
}

async fn toggle(what: Toggle, engine: Engine, reader: AccountId, author: AccountId) -> Result<()> {
    let open = |by: i32| {
        world(|w| {
            let open = w.open.entry((what, reader, author)).or_default();
            *open = open.saturating_add_signed(by);
        });
    };
    open(1);
    let done = match what {
        Toggle::Follow => engine.follow(reader, author).await.map(drop),
        Toggle::Unfollow => engine.unfollow(reader, author).await,
    };
    // Of what was given up some copy may still be on its way.
    if done.is_ok() || done.as_ref().is_err_and(|e| e.kind() == ErrorKind::Invalid) {
        open(-1);
    }
    done
}

/// Publishes, again while nobody knows whether it has worked, if that is safe.
async fn retried(engine: &Engine, author: AccountId, draft: &Draft) -> Result<()> {
    for _ in 0..3 {
        match engine.publish(author, draft).await {
            Err(e) if e.kind() == ErrorKind::Unknown && draft.token.is_some() => {}
            other => return other.map(drop),
        }
    }
    Ok(())
}

async fn delete(engine: Engine, author: AccountId) -> Result<()> {
    let live: Vec<u64> = world(|w| truth::posts(w, author).live.into_iter().collect());
    if live.is_empty() {
        return Ok(());
    }
    let id = world(|w| w.pick(&live));
    engine.delete(author, PostId::from_u64(id)?).await
}

/// Reads a page or some, each at any instance.
async fn scroll(engines: Vec<Engine>, reader: AccountId) -> Result<()> {
    let (pages, limit) = world(|w| (w.pick(&[1, 1, 1, 2, 5]), w.pick(&[2, 3, 3, 10])));
    let mut cursor: Option<Cursor> = None;
    for _ in 0..pages {
        let engine = &engines[usize::from(world(|w| w.chance(500)))];
        let query = Query { cursor, limit: Some(limit), ..Query::home() };
        let before = Before::now();
        let page = engine.read(reader, &query).await?;
        before.check(reader, cursor.map_or(u64::MAX, Cursor::id), limit, &page);
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    Ok(())
}

/// The page right above some post.
async fn upwards(engine: Engine, reader: AccountId) -> Result<()> {
    let ids: Vec<u64> =
        world(|w| w.accounts.clone().into_iter().flat_map(|a| truth::posts(w, a).live).collect());
    if ids.is_empty() {
        return Ok(());
    }
    let (id, limit) = world(|w| (w.pick(&ids), w.pick(&[2, 3, 20])));
    let range = Range { min_id: Some(PostId::from_u64(id)?), ..Range::default() };
    let before = Before::now();
    let page = engine.read(reader, &Query { range, limit: Some(limit), ..Query::home() }).await?;
    before.check_upwards(reader, id, &page);
    Ok(())
}

/// All of a timeline, page by page.
async fn walk(engine: &Engine, reader: AccountId, limit: usize) -> Vec<(u64, AccountId)> {
    let mut walked = Vec::new();
    let mut cursor = None;
    for _ in 0..500 {
        let query = Query { cursor, limit: Some(limit), ..Query::home() };
        match engine.read(reader, &query).await {
            Err(e) => {
                world(|w| w.violated(format!("a walk of {reader} fails: {e:?}")));
                return walked;
            }
            Ok(page) => {
                walked.extend(page.posts.iter().map(|post| (post.id.get(), post.author)));
                cursor = page.next;
            }
        }
        if cursor.is_none() {
            return walked;
        }
    }
    world(|w| w.violated(format!("a walk of {reader} never ends")));
    walked
}
