//! Names: who signs up, takes another name, leaves, looks somebody up, logs in.

use std::time::Duration;

use futures::future::join_all;

use super::Client;
use crate::verify::call::{Call, SignUpSpec};
use crate::verify::check::Wrong;
use crate::verify::facts::{Time, Window};
use crate::verify::lookups::cards;
use crate::verify::names::{Attempt, LEFT_FOR, Name, NewcomerNo, Question, Told, password_of};
use crate::verify::run::Ended;
use crate::verify::steps::Naming;
use crate::verify::told::{Card, Reply};

/// One newcomer in so many signs up again, with the same token.
const AGAIN: usize = 3;
/// Between two tries of somebody who waits until an attempt of its own is over.
const PAUSE: Duration = Duration::from_secs(1);

impl Client<'_> {
    pub(super) async fn name(&self, naming: Naming) {
        match naming {
            Naming::Race(newcomers) => {
                let racers = newcomers.into_iter().enumerate();
                let racers =
                    racers.map(|(place, (no, names))| self.newcomer(self.instance + place, no, names));
                join_all(racers).await;
            }
            Naming::Take(whose, name) => self.take(whose, name).await,
            Naming::Password(whose) => self.set_password(whose).await,
            Naming::Leave(newcomers) => {
                for no in newcomers {
                    let Some(account) = self.account(Some(no)) else { continue };
                    if let Some((start, end)) = self.write(Call::DeleteAccount { account }).await {
                        self.run.world().names.gone(account, start, end);
                    }
                }
            }
            Naming::Find(names) => self.find(&names).await,
            Naming::LogIn(name, is_old) => self.log_in(name, is_old).await,
        }
    }

    /// The actor, or somebody who has signed up, unless that one was refused.
    fn account(&self, whose: Option<NewcomerNo>) -> Option<u64> {
        match whose {
            None => Some(self.actor),
            Some(no) => self.run.world().names.newcomers.get(&no).copied(),
        }
    }

    /// Signs somebody up. `Err`: refused, because a name is taken or about to be.
    async fn sign_up(
        &self,
        instance: usize,
        spec: SignUpSpec,
        wanted: &[Name],
    ) -> Option<Result<(u64, Attempt), Attempt>> {
        let (run, from) = (self.run, self.run.now());
        let (ended, sent) = run.repeat(instance, Call::SignUp(spec.clone())).await;
        let window = Window { from, to: run.now() };
        let attempt = Attempt { by: None, wanted: wanted.to_vec(), window, sent, refused: None };
        match ended {
            Ended::Done(Reply::Registered { id, is_repeat }) => {
                if is_repeat && sent == 1 {
                    let text = format!("{spec:?} is {id}, who is said to have signed up before");
                    run.wrong(Wrong::Doubled, id, None, text);
                }
                Some(Ok((id, attempt)))
            }
            Ended::Refused { kind, message, .. } if kind == "Conflict" => {
                Some(Err(Attempt { refused: Some(message), ..attempt }))
            }
            Ended::Refused { kind, message, .. } => {
                let text = format!("{spec:?} was refused: {kind}: {message}");
                run.wrong(Wrong::Stuck, self.actor, None, text);
                None
            }
            _ => None,
        }
    }

    async fn newcomer(&self, instance: usize, no: NewcomerNo, wanted: Vec<Name>) {
        let secret = format!("newcomer {no}");
        let spec = spec_of(&secret, &wanted);
        match self.sign_up(instance, spec.clone(), &wanted).await {
            Some(Ok((id, attempt))) => {
                self.run.world().names.signed_up(id, secret, attempt);
                self.run.world().names.newcomers.insert(no, id);
                if no.is_multiple_of(AGAIN) {
                    self.sign_up_again(instance + 1, spec, id).await;
                }
            }
            Some(Err(attempt)) => self.run.world().names.refused(attempt),
            None => {}
        }
    }

    /// With the same token, names and password it is the same account.
    async fn sign_up_again(&self, instance: usize, spec: SignUpSpec, id: u64) {
        match self.run.call(instance, Call::SignUp(spec)).await {
            Ended::Done(Reply::Registered { id: again, is_repeat: true }) if again == id => {}
            Ended::Stuck => {}
            other => {
                let text = format!("{id} has signed up again with the same token: {other:?}");
                self.run.wrong(Wrong::Doubled, id, None, text);
            }
        }
    }

    /// The actor itself signs up. Its names are nobody else's; but what an instance that was killed has begun under its
    /// id is left for a minute.
    pub(super) async fn sign_up_actor(
        &self,
        (is_locked, is_pulled): (bool, bool),
        wanted: Vec<Name>,
    ) -> bool {
        let (run, account, since) = (self.run, self.actor, self.run.now());
        let secret = format!("account {account}");
        let spec = SignUpSpec { account: Some(account), is_locked, is_pulled, ..spec_of(&secret, &wanted) };
        let mut instance = self.instance;
        loop {
            match self.sign_up(instance, spec.clone(), &wanted).await {
                Some(Ok((_, attempt))) => {
                    run.world().names.signed_up(account, secret, attempt);
                    return true;
                }
                Some(Err(attempt)) => {
                    let is_left = attempt.window.from < since.saturating_add(LEFT_FOR);
                    run.world().names.refused(attempt);
                    if !is_left {
                        let text = format!("{spec:?}: its names are not to be had again");
                        run.wrong(Wrong::Stuck, account, None, text);
                        return false;
                    }
                }
                None => return false,
            }
            instance += 1;
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Another login or e-mail address; without a name, no address any more.
    async fn take(&self, whose: Option<NewcomerNo>, name: Option<Name>) {
        let Some(account) = self.account(whose) else { return };
        let (run, from) = (self.run, self.run.now());
        let call = match name {
            Some(login @ Name::Login(_)) => Call::SetLogin { account, login: login.text() },
            email => Call::SetEmail { account, email: email.map(Name::text) },
        };
        let (ended, sent) = run.repeat(self.instance, call.clone()).await;
        let window = Window { from, to: run.now() };
        let attempt =
            Attempt { by: Some(account), wanted: name.into_iter().collect(), window, sent, refused: None };
        match ended {
            Ended::Done(_) => run.world().names.given(account, attempt),
            Ended::Refused { kind, message, .. } if kind == "Conflict" => {
                run.world().names.refused(Attempt { refused: Some(message), ..attempt });
            }
            Ended::Refused { kind, message, .. } => {
                run.wrong(Wrong::Stuck, account, None, format!("{call:?} was refused: {kind}: {message}"));
            }
            Ended::Stuck => {}
        }
    }

    async fn set_password(&self, whose: Option<NewcomerNo>) {
        let Some(account) = self.account(whose) else { return };
        let (no, password) = {
            let mut world = self.run.world();
            let person = world.names.person(account);
            let last = person.password.changes.last().and_then(|change| change.value);
            let no = last.map_or(0, |last| last + 1);
            (no, password_of(&person.secret, no))
        };
        if let Some((start, end)) = self.write(Call::SetPassword { account, password }).await {
            self.run.world().names.person(account).password.change(start, end, Some(no));
        }
    }

    async fn find(&self, names: &[(Name, bool)]) {
        let text = |(name, is_shouted): &(Name, bool)| if *is_shouted { name.shouted() } else { name.text() };
        let from = self.run.now();
        let call = Call::Find { names: names.iter().map(text).collect() };
        let told = cards(self.run, self.instance, call).await.unwrap_or_default();
        for ((name, _), card) in names.iter().zip(told) {
            self.tell(Question::Named(*name), card, from);
        }
    }

    async fn log_in(&self, name: Name, is_old: bool) {
        let from = self.run.now();
        let password = {
            let world = self.run.world();
            let holder = world.names.holder(name, Window { from, to: from });
            holder.map_or_else(|| "nobody's password".to_owned(), |holder| holder.last_password(is_old))
        };
        let call = Call::LogIn { name: name.shouted(), password: password.clone() };
        let Some(mut told) = cards(self.run, self.instance, call).await else { return };
        self.tell(Question::Password(name, password), told.pop().flatten(), from);
    }

    fn tell(&self, question: Question, answer: Option<Card>, from: Time) {
        let window = Window { from, to: self.run.now() };
        self.run.world().names.tell(Told { question, answer, window });
    }
}

/// Somebody with these names, and the first of its passwords.
fn spec_of(secret: &str, names: &[Name]) -> SignUpSpec {
    let text = |is_it: fn(&Name) -> bool| names.iter().copied().find(is_it).map(Name::text);
    SignUpSpec {
        account: None,
        is_locked: false,
        is_pulled: false,
        login: text(|name| matches!(name, Name::Login(_))).unwrap_or_default(),
        email: text(|name| matches!(name, Name::Email(_))),
        password: password_of(secret, 0),
        token: secret.to_owned(),
    }
}
