//! Pages of the engine, as clients get them.

use std::fmt::Display;

use axum::http::Uri;
use tideline::{
    AccountId, AccountList, CallFuture, ChosenAuthors, FurtherTags, ListCursor, ListQuery, Page, PagePost,
    PostId, PostList, Query, Range, Reader, Timeline, Viewer,
};

use super::place;
use crate::app::App;
use crate::auth::caller::Caller;
use crate::entity::{Account, Status};
use crate::http::{PageLimit, PageLinks, PageRequest, Paged, PagedText, ParamTree, Refusal};
use crate::keep;
use crate::show;
use crate::show::status::{StatusReader, status};

/// The number of posts on a page.
pub(super) const STATUSES: PageLimit = PageLimit::new(20);
/// The number of accounts on one.
pub(super) const ACCOUNTS: PageLimit = PageLimit::new(40);
/// Bytes that a status takes, about.
const STATUS_BYTES: usize = 2_400;
/// Pages that are read for one, where nothing of what was looked at shows. Behind these an empty page says where it
/// goes on: some clients take it for the end all the same.
pub(super) const READS_MAX: usize = 5;
/// Reads for one page of a list: each read looks at a few more members than the page may have, at most.
const LIST_READS_MAX: usize = 20;

/// A source that a page of posts is read from.
#[derive(Clone, Copy)]
pub(super) enum PostsSource<'a> {
    /// A timeline, as somebody sees it.
    Timeline(Viewer<'a>, Timeline),
    /// A hashtag and further ones, or an account's posts with some.
    Tagged(Viewer<'a>, Timeline, &'a FurtherTags),
    /// Accounts that a reader has chosen.
    Chosen(Reader<'a>, &'a ChosenAuthors),
}

impl PostsSource<'_> {
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

/// Makes a page as text: what others were shown lately isn't made anew.
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

/// The posts that a reader has pinned: asked for only where a post of its own is among those that it sees.
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
    source: PostsSource<'_>,
) -> Result<PagedText, Refusal> {
    let links = PageLinks::new(&app.settings.public_url, uri);
    if request.is_void() {
        return Ok(no_statuses(app, uri));
    }
    let id = |id: Option<u64>| id.map(PostId::from_u64).transpose();
    let range =
        Range { max_id: id(request.max_id)?, since_id: id(request.since_id)?, min_id: id(request.min_id)? };
    let mut query = Query { range, limit: Some(request.limit), ..Query::default() }.hydrated();
    query.ties = reader.is_some();
    let page = posts_on(query, |query| source.read(query)).await?;
    // The last that was looked at, whether it shows or not.
    let older = page.next.map(|next| next.id());
    let newer = page.newer.or_else(|| page.posts.first().map(|first| first.id)).map(PostId::get);
    text(app, reader, &page.posts, with_places(links, older, newer)).await
}

/// Reads a page of posts, on and on in its direction until something shows.
async fn posts_on<F: Future<Output = tideline::Result<Page>>>(
    mut query: Query,
    read: impl Fn(Query) -> F,
) -> tideline::Result<Page> {
    let mut page = read(query).await?;
    for _ in 1..READS_MAX {
        query = match (page.next, page.newer) {
            _ if !page.posts.is_empty() => break,
            // Upwards nothing is older than an empty page; at the end nothing is newer, either.
            (_, Some(newer)) if query.range.min_id.is_some() => {
                Query { range: Range { min_id: Some(newer), ..query.range }, ..query }
            }
            (Some(next), _) if query.range.min_id.is_none() => query.after(next),
            _ => break,
        };
        page = read(query).await?;
    }
    Ok(page)
}

/// Reads which page of a list is asked for. Nothing is older than a place that somebody has made up, and everything
/// newer.
pub(super) fn list_query(params: &ParamTree, limit: PageLimit) -> Option<ListQuery> {
    let place = |name: &str| params.filled(name).map(place::of_text);
    let query = ListQuery::default().limit(limit.of(params));
    let above = |name: &str| place(name).flatten();
    let older = match place("max_id") {
        None => None,
        Some(place) => Some(place?),
    };
    let (newer, end) = (above("min_id"), above("since_id"));
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

    /// The places where the list goes on with what is older, and with what is newer.
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
        if on.is_none() || reads == LIST_READS_MAX {
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

/// Links to the pages of a list beside one, where these are known.
fn with_list_places(links: PageLinks, older: Option<&ListCursor>, newer: Option<&ListCursor>) -> PageLinks {
    with_places(links, older.map(place::in_digits), newer.map(place::in_digits))
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
    Paged(accounts, with_list_places(links, list.older.as_ref(), list.newer.as_ref()))
}

/// A page of accounts, as somebody sees that list.
pub(super) async fn seen_accounts(
    app: &App,
    (who, uri, params): (&Caller, &Uri, &ParamTree),
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
    let links = with_list_places(links, list.older.as_ref(), list.newer.as_ref());
    text(app, Some(reader), &list.posts, links).await
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use tideline::Cursor;
    use tideline::post::PostRef;

    use super::*;

    const POSTS: u64 = 12;

    fn id(of: u64) -> PostId {
        PostId::from_u64(of).unwrap()
    }

    fn post(of: u64) -> PagePost {
        PagePost::bare(PostRef { id: id(of), author: AccountId::new(1).unwrap() })
    }

    /// Of some posts the first and the last alone show, and each read looks at one.
    async fn read(query: Query) -> tideline::Result<Page> {
        let shown = |at: u64| [1, POSTS].contains(&at).then(|| post(at)).into_iter().collect();
        Ok(match (query.range.min_id, query.cursor) {
            (Some(above), _) if above.get() >= POSTS => Page::default(),
            (Some(above), _) => {
                let at = above.get() + 1;
                Page { posts: shown(at), newer: Some(id(at)), ..Page::default() }
            }
            (None, cursor) => {
                let at = cursor.map_or(POSTS, |below| below.id() - 1);
                let next = (at > 1).then(|| Cursor::below(at));
                Page { posts: shown(at), next, ..Page::default() }
            }
        })
    }

    /// A page of one account looked at five that don't show, and was empty: clients took that for the end.
    #[tokio::test]
    async fn a_page_of_a_list_goes_on_until_all_reads_are_made_and_then_says_where() {
        let place = |at: usize| format!("s{at:016x}{:016x}", 7).parse::<ListCursor>().unwrap();
        let reads = Cell::new(0);
        let nobody = |_: ListQuery| -> CallFuture<'static, AccountList> {
            reads.set(reads.get() + 1);
            let older = Some(place(reads.get()));
            Box::pin(async { Ok(AccountList { older, ..AccountList::default() }) })
        };
        let list = read_on(ListQuery::default().limit(1), nobody).await.unwrap();
        assert_eq!((reads.get(), list.older), (LIST_READS_MAX, Some(place(LIST_READS_MAX))));
    }

    /// An empty page was the end for who read it, though more followed; and upwards each read was a page.
    #[tokio::test]
    async fn pages_of_posts_go_on_in_both_directions_until_something_shows_or_all_reads_are_made() {
        let reads = u64::try_from(READS_MAX).unwrap();
        let down = |below: u64| posts_on(Query::default().after(Cursor::below(below)), read);
        let page = down(POSTS).await.unwrap();
        assert_eq!((page.ids(), page.next), (vec![], Some(Cursor::below(POSTS - reads))));
        assert_eq!(down(reads + 1).await.unwrap().ids(), [id(1)]);
        let above = |min: u64| Range { min_id: Some(id(min)), ..Range::default() };
        let up = |min: u64| posts_on(Query { range: above(min), ..Query::default() }, read);
        let page = up(1).await.unwrap();
        assert_eq!((page.ids(), page.newer), (vec![], Some(id(1 + reads))));
        assert_eq!(up(POSTS - reads).await.unwrap().ids(), [id(POSTS)]);
        let end = up(POSTS).await.unwrap();
        assert_eq!((end.ids(), end.newer, end.next), (vec![], None, None));
    }
}
