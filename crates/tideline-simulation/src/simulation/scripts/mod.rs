//! Scripted histories: each builds just the situation that a rule is for. No delays, no faults but its own.

pub(super) mod archive;
pub(super) mod chats;
pub(super) mod feeds;
pub(super) mod follows;
pub(super) mod groups;
pub(super) mod homes;
pub(super) mod inboxes;
pub(super) mod judged;
pub(super) mod leases;
pub(super) mod lists;
pub(super) mod locks;
pub(super) mod modes;
pub(super) mod names;
pub(super) mod posts;
pub(super) mod public;
pub(super) mod rates;
pub(super) mod reading;
pub(super) mod remarks;
pub(super) mod social;
pub(super) mod spreading;
pub(super) mod stores;
pub(super) mod strays;
pub(super) mod taken_off;
pub(super) mod tenants;
pub(super) mod trips;
pub(super) mod unanswered;

use std::collections::BTreeMap;
use std::time::Duration;

use futures::future::LocalBoxFuture;
use tokio::task::{JoinHandle, yield_now};
use tokio::time::{sleep, timeout};

use super::checks::Before;
use super::ends;
use super::gates::{At, Gate};
use super::history::Outcome;
use super::instances::{ids_in, in_a_world, instance, watch};
use super::lists_of_posts::check_lists;
use super::lua;
use super::operations::toggle;
use super::shape::Shape;
use super::truth;
use super::world::{Toggle, world};
use crate::cluster::{Command, Request};
use crate::engine::Engine;
use crate::ids::{AccountId, PostId};
use crate::keys::{Place, set_of_account};
use crate::modes::DeliveryWay;
use crate::post::Draft;
use crate::timeline::Query;
use crate::{AccountUpdate, Mode, NewAccount, rules};

/// Time on the simulation's clock in which every script ends.
const SCRIPT_MAX: Duration = Duration::from_secs(60);

/// A scripted history.
pub(super) type Script = fn() -> LocalBoxFuture<'static, ()>;

/// Lives through a script, without these rules.
pub(super) fn play(script: Script, rules_out: &[&'static str], is_traced: bool) -> Outcome {
    in_a_world(1, rules_out, is_traced, || async move {
        // A script stops one step or another; short cuts are for those that say so.
        rules::short_cuts(false);
        if timeout(SCRIPT_MAX, script()).await.is_err() {
            world(|w| w.violated("the script comes to no end"));
        }
        BTreeMap::new()
    })
}

/// Three instances, numbers 0 to 2, and some accounts.
struct Stage {
    engines: Vec<Engine>,
    accounts: Vec<AccountId>,
}

impl Stage {
    /// Accounts in these buckets (two in one share a server), all of them pushed.
    async fn with<const N: usize>(buckets: [u16; N]) -> (Self, [AccountId; N]) {
        Self::of(buckets, Mode::Push).await
    }

    async fn of<const N: usize>(buckets: [u16; N], mode: Mode) -> (Self, [AccountId; N]) {
        let engines = vec![instance().await.1, instance().await.1, instance().await.1];
        let ids = ids_in(&buckets);
        for id in &ids {
            let new = NewAccount { id: Some(*id), mode, ..NewAccount::default() };
            engines[0].create_account(new).await.expect("a new account");
        }
        watch(&ids);
        let accounts = ids.clone().try_into().expect("as many");
        (Self { engines, accounts: ids }, accounts)
    }

    /// A reader, and an account that is locked.
    async fn locked() -> (Self, [AccountId; 2]) {
        let (stage, [reader, author]) = Self::with([1, 3]).await;
        let locked = AccountUpdate { is_locked: Some(true), ..AccountUpdate::default() };
        stage.engines[0].update_account(author, &locked).await.expect("locked");
        (stage, [reader, author])
    }

    /// The same as [`with`](Self::with), and instances have caches.
    async fn cached<const N: usize>(buckets: [u16; N]) -> (Self, [AccountId; N]) {
        world(|w| w.visible_within = Shape::CACHED.visible_within);
        Self::with(buckets).await
    }

    /// What others have done by now shows from now on.
    async fn caches_forget(&self) {
        drop(Before::now());
        sleep(world(|w| w.visible_within)).await;
    }

    /// From now on `of` loses what is not on replicas.
    fn fail_over(&self, of: AccountId) {
        world(|w| {
            let number = usize::from(w.keys.bucket_of(of).index());
            w.fail_over(number, 0);
        });
    }

    /// Whether an account's server answers nobody from now on.
    fn silence(&self, of: AccountId, is_silent: bool) {
        world(|w| {
            let number = usize::from(w.keys.bucket_of(of).index());
            w.nodes[number].is_silent = is_silent;
            w.note(|| format!("{number} is {}", if is_silent { "SILENT" } else { "back" }));
        });
    }

    /// Whether the replica of an account's server answers nobody from now on, so that fences fail.
    fn vouches(&self, of: AccountId, vouches: bool) {
        world(|w| {
            let number = usize::from(w.keys.bucket_of(of).index());
            w.nodes[number].cannot_vouch = !vouches;
            w.note(|| format!("{number} can{} be fenced", if vouches { "" } else { "not" }));
        });
    }

    fn sync(&self, of: AccountId) {
        world(|w| w.sync(usize::from(w.keys.bucket_of(of).index())));
    }

    fn drop_home(&self, of: AccountId) {
        world(|w| {
            let command = Command::new("DEL").arg(&w.keys.home(of));
            drop(w.execute(9, &Request::write(w.keys.slot_of(of), command)));
        });
    }

    /// All journals run empty, and everything is on replicas.
    async fn settled(&self) {
        ends::run_dry().await;
        world(|w| (0..w.nodes.len()).for_each(|number| w.sync(number)));
    }

    /// All journals run empty within the same millisecond.
    async fn settled_at_once(&self) {
        for _ in 0..10_000 {
            if world(|w| truth::journal_entries(w)) == 0 {
                return;
            }
            yield_now().await;
        }
        world(|w| w.violated("a journal doesn't run empty"));
    }

    /// Everybody goes on for a while, and no time passes.
    async fn turns(&self) {
        for _ in 0..200 {
            yield_now().await;
        }
    }

    async fn publish(&self, at: usize, author: AccountId) -> PostId {
        self.engines[at].publish(author, &Draft::text("x")).await.expect("a post").id
    }

    async fn follow(&self, at: usize, reader: AccountId, author: AccountId) {
        toggle(Toggle::Follow, self.engines[at].clone(), reader, author).await.expect("a follow");
    }

    async fn unfollow(&self, at: usize, reader: AccountId, author: AccountId) {
        toggle(Toggle::Unfollow, self.engines[at].clone(), reader, author).await.expect("an unfollow");
    }

    /// Has an account pushed, or pulled; what follows from that goes on beside.
    async fn set_way(&self, at: usize, author: AccountId, way: DeliveryWay) {
        drop(self.engines[at].set_way(author, Some(way)).await.expect("a way"));
    }

    async fn warm(&self, at: usize, reader: AccountId) {
        self.engines[at].warm(reader).await.expect("a home");
    }

    /// Does something that a gate is going to stop.
    fn warm_beside(&self, at: usize, reader: AccountId) -> JoinHandle<()> {
        let engine = self.engines[at].clone();
        tokio::spawn(async move { drop(engine.warm(reader).await) })
    }

    fn spread_beside(&self, at: usize, author: AccountId) -> JoinHandle<()> {
        let engine = self.engines[at].clone();
        tokio::spawn(async move {
            let followers = engine.store().sets().of_account::<AccountId>(author, "followers");
            drop(followers.expect("a set").spread().await);
        })
    }

    fn read_beside(&self, at: usize, reader: AccountId, limit: usize) -> JoinHandle<()> {
        let engine = self.engines[at].clone();
        tokio::spawn(async move { read(&engine, reader, limit).await })
    }

    /// Reads the newest page, and checks it.
    async fn read(&self, at: usize, reader: AccountId, limit: usize) {
        read(&self.engines[at], reader, limit).await;
    }

    /// A home that is whole and on replicas.
    async fn home_of(&self, reader: AccountId) {
        self.warm(0, reader).await;
        self.settled().await;
    }

    /// In the end all is as it must be, also after one more post of everybody.
    async fn ends_well(&self) {
        for when in ["in the end", "with one more post"] {
            ends::run_dry().await;
            self.caches_forget().await;
            for account in &self.accounts {
                ends::compare(&self.engines[1], *account, 3, when).await;
            }
            ends::check_follows(&self.accounts, &self.accounts, when);
            ends::check_locks(when);
            for account in &self.accounts {
                ends::check_strays(&self.engines[1], *account, when).await;
            }
            ends::check_slots();
            ends::check_modes(when);
            ends::check_tokens();
            check_lists(when);
            for account in &self.accounts {
                self.publish(2, *account).await;
            }
        }
    }

    /// Whether that one is among the followers of `author`.
    async fn is_told_to_follow(&self, reader: AccountId, author: AccountId) -> bool {
        let followers = self.engines[2].store().sets().of_account::<AccountId>(author, "followers");
        followers.expect("a set").score(&reader).await.expect("a score").is_some()
    }

    /// Nobody is among the followers of `author` who doesn't follow it.
    async fn has_no_strays(&self, author: AccountId) {
        ends::check_strays(&self.engines[2], author, "in the end").await;
    }
}

/// Where the edge is of whom `reader` follows, once it is spread.
fn part_key(reader: AccountId, author: AccountId) -> Vec<u8> {
    world(|w| {
        let name = set_of_account("followers", author);
        w.keys.set(Place::Part, w.keys.bucket_of(reader), &name)
    })
}

async fn read(engine: &Engine, reader: AccountId, limit: usize) {
    let (before, query) = (Before::now(), Query::home().limit(limit));
    match engine.as_reader(reader).read(&query).await {
        Ok(page) => before.check(reader, &query, &page),
        Err(e) => world(|w| w.violated(format!("a read fails: {e:?}"))),
    }
}

fn close(by: usize, at: At, what: &'static str) -> Gate {
    Gate::close(by, at, what, b"")
}

/// Instance 0 does something, and dies: the first of what it sends for that, `what`, stays in a frozen server's socket.
async fn lost_in_a_socket<T: Send + 'static>(
    what: &'static str,
    doing: impl Future<Output = T> + Send + 'static,
) -> Gate {
    let lost = close(0, At::Lost, what);
    drop(tokio::spawn(doing));
    pause(5).await;
    world(|w| w.kill(0));
    lost
}

/// Instance 0 does something; a function of it fails there, and before it is sent again the instance dies.
async fn given_up_half_way<T: Send + 'static>(
    function: &'static str,
    line: &str,
    doing: impl Future<Output = T> + Send + 'static,
) {
    let first = close(0, At::Before, function);
    drop(tokio::spawn(doing));
    first.reached().await;
    lua::fail_once(function, line);
    let again = close(0, At::Before, function);
    first.open();
    again.reached().await;
    world(|w| w.kill(0));
}

async fn pause(ms: u64) {
    sleep(Duration::from_millis(ms)).await;
}
