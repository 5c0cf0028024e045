//! Notifications of what others did, and how far they are read.

use std::collections::HashMap;

use axum::extract::State;
use axum::http::Uri;
use tideline::{AccountId, Notification, NotificationId, NotificationKind, NotificationQuery};

use super::page;
use crate::app::{App, Shared};
use crate::auth::caller::Caller;
use crate::entity::{self, Empty, Id, Marker, Markers, Status, UnreadCount};
use crate::http::path::PathId;
use crate::http::{Json, PageLimit, PageLinks, Paged, ParamTree, Params, Refusal, Timestamp};
use crate::keep::markers::{self, ReadMarker, ReadMarkers};
use crate::show::notification::{kind_name, notification};

const NOTIFICATIONS: PageLimit = PageLimit::new(40);
/// Unread notifications that are counted, at most.
const UNREAD: PageLimit = PageLimit { default: 100, max: 1_000 };
const READ: &str = "read:notifications";
const WRITE: &str = "write:notifications";

/// The id that is meant; one above all that there can be is the highest.
fn id_of(id: u64) -> NotificationId {
    let highest = NotificationId::MAX;
    NotificationId::from_u64(id).unwrap_or(highest)
}

/// The notifications that a request asks for: of these types, without those, of what that account did. `None`: of none.
fn query(params: &ParamTree) -> Option<NotificationQuery> {
    let (types, without) = (params.texts("types"), params.texts("exclude_types"));
    let has = |types: &[String], kind: NotificationKind| types.iter().any(|name| name == kind_name(kind));
    let kinds = NotificationKind::ALL.into_iter();
    let kinds = kinds.filter(|kind| (types.is_empty() || has(&types, *kind)) && !has(&without, *kind));
    let by = match params.filled("account_id") {
        Some(_) => Some(AccountId::new(params.id("account_id")?).ok()?),
        None => None,
    };
    Some(NotificationQuery { kinds: Some(kinds.collect()), by, ..NotificationQuery::default() })
}

/// Notifications as their reader gets them.
async fn shown(
    app: &App,
    me: AccountId,
    notifications: &[Notification],
) -> Result<Vec<entity::Notification>, Refusal> {
    let posts: Vec<_> = notifications.iter().filter_map(|of| of.post.clone()).collect();
    let statuses = page::statuses(app, Some(me), &posts).await?;
    let statuses: HashMap<Id, Status> = statuses.into_iter().map(|status| (status.id, status)).collect();
    let status = |of: &Notification| statuses.get(&Id::from(of.post.as_ref()?.id)).cloned();
    Ok(notifications.iter().map(|of| notification(app.site(), of, status(of))).collect())
}

/// `GET /api/v1/notifications`
pub(super) async fn all(
    State(app): State<Shared>,
    who: Caller,
    uri: Uri,
    params: Params,
) -> Result<Paged<entity::Notification>, Refusal> {
    let (me, request) = (who.user(READ)?, params.page(NOTIFICATIONS));
    let Some(asked) = query(&params).filter(|_| !request.is_void()) else {
        return Ok(page::nothing(&app, &uri));
    };
    let query = NotificationQuery {
        limit: Some(request.limit),
        max_id: request.max_id.map(id_of),
        since_id: request.since_id.map(id_of),
        min_id: request.min_id.map(id_of),
        ..asked
    };
    let page = app.engine.as_reader(me).notifications(&query).await?;
    let mut links = PageLinks::new(&app.settings.public_url, &uri);
    // They are read on as far as they go: an empty page is their end, unless the archive is away.
    if page.lacks_archive || !page.notifications.is_empty() {
        links = page::with_places(links, page.older, page.newer);
    }
    Ok(Paged(shown(&app, me, &page.notifications).await?, links))
}

/// `GET /api/v1/notifications/:id`
pub(super) async fn one(
    State(app): State<Shared>,
    who: Caller,
    PathId(id): PathId,
) -> Result<Json<entity::Notification>, Refusal> {
    let me = who.user(READ)?;
    let id = NotificationId::from_u64(id).map_err(|_| Refusal::not_found())?;
    let found = app.engine.as_reader(me).notification(id).await?;
    shown(&app, me, &[found]).await?.pop().map(Json).ok_or_else(Refusal::not_found)
}

/// `POST /api/v1/notifications/clear`
pub(super) async fn clear(State(app): State<Shared>, who: Caller) -> Result<Json<Empty>, Refusal> {
    app.engine.clear_notifications(who.user(WRITE)?).await?;
    Ok(Json(Empty {}))
}

/// `POST /api/v1/notifications/:id/dismiss`
pub(super) async fn dismiss(
    State(app): State<Shared>,
    who: Caller,
    PathId(id): PathId,
) -> Result<Json<Empty>, Refusal> {
    dismissed(&app, who.user(WRITE)?, id).await
}

/// `POST /api/v1/notifications/dismiss`
pub(super) async fn dismiss_named(
    State(app): State<Shared>,
    who: Caller,
    params: Params,
) -> Result<Json<Empty>, Refusal> {
    let me = who.user(WRITE)?;
    dismissed(&app, me, params.id("id").ok_or_else(Refusal::not_found)?).await
}

async fn dismissed(app: &App, me: AccountId, id: u64) -> Result<Json<Empty>, Refusal> {
    let id = NotificationId::from_u64(id).map_err(|_| Refusal::not_found())?;
    if !app.engine.dismiss_notification(me, id).await?.value {
        return Err(Refusal::not_found());
    }
    Ok(Json(Empty {}))
}

/// `GET /api/v1/notifications/unread_count`
pub(super) async fn unread_count(
    State(app): State<Shared>,
    who: Caller,
    params: Params,
) -> Result<Json<UnreadCount>, Refusal> {
    let me = who.user(READ)?;
    let Some(asked) = query(&params) else { return Ok(Json(UnreadCount { count: 0 })) };
    let read = markers::of(&app, me).await?;
    let since_id = read.get("notifications").map(|marker| id_of(marker.last_read_id));
    let query = NotificationQuery { since_id, ..asked };
    let count = app.engine.as_reader(me).count_notifications(&query).await?;
    Ok(Json(UnreadCount { count: count.min(UNREAD.of(&params)) }))
}

fn of_timelines(markers: ReadMarkers, timelines: &[&str]) -> Json<Markers> {
    let asked = markers.into_iter().filter(|(name, _)| timelines.contains(&name.as_str()));
    let shown = |ReadMarker { last_read_id, version, updated_ms }| Marker {
        last_read_id: last_read_id.to_string(),
        version,
        updated_at: Timestamp(updated_ms),
    };
    Json(asked.map(|(name, marker)| (name, shown(marker))).collect())
}

/// `GET /api/v1/markers`
pub(super) async fn markers(
    State(app): State<Shared>,
    who: Caller,
    params: Params,
) -> Result<Json<Markers>, Refusal> {
    let me = who.user("read:statuses")?;
    let asked = params.texts("timeline");
    let asked: Vec<&str> = asked.iter().map(String::as_str).collect();
    Ok(of_timelines(markers::of(&app, me).await?, &asked))
}

/// `POST /api/v1/markers`
pub(super) async fn set_markers(
    State(app): State<Shared>,
    who: Caller,
    params: Params,
) -> Result<Json<Markers>, Refusal> {
    let me = who.user("write:statuses")?;
    let read = |name: &'static str| Some((name, params.tree(name)?.id("last_read_id")?));
    let read: Vec<(&str, u64)> = markers::TIMELINES.into_iter().filter_map(read).collect();
    if read.is_empty() {
        return Ok(Json(Markers::default()));
    }
    let named: Vec<&str> = read.iter().map(|(name, _)| *name).collect();
    Ok(of_timelines(markers::set(&app, me, &read, Timestamp::now().0).await?, &named))
}
