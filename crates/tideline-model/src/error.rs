//! The one public error: a kind that says what to do, and a message with the values that decided.

use std::fmt;
use std::pin::Pin;

/// What the caller can do about an [`Error`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ErrorKind {
    /// The request itself is wrong; sending it again cannot help.
    Invalid,
    /// What was named does not exist.
    NotFound,
    /// Somebody else changed what the request was based on: read again and decide again. Or somebody else has what was
    /// asked for, a name or an id: then it is the same again as long as they have it.
    Conflict,
    /// A bound on work in flight is reached: slow down, then try again.
    Overloaded,
    /// Nothing was written, or what was written is harmless; the cluster could not serve it in time.
    Unavailable,
    /// A write was sent and no answer came: it may have happened. Sending it again does no harm; only what makes
    /// something new each time (a post, a report) makes another one, unless it carries a token.
    Unknown,
    /// The server's or the client's configuration forbids it; the message says what to change.
    Misconfigured,
    /// A broken promise: ours, the server's, or of stored data.
    Internal,
}

impl ErrorKind {
    /// Whether the same request may succeed when it is sent again later; not for ever: a name that is taken may stay
    /// so.
    pub fn is_retryable(self) -> bool {
        matches!(self, Self::Conflict | Self::Overloaded | Self::Unavailable | Self::Unknown)
    }
}

/// Every fallible call of this crate returns this; one pointer wide.
pub struct Error(Box<Inner>);

#[derive(Clone)]
struct Inner {
    kind: ErrorKind,
    message: String,
    /// Of a fence: what it was to cover is done, and may not last.
    is_of_fence: bool,
}

/// `Result` with this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The future of a call that asks servers.
///
/// Boxed: what an `async fn` does is compiled anew in each crate that awaits it, a box's content only where it is made.
/// A call goes to servers, so one allocation doesn't show.
pub type CallFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T>> + Send + 'a>>;

impl Error {
    /// An error of `kind`; `message` names the values that decided.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self(Box::new(Inner { kind, message: message.into(), is_of_fence: false }))
    }

    /// An error of a fence. A [`Conflict`](ErrorKind::Conflict) of one is for whoever has fenced: no call of the engine
    /// ends with it.
    #[doc(hidden)]
    pub fn of_fence(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self(Box::new(Inner { kind, message: message.into(), is_of_fence: true }))
    }

    /// An error of kind [`Invalid`](ErrorKind::Invalid).
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Invalid, message)
    }

    /// An error of kind [`Unavailable`](ErrorKind::Unavailable).
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Unavailable, message)
    }

    /// An error of kind [`Misconfigured`](ErrorKind::Misconfigured).
    pub fn misconfigured(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Misconfigured, message)
    }

    /// An error of kind [`Internal`](ErrorKind::Internal).
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Internal, message)
    }

    /// What the caller can do about it.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Whether it is a fence that failed.
    #[doc(hidden)]
    pub fn is_of_fence(&self) -> bool {
        self.0.is_of_fence
    }

    /// The same error with `what` was being done in front.
    #[must_use]
    pub fn context(mut self, what: impl fmt::Display) -> Self {
        self.0.message = format!("{what}: {}", self.0.message);
        self
    }
}

impl Clone for Error {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

/// Its kind, which names it to programs, and what it says to people.
impl serde::Serialize for Error {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeStruct as _;
        let mut error = serializer.serialize_struct("Error", 2)?;
        error.serialize_field("kind", &self.0.kind)?;
        error.serialize_field("message", &self.0.message)?;
        error.end()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.0.kind, self.0.message)
    }
}

impl std::error::Error for Error {}
