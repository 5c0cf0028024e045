//! How somebody stands to others, and changing that.

use std::time::Duration;

use axum::extract::{Path, State};
use tideline::{AccountId, ErrorCode};

use super::accounts::id_of;
use crate::app::{App, Shared};
use crate::auth::who::Who;
use crate::entity::Relationship;
use crate::http::{Json, Params, Refusal};
use crate::keep;
use crate::show::relationship::relationship;

type RelationshipAnswer = Result<Json<Relationship>, Refusal>;

/// How `me` stands to another one, as it is now.
async fn found(app: &App, me: AccountId, other: AccountId) -> Result<tideline::Relationship, Refusal> {
    let found = app.engine.as_reader(me).relationships(&[other]).await?;
    found.into_iter().flatten().next().ok_or_else(Refusal::not_found)
}

/// The same, as it is answered.
async fn stands(app: &App, me: AccountId, other: AccountId) -> RelationshipAnswer {
    found(app, me, other).await.map(|found| Json(relationship(&found))).map_err(Refusal::of_what_was_done)
}

/// Does something with an account, and tells how they stand then.
macro_rules! deed {
    ($(#[$doc:meta])* $name:ident, $scope:literal, $call:ident) => {
        $(#[$doc])*
        pub(super) async fn $name(
            State(app): State<Shared>,
            who: Who,
            Path(id): Path<String>,
        ) -> RelationshipAnswer {
            let (me, other) = both(&who, $scope, &id)?;
            app.settled(app.engine.$call(me, other)).await?;
            stands(&app, me, other).await
        }
    };
}

/// Who asks, and whom it is about.
fn both(who: &Who, needed: &str, id: &str) -> Result<(AccountId, AccountId), Refusal> {
    Ok((who.user(needed)?, id_of(id)?))
}

/// `GET /api/v1/accounts/relationships`
pub(super) async fn relationships(
    State(app): State<Shared>,
    who: Who,
    params: Params,
) -> Result<Json<Vec<Relationship>>, Refusal> {
    let me = who.user("read:follows")?;
    let ids: Vec<AccountId> = params.ids("id").into_iter().filter_map(|id| AccountId::new(id).ok()).collect();
    let found = app.engine.as_reader(me).relationships(&ids).await?;
    Ok(Json(found.iter().flatten().map(relationship).collect()))
}

/// `POST /api/v1/accounts/:id/follow`
pub(super) async fn follow(
    State(app): State<Shared>,
    who: Who,
    Path(id): Path<String>,
    params: Params,
) -> RelationshipAnswer {
    let (me, other) = both(&who, "write:follows", &id)?;
    match app.settled(app.engine.follow(me, other)).await {
        Err(e) if e.code() == ErrorCode::Blocked => return Err(Refusal::not_allowed()),
        done => drop(done?),
    }
    match params.flag("reblogs") {
        Some(true) => drop(app.engine.show_reposts(me, other).await?),
        Some(false) => drop(app.engine.hide_reposts(me, other).await?),
        None => {}
    }
    stands(&app, me, other).await
}

/// `POST /api/v1/accounts/:id/unfollow`
pub(super) async fn unfollow(
    State(app): State<Shared>,
    who: Who,
    Path(id): Path<String>,
) -> RelationshipAnswer {
    let (me, other) = both(&who, "write:follows", &id)?;
    app.settled(app.engine.unfollow(me, other)).await?;
    keep::lists::take_off_all(&app, me, other).await?;
    stands(&app, me, other).await
}

/// `POST /api/v1/accounts/:id/remove_from_followers`
pub(super) async fn remove_follower(
    State(app): State<Shared>,
    who: Who,
    Path(id): Path<String>,
) -> RelationshipAnswer {
    let (me, other) = both(&who, "write:follows", &id)?;
    app.settled(app.engine.unfollow(other, me)).await?;
    keep::lists::take_off_all(&app, other, me).await?;
    stands(&app, me, other).await
}

/// `POST /api/v1/accounts/:id/block`: it ends the follow, with what goes with that.
pub(super) async fn block(State(app): State<Shared>, who: Who, Path(id): Path<String>) -> RelationshipAnswer {
    let (me, other) = both(&who, "write:blocks", &id)?;
    app.settled(app.engine.block(me, other)).await?;
    keep::lists::take_off_all(&app, me, other).await?;
    keep::lists::take_off_all(&app, other, me).await?;
    stands(&app, me, other).await
}

deed!(
    /// `POST /api/v1/accounts/:id/unblock`
    unblock, "write:blocks", unblock
);

/// `POST /api/v1/accounts/:id/mute`
pub(super) async fn mute(
    State(app): State<Shared>,
    who: Who,
    Path(id): Path<String>,
    params: Params,
) -> RelationshipAnswer {
    let (me, other) = both(&who, "write:mutes", &id)?;
    match params.number("duration").unwrap_or(0) {
        seconds @ 1.. => {
            let time = Duration::from_secs(seconds.unsigned_abs());
            app.engine.mute_for(me, other, time).await?;
        }
        _ => drop(app.engine.mute(me, other).await?),
    }
    stands(&app, me, other).await
}

deed!(
    /// `POST /api/v1/accounts/:id/unmute`
    unmute, "write:mutes", unmute
);

/// `POST /api/v1/accounts/:id/note`
pub(super) async fn note(
    State(app): State<Shared>,
    who: Who,
    Path(id): Path<String>,
    params: Params,
) -> RelationshipAnswer {
    let (me, other) = both(&who, "write:accounts", &id)?;
    app.engine.set_note(me, other, params.text("comment").unwrap_or_default()).await?;
    stands(&app, me, other).await
}

/// `POST /api/v1/follow_requests/:id/authorize`
pub(super) async fn authorize(
    State(app): State<Shared>,
    who: Who,
    Path(id): Path<String>,
) -> RelationshipAnswer {
    let (me, other) = both(&who, "write:follows", &id)?;
    waits(&app, me, other).await?;
    app.settled(app.engine.approve(me, other)).await?;
    stands(&app, me, other).await
}

/// `POST /api/v1/follow_requests/:id/reject`
pub(super) async fn reject(
    State(app): State<Shared>,
    who: Who,
    Path(id): Path<String>,
) -> RelationshipAnswer {
    let (me, other) = both(&who, "write:follows", &id)?;
    waits(&app, me, other).await?;
    app.settled(app.engine.reject(me, other)).await?;
    stands(&app, me, other).await
}

/// Whoever doesn't wait for an answer gets none.
async fn waits(app: &App, me: AccountId, other: AccountId) -> Result<(), Refusal> {
    if found(app, me, other).await?.is_requested { Ok(()) } else { Err(Refusal::not_found()) }
}
