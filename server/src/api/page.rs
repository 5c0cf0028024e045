//! Pages of the engine, as clients get them.

use std::fmt::Display;

use axum::http::Uri;
use tideline::{
    AccountId, AccountList, CallFuture, ChosenAuthors, FurtherTags, ListCursor, ListQuery, Page, PagePost,
    PostId, PostList, Query, Range, Reader, Timeline, Viewer,
};

use crate::app::App;
use crate::auth::who::Who;
use crate::entity::{Account, Status};
use crate::http::{PageLimit, PageLinks, PageRequest, Paged, PagedText, ParamTree, Refusal};
use crate::keep;
use crate::show;
use crate::show::status::{StatusReader, status};

/// How many posts a page has.
pub(super) const STATUSES: PageLimit = PageLimit::new(20);
/// How many accounts.
pub(super) const ACCOUNTS: PageLimit = PageLimit::new(40);
/// Bytes that a status takes, about.
const STATUS_BYTES: usize = 2_400;
/// Pages that are read for one, where all that others have met shows to nobody: clients take an empty one for the end.
const READS_MAX: usize = 5;

/// What a page of posts is read from.
#[derive(Clone, Copy)]
pub(super) enum PageSource<'a> {
    /// A timeline, as somebody sees it.
    Timeline(Viewer<'a>, Timeline),
    /// A hashtag and further ones, or an account's posts with some.
    Tagged(Viewer<'a>, Timeline, &'a FurtherTags),
    /// Accounts that a reader has chosen.
    Chosen(Reader<'a>, &'a ChosenAuthors),
}

impl PageSource<'_> {
    async fn read(self, query: Query) -> tideline::Result<Page> {
        match self {
            Self::Timeline(viewer, timeline) => viewer.read(&Query { timeline, ..query }).await,
            Self::Tagged(viewer, timeline, further) => {
                viewer.read_tagged(further, &Query { timeline, ..query }).await
            }
            Self::Chosen(reader, chosen) => reader.read_chosen(chosen, &query).await,
        }
    }
}

/// Makes statuses of posts, as a reader sees them, or a guest.
pub(super) async fn statuses(
    app: &App,
    reader: Option<AccountId>,
    posts: &[PagePost],
) -> Result<Vec<Status>, Refusal> {
    let pins = pins(app, reader, posts).await?;
    let reader = StatusReader { account: reader, pins: &pins };
    Ok(posts.iter().filter_map(|post| status(app.site(), reader, post)).collect())
}

/// The same as text: what others were shown lately isn't made anew.
pub(super) async fn text(
    app: &App,
    reader: Option<AccountId>,
    posts: &[PagePost],
    links: PageLinks,
) -> Result<PagedText, Refusal> {
    let pins = pins(app, reader, posts).await?;
    let mut text = String::with_capacity(STATUS_BYTES * posts.len());
    app.texts.push_page(&mut text, app.site(), StatusReader { account: reader, pins: &pins }, posts);
    Ok(PagedText(text, links))
}

/// What a reader has pinned: asked only where a post of its own is among those that it sees.
async fn pins(app: &App, reader: Option<AccountId>, posts: &[PagePost]) -> Result<Vec<PostId>, Refusal> {
    let is_own = |post: &PagePost| {
        let original = post.original.as_ref().map(|original| original.account.id);
        reader == Some(post.author) || original.is_some_and(|author| reader == Some(author))
    };
    match reader.filter(|_| posts.iter().any(is_own)) {
        Some(reader) => keep::pins::of(app, reader).await,
        None => Ok(Vec::new()),
    }
}

/// Reads a page of posts, on and on until something shows.
pub(super) async fn timeline(
    app: &App,
    request: PageRequest,
    (uri, reader): (&Uri, Option<AccountId>),
    source: PageSource<'_>,
) -> Result<PagedText, Refusal> {
    let links = PageLinks::new(&app.settings.public_url, uri);
    if request.is_void() {
        return Ok(no_statuses(app, uri));
    }
    let id = |id: Option<u64>| id.map(PostId::from_u64).transpose();
    let range =
        Range { max_id: id(request.max_id)?, since_id: id(request.since_id)?, min_id: id(request.min_id)? };
    let mut query = Query { range, limit: Some(request.limit), ..Query::default() }.hydrated();
    query.marks = reader.is_some();
    let mut page = source.read(query).await?;
    for _ in 1..READS_MAX {
        let Some(next) = page.next.filter(|_| page.posts.is_empty()) else { break };
        page = source.read(query.after(next)).await?;
    }
    // The last that was looked at, whether it shows or not.
    let older = page.next.map(|next| next.id());
    let newer = page.newer.or_else(|| page.posts.first().map(|first| first.id)).map(PostId::get);
    text(app, reader, &page.posts, with_places(links, older, newer)).await
}

/// What a page of a list is asked for. Its places are no numbers: one that somebody has made up is nowhere.
pub(super) fn list_query(params: &ParamTree, limit: PageLimit) -> Option<ListQuery> {
    let place = |name: &str| params.filled(name).map(str::parse::<ListCursor>).transpose();
    let query = ListQuery::default().limit(limit.of(params));
    let (older, newer, end) = (place("max_id").ok()?, place("min_id").ok()?, place("since_id").ok()?);
    Some(match (older, newer) {
        (None, Some(newer)) => query.newer_than(newer),
        // From above, down to what is named.
        (older_than, newer) => ListQuery { older_than, down_to: end.or(newer), ..query },
    })
}

/// A page of a list, as the engine gives it.
pub(super) trait ListPage {
    /// Where the next one begins, if this one shows nothing.
    fn older_if_empty(&self) -> Option<&ListCursor>;
}

impl ListPage for AccountList {
    fn older_if_empty(&self) -> Option<&ListCursor> {
        self.older.as_ref().filter(|_| self.accounts.is_empty())
    }
}

impl ListPage for PostList {
    fn older_if_empty(&self) -> Option<&ListCursor> {
        self.older.as_ref().filter(|_| self.posts.is_empty())
    }
}

/// Reads a page of a list, on and on until something shows. Only down: who asks for what is newer asks again by itself.
pub(super) async fn read_on<'e, L: ListPage>(
    mut query: ListQuery,
    read: impl Fn(ListQuery) -> CallFuture<'e, L>,
) -> tideline::Result<L> {
    let mut list = read(query.clone()).await?;
    for _ in 1..READS_MAX {
        let Some(older) = list.older_if_empty().filter(|_| query.newer_than.is_none()) else { break };
        query.older_than = Some(older.clone());
        list = read(query.clone()).await?;
    }
    Ok(list)
}

fn with_places(mut links: PageLinks, older: Option<impl Display>, newer: Option<impl Display>) -> PageLinks {
    if let Some(older) = older {
        links = links.older(older);
    }
    if let Some(newer) = newer {
        links = links.newer(newer);
    }
    links
}

/// An empty page.
pub(super) fn nothing<T>(app: &App, uri: &Uri) -> Paged<T> {
    Paged(Vec::new(), PageLinks::new(&app.settings.public_url, uri))
}

/// An empty page of statuses.
pub(super) fn no_statuses(app: &App, uri: &Uri) -> PagedText {
    PagedText("[]".into(), PageLinks::new(&app.settings.public_url, uri))
}

/// A page of accounts.
pub(super) fn accounts(app: &App, uri: &Uri, list: AccountList) -> Paged<Account> {
    let accounts = list.accounts.iter().map(|account| show::account::account(app.site(), account)).collect();
    let links = PageLinks::new(&app.settings.public_url, uri);
    Paged(accounts, with_places(links, list.older, list.newer))
}

/// A page of accounts, as somebody sees that list.
pub(super) async fn seen_accounts(
    app: &App,
    (who, uri, params): (&Who, &Uri, &ParamTree),
    read: impl for<'a> Fn(Viewer<'a>, &'a ListQuery) -> CallFuture<'a, AccountList> + Sync,
) -> Result<Paged<Account>, Refusal> {
    let Some(query) = list_query(params, ACCOUNTS) else { return Ok(nothing(app, uri)) };
    let viewer = who.viewer(app, "read:accounts");
    let read = &read;
    let list = read_on(query, |query| Box::pin(async move { read(viewer, &query).await })).await?;
    Ok(accounts(app, uri, list))
}

/// A page of posts that somebody has put on a list.
pub(super) async fn posts(
    app: &App,
    (uri, reader): (&Uri, AccountId),
    list: PostList,
) -> Result<PagedText, Refusal> {
    let links = PageLinks::new(&app.settings.public_url, uri);
    text(app, Some(reader), &list.posts, with_places(links, list.older, list.newer)).await
}
