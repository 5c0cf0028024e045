//! Changing what an archive in PostgreSQL has.

use std::collections::{HashMap, HashSet};

use deadpool_postgres::Object;
use futures::try_join;
use tideline_model::archive::{
    ArchiveName, ArchivedPost, ChangeOutcome, ListMember, MemberList, OwnerChange, OwnerState, PostParts,
};
use tideline_model::error::{Error, Result};
use tideline_model::ids::PostId;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::failure::fails;
use super::lease::{Connections, in_transaction};
use crate::rows::{of_account, of_count, of_parts, of_post, to_name, to_parts, to_state};

/// Gives the archive a name, unless it has one.
pub(super) async fn adopt(writers: &Connections, name: ArchiveName) -> Result<ArchiveName> {
    writers
        .lend(async |connection| {
            in_transaction(connection, async |c| {
                let sql = "UPDATE store SET name = coalesce(name, $1) RETURNING name";
                let row = c.query_one(sql, &[&name.0.as_slice()]).await.map_err(fails)?;
                to_name(row.get(0))
            })
            .await
        })
        .await
}

/// Makes changes, those that may be made.
pub(super) async fn change(writers: &Connections, changes: &[OwnerChange]) -> Result<Vec<ChangeOutcome>> {
    // All who change several owners lock them in one order.
    let mut sorted: Vec<&OwnerChange> = changes.iter().collect();
    sorted.sort_unstable_by_key(|change| change.owner);
    let outcomes = writers
        .lend(async |connection| in_transaction(connection, async |c| make(c, &sorted).await).await)
        .await?;
    Ok(changes.iter().map(|change| outcomes[&change.owner.account]).collect())
}

type Outcomes = HashMap<tideline_model::ids::AccountId, ChangeOutcome>;

async fn make(connection: &Object, changes: &[&OwnerChange]) -> Result<Outcomes> {
    let mut outcomes = Outcomes::default();
    let first: Vec<(&OwnerChange, OwnerState)> =
        changes.iter().filter_map(|change| Some((*change, change.judge(None).ok()?))).collect();
    let begun = begin_owners(connection, &first).await?;
    let (new, rest): (Vec<&OwnerChange>, Vec<&OwnerChange>) =
        changes.iter().partition(|change| begun.contains(&of_account(change.owner.account)));
    let mut made = new;
    outcomes.extend(made.iter().map(|change| (change.owner.account, Ok(()))));
    let before = lock_owners(connection, &rest).await?;
    let mut raised = Vec::new();
    for change in rest {
        let judged = change.judge(before.get(&of_account(change.owner.account)));
        outcomes.insert(change.owner.account, judged.map(drop));
        if let Ok(state) = judged {
            raised.push((change, state));
            made.push(change);
        }
    }
    // One connection answers in the order in which it was asked, so all of it travels at once.
    try_join!(
        raise_owners(connection, &raised),
        put_posts(connection, &made),
        erase_posts(connection, &made),
        put_lists(connection, &made),
    )?;
    Ok(outcomes)
}

/// Begins owners of whom there is nothing so far; answers with those that it has begun: somebody else may have.
async fn begin_owners(connection: &Object, begun: &[(&OwnerChange, OwnerState)]) -> Result<Vec<i64>> {
    if begun.is_empty() {
        return Ok(Vec::new());
    }
    let sql = "INSERT INTO owner (bucket, owner, token, nonce, upto, buried)
        SELECT * FROM unnest($1::int[], $2::bigint[], $3::bigint[], $4::bytea[], $5::bigint[], $6::bool[])
        ON CONFLICT (bucket, owner) DO NOTHING RETURNING owner";
    let statement = connection.prepare_cached(sql).await.map_err(fails)?;
    let columns = OwnerColumns::new(begun);
    let rows = connection.query(&statement, &columns.params()).await.map_err(fails)?;
    Ok(rows.iter().map(|row| row.get(0)).collect())
}

/// Holds owners until the transaction ends, and tells how far they had got.
async fn lock_owners(connection: &Object, changes: &[&OwnerChange]) -> Result<HashMap<i64, OwnerState>> {
    if changes.is_empty() {
        return Ok(HashMap::new());
    }
    let sql = "SELECT o.owner, o.token, o.nonce, o.upto, o.buried
        FROM unnest($1::int[], $2::bigint[]) AS a (bucket, owner)
        JOIN owner o ON o.bucket = a.bucket AND o.owner = a.owner
        ORDER BY o.bucket, o.owner FOR UPDATE OF o";
    let statement = connection.prepare_cached(sql).await.map_err(fails)?;
    let (buckets, owners) = keys(changes.iter().map(|change| change.owner));
    let rows = connection.query(&statement, &[&buckets, &owners]).await.map_err(fails)?;
    rows.iter().map(|row| Ok((row.get(0), state_at(row, 1)?))).collect()
}

async fn raise_owners(connection: &Object, raised: &[(&OwnerChange, OwnerState)]) -> Result<()> {
    if raised.is_empty() {
        return Ok(());
    }
    let sql = "UPDATE owner o SET token = a.token, nonce = a.nonce, upto = a.upto, buried = a.buried
        FROM unnest($1::int[], $2::bigint[], $3::bigint[], $4::bytea[], $5::bigint[], $6::bool[])
            AS a (bucket, owner, token, nonce, upto, buried)
        WHERE o.bucket = a.bucket AND o.owner = a.owner";
    let columns = OwnerColumns::new(raised);
    execute(connection, sql, &columns.params()).await.map(drop)
}

async fn put_posts(connection: &Object, changes: &[&OwnerChange]) -> Result<()> {
    let posts: Vec<(i32, &ArchivedPost)> = changes
        .iter()
        .flat_map(|change| change.posts.iter().map(|(post, _)| (bucket(change), post)))
        .collect();
    if posts.is_empty() {
        return Ok(());
    }
    let sql = "INSERT INTO post (bucket, id, owner, change, stored, parts)
        SELECT * FROM unnest($1::int[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bytea[], $6::bytea[])
        ON CONFLICT (bucket, id) DO UPDATE
        SET change = excluded.change, stored = excluded.stored, parts = excluded.parts
        WHERE post.owner = excluded.owner AND post.parts IS NULL
        RETURNING id";
    let columns = PostColumns::new(&posts, &HashMap::new());
    let put: HashSet<i64> =
        query(connection, sql, &columns.params()).await?.iter().map(|row| row.get(0)).collect();
    let rest: Vec<_> = posts.into_iter().filter(|(_, post)| !put.contains(&of_post(post.id))).collect();
    if rest.is_empty() { Ok(()) } else { put_over(connection, &rest).await }
}

/// Puts posts in the place of those that are there with parts. H225: some of these may be a later release's.
async fn put_over(connection: &Object, posts: &[(i32, &ArchivedPost)]) -> Result<()> {
    let sql =
        "SELECT p.id, p.parts FROM unnest($1::int[], $2::bigint[], $3::bigint[]) AS a (bucket, id, owner)
        JOIN post p ON p.bucket = a.bucket AND p.id = a.id AND p.owner = a.owner";
    let asked = PostColumns::new(posts, &HashMap::new());
    let mut before = HashMap::new();
    for row in query(connection, sql, &[&asked.buckets, &asked.ids, &asked.owners]).await? {
        before.insert(row.get(0), to_parts(row.get(1))?);
    }
    if before.len() < posts.len() {
        let ids: Vec<PostId> = posts.iter().map(|(_, post)| post.id).collect();
        return Err(Error::internal(format!(
            "of posts {ids:?} some are in the archive as another account's"
        )));
    }
    let sql = "UPDATE post p SET change = a.change, stored = a.stored, parts = a.parts
        FROM unnest($1::int[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bytea[], $6::bytea[])
            AS a (bucket, id, owner, change, stored, parts)
        WHERE p.bucket = a.bucket AND p.id = a.id AND p.owner = a.owner";
    execute(connection, sql, &PostColumns::new(posts, &before).params()).await.map(drop)
}

async fn erase_posts(connection: &Object, changes: &[&OwnerChange]) -> Result<()> {
    let erased = changes.iter().flat_map(|change| change.erased.iter().map(move |id| (change, of_post(*id))));
    let (mut buckets, mut owners, mut ids) = (Vec::new(), Vec::new(), Vec::new());
    for (change, id) in erased {
        buckets.push(bucket(change));
        owners.push(of_account(change.owner.account));
        ids.push(id);
    }
    if ids.is_empty() {
        return Ok(());
    }
    // One statement sees one moment: members go by what is a post of that owner before it goes.
    let sql = "WITH gone AS (
            DELETE FROM post p USING unnest($1::int[], $2::bigint[], $3::bigint[]) AS a (bucket, owner, id)
            WHERE p.bucket = a.bucket AND p.id = a.id AND p.owner = a.owner
            RETURNING p.bucket, p.id)
        DELETE FROM member m USING gone WHERE m.bucket = gone.bucket AND m.post = gone.id";
    execute(connection, sql, &[&buckets, &owners, &ids]).await.map(drop)
}

async fn put_lists(connection: &Object, changes: &[&OwnerChange]) -> Result<()> {
    let lists: Vec<(i32, PostId, &MemberList)> = changes
        .iter()
        .flat_map(|change| change.posts.iter().map(|(post, lists)| (bucket(change), post.id, lists)))
        .flat_map(|(bucket, post, lists)| lists.iter().map(move |list| (bucket, post, list)))
        .collect();
    if lists.is_empty() {
        return Ok(());
    }
    let mut cut = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut put = ((Vec::new(), Vec::new(), Vec::new()), (Vec::new(), Vec::new(), Vec::new()));
    for (bucket, post, list) in lists {
        let kind = i16::from(list.kind.0);
        cut.0.push(bucket);
        cut.1.push(of_post(post));
        cut.2.push(kind);
        cut.3.push(chunk_number(list.first)?);
        for (number, members) in list.chunks() {
            put.0.0.push(bucket);
            put.0.1.push(of_post(post));
            put.0.2.push(kind);
            put.1.0.push(chunk_number(number)?);
            put.1.1.push(members.first().map_or(0.0, |member| member.score));
            put.1.2.push(ListMember::encode(members)?);
        }
    }
    let sql = "DELETE FROM member m
        USING unnest($1::int[], $2::bigint[], $3::smallint[], $4::int[]) AS a (bucket, post, kind, first)
        WHERE m.bucket = a.bucket AND m.post = a.post AND m.kind = a.kind AND m.chunk >= a.first";
    execute(connection, sql, &[&cut.0, &cut.1, &cut.2, &cut.3]).await?;
    let ((buckets, posts, kinds), (chunks, lows, members)) = put;
    if chunks.is_empty() {
        return Ok(());
    }
    let sql = "INSERT INTO member (bucket, post, kind, chunk, low, members)
        SELECT * FROM unnest($1::int[], $2::bigint[], $3::smallint[], $4::int[], $5::float8[], $6::bytea[])";
    execute(connection, sql, &[&buckets, &posts, &kinds, &chunks, &lows, &members]).await.map(drop)
}

/// Columns of owners' rows.
struct OwnerColumns<'a> {
    buckets: Vec<i32>,
    owners: Vec<i64>,
    tokens: Vec<i64>,
    nonces: Vec<&'a [u8]>,
    uptos: Vec<i64>,
    buried: Vec<bool>,
}

impl<'a> OwnerColumns<'a> {
    fn new(states: &'a [(&OwnerChange, OwnerState)]) -> Self {
        let (buckets, owners) = keys(states.iter().map(|(change, _)| change.owner));
        Self {
            buckets,
            owners,
            tokens: states.iter().map(|(_, state)| of_count(state.token.number)).collect(),
            nonces: states.iter().map(|(_, state)| &state.token.nonce[..]).collect(),
            uptos: states.iter().map(|(_, state)| of_post(state.upto)).collect(),
            buried: states.iter().map(|(_, state)| state.is_buried).collect(),
        }
    }

    fn params(&self) -> [&(dyn ToSql + Sync); 6] {
        [&self.buckets, &self.owners, &self.tokens, &self.nonces, &self.uptos, &self.buried]
    }
}

/// Columns of posts' rows.
struct PostColumns<'a> {
    buckets: Vec<i32>,
    ids: Vec<i64>,
    owners: Vec<i64>,
    versions: Vec<i64>,
    stored: Vec<&'a [u8]>,
    parts: Vec<Option<Vec<u8>>>,
}

impl<'a> PostColumns<'a> {
    /// `before`: the parts that are there, by the posts' ids.
    fn new(posts: &[(i32, &'a ArchivedPost)], before: &HashMap<i64, PostParts>) -> Self {
        let none = PostParts::default();
        let parts =
            |post: &ArchivedPost| of_parts(&post.parts, before.get(&of_post(post.id)).unwrap_or(&none));
        Self {
            buckets: posts.iter().map(|(bucket, _)| *bucket).collect(),
            ids: posts.iter().map(|(_, post)| of_post(post.id)).collect(),
            owners: posts.iter().map(|(_, post)| of_account(post.owner)).collect(),
            versions: posts.iter().map(|(_, post)| post.change.cast_signed()).collect(),
            stored: posts.iter().map(|(_, post)| &*post.stored).collect(),
            parts: posts.iter().map(|(_, post)| parts(post)).collect(),
        }
    }

    fn params(&self) -> [&(dyn ToSql + Sync); 6] {
        [&self.buckets, &self.ids, &self.owners, &self.versions, &self.stored, &self.parts]
    }
}

/// Keys of owners, as two columns.
pub(super) fn keys(owners: impl Iterator<Item = tideline_model::archive::Owner>) -> (Vec<i32>, Vec<i64>) {
    owners.map(|owner| (i32::from(owner.bucket.index()), of_account(owner.account))).unzip()
}

/// `token, nonce, upto, buried` from that column on.
pub(super) fn state_at(row: &Row, first: usize) -> Result<OwnerState> {
    to_state(row.get(first), row.get(first + 1), row.get(first + 2), row.get(first + 3))
}

async fn query(connection: &Object, sql: &str, params: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>> {
    let statement = connection.prepare_cached(sql).await.map_err(fails)?;
    connection.query(&statement, params).await.map_err(fails)
}

/// Runs a statement; answers with how many rows it changed.
pub(super) async fn execute(connection: &Object, sql: &str, params: &[&(dyn ToSql + Sync)]) -> Result<u64> {
    let statement = connection.prepare_cached(sql).await.map_err(fails)?;
    connection.execute(&statement, params).await.map_err(fails)
}

fn bucket(change: &OwnerChange) -> i32 {
    i32::from(change.owner.bucket.index())
}

fn chunk_number(number: u32) -> Result<i32> {
    i32::try_from(number)
        .map_err(|_| Error::out_of_range(format!("chunk {number} of a list: at most {}", i32::MAX)))
}
