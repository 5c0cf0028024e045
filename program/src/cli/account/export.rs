//! All that is stored of an account, as lines of JSON: for whoever it is about.

use serde_json::{Value, json};
use tideline::registration::{Name, Registration};
use tideline::{
    AccountId, AccountList, CallFuture, ChatQuery, Engine, ListQuery, NotificationQuery, PostList, Reader,
    Relationship,
};
use tideline_server::moderation::readable;

/// Entries of a page.
const PAGE: usize = 100;
/// Prefix of the names of sessions' documents; the rest leads to a token.
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
    println!("{}", json!({ "limits": engine.own_limits(id).await? }));
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
    people("hides_from", reader, |reader, query| reader.hides(query)).await?;
    people("mutes", reader, |reader, query| reader.mutes(query)).await?;
    notes(engine, id).await?;
    people("asked_to_follow", reader, |reader, query| reader.requested(query)).await?;
    others("likes", reader, |reader, query| reader.likes(query)).await?;
    others("bookmarked", reader, |reader, query| reader.bookmarks(query)).await?;
    notifications(reader).await?;
    chats(reader).await?;
    written(engine, id).await?;
    posts(engine, id).await
}

/// Accounts on one of its lists, each with what is said of it alone.
async fn people(
    what: &str,
    reader: Reader<'_>,
    page: impl for<'q> Fn(Reader<'q>, &'q ListQuery) -> CallFuture<'q, AccountList>,
) -> anyhow::Result<()> {
    let mut query = ListQuery::default().limit(PAGE);
    loop {
        let list = page(reader, &query).await?;
        let ids: Vec<AccountId> = list.accounts.iter().map(|account| account.id).collect();
        let stand = reader.relationships(&ids).await?;
        for (account, stands) in list.accounts.iter().zip(&stand) {
            let mut said = json!({ "id": account.id, "login": account.login });
            if let Some(stands) = stands {
                add_terms(what, stands, &mut said);
            }
            println!("{}", json!({ what: said }));
        }
        let Some(older) = list.older else { return Ok(()) };
        query = query.older_than(older);
    }
}

/// Adds what is agreed beside a follow or a mute, where it isn't the usual.
fn add_terms(what: &str, stands: &Relationship, said: &mut Value) {
    match what {
        "follows" if !stands.shows_reposts => said["shows_reposts"] = false.into(),
        "mutes" => {
            said["until_ms"] = stands.muted_until_ms.into();
            said["is_told_all_the_same"] = stands.is_told_all_the_same.into();
        }
        _ => {}
    }
}

/// Its private notes on others that are there.
async fn notes(engine: &Engine, id: AccountId) -> anyhow::Result<()> {
    for on in engine.stored().noted(id).await?.chunks(PAGE) {
        for stands in engine.as_reader(id).relationships(on).await?.into_iter().flatten() {
            println!("{}", json!({ "note": { "on": stands.account, "text": stands.note } }));
        }
    }
    Ok(())
}

/// Its notifications: what it is told of others.
async fn notifications(reader: Reader<'_>) -> anyhow::Result<()> {
    let mut query = NotificationQuery::default().limit(PAGE);
    loop {
        let page = reader.notifications(&query).await?;
        for told in &page.notifications {
            let (by, post) = (told.account.id, told.post.as_ref().map(|post| post.id));
            println!(
                "{}",
                json!({ "notification": { "id": told.id, "kind": told.kind, "by": by, "post": post } })
            );
        }
        anyhow::ensure!(!page.lacks_archive, "the archive is away: notifications end too early");
        let Some(older) = page.older else { return Ok(()) };
        query.max_id = Some(older);
    }
}

/// The chats on its list.
async fn chats(reader: Reader<'_>) -> anyhow::Result<()> {
    let mut query = ChatQuery { limit: Some(PAGE), ..ChatQuery::default() };
    loop {
        let list = reader.chats(&query).await?;
        for chat in &list.chats {
            let others: Vec<AccountId> = chat.others.iter().map(|other| other.id).collect();
            println!("{}", json!({ "chat": { "id": chat.id, "others": others, "unread": chat.unread } }));
        }
        anyhow::ensure!(!list.lacks_archive, "the archive is away: chats end too early");
        let Some(older) = list.older else { return Ok(()) };
        query.max_id = Some(older);
    }
}

/// All that it has written into groups and chats, the newest first.
async fn written(engine: &Engine, id: AccountId) -> anyhow::Result<()> {
    let mut after = None;
    loop {
        let page = engine.stored().written(id, after, PAGE).await?;
        for written in &page {
            // Deleted a moment ago, or damaged: nobody can tell what it says.
            let Some(post) = readable(engine, written.id).await? else { continue };
            println!("{}", json!({ "written": { "id": written.id, "in": written.author, "content": post } }));
        }
        let Some(last) = page.last() else { return Ok(()) };
        after = Some(*last);
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

/// Its own posts, the newest first, whoever sees them.
async fn posts(engine: &Engine, id: AccountId) -> anyhow::Result<()> {
    let mut from = None;
    loop {
        let (posts, next) = engine.stored().posts(id, from, PAGE).await?;
        for post in posts {
            // Deleted a moment ago, or damaged: nobody can tell what it says.
            let Some(content) = readable(engine, post).await? else { continue };
            println!("{}", json!({ "post": { "id": post, "content": content } }));
        }
        if next.is_none() {
            return Ok(());
        }
        from = next;
    }
}
