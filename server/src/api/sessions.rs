//! Sessions: where somebody is logged in, and ending that.

use axum::extract::{Path, State};

use crate::app::Shared;
use crate::auth::caller::Caller;
use crate::auth::token;
use crate::entity;
use crate::http::{Json, Refusal, Timestamp};

/// `GET /api/tideline/v1/sessions`
pub(super) async fn all(
    State(app): State<Shared>,
    who: Caller,
) -> Result<Json<Vec<entity::Session>>, Refusal> {
    let me = who.user("read:accounts")?;
    let own = match &who {
        Caller::Bearer { place, .. } => Some(place.clone()),
        _ => None,
    };
    let shown = |(id, session): (String, token::StoredSession)| entity::Session {
        is_current: own.as_ref() == Some(&id),
        id,
        application: entity::SessionApplication { name: session.application },
        created_at: Timestamp(session.created_ms),
        last_used_at: Timestamp(session.used_ms),
    };
    Ok(Json(token::sessions(&app, me).await?.into_iter().map(shown).collect()))
}

/// `DELETE /api/tideline/v1/sessions/:id`
pub(super) async fn end(
    State(app): State<Shared>,
    who: Caller,
    Path(id): Path<String>,
) -> Result<Json<entity::Empty>, Refusal> {
    let me = who.user("write:accounts")?;
    match token::end_session(&app, me, &id).await? {
        true => Ok(Json(entity::Empty {})),
        false => Err(Refusal::not_found()),
    }
}
