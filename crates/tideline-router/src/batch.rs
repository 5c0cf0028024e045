//! Requests that callers hand to the router, and the answers that they get back.

use super::epoch::Epoch;
use super::wire::{Command, Reply};
use tideline_model::error::{Error, ErrorKind, Result};

/// One command with the slot that all its keys lie in, and how it may be repeated.
#[derive(Debug, Clone)]
pub struct Request {
    #[doc(hidden)]
    pub command: Command,
    #[doc(hidden)]
    pub slot: u16,
    #[doc(hidden)]
    pub traits: Traits,
}

/// The ways in which a request may be sent again.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Traits {
    /// Changes nothing: a lost reply leaves no doubt behind.
    pub read: bool,
    /// Touches keys that it doesn't declare: must never be sent with ASKING.
    pub undeclared: bool,
    /// Carries random bytes that must not be written twice: after a lost reply the caller draws anew.
    pub once: bool,
    /// Has another way in a moving slot: the caller gets TRYAGAIN as the answer at once.
    pub unless_moving: bool,
    /// Runs after the request before it, on the same connection.
    pub chained: bool,
}

impl Request {
    /// A command that changes something; it must have the same effect when it runs twice.
    #[inline]
    pub fn write(slot: u16, command: Command) -> Self {
        Self { command, slot, traits: Traits::default() }
    }

    /// A command that changes nothing.
    #[inline]
    pub fn read(slot: u16, command: Command) -> Self {
        Self { command, slot, traits: Traits { read: true, ..Traits::default() } }
    }

    /// Flags a function that touches keys which it doesn't declare: while its slot moves it waits, for at the
    /// target a key that has not moved yet looks missing.
    #[must_use]
    pub fn touching_undeclared_keys(mut self) -> Self {
        self.traits.undeclared = true;
        self
    }

    /// Flags a function with undeclared keys for which the caller has another way while its slot moves: it gets
    /// that reply as the answer ([`Answer::is_moving`]) at once. Some of its writes may have been done.
    #[must_use]
    pub fn unless_moving(mut self) -> Self {
        self.traits.undeclared = true;
        self.traits.unless_moving = true;
        self
    }

    /// Flags a write that the router must not repeat when no reply came: the caller gets
    /// [`ErrorKind::Unknown`] at once and sends another one, with fresh random bytes.
    #[must_use]
    pub fn once(mut self) -> Self {
        self.traits.once = true;
        self
    }
}

/// Requests that go out together: those for one node in one pipeline, all nodes at the same time.
///
/// Requests run in any order, except inside an ordered group.
#[derive(Debug, Default)]
pub struct Batch {
    #[doc(hidden)]
    pub requests: Vec<Request>,
}

impl Batch {
    /// Begins a batch, without requests yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty batch with room for `requests`.
    pub fn with_capacity(requests: usize) -> Self {
        Self { requests: Vec::with_capacity(requests) }
    }

    /// Adds a request and returns its place among the answers.
    #[inline]
    pub fn push(&mut self, request: Request) -> usize {
        self.requests.push(request);
        self.requests.len() - 1
    }

    /// Adds requests of one slot that run in this order on one connection. If an earlier one is redirected or
    /// repeated, the later ones run again after it; if an earlier one fails for good, so do they.
    ///
    /// # Panics
    /// If they are not all of one slot, or if another than the first is [`once`](Request::once): what comes after a
    /// command that is repeated is repeated with it.
    pub fn push_ordered(&mut self, group: impl IntoIterator<Item = Request>) -> std::ops::Range<usize> {
        let first = self.requests.len();
        for mut request in group {
            request.traits.chained = self.requests.len() > first;
            assert!(
                !(request.traits.chained && request.traits.once),
                "only the first of an ordered group may be one that must not be repeated"
            );
            assert!(
                !request.traits.chained || request.slot == self.requests[first].slot,
                "an ordered group lies in one slot"
            );
            self.requests.push(request);
        }
        first..self.requests.len()
    }

    /// Tells how many requests it holds.
    pub fn len(&self) -> usize {
        self.requests.len()
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }
}

impl FromIterator<Request> for Batch {
    fn from_iter<T: IntoIterator<Item = Request>>(requests: T) -> Self {
        Self { requests: requests.into_iter().collect() }
    }
}

/// A server's reply, and under which epoch of that server its command was sent: what a fence needs.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The server's reply; may be an error of the command itself (`WRONGTYPE` and the like).
    pub reply: Reply,
    /// The server that said it, and in which of its lives.
    pub epoch: Epoch,
}

impl Answer {
    /// Whether it says that the slot is moving ([`Request::unless_moving`]).
    pub fn is_moving(&self) -> bool {
        match self.reply.error() {
            Some((code, rest)) => matches!(code, "TRYAGAIN" | "ASK") || rest.contains("non local key"),
            None => false,
        }
    }

    /// The reply, unless it is an error.
    #[inline]
    pub fn ok(self) -> Result<Reply> {
        match self.reply.error() {
            None => Ok(self.reply),
            Some((code, rest)) => Err(Error::new(
                kind_of(code, rest),
                format!("the server {} answered with the error {code} {rest}", self.epoch),
            )),
        }
    }
}

/// Tells what a server's error means for who asked.
pub(crate) fn kind_of(code: &str, rest: &str) -> ErrorKind {
    match code {
        // A right that is missing inside a function, in the words of Redis 7.0 and of later servers.
        "ERR"
            if rest.contains("user executing the script can't")
                || rest.starts_with("ACL failure in script") =>
        {
            ErrorKind::Misconfigured
        }
        "OOM" | "MISCONF" => ErrorKind::Unavailable,
        "NOPERM" | "NOAUTH" | "WRONGPASS" => ErrorKind::Misconfigured,
        _ => ErrorKind::Internal,
    }
}
