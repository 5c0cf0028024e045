//! Reading from an archive in PostgreSQL. One statement sees one moment, so each call is one; or several in a
//! transaction that sees one.

use deadpool_postgres::Object;
use futures::future::try_join_all;
use tideline_model::archive::{
    ArchiveName, ArchiveSize, ArchivedPost, ListKind, MembersAnswer, MembersAsk, Owner, OwnerPage,
    OwnerState, PageAsk, PageOrder, PostAnswer, PostAsk, WalkedPost,
};
use tideline_model::bucket::Bucket;
use tideline_model::error::{Error, Result};
use tideline_model::ids::{AccountId, PostId};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::failure::fails;
use super::lease::{Connections, at_one_moment};
use super::write::{keys, state_at};
use crate::rows::{
    MemberPage, of_account, of_post, sides, to_account, to_count, to_name, to_parts, to_post, to_state,
};

pub(super) async fn name(readers: &Connections) -> Result<Option<ArchiveName>> {
    let rows = query(readers, "SELECT name FROM store", &[]).await?;
    rows.first().and_then(|row| row.get(0)).map(to_name).transpose()
}

pub(super) async fn owners(readers: &Connections, owners: &[Owner]) -> Result<Vec<Option<OwnerState>>> {
    let sql = "SELECT a.n, o.token, o.nonce, o.upto, o.buried
        FROM unnest($1::int[], $2::bigint[]) WITH ORDINALITY AS a (bucket, owner, n)
        JOIN owner o ON o.bucket = a.bucket AND o.owner = a.owner";
    let (buckets, accounts) = keys(owners.iter().copied());
    let mut answers = vec![None; owners.len()];
    for row in query(readers, sql, &[&buckets, &accounts]).await? {
        *answer(&mut answers, row.get(0))? = Some(state_at(&row, 1)?);
    }
    Ok(answers)
}

pub(super) async fn pages_of_ids(
    readers: &Connections,
    asks: &[PageAsk],
    order: PageOrder,
) -> Result<Vec<OwnerPage>> {
    // One row for all: a home asks for hundreds of accounts, and each row costs both sides.
    let (side, sorted) = sides(order);
    let sql = format!(
        "SELECT array_agg(a.n), array_agg(o.token), array_agg(o.nonce), array_agg(o.upto), array_agg(o.buried),
            array_agg((SELECT string_agg(int8send(p.id), '') FROM (
                SELECT p.id FROM post p WHERE p.bucket = a.bucket AND p.owner = a.owner AND p.id {side} a.edge
                ORDER BY p.id {sorted} LIMIT a.most) p))
        FROM unnest($1::int[], $2::bigint[], $3::bigint[], $4::int[]) WITH ORDINALITY
            AS a (bucket, owner, edge, most, n)
        LEFT JOIN owner o ON o.bucket = a.bucket AND o.owner = a.owner"
    );
    let mut pages = empty_pages(asks);
    for row in query_asks(readers, &sql, asks).await? {
        let Some(numbers) = row.get::<_, Option<Vec<i64>>>(0) else { continue };
        let states = states_at(&row, 1)?;
        let ids: Vec<Option<&[u8]>> = row.get(5);
        for ((number, state), ids) in numbers.into_iter().zip(states).zip(ids) {
            let page = answer(&mut pages, number)?;
            page.owner = state;
            page.ids = ids_of(ids.unwrap_or_default(), order)?;
        }
    }
    Ok(pages)
}

/// Ids of 8 bytes, in that order whatever the server's plan was.
fn ids_of(bytes: &[u8], order: PageOrder) -> Result<Vec<PostId>> {
    let (ids, _) = bytes.as_chunks::<8>();
    let mut ids: Vec<PostId> =
        ids.iter().map(|id| to_post(i64::from_be_bytes(*id))).collect::<Result<_>>()?;
    ids.sort_unstable();
    if order == PageOrder::NewestFirst {
        ids.reverse();
    }
    Ok(ids)
}

pub(super) async fn pages_of_posts(
    readers: &Connections,
    asks: &[PageAsk],
    order: PageOrder,
) -> Result<Vec<OwnerPage>> {
    let (side, sorted) = sides(order);
    let sql = format!(
        "SELECT a.n, o.token, o.nonce, o.upto, o.buried, p.id, p.owner, p.change, p.stored, p.parts
        FROM unnest($1::int[], $2::bigint[], $3::bigint[], $4::int[]) WITH ORDINALITY
            AS a (bucket, owner, edge, most, n)
        LEFT JOIN owner o ON o.bucket = a.bucket AND o.owner = a.owner
        LEFT JOIN LATERAL (
            SELECT * FROM post p WHERE p.bucket = a.bucket AND p.owner = a.owner AND p.id {side} a.edge
            ORDER BY p.id {sorted} LIMIT a.most) p ON true"
    );
    let mut pages = empty_pages(asks);
    for row in query_asks(readers, &sql, asks).await? {
        let page = answer(&mut pages, row.get(0))?;
        page.owner = maybe_state_at(&row, 1)?;
        page.posts.extend(maybe_post_at(&row, 5)?);
    }
    for page in &mut pages {
        // The plan may join them in any order.
        page.posts.sort_unstable_by_key(|post| post.id);
        if order == PageOrder::NewestFirst {
            page.posts.reverse();
        }
        page.ids = page.posts.iter().map(|post| post.id).collect();
    }
    Ok(pages)
}

pub(super) async fn posts(readers: &Connections, asks: &[PostAsk]) -> Result<Vec<PostAnswer>> {
    let sql = "SELECT a.n, o.token, o.nonce, o.upto, o.buried, p.id, p.owner, p.change, p.stored, p.parts
        FROM unnest($1::int[], $2::bigint[], $3::bigint[]) WITH ORDINALITY AS a (bucket, id, owner, n)
        LEFT JOIN post p ON p.bucket = a.bucket AND p.id = a.id AND (a.owner IS NULL OR p.owner = a.owner)
        LEFT JOIN owner o ON o.bucket = a.bucket AND o.owner = coalesce(a.owner, p.owner)";
    let buckets: Vec<i32> = asks.iter().map(|ask| i32::from(ask.bucket.index())).collect();
    let ids: Vec<i64> = asks.iter().map(|ask| of_post(ask.id)).collect();
    let owners: Vec<Option<i64>> = asks.iter().map(|ask| ask.owner.map(of_account)).collect();
    let mut answers = vec![PostAnswer { post: None, owner: None }; asks.len()];
    for row in query(readers, sql, &[&buckets, &ids, &owners]).await? {
        *answer(&mut answers, row.get(0))? =
            PostAnswer { post: maybe_post_at(&row, 5)?, owner: maybe_state_at(&row, 1)? };
    }
    Ok(answers)
}

pub(super) async fn members(readers: &Connections, asks: &[MembersAsk]) -> Result<Vec<MembersAnswer>> {
    let read = async |connection: &Object| {
        let Some((first, rest)) = asks.split_first() else { return Ok(Vec::new()) };
        // Alone, for its statements are prepared once. Then all travel at once: one connection answers in the order
        // in which it was asked.
        let first = members_at(connection, first).await?;
        let rest = try_join_all(rest.iter().map(|ask| members_at(connection, ask))).await?;
        Ok([first].into_iter().chain(rest).collect())
    };
    readers.lend(async |connection| at_one_moment(connection, read).await).await
}

async fn members_at(connection: &Object, ask: &MembersAsk) -> Result<MembersAnswer> {
    let sql = "SELECT o.token, o.nonce, o.upto, o.buried FROM post p
        JOIN owner o ON o.bucket = p.bucket AND o.owner = p.owner WHERE p.bucket = $1 AND p.id = $2";
    let post = of_post(ask.post);
    let found = rows(connection, sql, &[&i32::from(ask.bucket.index()), &post]).await?;
    let owner = found.first().map(|row| state_at(row, 0)).transpose()?;
    let mut page = MemberPage::new(ask);
    while let Some((below, low, most)) = page.wants() {
        let sql = "SELECT chunk, members FROM member
            WHERE bucket = $1 AND post = $2 AND kind = $3 AND chunk < $4 AND low <= $5
            ORDER BY chunk DESC LIMIT $6";
        let (bucket, kind) = (i32::from(ask.bucket.index()), i16::from(ask.kind.0));
        let chunks = rows(connection, sql, &[&bucket, &post, &kind, &below, &low, &most]).await?;
        if chunks.is_empty() {
            page.ends();
        }
        chunks.iter().try_for_each(|row| page.take(row.get(0), row.get(1)))?;
    }
    Ok(MembersAnswer { owner, members: page.into_members() })
}

pub(super) async fn kinds(readers: &Connections, posts: &[PostAsk]) -> Result<Vec<Vec<ListKind>>> {
    let sql = "SELECT DISTINCT a.n, m.kind
        FROM unnest($1::int[], $2::bigint[]) WITH ORDINALITY AS a (bucket, post, n)
        JOIN member m ON m.bucket = a.bucket AND m.post = a.post ORDER BY a.n, m.kind";
    let buckets: Vec<i32> = posts.iter().map(|post| i32::from(post.bucket.index())).collect();
    let ids: Vec<i64> = posts.iter().map(|post| of_post(post.id)).collect();
    let mut answers = vec![Vec::new(); posts.len()];
    for row in query(readers, sql, &[&buckets, &ids]).await? {
        let kind = u8::try_from(row.get::<_, i16>(1));
        let kind = kind.map_err(|_| Error::internal("the archive holds a list whose kind is no byte"))?;
        answer(&mut answers, row.get(0))?.push(ListKind(kind));
    }
    Ok(answers)
}

pub(super) async fn walk_owners(
    readers: &Connections,
    bucket: Bucket,
    after: Option<AccountId>,
    most: usize,
) -> Result<Vec<(AccountId, OwnerState)>> {
    let sql = "SELECT token, nonce, upto, buried, owner FROM owner WHERE bucket = $1 AND owner > $2
        ORDER BY owner LIMIT $3";
    let (after, most) = (after.map_or(0, of_account), i64::try_from(most).unwrap_or(i64::MAX));
    let rows = query(readers, sql, &[&i32::from(bucket.index()), &after, &most]).await?;
    rows.iter().map(|row| Ok((to_account(row.get(4))?, state_at(row, 0)?))).collect()
}

pub(super) async fn walk_posts(
    readers: &Connections,
    bucket: Bucket,
    after: Option<(AccountId, PostId)>,
    most: usize,
) -> Result<Vec<WalkedPost>> {
    let sql = "SELECT owner, id, change, (length(stored) + coalesce(length(parts), 0))::bigint FROM post
        WHERE bucket = $1 AND (owner, id) > ($2, $3) ORDER BY owner, id LIMIT $4";
    let (owner, id) = after.map_or((0, -1), |(owner, id)| (of_account(owner), of_post(id)));
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    let rows = query(readers, sql, &[&i32::from(bucket.index()), &owner, &id, &most]).await?;
    let walked = rows.iter().map(|row| {
        Ok(WalkedPost {
            owner: to_account(row.get(0))?,
            id: to_post(row.get(1))?,
            change: row.get::<_, i64>(2).cast_unsigned(),
            bytes: to_count(row.get(3)),
        })
    });
    walked.collect()
}

/// So many posts are counted one by one.
const FEW: i64 = 10_000;

pub(super) async fn size(readers: &Connections) -> Result<ArchiveSize> {
    // How many rows there are is what the server reckons, once it has looked: counting them would read them all.
    let sql = "SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint,
            greatest(coalesce(max(reltuples) FILTER (WHERE relname = 'post'), 0), 0)::bigint
        FROM pg_class
        WHERE relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = current_schema()) AND relkind = 'r'";
    let rows = query(readers, sql, &[]).await?;
    let row = rows.first().ok_or_else(|| Error::internal("the archive doesn't tell its size"))?;
    // Few are counted: until the server looks it reckons with none.
    let few = query(readers, "SELECT count(*) FROM (SELECT FROM post LIMIT $1) AS few", &[&FEW]).await?;
    let few: i64 = few.first().map_or(0, |row| row.get(0));
    let posts = if few < FEW { few } else { row.get::<_, i64>(1).max(few) };
    Ok(ArchiveSize { bytes: to_count(row.get(0)), posts: to_count(posts) })
}

/// Makes a call that reads.
pub(super) async fn query(
    readers: &Connections,
    sql: &str,
    params: &[&(dyn ToSql + Sync)],
) -> Result<Vec<Row>> {
    readers.lend(async |connection| rows(connection, sql, params).await).await
}

async fn rows(connection: &Object, sql: &str, params: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>> {
    let statement = connection.prepare_cached(sql).await.map_err(fails)?;
    connection.query(&statement, params).await.map_err(fails)
}

async fn query_asks(readers: &Connections, sql: &str, asks: &[PageAsk]) -> Result<Vec<Row>> {
    let (buckets, owners) = keys(asks.iter().map(|ask| ask.owner));
    let edges: Vec<i64> = asks.iter().map(|ask| of_post(ask.edge)).collect();
    let most: Vec<i32> = asks.iter().map(|ask| i32::try_from(ask.most).unwrap_or(i32::MAX)).collect();
    query(readers, sql, &[&buckets, &owners, &edges, &most]).await
}

fn empty_pages(asks: &[PageAsk]) -> Vec<OwnerPage> {
    vec![OwnerPage { owner: None, ids: Vec::new(), posts: Vec::new() }; asks.len()]
}

/// The answer to the question with that number, which SQL counts from 1.
pub(super) fn answer<T>(answers: &mut [T], number: i64) -> Result<&mut T> {
    let place = usize::try_from(number).ok().and_then(|number| number.checked_sub(1));
    place
        .and_then(|place| answers.get_mut(place))
        .ok_or_else(|| Error::internal(format!("the archive answers question {number}, which wasn't asked")))
}

fn maybe_state_at(row: &Row, first: usize) -> Result<Option<OwnerState>> {
    row.get::<_, Option<i64>>(first).map(|_| state_at(row, first)).transpose()
}

/// Reads the states of many owners, each column an array.
fn states_at(row: &Row, first: usize) -> Result<Vec<Option<OwnerState>>> {
    let tokens: Vec<Option<i64>> = row.get(first);
    let nonces: Vec<Option<&[u8]>> = row.get(first + 1);
    let uptos: Vec<Option<i64>> = row.get(first + 2);
    let buried: Vec<Option<bool>> = row.get(first + 3);
    let all = tokens.into_iter().zip(nonces).zip(uptos).zip(buried);
    let state = |(((token, nonce), upto), buried)| match (token, nonce, upto, buried) {
        (Some(token), Some(nonce), Some(upto), Some(buried)) => {
            to_state(token, nonce, upto, buried).map(Some)
        }
        _ => Ok(None),
    };
    all.map(state).collect()
}

/// `id, owner, change, stored, parts` from that column on.
fn maybe_post_at(row: &Row, first: usize) -> Result<Option<ArchivedPost>> {
    let Some(id) = row.get::<_, Option<i64>>(first) else { return Ok(None) };
    Ok(Some(ArchivedPost {
        id: to_post(id)?,
        owner: to_account(row.get(first + 1))?,
        change: row.get::<_, i64>(first + 2).cast_unsigned(),
        stored: row.get(first + 3),
        parts: to_parts(row.get(first + 4))?,
    }))
}
