//! What an error of PostgreSQL tells a caller to do.

use tideline_model::error::{Error, ErrorKind};
use tokio_postgres::error::SqlState;

/// Of a statement whose transaction is taken back, or that only read.
pub(super) fn fails(error: tokio_postgres::Error) -> Error {
    let Some(said) = error.as_db_error() else {
        // The connection broke, or was never made.
        return Error::unavailable(format!("archive: {}", with_causes(&error)));
    };
    let (code, class) = (said.code(), &said.code().code()[..2]);
    let kind = match class {
        // Connections; resources (a full disk, too many connections); the operator (a shutdown, a statement that took
        // too long); rollbacks (a deadlock).
        "08" | "53" | "57" | "40" => ErrorKind::Unavailable,
        _ if *code == SqlState::LOCK_NOT_AVAILABLE || *code == SqlState::READ_ONLY_SQL_TRANSACTION => {
            ErrorKind::Unavailable
        }
        // Passwords; a database, a schema or a table that isn't there; rights.
        "28" | "3D" | "3F" | "42" => ErrorKind::Misconfigured,
        _ => ErrorKind::Internal,
    };
    Error::new(kind, format!("archive: {} ({})", said.message(), code.code()))
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

/// An error with what it was caused by: the client's own says "error connecting to server" alone.
pub(super) fn with_causes(error: &dyn std::error::Error) -> String {
    let mut said = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        said = format!("{said}: {inner}");
        cause = inner.source();
    }
    said
}
