//! An instance as a process of its own: it reads calls as lines of JSON, and answers as they are done.

use std::collections::HashMap;
use std::process::Stdio;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use serde::{Deserialize, Serialize};
use tideline::archive::Archive;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::{mpsc, oneshot};

use super::args::Sabotage;
use super::call::Call;
use super::chaos::clocks::{INSTANCE, name};
use super::perform::Performer;
use super::setup::Setup;
use super::told::Reply;

/// How long an instance may take to be ready, ...
const START_MAX: Duration = Duration::from_secs(30);
/// ... and how long it is started again and again: servers may be failing, or slow, until one gets through.
const STARTS_MAX: Duration = Duration::from_secs(120);
/// Between two of these.
const START_AGAIN: Duration = Duration::from_millis(200);

/// A call on its way.
#[derive(Debug, Serialize, Deserialize)]
struct Numbered<T> {
    number: u64,
    what: T,
}

/// What befalls an instance while a call is under way there, or when one has just ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Blow {
    Kill,
    /// Killed as soon as it has said of a post that everybody has it: nobody is left who could still deliver it.
    KillDelivered,
    Freeze,
    /// Frozen for long: whoever waits is told that it is gone, and nobody hears of it any more. Nothing is being
    /// written.
    Sleep,
    /// The same in the middle of a write, or of several, with which it goes on minutes later, when their callers have
    /// asked somebody else and gone on.
    SleepInWrite,
}

impl Blow {
    /// Whether it may fall while these calls are under way.
    fn may_meet(self, calls: &mut dyn Iterator<Item = &Call>) -> bool {
        let mut writes = calls.filter(|call| call.changes()).peekable();
        match self {
            Self::Kill | Self::KillDelivered | Self::Freeze => true,
            Self::Sleep => writes.peek().is_none(),
            Self::SleepInWrite => writes.peek().is_some() && writes.all(Call::may_come_late),
        }
    }
}

/// Calls under way, and who waits for the answer.
type Waiting = HashMap<u64, (Call, oneshot::Sender<Reply>)>;

/// A process with an engine. It ends with this value, and when its standard input closes.
#[derive(Debug)]
pub(crate) struct Worker {
    child: Mutex<Child>,
    pid: Option<u32>,
    calls: mpsc::UnboundedSender<Vec<u8>>,
    /// `None`: it is gone.
    waiting: Arc<Mutex<(u64, Option<Waiting>)>>,
    /// What it had under way when it was sent to sleep, and which of these it has not ended since.
    asleep: Arc<Mutex<HashMap<u64, Call>>>,
}

/// Starts something, again where that fails for a while, as long as it is needed.
async fn started<T>(
    start: impl AsyncFn() -> anyhow::Result<T>,
    is_needed: impl Fn() -> bool,
) -> anyhow::Result<Option<T>> {
    let since = Instant::now();
    while is_needed() {
        match start().await {
            Ok(started) => return Ok(Some(started)),
            Err(e) if since.elapsed() > STARTS_MAX => return Err(e),
            Err(e) => tracing::debug!("an instance is started again: {e:#}"),
        }
        tokio::time::sleep(START_AGAIN).await;
    }
    Ok(None)
}

/// Starts an instance in this process; a hasty one, which asks each server once, again where one was slow.
pub(super) async fn started_here(
    setup: &Setup,
    archive: Option<Arc<dyn Archive>>,
) -> anyhow::Result<Performer> {
    let start = async || Ok(Performer::new(setup, archive.clone()).await?);
    if setup.sabotage != Some(Sabotage::Hasty) {
        return start().await;
    }
    started(start, || true).await?.context("an instance that nobody needs was not started")
}

impl Worker {
    /// Starts the one that has that number in turn, and waits until its engine has started. `None`: it isn't needed any
    /// more.
    pub(crate) async fn start_while(
        setup: &Setup,
        number: usize,
        is_needed: impl Fn() -> bool,
    ) -> anyhow::Result<Option<Self>> {
        started(async || Self::start(setup, number).await, is_needed).await
    }

    /// The same of one that is needed in any case.
    pub(crate) async fn started(setup: &Setup, number: usize) -> anyhow::Result<Self> {
        Self::start_while(setup, number, || true).await?.context("it is needed in any case")
    }

    async fn start(setup: &Setup, number: usize) -> anyhow::Result<Self> {
        let clock = setup.clocks.as_ref().map(|clocks| clocks.variables(&name(INSTANCE, number)));
        let program = match setup.other_build(number) {
            Some(program) => program.to_owned(),
            None => std::env::current_exe().context("this program's own file is not known")?,
        };
        let mut child = Command::new(&program)
            .arg("verify-worker")
            // Under faults every task in every instance warns again and again.
            .env("RUST_LOG", std::env::var("RUST_LOG").unwrap_or_else(|_| "error".to_owned()))
            .envs(clock.into_iter().flatten())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("an instance could not be started: {}", program.display()))?;
        let (Some(mut input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            anyhow::bail!("an instance has no standard input or output");
        };
        // Not as an argument, which everybody on the machine can read: it may hold a password.
        let mut line = serde_json::to_vec(setup)?;
        line.push(b'\n');
        input.write_all(&line).await.context("an instance could not be told how it is set up")?;
        let mut output = BufReader::new(output);
        let mut ready = String::new();
        tokio::time::timeout(START_MAX, output.read_line(&mut ready))
            .await
            .context("an instance doesn't start")??;
        anyhow::ensure!(ready.trim() == "ready", "an instance said {ready:?} instead of being ready");
        let (calls, receiver) = mpsc::unbounded_channel();
        let waiting = Arc::new(Mutex::new((0, Some(Waiting::new()))));
        tokio::spawn(send(input, receiver));
        let asleep = Arc::new(Mutex::default());
        tokio::spawn(receive(output, waiting.clone(), asleep.clone()));
        let pid = child.id();
        Ok(Self { child: Mutex::new(child), pid, calls, waiting, asleep })
    }

    /// Sends a call; `None`: it is gone. The answer comes with what is given back, unless it is gone then.
    pub(crate) fn send(&self, call: Call) -> Option<oneshot::Receiver<Reply>> {
        let (sender, receiver) = oneshot::channel();
        let number = {
            let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            waiting.0 += 1;
            let number = waiting.0;
            waiting.1.as_mut()?.insert(number, (call.clone(), sender));
            number
        };
        let mut line = serde_json::to_vec(&Numbered { number, what: call }).ok()?;
        line.push(b'\n');
        self.calls.send(line).ok()?;
        Some(receiver)
    }

    /// Strikes it, if that may befall it now. No call comes in between: it would wait in the pipe of one that sleeps,
    /// and be carried out when that wakes, whatever it is.
    pub(crate) fn suffer(&self, blow: Blow) -> bool {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let may = |calls: &Waiting| blow.may_meet(&mut calls.values().map(|(call, _)| call));
        let needs_call = blow != Blow::KillDelivered;
        if !waiting.1.as_ref().is_some_and(|calls| !(needs_call && calls.is_empty()) && may(calls)) {
            return false;
        }
        match blow {
            Blow::Kill | Blow::KillDelivered => {
                self.kill();
                // From now on, not from the end of its pipe on: else another blow would fall on the dead.
                waiting.1 = None;
            }
            Blow::Freeze => self.freeze(true),
            Blow::Sleep | Blow::SleepInWrite => {
                self.freeze(true);
                let calls = waiting.1.take().into_iter().flatten();
                let writes = calls.filter(|(_, (call, _))| call.changes());
                self.asleep().extend(writes.map(|(number, (call, _))| (number, call)));
            }
        }
        true
    }

    fn asleep(&self) -> MutexGuard<'_, HashMap<u64, Call>> {
        self.asleep.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The writes that it has under way although it was sent to sleep.
    pub(crate) fn late_writes(&self) -> Vec<Call> {
        self.asleep().values().cloned().collect()
    }

    /// Ends it as a crash would. Whoever waits for an answer hears that it is gone.
    pub(crate) fn kill(&self) {
        let mut child = self.child.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(e) = child.start_kill() {
            tracing::warn!("an instance could not be killed: {e}");
        }
    }

    /// Stops it in its tracks, or lets it go on.
    pub(crate) fn freeze(&self, is_frozen: bool) {
        let signal = if is_frozen { rustix::process::Signal::STOP } else { rustix::process::Signal::CONT };
        let pid = self.pid.and_then(|pid| i32::try_from(pid).ok()).and_then(rustix::process::Pid::from_raw);
        // Our own child, not waited for yet: its number can't belong to anybody else.
        if let Some(Err(e)) = pid.map(|pid| rustix::process::kill_process(pid, signal)) {
            tracing::warn!("an instance could not be stopped or woken: {e}");
        }
    }
}

async fn send(mut input: ChildStdin, mut calls: mpsc::UnboundedReceiver<Vec<u8>>) {
    while let Some(line) = calls.recv().await {
        if input.write_all(&line).await.is_err() {
            return;
        }
    }
}

async fn receive(
    output: BufReader<ChildStdout>,
    waiting: Arc<Mutex<(u64, Option<Waiting>)>>,
    asleep: Arc<Mutex<HashMap<u64, Call>>>,
) {
    let mut lines = output.lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let Ok(Numbered { number, what }) = serde_json::from_str::<Numbered<Reply>>(&line) else { break };
        asleep.lock().unwrap_or_else(PoisonError::into_inner).remove(&number);
        let mut waiting = waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, sender)) = waiting.1.as_mut().and_then(|waiting| waiting.remove(&number)) {
            let _ = sender.send(what);
        }
    }
    // Gone: whoever waits hears that, and so does whoever comes later.
    waiting.lock().unwrap_or_else(PoisonError::into_inner).1 = None;
}

/// What `verify-worker` does: reads how it is set up, and answers calls until standard input ends.
pub(crate) async fn serve() -> anyhow::Result<()> {
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    let setup = lines.next_line().await?.context("how it is set up, as a line of JSON on standard input")?;
    let setup: Setup = serde_json::from_str(&setup)?;
    let performer = Arc::new(Performer::new(&setup, setup.archive().await?).await?);
    if setup.sabotage == Some(Sabotage::Awake) {
        let performer = performer.clone();
        tokio::spawn(async move { performer.follow_when_awake().await });
    }
    let (answers, mut receiver) = mpsc::unbounded_channel::<Vec<u8>>();
    let printer = tokio::spawn(async move {
        let mut output = tokio::io::stdout();
        while let Some(line) = receiver.recv().await {
            if output.write_all(&line).await.is_err() || output.flush().await.is_err() {
                return;
            }
        }
    });
    let _ = answers.send(b"ready\n".to_vec());
    while let Some(line) = lines.next_line().await? {
        let Numbered { number, what } = serde_json::from_str::<Numbered<Call>>(&line)?;
        let (performer, answers) = (performer.clone(), answers.clone());
        tokio::spawn(async move {
            let what = performer.perform(what).await;
            if let Ok(mut line) = serde_json::to_vec(&Numbered { number, what }) {
                line.push(b'\n');
                let _ = answers.send(line);
            }
        });
    }
    drop(answers);
    printer.abort();
    // Whatever is under way is left behind, as by a crash.
    std::process::exit(0)
}
