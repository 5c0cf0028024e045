//! The cluster: buckets, each of them a node, with what a replica has of it, its clock, its lives.

mod servers;
mod toggles;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use tokio::time::Instant;

use super::archive::ArchiveData;
use super::checks::{Edited, Moment};
use super::data::{Bytes, Data, Done, Out};
use super::gates::Gate;
use super::lua;
use super::moving::{HeldUp, Moving, may_run};
use super::names::Names;
use super::own_ties::PastTies;
use super::shape::{ByHand, OUTBOX_POSTS};
use super::truth::{self, State};
use crate::bucket::{Buckets, mix64};
use crate::cluster::{Answer, Epoch, NodeAddr, Reply, Request};
use crate::ids::{AccountId, PostId};
use crate::keys::{Keyspace, slot_of_key};
use crate::modes::Policy;
use crate::post::Post;
use crate::rules;
use toggles::toggles;

/// log2 of the number of buckets.
const BUCKET_BITS: u32 = 2;
/// When the simulation begins: an hour of 2023.
const EPOCH_MS: u64 = 1_700_000_000_000;

pub(super) const HOUR_MS: i64 = 3_600_000;

/// How often a policy is asked in scripts: not at all.
const DECIDE_SELDOM: Duration = Duration::from_secs(3_600);

/// One bucket.
pub(super) struct Node {
    pub(super) data: Data,
    /// What its replica has.
    synced: Data,
    pub(super) epoch: Epoch,
    life: u32,
    /// How far its clock is ahead of the median, or behind.
    pub(super) clock_ahead_ms: i64,
    pub(super) moving: Option<Moving>,
    /// It answers nobody.
    pub(super) is_silent: bool,
    /// A replica that is further behind than the one that fences count.
    behind: Data,
    /// Fences find no replica, and count all the same.
    pub(super) has_no_replica: bool,
    /// It answers, and its replica doesn't: fences fail.
    pub(super) cannot_vouch: bool,
    /// It answers nobody until then.
    pub(super) silent_until: Instant,
    /// The one before, which has not noticed that it was replaced.
    deposed: Option<Deposed>,
}

/// A primary that was replaced and answers on, and who still asks it.
struct Deposed {
    data: Data,
    epoch: Epoch,
    until: Instant,
    asked_by: BTreeSet<usize>,
    /// It is cut from the bus, and accepts writes, which are gone when it comes back.
    accepts_writes: bool,
}

impl Deposed {
    fn is_asked_by(&self, instance: usize) -> bool {
        self.until > Instant::now() && self.asked_by.contains(&instance)
    }
}

impl Node {
    /// Whether nobody gets an answer of it now.
    pub(super) fn answers_nobody(&self) -> bool {
        self.is_silent || self.silent_until > Instant::now()
    }
}

/// How often what goes wrong.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Faults {
    /// Requests whose reply doesn't come, of 1,000.
    pub(super) lost: u32,
    /// Requests that take long, of 1,000.
    pub(super) slow: u32,
    /// Whether requests take any time at all.
    pub(super) has_delays: bool,
    /// Calls of functions one of whose commands fails, of 1,000.
    pub(super) torn: u32,
    /// Primaries that answer on when they have been replaced, of 1,000.
    pub(super) deposed: u32,
    /// Fences that count without a replica, of 1,000; then what they were for may be lost.
    pub(super) hollow: u32,
}

impl Faults {
    /// Nothing.
    pub(super) const NONE: Self =
        Self { lost: 0, slow: 0, has_delays: false, torn: 0, deposed: 0, hollow: 0 };
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Instance {
    pub(super) is_dead: bool,
    pub(super) frozen_until: Instant,
}

/// What a client wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Toggle {
    Follow,
    Unfollow,
}

/// What an account followed, muted, blocked, from when on: by the number of the command that changed it.
type Past = Vec<(u64, Rc<State>)>;

pub(super) struct World {
    pub(super) keys: Keyspace,
    pub(super) nodes: Vec<Node>,
    pub(super) instances: Vec<Instance>,
    pub(super) faults: Faults,
    pub(super) accounts: Vec<AccountId>,
    pub(super) past: BTreeMap<AccountId, Past>,
    pub(super) past_ties: BTreeMap<AccountId, PastTies>,
    /// Who wants to follow or to unfollow whom, so many at once.
    pub(super) open: BTreeMap<(Toggle, AccountId, AccountId), u32>,
    /// What a failover has lost of that: a late copy may bring it back, until the opposite is acknowledged.
    pub(super) lost: BTreeSet<(Toggle, AccountId, AccountId)>,
    /// When accounts were locked, and open again: by the number of the command.
    pub(super) locks: BTreeMap<AccountId, Vec<(u64, bool)>>,
    /// Who was let in by whom: the requests.
    pub(super) let_in: BTreeMap<(AccountId, AccountId), BTreeSet<Bytes>>,
    pub(super) violations: Vec<String>,
    /// Commands that were executed.
    pub(super) commands: u64,
    /// Failovers, by bucket and the number of the command.
    pub(super) failovers: Vec<(usize, u64)>,
    /// Posts that a failover has lost: what refers to one refers to whichever post of its author gets that id again.
    pub(super) lost_posts: BTreeMap<(u64, AccountId), Post>,
    /// Everything that was executed, if somebody wants to read it.
    pub(super) trace: Option<Vec<String>>,
    /// All that happened, in one number: a seed replays if it is the same again.
    pub(super) digest: u64,
    /// Copies of requests that are still to arrive.
    pub(super) late: u32,
    /// Where requests are stopped, for scripts.
    pub(super) gates: Vec<Gate>,
    /// Reads that a deposed primary has answered: pages beside them may be of the past.
    pub(super) stale_reads: u64,
    /// `PAGES` and `STALE_PAGES` of them.
    pub(super) pages: [u64; 2],
    /// Writes that one has accepted: in which bucket, and the number of the command.
    pub(super) stray_writes: Vec<(usize, u64)>,
    /// Calls of functions that have failed half-way.
    pub(super) torn_calls: u64,
    /// Fences that have counted without a replica.
    pub(super) hollow_fences: u64,
    /// By its number, the last server whose fence has failed for want of its replica, while it was a primary.
    pub(super) vouched_for_nothing: BTreeMap<usize, Epoch>,
    /// What was fenced lasts.
    pub(super) fences_hold: bool,
    /// How long caches may be behind.
    pub(super) visible_within: Duration,
    /// How many posts an outbox lists.
    pub(super) outbox_posts: u32,
    /// How many public posts a bucket keeps; 0: there is no public timeline.
    pub(super) public_posts: u32,
    /// Where posts are that have left memory, if any may.
    pub(super) archive: Option<ArchiveData>,
    pub(super) shows_profiles: bool,
    pub(super) keeps_notifications: bool,
    /// So long every trip takes, besides: by that a test counts them.
    pub(super) trip: Duration,
    /// Who decides about push and pull, and how often.
    pub(super) policy: Arc<dyn Policy>,
    pub(super) decide_every: Duration,
    /// What was true not long ago, while caches may be behind.
    pub(super) moments: VecDeque<Arc<Moment>>,
    pub(super) edits: Vec<Edited>,
    /// The last command that may have edited a post, by the post's key.
    edited: BTreeMap<Vec<u8>, u64>,
    /// Who is told to have which names.
    pub(super) names: Names,
    epoch_ms: u64,
    random: StdRng,
    began: Instant,
}

thread_local! {
    static WORLD: RefCell<Option<World>> = const { RefCell::new(None) };
}

/// Looks at, or changes, this thread's world.
pub(super) fn world<R>(what: impl FnOnce(&mut World) -> R) -> R {
    WORLD.with_borrow_mut(|world| what(world.as_mut().expect("a world")))
}

impl World {
    /// Makes a new world, which replaces this thread's.
    pub(super) fn begin(seed: u64, is_traced: bool) {
        let keys = Keyspace::new("", Buckets::few(BUCKET_BITS)).expect("keys");
        let node = |number: u16| Node {
            data: Data::default(),
            synced: Data::default(),
            epoch: Epoch::of_life(NodeAddr::new("node", number), 0),
            life: 0,
            clock_ahead_ms: 0,
            moving: None,
            is_silent: false,
            cannot_vouch: false,
            behind: Data::default(),
            has_no_replica: false,
            silent_until: Instant::now(),
            deposed: None,
        };
        WORLD.set(Some(Self {
            nodes: (0..keys.buckets().count()).map(node).collect(),
            keys,
            instances: Vec::new(),
            faults: Faults::default(),
            accounts: Vec::new(),
            past: BTreeMap::new(),
            past_ties: BTreeMap::new(),
            open: BTreeMap::new(),
            lost: BTreeSet::new(),
            locks: BTreeMap::new(),
            let_in: BTreeMap::new(),
            violations: Vec::new(),
            commands: 0,
            failovers: Vec::new(),
            lost_posts: BTreeMap::new(),
            trace: is_traced.then(Vec::new),
            digest: seed,
            late: 0,
            gates: Vec::new(),
            stale_reads: 0,
            pages: [0, 0],
            stray_writes: Vec::new(),
            torn_calls: 0,
            hollow_fences: 0,
            vouched_for_nothing: BTreeMap::new(),
            fences_hold: true,
            visible_within: Duration::ZERO,
            outbox_posts: OUTBOX_POSTS.0,
            public_posts: 0,
            archive: None,
            shows_profiles: false,
            keeps_notifications: false,
            trip: Duration::ZERO,
            policy: Arc::new(ByHand),
            decide_every: DECIDE_SELDOM,
            moments: VecDeque::new(),
            edits: Vec::new(),
            edited: BTreeMap::new(),
            names: Names::default(),
            epoch_ms: EPOCH_MS,
            random: StdRng::seed_from_u64(seed),
            began: Instant::now(),
        }));
    }

    /// A number below `end`.
    pub(super) fn below(&mut self, end: u64) -> u64 {
        self.random.random_range(0..end)
    }

    /// True in so many of 1,000 cases.
    pub(super) fn chance(&mut self, of_thousand: u32) -> bool {
        self.random.random_ratio(of_thousand, 1000)
    }

    pub(super) fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.random.random_range(0..of.len())]
    }

    pub(super) fn elapsed_ms(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// The median of all clocks.
    pub(super) fn now_ms(&self) -> u64 {
        self.epoch_ms + self.elapsed_ms()
    }

    /// Sets all clocks, also back.
    pub(super) fn set_clocks(&mut self, now_ms: u64) {
        self.epoch_ms = now_ms - self.elapsed_ms();
    }

    pub(super) fn violated(&mut self, what: impl Into<String>) {
        let at = self.elapsed_ms();
        let text = format!("{at} ms: {}", what.into());
        self.note(|| format!("VIOLATED {text}"));
        self.violations.push(text);
    }

    pub(super) fn note(&mut self, what: impl FnOnce() -> String) {
        let at = self.elapsed_ms();
        if let Some(trace) = &mut self.trace {
            trace.push(format!("{at:>6} {}", what()));
        }
    }

    /// Which node serves a slot.
    pub(super) fn node_of(&self, slot: u16) -> usize {
        usize::from(slot >> (14 - BUCKET_BITS))
    }

    pub(super) fn data_of(&self, account: AccountId) -> &Data {
        &self.nodes[usize::from(self.keys.bucket_of(account).index())].data
    }

    /// Executes a request, on the node that serves it now.
    pub(super) fn execute(&mut self, by: usize, request: &Request) -> Result<Answer, HeldUp> {
        let number = self.node_of(request.slot);
        let arguments: Vec<&[u8]> = request.command.arguments().collect();
        self.commands += 1;
        self.digest = arguments.iter().fold(mix64(self.digest ^ self.elapsed_ms()), |digest, argument| {
            argument
                .iter()
                .fold(digest, |digest, byte| (digest ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
        });
        if let Some(answer) = self.ask_deposed(by, number, request, &arguments) {
            return Ok(answer);
        }
        let is_change = arguments.get(1).is_some_and(|name| name.ends_with(b"_change"));
        let before = is_change.then(|| truth::Between::of(self));
        let done = catch_unwind(AssertUnwindSafe(|| self.on_node(number, request, &arguments)));
        let done = done.unwrap_or_else(|_| Err("ERR a panic".into()));
        self.note(|| format!("{by}>{number} {:?} -> {done:?}", request.command));
        let mut later = None;
        if let Err(line) = &done {
            let is_half = line.contains("non local key");
            let is_moving = is_half || line.starts_with("TRYAGAIN") || line.starts_with("ASK");
            if is_moving && !request.traits.unless_moving {
                later = Some(if is_half { HeldUp::HalfWay } else { HeldUp::Untouched });
            }
            let is_expected = is_moving || line.starts_with("WRONGTYPE");
            if !is_expected {
                self.violated(format!("{:?} failed: {line}", request.command));
            }
        }
        if is_change {
            self.note_states(number, before.as_ref());
        }
        match arguments.as_slice() {
            [_, name, ..] if name.ends_with(b"_account_set") => self.note_locks(number),
            [_, name, _, _, approved, _, _, _, _, requester, _, request, ..]
                if name.ends_with(b"_approve") =>
            {
                self.note_approval(approved, requester, request);
            }
            _ => {}
        }
        if arguments.get(1).is_some_and(|name| Self::is_tie(name)) {
            self.note_ties(number);
        }
        if let [_, name, _, post, ..] = arguments.as_slice()
            && name.ends_with(b"_post_edit")
        {
            self.edited.insert(post.to_vec(), self.commands);
        }
        if arguments.get(1).is_some_and(|name| name.ends_with(b"_claims_settle")) {
            self.check_owners();
        }
        if let Some(moving) = later {
            return Err(moving);
        }
        let reply = match done {
            Ok(out) => reply(out),
            Err(line) => Reply::server_error(&line),
        };
        Ok(Answer { reply, epoch: self.nodes[number].epoch.clone() })
    }

    fn on_node(&mut self, number: usize, request: &Request, arguments: &[&[u8]]) -> Done {
        let now_us = self.now_ms().saturating_add_signed(self.nodes[number].clock_ahead_ms) * 1_000;
        let may_fail = (self.faults.torn > 0 || lua::has_to_fail()) && arguments[0] == b"FCALL";
        let fails = may_fail && self.faults.torn > 0 && self.chance(self.faults.torn);
        let fails_at = may_fail.then(|| if fails { 1 + self.below(10) } else { 0 });
        let fails_at = fails_at.and_then(|at| u32::try_from(at).ok());
        let node = &mut self.nodes[number];
        match arguments {
            [b"FCALL" | b"FCALL_RO", name, keys, rest @ ..] => {
                let keys: usize = super::data::number(keys)?;
                let name = std::str::from_utf8(name).map_err(|e| e.to_string())?;
                let (keys, args) = rest.split_at(keys);
                for key in keys {
                    assert_eq!(
                        slot_of_key(key),
                        request.slot,
                        "{:?} declares a key of another slot",
                        request.command
                    );
                }
                if let Some(moving) = node.moving {
                    may_run(&node.data, moving, request.traits.undeclared, keys)?;
                }
                let leaving = node.moving.map_or_else(Vec::new, |moving| moving.leaving(&node.data, keys));
                let call = lua::Call {
                    leaving,
                    data: std::mem::take(&mut node.data),
                    slot: request.slot,
                    now_us,
                    declared: keys.iter().map(|key| key.to_vec()).collect(),
                    moved: node.moving.filter(|_| request.traits.undeclared),
                    fails_at,
                    ..lua::Call::default()
                };
                let (done, data, has_failed) = lua::run(call, name, keys, args);
                node.data = data;
                self.torn_calls += u64::from(has_failed);
                done
            }
            [b"RPUSHX", home, entry] if !rules::holds("only_fill") => {
                if !node.data.has(home) {
                    let floor = [[0; 8], [0xff; 8]].concat();
                    node.data.run(&[b"RPUSH", home, &floor])?;
                }
                node.data.run(&[b"RPUSH", home, entry])
            }
            [_, key, ..] => {
                assert_eq!(slot_of_key(key), request.slot, "{:?} goes to another slot", request.command);
                node.data.run(arguments)
            }
            _ => Err("ERR a command without a key".into()),
        }
    }

    /// Whether a post may have been edited since that command.
    pub(super) fn was_edited(&self, id: PostId, since: u64) -> bool {
        self.edited.get(&self.keys.post(id)).is_some_and(|command| *command > since)
    }

    /// An instance ends, at once.
    pub(super) fn kill(&mut self, number: usize) {
        self.instances[number].is_dead = true;
        self.names.died(number);
        self.note(|| format!("DEATH of {number}"));
    }

    /// A pause as a network makes it, or a busy process.
    pub(super) fn delay(&mut self) -> Duration {
        if !self.faults.has_delays {
            return Duration::ZERO;
        }
        let ms = match self.below(1_000) {
            n if n < u64::from(self.faults.slow) => 20 + self.below(200),
            n if n < 700 => self.below(2),
            _ => self.below(9),
        };
        Duration::from_millis(ms)
    }
}

fn reply(out: Out) -> Reply {
    match out {
        Out::Nil => Reply::of_nil(),
        Out::Int(n) => Reply::of_int(n),
        Out::Line(line) => Reply::of_line(line),
        Out::Bulk(bytes) => Reply::of_bytes(&bytes),
        Out::Items(items) => Reply::of_items(items.into_iter().map(reply).collect()),
    }
}
