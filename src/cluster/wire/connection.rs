//! One connection: any number of callers send pipelines, each gets its replies.
//!
//! A task writes what callers send, as much as is there in one system call; another one reads. Replies come in the
//! order of the commands, so a queue says whose they are.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use super::{Command, Pipeline, Reply, WireError};

/// Pipelines that wait to be written; callers behind them wait.
const QUEUE_MAX: usize = 256;
/// Bytes gathered for one system call.
const WRITE_AT_ONCE: usize = 64 * 1024;
/// Bytes that the buffer for replies grows by.
const READ_AT_ONCE: usize = 64 * 1024;

/// One open connection; clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Wire {
    sender: mpsc::Sender<Message>,
    response_timeout: Duration,
    _tasks: Arc<Tasks>,
}

/// Ends the connection with its last holder.
#[derive(Debug)]
struct Tasks([JoinHandle<()>; 2]);

impl Drop for Tasks {
    fn drop(&mut self) {
        self.0.iter().for_each(JoinHandle::abort);
    }
}

type Outcome = Result<Vec<Reply>, WireError>;

#[derive(Debug)]
struct Message {
    encoded: Vec<u8>,
    commands: usize,
    caller: oneshot::Sender<Outcome>,
}

/// A pipeline that was written, and the replies to it so far.
struct Waiting {
    replies: Vec<Reply>,
    commands: usize,
    caller: oneshot::Sender<Outcome>,
}

/// Pipelines that were written, oldest first; `None` once the connection is broken.
type Queue = Arc<Mutex<Option<VecDeque<Waiting>>>>;

impl Wire {
    /// Takes over an open stream.
    pub(super) fn new(
        stream: impl AsyncRead + AsyncWrite + Send + 'static,
        response_timeout: Duration,
    ) -> Self {
        let (reader, writer) = tokio::io::split(stream);
        let (sender, receiver) = mpsc::channel(QUEUE_MAX);
        let queue: Queue = Arc::new(Mutex::new(Some(VecDeque::new())));
        let writing = tokio::spawn(write(writer, receiver, queue.clone()));
        let reading = tokio::spawn(read(reader, queue));
        Self { sender, response_timeout, _tasks: Arc::new(Tasks([writing, reading])) }
    }

    /// Sends all commands as one pipeline and waits for all replies, errors of single commands among them.
    pub(crate) async fn send(&self, pipeline: &Pipeline) -> Outcome {
        let (caller, answer) = oneshot::channel();
        let message = Message { encoded: pipeline.encoded.clone(), commands: pipeline.len(), caller };
        let exchange = async {
            if self.sender.send(message).await.is_err() {
                return Err(WireError::NotSent("the connection is closed".into()));
            }
            answer.await.unwrap_or_else(|_| Err(WireError::Dropped("the connection was closed".into())))
        };
        tokio::time::timeout(self.response_timeout, exchange).await.unwrap_or(Err(WireError::Timeout))
    }

    /// Sends one command.
    pub(crate) async fn call(&self, command: &Command) -> Result<Reply, WireError> {
        let mut pipeline = Pipeline::with_capacity(1);
        pipeline.push(command);
        let replies = self.send(&pipeline).await?;
        replies.into_iter().next().ok_or_else(|| WireError::Dropped("no reply".into()))
    }
}

async fn write<S: AsyncWrite>(mut writer: WriteHalf<S>, mut messages: mpsc::Receiver<Message>, queue: Queue) {
    let mut buffer = Vec::new();
    while let Some(first) = messages.recv().await {
        // Whoever else was woken together with this caller goes first: its commands come along in the same system call.
        tokio::task::yield_now().await;
        buffer.clear();
        let mut next = Some(first);
        while let Some(message) = next {
            // Who has gone away before his commands were written gets nothing done.
            if !message.caller.is_closed() {
                let Message { encoded, commands, caller } = message;
                let waiting = Waiting { replies: Vec::with_capacity(commands), commands, caller };
                match lock(&queue).as_mut() {
                    Some(queue) => queue.push_back(waiting),
                    None => {
                        drop(waiting.caller.send(Err(WireError::NotSent("the connection is closed".into()))));
                        return;
                    }
                }
                if buffer.is_empty() {
                    buffer = encoded;
                } else {
                    buffer.extend_from_slice(&encoded);
                }
            }
            next = if buffer.len() < WRITE_AT_ONCE { messages.try_recv().ok() } else { None };
        }
        let written = async {
            writer.write_all(&buffer).await?;
            writer.flush().await
        };
        if let Err(e) = written.await {
            return fail(&queue, &e.to_string());
        }
    }
}

async fn read<S: AsyncRead>(mut reader: ReadHalf<S>, queue: Queue) {
    let mut buffer = Vec::new();
    let why = loop {
        buffer.reserve(READ_AT_ONCE);
        match reader.read_buf(&mut buffer).await {
            Ok(0) => break "the server closed the connection".to_owned(),
            Ok(_) => {}
            Err(e) => break e.to_string(),
        }
        match hand_out(&mut buffer, &queue) {
            Ok(()) => {}
            Err(why) => break why,
        }
    };
    fail(&queue, &why);
}

/// Gives every reply that is there as a whole to whom it belongs.
fn hand_out(buffer: &mut Vec<u8>, queue: &Queue) -> Result<(), String> {
    let mut queue = lock(queue);
    let Some(queue) = queue.as_mut() else { return Err("the connection is closed".into()) };
    let mut at = 0;
    while at < buffer.len() {
        let Some((reply, length)) = Reply::read(&buffer[at..]).map_err(|e| e.to_string())? else { break };
        at += length;
        let Some(oldest) = queue.front_mut() else { return Err("a reply that nobody asked for".into()) };
        oldest.replies.push(reply);
        if oldest.replies.len() == oldest.commands
            && let Some(done) = queue.pop_front()
        {
            // Who has gone away doesn't need it any more.
            drop(done.caller.send(Ok(done.replies)));
        }
    }
    buffer.drain(..at);
    Ok(())
}

/// Tells everybody who waits that no reply will come.
fn fail(queue: &Queue, why: &str) {
    let waiting = lock(queue).take();
    for waiting in waiting.into_iter().flatten() {
        drop(waiting.caller.send(Err(WireError::Dropped(why.to_owned()))));
    }
}

fn lock(queue: &Queue) -> MutexGuard<'_, Option<VecDeque<Waiting>>> {
    queue.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::duplex;

    fn pipeline(commands: &[&str]) -> Pipeline {
        let mut pipeline = Pipeline::default();
        commands.iter().for_each(|c| pipeline.push(&Command::new(c)));
        pipeline
    }

    #[tokio::test]
    async fn each_caller_gets_his_own_replies_however_they_are_cut() {
        let (ours, mut theirs) = duplex(1_000);
        let wire = Wire::new(ours, Duration::from_secs(5));
        let (one, two) = (wire.clone(), wire.clone());
        let one = tokio::spawn(async move { one.send(&pipeline(&["A", "B"])).await });
        tokio::task::yield_now().await;
        let two = tokio::spawn(async move { two.send(&pipeline(&["C"])).await });
        for piece in [":1\r", "\n:2\r\n$", "1\r\nx\r\n"] {
            tokio::time::sleep(Duration::from_millis(5)).await;
            theirs.write_all(piece.as_bytes()).await.unwrap();
        }
        let first: Vec<i64> = one.await.unwrap().unwrap().iter().map(|r| r.int().unwrap()).collect();
        assert_eq!(first, [1, 2]);
        assert_eq!(two.await.unwrap().unwrap()[0].bytes().unwrap(), b"x");
    }

    #[tokio::test]
    async fn a_broken_connection_tells_who_waits_that_his_commands_may_have_run() {
        let (ours, theirs) = duplex(1_000);
        let wire = Wire::new(ours, Duration::from_secs(5));
        let waiting = wire.clone();
        let waiting = tokio::spawn(async move { waiting.send(&pipeline(&["A"])).await });
        tokio::time::sleep(Duration::from_millis(5)).await;
        drop(theirs);
        assert!(matches!(waiting.await.unwrap(), Err(WireError::Dropped(_))));
        // What comes later was not sent at all.
        let later = wire.send(&pipeline(&["B"])).await;
        assert!(matches!(later, Err(WireError::NotSent(_) | WireError::Dropped(_))), "{later:?}");
    }

    #[tokio::test]
    async fn silence_ends_at_the_timeout_and_garbage_at_once() {
        let (ours, mut theirs) = duplex(1_000);
        let wire = Wire::new(ours, Duration::from_millis(20));
        assert!(matches!(wire.send(&pipeline(&["A"])).await, Err(WireError::Timeout)));
        let (ours, mut other) = duplex(1_000);
        let garbled = Wire::new(ours, Duration::from_secs(5));
        other.write_all(b"HTTP/1.1 400 Bad Request\r\n").await.unwrap();
        assert!(matches!(
            garbled.send(&pipeline(&["A"])).await,
            Err(WireError::Dropped(_) | WireError::NotSent(_))
        ));
        theirs.write_all(b":1\r\n").await.unwrap();
    }
}
