//! The index of posts by their words, in an archive in a file.

use rusqlite::{Connection, params};
use tideline_model::archive::{IndexChange, IndexKey, IndexVersion, IndexedPost, SearchAsk, SearchPage};
use tideline_model::bucket::Bucket;
use tideline_model::error::Result;
use tideline_model::ids::{AccountId, PostId};

use super::failure::fails;
use super::read::{number, rows};
use super::write::run;
use crate::rows::{of_account, of_post, of_version, to_account, to_post, to_version};
use crate::windows::{BUDGET, Windows};

/// In front of the words that say who finds a post: part of a word to the tokenizer, and in no text's.
const SIGN: char = '§';

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

/// All words, and one of those that say that the reader finds it.
fn question(ask: &SearchAsk) -> String {
    let own = ask.reader.map_or_else(String::new, |reader| format!(" OR \"{SIGN}{reader}\""));
    let who = format!("(\"{SIGN}all\"{own})");
    ask.words.iter().fold(who, |all, word| all + " AND \"" + word + "\"")
}

pub(super) fn find(connection: &Connection, ask: &SearchAsk) -> Result<SearchPage> {
    let below = i64::try_from(ask.below).unwrap_or(i64::MAX);
    let sql = "SELECT min(id) FROM search WHERE id < ? UNION ALL SELECT max(id) FROM search WHERE id < ?";
    let ids =
        rows(connection, sql, params![below, below], |row| row.get::<_, Option<i64>>(0).map_err(fails))?;
    let ids = match ids[..] {
        [Some(lowest), Some(highest)] => Some((lowest, highest)),
        _ => None,
    };
    let mut windows = Windows::new(ask.below, ask.most, ids, BUDGET);
    let question = question(ask);
    while let Some((from, below, most)) = windows.next() {
        let sql = "SELECT w.rowid, s.author FROM search_words w JOIN search s ON s.id = w.rowid
            WHERE search_words MATCH ? AND w.rowid >= ? AND w.rowid < ? ORDER BY w.rowid DESC LIMIT ?";
        let params = params![question, from, below, i64::try_from(most).unwrap_or(i64::MAX)];
        let read = |row: &rusqlite::Row<'_>| Ok((row.get(0).map_err(fails)?, row.get(1).map_err(fails)?));
        windows.take(&rows(connection, sql, params, read)?)?;
    }
    Ok(windows.into_page())
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
