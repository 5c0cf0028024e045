//! Whose a name is: what people were told, and what accounts and claims say of it.

use std::collections::{BTreeMap, BTreeSet};

use super::instances::instance;
use super::world::{World, world};
use crate::engine::Engine;
use crate::error::{ErrorKind, Result};
use crate::fsck::{self, FindingKind};
use crate::ids::{AccountId, Claim};
use crate::registration::{Name, Registration, RegistrationSettings, SignUp, names};

/// What is true of names.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// Every account that somebody has tried to register.
    pub(super) tried: BTreeSet<AccountId>,
    /// What was acknowledged, and nobody has tried to change since: an account's login (or address), or that it has
    /// none.
    pub(super) told: BTreeMap<(AccountId, u8), Option<String>>,
    pub(super) passwords: BTreeMap<AccountId, String>,
    /// Changes that have begun, of each account and kind.
    begun: BTreeMap<(AccountId, u8), u64>,
    /// Those that may still write something: by which instance, of what, which one.
    open: Vec<(usize, (AccountId, u8), u64)>,
}

/// A change of an account's name under way.
#[derive(Debug)]
pub(super) struct Change {
    of: (AccountId, u8),
    number: u64,
    is_alone: bool,
}

impl Names {
    /// Somebody was told that this account is his: with these names, unless one was changed since it began.
    pub(super) fn registered(&mut self, account: AccountId, sign_up: &SignUp) {
        self.passwords.insert(account, sign_up.password.clone());
        for (kind, name) in [(Claim::LOGIN, Some(&sign_up.login)), (Claim::EMAIL, sign_up.email.as_ref())] {
            if !self.begun.contains_key(&(account, kind)) {
                self.told.insert((account, kind), name.cloned());
            }
        }
    }

    /// From now on nobody knows what this account's name is.
    pub(super) fn changes(&mut self, by: usize, account: AccountId, kind: u8) -> Change {
        let of = (account, kind);
        let number = self.begun.entry(of).or_default();
        *number += 1;
        let change = Change { of, number: *number, is_alone: self.open.iter().all(|open| open.1 != of) };
        self.open.push((by, of, change.number));
        self.told.remove(&of);
        change
    }

    /// It was acknowledged, or not. Of what is given up a copy may come late: it must do nothing any more once another
    /// change was acknowledged.
    pub(super) fn changed(&mut self, change: &Change, to: Option<Option<&str>>) {
        self.open.retain(|open| (open.1, open.2) != (change.of, change.number));
        let is_last = self.begun.get(&change.of) == Some(&change.number);
        if let Some(name) = to
            && change.is_alone
            && is_last
        {
            self.told.insert(change.of, name.map(str::to_owned));
        }
    }

    /// What an instance has under way it doesn't go on with.
    pub(super) fn died(&mut self, instance: usize) {
        self.open.retain(|open| open.0 != instance);
    }
}

/// An account's claims as it says them itself, if it is there.
fn held(world: &World, account: AccountId) -> Vec<Claim> {
    let data = world.data_of(account);
    let field = |key: Vec<u8>, field: &[u8]| data.hash(&key).ok()??.get(field).cloned();
    match field(world.keys.account(account), b"s").as_deref() {
        None | Some(b"u" | b"d") => Vec::new(),
        _ => {
            let stored = field(world.keys.credentials(account), b"c").unwrap_or_default();
            Claim::parse_all(&stored).expect("claims")
        }
    }
}

impl World {
    /// No name is ever said to be their own by two accounts that are there.
    pub(super) fn check_owners(&mut self) {
        let mut owners = BTreeMap::new();
        for account in self.names.tried.clone() {
            for claim in held(self, account) {
                if let Some(other) = owners.insert(claim.as_bytes().to_vec(), account) {
                    self.violated(format!("TWO OWNERS: {other} and {account} have the same name"));
                }
            }
        }
    }
}

/// What an account is looked up by.
fn lookup(kind: u8, name: &str) -> Name {
    if kind == Claim::LOGIN { Name::Login(name.to_owned()) } else { Name::Email(name.to_owned()) }
}

pub(super) fn claim_of(kind: u8, name: &str) -> Claim {
    let claim = if kind == Claim::LOGIN { names::login(name) } else { names::email(name) };
    claim.expect("a name").1
}

/// One more instance that registers people: its number and its handle.
pub(super) async fn registering() -> (usize, Engine, Registration) {
    let (number, engine) = instance().await;
    let cheap = RegistrationSettings { memory_kib: 8, passes: 1, ..RegistrationSettings::default() };
    let registration = Registration::new(&engine, cheap).await.expect("registration");
    (number, engine, registration)
}

/// Looks somebody up, and holds it against what was told all the time.
pub(super) async fn look_up(registration: &Registration, kind: u8, name: &str) -> Result<()> {
    let told = || {
        let told = world(|w| (w.names.told.clone(), w.names.begun.clone()));
        let of = |(account, number): (&AccountId, u64)| {
            let says = told.0.get(&(*account, kind)).cloned();
            ((*account, number), says)
        };
        let number = |account: &AccountId| told.1.get(&(*account, kind)).copied().unwrap_or_default();
        world(|w| w.names.tried.clone()).iter().map(|a| of((a, number(a)))).collect::<BTreeMap<_, _>>()
    };
    let before = told();
    let found = registration.find(&[lookup(kind, name)]).await?.pop().flatten();
    let found = found.map(|account| account.id);
    let known = world(|w| w.names.passwords.clone());
    let mut let_in = Vec::new();
    for (account, password) in &known {
        if let Some(who) = registration.check(name, password).await? {
            let_in.push((*account, who.id));
        }
    }
    // What was told before, and still is: it was told all the time.
    let after = told();
    let all_the_time = before.iter().filter(|(of, says)| after.get(of) == Some(says));
    for ((account, _), says) in all_the_time {
        let Some(says) = says else { continue };
        let is_its_own = says.as_deref() == Some(name);
        let is_let_in = let_in.contains(&(*account, *account));
        if is_its_own != (found == Some(*account)) || is_its_own != is_let_in {
            world(|w| {
                w.violated(format!(
                    "{account} is told to have {says:?}: {name} is {found:?}, and {let_in:?} are let in by it"
                ));
            });
        }
    }
    Ok(())
}

/// Nothing is under way any more, and nothing goes wrong: names are told rightly, what is left behind is what fsck
/// knows and takes away, and whatever nobody has anybody may get.
pub(super) async fn end_well(engine: &Engine, registration: &Registration, all: &[(u8, &str)]) {
    let graph = engine.graph();
    let accounts: Vec<AccountId> = world(|w| w.names.tried.iter().copied().collect());
    let claims: Vec<Claim> = all.iter().map(|(kind, name)| claim_of(*kind, name)).collect();
    for (kind, name) in all {
        if let Err(e) = look_up(registration, *kind, name).await {
            world(|w| w.violated(format!("in the end {name} can't be looked up: {e:?}")));
        }
    }
    for round in 0..4 {
        let found = fsck::look_through(graph, &accounts, &claims, true).await.expect("no faults");
        for (kind, what) in &found {
            let is_left = matches!(kind, FindingKind::AttemptLeft | FindingKind::ClaimNeedless);
            if !is_left || round == 3 {
                world(|w| w.violated(format!("in the end, round {round}: {what}")));
            }
        }
    }
    check_keys(&claims);
    for (kind, name) in all {
        let found = registration.find(&[lookup(*kind, name)]).await.expect("no faults");
        let login = if *kind == Claim::LOGIN { *name } else { "newcomer" };
        let sign_up = SignUp::new(login, "password");
        let sign_up = if *kind == Claim::EMAIL { sign_up.email(*name) } else { sign_up };
        let signed_up = registration.sign_up(&sign_up).await;
        let is_refused = signed_up.as_ref().is_err_and(|e| e.kind() == ErrorKind::Conflict);
        if found[0].is_some() != is_refused {
            world(|w| w.violated(format!("in the end {name} is {found:?}, and signing up {signed_up:?}")));
        }
        if let Ok(new) = signed_up {
            engine.delete_account(new.id).await.expect("no faults");
            super::ends::run_dry().await;
        }
    }
}

/// Every key is of an account that is there, or names one that says so too; and shows the login that it has.
fn check_keys(claims: &[Claim]) {
    world(|w| {
        let mut wrong = Vec::new();
        for account in w.names.tried.clone() {
            let (data, keys) = (w.data_of(account), &w.keys);
            let state =
                data.hash(&keys.account(account)).ok().flatten().and_then(|record| record.get(&b"s"[..]));
            let is_there = state.is_some_and(|state| *state != b"d" && *state != b"u");
            for key in [keys.credentials(account), keys.profile(account)] {
                if data.has(&key) != is_there {
                    wrong.push(format!("{account} is in state {state:?}: {}", key.escape_ascii()));
                }
            }
            let login =
                data.hash(&keys.account(account)).ok().flatten().and_then(|record| record.get(&b"un"[..]));
            if let Some(login) = login.filter(|_| is_there)
                && !held(w, account).contains(&claim_of(Claim::LOGIN, &String::from_utf8_lossy(login)))
            {
                wrong.push(format!("{account} shows the login {}, which it hasn't", login.escape_ascii()));
            }
        }
        for claim in claims {
            let owners = w.names.tried.iter().filter(|account| held(w, **account).contains(claim)).count();
            let number = usize::from(w.keys.bucket_of_claim(claim).index());
            let is_taken = w.nodes[number].data.has(&w.keys.claim(claim));
            if usize::from(is_taken) != owners {
                wrong.push(format!("a claim: {is_taken}, for {owners}"));
            }
        }
        wrong.into_iter().for_each(|what| w.violated(format!("in the end {what}")));
    });
}
