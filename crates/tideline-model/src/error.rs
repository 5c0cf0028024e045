//! The one public error: a kind that says what to do, a code that says what is wrong, and a message with the values
//! that decided.

use std::fmt;
use std::pin::Pin;
use std::time::Duration;

/// A kind of [`Error`], by what its caller can do about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ErrorKind {
    /// The request itself is wrong; sending it again cannot help.
    Invalid,
    /// The account, post or other thing that was named does not exist.
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

macro_rules! codes {
    ($($(#[doc = $doc:literal])+ $code:ident, $text:literal: $kind:ident;)+) => {
        /// A name of what is wrong, for programs that have to tell cases of one kind apart.
        ///
        /// A code and its text stay what they are from release to release; later ones add codes.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize)]
        #[serde(into = "&'static str")]
        #[non_exhaustive]
        pub enum ErrorCode {
            $($(#[doc = $doc])+ $code,)+
        }

        impl ErrorCode {
            /// All there are.
            pub const ALL: &[Self] = &[$(Self::$code),+];

            /// Names it in lower case, with underscores.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$code => $text,)+
                }
            }

            /// Tells what the caller can do: each code is of one kind.
            pub fn kind(self) -> ErrorKind {
                match self {
                    $(Self::$code => ErrorKind::$kind,)+
                }
            }
        }
    };
}

codes! {
    /// A wrong request, of no kind that has a code of its own.
    Invalid, "invalid": Invalid;
    /// A text, a list or a number that is too short or too long, too small or too large.
    OutOfRange, "out_of_range": Invalid;
    /// Something that doesn't read as what it should be: a hashtag, a language, a cursor.
    Malformed, "malformed": Invalid;
    /// A login that no account could have.
    LoginMalformed, "login_malformed": Invalid;
    /// Something that is no e-mail address.
    EmailMalformed, "email_malformed": Invalid;
    /// A password that is too short or too long.
    PasswordOutOfRange, "password_out_of_range": Invalid;
    /// An account has as much of this as it may have.
    LimitReached, "limit_reached": Invalid;
    /// One of the two accounts blocks the other one.
    Blocked, "blocked": Invalid;
    /// An account that is suspended, or in another state in which this isn't allowed.
    NotActive, "not_active": Invalid;
    /// Something that this account may not do with that post or account.
    NotAllowed, "not_allowed": Invalid;
    /// A guest asked for what only an account has.
    AccountRequired, "account_required": Invalid;
    /// There is nothing of that name or id, of no kind that has a code of its own.
    NotFound, "not_found": NotFound;
    /// There is no such account.
    AccountNotFound, "account_not_found": NotFound;
    /// There is no such post, or the caller may not see it.
    PostNotFound, "post_not_found": NotFound;
    /// Others change the same at this moment.
    Conflict, "conflict": Conflict;
    /// Somebody else has that id.
    IdTaken, "id_taken": Conflict;
    /// Somebody else has that login, or is about to.
    LoginTaken, "login_taken": Conflict;
    /// Somebody else has that e-mail address, or is about to.
    EmailTaken, "email_taken": Conflict;
    /// There is too much work at this moment.
    Overloaded, "overloaded": Overloaded;
    /// This account has done that too often in too short a time.
    TooOften, "too_often": Overloaded;
    /// The cluster could not serve it in time.
    Unavailable, "unavailable": Unavailable;
    /// Only the archive could tell, and it doesn't answer, fails, or lacks what it once had.
    ArchiveAway, "archive_away": Unavailable;
    /// It may have happened, or not.
    Unknown, "unknown": Unknown;
    /// A setting forbids it.
    Misconfigured, "misconfigured": Misconfigured;
    /// A broken promise.
    Internal, "internal": Internal;
}

impl From<ErrorCode> for &'static str {
    fn from(code: ErrorCode) -> Self {
        code.as_str()
    }
}

/// The code of errors of that kind that have none of their own.
impl From<ErrorKind> for ErrorCode {
    fn from(kind: ErrorKind) -> Self {
        match kind {
            ErrorKind::Invalid => Self::Invalid,
            ErrorKind::NotFound => Self::NotFound,
            ErrorKind::Conflict => Self::Conflict,
            ErrorKind::Overloaded => Self::Overloaded,
            ErrorKind::Unavailable => Self::Unavailable,
            ErrorKind::Unknown => Self::Unknown,
            ErrorKind::Misconfigured => Self::Misconfigured,
            ErrorKind::Internal => Self::Internal,
        }
    }
}

/// Every fallible call of this crate returns this; one pointer wide.
pub struct Error(Box<ErrorParts>);

#[derive(Clone)]
struct ErrorParts {
    code: ErrorCode,
    message: String,
    /// Of a fence: what it was to cover is done, and may not last.
    is_of_fence: bool,
    /// Of what was done too often: how often it may be.
    frequency: Option<FrequencyBound>,
}

/// A bound on how often an account may do something that it has done too often.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrequencyBound {
    /// So often within a span of time.
    pub most: u32,
    /// It is refused at least as long.
    pub again_in: Duration,
    /// The setting that limits it, as `limits.posts`, if one does.
    pub setting: Option<&'static str>,
}

/// So much of a text that is refused is repeated in the error.
const EXCERPT_CHARS: usize = 40;

/// The beginning of a text that somebody has sent, for the error that refuses it.
#[doc(hidden)]
pub fn excerpt(text: &str) -> String {
    text.chars().take(EXCERPT_CHARS).collect()
}

/// `Result` with this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The future of a call that asks servers.
///
/// Boxed: what an `async fn` does is compiled anew in each crate that awaits it, a box's content only where it is made.
/// A call goes to servers, so one allocation doesn't show.
pub type CallFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T>> + Send + 'a>>;

impl Error {
    /// Makes an error with that code, or of that kind; `message` names the values that decided.
    pub fn new(code: impl Into<ErrorCode>, message: impl Into<String>) -> Self {
        let (code, message) = (code.into(), message.into());
        Self(Box::new(ErrorParts { code, message, is_of_fence: false, frequency: None }))
    }

    /// An error with the code [`TooOften`](ErrorCode::TooOften).
    pub fn too_often(bound: FrequencyBound, message: impl Into<String>) -> Self {
        let mut error = Self::new(ErrorCode::TooOften, message);
        error.0.frequency = Some(bound);
        error
    }

    /// An error of a fence. A [`Conflict`](ErrorKind::Conflict) of one is for whoever has fenced: no call of the engine
    /// ends with it.
    #[doc(hidden)]
    pub fn of_fence(kind: ErrorKind, message: impl Into<String>) -> Self {
        let mut error = Self::new(kind, message);
        error.0.is_of_fence = true;
        error
    }

    /// An error of kind [`Invalid`](ErrorKind::Invalid).
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Invalid, message)
    }

    /// An error with the code [`OutOfRange`](ErrorCode::OutOfRange).
    pub fn out_of_range(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::OutOfRange, message)
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

    /// Tells what the caller can do about it.
    pub fn kind(&self) -> ErrorKind {
        self.0.code.kind()
    }

    /// Tells programs what is wrong.
    pub fn code(&self) -> ErrorCode {
        self.0.code
    }

    /// Tells how often that may be done which was done [too often](ErrorCode::TooOften).
    pub fn frequency_bound(&self) -> Option<FrequencyBound> {
        self.0.frequency
    }

    /// Whether it is a fence that failed.
    #[doc(hidden)]
    pub fn is_of_fence(&self) -> bool {
        self.0.is_of_fence
    }

    /// Puts in front of the message what was being done.
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

/// Its kind and code, which name it to programs, and what it says to people.
impl serde::Serialize for Error {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeStruct as _;
        let mut error = serializer.serialize_struct("Error", 3)?;
        error.serialize_field("kind", &self.kind())?;
        error.serialize_field("code", &self.0.code)?;
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
        write!(f, "{:?}: {}", self.0.code, self.0.message)
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn a_kind_has_a_code_of_its_own_name_and_no_two_codes_are_spelled_alike() {
        for code in ErrorCode::ALL {
            let general = ErrorCode::from(code.kind());
            assert_eq!(general.kind(), code.kind(), "{code:?}");
            assert_eq!(format!("{:?}", code.kind()), format!("{general:?}"));
        }
        let spelled: HashSet<&str> = ErrorCode::ALL.iter().map(|code| code.as_str()).collect();
        assert_eq!(spelled.len(), ErrorCode::ALL.len());
        assert_eq!(Error::new(ErrorCode::LoginTaken, "this login is taken").kind(), ErrorKind::Conflict);
    }
}
