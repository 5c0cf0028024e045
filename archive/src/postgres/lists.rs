//! Lists of posts in an archive in PostgreSQL.

use deadpool_postgres::Object;
use tideline_model::archive::{
    ListKey, ListPlace, ListedPost, PageOrder, PostListAsk, PostListChange, PostListPage,
};
use tideline_model::bucket::Bucket;
use tideline_model::error::Result;

use super::lease::{Connections, in_transaction};
use super::read::{answer, query};
use super::write::execute;
use crate::rows::{of_account, of_count, of_post, sides, to_account, to_count, to_post};

pub(super) async fn change(writers: &Connections, changes: &[PostListChange]) -> Result<()> {
    writers.lend(async |connection| in_transaction(connection, async |c| make(c, changes).await).await).await
}

async fn make(connection: &Object, changes: &[PostListChange]) -> Result<()> {
    let listed = |which: fn(&PostListChange) -> &Vec<ListedPost>| {
        changes.iter().flat_map(move |change| which(change).iter().map(|post| (&change.list, *post)))
    };
    let added = Columns::new(listed(|change| &change.added));
    // Sorted: who else adds the same rows takes them in the same order. Removals in the order of their plan may
    // deadlock with others: that ends one of them, with nothing written.
    let sql = "INSERT INTO listed (bucket, list, ms, post, author)
        SELECT * FROM unnest($1::int[], $2::bytea[], $3::bigint[], $4::bigint[], $5::bigint[])
        ON CONFLICT (bucket, list, ms, post) DO NOTHING";
    if !added.posts.is_empty() {
        let Columns { buckets, lists, ms, posts, authors } = &added;
        execute(connection, sql, &[buckets, lists, ms, posts, authors]).await?;
    }
    let removed = Columns::new(listed(|change| &change.removed));
    let sql = "DELETE FROM listed l USING unnest($1::int[], $2::bytea[], $3::bigint[], $4::bigint[])
            AS a (bucket, list, ms, post)
        WHERE l.bucket = a.bucket AND l.list = a.list AND l.ms = a.ms AND l.post = a.post";
    if !removed.posts.is_empty() {
        let Columns { buckets, lists, ms, posts, .. } = &removed;
        execute(connection, sql, &[buckets, lists, ms, posts]).await?;
    }
    let mut stamps: Vec<(i32, &[u8], i64)> = changes
        .iter()
        .map(|change| (bucket(&change.list), &*change.list.name, of_count(change.stamp)))
        .collect();
    stamps.sort_unstable();
    // Of one list the highest: a statement doesn't write a row twice.
    stamps.dedup_by(|above, kept| {
        let is_same = (above.0, above.1) == (kept.0, kept.1);
        if is_same {
            kept.2 = above.2;
        }
        is_same
    });
    let buckets: Vec<i32> = stamps.iter().map(|stamp| stamp.0).collect();
    let names: Vec<&[u8]> = stamps.iter().map(|stamp| stamp.1).collect();
    let upto: Vec<i64> = stamps.iter().map(|stamp| stamp.2).collect();
    let sql = "INSERT INTO list_stamp AS s (bucket, list, stamp)
        SELECT * FROM unnest($1::int[], $2::bytea[], $3::bigint[])
        ON CONFLICT (bucket, list) DO UPDATE SET stamp = greatest(s.stamp, excluded.stamp)";
    execute(connection, sql, &[&buckets, &names, &upto]).await.map(drop)
}

pub(super) async fn pages(
    readers: &Connections,
    asks: &[PostListAsk],
    order: PageOrder,
) -> Result<Vec<PostListPage>> {
    let (side, way) = sides(order);
    let sql = format!(
        "SELECT a.n, s.stamp, l.ms, l.post, l.author
        FROM unnest($1::int[], $2::bytea[], $3::bigint[], $4::bigint[], $5::int[]) WITH ORDINALITY
            AS a (bucket, list, ms, post, most, n)
        LEFT JOIN list_stamp s ON s.bucket = a.bucket AND s.list = a.list
        LEFT JOIN LATERAL (
            SELECT ms, post, author FROM listed l
            WHERE l.bucket = a.bucket AND l.list = a.list AND (l.ms, l.post) {side} (a.ms, a.post)
            ORDER BY l.ms {way}, l.post {way} LIMIT a.most) l ON true"
    );
    let buckets: Vec<i32> = asks.iter().map(|ask| bucket(&ask.list)).collect();
    let names: Vec<&[u8]> = asks.iter().map(|ask| &*ask.list.name).collect();
    let ms: Vec<i64> = asks.iter().map(|ask| of_count(ask.edge.unix_ms)).collect();
    let posts: Vec<i64> = asks.iter().map(|ask| of_post(ask.edge.post)).collect();
    let most: Vec<i32> = asks.iter().map(|ask| i32::try_from(ask.most).unwrap_or(i32::MAX)).collect();
    let mut pages = vec![PostListPage::default(); asks.len()];
    for row in query(readers, &sql, &[&buckets, &names, &ms, &posts, &most]).await? {
        let page = answer(&mut pages, row.get(0))?;
        page.stamp = to_count(row.get::<_, Option<i64>>(1).unwrap_or(0));
        if let Some(ms) = row.get::<_, Option<i64>>(2) {
            let place = ListPlace { unix_ms: to_count(ms), post: to_post(row.get(3))? };
            page.posts.push(ListedPost { place, author: to_account(row.get(4))? });
        }
    }
    for page in &mut pages {
        page.posts.sort_unstable();
        if order == PageOrder::NewestFirst {
            page.posts.reverse();
        }
    }
    Ok(pages)
}

/// Names of a bucket's lists.
pub(super) async fn walk(
    readers: &Connections,
    bucket: Bucket,
    after: &[u8],
    most: usize,
) -> Result<Vec<Vec<u8>>> {
    let sql = "SELECT list FROM list_stamp WHERE bucket = $1 AND list > $2 ORDER BY list LIMIT $3";
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    let rows = query(readers, sql, &[&i32::from(bucket.index()), &after, &most]).await?;
    Ok(rows.iter().map(|row| row.get(0)).collect())
}

/// Columns of listed posts.
struct Columns<'a> {
    buckets: Vec<i32>,
    lists: Vec<&'a [u8]>,
    ms: Vec<i64>,
    posts: Vec<i64>,
    authors: Vec<i64>,
}

impl<'a> Columns<'a> {
    fn new(listed: impl Iterator<Item = (&'a ListKey, ListedPost)>) -> Self {
        let mut listed: Vec<(i32, &[u8], ListedPost)> =
            listed.map(|(list, post)| (bucket(list), &*list.name, post)).collect();
        listed.sort_unstable();
        Self {
            buckets: listed.iter().map(|row| row.0).collect(),
            lists: listed.iter().map(|row| row.1).collect(),
            ms: listed.iter().map(|row| of_count(row.2.place.unix_ms)).collect(),
            posts: listed.iter().map(|row| of_post(row.2.place.post)).collect(),
            authors: listed.iter().map(|row| of_account(row.2.author)).collect(),
        }
    }
}

fn bucket(list: &ListKey) -> i32 {
    i32::from(list.bucket.index())
}
