//! Somebody's relationships to others, and changing them.

use std::collections::HashSet;
use std::time::Duration;

use axum::extract::{Path, State};
use futures::TryFutureExt as _;
use futures::future::{try_join, try_join_all};
use tideline::{ASKED_MAX, AccountId, ErrorCode};

use super::accounts::id_of;
use super::groups;
use super::written;
use crate::app::{App, Shared};
use crate::auth::caller::Caller;
use crate::entity::Relationship;
use crate::http::{Json, Params, Refusal};
use crate::keep;
use crate::show::relationship::{nothing_between, relationship};

type RelationshipAnswer = Result<Json<Relationship>, Refusal>;

/// The relationship of `me` to another one, as it is now.
async fn found(app: &App, me: AccountId, other: AccountId) -> Result<tideline::Relationship, Refusal> {
    let found = app.engine.as_reader(me).relationships(&[other]).await?;
    found.into_iter().flatten().next().ok_or_else(Refusal::not_found)
}

/// Tells how two accounts stand after something was done about it. What was taken back from somebody who is gone is
/// taken back: nothing stands between the two any more.
async fn stands(app: &App, me: AccountId, other: AccountId) -> RelationshipAnswer {
    let told = async {
        let (found, languages) =
            try_join(app.engine.as_reader(me).relationships(&[other]), keep::languages::of(app, me)).await?;
        let found = found.into_iter().flatten().next();
        let told = found.map(|found| relationship(&found, languages.of(other)));
        Ok::<_, Refusal>(Json(told.unwrap_or_else(|| nothing_between(other))))
    };
    told.await.map_err(Refusal::of_what_was_done)
}

/// Removes what somebody has said of a follow, now that this has ended.
pub(super) async fn follow_has_ended(
    app: &App,
    follower: AccountId,
    followed: AccountId,
) -> Result<(), Refusal> {
    let gone = async {
        keep::lists::take_off_all(app, follower, followed).await?;
        keep::languages::forget(app, follower, followed).await
    };
    gone.await.map_err(Refusal::of_what_was_done)
}

/// Does something with an account, and tells how they stand then.
macro_rules! deed {
    ($(#[$doc:meta])* $name:ident, $scope:literal, $call:ident) => {
        $(#[$doc])*
        pub(super) async fn $name(
            State(app): State<Shared>,
            who: Caller,
            Path(id): Path<String>,
        ) -> RelationshipAnswer {
            let (me, other) = both(&who, $scope, &id)?;
            app.settled(app.engine.$call(me, other)).await?;
            stands(&app, me, other).await
        }
    };
}

/// The account that asks, and the one that the request is about.
fn both(who: &Caller, needed: &str, id: &str) -> Result<(AccountId, AccountId), Refusal> {
    Ok((who.user(needed)?, id_of(id)?))
}

/// `GET /api/v1/accounts/relationships`
pub(super) async fn relationships(
    State(app): State<Shared>,
    who: Caller,
    params: Params,
) -> Result<Json<Vec<Relationship>>, Refusal> {
    let me = who.user("read:follows")?;
    let ids: Vec<AccountId> = params.ids("id").into_iter().filter_map(|id| AccountId::new(id).ok()).collect();
    let reader = app.engine.as_reader(me);
    // As many as a query can name.
    let all = try_join_all(ids.chunks(ASKED_MAX).map(|some| reader.relationships(some)));
    let (found, languages) = try_join(all.err_into(), keep::languages::of(&app, me)).await?;
    let found = found.concat();
    let stand = found.iter().flatten();
    Ok(Json(stand.map(|found| relationship(found, languages.of(found.account))).collect()))
}

/// `POST /api/v1/accounts/:id/follow`
pub(super) async fn follow(
    State(app): State<Shared>,
    who: Caller,
    Path(id): Path<String>,
    params: Params,
) -> RelationshipAnswer {
    let (me, other) = both(&who, "write:follows", &id)?;
    let languages = wanted_languages(&app, me, other, &params).await?;
    let followed = match groups::is_one(&app, other).await? {
        true => app.settled(app.engine.join_group(other, me)).await,
        false => app.settled(app.engine.follow(me, other)).await,
    };
    match followed {
        Err(e) if e.code() == ErrorCode::Blocked => return Err(Refusal::not_allowed()),
        done => drop(done?),
    }
    let said_with_it = async {
        match params.flag("reblogs") {
            Some(true) => drop(app.engine.show_reposts(me, other).await?),
            Some(false) => drop(app.engine.hide_reposts(me, other).await?),
            None => {}
        }
        match languages {
            Some(languages) => keep::languages::want(&app, me, other, &languages).await,
            None => Ok(()),
        }
    };
    said_with_it.await.map_err(Refusal::of_what_was_done)?;
    stands(&app, me, other).await
}

/// The languages in which a request says that somebody is read; `None`: it says nothing of that.
///
/// Looked at with those that are there, before anybody is followed: what has no room is refused, and nothing is done.
async fn wanted_languages(
    app: &App,
    me: AccountId,
    of: AccountId,
    params: &Params,
) -> Result<Option<Vec<String>>, Refusal> {
    if !params.has("languages") {
        return Ok(None);
    }
    let named = params.texts("languages").into_iter().filter(|named| !named.trim().is_empty());
    let language = |named: String| {
        let refused = || Refusal::validation(format!("Languages: {named:?} is no language"));
        written::language(&named).ok_or_else(refused)
    };
    let mut languages: Vec<String> = named.map(language).collect::<Result<_, _>>()?;
    let mut met = HashSet::new();
    languages.retain(|language| met.insert(language.clone()));
    keep::languages::of(app, me).await?.set(of, &languages).map_err(Refusal::validation)?;
    Ok(Some(languages))
}

/// `POST /api/v1/accounts/:id/unfollow`
pub(super) async fn unfollow(
    State(app): State<Shared>,
    who: Caller,
    Path(id): Path<String>,
) -> RelationshipAnswer {
    let (me, other) = both(&who, "write:follows", &id)?;
    match groups::is_one(&app, other).await? {
        true => app.settled(app.engine.leave_group(other, me)).await.map_err(groups::refused)?,
        false => app.settled(app.engine.unfollow(me, other)).await?,
    };
    follow_has_ended(&app, me, other).await?;
    stands(&app, me, other).await
}

/// `POST /api/v1/accounts/:id/remove_from_followers`
pub(super) async fn remove_follower(
    State(app): State<Shared>,
    who: Caller,
    Path(id): Path<String>,
) -> RelationshipAnswer {
    let (me, other) = both(&who, "write:follows", &id)?;
    app.settled(app.engine.unfollow(other, me)).await?;
    follow_has_ended(&app, other, me).await?;
    stands(&app, me, other).await
}

/// `POST /api/v1/accounts/:id/block`: it ends the follow, with what goes with that.
pub(super) async fn block(
    State(app): State<Shared>,
    who: Caller,
    Path(id): Path<String>,
) -> RelationshipAnswer {
    let (me, other) = both(&who, "write:blocks", &id)?;
    if groups::is_one(&app, other).await? {
        // It would leave a role behind.
        app.settled(app.engine.leave_group(other, me)).await.map_err(groups::refused)?;
    }
    app.settled(app.engine.block(me, other)).await?;
    follow_has_ended(&app, me, other).await?;
    follow_has_ended(&app, other, me).await?;
    stands(&app, me, other).await
}

deed!(
    /// `POST /api/v1/accounts/:id/unblock`
    unblock, "write:blocks", unblock
);

/// `POST /api/v1/accounts/:id/mute`
pub(super) async fn mute(
    State(app): State<Shared>,
    who: Caller,
    Path(id): Path<String>,
    params: Params,
) -> RelationshipAnswer {
    let (me, other) = both(&who, "write:mutes", &id)?;
    let seconds = params.number("duration").unwrap_or(0);
    let time = (seconds > 0).then(|| Duration::from_secs(seconds.unsigned_abs()));
    let engine = &app.engine;
    match (params.flag("notifications"), time) {
        (Some(false), time) => engine.mute_posts(me, other, time).await?,
        (_, Some(time)) => engine.mute_for(me, other, time).await?,
        (_, None) => engine.mute(me, other).await?,
    };
    stands(&app, me, other).await
}

deed!(
    /// `POST /api/v1/accounts/:id/unmute`
    unmute, "write:mutes", unmute
);

/// `POST /api/v1/accounts/:id/note`
pub(super) async fn note(
    State(app): State<Shared>,
    who: Caller,
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
    who: Caller,
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
    who: Caller,
    Path(id): Path<String>,
) -> RelationshipAnswer {
    let (me, other) = both(&who, "write:follows", &id)?;
    waits(&app, me, other).await?;
    app.settled(app.engine.reject(me, other)).await?;
    follow_has_ended(&app, other, me).await?;
    stands(&app, me, other).await
}

/// Refuses to have `me` answer `other`, if that one doesn't wait for an answer.
async fn waits(app: &App, me: AccountId, other: AccountId) -> Result<(), Refusal> {
    if found(app, me, other).await?.is_requested { Ok(()) } else { Err(Refusal::not_found()) }
}
