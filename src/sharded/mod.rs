//! Sharded sorted sets: large sorted sets kept as many small ones, each in its compact form.
//!
//! A **local set** lies in one slot, as pieces that split when they are full. A **spread set** has a local set in
//! every bucket, each member in its own bucket. A [`SortedSet`] starts local and becomes spread, once and for
//! good, when it passes a threshold. docs/sets.md tells how; [`SortedSet`] is what users hold.
//!
//! Invariants kept here: a member is in one place at any time; a set that is being spread is frozen until all its
//! members are copied and on replicas; an acknowledged change is never undone by a copier that comes late.

mod change;
mod local;
mod overtaken;
mod page;
mod pieces;
mod questions;
mod set;
mod sight;
pub(crate) mod spread;
mod together;
mod tree;
mod walk;
mod whole;

use std::sync::Arc;

use quick_cache::sync::Cache;

pub use crate::member::{MEMBER_LEN_MAX, Member, MemberName};
pub use change::Change;
pub(crate) use local::{LocalKey, Spot};
pub(crate) use page::ScoredMember;
pub use page::{Order, PAGE_MAX, ScoreRange};
pub(crate) use pieces::PiecePlace;
pub(crate) use questions::{Questions, SetAnswer};
pub use set::{CommonMembers, Layout, SetPage, SortedSet};
pub(crate) use sight::Sight;
#[doc(hidden)]
pub use spread::SpreadStep;
use together::ended_together;
pub(crate) use together::written_together;
pub(crate) use tree::SetState;
pub use walk::{Checkpoint, WalkPage};
pub(crate) use whole::WholeSet;

/// Parts that benchmarks measure by themselves; no part of the API.
#[doc(hidden)]
pub mod internals {
    pub use super::page::{MergeOutcome, PieceRead, ScoredMember, merge};
}

use crate::cluster::Router;
use crate::error::{Error, Result};
use crate::ids::{AccountId, PostId};
use crate::keys::{self, Keyspace};
use crate::turns::Turns;
use tree::Tree;

/// Longest name of a set.
pub const SET_NAME_LEN_MAX: usize = 64;
/// Most members of a piece, whatever the servers allow: functions go through a whole piece at once.
const PIECE_LIMIT_MAX: u32 = 128;
/// Fewest members of a piece, whatever the servers keep compact: smaller ones cost more keys than they save.
const PIECE_LIMIT_MIN: u32 = 16;

/// Settings of sharded sets, with the one place where each default stands.
#[derive(Debug, Clone)]
pub struct SetSettings {
    /// Most members of a piece; `None`: as many as every primary keeps compact, at most 128.
    pub piece_limit: Option<u32>,
    /// Members from which a set is spread; `None`: 16 for each bucket. Lower: more keys with few members. Higher:
    /// one slot carries more.
    pub spread_at: Option<u64>,
    /// Trees remembered, about 100 bytes each. A set whose tree is forgotten costs one round trip more.
    pub trees_cached: usize,
}

impl Default for SetSettings {
    fn default() -> Self {
        Self { piece_limit: None, spread_at: None, trees_cached: 200_000 }
    }
}

impl SetSettings {
    /// The first bound that isn't kept; its text names the settings concerned.
    pub(crate) fn broken_rule(&self) -> Option<&'static str> {
        let allowed = PIECE_LIMIT_MIN..=PIECE_LIMIT_MAX;
        let rules = [
            (self.piece_limit.is_none_or(|n| allowed.contains(&n)), "piece_limit must be 16 to 128"),
            (self.spread_at != Some(0), "spread_at must be above 0"),
            ((1..=100_000_000).contains(&self.trees_cached), "trees_cached must be 1 to 100,000,000"),
        ];
        rules.iter().find(|(holds, _)| !holds).map(|(_, rule)| *rule)
    }
}

/// The sharded sets of one keyspace. Copies are cheap and share what they know.
#[derive(Debug, Clone)]
pub struct Sets {
    inner: Arc<SharedSets>,
}

#[derive(Debug)]
struct SharedSets {
    router: Router,
    keys: Keyspace,
    settings: SetSettings,
    /// What we know of sets that are not small: a hint, except that "spread" is for ever.
    trees: Cache<LocalKey, Arc<Tree>>,
    /// Sets that this process is spreading, or waits for: one task each.
    spreading: Turns<LocalKey>,
}

impl Sets {
    /// The sets of `keys` on the cluster that `router` is connected to.
    pub fn new(router: Router, keys: Keyspace, settings: SetSettings) -> Result<Self> {
        if let Some(rule) = settings.broken_rule() {
            return Err(Error::invalid(format!("settings of sets: {rule}; they are {settings:?}")));
        }
        let trees = Cache::new(settings.trees_cached);
        Ok(Self {
            inner: Arc::new(SharedSets { router, keys, settings, trees, spreading: Turns::default() }),
        })
    }

    /// A set that belongs to an account and lies in its bucket until it is spread: its followers, say.
    pub fn of_account<M: Member>(&self, account: AccountId, what: &str) -> Result<SortedSet<M>> {
        check_name(what)?;
        let home = self.keys().bucket_of(account);
        Ok(SortedSet::new(self.clone(), home, keys::set_of_account(what, account).into()))
    }

    /// A list that belongs to a post and lies beside it, in its bucket, however large it grows.
    pub fn of_post<M: Member>(&self, post: PostId, what: &str) -> Result<SortedSet<M>> {
        check_name(what)?;
        let home = post.bucket(self.keys().buckets());
        Ok(SortedSet::new(self.clone(), home, keys::list_of_post(what, post).into()).pinned())
    }

    /// A set with a name of its own, which also decides the bucket in which it begins.
    pub fn named<M: Member>(&self, name: &str) -> Result<SortedSet<M>> {
        if name.starts_with(['@', '#']) {
            return Err(Error::invalid(format!(
                "set name `{name}`: names with @ or # in front are those of accounts' sets, posts' and hashtags' lists"
            )));
        }
        check_name(name)?;
        let home = self.keys().buckets().of_bytes(name.as_bytes());
        Ok(SortedSet::new(self.clone(), home, name.as_bytes().into()))
    }

    /// The list of a hashtag, in the bucket of its name.
    pub(crate) fn of_tag<M: Member>(&self, number: u64) -> SortedSet<M> {
        let name = keys::set_of_tag(number);
        SortedSet::new(self.clone(), self.keys().buckets().of_bytes(&name), name.into())
    }

    /// The floors of authors on that list, beside it.
    pub(crate) fn left_of_tag<M: Member>(&self, number: u64) -> SortedSet<M> {
        let home = self.keys().buckets().of_bytes(&keys::set_of_tag(number));
        SortedSet::new(self.clone(), home, keys::left_of_tag(number).into())
    }

    /// The router that they use.
    pub fn router(&self) -> &Router {
        &self.inner.router
    }

    fn keys(&self) -> &Keyspace {
        &self.inner.keys
    }

    /// Most members of a piece.
    pub fn piece_limit(&self) -> u32 {
        let limit = self.inner.settings.piece_limit.unwrap_or_else(|| self.router().limits().zset_entries);
        limit.clamp(PIECE_LIMIT_MIN, PIECE_LIMIT_MAX)
    }

    /// Members from which a set is spread.
    pub fn spread_at(&self) -> u64 {
        self.inner.settings.spread_at.unwrap_or_else(|| 16 * u64::from(self.keys().buckets().count()))
    }

    fn trees(&self) -> &Cache<LocalKey, Arc<Tree>> {
        &self.inner.trees
    }

    fn tree(&self, set: &LocalKey) -> Option<Arc<Tree>> {
        self.inner.trees.get(set)
    }

    /// Held by whoever spreads that set in this process.
    fn spreading(&self, set: &LocalKey) -> Arc<tokio::sync::Mutex<()>> {
        self.inner.spreading.of(set.clone())
    }
}

fn check_name(name: &str) -> Result<()> {
    if name.is_empty() || name.len() > SET_NAME_LEN_MAX || name.contains(char::is_control) {
        return Err(Error::invalid(format!(
            "set name `{}`: 1 to {SET_NAME_LEN_MAX} bytes, no control characters",
            name.escape_default()
        )));
    }
    Ok(())
}
