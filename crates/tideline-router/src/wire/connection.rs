//! One connection: any number of callers send pipelines, each gets its replies.
//!
//! A loop writes what callers send, as much as is there in one system call; another one reads. Replies come in the
//! order of the commands, so a queue says whose they are. The reading loop also looks now and then whether somebody has
//! waited for too long: a timer for each pipeline costs more than the rest of sending it.
//!
//! How long somebody has waited is counted in such looks, not by a clock: between two of them this loop reads. A
//! process that was not scheduled for a while has replies that it hasn't come to yet; by the clock all of its servers
//! would be silent.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval};

use super::{Command, Pipeline, Reply, WireError};

/// Bytes gathered for one system call.
const WRITE_AT_ONCE: usize = 64 * 1024;
/// Bytes that the buffer for replies grows by.
const READ_AT_ONCE: usize = 64 * 1024;
/// So often within the longest wait is looked for those that have waited for too long. One look more ends a wait, for
/// the first one may come right after it has begun.
const LOOKS_PER_TIMEOUT: u32 = 4;

/// One open connection; clones share it.
#[derive(Clone, Debug)]
pub struct Wire {
    queues: Arc<Queues>,
    _loops: Arc<ConnectionLoops>,
}

/// Ends the connection with its last holder.
#[derive(Debug)]
struct ConnectionLoops([JoinHandle<()>; 2]);

impl Drop for ConnectionLoops {
    fn drop(&mut self) {
        self.0.iter().for_each(JoinHandle::abort);
    }
}

type PipelineOutcome = Result<Vec<Reply>, WireError>;

/// A pipeline that is to be written.
#[derive(Debug)]
struct Message {
    encoded: Vec<u8>,
    commands: usize,
    /// How many looks there had been by then.
    since: u64,
    caller: oneshot::Sender<PipelineOutcome>,
}

/// A pipeline that was written, and the replies to it so far.
#[derive(Debug)]
struct WaitingPipeline {
    replies: Vec<Reply>,
    commands: usize,
    /// How many looks there had been by then.
    since: u64,
    /// `None`: it was told that it took too long.
    caller: Option<oneshot::Sender<PipelineOutcome>>,
}

/// Requests that callers have handed in. A bound on what is under way at a node bounds these, too.
#[derive(Debug)]
struct Queues {
    /// What isn't written yet, oldest first; `None` once the connection is broken.
    unsent: Mutex<Option<VecDeque<Message>>>,
    /// Rings when something comes that isn't written yet.
    filled: Notify,
    /// What was written, oldest first; `None` once the connection is broken.
    sent: Mutex<Option<VecDeque<WaitingPipeline>>>,
    /// Looks so far for those that have waited for too long.
    looks: AtomicU64,
}

impl Wire {
    /// Takes over an open stream.
    pub(super) fn new(
        stream: impl AsyncRead + AsyncWrite + Send + 'static,
        response_timeout: Duration,
    ) -> Self {
        let (reader, writer) = tokio::io::split(stream);
        let queues = Arc::new(Queues {
            unsent: Mutex::new(Some(VecDeque::new())),
            filled: Notify::new(),
            sent: Mutex::new(Some(VecDeque::new())),
            looks: AtomicU64::new(0),
        });
        let writing = tokio::spawn(write(writer, queues.clone()));
        let reading = tokio::spawn(read(reader, queues.clone(), response_timeout));
        Self { queues, _loops: Arc::new(ConnectionLoops([writing, reading])) }
    }

    /// Sends all commands as one pipeline and waits for all replies, errors of single commands among them.
    pub async fn send(&self, pipeline: &Pipeline) -> PipelineOutcome {
        let (caller, answer) = oneshot::channel();
        let (encoded, commands) = (pipeline.encoded.clone(), pipeline.len());
        let since = self.queues.looks.load(Ordering::Relaxed);
        self.queues.add(Message { encoded, commands, since, caller })?;
        answer.await.unwrap_or_else(|_| Err(WireError::Dropped("the connection was closed".into())))
    }

    /// Sends one command.
    pub async fn call(&self, command: &Command) -> Result<Reply, WireError> {
        let mut pipeline = Pipeline::with_capacity(1);
        pipeline.push(command);
        let replies = self.send(&pipeline).await?;
        replies.into_iter().next().ok_or_else(|| WireError::Dropped("no reply".into()))
    }
}

impl Queues {
    fn add(&self, message: Message) -> Result<(), WireError> {
        let mut unsent = lock(&self.unsent);
        let Some(unsent) = unsent.as_mut() else {
            return Err(WireError::NotSent("the connection is closed".into()));
        };
        unsent.push_back(message);
        if unsent.len() == 1 {
            self.filled.notify_one();
        }
        Ok(())
    }

    /// Gathers what is to be written next at the buffer's end; from now on replies to it are waited for. `false`: the
    /// connection is broken.
    fn gather(&self, buffer: &mut Vec<u8>) -> bool {
        let (mut unsent, mut sent) = (lock(&self.unsent), lock(&self.sent));
        let (Some(unsent), Some(sent)) = (unsent.as_mut(), sent.as_mut()) else { return false };
        while buffer.len() < WRITE_AT_ONCE
            && let Some(message) = unsent.pop_front()
        {
            // Who has gone away before his commands were written gets nothing done.
            if !message.caller.is_closed() {
                let Message { encoded, commands, since, caller } = message;
                buffer.extend_from_slice(&encoded);
                let replies = Vec::with_capacity(commands);
                sent.push_back(WaitingPipeline { replies, commands, since, caller: Some(caller) });
            }
        }
        true
    }

    fn is_all_sent(&self) -> bool {
        lock(&self.unsent).as_ref().is_some_and(VecDeque::is_empty)
    }

    /// Gives every reply that is there as a whole to whom it belongs.
    fn hand_out(&self, buffer: &mut Vec<u8>) -> Result<(), String> {
        let mut sent = lock(&self.sent);
        let Some(sent) = sent.as_mut() else { return Err("the connection is closed".into()) };
        let mut at = 0;
        while at < buffer.len() {
            let Some((reply, length)) = Reply::read(&buffer[at..]).map_err(|e| e.to_string())? else { break };
            at += length;
            let Some(oldest) = sent.front_mut() else { return Err("a reply that nobody asked for".into()) };
            oldest.replies.push(reply);
            if oldest.replies.len() == oldest.commands
                && let Some(WaitingPipeline { replies, caller: Some(caller), .. }) = sent.pop_front()
            {
                // Who has gone away doesn't need it any more.
                drop(caller.send(Ok(replies)));
            }
        }
        buffer.drain(..at);
        Ok(())
    }

    /// One look more: tells those who have waited for too long. What was not written yet never will be.
    fn look(&self) {
        let looks = self.looks.fetch_add(1, Ordering::Relaxed) + 1;
        let is_over = |since: &u64| looks - since > u64::from(LOOKS_PER_TIMEOUT);
        let tell = |caller: oneshot::Sender<PipelineOutcome>| drop(caller.send(Err(WireError::Timeout)));
        if let Some(unsent) = lock(&self.unsent).as_mut() {
            // In the order in which they came.
            while unsent.front().is_some_and(|message| is_over(&message.since)) {
                unsent.pop_front().into_iter().for_each(|message| tell(message.caller));
            }
        }
        for waiting in lock(&self.sent).iter_mut().flatten().take_while(|waiting| is_over(&waiting.since)) {
            waiting.caller.take().into_iter().for_each(tell);
        }
    }

    /// Tells everybody who waits that no reply will come.
    fn fail(&self, why: &str) {
        let (unsent, sent) = (lock(&self.unsent).take(), lock(&self.sent).take());
        for message in unsent.into_iter().flatten() {
            drop(message.caller.send(Err(WireError::NotSent(why.to_owned()))));
        }
        for caller in sent.into_iter().flatten().filter_map(|waiting| waiting.caller) {
            drop(caller.send(Err(WireError::Dropped(why.to_owned()))));
        }
    }
}

async fn write<S: AsyncWrite>(mut writer: WriteHalf<S>, queues: Arc<Queues>) {
    let mut buffer = Vec::new();
    loop {
        if queues.is_all_sent() {
            queues.filled.notified().await;
        }
        // Whoever else was woken together with this caller goes first: its commands come along in the same system call.
        tokio::task::yield_now().await;
        buffer.clear();
        if !queues.gather(&mut buffer) {
            return;
        }
        let written = async {
            writer.write_all(&buffer).await?;
            writer.flush().await
        };
        if let Err(e) = written.await {
            return queues.fail(&e.to_string());
        }
    }
}

async fn read<S: AsyncRead>(mut reader: ReadHalf<S>, queues: Arc<Queues>, response_timeout: Duration) {
    let mut buffer = Vec::new();
    let mut look = interval((response_timeout / LOOKS_PER_TIMEOUT).max(Duration::from_millis(1)));
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let why = loop {
        buffer.reserve(READ_AT_ONCE);
        let read = tokio::select! {
            biased;
            _ = look.tick() => {
                queues.look();
                continue;
            }
            read = reader.read_buf(&mut buffer) => read,
        };
        match read {
            Ok(0) => break "the server closed the connection".to_owned(),
            Ok(_) => {}
            Err(e) => break e.to_string(),
        }
        match queues.hand_out(&mut buffer) {
            Ok(()) => {}
            Err(why) => break why,
        }
    };
    queues.fail(&why);
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{DuplexStream, duplex};

    /// Nothing here times out by itself.
    const NEVER: Duration = Duration::from_secs(3_600);

    fn pipeline(commands: &[&str]) -> Pipeline {
        let mut pipeline = Pipeline::default();
        commands.iter().for_each(|c| pipeline.push(&Command::new(c)));
        pipeline
    }

    /// Sends these commands beside the test.
    fn send(wire: &Wire, commands: &[&str]) -> JoinHandle<PipelineOutcome> {
        let (wire, pipeline) = (wire.clone(), pipeline(commands));
        tokio::spawn(async move { wire.send(&pipeline).await })
    }

    /// Lets time run out for whoever waits now.
    fn time_out(wire: &Wire) {
        (0..=LOOKS_PER_TIMEOUT).for_each(|_| wire.queues.look());
    }

    /// Waits until so many commands of one letter have come: from then on their replies are waited for.
    async fn arrived(server: &mut DuplexStream, commands: usize) {
        server.read_exact(&mut vec![0; commands * b"*1\r\n$1\r\nA\r\n".len()]).await.unwrap();
    }

    #[tokio::test]
    async fn each_caller_gets_his_own_replies_however_they_are_cut() {
        for bytes_at_once in 1..20 {
            let (ours, mut theirs) = duplex(bytes_at_once);
            let wire = Wire::new(ours, NEVER);
            let one = send(&wire, &["A", "B"]);
            arrived(&mut theirs, 2).await;
            let two = send(&wire, &["C"]);
            arrived(&mut theirs, 1).await;
            theirs.write_all(b":1\r\n:2\r\n$1\r\nx\r\n").await.unwrap();
            let first: Vec<i64> = one.await.unwrap().unwrap().iter().map(|r| r.int().unwrap()).collect();
            assert_eq!(first, [1, 2]);
            assert_eq!(two.await.unwrap().unwrap()[0].bytes().unwrap(), b"x");
        }
    }

    #[tokio::test]
    async fn a_broken_connection_tells_who_waits_that_his_commands_may_have_run() {
        let (ours, mut theirs) = duplex(1_000);
        let wire = Wire::new(ours, NEVER);
        let waiting = send(&wire, &["A"]);
        arrived(&mut theirs, 1).await;
        drop(theirs);
        assert!(matches!(waiting.await.unwrap(), Err(WireError::Dropped(_))));
        // What comes later was not sent at all.
        let later = wire.send(&pipeline(&["B"])).await;
        assert!(matches!(later, Err(WireError::NotSent(_) | WireError::Dropped(_))), "{later:?}");
    }

    #[tokio::test]
    async fn a_reply_that_comes_too_late_is_nobodys() {
        let (ours, mut theirs) = duplex(1_000);
        let wire = Wire::new(ours, NEVER);
        let late = send(&wire, &["A"]);
        arrived(&mut theirs, 1).await;
        time_out(&wire);
        assert!(matches!(late.await.unwrap(), Err(WireError::Timeout)));
        let next = send(&wire, &["B"]);
        arrived(&mut theirs, 1).await;
        theirs.write_all(b":1\r\n:2\r\n").await.unwrap();
        assert_eq!(next.await.unwrap().unwrap()[0].int().unwrap(), 2);
    }

    #[tokio::test]
    async fn what_waits_behind_a_full_connection_times_out_and_is_never_written() {
        let long = "L".repeat(100);
        let (ours, mut theirs) = duplex(50);
        let wire = Wire::new(ours, NEVER);
        let stuck = send(&wire, &[&long]);
        // It is being written: what comes now stays behind it.
        theirs.read_exact(&mut [0]).await.unwrap();
        let behind = send(&wire, &["BEHIND"]);
        let is_queued = || lock(&wire.queues.unsent).as_ref().is_some_and(|unsent| unsent.len() == 1);
        while !is_queued() {
            tokio::task::yield_now().await;
        }
        time_out(&wire);
        assert!(matches!(behind.await.unwrap(), Err(WireError::Timeout)));
        assert!(matches!(stuck.await.unwrap(), Err(WireError::Timeout)));
        let last = send(&wire, &["LAST"]);
        let mut sent = Vec::new();
        while !sent.ends_with(b"LAST\r\n") {
            theirs.read_buf(&mut sent).await.unwrap();
        }
        assert!(!sent.windows(6).any(|bytes| bytes == b"BEHIND"), "{}", sent.escape_ascii());
        drop(last);
    }

    #[tokio::test]
    async fn silence_ends_at_the_timeout_and_garbage_at_once() {
        let (ours, mut theirs) = duplex(1_000);
        let wire = Wire::new(ours, Duration::from_millis(20));
        assert!(matches!(wire.send(&pipeline(&["A"])).await, Err(WireError::Timeout)));
        let (ours, mut other) = duplex(1_000);
        let garbled = Wire::new(ours, NEVER);
        other.write_all(b"HTTP/1.1 400 Bad Request\r\n").await.unwrap();
        assert!(matches!(
            garbled.send(&pipeline(&["A"])).await,
            Err(WireError::Dropped(_) | WireError::NotSent(_))
        ));
        theirs.write_all(b":1\r\n").await.unwrap();
    }

    #[tokio::test]
    async fn who_was_not_scheduled_for_long_has_its_replies_and_calls_nobody_silent() {
        // Thirty-six clients of one thread, on a machine with much else to do: their servers had answered in time, and
        // each client that came to read that later than its timeout said that no server answered.
        let (ours, mut theirs) = duplex(1_000);
        let timeout = Duration::from_millis(20);
        let wire = Wire::new(ours, timeout);
        let waiting = send(&wire, &["A"]);
        arrived(&mut theirs, 1).await;
        std::thread::sleep(timeout * 3);
        // The timer is noticed first, and then what has come.
        tokio::task::yield_now().await;
        theirs.write_all(b":1\r\n").await.unwrap();
        assert_eq!(waiting.await.unwrap().unwrap()[0].int().unwrap(), 1);
    }
}
