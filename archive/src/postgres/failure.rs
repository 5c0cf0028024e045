//! Errors of PostgreSQL, by what they tell a caller to do.

use std::error::Error as StdError;

use tideline_model::error::{Error, ErrorKind};

/// Of a statement whose transaction is taken back, or that only read.
pub(super) fn fails(error: tokio_postgres::Error) -> Error {
    let Some(said) = error.as_db_error() else {
        // Anything else is a mistake of ours, which no further try mends.
        let kind = if is_of_connection(&error) { ErrorKind::Unavailable } else { ErrorKind::Internal };
        return Error::new(kind, format!("archive: {}", with_causes(&error)));
    };
    let code = said.code().code();
    let kind = match (code.get(..2).unwrap_or_default(), code) {
        // Somebody holds what this needs: a lock that was waited for too long, a deadlock. The server is well.
        ("40", _) | (_, "55P03") => ErrorKind::Conflict,
        // Connections; resources (a full disk, too many connections); the operator (a shutdown, a statement that took
        // too long); the system below the server (a disk that can't be read); a transaction that the server has ended,
        // or that fails for what was sent before; no primary.
        ("08" | "53" | "57" | "58", _) | (_, "25P02" | "25P03" | "25P04" | "25006") => ErrorKind::Unavailable,
        // Passwords; a database, a schema or a table that isn't there; rights.
        ("28" | "3D" | "3F" | "42", _) => ErrorKind::Misconfigured,
        _ => ErrorKind::Internal,
    };
    Error::new(kind, format!("archive: {} ({code})", said.message()))
}

/// Of a commit: who hears nothing doesn't know what became of it.
pub(super) fn commit_fails(error: tokio_postgres::Error) -> Error {
    match error.as_db_error() {
        // Refused by name: all is taken back. But one whose server goes away while it waits for a standby is committed.
        Some(said) if said.code().code().starts_with("40") => fails(error),
        _ => Error::new(
            ErrorKind::Unknown,
            format!("archive: a commit has no answer: {}", with_causes(&error)),
        ),
    }
}

/// Whether the connection broke, or never came about.
fn is_of_connection(error: &tokio_postgres::Error) -> bool {
    let said = error.to_string();
    error.is_closed()
        || causes(error).any(|cause| cause.is::<std::io::Error>())
        || ["connecting", "timeout", "TLS"].iter().any(|word| said.contains(word))
}

/// An error with what it was caused by: the client's own says "error connecting to server" alone.
pub(super) fn with_causes(error: &(dyn StdError + 'static)) -> String {
    causes(error).fold(error.to_string(), |said, cause| format!("{said}: {cause}"))
}

/// The cause of an error, the cause of that, and so on.
fn causes<'e>(error: &'e (dyn StdError + 'static)) -> impl Iterator<Item = &'e (dyn StdError + 'static)> {
    std::iter::successors(error.source(), |&cause| cause.source())
}
