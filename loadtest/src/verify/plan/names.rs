//! Names and reports of a plan. Few names that many want, so that they meet; and one that each account has for itself.

use rand::RngExt;
use rand::seq::{IndexedRandom, IteratorRandom};

use super::Planner;
use crate::verify::names::{Name, NameNo, NewcomerNo};
use crate::verify::reports::ReportNo;
use crate::verify::steps::{Action, Naming, Step};

/// Logins that many want, and as many addresses.
const WANTED: NameNo = 12;
/// The numbers of what accounts have for themselves begin here.
const OWN: u64 = 1_000;
/// Who signs up for the same name at the same moment, at most.
const RACERS_MAX: usize = 6;

/// What the plan imagines of names.
#[derive(Debug, Default)]
pub(super) struct Imagined {
    /// Those who signed up together: one of them, perhaps, has the name. Whose steps they are.
    races: Vec<(Vec<NewcomerNo>, u64)>,
    newcomers: NewcomerNo,
    /// Names that many want, and an account has instead of its own.
    borrowed: Vec<(u64, Name)>,
    /// Reports with their reporters.
    reports: Vec<u64>,
}

/// An account's own login.
fn own_login(account: u64) -> Name {
    Name::Login(NameNo::try_from(OWN + account).unwrap_or(NameNo::MAX))
}

/// An account's own address.
fn own_email(account: u64) -> Name {
    Name::Email(NameNo::try_from(OWN + account).unwrap_or(NameNo::MAX))
}

/// Both.
pub(super) fn own(account: u64) -> Vec<Name> {
    vec![own_login(account), own_email(account)]
}

impl Planner {
    /// What a new account signs up with; nothing: it is created without names.
    pub(super) fn names_of(&mut self, account: u64) -> Vec<Name> {
        match self.random.random_range(0..4) {
            0 | 1 => own(account),
            2 => vec![own_login(account)],
            _ => Vec::new(),
        }
    }

    fn wanted(&mut self) -> Name {
        let no = self.random.random_range(0..WANTED);
        if self.random.random_bool(0.7) { Name::Login(no) } else { Name::Email(no) }
    }

    /// Somebody does something about names.
    pub(super) fn name(&mut self, actor: u64) -> Step {
        let (actor, naming) = match self.random.random_range(0..100) {
            0..22 => (actor, self.race(actor)),
            22..45 => self.leave(actor),
            45..66 => self.take(actor),
            66..72 => (actor, Naming::Password(None)),
            72..88 => {
                let many = self.random.random_range(1..5);
                let names = (0..many).map(|_| (self.wanted(), self.random.random_bool(0.5))).collect();
                (actor, Naming::Find(names))
            }
            _ => (actor, Naming::LogIn(self.wanted(), self.random.random_bool(0.3))),
        };
        self.step(actor, Action::Name(naming))
    }

    fn race(&mut self, actor: u64) -> Naming {
        let login = Name::Login(self.random.random_range(0..WANTED));
        let many = self.random.random_range(1..=RACERS_MAX);
        let first = self.imagined.names.newcomers;
        self.imagined.names.newcomers += many;
        let newcomers: Vec<NewcomerNo> = (first..first + many).collect();
        self.imagined.names.races.push((newcomers.clone(), actor));
        let racers = newcomers.into_iter().map(|no| {
            // Some want an address too, that others want as well.
            let email =
                self.random.random_bool(0.4).then(|| Name::Email(self.random.random_range(0..WANTED)));
            (no, std::iter::once(login).chain(email).collect())
        });
        Naming::Race(racers.collect())
    }

    /// Those who signed up together leave, or one of them takes another name, password, or none.
    fn leave(&mut self, actor: u64) -> (u64, Naming) {
        let races = &mut self.imagined.names.races;
        let Some(place) = (0..races.len()).choose(&mut self.random) else {
            return (actor, self.race(actor));
        };
        if self.random.random_bool(0.7) {
            let (newcomers, actor) = races.swap_remove(place);
            return (actor, Naming::Leave(newcomers));
        }
        let (newcomers, actor) = &races[place];
        let (whose, actor) = (newcomers.choose(&mut self.random).copied(), *actor);
        let naming = match self.random.random_range(0..4) {
            0 => Naming::Password(whose),
            1 => Naming::Take(whose, None),
            _ => Naming::Take(whose, Some(self.wanted())),
        };
        (actor, naming)
    }

    /// An account takes a name that many want, or its own again.
    fn take(&mut self, actor: u64) -> (u64, Naming) {
        let borrowed = &mut self.imagined.names.borrowed;
        if let Some(place) = (0..borrowed.len()).choose(&mut self.random)
            && self.random.random_bool(0.6)
        {
            let (actor, name) = borrowed.swap_remove(place);
            let own = match name {
                Name::Login(_) => Some(own_login(actor)),
                Name::Email(_) => self.random.random_bool(0.5).then(|| own_email(actor)),
            };
            return (actor, Naming::Take(None, own));
        }
        let name = self.wanted();
        self.imagined.names.borrowed.push((actor, name));
        (actor, Naming::Take(None, Some(name)))
    }

    /// Whoever is gone has nothing to give back.
    pub(super) fn forget_names_of(&mut self, account: u64) {
        self.imagined.names.borrowed.retain(|(by, _)| *by != account);
        self.imagined.names.races.retain(|(_, actor)| *actor != account);
    }

    /// Another report, and its number.
    pub(super) fn imagine_report(&mut self, reporter: u64) -> ReportNo {
        self.imagined.names.reports.push(reporter);
        self.imagined.names.reports.len() - 1
    }

    /// Somebody reports somebody, perhaps with a post, or a report of its own is resolved or opened again.
    pub(super) fn report(&mut self, actor: u64) -> Step {
        let reports = &self.imagined.names.reports;
        if let Some(no) = (0..reports.len()).choose(&mut self.random)
            && self.random.random_bool(0.5)
        {
            let reporter = reports[no];
            let on = self.random.random_bool(0.7);
            return self.step(reporter, Action::Resolve(no, on));
        }
        let no = self.imagine_report(actor);
        let post = self.imagined.posts.iter().rev().take(super::RECENT).filter(|post| post.1 != actor);
        let post = post.choose(&mut self.random).map(|post| (post.0, post.1));
        let (target, post) = match post.filter(|_| self.random.random_bool(0.6)) {
            Some((no, author)) => (author, Some(no)),
            None => (self.somebody_but(actor), None),
        };
        self.step(actor, Action::Report(no, target, post))
    }
}
