//! Changing what an archive in a file has.

use rusqlite::{Connection, OptionalExtension as _, params};
use tideline_model::archive::{
    ArchiveName, ArchivedPost, ChangeOutcome, ListMember, MemberList, OwnerChange, OwnerState, PostAsk,
    PostParts,
};
use tideline_model::bucket::Bucket;
use tideline_model::error::{Error, Result};
use tideline_model::ids::PostId;

use super::failure::fails;
use super::read;
use crate::rows::{of_account, of_count, of_parts, of_post, to_name};

/// Gives the archive a name, unless it has one.
pub(super) fn adopt(connection: &Connection, name: ArchiveName) -> Result<ArchiveName> {
    run(connection, "UPDATE store SET name = ? WHERE name IS NULL", params![name.0])?;
    let found: Option<Vec<u8>> =
        connection.query_row("SELECT name FROM store", (), |row| row.get(0)).optional().map_err(fails)?;
    found.map_or_else(|| Err(Error::internal("the archive has no record of itself")), |name| to_name(&name))
}

/// Makes one change, if it may be made.
pub(super) fn change(connection: &Connection, change: &OwnerChange) -> Result<ChangeOutcome> {
    let before = read::state(connection, change.owner.account)?;
    let state = match change.judge(before.as_ref()) {
        Ok(state) => state,
        Err(refusal) => return Ok(Err(refusal)),
    };
    set_state(connection, change, &state)?;
    for (post, lists) in &change.posts {
        put_post(connection, change.owner.bucket, post)?;
        lists.iter().try_for_each(|list| put_list(connection, post.id, list))?;
    }
    for id in &change.erased {
        erase(connection, change, *id)?;
    }
    Ok(Ok(()))
}

fn set_state(connection: &Connection, change: &OwnerChange, state: &OwnerState) -> Result<()> {
    let sql = "INSERT INTO owner (owner, bucket, token, nonce, upto, buried) VALUES (?, ?, ?, ?, ?, ?)
        ON CONFLICT (owner) DO UPDATE SET
            token = excluded.token, nonce = excluded.nonce, upto = excluded.upto, buried = excluded.buried";
    let (owner, token) = (change.owner, state.token);
    run(
        connection,
        sql,
        params![
            of_account(owner.account),
            owner.bucket.index(),
            of_count(token.number),
            token.nonce,
            of_post(state.upto),
            state.is_buried
        ],
    )
    .map(drop)
}

fn put_post(connection: &Connection, bucket: Bucket, post: &ArchivedPost) -> Result<()> {
    let sql = "INSERT INTO post (id, bucket, owner, change, stored, parts) VALUES (?, ?, ?, ?, ?, ?)
        ON CONFLICT (id) DO UPDATE SET
            change = excluded.change, stored = excluded.stored, parts = excluded.parts
            WHERE post.owner = excluded.owner AND post.parts IS NULL";
    let (id, owner, change) = (of_post(post.id), of_account(post.owner), post.change.cast_signed());
    let parts = of_parts(&post.parts, &PostParts::default());
    match run(connection, sql, params![id, bucket.index(), owner, change, post.stored, parts])? {
        0 => put_over(connection, bucket, post),
        _ => Ok(()),
    }
}

/// Puts a post in the place of one that is there with parts. H225: some of them may be a later release's.
fn put_over(connection: &Connection, bucket: Bucket, post: &ArchivedPost) -> Result<()> {
    let ask = PostAsk { bucket, id: post.id, owner: Some(post.owner) };
    let Some(before) = read::post(connection, &ask)?.post else {
        return Err(Error::internal(format!("post {} is in the archive as another account's", post.id)));
    };
    let (id, parts) = (of_post(post.id), of_parts(&post.parts, &before.parts));
    let sql = "UPDATE post SET change = ?, stored = ?, parts = ? WHERE id = ?";
    run(connection, sql, params![post.change.cast_signed(), post.stored, parts, id]).map(drop)
}

fn put_list(connection: &Connection, post: PostId, list: &MemberList) -> Result<()> {
    let (id, kind) = (of_post(post), list.kind.0);
    let sql = "DELETE FROM member WHERE post = ? AND kind = ? AND chunk >= ?";
    run(connection, sql, params![id, kind, list.first])?;
    for (chunk, members) in list.chunks() {
        let low = members.first().map_or(0.0, |member| member.score);
        let sql = "INSERT INTO member (post, kind, chunk, low, members) VALUES (?, ?, ?, ?, ?)";
        run(connection, sql, params![id, kind, chunk, low, ListMember::encode(members)?])?;
    }
    Ok(())
}

fn erase(connection: &Connection, change: &OwnerChange, post: PostId) -> Result<()> {
    let (id, owner) = (of_post(post), of_account(change.owner.account));
    if run(connection, "DELETE FROM post WHERE id = ? AND owner = ?", params![id, owner])? > 0 {
        run(connection, "DELETE FROM member WHERE post = ?", params![id])?;
    }
    Ok(())
}

/// Runs a statement; answers with how many rows it changed.
pub(super) fn run(connection: &Connection, sql: &str, params: impl rusqlite::Params) -> Result<usize> {
    connection.prepare_cached(sql).and_then(|mut statement| statement.execute(params)).map_err(fails)
}
