//! Errors of SQLite, by what they tell a caller to do.

use rusqlite::ErrorCode as Code;
use tideline_model::error::{Error, ErrorKind};

/// A call in which an error came up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Call {
    /// Nothing was written, or it is taken back.
    Read,
    /// What was written may be on disk.
    Commit,
}

pub(super) fn failed(call: Call, error: rusqlite::Error) -> Error {
    let kind = match error.sqlite_error_code() {
        // A commit that finds the disk full, or the file busy, takes all back; what any other error has left nobody
        // knows.
        Some(Code::DiskFull | Code::DatabaseBusy) => ErrorKind::Unavailable,
        _ if call == Call::Commit => ErrorKind::Unknown,
        Some(Code::NotADatabase | Code::DatabaseCorrupt | Code::CannotOpen | Code::PermissionDenied) => {
            ErrorKind::Misconfigured
        }
        Some(Code::SystemIoFailure | Code::DatabaseLocked | Code::ReadOnly | Code::OutOfMemory) => {
            ErrorKind::Unavailable
        }
        _ => ErrorKind::Internal,
    };
    Error::new(kind, format!("archive: {error}"))
}

/// Of a statement whose transaction is taken back.
pub(super) fn fails(error: rusqlite::Error) -> Error {
    failed(Call::Read, error)
}
