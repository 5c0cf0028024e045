//! Timelines by importance: a further order of home, lists and accounts' statuses; and home in that order as a list of
//! its own, for clients that know no orders.

use axum::http::Uri;
use tideline::{AccountId, PostId, RankedCursor, RankedFeed, RankedQuery, Viewer};

use super::page::{self, READS_MAX, STATUSES};
use crate::app::App;
use crate::entity::{Id, List};
use crate::http::{PageLinks, PagedText, Params, Refusal};

/// The id of the list that is everybody's home by importance. No list that somebody makes has it.
const TOP_LIST: u64 = 1;

/// Whether a request asks for a timeline by importance.
pub(super) fn is_wanted(params: &Params) -> Result<bool, Refusal> {
    match params.filled("order") {
        Some("importance") => Ok(true),
        None | Some("time") => Ok(false),
        Some(_) => Err(Refusal::validation("Order is not included in the list")),
    }
}

/// The list that is home by importance, if the site has one.
pub(super) fn top_list(app: &App) -> Option<List> {
    let title = Some(&app.settings.top_list).filter(|title| !title.is_empty())?;
    Some(List { id: Id(TOP_LIST), title: title.clone(), replies_policy: "followed".into(), exclusive: false })
}

/// Whether that is its id.
pub(super) fn is_top_list(app: &App, id: u64) -> bool {
    id == TOP_LIST && top_list(app).is_some()
}

/// Refuses to change it.
pub(super) fn check_own(app: &App, id: u64) -> Result<(), Refusal> {
    match is_top_list(app, id) {
        true => Err(Refusal::invalid(
            "This list is the site's: it shows home by importance, and can't be changed",
        )),
        false => Ok(()),
    }
}

/// Shows a page. Clients go on from it by its link; what they make of the last status they got instead begins a scroll
/// below that one.
pub(super) async fn shown(
    app: &App,
    (uri, reader): (&Uri, Option<AccountId>),
    (viewer, feed): (Viewer<'_>, RankedFeed),
    params: &Params,
) -> Result<PagedText, Refusal> {
    let request = params.page(STATUSES);
    let cursor = match params.filled("max_id") {
        Some(text) if text.starts_with(|first: char| first.is_ascii_alphabetic()) => Some(text.parse()?),
        // What has come since a scroll began is a new one's.
        None if request.since_id.or(request.min_id).is_some() => return Ok(page::no_statuses(app, uri)),
        _ if request.is_void() => return Ok(page::no_statuses(app, uri)),
        _ => request.max_id.map(PostId::from_u64).transpose()?.map(RankedCursor::below_post),
    };
    let (limit, ties) = (Some(request.limit), reader.is_some());
    let mut query = RankedQuery { feed, cursor, limit, ties };
    let mut found = viewer.read_ranked(&query).await?;
    for _ in 1..READS_MAX {
        query.cursor = match found.next {
            Some(next) if found.posts.is_empty() => Some(next),
            _ => break,
        };
        found = viewer.read_ranked(&query).await?;
    }
    let mut links = PageLinks::new(&app.settings.public_url, uri);
    if let Some(next) = &found.next {
        links = links.older(next);
    }
    page::text(app, reader, &found.posts, links).await
}
