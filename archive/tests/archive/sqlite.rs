//! What is an archive's in a file alone: its file, and the process that has it.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use tideline_archive::{Archive as _, SqliteArchive};
use tideline_model::archive::{PageContent, PageOrder};
use tideline_model::error::ErrorKind;

use crate::places::{ask, change, eventually, file, walk};

/// Opens a file that this process has just closed: a program that another test starts has it until it runs.
async fn again(path: &Path) -> SqliteArchive {
    let mut archive = None;
    eventually("nobody has the file", async || match SqliteArchive::open(path).await {
        Err(e) if e.to_string().contains("another process has it") => false,
        opened => archive.insert(opened).is_ok(),
    })
    .await;
    archive.expect("it was opened").expect("it can be read")
}

#[tokio::test]
async fn a_second_one_is_refused_as_long_as_the_first_is_there() {
    let (_folder, path) = file();
    let first = SqliteArchive::open(&path).await.unwrap();
    first.change(&[change(1, 1, &[10])]).await.unwrap();
    let error = SqliteArchive::open(&path).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Misconfigured);
    assert!(error.to_string().contains("another process has it: stop that"), "{error}");
    drop(first);
    assert_eq!(walk(&again(&path).await).await.len(), 1);
}

#[tokio::test]
async fn a_link_leads_to_the_same_archive() {
    let (folder, path) = file();
    let link = folder.path().join("link");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    // Also to one that is not there yet.
    let first = SqliteArchive::open(&link).await.unwrap();
    first.change(&[change(1, 1, &[10])]).await.unwrap();
    drop(first);
    let first = again(&path).await;
    assert_eq!(walk(&first).await.len(), 1);
    let error = SqliteArchive::open(&link).await.unwrap_err();
    assert!(error.to_string().contains("another process has it"), "{error}");
}

#[tokio::test]
async fn who_only_reads_makes_no_file() {
    let (_folder, path) = file();
    let error = SqliteArchive::open_existing(&path).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Misconfigured);
    assert!(
        error.to_string().contains("posts.db: there is no such file; `tideline archive begin`"),
        "{error}"
    );
    assert!(!path.exists());
    drop(SqliteArchive::open(&path).await.unwrap());
    SqliteArchive::open_existing(&path).await.unwrap();
}

#[tokio::test]
async fn a_file_that_is_none_and_a_folder_that_is_not_there_are_told() {
    let (folder, path) = file();
    fs::write(&path, "not a database, but long enough for a header: ".repeat(9)).unwrap();
    let strange = SqliteArchive::open(&path).await.unwrap_err();
    let nowhere = SqliteArchive::open(folder.path().join("none/posts.db")).await.unwrap_err();
    for (error, says) in [(strange, "posts.db: archive: file is not a database"), (nowhere, "none/posts.db")]
    {
        assert_eq!(error.kind(), ErrorKind::Misconfigured, "{error}");
        assert!(error.to_string().contains(says), "{error}");
    }
}

#[tokio::test]
async fn what_a_newer_release_wrote_is_left_alone() {
    let (_folder, path) = file();
    drop(SqliteArchive::open(&path).await.unwrap());
    let raw = rusqlite::Connection::open(&path).unwrap();
    raw.execute_batch("UPDATE store SET version = version + 1").unwrap();
    let error = SqliteArchive::open(&path).await.unwrap_err();
    assert!(error.to_string().contains("written by a newer release"), "{error}");
}

/// Each start wrote how far the tables are, also where nothing was to be changed.
#[tokio::test]
async fn an_instance_that_starts_writes_nothing_which_a_full_disk_would_refuse() {
    let (folder, path) = file();
    let archive = SqliteArchive::open(&path).await.unwrap();
    archive.change(&[change(1, 1, &[10])]).await.unwrap();
    drop(archive);
    // As long as somebody has it open nobody takes away what was written.
    let raw = rusqlite::Connection::open(&path).unwrap();
    let posts = "SELECT count(*) FROM post";
    assert_eq!(raw.query_row(posts, (), |row| row.get::<_, i64>(0)).unwrap(), 1);
    let written = || (fs::read(&path).unwrap(), fs::read(folder.path().join("posts.db-wal")).unwrap());
    let before = written();
    let archive = again(&path).await;
    assert_eq!(walk(&archive).await.len(), 1);
    drop(archive);
    assert!(written() == before, "{} bytes stand in the log", written().1.len());
    let archive = again(&path).await;
    archive.change(&[change(1, 2, &[20])]).await.unwrap();
    assert!(written() != before);
}

/// The name of the test below, which this program runs again as a process of its own.
const WRITER: &str = "sqlite::writes_until_it_is_killed";
const WRITER_FILE: &str = "TIDELINE_TEST_ARCHIVE";

/// Not a test by itself: says each change that was answered.
#[tokio::test]
async fn writes_until_it_is_killed() {
    let Some(path) = std::env::var_os(WRITER_FILE) else { return };
    let archive = SqliteArchive::open(path).await.unwrap();
    for number in 1..=100_000 {
        archive.change(&[change(1, number, &[number])]).await.unwrap();
        println!("answered {number}");
    }
}

#[tokio::test]
async fn nothing_that_was_answered_goes_with_a_process_that_is_killed() {
    let (_folder, path) = file();
    let mut writer = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", WRITER, "--nocapture"])
        .env(WRITER_FILE, &path)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(writer.stdout.take().unwrap()).lines().map_while(Result::ok);
    let answered =
        |line: String| line.rsplit_once("answered ").and_then(|(_, number)| number.parse::<u64>().ok());
    // In the middle of the next one, most likely.
    let seen = lines.by_ref().filter_map(answered).find(|number| *number >= 50).unwrap();
    writer.kill().unwrap();
    writer.wait().unwrap();
    let last = lines.filter_map(answered).last().unwrap_or(seen);
    let archive = SqliteArchive::open(&path).await.unwrap();
    let page =
        archive.pages(&[ask(1, last + 1, 1_000)], PageOrder::NewestFirst, PageContent::Ids).await.unwrap();
    assert_eq!(page[0].ids.len() as u64, last.min(1_000));
    assert!(page[0].owner.unwrap().token.number >= last);
}

/// Whoever misspelled the place had another program's file kept in another way from then on.
#[tokio::test]
async fn another_programs_file_stays_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("other.db");
    let other = rusqlite::Connection::open(&path).unwrap();
    other.execute_batch("CREATE TABLE recipes (name TEXT); INSERT INTO recipes VALUES ('soup')").unwrap();
    drop(other);
    let before = std::fs::read(&path).unwrap();
    let refused = SqliteArchive::open(&path).await.unwrap_err();
    assert!(refused.to_string().contains("it holds the data of another program"), "{refused}");
    assert_eq!(std::fs::read(&path).unwrap(), before);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}
