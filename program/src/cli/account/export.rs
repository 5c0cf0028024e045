//! All that is stored of an account, as lines of JSON: for whoever it is about.

use serde_json::{Value, json};
use tideline::registration::{Name, Registration};
use tideline::{AccountId, AccountList, CallFuture, Engine, ListQuery, PostList, Query, Reader};

/// Entries of a page.
const PAGE: usize = 100;
/// What the names of documents of sessions begin with; the rest leads to a token.
const SESSION: &str = "s:";

/// Prints it, a line each, a page at a time.
pub(super) async fn export(
    engine: &Engine,
    registration: &Registration,
    id: AccountId,
) -> anyhow::Result<()> {
    let account = registration.find(&[Name::Id(id)]).await?.pop().flatten();
    println!("{}", json!({ "account": account }));
    println!("{}", json!({ "profile": registration.profile(id).await? }));
    println!("{}", json!({ "email": registration.email(id).await? }));
    for (name, document) in registration.documents(id).await? {
        let name = if name.starts_with(SESSION) { "session" } else { &name };
        let said = serde_json::from_slice(&document.bytes)
            .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&document.bytes).into_owned()));
        println!("{}", json!({ "document": { "name": name, "content": said } }));
    }
    let reader = engine.as_reader(id);
    people("follows", reader, |reader, query| reader.following(id, query)).await?;
    people("follower", reader, |reader, query| reader.followers(id, query)).await?;
    people("blocks", reader, |reader, query| reader.blocks(query)).await?;
    people("mutes", reader, |reader, query| reader.mutes(query)).await?;
    people("asked_to_follow", reader, |reader, query| reader.requested(query)).await?;
    others("likes", reader, |reader, query| reader.likes(query)).await?;
    others("bookmarked", reader, |reader, query| reader.bookmarks(query)).await?;
    posts(reader, id).await
}

/// Accounts on one of its lists.
async fn people(
    what: &str,
    reader: Reader<'_>,
    page: impl for<'q> Fn(Reader<'q>, &'q ListQuery) -> CallFuture<'q, AccountList>,
) -> anyhow::Result<()> {
    let mut query = ListQuery::default().limit(PAGE);
    loop {
        let list = page(reader, &query).await?;
        for account in &list.accounts {
            println!("{}", json!({ what: { "id": account.id, "login": account.login } }));
        }
        let Some(older) = list.older else { return Ok(()) };
        query = query.older_than(older);
    }
}

/// Posts of others on one of its lists.
async fn others(
    what: &str,
    reader: Reader<'_>,
    page: impl for<'q> Fn(Reader<'q>, &'q ListQuery) -> CallFuture<'q, PostList>,
) -> anyhow::Result<()> {
    let mut query = ListQuery::default().limit(PAGE);
    loop {
        let list = page(reader, &query).await?;
        for post in &list.posts {
            println!("{}", json!({ what: { "id": post.id, "author": post.author } }));
        }
        anyhow::ensure!(!list.lacks_archive, "the archive is away: {what} ends too early");
        let Some(older) = list.older else { return Ok(()) };
        query = query.older_than(older);
    }
}

/// Its own posts, the newest first.
async fn posts(reader: Reader<'_>, id: AccountId) -> anyhow::Result<()> {
    let mut query = Query::profile(id).limit(PAGE).hydrated();
    loop {
        let page = reader.read(&query).await?;
        for post in &page.posts {
            println!("{}", json!({ "post": { "id": post.id, "content": post.post } }));
        }
        anyhow::ensure!(!page.lacks_archive, "the archive is away: posts end too early");
        let Some(next) = page.next else { return Ok(()) };
        query = Query { cursor: Some(next), ..query };
    }
}
