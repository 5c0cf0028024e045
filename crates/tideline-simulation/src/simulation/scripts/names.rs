//! Logins: signing up, changing them, and what processes that sleep or die do to each other.

mod changes;
mod listed;

use futures::FutureExt as _;
use futures::future::{Either, LocalBoxFuture, select};
use tokio::task::JoinHandle;

use super::{close, lost_in_a_socket, pause};
use crate::NewAccount;
use crate::engine::Engine;
use crate::error::{ErrorKind, Result};
use crate::ids::{AccountId, Claim};
use crate::registration::{RegisteredAccount, Registration, SignUp};
use crate::simulation::ends;
use crate::simulation::gates::{At, Gate};
use crate::simulation::instances::ids_in;
use crate::simulation::lua;
use crate::simulation::names::{claim_of, end_well, look_up, registering};
use crate::simulation::world::world;
pub(in crate::simulation) use changes::{
    begins_with_old_names, changes_twice, ends_anothers_attempt, given_up_too_late, given_up_when_it_is_back,
    old_name_still_claimed, password_in_a_socket, settled_half_way, settles_anothers_attempt,
};
pub(in crate::simulation) use listed::*;

/// Longer than an attempt is left alone.
const LONG_MS: u64 = 100;

/// Three instances; accounts in buckets 0, 1 and 2, and more in 1, that nobody has yet; names whose claims lie in
/// bucket 3.
struct Town {
    engines: Vec<Engine>,
    sites: Vec<Registration>,
    ids: Vec<AccountId>,
    /// In the order in which they are taken.
    names: Vec<String>,
}

impl Town {
    async fn new() -> Self {
        let (mut engines, mut sites) = (Vec::new(), Vec::new());
        for _ in 0..3 {
            let (_, engine, site) = registering().await;
            engines.push(engine);
            sites.push(site);
        }
        let lies_there =
            |name: &String| world(|w| w.keys.bucket_of_claim(&claim_of(Claim::LOGIN, name)).index() == 3);
        let names = (0..).map(|n| format!("n{n}")).filter(lies_there).take(10).collect();
        let town = Self { engines, sites, ids: ids_in(&[0, 1, 2, 1, 1, 1, 1, 1]), names };
        town.sync();
        town
    }

    fn sync(&self) {
        world(|w| (0..w.nodes.len()).for_each(|number| w.sync(number)));
    }

    fn fail_over(&self, bucket: usize) {
        world(|w| w.fail_over(bucket, 0));
    }

    fn form(&self, id: usize, name: usize) -> SignUp {
        let account = NewAccount { id: Some(self.ids[id]), ..NewAccount::default() };
        world(|w| w.names.tried.insert(self.ids[id]));
        SignUp { account, ..SignUp::new(&self.names[name], format!("password {id}")) }
    }

    /// Signs up, with one of the ids; names are told.
    async fn sign_up(&self, at: usize, form: SignUp) -> Result<RegisteredAccount> {
        sign_up(self.sites[at].clone(), form).await
    }

    fn sign_up_beside(&self, at: usize, form: SignUp) -> JoinHandle<Result<RegisteredAccount>> {
        tokio::spawn(sign_up(self.sites[at].clone(), form))
    }

    async fn set_login(&self, at: usize, id: usize, name: usize) -> Result<()> {
        set_login(at, self.sites[at].clone(), self.ids[id], self.names[name].clone()).await
    }

    fn set_login_beside(&self, at: usize, id: usize, name: usize) -> JoinHandle<Result<()>> {
        tokio::spawn(set_login(at, self.sites[at].clone(), self.ids[id], self.names[name].clone()))
    }

    fn key(&self, name: usize) -> Vec<u8> {
        world(|w| w.keys.claim(&claim_of(Claim::LOGIN, &self.names[name])))
    }

    /// In the end all is as it must be.
    async fn ends_well(&self) {
        ends::run_dry().await;
        pause(LONG_MS).await;
        let names: Vec<(u8, &str)> = self.names.iter().map(|name| (Claim::LOGIN, name.as_str())).collect();
        end_well(&self.engines[2], &self.sites[2], &names).await;
    }
}

async fn sign_up(site: Registration, form: SignUp) -> Result<RegisteredAccount> {
    let done = site.sign_up(&form).await;
    if let Ok(registered) = &done {
        world(|w| w.names.registered(registered.id, &form));
    }
    done
}

async fn set_login(at: usize, site: Registration, id: AccountId, name: String) -> Result<()> {
    let change = world(|w| w.names.changes(at, id, Claim::LOGIN));
    let done = site.set_login(id, &name).await;
    world(|w| w.names.changed(&change, done.is_ok().then_some(Some(&name))));
    done.map(drop)
}

fn expect<T>(is_right: bool, what: &str, done: &Result<T>) {
    if !is_right {
        world(|w| w.violated(format!("{what}: {:?}", done.as_ref().err())));
    }
}

fn succeeds<T>(what: &str, done: &Result<T>) {
    expect(done.is_ok(), what, done);
}

fn is_refused<T>(what: &str, done: &Result<T>) {
    expect(done.as_ref().is_err_and(|e| e.kind() == ErrorKind::Conflict), what, done);
}

async fn end<T>(task: JoinHandle<Result<T>>) -> Result<T> {
    task.await.expect("no panic")
}

/// Two want a free name, and both have seen that it is free.
pub(in crate::simulation) fn both_want_it() -> LocalBoxFuture<'static, ()> {
    async {
        let town = Town::new().await;
        let taking = close(0, At::Before, "claim_take");
        let first = town.sign_up_beside(0, town.form(0, 0));
        taking.reached().await;
        succeeds("who takes it first", &town.sign_up(1, town.form(1, 0)).await);
        taking.open();
        is_refused("who comes second", &end(first).await);
        town.ends_well().await;
    }
    .boxed_local()
}

/// One has taken the name, and has not come to an end: another one comes at once. Who was first gets it.
pub(in crate::simulation) fn comes_at_once() -> LocalBoxFuture<'static, ()> {
    async {
        let town = Town::new().await;
        let settling = close(0, At::Before, "claims_settle");
        let first = town.sign_up_beside(0, town.form(0, 0));
        settling.reached().await;
        is_refused("who comes second", &town.sign_up(1, town.form(1, 0)).await);
        settling.open();
        succeeds("who was first", &end(first).await);
        town.ends_well().await;
    }
    .boxed_local()
}

/// The same, and the other one comes when it has lasted too long.
pub(in crate::simulation) fn comes_later() -> LocalBoxFuture<'static, ()> {
    async {
        let town = Town::new().await;
        let settling = close(0, At::Before, "claims_settle");
        let first = town.sign_up_beside(0, town.form(0, 0));
        settling.reached().await;
        pause(LONG_MS).await;
        succeeds("who comes later", &town.sign_up(1, town.form(1, 0)).await);
        settling.open();
        is_refused("who slept", &end(first).await);
        town.ends_well().await;
    }
    .boxed_local()
}

/// That the sleeper's attempt was ended is lost.
pub(in crate::simulation) fn end_of_an_attempt_is_lost() -> LocalBoxFuture<'static, ()> {
    async {
        let town = Town::new().await;
        let settling = close(0, At::Before, "claims_settle");
        let first = town.sign_up_beside(0, town.form(0, 0));
        settling.reached().await;
        pause(LONG_MS).await;
        succeeds("who comes later", &town.sign_up(1, town.form(1, 0)).await);
        town.fail_over(0);
        settling.open();
        is_refused("who slept", &end(first).await);
        town.ends_well().await;
    }
    .boxed_local()
}

/// That the name was taken is lost before it is the account's.
pub(in crate::simulation) fn claim_is_lost() -> LocalBoxFuture<'static, ()> {
    async {
        let town = Town::new().await;
        let settling = close(0, At::Before, "claims_settle");
        let first = town.sign_up_beside(0, town.form(0, 0));
        settling.reached().await;
        town.fail_over(3);
        drop(town.sign_up(1, town.form(1, 0)).await);
        settling.open();
        drop(end(first).await);
        town.ends_well().await;
    }
    .boxed_local()
}

/// An account is there, and its server fails over right after that was said.
pub(in crate::simulation) fn account_is_lost() -> LocalBoxFuture<'static, ()> {
    async {
        let town = Town::new().await;
        succeeds("a sign-up", &town.sign_up(0, town.form(0, 0)).await);
        town.fail_over(0);
        town.fail_over(3);
        town.ends_well().await;
    }
    .boxed_local()
}

/// A process has registered somebody, and dies before it looks again; another one, with the same token, says that the
/// account is there. Its server fails over right after that.
pub(in crate::simulation) fn account_is_lost_after_a_repeat() -> LocalBoxFuture<'static, ()> {
    async {
        let town = Town::new().await;
        let settled = close(0, At::After, "claims_settle");
        let form = town.form(0, 0).token("form");
        let first = town.sign_up_beside(0, form.clone());
        settled.reached().await;
        world(|w| w.kill(0));
        succeeds("the same form", &town.sign_up(1, form).await);
        town.fail_over(0);
        drop(first);
        town.ends_well().await;
    }
    .boxed_local()
}

/// The name's server fails over between settling and looking again: what was fenced is there.
pub(in crate::simulation) fn fails_over_before_it_is_read_again() -> LocalBoxFuture<'static, ()> {
    async {
        let town = Town::new().await;
        let settled = close(0, At::After, "claims_settle");
        let first = town.sign_up_beside(0, town.form(0, 0));
        settled.reached().await;
        town.fail_over(3);
        is_refused("who comes then", &town.sign_up(1, town.form(1, 0)).await);
        settled.open();
        // Nobody can vouch for the server any more that had the name.
        drop(end(first).await);
        town.ends_well().await;
    }
    .boxed_local()
}

/// The first and the last step of a sign-up lie in a frozen server's socket; both were sent again, and somebody has
/// ended the attempt since. Then the copies run.
pub(in crate::simulation) fn sign_up_in_a_socket() -> LocalBoxFuture<'static, ()> {
    async {
        let town = Town::new().await;
        let begins = Gate::close(0, At::Lost, "signup_begin", b"");
        let settles = Gate::close(0, At::Copied, "claims_settle", b"");
        let settling = close(0, At::Before, "claims_settle");
        let first = town.sign_up_beside(0, town.form(0, 0));
        settling.reached().await;
        pause(LONG_MS).await;
        succeeds("who comes later", &town.sign_up(1, town.form(1, 0)).await);
        settling.open();
        is_refused("who slept", &end(first).await);
        begins.deliver();
        settles.deliver();
        town.ends_well().await;
    }
    .boxed_local()
}

/// The last step arrives twice.
pub(in crate::simulation) fn settled_twice() -> LocalBoxFuture<'static, ()> {
    async {
        let town = Town::new().await;
        let settles = Gate::close(0, At::Copied, "claims_settle", b"");
        let settling = close(0, At::Before, "claims_settle");
        let first = town.sign_up_beside(0, town.form(0, 0));
        settling.reached().await;
        settles.deliver();
        settling.open();
        succeeds("a sign-up", &end(first).await);
        town.ends_well().await;
    }
    .boxed_local()
}

/// A process has registered somebody and falls asleep before it looks at the name again. Another one, with the same
/// token, says that the account is there; it takes another name, and a stranger gets the old one. The sleeper wakes up.
pub(in crate::simulation) fn wakes_up_when_the_name_is_a_strangers() -> LocalBoxFuture<'static, ()> {
    async {
        let town = Town::new().await;
        let settled = close(0, At::After, "claims_settle");
        let form = town.form(0, 0).token("form");
        let first = town.sign_up_beside(0, form.clone());
        settled.reached().await;
        succeeds("the same form", &town.sign_up(1, form).await);
        succeeds("another name", &town.set_login(1, 0, 1).await);
        succeeds("a stranger", &town.sign_up(1, town.form(1, 0)).await);
        settled.open();
        drop(end(first).await);
        town.ends_well().await;
    }
    .boxed_local()
}

/// A process has taken a name and falls asleep, as does another one with the same token that is about to take it. A
/// third one ends their attempt, and is about to take the name over. The account is registered anew, and has taken the
/// name, when the second one wakes up, and then the third.
pub(in crate::simulation) fn twin_of_an_ended_one_takes() -> LocalBoxFuture<'static, ()> {
    async {
        let town = Town::new().await;
        let settling = close(1, At::Before, "claims_settle");
        let form = town.form(0, 0).token("form");
        let first = town.sign_up_beside(1, form.clone());
        settling.reached().await;
        let taking = close(0, At::Before, "claim_take");
        let twin = town.sign_up_beside(0, form);
        taking.reached().await;
        pause(LONG_MS).await;
        let ending = close(2, At::Before, "claims_void");
        let stranger = town.sign_up_beside(2, town.form(1, 0));
        ending.reached().await;
        let taking_over = close(2, At::Before, "claim_take");
        ending.open();
        taking_over.reached().await;
        let anew = town.sign_up_beside(1, town.form(0, 0));
        pause(20).await;
        taking.open();
        is_refused("the twin", &end(twin).await);
        settling.open();
        is_refused("who fell asleep first", &end(first).await);
        succeeds("who registers the account anew", &end(anew).await);
        taking_over.open();
        is_refused("who found the name free", &end(stranger).await);
        town.ends_well().await;
    }
    .boxed_local()
}

/// One process finds the second name taken, and is about to end the attempt. That name becomes free; another process,
/// with the same token, brings the attempt to its end. The first one goes on.
pub(in crate::simulation) fn twin_settles() -> LocalBoxFuture<'static, ()> {
    async {
        let town = Town::new().await;
        let email = |form: SignUp| form.email("a@sea");
        // Claims are taken in their order: addresses before logins.
        succeeds("who has the name", &town.sign_up(2, town.form(1, 0)).await);
        let ending = close(0, At::Before, "claims_void");
        let taking = close(0, At::Before, "claim_take");
        let form = email(town.form(0, 1)).token("form");
        let first = town.sign_up_beside(0, form.clone());
        taking.reached().await;
        // It wants a name that was free when it looked first.
        succeeds("who takes it first", &town.set_login(2, 1, 1).await);
        taking.open();
        ending.reached().await;
        succeeds("who gives it up", &town.set_login(2, 1, 2).await);
        succeeds("the same form", &town.sign_up(1, form).await);
        ending.open();
        drop(end(first).await);
        town.ends_well().await;
    }
    .boxed_local()
}

/// All servers fail over when instance 0 has fenced so often and is about to do so once more. Also tells whether it
/// was.
async fn fails_over_at<T>(town: &Town, fence: usize, loses: bool, task: JoinHandle<T>) -> (bool, T) {
    let mut running = task;
    let mut gate = Gate::close(0, At::Fence, "", b"");
    for passed in 0..=fence {
        let done = match select(&mut running, Box::pin(gate.reached())).await {
            Either::Left((done, _)) => Some(done),
            Either::Right(_) => None,
        };
        if let Some(done) = done {
            gate.open();
            return (false, done.expect("no panic"));
        }
        if passed < fence {
            let next = Gate::close(0, At::Fence, "", b"");
            gate.open();
            gate = next;
        }
    }
    if !loses {
        town.sync();
    }
    (0..4).for_each(|bucket| town.fail_over(bucket));
    gate.open();
    (true, running.await.expect("no panic"))
}

/// Servers fail over between a step of a sign-up, or of a change, and its fence, for each of these fences, with what
/// they have not copied and without losing anything. Nobody is told of that.
pub(in crate::simulation) fn fails_over_before_a_fence() -> LocalBoxFuture<'static, ()> {
    async {
        let town = Town::new().await;
        succeeds("a sign-up", &town.sign_up(1, town.form(0, 0)).await);
        for (fence, loses) in (0..3).flat_map(|fence| [(fence, false), (fence, true)]) {
            let n = 2 * fence + usize::from(loses);
            let sign_up = town.sign_up_beside(0, town.form(1 + n, 3 + n));
            let (_, done) = fails_over_at(&town, fence, loses, sign_up).await;
            succeeds(&format!("a sign-up, fence {fence}, losses {loses}"), &done);
            let change = town.set_login_beside(0, 0, 1 + n % 2);
            let (_, done) = fails_over_at(&town, fence, loses, change).await;
            succeeds(&format!("another name, fence {fence}, losses {loses}"), &done);
        }
        town.ends_well().await;
    }
    .boxed_local()
}

/// A fence of a change fails, and the attempt is ended; its account's server fails over and has lost that. The change
/// goes on by itself.
pub(in crate::simulation) fn end_of_its_own_attempt_is_lost() -> LocalBoxFuture<'static, ()> {
    async {
        let town = Town::new().await;
        succeeds("a sign-up", &town.sign_up(1, town.form(0, 0)).await);
        let fencing = Gate::close(0, At::Fence, "", b"");
        let change = town.set_login_beside(0, 0, 1);
        fencing.reached().await;
        town.sync();
        // The name's server: whoever has taken it there can't be vouched for.
        town.fail_over(3);
        let ended = close(0, At::After, "claims_void");
        fencing.open();
        ended.reached().await;
        town.fail_over(0);
        ended.open();
        succeeds("another name", &end(change).await);
        town.ends_well().await;
    }
    .boxed_local()
}

/// A sign-up is sent again and finds the account unconfirmed; then it is confirmed, and about to take another login,
/// which somebody has.
pub(in crate::simulation) fn changes_while_it_is_signed_up_again() -> LocalBoxFuture<'static, ()> {
    async {
        let town = Town::new().await;
        succeeds("somebody else", &town.sign_up(2, town.form(1, 1)).await);
        let form = town.form(0, 0).token("form");
        let settling = close(0, At::Before, "claims_settle");
        let first = town.sign_up_beside(0, form.clone());
        settling.reached().await;
        let record = world(|w| w.keys.account(town.ids[0]));
        let looking = Gate::close(1, At::After, "HMGET", &record);
        let again = town.sign_up_beside(1, form);
        looking.reached().await;
        settling.open();
        succeeds("who signs up", &end(first).await);
        let taking = close(0, At::Before, "claim_take");
        let change = town.set_login_beside(0, 0, 1);
        taking.reached().await;
        looking.open();
        succeeds("who signs up again", &end(again).await);
        taking.open();
        is_refused("another one's login", &end(change).await);
        town.ends_well().await;
    }
    .boxed_local()
}

/// H130: the last step of a sign-up lies in a socket, and who sent it dies. It is sent again, a fence of it fails, so
/// its attempt is ended and the name given up; the account's server fails over and has lost the end. Somebody else
/// takes the name; the copy runs.
pub(in crate::simulation) fn end_of_an_attempt_is_lost_before_its_last_word() -> LocalBoxFuture<'static, ()> {
    async {
        let town = Town::new().await;
        let form = town.form(0, 0).token("form");
        let first = sign_up(town.sites[0].clone(), form.clone());
        let settles = lost_in_a_socket("claims_settle", first).await;
        let (fencing, given_up) = (close(1, At::Fence, ""), close(1, At::After, "guard_close"));
        drop(town.sign_up_beside(1, form));
        fencing.reached().await;
        town.sync();
        // The name's server: whoever has taken it there can't be vouched for.
        town.fail_over(3);
        fencing.open();
        given_up.reached().await;
        world(|w| w.kill(1));
        town.fail_over(0);
        succeeds("who comes later", &town.sign_up(2, town.form(1, 0)).await);
        settles.deliver();
        town.ends_well().await;
    }
    .boxed_local()
}
