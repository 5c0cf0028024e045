//! Running a batch: split by node, one pipeline each, every unfinished command followed until it is done.

use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use futures::future::{BoxFuture, FutureExt, poll_fn};
use tokio::time::timeout_at;

use super::batch::{Answer, Batch, Request};
use super::load::{BatchAnswers, Load, Outcome, PendingCommand, ResentUnit, Ticket};
use super::meters;
use super::node::Node;
use super::presence::is_impatient;
use super::router::Router;
use super::verdict::{Cause, TrailOfTries, cause_of, pause};
use super::wire::{Reply, WireError};
use tideline_model::error::{Error, ErrorKind, Result};

/// So many redirects are followed at once; more of them mean that the cluster is rearranging itself.
const REDIRECTS_AT_ONCE: u32 = 3;

/// The journey of some commands of a batch: what they have been through.
#[derive(Clone)]
struct CommandJourney {
    started: Instant,
    trail: TrailOfTries,
    rounds: u32,
    /// Whether it ends where a server is away.
    is_impatient: bool,
}

/// The end of sending one load.
enum LoadEnd {
    Replies(Vec<Reply>, super::epoch::Epoch),
    Failed(WireError),
    Overloaded,
}

/// An event: what has ended, a try of one load, or a pause before the next one.
enum Event {
    /// `behind`: an asked command's place, and the rest of its group, which goes on after it.
    Tried {
        outcome: Outcome,
        journey: CommandJourney,
        behind: Option<(u32, Vec<PendingCommand>)>,
    },
    Rested {
        units: Vec<ResentUnit>,
        journey: CommandJourney,
    },
}

/// Tries and pauses under way for one batch. It is flat: however often commands are sent again, nothing nests.
///
/// A few futures, one for each node and pipeline, all polled at each wake-up: a `FuturesUnordered` wakes its task once
/// for each of them, which tore the batches of concurrent callers apart and cost twice the CPU time.
#[derive(Default)]
struct BatchUnderWay<'a>(Vec<BoxFuture<'a, Event>>);

impl<'a> BatchUnderWay<'a> {
    fn push(&mut self, future: impl Future<Output = Event> + Send + 'a) {
        self.0.push(future.boxed());
    }

    /// The events that have come since the last call, at least one; none once nothing is under way.
    async fn ended(&mut self) -> Vec<Event> {
        poll_fn(|context| {
            let mut ended = Vec::new();
            self.0.retain_mut(|future| match future.poll_unpin(context) {
                Poll::Ready(event) => {
                    ended.push(event);
                    false
                }
                Poll::Pending => true,
            });
            if ended.is_empty() && !self.0.is_empty() { Poll::Pending } else { Poll::Ready(ended) }
        })
        .await
    }
}

impl Router {
    /// Sends all requests and returns their answers in the same order.
    ///
    /// A request ends with an error when its deadline has passed: [`ErrorKind::Unknown`] for a write that may have
    /// run, else [`ErrorKind::Unavailable`], or [`ErrorKind::Overloaded`] when too much was under way. Dropping
    /// the future gives up waiting; commands already sent may still run.
    pub fn run(&self, batch: Batch) -> BoxFuture<'_, Vec<Result<Answer>>> {
        // Boxed so that all of it is compiled here, and not in each crate that awaits it: see `CallFuture`.
        Box::pin(async move {
            let answers = BatchAnswers::new(batch.requests.len());
            let open = (0u32..).zip(batch.requests).map(|(place, Request { command, slot, traits })| {
                PendingCommand { ticket: Ticket { place, slot, traits }, command }
            });
            let (started, trail) = (Instant::now(), TrailOfTries::default());
            let journey = CommandJourney { started, trail, rounds: 0, is_impatient: is_impatient() };
            let mut under_way = BatchUnderWay::default();
            self.deliver(open, journey, &answers, &mut under_way);
            while !under_way.0.is_empty() {
                for event in under_way.ended().await {
                    match event {
                        Event::Rested { units, journey } => {
                            self.set_out(units, journey, &answers, &mut under_way)
                        }
                        Event::Tried { outcome, journey, behind } => {
                            let units = join_behind(outcome, behind, &answers);
                            self.follow(units, journey, &answers, &mut under_way);
                        }
                    }
                }
            }
            drop(under_way);
            answers.into_all()
        })
    }

    /// Splits commands into loads by the node that serves them now, and sends all loads at once.
    fn deliver<'a>(
        &'a self,
        commands: impl Iterator<Item = PendingCommand>,
        mut journey: CommandJourney,
        answers: &'a BatchAnswers,
        under_way: &mut BatchUnderWay<'a>,
    ) {
        let (loads, unserved) = self.split(commands);
        for (node, load) in loads {
            if journey.is_impatient && node.presence.is_silent() {
                let mut trail = journey.trail.clone();
                trail.note(Cause::NotSent, &node.addr, &"it has not answered for a while, nothing was sent");
                let left = load.failed(Cause::NotSent, &trail, answers);
                left.expire(&trail, journey.started.elapsed(), answers);
                continue;
            }
            under_way.push(self.attempt(node, load, journey.clone(), None, answers));
        }
        if !unserved.is_empty() {
            meters::unserved(unserved.len());
            let outcome = Outcome::unserved(unserved, &mut journey.trail);
            self.follow(outcome, journey, answers, under_way);
        }
    }

    /// Sends units again: the usual way, or the first command of a unit to where ASK said.
    fn set_out<'a>(
        &'a self,
        units: Vec<ResentUnit>,
        journey: CommandJourney,
        answers: &'a BatchAnswers,
        under_way: &mut BatchUnderWay<'a>,
    ) {
        let (asked, plain): (Vec<ResentUnit>, Vec<ResentUnit>) =
            units.into_iter().partition(|u| u.ask.is_some());
        for unit in asked {
            let Some(node) = unit.ask.as_ref().map(|addr| self.inner.node_at(addr)) else { continue };
            let mut open = unit.into_open();
            let Some(first) = open.next() else { continue };
            let behind = Some((first.ticket.place, open.collect()));
            let asking = Load::asking(first);
            under_way.push(self.attempt(node, asking, journey.clone(), behind, answers));
        }
        if !plain.is_empty() {
            self.deliver(plain.into_iter().flat_map(ResentUnit::into_open), journey, answers, under_way);
        }
    }

    /// After a pause, if one is due, sends again what a try left unfinished; or gives it up at the deadline.
    fn follow<'a>(
        &'a self,
        outcome: Outcome,
        mut journey: CommandJourney,
        answers: &'a BatchAnswers,
        under_way: &mut BatchUnderWay<'a>,
    ) {
        let settings = self.settings();
        if outcome.causes.iter().any(|c| c.is_suspect()) {
            self.suspect();
        }
        if outcome.units.is_empty() {
            return;
        }
        journey.rounds += 1;
        // A redirect tells where to go; only when redirects go on does waiting help.
        let is_directed =
            outcome.causes.iter().all(|c| c.says_what_to_do()) && journey.rounds <= REDIRECTS_AT_ONCE;
        let wait = match is_directed {
            true => Duration::ZERO,
            false => pause(journey.rounds, settings.backoff, rand::random()),
        };
        let is_given_up = journey.is_impatient && self.ends_here(&outcome, journey.rounds);
        if is_given_up || journey.started.elapsed() + wait >= settings.deadline {
            return outcome.expire(&journey.trail, journey.started.elapsed(), answers);
        }
        let units = outcome.units;
        let rest = async move {
            if !wait.is_zero() {
                tokio::time::sleep(wait).await;
            }
            Event::Rested { units, journey }
        };
        under_way.push(rest);
    }

    /// Whether work for which nobody waits ends here: a server is away, or a slot's move goes on.
    fn ends_here(&self, outcome: &Outcome, rounds: u32) -> bool {
        let is_absence = outcome.causes.iter().any(|c| c.is_absence());
        // One key's move is over in a moment. H151: one that nobody ends would hold a place for each task in its way.
        is_absence || (rounds > REDIRECTS_AT_ONCE && self.note_half_moved(outcome))
    }

    /// Notes in which slots keys are on both sides; tells whether there are any.
    fn note_half_moved(&self, outcome: &Outcome) -> bool {
        let topology = self.topology();
        let mut is_any = false;
        for (cause, unit) in outcome.causes.iter().zip(&outcome.units) {
            if let Some(first) = unit.open.first().filter(|_| cause.is_half_moved()) {
                is_any = true;
                if let Some(node) = topology.owner(first.ticket.slot) {
                    node.presence.note_half_moved(first.ticket.slot);
                }
            }
        }
        is_any
    }

    /// Sends one load once.
    async fn attempt(
        &self,
        node: Arc<Node>,
        load: Load,
        mut journey: CommandJourney,
        behind: Option<(u32, Vec<PendingCommand>)>,
        answers: &BatchAnswers,
    ) -> Event {
        let outcome = match self.send(&node, &load, &journey).await {
            LoadEnd::Replies(replies, epoch) => {
                if journey.is_impatient {
                    node.presence.note_refusals(&replies);
                }
                load.read(replies, &epoch, &node.addr, &mut journey.trail, answers)
            }
            LoadEnd::Overloaded => {
                node.meters.overloads.increment(1);
                for ticket in &load.tickets {
                    answers.put(ticket, Err(self.overloaded(&node, ticket, &journey.trail)));
                }
                Outcome::default()
            }
            LoadEnd::Failed(e) => {
                let cause = cause_of(&e);
                journey.trail.note(cause, &node.addr, &e);
                load.failed(cause, &journey.trail, answers)
            }
        };
        outcome.causes.iter().for_each(|c| node.meters.retry(*c));
        outcome.moved.iter().for_each(|(slot, addr)| self.learn(*slot, addr));
        if outcome.causes.contains(&Cause::NoFunction) {
            let until = tokio::time::Instant::from_std(journey.started + self.settings().deadline);
            // Boxed, for it is rare, and larger than all the rest.
            if let Ok(Err(e)) = timeout_at(until, Box::pin(node.load_library())).await
                && e.kind() == ErrorKind::Misconfigured
            {
                outcome.give_up(&e, answers);
                return Event::Tried { outcome: Outcome::default(), journey, behind };
            }
        }
        // The next one of a group may have moved too: following that is progress, not another try at the same.
        if behind.is_some() && outcome.units.is_empty() {
            journey.rounds = 0;
        }
        Event::Tried { outcome, journey, behind }
    }

    fn split(
        &self,
        commands: impl Iterator<Item = PendingCommand>,
    ) -> (Vec<(Arc<Node>, Load)>, Vec<PendingCommand>) {
        let topology = self.topology();
        let longest = self.settings().pipeline_length;
        let expected = commands.size_hint().0.min(longest);
        let mut unserved = Vec::new();
        let mut full: Vec<(Arc<Node>, Load)> = Vec::new();
        let mut filling: Vec<(u16, Load)> = Vec::with_capacity(topology.members.len());
        for open in commands {
            let index = topology.owner_index(open.ticket.slot);
            let Some(node) = topology.owner(open.ticket.slot) else {
                unserved.push(open);
                continue;
            };
            let at = filling.iter().position(|(i, _)| *i == index).unwrap_or_else(|| {
                filling.push((index, Load::with_capacity(expected)));
                filling.len() - 1
            });
            let load = &mut filling[at].1;
            // A group is never cut: its commands must leave on one connection.
            if load.tickets.len() >= longest && !open.ticket.traits.chained {
                full.push((node.clone(), std::mem::replace(load, Load::with_capacity(expected))));
            }
            load.push(open);
        }
        full.extend(
            filling.into_iter().map(|(i, load)| (topology.members[usize::from(i)].node.clone(), load)),
        );
        (full, unserved)
    }

    async fn send(&self, node: &Node, load: &Load, journey: &CommandJourney) -> LoadEnd {
        let commands = load.tickets.len();
        let settings = self.settings();
        // A group may be longer than the bound; it then waits until it is alone.
        let permits = u32::try_from(commands.min(settings.in_flight_per_node)).unwrap_or(u32::MAX);
        let patience = if journey.is_impatient { settings.response_timeout } else { settings.deadline };
        let until = tokio::time::Instant::from_std(journey.started + patience);
        let _permit = match node.permits.try_acquire_many(permits) {
            Ok(permit) => permit,
            Err(_) => tokio::select! {
                // First, for it also ends the commands under way, whose permits would otherwise let us go there.
                biased;
                () = node.demoted.notified() => {
                    return LoadEnd::Failed(WireError::NotSent("the node is no longer a primary".into()));
                }
                acquired = timeout_at(until, node.permits.acquire_many(permits)) => match acquired {
                    Ok(Ok(permit)) => permit,
                    _ => return LoadEnd::Overloaded,
                },
            },
        };
        let sent = tokio::select! {
            biased;
            sent = node.send(&load.pipeline, commands) => sent,
            () = node.demoted.notified() => Err(WireError::Dropped("the node is no longer a primary".into())),
        };
        match sent {
            Ok((replies, epoch)) => LoadEnd::Replies(replies, epoch),
            Err(e) => LoadEnd::Failed(e),
        }
    }

    fn overloaded(&self, node: &Node, ticket: &Ticket, trail: &TrailOfTries) -> Error {
        let bound = self.settings().in_flight_per_node;
        let text = format!(
            "{}: {bound} commands are under way there, and none came free before the deadline",
            node.addr
        );
        // "Overloaded" promises that nothing was written.
        match trail.is_unknown() && !ticket.traits.read {
            true => {
                Error::new(ErrorKind::Unknown, format!("slot {}: {text}; before that {trail}", ticket.slot))
            }
            false => Error::new(ErrorKind::Overloaded, text),
        }
    }
}

/// Puts what waits behind an asked command where it belongs: behind it again, or first now that it is done.
fn join_behind(
    mut outcome: Outcome,
    behind: Option<(u32, Vec<PendingCommand>)>,
    answers: &BatchAnswers,
) -> Outcome {
    let Some((place, mut rest)) = behind else { return outcome };
    if let Some(unit) = outcome.units.first_mut() {
        unit.open.append(&mut rest);
    } else if let Some(why) = answers.error_at(place) {
        let why = why.context("an earlier command of its group failed");
        rest.iter().for_each(|open| answers.put(&open.ticket, Err(why.clone())));
    } else if !rest.is_empty() {
        outcome.causes.push(Cause::Ask);
        outcome.units.push(ResentUnit { open: rest, ask: None });
    }
    outcome
}
