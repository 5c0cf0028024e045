//! Pages of the engine, as clients get them.

use std::fmt::Display;

use axum::http::Uri;
use tideline::{
    AccountId, AccountList, CallFuture, ChosenAuthors, Cursor, Error, ErrorCode, FurtherTags, ListCursor,
    ListQuery, Page, PagePost, PostId, PostList, Query, Range, Reader, Timeline, Viewer,
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
/// Pages that are read for one, where nothing of what was looked at shows. Behind these an empty page says where it
/// goes on: some clients take it for the end all the same.
pub(super) const READS_MAX: usize = 20;
/// Each of them is twice as long as the one before, up to this: together they look at some 1,500 posts.
const READ_ON_MAX: usize = 80;

/// A source that a page of posts is read from.
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
    let page = posts_on(query, |query| source.read(query)).await?;
    // The last that was looked at, whether it shows or not.
    let older = page.next.map(|next| next.id());
    let newer = page.newer.or_else(|| page.posts.first().map(|first| first.id)).map(PostId::get);
    text(app, reader, &page.posts, with_places(links, older, newer)).await
}

/// Reads a page of posts, on and on in its direction until something shows. Where only the archive could tell what
/// does, and is away, that is no end.
async fn posts_on<F: Future<Output = tideline::Result<Page>>>(
    mut query: Query,
    read: impl Fn(Query) -> F,
) -> tideline::Result<Page> {
    let (wanted, is_up) = (query.limit.unwrap_or(READ_ON_MAX), query.range.min_id.is_some());
    let mut page = read(query).await?;
    for _ in 1..READS_MAX {
        if !page.posts.is_empty() || page.lacks_archive {
            break;
        }
        query = match (page.next, page.newer) {
            // Upwards nothing is older than an empty page; at the end nothing is newer, either.
            (_, Some(newer)) if is_up => {
                Query { range: Range { min_id: Some(newer), ..query.range }, ..query }
            }
            (Some(next), _) if !is_up => query.after(next),
            _ => break,
        };
        query.limit = query.limit.map(|limit| limit.max((limit * 2).min(READ_ON_MAX)));
        page = read(query).await?;
    }
    if page.posts.is_empty() && page.lacks_archive {
        return Err(archive_away());
    }
    Ok(first_of(page, wanted, is_up))
}

/// Whoever got an empty page instead would take that for the end.
pub(super) fn archive_away() -> Error {
    Error::new(ErrorCode::ArchiveAway, "what follows lies in the archive, which is away")
}

/// The first so many posts of a page, in the direction in which it was read.
fn first_of(mut page: Page, wanted: usize, is_up: bool) -> Page {
    let beyond = page.posts.len().saturating_sub(wanted);
    if beyond == 0 {
        return page;
    }
    if is_up {
        page.posts.drain(..beyond);
        page.newer = page.posts.first().map(|first| first.id);
    } else {
        page.posts.truncate(wanted);
        page.next = page.posts.last().map(|last| Cursor::below(last.id.get()));
    }
    page
}

/// What a page of a list is asked for. Its places are no numbers: nothing is older than one that somebody has made up,
/// and everything newer.
pub(super) fn list_query(params: &ParamTree, limit: PageLimit) -> Option<ListQuery> {
    let place = |name: &str| params.filled(name).map(str::parse::<ListCursor>).transpose();
    let query = ListQuery::default().limit(limit.of(params));
    let above = |name: &str| place(name).ok().flatten();
    let (older, newer, end) = (place("max_id").ok()?, above("min_id"), above("since_id"));
    Some(match (older, newer) {
        (None, Some(newer)) => query.newer_than(newer),
        // From above, down to what is named.
        (older_than, newer) => ListQuery { older_than, down_to: end.or(newer), ..query },
    })
}

/// A page of a list, as the engine gives it.
pub(super) trait ListPage {
    /// Whether nothing shows on it.
    fn is_empty(&self) -> bool;

    /// Where the list goes on with what is older, and with what is newer.
    fn ends(&mut self) -> [&mut Option<ListCursor>; 2];
}

impl ListPage for AccountList {
    fn is_empty(&self) -> bool {
        self.accounts.is_empty()
    }

    fn ends(&mut self) -> [&mut Option<ListCursor>; 2] {
        [&mut self.older, &mut self.newer]
    }
}

impl ListPage for PostList {
    fn is_empty(&self) -> bool {
        self.posts.is_empty()
    }

    fn ends(&mut self) -> [&mut Option<ListCursor>; 2] {
        [&mut self.older, &mut self.newer]
    }
}

/// Reads a page of a list, on and on in its direction until something shows. One on which nothing does goes on in that
/// direction alone, and nowhere at the end.
pub(super) async fn read_on<'e, L: ListPage>(
    mut query: ListQuery,
    read: impl Fn(ListQuery) -> CallFuture<'e, L>,
) -> tideline::Result<L> {
    let (is_up, mut reads) = (query.newer_than.is_some(), 0);
    loop {
        let mut list = read(query.clone()).await?;
        reads += 1;
        if !list.is_empty() {
            return Ok(list);
        }
        let [older, newer] = list.ends();
        let (on, behind, from) = match is_up {
            true => (newer, older, &mut query.newer_than),
            false => (older, newer, &mut query.older_than),
        };
        *behind = None;
        // Where it began: there was nothing to look at.
        if on == from {
            *on = None;
        }
        if on.is_none() || reads == READS_MAX {
            return Ok(list);
        }
        from.clone_from(on);
    }
}

/// Links to the pages beside one, where these are known.
pub(super) fn with_places(
    mut links: PageLinks,
    older: Option<impl Display>,
    newer: Option<impl Display>,
) -> PageLinks {
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

#[cfg(test)]
mod tests {
    use tideline::Cursor;
    use tideline::post::PostRef;

    use super::*;

    /// More than all reads of a page look at.
    const POSTS: u64 = 2_000;
    /// What they look at, if the page was asked for with one post.
    const LOOKED_AT: u64 = 1 + 2 + 4 + 8 + 16 + 32 + 64 + 13 * 80;

    fn id(of: u64) -> PostId {
        PostId::from_u64(of).unwrap()
    }

    fn post(of: u64) -> PagePost {
        PagePost::bare(PostRef { id: id(of), author: AccountId::new(1).unwrap() })
    }

    /// Of some posts the first two and the last two alone show, and each read looks at as many as it is asked for.
    async fn read(query: Query) -> tideline::Result<Page> {
        let many = query.limit.unwrap() as u64;
        let shown = |from: u64, to: u64| {
            let shows = |at: &u64| *at <= 2 || *at >= POSTS - 1;
            (from..=to).rev().filter(shows).map(post).collect()
        };
        Ok(match (query.range.min_id, query.cursor) {
            (Some(above), _) if above.get() >= POSTS => Page::default(),
            (Some(above), _) => {
                let to = POSTS.min(above.get() + many);
                Page { posts: shown(above.get() + 1, to), newer: Some(id(to)), ..Page::default() }
            }
            (None, cursor) => {
                let to = cursor.map_or(POSTS, |below| below.id() - 1);
                let from = to.saturating_sub(many) + 1;
                let next = (from > 1).then(|| Cursor::below(from));
                Page { posts: shown(from, to), next, ..Page::default() }
            }
        })
    }

    fn one() -> Query {
        Query { limit: Some(1), ..Query::default() }
    }

    /// An empty page was the end for who read it, though more followed; and upwards each read was a page.
    #[tokio::test]
    async fn pages_of_posts_go_on_in_both_directions_until_something_shows_or_all_reads_are_made() {
        let down = |below: u64| posts_on(one().after(Cursor::below(below)), read);
        let page = down(POSTS - 1).await.unwrap();
        assert_eq!((page.ids(), page.next), (vec![], Some(Cursor::below(POSTS - 1 - LOOKED_AT))));
        // What follows the one that was asked for is on the next page.
        let page = down(LOOKED_AT).await.unwrap();
        assert_eq!((page.ids(), page.next), (vec![id(2)], Some(Cursor::below(2))));
        let page = down(2).await.unwrap();
        assert_eq!((page.ids(), page.next), (vec![id(1)], None));
        let above = |min: u64| Range { min_id: Some(id(min)), ..Range::default() };
        let up = |min: u64| posts_on(Query { range: above(min), ..one() }, read);
        let page = up(2).await.unwrap();
        assert_eq!((page.ids(), page.newer), (vec![], Some(id(2 + LOOKED_AT))));
        let page = up(POSTS - LOOKED_AT).await.unwrap();
        assert_eq!((page.ids(), page.newer), (vec![id(POSTS - 1)], Some(id(POSTS - 1))));
        assert_eq!(up(POSTS - 1).await.unwrap().ids(), [id(POSTS)]);
        let end = up(POSTS).await.unwrap();
        assert_eq!((end.ids(), end.newer, end.next), (vec![], None, None));
    }

    /// A page on which nothing showed, because all of it lies in an archive that was away, was the end.
    #[tokio::test]
    async fn a_page_that_only_the_archive_could_tell_is_refused_for_now() {
        let without = |posts: Vec<PagePost>| {
            let page = Page { posts, next: Some(Cursor::below(9)), lacks_archive: true, ..Page::default() };
            posts_on(one(), move |_| std::future::ready(Ok(page.clone())))
        };
        assert_eq!(without(Vec::new()).await.unwrap_err().code(), ErrorCode::ArchiveAway);
        assert_eq!(without(vec![post(9)]).await.unwrap().ids(), [id(9)]);
    }
}
