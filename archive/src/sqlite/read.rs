//! Reading from an archive in a file.

use rusqlite::{Connection, OptionalExtension as _, Row, params};
use tideline_model::archive::{
    ArchiveName, ArchiveSize, ArchivedPost, ListKind, MembersAnswer, MembersAsk, OwnerPage, OwnerState,
    PageAsk, PageContent, PageOrder, PostAnswer, PostAsk, WalkedPost,
};
use tideline_model::bucket::Bucket;
use tideline_model::error::Result;
use tideline_model::ids::{AccountId, PostId};

use super::failure::fails;
use crate::rows::{
    MemberPage, of_account, of_post, sides, to_account, to_count, to_name, to_parts, to_post, to_state,
};

pub(super) fn name(connection: &Connection) -> Result<Option<ArchiveName>> {
    let name: Option<Vec<u8>> =
        connection.query_row("SELECT name FROM store", (), |row| row.get(0)).map_err(fails)?;
    name.map(|name| to_name(&name)).transpose()
}

pub(super) fn state(connection: &Connection, owner: AccountId) -> Result<Option<OwnerState>> {
    let sql = "SELECT token, nonce, upto, buried FROM owner WHERE owner = ?";
    rows(connection, sql, params![of_account(owner)], |row| state_at(row, 0))
        .map(|found| found.into_iter().next())
}

pub(super) fn page(
    connection: &Connection,
    ask: &PageAsk,
    order: PageOrder,
    content: PageContent,
) -> Result<OwnerPage> {
    let columns = match content {
        PageContent::Ids => "id",
        PageContent::Posts => "id, owner, change, stored, parts",
    };
    let (side, order) = sides(order);
    let sql = format!(
        "SELECT {columns} FROM post WHERE bucket = ? AND owner = ? AND id {side} ? ORDER BY id {order} LIMIT ?"
    );
    let params = params![
        ask.owner.bucket.index(),
        of_account(ask.owner.account),
        of_post(ask.edge),
        i64::try_from(ask.most).unwrap_or(i64::MAX)
    ];
    let owner = state(connection, ask.owner.account)?;
    Ok(match content {
        PageContent::Ids => {
            let ids = rows(connection, &sql, params, |row| to_post(get(row, 0)?))?;
            OwnerPage { owner, ids, posts: Vec::new() }
        }
        PageContent::Posts => {
            let posts = rows(connection, &sql, params, post_at)?;
            OwnerPage { owner, ids: posts.iter().map(|post| post.id).collect(), posts }
        }
    })
}

pub(super) fn post(connection: &Connection, ask: &PostAsk) -> Result<PostAnswer> {
    let sql = "SELECT id, owner, change, stored, parts FROM post WHERE id = ?";
    let found = rows(connection, sql, params![of_post(ask.id)], post_at)?.into_iter().next();
    let post = found.filter(|post| ask.owner.is_none_or(|owner| owner == post.owner));
    let owner = ask.owner.or(post.as_ref().map(|post| post.owner));
    let owner = owner.map(|owner| state(connection, owner)).transpose()?.flatten();
    Ok(PostAnswer { post, owner })
}

pub(super) fn members(connection: &Connection, ask: &MembersAsk) -> Result<MembersAnswer> {
    let owner = post(connection, &PostAsk { bucket: ask.bucket, id: ask.post, owner: None })?.owner;
    let mut page = MemberPage::new(ask);
    while let Some((below, low, most)) = page.wants() {
        let sql = "SELECT chunk, members FROM member WHERE post = ? AND kind = ? AND chunk < ? AND low <= ?
            ORDER BY chunk DESC LIMIT ?";
        let params = params![of_post(ask.post), ask.kind.0, below, low, most];
        let chunks = rows(connection, sql, params, |row| Ok((get::<i32>(row, 0)?, get::<Vec<u8>>(row, 1)?)))?;
        if chunks.is_empty() {
            page.ends();
        }
        chunks.iter().try_for_each(|(chunk, members)| page.take(*chunk, members))?;
    }
    Ok(MembersAnswer { owner, members: page.into_members() })
}

pub(super) fn kinds(connection: &Connection, post: &PostAsk) -> Result<Vec<ListKind>> {
    let sql = "SELECT DISTINCT kind FROM member WHERE post = ? ORDER BY kind";
    rows(connection, sql, params![of_post(post.id)], |row| Ok(ListKind(get(row, 0)?)))
}

pub(super) fn walk_owners(
    connection: &Connection,
    bucket: Bucket,
    after: Option<AccountId>,
    most: usize,
) -> Result<Vec<(AccountId, OwnerState)>> {
    let sql = "SELECT token, nonce, upto, buried, owner FROM owner WHERE bucket = ? AND owner > ?
        ORDER BY owner LIMIT ?";
    let params =
        params![bucket.index(), after.map_or(0, of_account), i64::try_from(most).unwrap_or(i64::MAX)];
    rows(connection, sql, params, |row| Ok((to_account(get(row, 4)?)?, state_at(row, 0)?)))
}

pub(super) fn walk_posts(
    connection: &Connection,
    bucket: Bucket,
    after: Option<(AccountId, PostId)>,
    most: usize,
) -> Result<Vec<WalkedPost>> {
    let sql = "SELECT owner, id, change, length(stored) + coalesce(length(parts), 0) FROM post
        WHERE bucket = ? AND (owner, id) > (?, ?) ORDER BY owner, id LIMIT ?";
    let (owner, id) = after.map_or((0, -1), |(owner, id)| (of_account(owner), of_post(id)));
    let params = params![bucket.index(), owner, id, i64::try_from(most).unwrap_or(i64::MAX)];
    rows(connection, sql, params, |row| {
        Ok(WalkedPost {
            owner: to_account(get(row, 0)?)?,
            id: to_post(get(row, 1)?)?,
            change: get::<i64>(row, 2)?.cast_unsigned(),
            bytes: to_count(get(row, 3)?),
        })
    })
}

pub(super) fn size(connection: &Connection) -> Result<ArchiveSize> {
    let pragma = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let bytes = pragma("page_count").and_then(|pages| Ok(pages * pragma("page_size")?)).map_err(fails)?;
    let posts: i64 =
        connection.query_row("SELECT count(*) FROM post", (), |row| row.get(0)).map_err(fails)?;
    Ok(ArchiveSize { bytes: to_count(bytes), posts: to_count(posts) })
}

/// `id, owner, change, stored, parts`.
fn post_at(row: &Row<'_>) -> Result<ArchivedPost> {
    Ok(ArchivedPost {
        id: to_post(get(row, 0)?)?,
        owner: to_account(get(row, 1)?)?,
        change: get::<i64>(row, 2)?.cast_unsigned(),
        stored: get(row, 3)?,
        parts: to_parts(get::<Option<Vec<u8>>>(row, 4)?.as_deref())?,
    })
}

/// `token, nonce, upto, buried` from that column on.
fn state_at(row: &Row<'_>, first: usize) -> Result<OwnerState> {
    to_state(get(row, first)?, &get::<Vec<u8>>(row, first + 1)?, get(row, first + 2)?, get(row, first + 3)?)
}

fn get<T: rusqlite::types::FromSql>(row: &Row<'_>, column: usize) -> Result<T> {
    row.get(column).map_err(fails)
}

/// All rows of a statement, each read by `read`.
pub(super) fn rows<T>(
    connection: &Connection,
    sql: &str,
    params: impl rusqlite::Params,
    mut read: impl FnMut(&Row<'_>) -> Result<T>,
) -> Result<Vec<T>> {
    let mut statement = connection.prepare_cached(sql).map_err(fails)?;
    let mut found = statement.query(params).map_err(fails)?;
    let mut all = Vec::new();
    while let Some(row) = found.next().map_err(fails)? {
        all.push(read(row)?);
    }
    Ok(all)
}

/// The first row of a statement, if there is one.
pub(super) fn number(
    connection: &Connection,
    sql: &str,
    params: impl rusqlite::Params,
) -> Result<Option<i64>> {
    let mut statement = connection.prepare_cached(sql).map_err(fails)?;
    statement.query_row(params, |row| row.get(0)).optional().map_err(fails)
}
