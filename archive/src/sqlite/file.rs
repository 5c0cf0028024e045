//! The file of an archive: where it is, whose it is, and the process that has it.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags};
use tideline_model::error::{Error, Result};

use super::failure::fails;

/// The sign by which an archive's file says what it is: "tdln" in ASCII.
pub(super) const APPLICATION_ID: i32 = i32::from_be_bytes(*b"tdln");
/// Number of statements that a connection keeps prepared: more than there are.
const STATEMENTS: usize = 32;
/// Bytes of a database's head.
const HEAD_LEN: u64 = 100;
/// The byte of it that says how it is written, and what it says where that is with a log ahead.
const WRITES_AT: usize = 18;
const WRITES_AHEAD: u8 = 2;

/// The fate of a file that isn't there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AbsentFile {
    Makes,
    Refuses,
}

/// The file itself, whatever symbolic links lead there: its lock lies beside it.
pub(super) fn place_of(path: &Path, absent: AbsentFile) -> Result<PathBuf> {
    let refused =
        |e: &dyn std::fmt::Display| Error::misconfigured(format!("archive {}: {e}", path.display()));
    match path.canonicalize() {
        Ok(place) => Ok(place),
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(refused(&e)),
        Err(_) if absent == AbsentFile::Refuses => {
            Err(refused(&"there is no such file; `tideline archive begin` makes it"))
        }
        Err(_) => {
            let path = std::path::absolute(path).map_err(|e| refused(&e))?;
            let (folder, name) = (path.parent(), path.file_name());
            let (folder, name) = folder.zip(name).ok_or_else(|| refused(&"it names no file"))?;
            let folder = folder.canonicalize().map_err(|e| refused(&format!("its folder: {e}")))?;
            Ok(folder.join(name))
        }
    }
}

/// A second process would write what the first one doesn't see coming: both would decide by what they remember.
pub(super) fn lock(path: &Path) -> Result<File> {
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    let file = OpenOptions::new().create(true).append(true).open(&name);
    let file = file.map_err(|e| {
        let whose = match e.kind() {
            std::io::ErrorKind::PermissionDenied => {
                ": this user may not; commands for an archive run as the user that the service runs as"
            }
            _ => "",
        };
        let lock = Path::new(&name).display();
        Error::misconfigured(format!("archive {}: its lock {lock}: {e}{whose}", path.display()))
    })?;
    file.try_lock().map_err(|e| {
        let why = match e {
            TryLockError::WouldBlock => {
                "another process has it: stop that for as long as a command runs; several \
                                            instances need PostgreSQL"
                    .into()
            }
            TryLockError::Error(e) => format!("it can't be locked: {e}"),
        };
        Error::misconfigured(format!("archive {}: {why}", path.display()))
    })?;
    Ok(file)
}

/// Refuses the file of another program, before anything is written: how it is kept is written into it.
pub(super) fn only_ours(path: &Path) -> Result<()> {
    let head = std::fs::File::open(path).and_then(|file| {
        let mut head = Vec::new();
        file.take(HEAD_LEN).read_to_end(&mut head).map(|_| head)
    });
    let head = head.unwrap_or_default();
    // Not there, or empty; or it is kept as an archive is, and its end may lie in a file beside it.
    if head.len() <= WRITES_AT || head[WRITES_AT] == WRITES_AHEAD {
        return Ok(());
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(fails)?;
    check_owner(&connection).map(drop)
}

/// Whether a file is an archive's already; an error: it is another program's.
pub(super) fn check_owner(connection: &Connection) -> Result<bool> {
    let whose: i32 =
        connection.pragma_query_value(None, "application_id", |row| row.get(0)).map_err(fails)?;
    if whose == APPLICATION_ID {
        return Ok(true);
    }
    let tables = "SELECT count(*) FROM sqlite_master";
    let many: i64 = connection.query_row(tables, (), |row| row.get(0)).map_err(fails)?;
    match many > 0 || whose != 0 {
        true => Err(Error::misconfigured("it holds the data of another program")),
        false => Ok(false),
    }
}

pub(super) fn connect(path: &Path) -> Result<Connection> {
    let open = || {
        let connection = Connection::open(path)?;
        connection.set_prepared_statement_cache_capacity(STATEMENTS);
        // FULL: each transaction is on disk before it is answered. Readers never wait for the writer (WAL).
        let mode: String =
            connection.pragma_update_and_check(None, "journal_mode", "wal", |row| row.get(0))?;
        connection.pragma_update(None, "synchronous", "full")?;
        Ok((connection, mode))
    };
    let in_archive = |e: Error| e.context(format!("archive {}", path.display()));
    let (connection, mode) = open().map_err(|e| in_archive(fails(e)))?;
    match mode.as_str() {
        "wal" => Ok(connection),
        other => Err(in_archive(Error::misconfigured(format!(
            "its folder allows no write-ahead log (mode {other}): a local disk does"
        )))),
    }
}
