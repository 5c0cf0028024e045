//! Matters that wait for moderators, and their decisions. For accounts whose role says so, with a token for that.

use axum::extract::{Path, State};
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use tideline::{
    AccountId, AccountLimit, AccountState, ErrorKind, Moderation, OwnLimits, Report, ReportId, ReportQuery,
};

use super::accounts::{self, id_of, post_of};
use super::reports::{category_name, reported_posts};
use crate::app::{App, Shared};
use crate::auth::caller::Caller;
use crate::auth::standing::set_state;
use crate::entity::{self, Empty, Id};
use crate::http::path::PathId;
use crate::http::{Json, PageLimit, Params, Refusal, Timestamp};
use crate::keep::posts::readable;
use crate::keep::role::{AccountRole, role};

const REPORTS: PageLimit = PageLimit { default: 20, max: 100 };
/// Reports that are looked at together: each may name a hundred posts.
const REPORTS_AT_ONCE: usize = 4;
const READ: &str = "admin:read:reports";
const WRITE: &str = "admin:write:reports";
const READ_ACCOUNTS: &str = "admin:read:accounts";
const WRITE_ACCOUNTS: &str = "admin:write:accounts";

/// Admits a moderator, and tells what its role is.
async fn moderator_as(app: &App, who: &Caller, needed: &str) -> Result<(AccountId, AccountRole), Refusal> {
    let me = who.user(needed)?;
    match role(&app.registration, me).await? {
        AccountRole::User => Err(Refusal::not_allowed()),
        role => Ok((me, role)),
    }
}

/// Refuses a moderator who doesn't rank above an account; an admin decides on its own, too.
async fn only_below(
    app: &App,
    (me, rank): (AccountId, AccountRole),
    other: AccountId,
) -> Result<(), Refusal> {
    let is_own = me == other && rank == AccountRole::Admin;
    match is_own || rank_of(app, other).await? < rank {
        true => Ok(()),
        false => Err(Refusal::not_allowed()),
    }
}

/// The role of whom something is about. Who is gone has none.
async fn rank_of(app: &App, account: AccountId) -> Result<AccountRole, Refusal> {
    match role(&app.registration, account).await {
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(AccountRole::User),
        role => Ok(role?),
    }
}

/// The moderator that decides on a report. Admins do on all; others neither on what is about themselves, nor about who
/// ranks as high as they do.
async fn decides_on(app: &App, who: &Caller, report: ReportId) -> Result<AccountId, Refusal> {
    let (me, rank) = moderator_as(app, who, WRITE).await?;
    let about = app.engine.find_report(report).await?.report.target;
    match decides_about(app, rank, about).await? {
        true => Ok(me),
        false => Err(Refusal::not_allowed()),
    }
}

/// Whether who has that role sees and decides on what is about an account.
async fn decides_about(app: &App, rank: AccountRole, about: AccountId) -> Result<bool, Refusal> {
    Ok(rank == AccountRole::Admin || rank_of(app, about).await? < rank)
}

/// `GET /api/tideline/v1/reports`: those that the moderator decides on. Nobody reads there who has reported itself.
pub(super) async fn reports(
    State(app): State<Shared>,
    who: Caller,
    params: Params,
) -> Result<Json<entity::ReportPage>, Refusal> {
    let (_, rank) = moderator_as(&app, &who, READ).await?;
    let target = match params.filled("account_id") {
        Some(_) => Some(params.id("account_id").ok_or_else(Refusal::not_found)?),
        None => None,
    };
    let target = target.map(AccountId::new).transpose()?;
    if let Some(target) = target
        && !decides_about(&app, rank, target).await?
    {
        return Err(Refusal::not_allowed());
    }
    let request = params.page(REPORTS);
    let query = ReportQuery {
        resolved: params.flag("resolved").unwrap_or_default(),
        target,
        before: request.max_id.map(ReportId::from_u64).transpose()?,
        limit: Some(request.limit),
    };
    let list = app.engine.reports(&query).await?;
    let of_those = list.reports.into_iter().map(async |report| {
        match decides_about(&app, rank, report.report.target).await? {
            true => shown(&app, report).await.map(Some),
            false => Ok(None),
        }
    });
    let reports: Vec<_> = stream::iter(of_those).buffered(REPORTS_AT_ONCE).try_collect().await?;
    let reports = reports.into_iter().flatten().collect();
    let older = list.older.map(|id| Id(id.get()));
    Ok(Json(entity::ReportPage { reports, older, lacks_some: list.lacks_some }))
}

async fn shown(app: &App, report: Report) -> Result<entity::Report, Refusal> {
    let statuses = reported_posts(&app.engine, &report).await?;
    let of = report.report;
    Ok(entity::Report {
        id: Id(report.id.get()),
        category: category_name(of.category).into(),
        comment: of.comment,
        created_at: Timestamp(report.id.unix_ms()),
        account_id: (!of.category.is_noted()).then(|| of.reporter.into()),
        target_account_id: of.target.into(),
        statuses,
        resolved_by: report.resolved_by.map(Id::from),
    })
}

/// `POST /api/tideline/v1/reports/:id/release`
pub(super) async fn release(app: State<Shared>, who: Caller, id: PathId) -> Result<Json<Empty>, Refusal> {
    decide(app, who, id, true).await
}

/// `POST /api/tideline/v1/reports/:id/drop`
pub(super) async fn drop_held(app: State<Shared>, who: Caller, id: PathId) -> Result<Json<Empty>, Refusal> {
    decide(app, who, id, false).await
}

async fn decide(
    State(app): State<Shared>,
    who: Caller,
    PathId(id): PathId,
    shows: bool,
) -> Result<Json<Empty>, Refusal> {
    let report = ReportId::from_u64(id)?;
    app.engine.decide_held(report, decides_on(&app, &who, report).await?, shows).await?;
    Ok(Json(Empty {}))
}

/// `POST /api/tideline/v1/reports/:id/resolve`
pub(super) async fn resolve(
    State(app): State<Shared>,
    who: Caller,
    PathId(id): PathId,
) -> Result<Json<Empty>, Refusal> {
    let report = ReportId::from_u64(id)?;
    app.engine.resolve_report(report, decides_on(&app, &who, report).await?).await?;
    Ok(Json(Empty {}))
}

/// `POST /api/tideline/v1/statuses/:id/moderate`
pub(super) async fn moderate(
    State(app): State<Shared>,
    who: Caller,
    Path(id): Path<String>,
    params: Params,
) -> Result<Json<Empty>, Refusal> {
    let moderator = moderator_as(&app, &who, WRITE).await?;
    let said = Moderation { hidden: params.flag("hidden"), sensitive: params.flag("sensitive") };
    if said == Moderation::default() {
        return Err(Refusal::validation("It takes hidden or sensitive"));
    }
    let id = post_of(&id)?;
    // Of one that can't be read nobody knows who wrote it.
    if let Some(post) = readable(&app.engine, id).await? {
        only_below(&app, moderator, post.writer()).await?;
    }
    app.engine.moderate(id, said).await?;
    Ok(Json(Empty {}))
}

/// `POST /api/tideline/v1/accounts/:id/state`: of who has no role, or a lower one than who says so.
pub(super) async fn state(
    State(app): State<Shared>,
    who: Caller,
    Path(id): Path<String>,
    params: Params,
) -> Result<Json<Empty>, Refusal> {
    let moderator = moderator_as(&app, &who, WRITE_ACCOUNTS).await?;
    let state = match params.text("becomes").unwrap_or_default() {
        "active" => AccountState::Active,
        "limited" => AccountState::Limited,
        "suspended" => AccountState::Suspended,
        _ => return Err(Refusal::validation("It becomes active, limited or suspended")),
    };
    let account = accounts::find(&app, id_of(&id)?).await?.ok_or_else(Refusal::not_found)?;
    only_below(&app, moderator, account.id).await?;
    let ended = set_state(&app.engine, &app.registration, &account, state).await?;
    if let Some(because) = ended.because {
        return Err(Refusal::from(because).of_what_was_done());
    }
    Ok(Json(Empty {}))
}

/// `GET /api/tideline/v1/accounts/:id/limits`
pub(super) async fn limits(
    State(app): State<Shared>,
    who: Caller,
    Path(id): Path<String>,
) -> Result<Json<entity::AccountLimits>, Refusal> {
    let (moderator, id) = (moderator_as(&app, &who, READ_ACCOUNTS).await?, id_of(&id)?);
    only_below(&app, moderator, id).await?;
    let own = app.engine.own_limits(id).await?;
    Ok(Json(shown_limits(&app, own)))
}

/// `POST /api/tideline/v1/accounts/:id/limits`: those that are named; an empty one is the usual one again.
pub(super) async fn limit(
    State(app): State<Shared>,
    who: Caller,
    Path(id): Path<String>,
    params: Params,
) -> Result<Json<entity::AccountLimits>, Refusal> {
    let (moderator, id) = (moderator_as(&app, &who, WRITE_ACCOUNTS).await?, id_of(&id)?);
    only_below(&app, moderator, id).await?;
    let mut limits = Vec::new();
    for limit in AccountLimit::ALL.into_iter().filter(|limit| params.has(limit.as_str())) {
        let name = limit.as_str();
        let number = |text: &str| {
            let refused = || Refusal::validation(format!("{name}: {text:?} is no number from 1 on"));
            text.parse::<u32>().map_err(|_| refused())
        };
        let most = match params.text(name) {
            Some("") => None,
            Some(text) => Some(number(text)?),
            None => return Err(Refusal::validation(format!("{name} is one number, or empty"))),
        };
        limits.push((limit, most));
    }
    let own = app.engine.limit_account(id, &limits).await?.value;
    Ok(Json(shown_limits(&app, own)))
}

fn shown_limits(app: &App, own: OwnLimits) -> entity::AccountLimits {
    let settings = app.engine.settings();
    let usual = |limit| match limit {
        AccountLimit::FollowedAccounts => Some(settings.following_max.to_string()),
        limit => settings.limits.of(limit).map(|limit| limit.to_string()),
    };
    entity::AccountLimits { own: each_limit(|limit| own.of(limit)), usual: each_limit(usual) }
}

fn each_limit<T>(of: impl Fn(AccountLimit) -> Option<T>) -> entity::LimitsOf<T> {
    entity::LimitsOf {
        posts: of(AccountLimit::Posts),
        direct_posts: of(AccountLimit::DirectPosts),
        group_posts: of(AccountLimit::GroupPosts),
        mentions_of_strangers: of(AccountLimit::MentionsOfStrangers),
        follows: of(AccountLimit::Follows),
        reports: of(AccountLimit::Reports),
        followed_accounts: of(AccountLimit::FollowedAccounts),
    }
}
