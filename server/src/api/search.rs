//! Searching: whom a name means, which hashtag, which status an address names.

use axum::extract::State;
use tideline::post::{SearchWords, Tag};
use tideline::{ASKED_MAX, Account, AccountId, ErrorCode, PAGE_LEN_MAX, PagePost, PostId, Query};

use super::accounts::{self, named};
use super::page;
use crate::app::{App, Shared};
use crate::auth::caller::Caller;
use crate::entity::{self, Search};
use crate::http::escape::push_percent;
use crate::http::{Json, PageLimit, Params, Refusal};
use crate::show;

/// Results of each kind.
const LIMIT: PageLimit = PageLimit::new(20);
/// Accounts, where these alone are searched.
const ACCOUNTS_LIMIT: PageLimit = PageLimit::new(40);

/// Pages of statuses that a search looks at: the archive ends one early where words are many and seldom meet.
const SEARCH_PAGES: usize = 4;

/// The part of what was found that is asked for.
fn part_of<T>(found: Vec<T>, params: &Params, limit: PageLimit) -> impl Iterator<Item = T> {
    found.into_iter().skip(offset(params)).take(limit.of(params))
}

/// The number of results that stand before that part.
fn offset(params: &Params) -> usize {
    params.number("offset").and_then(|offset| usize::try_from(offset).ok()).unwrap_or(0)
}

/// `GET /api/v1/accounts/search`: by the whole name, and by how names begin.
pub(super) async fn accounts(
    State(app): State<Shared>,
    who: Caller,
    params: Params,
) -> Result<Json<Vec<entity::Account>>, Refusal> {
    who.user("read:accounts")?;
    Ok(Json(found_accounts(&app, &who, &params, ACCOUNTS_LIMIT).await?))
}

/// Finds accounts: whoever has the whole name comes first.
async fn found_accounts(
    app: &App,
    who: &Caller,
    params: &Params,
    limit: PageLimit,
) -> Result<Vec<entity::Account>, Refusal> {
    let asked = params.text("q").unwrap_or_default();
    let typed = accounts::name_in(app, asked);
    let named = named(app, typed).await?;
    let typed = typed.trim().trim_start_matches('@');
    // What stands behind an `@` is a site: here it is this one, or nobody is meant.
    let typed = match typed.split_once('@') {
        Some((_, site)) if !app.site().is_host(site) => "",
        Some((name, _)) => name,
        None => typed,
    };
    // An address means who is there, and nobody whose name begins alike.
    let beginning = match is_address(asked) {
        true => Vec::new(),
        false => app.registration.find_beginning(typed).await?,
    };
    let id = named.as_ref().map(|account| account.id);
    let others = beginning.into_iter().filter(|account| Some(account.id) != id);
    let mut found: Vec<Account> = named.into_iter().chain(others).collect();
    if params.flag("following") == Some(true) {
        found = followed(app, who, found).await?;
    }
    let part = part_of(found, params, limit);
    Ok(part.map(|account| show::account::account(app.site(), &account)).collect())
}

/// The accounts among these that the caller follows.
async fn followed(app: &App, who: &Caller, mut found: Vec<Account>) -> Result<Vec<Account>, Refusal> {
    found.truncate(ASKED_MAX);
    let reader = who.user("read:follows")?;
    let ids: Vec<AccountId> = found.iter().map(|account| account.id).collect();
    let mut relations = app.engine.as_reader(reader).relationships(&ids).await?.into_iter();
    found.retain(|_| relations.next().flatten().is_some_and(|relation| relation.is_following));
    Ok(found)
}

/// `GET /api/v2/search`
pub(super) async fn search(
    State(app): State<Shared>,
    who: Caller,
    params: Params,
) -> Result<Json<Search>, Refusal> {
    let words = params.text("q").unwrap_or_default().trim();
    if words.is_empty() {
        return Err(Refusal::bad_request("param is missing or the value is empty: q"));
    }
    let wants = |what: &str| params.filled("type").is_none_or(|wanted| wanted == what);
    let mut found = Search::default();
    if wants("accounts") {
        found.accounts = found_accounts(&app, &who, &params, LIMIT).await?;
    }
    if wants("hashtags")
        && let Ok(typed) = Tag::new(words)
    {
        let wanted = offset(&params).saturating_add(LIMIT.of(&params));
        let tags = app.engine.hashtags_beginning(&typed, wanted).await?;
        found.hashtags = part_of(tags, &params, LIMIT).map(|tag| hashtag(&app, &tag)).collect();
    }
    if wants("statuses") {
        let is_alone = !wants("accounts");
        found.statuses = found_statuses(&app, &who, &params, (words, is_alone)).await?;
    }
    Ok(Json(found))
}

/// Whether somebody looks for an address.
fn is_address(asked: &str) -> bool {
    let scheme =
        asked.trim_start().split("://").next().filter(|scheme| scheme.len() < asked.trim_start().len());
    scheme.is_some_and(|scheme| ["http", "https"].iter().any(|known| scheme.eq_ignore_ascii_case(known)))
}

/// Whether somebody looks for words: not for an address, a hashtag or a name. Clients that open a link take the first
/// status that is found for what stands there.
fn is_of_words(asked: &str) -> bool {
    let is_name = asked.starts_with('#') || asked.contains('@');
    !is_address(asked) && (!is_name || asked.contains(char::is_whitespace))
}

fn hashtag(app: &App, tag: &Tag) -> entity::Tag {
    let name = tag.to_string();
    let mut url = app.site().at("/tags/");
    push_percent(&mut url, &name);
    entity::Tag { id: name.clone(), name, url, history: Vec::new(), following: false, featuring: false }
}

/// The status that an address names; or those with these words, where the tenant has them found.
async fn found_statuses(
    app: &App,
    who: &Caller,
    params: &Params,
    (words, is_alone): (&str, bool),
) -> Result<Vec<entity::Status>, Refusal> {
    let named = named_status(app, who, words).await?;
    if !named.is_empty() {
        return Ok(part_of(named, params, LIMIT).collect());
    }
    let has_search = app.engine.decision().archive.is_some_and(|archive| archive.search);
    let Some(words) = (has_search && is_of_words(words)).then(|| SearchWords::new(words).ok()).flatten()
    else {
        return Ok(Vec::new());
    };
    let most = offset(params).saturating_add(LIMIT.of(params)).min(PAGE_LEN_MAX);
    let reader = who.viewing("read:search");
    let (viewer, mut query) = (who.viewer(app, "read:search"), Query::search(words).limit(most).hydrated());
    query.ties = reader.is_some();
    let mut posts = Vec::new();
    for _ in 0..SEARCH_PAGES {
        let page = match viewer.read(&query).await {
            // Names are found all the same.
            Err(e) if e.code() == ErrorCode::ArchiveAway && !is_alone => break,
            page => page?,
        };
        posts.extend(page.posts.into_iter().filter(|post| Some(post.said_by()) == reader || is_found(post)));
        match page.next.filter(|_| posts.len() < most) {
            Some(next) => query = query.after(next),
            None => break,
        }
    }
    let part: Vec<PagePost> = part_of(posts, params, LIMIT).collect();
    page::statuses(app, reader, &part).await
}

/// Whether others may find a status by its words, as its author has said, and the group that it stands in.
fn is_found(post: &PagePost) -> bool {
    let mut profiles =
        [&post.writer, &post.account].into_iter().flatten().filter_map(|account| account.profile.as_deref());
    profiles.all(show::account::is_indexable)
}

/// The status whose page, or name for machines, is that address here.
async fn named_status(app: &App, who: &Caller, address: &str) -> Result<Vec<entity::Status>, Refusal> {
    let path = address.strip_prefix(app.site().url).and_then(|path| path.strip_prefix('/'));
    let Some((login, id)) = path.and_then(named_in) else { return Ok(Vec::new()) };
    let mut found = who.viewer(app, "read:search").posts(&[id]).await?.posts;
    found.retain(|post| {
        let said_by = post.writer.as_ref().or(post.account.as_ref());
        said_by.is_some_and(|account| show::site::login(account).eq_ignore_ascii_case(login))
    });
    page::statuses(app, who.viewing("read:search"), &found).await
}

/// Reads whose status a path names, and which.
fn named_in(path: &str) -> Option<(&str, PostId)> {
    let (login, id) = match path.split('/').collect::<Vec<_>>()[..] {
        [name, id] => (name.strip_prefix('@')?, id),
        ["users", login, "statuses", id] => (login, id),
        _ => return None,
    };
    Some((login, PostId::from_u64(id.parse().ok()?).ok()?))
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_status_is_named_by_its_own_addresses_alone() {
        let named = |path| super::named_in(path).map(|(login, id)| (login, id.get()));
        assert_eq!(named("@ada/77"), Some(("ada", 77)));
        assert_eq!(named("users/ada/statuses/77"), Some(("ada", 77)));
        for other in ["77", "x/y/77", "ada/77", "@ada/77/", "@ada/x", "users/ada/77"] {
            assert_eq!(named(other), None, "{other}");
        }
    }

    /// A link to a profile opened the status in which that link stood.
    #[test]
    fn addresses_names_and_hashtags_are_no_words() {
        for (asked, is_of_words) in [
            ("low tide", true),
            ("tide", true),
            ("ada@tide.example says", true),
            ("#tide and ebb", true),
            ("https://tide.example/@ada", false),
            (" Http://tide.example", false),
            ("http", true),
            ("#tide", false),
            ("@ada", false),
            ("ada@tide.example", false),
        ] {
            assert_eq!(super::is_of_words(asked), is_of_words, "{asked}");
        }
    }
}
