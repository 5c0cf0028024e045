//! Pages of the engine, as clients get them.

use axum::http::Uri;
use tideline::{
    AccountList, ChosenAuthors, ListCursor, ListQuery, Page, PostId, PostList, Query, Range, Reader,
    Timeline, Viewer,
};

use crate::app::App;
use crate::entity::{Account, Status};
use crate::http::{PageLimit, PageLinks, PageRequest, Paged, ParamTree, Refusal};
use crate::show;
use crate::show::status::StatusReader;

/// How many posts a page has.
pub(super) const STATUSES: PageLimit = PageLimit::new(20);
/// How many accounts.
pub(super) const ACCOUNTS: PageLimit = PageLimit::new(40);
/// Pages that are read for one, where all that others have met shows to nobody: clients take an empty one for the end.
const READS_MAX: usize = 5;

/// What a page of posts is read from.
#[derive(Clone, Copy)]
pub(super) enum PageSource<'a> {
    /// A timeline, as somebody sees it.
    Timeline(Viewer<'a>, Timeline),
    /// Accounts that a reader has chosen.
    Chosen(Reader<'a>, &'a ChosenAuthors),
}

impl PageSource<'_> {
    async fn read(self, query: Query) -> tideline::Result<Page> {
        match self {
            Self::Timeline(viewer, timeline) => viewer.read(&Query { timeline, ..query }).await,
            Self::Chosen(reader, chosen) => reader.read_chosen(chosen, &query).await,
        }
    }
}

/// Reads a page of posts, on and on until something shows.
pub(super) async fn timeline(
    app: &App,
    request: PageRequest,
    (uri, reader): (&Uri, StatusReader<'_>),
    source: PageSource<'_>,
) -> Result<Paged<Status>, Refusal> {
    let links = PageLinks::new(&app.settings.public_url, uri);
    if request.is_void() {
        return Ok(Paged(Vec::new(), links));
    }
    let id = |id: Option<u64>| id.map(PostId::from_u64).transpose();
    let range =
        Range { max_id: id(request.max_id)?, since_id: id(request.since_id)?, min_id: id(request.min_id)? };
    let mut query = Query { range, limit: Some(request.limit), ..Query::default() }.hydrated();
    query.marks = reader.account.is_some();
    let mut page = source.read(query).await?;
    for _ in 1..READS_MAX {
        let Some(next) = page.next.filter(|_| page.posts.is_empty()) else { break };
        page = source.read(query.after(next)).await?;
    }
    Ok(shown(app, reader, &page, links))
}

fn shown(app: &App, reader: StatusReader<'_>, page: &Page, links: PageLinks) -> Paged<Status> {
    let statuses =
        page.posts.iter().filter_map(|post| show::status::status(app.site(), reader, post)).collect();
    // The last that was looked at, whether it shows or not.
    let older = page.next.map(|next| next.id());
    let links = older.map_or(links.clone(), |older| links.older(older));
    let newer = page.posts.first().map(|first| first.id);
    let links = newer.map_or(links.clone(), |newer| links.newer(newer.get()));
    Paged(statuses, links)
}

/// What a page of a list is asked for. Its places are no numbers: one that somebody has made up is nowhere.
pub(super) fn list_query(params: &ParamTree, limit: PageLimit) -> Option<ListQuery> {
    let place = |name: &str| params.filled(name).map(str::parse::<ListCursor>).transpose();
    let query = ListQuery::default().limit(limit.of(params));
    let older = place("max_id").ok()?;
    let newer = place("min_id").ok()?.or(place("since_id").ok()?);
    Some(match (older, newer) {
        (Some(older), _) => query.older_than(older),
        (None, Some(newer)) => query.newer_than(newer),
        (None, None) => query,
    })
}

fn with_places(app: &App, uri: &Uri, older: Option<ListCursor>, newer: Option<ListCursor>) -> PageLinks {
    let links = PageLinks::new(&app.settings.public_url, uri);
    let links = older.map_or(links.clone(), |older| links.older(older));
    newer.map_or(links.clone(), |newer| links.newer(newer))
}

/// An empty page.
pub(super) fn nothing<T>(app: &App, uri: &Uri) -> Paged<T> {
    Paged(Vec::new(), PageLinks::new(&app.settings.public_url, uri))
}

/// A page of accounts.
pub(super) fn accounts(app: &App, uri: &Uri, list: AccountList) -> Paged<Account> {
    let accounts = list.accounts.iter().map(|account| show::account::account(app.site(), account)).collect();
    Paged(accounts, with_places(app, uri, list.older, list.newer))
}

/// A page of posts that somebody has put on a list.
pub(super) fn posts(app: &App, uri: &Uri, reader: StatusReader<'_>, list: PostList) -> Paged<Status> {
    let statuses =
        list.posts.iter().filter_map(|post| show::status::status(app.site(), reader, post)).collect();
    Paged(statuses, with_places(app, uri, list.older, list.newer))
}
