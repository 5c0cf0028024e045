//! The index of posts by their words, in an archive in a file.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode, params};
use tideline_model::archive::{IndexChange, IndexKey, IndexVersion, IndexedPost, SearchAsk, SearchPage};
use tideline_model::bucket::Bucket;
use tideline_model::error::Result;
use tideline_model::ids::{AccountId, PostId};

use super::failure::fails;
use super::read::{number, rows};
use super::write::run;
use crate::rows::{of_account, of_post, of_version, to_account, to_post, to_version};
use crate::windows::{FIRST_POSTS, SearchExtent, SearchWindow, Windows};

/// In front of the words that say who finds a post: part of a word to the tokenizer, and in no text's.
const SIGN: char = '§';
/// Steps of SQLite's machine between two looks at the clock.
const STEPS_BETWEEN_LOOKS: i32 = 20;

pub(super) fn version(connection: &Connection, key: IndexKey) -> Result<Option<IndexVersion>> {
    let sql = "SELECT version FROM search WHERE id = ?";
    Ok(number(connection, sql, params![of_post(key.post)])?.map(to_version))
}

/// Makes one change, unless something else stands there than was seen.
pub(super) fn change(connection: &Connection, change: &IndexChange) -> Result<bool> {
    if version(connection, change.key)? != change.seen {
        return Ok(false);
    }
    let (id, bucket) = (of_post(change.key.post), change.key.bucket.index());
    let author = change.post.as_ref().map(|post| of_account(post.author));
    let sql = "INSERT INTO search (id, bucket, version, author) VALUES (?, ?, ?, ?)
        ON CONFLICT (id) DO UPDATE SET version = excluded.version, author = excluded.author";
    run(connection, sql, params![id, bucket, of_version(change.version), author])?;
    run(connection, "DELETE FROM search_words WHERE rowid = ?", params![id])?;
    if let Some(post) = &change.post {
        run(
            connection,
            "INSERT INTO search_words (rowid, words) VALUES (?, ?)",
            params![id, words_of(post)],
        )?;
    }
    Ok(true)
}

fn words_of(post: &IndexedPost) -> String {
    let whose = match post.is_public {
        true => format!("{SIGN}all"),
        false => format!("{SIGN}{}", post.author),
    };
    post.words.iter().fold(whose, |all, word| all + " " + word)
}

/// The conditions in the index's language: a post is one of those that a reader finds, and has each of the words.
fn conditions(ask: &SearchAsk) -> Vec<String> {
    let own = ask.reader.map_or_else(String::new, |reader| format!(" OR \"{SIGN}{reader}\""));
    let words = ask.words.iter().map(|word| format!("\"{word}\""));
    std::iter::once(format!("(\"{SIGN}all\"{own})")).chain(words).collect()
}

/// Each window is a statement of its own, and sees what is there by then.
pub(super) fn find(connection: &mut Connection, ask: &SearchAsk, budget: Duration) -> Result<SearchPage> {
    let mut windows = Windows::new(ask.below, ask.most, extent(connection, ask.below)?, budget);
    let conditions = conditions(ask);
    let (mut looks, mut is_dear): (LookForm, bool) = (look_along, false);
    while let Some(window) = windows.next() {
        let until = window.within.map(|within| Instant::now() + within);
        ends_at(connection, until)?;
        let found = looks(connection, &conditions, &window);
        ends_at(connection, None)?;
        match found {
            Ok(found) => windows.take(&found)?,
            Err(e) if e.sqlite_error_code() == Some(ErrorCode::OperationInterrupted) => {
                windows.give_up();
                is_dear = true;
            }
            Err(e) => return Err(fails(e)),
        }
        looks = if is_dear { look_along } else { look_anywhere };
    }
    Ok(windows.into_page())
}

/// A way to find the posts of a window, ids and authors.
type LookForm = fn(&Connection, &[String], &SearchWindow) -> rusqlite::Result<Vec<(i64, i64)>>;

/// Has statements end then, or whenever they end.
fn ends_at(connection: &mut Connection, until: Option<Instant>) -> Result<()> {
    // Also while the index of words puts together what several words have: each of its pages takes a few steps to read.
    let is_late = until.map(|until| move || Instant::now() >= until);
    connection.progress_handler(STEPS_BETWEEN_LOOKS, is_late).map_err(fails)
}

/// The index looks for posts that have all words from the newest of all down to the first one that is found, wherever
/// the window ends: cheap unless each word is common and no post has all.
fn look_anywhere(
    connection: &Connection,
    conditions: &[String],
    window: &SearchWindow,
) -> rusqlite::Result<Vec<(i64, i64)>> {
    let sql = "SELECT w.rowid, s.author FROM search_words w JOIN search s ON s.id = w.rowid
        WHERE search_words MATCH ? AND w.rowid >= ? AND w.rowid < ? ORDER BY w.rowid DESC LIMIT ?";
    let most = i64::try_from(window.most).unwrap_or(i64::MAX);
    let mut statement = connection.prepare_cached(sql)?;
    let params = params![conditions.join(" AND "), window.from, window.below, most];
    let found = statement.query_map(params, |row| Ok((row.get(0)?, row.get(1)?)))?;
    found.collect()
}

/// H236: each word by itself, which costs no more than the window has posts.
fn look_along(
    connection: &Connection,
    conditions: &[String],
    window: &SearchWindow,
) -> rusqlite::Result<Vec<(i64, i64)>> {
    let sql = "SELECT rowid FROM search_words WHERE search_words MATCH ? AND rowid >= ? AND rowid < ?
        ORDER BY rowid DESC";
    let mut statement = connection.prepare_cached(sql)?;
    let mut found: Option<Vec<i64>> = None;
    for condition in conditions {
        let ids = statement.query_map(params![condition, window.from, window.below], |row| row.get(0))?;
        let mut ids = ids.collect::<rusqlite::Result<Vec<i64>>>()?;
        if let Some(found) = found {
            let found: HashSet<i64> = found.into_iter().collect();
            ids.retain(|id| found.contains(id));
        }
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        found = Some(ids);
    }
    let mut author = connection.prepare_cached("SELECT author FROM search WHERE id = ?")?;
    let found = found.unwrap_or_default().into_iter().take(window.most);
    found.map(|id| Ok((id, author.query_row([id], |row| row.get(0))?))).collect()
}

/// Reads the extent of what there is below where a search begins.
fn extent(connection: &Connection, below: u64) -> Result<Option<SearchExtent>> {
    let below = i64::try_from(below).unwrap_or(i64::MAX);
    let one = |sql: &str| number(connection, sql, params![below]);
    let Some(highest) = one("SELECT id FROM search WHERE id < ? ORDER BY id DESC LIMIT 1")? else {
        return Ok(None);
    };
    let lowest = one("SELECT id FROM search WHERE id < ? ORDER BY id LIMIT 1")?.unwrap_or(highest);
    let sql =
        format!("SELECT id FROM search WHERE id < ? ORDER BY id DESC LIMIT 1 OFFSET {}", FIRST_POSTS - 1);
    Ok(Some(SearchExtent { lowest, highest, first: one(&sql)? }))
}

pub(super) fn walk(
    connection: &Connection,
    bucket: Bucket,
    after: Option<PostId>,
    most: usize,
) -> Result<Vec<(PostId, AccountId)>> {
    let sql = "SELECT id, author FROM search WHERE bucket = ? AND id > ? AND author IS NOT NULL ORDER BY id LIMIT ?";
    let params = params![bucket.index(), after.map_or(-1, of_post), i64::try_from(most).unwrap_or(i64::MAX)];
    rows(connection, sql, params, |row| {
        Ok((to_post(row.get(0).map_err(fails)?)?, to_account(row.get(1).map_err(fails)?)?))
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::migrations;

    const POSTS: u64 = 8_000;

    /// Posts of which each has one of two words.
    fn filled() -> Connection {
        let mut connection = Connection::open_in_memory().unwrap();
        let transaction = connection.transaction().unwrap();
        migrations::SQLITE.iter().for_each(|step| transaction.execute_batch(step).unwrap());
        for number in 1..=POSTS {
            let key = IndexKey { bucket: Bucket(1), post: PostId::from_u64(number << 32).unwrap() };
            let words = vec![if number.is_multiple_of(2) { "even" } else { "odd" }.to_owned()];
            let author = AccountId::new(1).unwrap();
            let post = Some(IndexedPost { author, is_public: true, words });
            let made = IndexChange { key, seen: None, version: IndexVersion([1; 8]), post };
            assert!(change(&transaction, &made).unwrap());
        }
        transaction.commit().unwrap();
        connection
    }

    fn asked() -> Vec<String> {
        let words = vec!["even".to_owned(), "odd".to_owned()];
        conditions(&SearchAsk { words, reader: None, below: u64::MAX, most: 5 })
    }

    fn window(posts: u64) -> SearchWindow {
        let below = i64::MAX;
        SearchWindow { from: ((POSTS - posts + 1) << 32).cast_signed(), below, most: 5, within: None }
    }

    #[test]
    fn what_takes_too_long_ends_and_leaves_the_connection_as_it_was() {
        let mut connection = filled();
        for looks in [look_anywhere as LookForm, look_along] {
            ends_at(&mut connection, Some(Instant::now())).unwrap();
            let ended = looks(&connection, &asked(), &window(POSTS)).unwrap_err();
            assert_eq!(ended.sqlite_error_code(), Some(ErrorCode::OperationInterrupted), "{ended}");
            ends_at(&mut connection, None).unwrap();
            assert!(looks(&connection, &asked(), &window(POSTS)).unwrap().is_empty());
        }
    }

    /// H236: in one look for both words each goes through all posts, also where a window has a dozen.
    #[test]
    fn word_by_word_a_window_costs_what_it_has_posts() {
        let mut connection = filled();
        let mut steps = |looks: LookForm, posts: u64| {
            let counted = Arc::new(AtomicUsize::new(0));
            let counts = Arc::clone(&counted);
            let count = move || counts.fetch_add(1, Ordering::Relaxed) == usize::MAX;
            connection.progress_handler(1, Some(count)).unwrap();
            looks(&connection, &asked(), &window(posts)).unwrap();
            counted.load(Ordering::Relaxed)
        };
        // Prepared.
        steps(look_along, 1);
        let (few, all) = (steps(look_along, 12), steps(look_along, POSTS));
        assert!(few < 500 && few * 50 < all, "{few} steps, of {all}");
    }
}
