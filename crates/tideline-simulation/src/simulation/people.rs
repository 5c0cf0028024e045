//! Random histories of people who sign up, change their names and leave, all after the same few names.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use super::disturbances::{Disturbance, disturb};
use super::ends;
use super::history::{Outcome, note_end};
use super::instances::in_a_world;
use super::link;
use super::names::{end_well, look_up, registering};
use super::shape::Shape;
use super::world::world;
use crate::NewAccount;
use crate::engine::Engine;
use crate::error::{ErrorKind, Result};
use crate::ids::{AccountId, Claim};
use crate::registration::{AttemptStep, Registration, SignUp};

/// What everybody wants.
const WANTED: [(u8, &str); 4] =
    [(Claim::LOGIN, "ada"), (Claim::LOGIN, "bea"), (Claim::EMAIL, "a@sea"), (Claim::EMAIL, "b@sea")];

/// After which a process may be killed.
const STEPS: [AttemptStep; 6] = [
    AttemptStep::Begun,
    AttemptStep::Claimed(1),
    AttemptStep::Claimed(2),
    AttemptStep::Fenced,
    AttemptStep::Settled,
    AttemptStep::Reread,
];

type Site = (usize, Engine, Registration);

/// Lives through the history of a seed.
pub(super) fn live(seed: u64, shape: Shape, rules_out: &[&'static str], is_traced: bool) -> Outcome {
    in_a_world(seed, rules_out, is_traced, || async move { People::new(shape).await.live().await })
}

struct People {
    shape: Shape,
    sites: Vec<Site>,
    under_way: Vec<JoinHandle<()>>,
    counts: BTreeMap<&'static str, u64>,
}

impl People {
    async fn new(shape: Shape) -> Self {
        let sites = vec![registering().await, registering().await];
        world(|w| {
            (0..w.nodes.len()).for_each(|number| w.sync(number));
            w.faults = shape.faults;
        });
        Self { shape, sites, under_way: Vec::new(), counts: BTreeMap::new() }
    }

    async fn live(mut self) -> BTreeMap<&'static str, u64> {
        for _ in 0..self.shape.steps {
            let pause = world(|w| Duration::from_millis(w.below(16)));
            sleep(pause).await;
            if !self.disturb().await {
                self.act();
            }
            if !world(|w| w.violations.is_empty()) {
                return self.counts;
            }
        }
        ends::run_dry().await;
        // Whoever is asleep wakes up; those of instances that died never end.
        sleep(Duration::from_secs(5)).await;
        ends::run_dry().await;
        let (_, engine, registration) = &self.sites[0];
        end_well(engine, registration, &WANTED).await;
        self.under_way.into_iter().for_each(|task| task.abort());
        self.counts
    }

    fn count(&mut self, what: &'static str) {
        *self.counts.entry(what).or_default() += 1;
    }

    /// Something goes wrong, perhaps; no server is silent.
    async fn disturb(&mut self) -> bool {
        let shape = Shape { silences: 0, ..self.shape };
        match disturb(shape, 0, [self.sites[0].0, self.sites[1].0]) {
            None | Some(Disturbance::Sync) => return false,
            Some(Disturbance::Death(at)) => {
                let (number, ..) = self.sites.remove(at);
                world(|w| w.kill(number));
                self.sites.push(registering().await);
                self.count("death");
            }
            Some(Disturbance::Other(what)) => self.count(what),
        }
        true
    }

    /// Somebody does something.
    fn act(&mut self) {
        let (dice, name) = world(|w| (w.below(100), w.pick(&WANTED)));
        let sites = self.sites.clone();
        let whom = world(|w| {
            let registered: Vec<AccountId> = w.names.passwords.keys().copied().collect();
            let last = &registered[registered.len().saturating_sub(4)..];
            if last.is_empty() { None } else { Some(w.pick(last)) }
        });
        let site = world(|w| w.pick(&[0, 1]));
        match (dice, whom) {
            (0..45, _) | (45..70, None) => self.spawn("sign up", sign_up(sites)),
            (45..65, Some(whom)) => self.spawn("set name", set_name(sites[site].clone(), whom)),
            (65..70, Some(whom)) => self.spawn("set password", set_password(sites[site].clone(), whom)),
            (70..80, Some(whom)) => self.spawn("leave", leave(sites[site].clone(), whom)),
            _ => {
                let registration = sites[site].2.clone();
                self.spawn("look up", async move { look_up(&registration, name.0, name.1).await });
            }
        }
    }

    fn spawn(&mut self, what: &'static str, operation: impl Future<Output = Result<()>> + Send + 'static) {
        self.count(what);
        self.under_way.push(tokio::spawn(async move {
            note_end(what, link::called(operation).await);
        }));
    }
}

/// After which step a process dies, if it does.
fn death() -> Option<AttemptStep> {
    world(|w| w.chance(120).then(|| w.pick(&STEPS)))
}

/// Signs up, here and there, until somebody says yes or no; who doesn't answer in time is given up, and goes on.
async fn sign_up(sites: Vec<Site>) -> Result<()> {
    let (login, email, token) = world(|w| (w.below(2), w.below(4), w.below(u64::MAX)));
    let login = WANTED[usize::try_from(login).unwrap_or(0)].1;
    let sign_up = SignUp::new(login, format!("password {token}"));
    let email =
        WANTED.iter().filter(|(kind, _)| *kind == Claim::EMAIL).nth(usize::try_from(email).unwrap_or(0));
    let sign_up = if let Some((_, email)) = email { sign_up.email(*email) } else { sign_up };
    let sign_up = if token % 3 > 0 { sign_up.token(token.to_string()) } else { sign_up };
    for _ in 0..3 {
        let (at, id, patience) = world(|w| {
            let id = 1_000 + w.below(if w.names.tried.len() % 3 == 0 { 6 } else { 1 << 40 });
            (w.pick(&[0, 1]), id, Duration::from_millis(w.pick(&[60, 200, 800])))
        });
        let id = AccountId::new(id)?;
        world(|w| w.names.tried.insert(id));
        let sign_up =
            SignUp { account: NewAccount { id: Some(id), ..NewAccount::default() }, ..sign_up.clone() };
        let (registration, dies, given) = (sites[at].2.clone(), death(), sign_up.clone());
        let trying =
            tokio::spawn(async move { registration.sign_up_until(&given, &|step| Some(step) == dies).await });
        match timeout(patience, trying).await {
            Ok(Ok(Ok(registered))) => {
                world(|w| w.names.registered(registered.id, &sign_up));
                return Ok(());
            }
            Ok(Ok(Err(e))) if matches!(e.kind(), ErrorKind::Conflict | ErrorKind::Internal) => return Err(e),
            Ok(Ok(Err(e))) => world(|w| w.note(|| format!("signing up failed: {e:?}"))),
            Ok(Err(e)) => world(|w| w.violated(format!("a sign-up panicked: {e}"))),
            Err(_) => world(|w| w.note(|| "nobody waits for a sign-up any more".into())),
        }
    }
    Ok(())
}

async fn set_name((number, _, registration): Site, whom: AccountId) -> Result<()> {
    let (kind, name) = world(|w| w.pick(&WANTED));
    let is_none = kind == Claim::EMAIL && world(|w| w.chance(300));
    let change = world(|w| w.names.changes(number, whom, kind));
    let (name, dies) = ((!is_none).then_some(name), death());
    let done = match kind {
        Claim::LOGIN => {
            registration.set_login_until(whom, name.unwrap_or_default(), &|step| Some(step) == dies).await
        }
        _ => registration.set_email(whom, name).await,
    };
    world(|w| w.names.changed(&change, done.is_ok().then_some(name)));
    done.map(drop)
}

/// The same one again: its hash is another one.
async fn set_password((_, _, registration): Site, whom: AccountId) -> Result<()> {
    let Some(password) = world(|w| w.names.passwords.get(&whom).cloned()) else { return Ok(()) };
    registration.set_password(whom, &password).await.map(drop)
}

async fn leave((number, engine, _): Site, whom: AccountId) -> Result<()> {
    let changes = world(|w| [Claim::LOGIN, Claim::EMAIL].map(|kind| w.names.changes(number, whom, kind)));
    let done = engine.delete_account(whom).await;
    world(|w| changes.iter().for_each(|change| w.names.changed(change, None)));
    done.map(drop)
}
