//! The index of posts by their words, in an archive in PostgreSQL.

use std::collections::HashSet;
use std::time::Duration;

use deadpool_postgres::Object;
use tideline_model::archive::{IndexChange, IndexKey, IndexVersion, SearchAsk, SearchPage};
use tideline_model::bucket::Bucket;
use tideline_model::error::Result;
use tideline_model::ids::{AccountId, PostId};
use tokio_postgres::types::{ToSql, Type};

use super::failure::fails;
use super::lease::{Connections, in_transaction, query_within};
use super::read::{answer, query};
use crate::rows::{of_account, of_post, of_version, to_account, to_post, to_version};
use crate::windows::{FIRST_POSTS, SearchExtent, Windows};

/// The condition that a post has the words, as the server likes to find it: from the index of words, or along the ids.
const FROM_ANYWHERE: &str = "words @@ $3::tsquery";
/// The condition along the ids. The index of words knows the operator, not its function: this one ends with the last
/// post that is wanted, whatever the server thinks of how common a word is, or doesn't know yet.
const ALONG_IDS: &str = "ts_match_vq(words, $3::tsquery)";

pub(super) async fn versions(readers: &Connections, keys: &[IndexKey]) -> Result<Vec<Option<IndexVersion>>> {
    let sql =
        "SELECT a.n, s.version FROM unnest($1::int[], $2::bigint[]) WITH ORDINALITY AS a (bucket, id, n)
        JOIN search s ON s.bucket = a.bucket AND s.id = a.id";
    let buckets: Vec<i32> = keys.iter().map(bucket).collect();
    let ids: Vec<i64> = keys.iter().map(|key| of_post(key.post)).collect();
    let mut versions = vec![None; keys.len()];
    for row in query(readers, sql, &[&buckets, &ids]).await? {
        *answer(&mut versions, row.get(0))? = Some(to_version(row.get(1)));
    }
    Ok(versions)
}

pub(super) async fn change(writers: &Connections, changes: &[IndexChange]) -> Result<Vec<bool>> {
    // All who change several posts lock them in one order.
    let mut sorted: Vec<&IndexChange> = changes.iter().collect();
    sorted.sort_unstable_by_key(|change| change.key);
    let made = writers
        .lend(async |connection| in_transaction(connection, async |c| make(c, &sorted).await).await)
        .await?;
    Ok(changes.iter().map(|change| made.contains(&of_post(change.key.post))).collect())
}

/// Makes the changes that may be made, and gives their posts.
async fn make(connection: &Object, changes: &[&IndexChange]) -> Result<HashSet<i64>> {
    let (later, first): (Vec<&IndexChange>, Vec<&IndexChange>) =
        changes.iter().partition(|change| change.seen.is_some());
    let mut made = HashSet::new();
    // No two words of one post are alike, and none has a space in it.
    let sql = "UPDATE search s SET version = a.version, author = a.author, is_public = a.is_public,
            words = array_to_tsvector(string_to_array(a.words, ' '))
        FROM unnest($1::int[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bool[], $6::text[], $7::bigint[])
            AS a (bucket, id, version, author, is_public, words, seen)
        WHERE s.bucket = a.bucket AND s.id = a.id AND s.version = a.seen RETURNING s.id";
    if !later.is_empty() {
        let columns = IndexColumns::new(&later);
        let seen: Vec<i64> = later.iter().filter_map(|change| change.seen).map(of_version).collect();
        made.extend(columns.send(connection, sql, &[&seen]).await?);
    }
    let sql = "INSERT INTO search (bucket, id, version, author, is_public, words)
        SELECT a.bucket, a.id, a.version, a.author, a.is_public, array_to_tsvector(string_to_array(a.words, ' '))
        FROM unnest($1::int[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bool[], $6::text[])
            AS a (bucket, id, version, author, is_public, words)
        ON CONFLICT (bucket, id) DO NOTHING RETURNING id";
    if !first.is_empty() {
        made.extend(IndexColumns::new(&first).send(connection, sql, &[]).await?);
    }
    Ok(made)
}

/// IndexColumns of changes.
struct IndexColumns {
    buckets: Vec<i32>,
    ids: Vec<i64>,
    versions: Vec<i64>,
    authors: Vec<Option<i64>>,
    public: Vec<bool>,
    words: Vec<Option<String>>,
}

impl IndexColumns {
    fn new(changes: &[&IndexChange]) -> Self {
        let posts = || changes.iter().map(|change| change.post.as_ref());
        Self {
            buckets: changes.iter().map(|change| bucket(&change.key)).collect(),
            ids: changes.iter().map(|change| of_post(change.key.post)).collect(),
            versions: changes.iter().map(|change| of_version(change.version)).collect(),
            authors: posts().map(|post| post.map(|post| of_account(post.author))).collect(),
            public: posts().map(|post| post.is_some_and(|post| post.is_public)).collect(),
            words: posts().map(|post| post.map(|post| post.words.join(" "))).collect(),
        }
    }

    async fn send(&self, connection: &Object, sql: &str, more: &[&(dyn ToSql + Sync)]) -> Result<Vec<i64>> {
        let Self { buckets, ids, versions, authors, public, words } = self;
        let own: [&(dyn ToSql + Sync); 6] = [buckets, ids, versions, authors, public, words];
        let params: Vec<&(dyn ToSql + Sync)> = own.into_iter().chain(more.iter().copied()).collect();
        let statement = connection.prepare_cached(sql).await.map_err(fails)?;
        let rows = connection.query(&statement, &params).await.map_err(fails)?;
        Ok(rows.iter().map(|row| row.get(0)).collect())
    }
}

pub(super) async fn find(searchers: &Connections, ask: &SearchAsk, budget: Duration) -> Result<SearchPage> {
    searchers.lend(async |connection| find_with(connection, ask, budget).await).await
}

/// Each window is a statement of its own: none waits for the others.
async fn find_with(connection: &Object, ask: &SearchAsk, budget: Duration) -> Result<SearchPage> {
    let mut windows = Windows::new(ask.below, ask.most, extent(connection, ask.below).await?, budget);
    let question: Vec<String> = ask.words.iter().map(|word| format!("'{word}'")).collect();
    let question = question.join(" & ");
    // Nobody has the number 0.
    let reader = ask.reader.map_or(0, of_account);
    let mut has_words = ALONG_IDS;
    let mut is_dear = false;
    while let Some(window) = windows.next() {
        let sql = format!(
            "SELECT id, author FROM search WHERE id >= $1 AND id < $2 AND {has_words}
                AND (is_public OR author = $4) ORDER BY id DESC LIMIT $5"
        );
        let most = i64::try_from(window.most).unwrap_or(i64::MAX);
        // Not prepared: each is planned by its own words and window, from the index of words or along that of ids.
        let params: [(&(dyn ToSql + Sync), Type); 5] = [
            (&window.from, Type::INT8),
            (&window.below, Type::INT8),
            (&question, Type::TEXT),
            (&reader, Type::INT8),
            (&most, Type::INT8),
        ];
        let rows = match window.within {
            None => Some(connection.query_typed(&sql, &params).await.map_err(fails)?),
            Some(within) => query_within(connection, within, &sql, &params).await?,
        };
        match rows {
            Some(rows) => {
                let found: Vec<(i64, i64)> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
                windows.take(&found)?;
            }
            None => {
                windows.give_up();
                is_dear = true;
            }
        }
        // What the index of words costs is no less for a shorter window.
        has_words = if is_dear { ALONG_IDS } else { FROM_ANYWHERE };
    }
    Ok(windows.into_page())
}

/// Reads the extent of what there is below where a search begins.
async fn extent(connection: &Object, below: u64) -> Result<Option<SearchExtent>> {
    let below = i64::try_from(below).unwrap_or(i64::MAX);
    let sql = format!(
        "SELECT (SELECT min(id) FROM search WHERE id < $1), (SELECT max(id) FROM search WHERE id < $1),
            (SELECT id FROM search WHERE id < $1 ORDER BY id DESC OFFSET {} LIMIT 1)",
        FIRST_POSTS - 1
    );
    let statement = connection.prepare_cached(&sql).await.map_err(fails)?;
    let row = connection.query_one(&statement, &[&below]).await.map_err(fails)?;
    let ends = row.get::<_, Option<i64>>(0).zip(row.get::<_, Option<i64>>(1));
    Ok(ends.map(|(lowest, highest)| SearchExtent { lowest, highest, first: row.get(2) }))
}

pub(super) async fn walk(
    readers: &Connections,
    bucket: Bucket,
    after: Option<PostId>,
    most: usize,
) -> Result<Vec<(PostId, AccountId)>> {
    let sql = "SELECT id, author FROM search WHERE bucket = $1 AND id > $2 AND author IS NOT NULL
        ORDER BY id LIMIT $3";
    let (bucket, after) = (i32::from(bucket.index()), after.map_or(-1, of_post));
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    let rows = query(readers, sql, &[&bucket, &after, &most]).await?;
    rows.iter().map(|row| Ok((to_post(row.get(0))?, to_account(row.get(1))?))).collect()
}

fn bucket(key: &IndexKey) -> i32 {
    i32::from(key.bucket.index())
}
