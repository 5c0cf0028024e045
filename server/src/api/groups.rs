//! Groups: accounts whose members post into them. Following one is joining it and mentioning one is posting into it,
//! with any client; here is the rest.

use axum::extract::{Path, State};
use axum::http::{StatusCode, Uri};
use tideline::{Account, AccountId, AccountKind, ErrorCode, GroupRole, NewAccount, PostId};

use super::accounts::{self, id_of, post_of};
use super::credentials::{SaidAccount, profile};
use super::follows::follow_has_ended;
use super::limited::CountedClient;
use super::page;
use super::services::{as_validation, check_login, name, reserved_login};
use crate::app::{App, Shared};
use crate::auth::caller::Caller;
use crate::entity::{self, Empty};
use crate::http::path::PathId;
use crate::http::{Json, Paged, Params, Refusal};
use crate::show;

const READ: &str = "read:accounts";
const WRITE: &str = "write:accounts";

type Done = Result<Json<Empty>, Refusal>;

pub(super) fn is_group(account: &Account) -> bool {
    account.kind.is_group()
}

/// Whether an account is a group; one that isn't there is none.
pub(super) async fn is_one(app: &App, id: AccountId) -> Result<bool, Refusal> {
    Ok(accounts::find(app, id).await?.is_some_and(|account| is_group(&account)))
}

/// Tells in words what somebody may not do in a group.
pub(super) fn refused(error: tideline::Error) -> Refusal {
    match error.code() {
        ErrorCode::NotAllowed => Refusal::new(StatusCode::FORBIDDEN, error.to_string()),
        _ => error.into(),
    }
}

/// The account that a form names.
fn of(params: &Params) -> Result<AccountId, Refusal> {
    id_of(params.filled("account_id").ok_or_else(|| Refusal::validation("Account can't be blank"))?)
}

/// `POST /api/tideline/v1/groups`: who makes a group owns it.
pub(super) async fn create(
    State(app): State<Shared>,
    who: Caller,
    params: Params,
) -> Result<Json<entity::Account>, Refusal> {
    let me = who.user(WRITE)?;
    let login = params.filled("username").ok_or_else(|| Refusal::validation("Username can't be blank"))?;
    let update = profile(&params)?;
    update.check().map_err(as_validation)?;
    check_login(&app, login, None).await?;
    if app.settings.reserves(login) {
        return Err(reserved_login(login));
    }
    let is_announcing = params.flag("announcement") == Some(true);
    let new = NewAccount {
        kind: if is_announcing { AccountKind::Announcement } else { AccountKind::Group },
        is_locked: params.flag("locked") == Some(true),
        ..NewAccount::default()
    };
    let group = app.settled(app.engine.create_group(me, new)).await?.value;
    let made = async {
        let account = accounts::known(&app, group).await?;
        name(&app, &account, login).await?;
        app.registration.update_profile(group, &update).await.map_err(as_validation)?;
        accounts::known(&app, group).await
    };
    match made.await {
        Ok(account) => Ok(Json(show::account::account(app.site(), &account))),
        // Nobody could find one without its name.
        Err(refusal) => {
            app.engine.delete_account(group).await?;
            Err(refusal)
        }
    }
}

/// The post that was sent with that token into one of these groups, and the group that it went into.
pub(super) async fn posted_as(
    app: &App,
    me: AccountId,
    groups: &[AccountId],
    token: &str,
) -> Result<Option<(AccountId, PostId)>, Refusal> {
    for group in groups {
        if let Some(posted) = app.engine.written_as(*group, me, token).await? {
            return Ok(Some((*group, posted)));
        }
    }
    Ok(None)
}

/// Refuses who has no such role in a group, or a higher one.
async fn only(app: &App, group: AccountId, me: AccountId, role: GroupRole) -> Result<(), Refusal> {
    let staff = app.engine.stored().group_staff(group).await?;
    match staff.into_iter().any(|(account, has)| account == me && has >= role) {
        true => Ok(()),
        false => Err(Refusal::not_allowed()),
    }
}

/// `PATCH /api/tideline/v1/groups/:id`: for its owners.
pub(super) async fn update(
    State(app): State<Shared>,
    who: Caller,
    PathId(group): PathId,
    params: Params,
) -> Result<Json<entity::Account>, Refusal> {
    let (me, group) = (who.user(WRITE)?, AccountId::new(group)?);
    let said = SaidAccount::of(&params)?;
    only(&app, group, me, GroupRole::Owner).await?;
    let engine = &app.engine;
    if let Some(is_private) = said.is_locked {
        app.settled(engine.set_group_privacy(group, me, is_private)).await.map_err(refused)?;
    }
    let changed = async {
        let has_written = said.write_profile(&app, group).await?;
        let account = accounts::known(&app, group).await;
        account.map_err(|refusal| if has_written { refusal.of_what_was_done() } else { refusal })
    };
    match changed.await {
        Ok(account) => Ok(Json(show::account::account(app.site(), &account))),
        Err(refusal) if said.is_locked.is_some() => Err(refusal.of_what_was_done()),
        Err(refusal) => Err(refusal),
    }
}

/// `DELETE /api/tideline/v1/groups/:id`: for its owners.
pub(super) async fn delete(State(app): State<Shared>, who: Caller, PathId(group): PathId) -> Done {
    let (me, group) = (who.user(WRITE)?, AccountId::new(group)?);
    app.settled(app.engine.delete_group(group, me)).await.map_err(refused)?;
    Ok(Json(Empty {}))
}

/// `GET /api/tideline/v1/groups/:id/staff`
pub(super) async fn staff(
    State(app): State<Shared>,
    who: Caller,
    PathId(group): PathId,
) -> Result<Json<Vec<entity::GroupMember>>, Refusal> {
    let staff = who.viewer(&app, "read:accounts").group_staff(AccountId::new(group)?).await;
    // An account that is no group.
    let staff = staff.map_err(|e| match e.code() {
        ErrorCode::Invalid => Refusal::not_found(),
        _ => e.into(),
    })?;
    let mut members = Vec::with_capacity(staff.len());
    for (account, role) in staff {
        // Who is gone has no role any more that counts.
        if let Some(account) = accounts::find(&app, account).await?.filter(accounts::is_shown) {
            let account = show::account::account(app.site(), &account);
            members.push(entity::GroupMember { account, role: role_name(role).into() });
        }
    }
    Ok(Json(members))
}

fn role_name(role: GroupRole) -> &'static str {
    match role {
        GroupRole::Owner => "owner",
        GroupRole::Moderator => "moderator",
    }
}

/// `POST /api/tideline/v1/groups/:id/roles`
pub(super) async fn give_role(
    State(app): State<Shared>,
    who: Caller,
    PathId(group): PathId,
    params: Params,
) -> Done {
    let (me, group, account) = (who.user(WRITE)?, AccountId::new(group)?, of(&params)?);
    let role = match params.text("role").unwrap_or_default() {
        "owner" => Some(GroupRole::Owner),
        "moderator" => Some(GroupRole::Moderator),
        "member" => None,
        _ => return Err(Refusal::validation("Role is owner, moderator or member")),
    };
    app.engine.set_group_role(group, me, account, role).await.map_err(refused)?;
    Ok(Json(Empty {}))
}

/// Removes what somebody who was turned out has said of following the group. Of who is gone there is nothing.
async fn was_turned_out(app: &App, group: AccountId, account: AccountId) -> Result<(), Refusal> {
    let found = accounts::find(app, account).await.map_err(Refusal::of_what_was_done)?;
    if found.is_some() {
        follow_has_ended(app, account, group).await?;
    }
    Ok(())
}

/// Does something with an account in a group, and `then` what that brings with it.
macro_rules! deed {
    (
        $(#[$doc:meta])* $name:ident,
        |$engine:ident, $group:ident, $me:ident, $account:ident| $call:expr $(, $then:ident)?
    ) => {
        $(#[$doc])*
        pub(super) async fn $name(
            State(app): State<Shared>,
            who: Caller,
            PathId(group): PathId,
            params: Params,
        ) -> Done {
            let ($me, $group, $account) = (who.user(WRITE)?, AccountId::new(group)?, of(&params)?);
            let $engine = &app.engine;
            app.settled($call).await.map_err(refused)?;
            $($then(&app, $group, $account).await?;)?
            Ok(Json(Empty {}))
        }
    };
}

deed!(
    /// `POST /api/tideline/v1/groups/:id/remove`
    remove, |engine, group, me, account| engine.turn_out(group, me, account), was_turned_out
);
deed!(
    /// `POST /api/tideline/v1/groups/:id/ban`
    ban, |engine, group, me, account| engine.ban_from_group(group, me, account, true), was_turned_out
);

deed!(
    /// `POST /api/tideline/v1/groups/:id/unban`
    unban, |engine, group, me, account| engine.ban_from_group(group, me, account, false)
);
deed!(
    /// `POST /api/tideline/v1/groups/:id/invite`
    invite, |engine, group, me, account| engine.invite_to_group(group, me, account, true)
);
deed!(
    /// `POST /api/tideline/v1/groups/:id/uninvite`
    uninvite, |engine, group, me, account| engine.invite_to_group(group, me, account, false)
);
deed!(
    /// `POST /api/tideline/v1/groups/:id/authorize`
    authorize, |engine, group, me, account| engine.answer_group_request(group, me, account, true)
);
deed!(
    /// `POST /api/tideline/v1/groups/:id/reject`
    reject, |engine, group, me, account| engine.answer_group_request(group, me, account, false)
);

/// `GET /api/tideline/v1/groups/:id/requests`: for its staff.
pub(super) async fn requests(
    State(app): State<Shared>,
    who: Caller,
    PathId(group): PathId,
    uri: Uri,
    params: Params,
) -> Result<Paged<entity::Account>, Refusal> {
    let (me, group) = (who.user(READ)?, AccountId::new(group)?);
    only(&app, group, me, GroupRole::Moderator).await?;
    let Some(query) = page::list_query(&params, page::ACCOUNTS) else {
        return Ok(page::nothing(&app, &uri));
    };
    let reader = app.engine.as_reader(group);
    let list = page::read_on(query, |query| Box::pin(async move { reader.follow_requests(&query).await }));
    Ok(page::accounts(&app, &uri, list.await?))
}

/// `DELETE /api/tideline/v1/groups/:id/statuses/:status_id`: for its staff, and who wrote it.
pub(super) async fn delete_status(
    State(app): State<Shared>,
    who: Caller,
    client: CountedClient,
    Path((group, id)): Path<(String, String)>,
) -> Done {
    let (me, group, id) = (who.user("write:statuses")?, id_of(&group)?, post_of(&id)?);
    let post = app.engine.stored().post(id).await?;
    let post = post.filter(|post| post.group() == Some(group)).ok_or_else(Refusal::not_found)?;
    // What somebody takes back of its own counts, whichever way: whoever looks after a group takes away what fills it.
    if post.writer() == me {
        client.take_back(&app, &who).await.map_err(Refusal::limited)?;
    }
    app.settled(app.engine.delete(me, id)).await?;
    Ok(Json(Empty {}))
}
