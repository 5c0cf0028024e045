//! Who has which name, as far as the acknowledgements tell: logins and e-mail addresses that one account only has, and
//! passwords. Pure: what was done and what was told in, violations out.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::check::Wrong;
use super::facts::{Fact, OPEN, Time, Tri, Window};
use super::told::Card;

/// A name by its number.
pub(crate) type NameNo = u32;
/// Somebody who signs up, by its place in the plan.
pub(crate) type NewcomerNo = usize;

/// For so long a name may be kept by an attempt that was killed: a minute, and what clocks and calls take besides.
pub(crate) const LEFT_FOR: Time = 65_000_000;

/// Names that one attempt is about.
const NAMES_MAX: usize = 2;

/// A name that one account only has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Name {
    Login(NameNo),
    Email(NameNo),
}

impl Name {
    /// As it is stored.
    pub(crate) fn text(self) -> String {
        match self {
            Self::Login(no) => format!("name{no}"),
            Self::Email(no) => format!("mail{no}@example.org"),
        }
    }

    /// As somebody else types it.
    pub(crate) fn shouted(self) -> String {
        self.text().to_uppercase()
    }
}

/// What is known of somebody who has, or had, names.
#[derive(Debug, Clone)]
pub(crate) struct Person {
    is_there: Fact<bool>,
    login: Fact<Option<Name>>,
    email: Fact<Option<Name>>,
    /// Which of its passwords is right.
    pub(crate) password: Fact<Option<u32>>,
    /// What its passwords begin with.
    pub(crate) secret: String,
}

impl Person {
    /// An account that is there, without any names.
    fn nameless(secret: String) -> Self {
        let (login, email, password) = (Fact::new(None), Fact::new(None), Fact::new(None));
        Self { is_there: Fact::new(true), login, email, password, secret }
    }

    fn of_kind(&mut self, name: Name) -> &mut Fact<Option<Name>> {
        match name {
            Name::Login(_) => &mut self.login,
            Name::Email(_) => &mut self.email,
        }
    }

    fn has(&self, name: Name, window: Window) -> Tri {
        let fact = match name {
            Name::Login(_) => &self.login,
            Name::Email(_) => &self.email,
        };
        fact.is(window, |has| has == Some(name))
    }

    /// The newest of its passwords, or the one before.
    pub(crate) fn last_password(&self, is_old: bool) -> String {
        let last = self.password.changes.last().and_then(|change| change.value).unwrap_or(0);
        password_of(&self.secret, last.saturating_sub(u32::from(is_old)))
    }

    fn admits(&self, password: &str, window: Window) -> Tri {
        self.password.is(window, |no| no.is_some_and(|no| password_of(&self.secret, no) == password))
    }

    /// Whether nobody can say which names it has.
    fn is_unsure(&self, now: Window) -> bool {
        let several = |fact: &Fact<Option<Name>>| {
            let possible = fact.possible(now);
            possible.iter().any(|name| *name != possible[0])
        };
        several(&self.login) || several(&self.email)
    }
}

/// Each password of somebody is another one.
pub(crate) fn password_of(secret: &str, no: u32) -> String {
    format!("{secret}, password {no}")
}

/// A call that was to give somebody names.
#[derive(Debug, Clone)]
pub(crate) struct Attempt {
    /// An account that was there before.
    pub(crate) by: Option<u64>,
    /// None: its e-mail address is to go.
    pub(crate) wanted: Vec<Name>,
    pub(crate) window: Window,
    /// How often it was sent: what the first ones have begun may be left for a minute.
    pub(crate) sent: usize,
    /// Why it was refused, if it was.
    pub(crate) refused: Option<String>,
}

impl Attempt {
    fn is_repeated(&self) -> bool {
        self.sent > 1
    }

    /// Until when a name may be kept by it.
    fn until(&self) -> Time {
        if self.is_repeated() { self.window.to.saturating_add(LEFT_FOR) } else { self.window.to }
    }

    /// Whether it may have kept a name from others that it didn't get. Of those who want but one name somebody gets it:
    /// so only what failed for the other one, or was left.
    fn keeps(&self) -> bool {
        self.is_repeated() || self.refused.is_some() && self.wanted.len() > 1
    }
}

/// What may be left of attempts that nobody brought to their end, at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Left {
    /// Accounts that were to be registered, or to get a name.
    pub(crate) attempts: usize,
    /// Names that they took, or were to give back.
    pub(crate) claims: usize,
}

/// What somebody asked.
#[derive(Debug, Clone)]
pub(crate) enum Question {
    /// Who has that name?
    Named(Name),
    /// What are an account's names?
    Account(u64),
    /// Whose are that name and password?
    Password(Name, String),
}

/// What somebody asked, and was told.
#[derive(Debug, Clone)]
pub(crate) struct Told {
    pub(crate) question: Question,
    pub(crate) answer: Option<Card>,
    pub(crate) window: Window,
}

/// Something wrong about an account's names.
pub(crate) type Finding = (Wrong, u64, String);

/// Everybody who has names.
#[derive(Debug, Default)]
pub(crate) struct Names {
    people: BTreeMap<u64, Person>,
    /// Those who signed up, unless they were refused.
    pub(crate) newcomers: HashMap<NewcomerNo, u64>,
    attempts: Vec<Attempt>,
    /// Attempts that were checked, and what was told since.
    checked: usize,
    told: Vec<Told>,
    /// When what attempts had left was last looked for, and taken away.
    looked: Time,
}

impl Names {
    pub(crate) fn get(&self, id: u64) -> Option<&Person> {
        self.people.get(&id)
    }

    /// An account that may have had no names so far.
    pub(crate) fn person(&mut self, id: u64) -> &mut Person {
        self.people.entry(id).or_insert_with(|| Person::nameless(format!("account {id}")))
    }

    /// Somebody has signed up, with the first of its passwords.
    pub(crate) fn signed_up(&mut self, id: u64, secret: String, attempt: Attempt) {
        let Window { from, to } = attempt.window;
        let mut person = Person { is_there: Fact::new(false), ..Person::nameless(secret) };
        person.is_there.change(from, to, true);
        person.password.change(from, to, Some(0));
        self.people.insert(id, person);
        self.given(id, attempt);
    }

    /// An account was given names.
    pub(crate) fn given(&mut self, id: u64, attempt: Attempt) {
        let (Window { from, to }, person) = (attempt.window, self.person(id));
        if attempt.wanted.is_empty() {
            person.email.change(from, to, None);
        }
        for name in &attempt.wanted {
            person.of_kind(*name).change(from, to, Some(*name));
        }
        self.attempts.push(attempt);
    }

    /// Somebody was not given names. An earlier sending may have been carried out all the same.
    pub(crate) fn refused(&mut self, attempt: Attempt) {
        if let (Some(id), true) = (attempt.by, attempt.is_repeated()) {
            let (from, person) = (attempt.window.from, self.person(id));
            if attempt.wanted.is_empty() {
                person.email.influence(None, from, OPEN);
            }
            for name in &attempt.wanted {
                person.of_kind(*name).influence(Some(*name), from, OPEN);
            }
        }
        self.attempts.push(attempt);
    }

    /// An account is gone, and its names are free.
    pub(crate) fn gone(&mut self, id: u64, start: Time, end: Time) {
        if let Some(person) = self.people.get_mut(&id) {
            person.is_there.change(start, end, false);
            person.login.change(start, end, None);
            person.email.change(start, end, None);
            person.password.change(start, end, None);
        }
    }

    /// An account's names were looked up because nobody could be sure of them.
    pub(crate) fn settle(&mut self, id: u64, card: Option<&Card>, now: Time) {
        let all = self.all();
        let Some(person) = self.people.get_mut(&id) else { return };
        let named = |text: Option<&String>| all.iter().copied().find(|name| Some(&name.text()) == text);
        person.login.settle(now, named(card.and_then(|card| card.login.as_ref())));
        person.email.settle(now, named(card.and_then(|card| card.email.as_ref())));
    }

    /// What a look that begins now may find left of attempts that were sent again. Of those before the last such look
    /// only what was too young then: all else was taken away.
    pub(crate) fn may_be_left(&mut self, now: Time) -> Left {
        let last = std::mem::replace(&mut self.looked, now);
        let (mut accounts, mut calls, mut begun) = (BTreeSet::new(), 0, 0);
        let open = self.attempts.iter().filter(|attempt| attempt.is_repeated() && attempt.until() >= last);
        for attempt in open {
            match attempt.by {
                // It has one attempt at a time: what another sending finds there it leaves alone.
                Some(account) => {
                    accounts.insert(account);
                    calls += 1;
                }
                // Each sending may have begun with an account of its own.
                None => begun += attempt.sent - 1,
            }
        }
        Left { attempts: accounts.len() + begun, claims: NAMES_MAX * (calls + begun) }
    }

    pub(crate) fn tell(&mut self, told: Told) {
        self.told.push(told);
    }

    /// All names that anybody ever wanted.
    pub(crate) fn all(&self) -> BTreeSet<Name> {
        self.attempts.iter().flat_map(|attempt| attempt.wanted.iter().copied()).collect()
    }

    /// Everybody who has, or had, names.
    pub(crate) fn everybody(&self) -> Vec<u64> {
        self.people.keys().copied().collect()
    }

    /// Those whose names nobody can be sure of.
    pub(crate) fn unsure(&self, now: Window) -> Vec<u64> {
        self.people.iter().filter(|(_, person)| person.is_unsure(now)).map(|(id, _)| *id).collect()
    }

    /// Somebody who certainly has a login now.
    pub(crate) fn somebody(&self, now: Window) -> Option<u64> {
        let is_named = |person: &Person| person.login.is(now, |login| login.is_some()) == Tri::Yes;
        self.people.iter().find(|(_, person)| is_named(person)).map(|(id, _)| *id)
    }

    /// Somebody who may have a name now.
    pub(crate) fn holder(&self, name: Name, now: Window) -> Option<&Person> {
        self.people.values().find(|person| person.has(name, now) != Tri::No)
    }

    /// Everything that is wrong about what was given, refused and told since the last time. Nothing may be under way.
    pub(crate) fn check(&mut self) -> Vec<Finding> {
        let told = std::mem::take(&mut self.told);
        let mut found: Vec<Finding> = told.iter().filter_map(|told| self.wrong(told)).collect();
        for (place, attempt) in self.attempts.iter().enumerate().skip(self.checked) {
            if let Some(why) = attempt.refused.as_ref().filter(|_| !self.may_be_refused(place, attempt)) {
                let text = format!("{:?} refused, though nobody else may have them: {why}", attempt.wanted);
                found.push((Wrong::Stuck, attempt.by.unwrap_or(0), text));
            }
        }
        self.checked = self.attempts.len();
        found.extend(self.doubled());
        found
    }

    /// Whether somebody else may have had one of the names wanted, or have been about to get it.
    fn may_be_refused(&self, place: usize, refused: &Attempt) -> bool {
        let Window { from, to } = refused.window;
        let is_of_other = |name: &Name| {
            let mut others = self.people.iter().filter(|(id, _)| Some(**id) != refused.by);
            others.any(|(_, person)| person.has(*name, refused.window) != Tri::No)
        };
        let is_in_the_way = |(at, other): (usize, &Attempt)| {
            let is_about_it = other.wanted.iter().any(|name| refused.wanted.contains(name));
            // Another change of the same account's names.
            let is_own = other.by.is_some() && other.by == refused.by;
            let keeps = other.keeps() && (at != place || other.is_repeated());
            keeps && (is_about_it || is_own) && other.window.from <= to && other.until() >= from
        };
        refused.wanted.iter().any(is_of_other) || self.attempts.iter().enumerate().any(is_in_the_way)
    }

    /// What is wrong about an answer.
    fn wrong(&self, told: &Told) -> Option<Finding> {
        let Told { question, answer, window } = told;
        let fits = |id: u64, person: &Person| match question {
            Question::Named(name) => person.has(*name, *window),
            Question::Account(asked) => {
                Tri::from(*asked == id).and(person.is_there.is(*window, |is_there| is_there))
            }
            Question::Password(name, password) => {
                person.has(*name, *window).and(person.admits(password, *window))
            }
        };
        let Some(card) = answer else {
            let (id, _) = self.people.iter().find(|(id, person)| fits(**id, person) == Tri::Yes)?;
            return Some((Wrong::Lost, *id, format!("{question:?} finds nobody, and it is {id}'s")));
        };
        let id = card.id;
        let Some(person) = self.people.get(&id).filter(|person| fits(id, person) != Tri::No) else {
            return Some((Wrong::Leaked, id, format!("{question:?} finds {id}, whose it isn't")));
        };
        let says = |fact: &Fact<Option<Name>>, said: &Option<String>| {
            fact.possible(*window).into_iter().any(|name| name.map(Name::text) == *said)
        };
        // Only who asks for an account is told its address.
        let is_email_told = matches!(question, Question::Account(_));
        let is_right =
            says(&person.login, &card.login) && (!is_email_told || says(&person.email, &card.email));
        (!is_right).then(|| (Wrong::Stale, id, format!("{question:?}: {card:?} is not what {person:?} has")))
    }

    /// Names that two accounts had at the same time: the second one was given it then.
    fn doubled(&self) -> Vec<Finding> {
        let mut found = Vec::new();
        for (id, person) in &self.people {
            for change in person.login.changes.iter().chain(&person.email.changes) {
                let Some(name) = change.value else { continue };
                let at = Window { from: change.end, to: change.end };
                let has = |person: &Person| person.has(name, at) == Tri::Yes;
                let other = self.people.iter().find(|(other, person)| *other != id && has(person));
                if let Some((other, _)) = other.filter(|_| has(person)) {
                    let text = format!("{name:?} is {id}'s and {other}'s at the same time");
                    found.push((Wrong::Doubled, *id, text));
                }
            }
        }
        found
    }
}
