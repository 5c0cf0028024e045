//! Lists of posts in an archive in a file.

use rusqlite::{Connection, params};
use tideline_model::archive::{ListPlace, ListedPost, PageOrder, PostListAsk, PostListChange, PostListPage};
use tideline_model::bucket::Bucket;
use tideline_model::error::Result;

use super::failure::fails;
use super::read::{number, rows};
use super::write::run;
use crate::rows::{of_account, of_count, of_post, sides, to_account, to_count, to_post};

pub(super) fn change(connection: &Connection, change: &PostListChange) -> Result<()> {
    let (bucket, list) = (change.list.bucket.index(), &change.list.name);
    for ListedPost { place, author } in &change.added {
        let sql = "INSERT OR IGNORE INTO listed (bucket, list, ms, post, author) VALUES (?, ?, ?, ?, ?)";
        let (ms, post) = (of_count(place.unix_ms), of_post(place.post));
        run(connection, sql, params![bucket, list, ms, post, of_account(*author)])?;
    }
    for ListedPost { place, .. } in &change.removed {
        let sql = "DELETE FROM listed WHERE bucket = ? AND list = ? AND ms = ? AND post = ?";
        run(connection, sql, params![bucket, list, of_count(place.unix_ms), of_post(place.post)])?;
    }
    let sql = "INSERT INTO list_stamp (bucket, list, stamp) VALUES (?, ?, ?)
        ON CONFLICT (bucket, list) DO UPDATE SET stamp = max(stamp, excluded.stamp)";
    run(connection, sql, params![bucket, list, of_count(change.stamp)]).map(drop)
}

pub(super) fn page(connection: &Connection, ask: &PostListAsk, order: PageOrder) -> Result<PostListPage> {
    let (bucket, list) = (ask.list.bucket.index(), &ask.list.name);
    let sql = "SELECT stamp FROM list_stamp WHERE bucket = ? AND list = ?";
    let stamp = to_count(number(connection, sql, params![bucket, list])?.unwrap_or(0));
    let (side, way) = sides(order);
    let sql = format!(
        "SELECT ms, post, author FROM listed WHERE bucket = ? AND list = ? AND (ms, post) {side} (?, ?)
        ORDER BY ms {way}, post {way} LIMIT ?"
    );
    let (ms, post) = (of_count(ask.edge.unix_ms), of_post(ask.edge.post));
    let most = i64::try_from(ask.most).unwrap_or(i64::MAX);
    let posts = rows(connection, &sql, params![bucket, list, ms, post, most], |row| {
        let number = |column| row.get(column).map_err(fails);
        let place = ListPlace { unix_ms: to_count(number(0)?), post: to_post(number(1)?)? };
        Ok(ListedPost { place, author: to_account(number(2)?)? })
    })?;
    Ok(PostListPage { stamp, posts })
}

/// Names of a bucket's lists.
pub(super) fn walk(
    connection: &Connection,
    bucket: Bucket,
    after: &[u8],
    most: usize,
) -> Result<Vec<Vec<u8>>> {
    let sql = "SELECT list FROM list_stamp WHERE bucket = ? AND list > ? ORDER BY list LIMIT ?";
    let params = params![bucket.index(), after, i64::try_from(most).unwrap_or(i64::MAX)];
    rows(connection, sql, params, |row| row.get(0).map_err(fails))
}
