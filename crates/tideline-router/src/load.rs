//! One pipeline's worth of commands, and what became of each after one try. Pure: replies in, outcome out.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::batch::{Answer, Traits};
use super::epoch::Epoch;
use super::verdict::{Cause, TrailOfTries, Verdict, judge};
use super::wire::{Command, NodeAddr, Pipeline, Reply};
use tideline_model::error::{Error, ErrorKind, Result};

/// The answers of a batch, each put in its place as it comes; loads of several nodes share it.
#[derive(Debug)]
pub(crate) struct BatchAnswers(Mutex<Vec<Option<Result<Answer>>>>);

impl BatchAnswers {
    pub(crate) fn new(count: usize) -> Self {
        let mut places = Vec::new();
        places.resize_with(count, || None);
        Self(Mutex::new(places))
    }

    fn places(&self) -> MutexGuard<'_, Vec<Option<Result<Answer>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn put(&self, ticket: &Ticket, answer: Result<Answer>) {
        self.places()[ticket.place as usize] = Some(answer);
    }

    /// The error that ended the command in that place.
    pub(crate) fn error_at(&self, place: u32) -> Option<Error> {
        self.places()[place as usize].as_ref()?.as_ref().err().cloned()
    }

    pub(crate) fn into_all(self) -> Vec<Result<Answer>> {
        let missing = || Err(Error::internal("a request without an answer"));
        let places = self.0.into_inner().unwrap_or_else(PoisonError::into_inner);
        places.into_iter().map(|answer| answer.unwrap_or_else(missing)).collect()
    }
}

/// A ticket: where in the batch a command came from, and how it may be repeated.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ticket {
    pub(crate) place: u32,
    pub(crate) slot: u16,
    pub(crate) traits: Traits,
}

/// A command that is still to be done.
#[derive(Debug)]
pub(crate) struct PendingCommand {
    pub(crate) ticket: Ticket,
    pub(crate) command: Command,
}

/// The commands that one node gets in one pipeline.
pub(crate) struct Load {
    pub(crate) tickets: Vec<Ticket>,
    pub(crate) pipeline: Pipeline,
    /// Every command has an ASKING before it.
    asking: bool,
}

/// A command, or an ordered group from its first unfinished command on, that must be sent again.
#[derive(Debug)]
pub(crate) struct ResentUnit {
    pub(crate) open: Vec<PendingCommand>,
    /// Where its first command, and only that, must be asked for.
    pub(crate) ask: Option<NodeAddr>,
}

/// The outcome of one try.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) units: Vec<ResentUnit>,
    /// Why units are left, one for each command that a reply or a failure left.
    pub(crate) causes: Vec<Cause>,
    /// Slots that have moved, as redirects told.
    pub(crate) moved: Vec<(u16, NodeAddr)>,
}

impl Load {
    pub(crate) fn with_capacity(commands: usize) -> Self {
        Self {
            tickets: Vec::with_capacity(commands),
            pipeline: Pipeline::with_capacity(commands),
            asking: false,
        }
    }

    /// One command, to be asked for at the target of its slot's move.
    pub(crate) fn asking(open: PendingCommand) -> Self {
        let mut load = Self { asking: true, ..Self::with_capacity(2) };
        load.pipeline.push(&Command::new("ASKING"));
        load.push(open);
        load
    }

    pub(crate) fn push(&mut self, open: PendingCommand) {
        self.tickets.push(open.ticket);
        self.pipeline.push(&open.command);
    }

    /// Reads all replies; commands that are left go into units, each group from its first unfinished command on.
    pub(crate) fn read(
        self,
        mut replies: Vec<Reply>,
        epoch: &Epoch,
        from: &NodeAddr,
        trail: &mut TrailOfTries,
        answers: &BatchAnswers,
    ) -> Outcome {
        if self.asking {
            replies.remove(0);
        }
        let mut outcome = Outcome::default();
        let mut places = answers.places();
        let mut is_group_broken = false;
        for (i, (reply, ticket)) in replies.into_iter().zip(&self.tickets).enumerate() {
            is_group_broken &= ticket.traits.chained;
            if is_group_broken {
                outcome.leave_after(self.open(i));
                continue;
            }
            let (cause, ask) = match judge(&reply, from) {
                Verdict::Done => {
                    places[ticket.place as usize] = Some(Ok(Answer { reply, epoch: epoch.clone() }));
                    continue;
                }
                Verdict::Moved(slot, addr) => {
                    outcome.moved.push((slot, addr));
                    (Cause::Moved, None)
                }
                Verdict::Ask(_) | Verdict::Wait(Cause::TryAgain | Cause::HalfWay)
                    if ticket.traits.unless_moving =>
                {
                    places[ticket.place as usize] = Some(Ok(Answer { reply, epoch: epoch.clone() }));
                    continue;
                }
                // At the target a key that hasn't moved looks missing: what touches undeclared keys must wait.
                Verdict::Ask(_) if ticket.traits.undeclared => (Cause::TryAgain, None),
                Verdict::Ask(addr) => (Cause::Ask, Some(addr)),
                Verdict::Wait(cause) => (cause, None),
            };
            // One try, however many commands of the pipeline it left for the same reason.
            if !outcome.causes.contains(&cause) {
                let detail = reply.error().map_or_else(String::new, |(code, rest)| format!("{code} {rest}"));
                trail.note(cause, from, &detail);
            }
            outcome.causes.push(cause);
            outcome.units.push(ResentUnit { open: vec![self.open(i)], ask });
            is_group_broken = true;
        }
        outcome
    }

    /// No reply came at all. Where a second sending is forbidden and the first may run, that is the answer.
    pub(crate) fn failed(self, cause: Cause, trail: &TrailOfTries, answers: &BatchAnswers) -> Outcome {
        let mut outcome = Outcome { causes: vec![cause], ..Outcome::default() };
        // Why the group that we are in has ended.
        let mut ended: Option<Error> = None;
        for (i, ticket) in self.tickets.iter().enumerate() {
            ended = ended.filter(|_| ticket.traits.chained);
            if let Some(why) = &ended {
                answers.put(ticket, Err(why.clone().context("an earlier command of its group failed")));
            } else if ticket.traits.once && cause.is_unknown() {
                let text = format!("slot {}: {trail}; it may have run: send another one", ticket.slot);
                let why = ended.insert(Error::new(ErrorKind::Unknown, text));
                answers.put(ticket, Err(why.clone()));
            } else if ticket.traits.chained && !outcome.units.is_empty() {
                outcome.leave_after(self.open(i));
            } else {
                outcome.units.push(ResentUnit { open: vec![self.open(i)], ask: None });
            }
        }
        outcome
    }

    fn open(&self, index: usize) -> PendingCommand {
        let index_sent = if self.asking { 2 * index + 1 } else { index };
        PendingCommand { ticket: self.tickets[index], command: self.pipeline.command(index_sent) }
    }
}

impl ResentUnit {
    /// Its commands, the first one no longer behind another.
    pub(crate) fn into_open(self) -> impl Iterator<Item = PendingCommand> {
        self.open.into_iter().enumerate().map(|(i, mut open)| {
            open.ticket.traits.chained = i > 0;
            open
        })
    }
}

impl Outcome {
    /// Commands for which no node is known.
    pub(crate) fn unserved(open: Vec<PendingCommand>, trail: &mut TrailOfTries) -> Self {
        let mut outcome = Self { causes: vec![Cause::Unserved], ..Self::default() };
        trail.note(Cause::Unserved, &"slot map", &"no node serves the slot");
        for open in open {
            if open.ticket.traits.chained && !outcome.units.is_empty() {
                outcome.leave_after(open);
            } else {
                outcome.units.push(ResentUnit { open: vec![open], ask: None });
            }
        }
        outcome
    }

    fn leave_after(&mut self, open: PendingCommand) {
        if let Some(unit) = self.units.last_mut() {
            unit.open.push(open);
        }
    }

    fn left(self) -> impl Iterator<Item = PendingCommand> {
        self.units.into_iter().flat_map(|unit| unit.open)
    }

    /// Ends everything that is left with the same error.
    pub(crate) fn give_up(self, why: &Error, answers: &BatchAnswers) {
        self.left().for_each(|open| answers.put(&open.ticket, Err(why.clone())));
    }

    /// Ends everything that is left: its time is over.
    pub(crate) fn expire(self, trail: &TrailOfTries, after: Duration, answers: &BatchAnswers) {
        let is_refused = self.causes.contains(&Cause::Refused);
        for open in self.left() {
            let kind = match open.ticket.traits.read {
                false if trail.is_unknown() => ErrorKind::Unknown,
                _ if is_refused => ErrorKind::Misconfigured,
                _ => ErrorKind::Unavailable,
            };
            let text = format!(
                "{} in slot {}: not done within {} ms: {trail}",
                open.command.name(),
                open.ticket.slot,
                after.as_millis()
            );
            answers.put(&open.ticket, Err(Error::new(kind, text)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::epoch::EpochCell;
    use super::*;

    fn addr() -> NodeAddr {
        NodeAddr::new("h", 1)
    }

    fn load(traits: &[Traits]) -> Load {
        let mut load = Load::with_capacity(traits.len());
        for (place, traits) in (0..).zip(traits) {
            let command = Command::new("SET").arg("k").arg(u64::from(place));
            load.push(PendingCommand { ticket: Ticket { place, slot: 7, traits: *traits }, command });
        }
        load
    }

    /// The outcome of one try, and the answers so far.
    fn read(load: Load, replies: &[&str]) -> (Outcome, BatchAnswers) {
        let epoch = EpochCell::default().observe(&addr(), "run", "repl");
        let reply = |r: &&str| r.strip_prefix('-').map_or_else(|| Reply::text_of(r), Reply::server_error);
        let answers = BatchAnswers::new(8);
        let outcome = load.read(
            replies.iter().map(reply).collect(),
            &epoch,
            &addr(),
            &mut TrailOfTries::default(),
            &answers,
        );
        (outcome, answers)
    }

    /// Places that have an answer, and those that each unit holds.
    fn places((outcome, answers): &(Outcome, BatchAnswers)) -> (Vec<u32>, Vec<Vec<u32>>) {
        let unit = |u: &ResentUnit| u.open.iter().map(|o| o.ticket.place).collect();
        let done = (0..).zip(answers.places().iter()).filter(|(_, a)| a.is_some()).map(|(i, _)| i).collect();
        (done, outcome.units.iter().map(unit).collect())
    }

    const ALONE: Traits =
        Traits { read: false, undeclared: false, unless_moving: false, once: false, chained: false };
    const NEXT: Traits = Traits { chained: true, ..ALONE };

    #[test]
    fn a_group_starts_over_from_its_first_unfinished_command_also_where_later_ones_ran() {
        let outcome = read(load(&[ALONE, NEXT, NEXT, ALONE]), &["1", "-TRYAGAIN x", "1", "1"]);
        assert_eq!(places(&outcome), (vec![0, 3], vec![vec![1, 2]]));
        assert_eq!(outcome.0.causes, [Cause::TryAgain]);
    }

    #[test]
    fn only_what_declares_its_keys_follows_ask() {
        let undeclared = Traits { undeclared: true, ..ALONE };
        let outcome = read(load(&[ALONE, undeclared]), &["-ASK 7 h:2", "-ASK 7 h:2"]);
        assert_eq!(outcome.0.units[0].ask, Some(NodeAddr::new("h", 2)));
        assert_eq!(outcome.0.units[1].ask, None);
        assert_eq!(outcome.0.causes, [Cause::Ask, Cause::TryAgain]);
    }

    #[test]
    fn a_moved_group_moves_as_a_whole_and_an_error_of_the_command_is_its_answer() {
        let outcome = read(load(&[ALONE, NEXT, ALONE]), &["-MOVED 7 h:2", "-MOVED 7 h:2", "-WRONGTYPE x"]);
        assert_eq!(places(&outcome), (vec![2], vec![vec![0, 1]]));
        assert_eq!(outcome.0.moved, [(7, NodeAddr::new("h", 2))]);
    }

    #[test]
    fn a_write_that_must_not_be_repeated_ends_as_unknown_but_only_if_it_may_have_run() {
        let once = Traits { once: true, ..ALONE };
        let fail = |cause| {
            let answers = BatchAnswers::new(2);
            (load(&[once, ALONE]).failed(cause, &TrailOfTries::default(), &answers), answers)
        };
        let lost = fail(Cause::Timeout);
        assert_eq!(places(&lost), (vec![0], vec![vec![1]]));
        assert_eq!(lost.1.error_at(0).unwrap().kind(), ErrorKind::Unknown);
        assert_eq!(places(&fail(Cause::NotSent)), (vec![], vec![vec![0], vec![1]]));
    }

    #[test]
    fn an_expired_write_is_unknown_if_any_try_may_have_run_and_a_read_never_is() {
        let mut trail = TrailOfTries::default();
        trail.note(Cause::Timeout, &addr(), &"no answer");
        let read = Traits { read: true, ..ALONE };
        let answers = BatchAnswers::new(2);
        let outcome = load(&[ALONE, read]).failed(Cause::NotSent, &trail, &answers);
        outcome.expire(&trail, Duration::from_secs(1), &answers);
        let kinds: Vec<_> = [0, 1].map(|place| answers.error_at(place).unwrap().kind()).into();
        assert_eq!(kinds, [ErrorKind::Unknown, ErrorKind::Unavailable]);
        let text = answers.error_at(0).unwrap().to_string();
        assert_eq!(
            text,
            "SET in slot 7: not done within 1000 ms: 1 tries (1 x timeout); last: h:1: no answer"
        );
    }

    #[test]
    fn a_write_that_failed_half_way_to_the_end_is_unknown() {
        let half = "-ERR Script attempted to access a non local key in a cluster node";
        let epoch = EpochCell::default().observe(&addr(), "run", "repl");
        let (answers, mut trail) = (BatchAnswers::new(2), TrailOfTries::default());
        let replies = [half, "-TRYAGAIN x"].map(|line| Reply::server_error(&line[1..])).into();
        let outcome = load(&[ALONE, ALONE]).read(replies, &epoch, &addr(), &mut trail, &answers);
        outcome.expire(&trail, Duration::from_secs(1), &answers);
        assert_eq!(answers.error_at(0).unwrap().kind(), ErrorKind::Unknown);
    }

    #[test]
    fn asking_goes_before_the_command_and_its_reply_is_nobodys() {
        let open = PendingCommand {
            ticket: Ticket { place: 4, slot: 7, traits: ALONE },
            command: Command::new("GET").arg("k"),
        };
        let outcome = read(Load::asking(open), &["OK", "-TRYAGAIN x"]);
        assert_eq!(places(&outcome), (vec![], vec![vec![4]]));
        assert_eq!(format!("{:?}", outcome.0.units[0].open[0].command), "GET k");
    }
}
