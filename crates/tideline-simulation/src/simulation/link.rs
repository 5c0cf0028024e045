//! How an instance reaches the cluster: every request takes its time, both ways, and may be lost, doubled, late.

use std::cell::RefCell;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::{BoxFuture, join_all, pending};
use tokio::time::{Instant, sleep, sleep_until};

use super::gates::{self, At};
use super::moving::HeldUp;
use super::world::world;
use crate::cluster::simulated::Simulated;
use crate::cluster::{Answer, Batch, Epoch, NodeAddr, Request, TouchedServers, expect_a_fence, is_impatient};
use crate::error::{Error, ErrorKind, Result};
use crate::rules;

/// Tries of a request whose reply is lost; then the deadline has passed.
const TRIES_MAX: u32 = 3;
/// So long who waits for a silent node does.
const DEADLINE: Duration = Duration::from_secs(20);

tokio::task_local! {
    /// A write of the client's call that may have run, as far as its reply tells.
    static LOST: RefCell<Option<String>>;
}

/// A client's call. Gives what it came to, and what may have run of it though no reply said so.
pub(super) async fn called<T>(call: impl Future<Output = Result<T>>) -> (Result<T>, Option<String>) {
    LOST.scope(RefCell::new(None), async { (call.await, LOST.with(RefCell::take)) }).await
}

/// An instance's way to the cluster.
#[derive(Debug)]
pub(super) struct Link(pub(super) usize);

/// What goes wrong with a request.
#[derive(Debug, Clone, Copy)]
enum Fault {
    /// It never arrives.
    Lost,
    /// It is executed, the reply is lost.
    Unanswered,
    /// It arrives much later.
    Late(Duration),
}

impl Link {
    /// Waits; for ever, if the instance dies meanwhile. `on_the_way` is executed all the same, perhaps.
    async fn pause(&self, on_the_way: &[Request]) {
        let delay = world(|w| w.delay());
        self.wait(delay, on_the_way).await;
    }

    async fn wait(&self, delay: Duration, on_the_way: &[Request]) {
        match delay.is_zero() {
            true => tokio::task::yield_now().await,
            false => sleep(delay).await,
        }
        loop {
            let instance = world(|w| w.instances[self.0]);
            if instance.is_dead {
                if world(|w| w.chance(500)) {
                    execute_all(self.0, on_the_way);
                }
                return pending().await;
            }
            if instance.frozen_until <= Instant::now() {
                return;
            }
            sleep_until(instance.frozen_until).await;
        }
    }

    /// Sends an ordered group until all of it is answered.
    async fn send(&self, group: Vec<Request>) -> Vec<Result<Answer>> {
        let mut answers = Vec::with_capacity(group.len());
        let (mut failures, mut moving) = (0, HeldUp::Untouched);
        loop {
            let rest = &group[answers.len()..];
            if let Err(e) = self.answered(rest).await {
                answers.extend(rest.iter().map(|_| Err(e.clone())));
                return answers;
            }
            self.pause(rest).await;
            let is_lost = world(|w| !w.gates.is_empty()) && gates::is_lost(self.0, &rest[0]);
            if let Some(fault) = if is_lost { Some(Fault::Lost) } else { fault() } {
                match fault {
                    Fault::Lost => {}
                    Fault::Unanswered => execute_all(self.0, rest),
                    Fault::Late(after) => execute_later(self.0, after, rest.to_vec()),
                }
                failures += 1;
                let patience = world(|w| Duration::from_millis(20 + w.below(150)));
                self.wait(patience, &[]).await;
                // What a script has lost it means to be sent again.
                let is_final = failures == TRIES_MAX || (!is_lost && world(|w| w.chance(100)));
                if is_final || (rest[0].traits.once && rules::holds("draw_anew")) {
                    answers.extend(rest.iter().map(|request| Err(given_up(request))));
                    return answers;
                }
                continue;
            }
            let first = answers.len();
            if !rules::holds("stamps_first") && rest.len() == 2 && reads_stamps(&rest[0]) {
                answers = self.backwards(rest).await;
                self.pause(&[]).await;
                return answers;
            }
            for request in rest {
                if answers.len() > first && world(|w| w.chance(300)) {
                    self.pause(&[]).await;
                }
                self.pass(At::Before, Some(request)).await;
                match world(|w| w.execute(self.0, request)) {
                    Ok(answer) => {
                        self.pass(At::After, Some(request)).await;
                        answers.push(Ok(answer));
                        moving = HeldUp::Untouched;
                    }
                    Err(HeldUp::HalfWay) => {
                        moving = HeldUp::HalfWay;
                        break;
                    }
                    Err(HeldUp::Untouched) => break,
                }
            }
            self.pause(&[]).await;
            if answers.len() == group.len() {
                return answers;
            }
            if world(|w| w.faults.torn > 0 && w.chance(200)) {
                // It moves for longer than anybody waits.
                let rest = &group[answers.len()..];
                let expired = |request: &Request| match moving {
                    HeldUp::HalfWay => given_up(request),
                    HeldUp::Untouched => {
                        Error::unavailable("the slot is moving, and the deadline has passed")
                    }
                };
                answers.extend(rest.iter().map(|request| Err(expired(request))));
                return answers;
            }
            // A slot that is moving: later.
            self.wait(Duration::from_millis(5), &[]).await;
        }
    }

    /// Waits for a node that is silent, as long as the caller does. In a random history the caller may give up before
    /// it wakes, and what it has sent may lie in the node's socket until then.
    async fn answered(&self, rest: &[Request]) -> Result<()> {
        let number = world(|w| w.node_of(rest[0].slot));
        let is_silent = || world(|w| w.nodes[number].answers_nobody());
        if !is_silent() {
            return Ok(());
        }
        let (is_sent, patience) = world(|w| match w.nodes[number].is_silent {
            true => (false, DEADLINE),
            false => (w.chance(500), w.pick(&[Duration::from_millis(60), DEADLINE])),
        });
        if is_sent {
            execute_when_awake(self.0, number, rest.to_vec());
        }
        let is_tried_once = is_sent && rest[0].traits.once && rules::holds("draw_anew");
        let until = Instant::now() + patience;
        while is_silent() {
            if is_sent || !is_impatient() {
                self.wait(Duration::from_millis(20), &[]).await;
            }
            if is_impatient() || is_tried_once || Instant::now() > until {
                let unsent = || Error::unavailable("the node is silent");
                return Err(if is_sent { given_up(&rest[0]) } else { unsent() });
            }
        }
        Ok(())
    }

    /// Runs a group in the wrong order.
    async fn backwards(&self, group: &[Request]) -> Vec<Result<Answer>> {
        let mut answers = Vec::new();
        for request in group.iter().rev() {
            self.pass(At::Before, Some(request)).await;
            answers.extend(world(|w| w.execute(self.0, request)).ok().map(Ok));
            self.pass(At::After, Some(request)).await;
            self.pause(&[]).await;
        }
        answers.reverse();
        answers
    }

    /// Waits where a script has put a gate; for ever, if the instance dies there.
    async fn pass(&self, at: At, request: Option<&Request>) {
        if world(|w| w.gates.is_empty()) {
            return;
        }
        gates::pass(self.0, at, request).await;
        if world(|w| w.instances[self.0].is_dead) {
            pending().await
        }
    }

    async fn fence_one(&self, epoch: &Epoch) -> Result<()> {
        self.pause(&[]).await;
        self.pass(At::Fence, None).await;
        let number = usize::from(epoch.node().port);
        world(|w| w.note_vouching(epoch));
        if is_impatient() {
            let known = world(|w| (w.nodes[number].answers_nobody(), w.cannot_vouch(epoch)));
            expect_a_fence(epoch, known, || world(|w| w.nodes[number].epoch == *epoch))?;
        }
        if world(|w| w.nodes[number].answers_nobody()) {
            return Err(Error::unavailable("the node is silent"));
        }
        if world(|w| w.cannot_vouch(epoch) || w.is_cut_off_with(self.0, epoch)) {
            return Err(Error::of_fence(ErrorKind::Unavailable, "0 of 1 replicas answered"));
        }
        let is_same = |w: &super::world::World| w.nodes[number].epoch == *epoch;
        let is_synced = world(|w| {
            let is_same = is_same(w);
            let is_hollow =
                w.nodes[number].has_no_replica || (w.faults.hollow > 0 && w.chance(w.faults.hollow));
            w.hollow_fences += u64::from(is_hollow);
            if is_same && !is_hollow {
                w.sync(number);
            }
            is_same
        });
        self.pause(&[]).await;
        if world(|w| w.chance(w.faults.lost / 2)) {
            let text = "the replicas didn't answer in time";
            return Err(Error::of_fence(ErrorKind::Unavailable, text));
        }
        if is_synced && world(|w| is_same(w)) {
            return Ok(());
        }
        Err(Error::of_fence(ErrorKind::Conflict, format!("node {number} has failed over")))
    }
}

fn fault() -> Option<Fault> {
    world(|w| {
        let lost = w.faults.lost;
        w.chance(lost).then(|| match w.below(3) {
            0 => Fault::Lost,
            1 => Fault::Unanswered,
            _ => Fault::Late(Duration::from_millis(w.pick(&[5, 40, 150, 400]) + w.below(40))),
        })
    })
}

fn reads_stamps(request: &Request) -> bool {
    request.command.arguments().skip(2).eq([b"g", b"t", b"i", b"d"])
}

fn given_up(request: &Request) -> Error {
    if request.traits.read {
        return Error::unavailable("the reply was lost");
    }
    let name = request.command.arguments().nth(1).unwrap_or_default();
    let name = String::from_utf8_lossy(name).into_owned();
    // A home, an id, a move to the archive, a post that is back from there and stamps that are renewed before something
    // is taken back or approved are nobody's wish; an attempt counts once it is settled, and to give it up changes
    // nothing. Outside of a client's call nobody is told.
    const NOBODYS: [&str; 7] =
        ["_home_", "_clock_", "_claims_begin", "_claims_void", "_signup_begin", "_archive_", "_post_thaw"];
    let renews_ties = name.contains("_account_set") && request.command.arguments().any(|a| a == b"i");
    // With the record alone among its keys it changes no edge, no request and no remark.
    let renews_stamps =
        name.contains("_change") && request.command.arguments().nth(2).is_some_and(|keys| keys == b"1");
    if !renews_ties && !renews_stamps && !NOBODYS.iter().any(|of| name.contains(of)) {
        let _ = LOST.try_with(|lost| lost.borrow_mut().replace(name));
    }
    Error::new(ErrorKind::Unknown, "the reply was lost")
}

fn execute_all(by: usize, requests: &[Request]) {
    for request in requests {
        if world(|w| w.execute(by, request)).is_err() {
            return;
        }
    }
}

fn execute_later(by: usize, after: Duration, requests: Vec<Request>) {
    world(|w| w.late += 1);
    tokio::spawn(async move {
        sleep(after).await;
        world(|w| w.note(|| "LATE".into()));
        execute_all(by, &requests);
        world(|w| w.late -= 1);
    });
}

/// What lies in a silent node's socket runs when the node wakes, unless another one has taken its place.
fn execute_when_awake(by: usize, number: usize, requests: Vec<Request>) {
    let epoch = world(|w| {
        w.late += 1;
        w.nodes[number].epoch.clone()
    });
    tokio::spawn(async move {
        while world(|w| w.nodes[number].answers_nobody()) {
            sleep(Duration::from_millis(1)).await;
        }
        if world(|w| w.nodes[number].epoch == epoch) {
            world(|w| w.note(|| "WOKEN".into()));
            execute_all(by, &requests);
        }
        world(|w| w.late -= 1);
    });
}

impl Simulated for Link {
    fn run(&self, batch: Batch) -> BoxFuture<'_, Vec<Result<Answer>>> {
        let mut groups: Vec<Vec<Request>> = Vec::new();
        for request in batch.requests {
            match groups.last_mut() {
                Some(group) if request.traits.chained => group.push(request),
                _ => groups.push(vec![request]),
            }
        }
        async move {
            match world(|w| w.trip) {
                Duration::ZERO => {}
                trip => sleep(trip).await,
            }
            if groups.len() == 1 {
                return self.send(groups.pop().unwrap_or_default()).await;
            }
            join_all(groups.into_iter().map(|group| self.send(group))).await.concat()
        }
        .boxed()
    }

    fn fence<'a>(&'a self, touched: &'a TouchedServers) -> BoxFuture<'a, Result<()>> {
        if !rules::holds("fence") {
            return async { Ok(()) }.boxed();
        }
        let rounds = touched.epochs().iter().map(|epoch| self.fence_one(epoch));
        join_all(rounds).map(|rounds| rounds.into_iter().collect()).boxed()
    }

    fn now_ms(&self) -> u64 {
        world(|w| w.now_ms())
    }

    fn epoch_of(&self, node: &NodeAddr) -> Epoch {
        world(|w| w.epoch_of(self.0, usize::from(node.port)))
    }

    fn is_held_up(&self, slot: u16) -> bool {
        self.is_away(slot) || world(|w| w.nodes[w.node_of(slot)].cannot_vouch)
    }

    fn is_away(&self, slot: u16) -> bool {
        world(|w| w.nodes[w.node_of(slot)].answers_nobody())
    }
}
