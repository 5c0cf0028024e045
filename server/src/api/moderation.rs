//! What waits for moderators, and what they decide. For accounts whose role says so, with a token for that.

use axum::extract::State;
use tideline::{AccountId, Report, ReportCategory, ReportId, ReportQuery};

use crate::app::{App, Shared};
use crate::auth::who::Who;
use crate::entity::{self, Empty, Id};
use crate::http::path::PathId;
use crate::http::{Json, PageLimit, Params, Refusal, Timestamp};
use crate::keep::role::{AccountRole, role};

const REPORTS: PageLimit = PageLimit { default: 20, max: 100 };
const READ: &str = "admin:read:reports";
const WRITE: &str = "admin:write:reports";

/// The moderator that asks.
async fn moderator(app: &App, who: &Who, needed: &str) -> Result<AccountId, Refusal> {
    let me = who.user(needed)?;
    match role(&app.registration, me).await? {
        AccountRole::User => Err(Refusal::not_allowed()),
        AccountRole::Moderator | AccountRole::Admin => Ok(me),
    }
}

/// `GET /api/tideline/v1/reports`
pub(super) async fn reports(
    State(app): State<Shared>,
    who: Who,
    params: Params,
) -> Result<Json<entity::ReportPage>, Refusal> {
    moderator(&app, &who, READ).await?;
    let target = match params.filled("account_id") {
        Some(_) => Some(params.id("account_id").ok_or_else(Refusal::not_found)?),
        None => None,
    };
    let request = params.page(REPORTS);
    let query = ReportQuery {
        resolved: params.flag("resolved").unwrap_or_default(),
        target: target.map(AccountId::new).transpose()?,
        before: request.max_id.map(ReportId::from_u64).transpose()?,
        limit: Some(request.limit),
    };
    let list = app.engine.reports(&query).await?;
    let mut reports = Vec::with_capacity(list.reports.len());
    for report in list.reports {
        reports.push(shown(&app, report).await?);
    }
    Ok(Json(entity::ReportPage { reports, older: list.older.map(|id| Id(id.get())) }))
}

async fn shown(app: &App, report: Report) -> Result<entity::Report, Refusal> {
    let of = report.report;
    let mut statuses = Vec::with_capacity(of.posts.len());
    for id in of.posts {
        let post = app.engine.stored().post(id).await?;
        statuses.push(entity::ReportedStatus {
            id: id.into(),
            hidden: post.as_ref().is_some_and(|post| post.header().is_hidden()),
            text: post.map(|post| post.content().text.clone()),
        });
    }
    let category = match of.category {
        ReportCategory::Held => "held",
        ReportCategory::Spam => "spam",
        ReportCategory::Legal => "legal",
        ReportCategory::Violation => "violation",
        _ => "other",
    };
    Ok(entity::Report {
        id: Id(report.id.get()),
        category: category.into(),
        comment: of.comment,
        created_at: Timestamp(report.id.unix_ms()),
        account_id: (of.category != ReportCategory::Held).then(|| of.reporter.into()),
        target_account_id: of.target.into(),
        statuses,
        resolved_by: report.resolved_by.map(Id::from),
    })
}

/// `POST /api/tideline/v1/reports/:id/release`
pub(super) async fn release(app: State<Shared>, who: Who, id: PathId) -> Result<Json<Empty>, Refusal> {
    decide(app, who, id, true).await
}

/// `POST /api/tideline/v1/reports/:id/drop`
pub(super) async fn drop_held(app: State<Shared>, who: Who, id: PathId) -> Result<Json<Empty>, Refusal> {
    decide(app, who, id, false).await
}

async fn decide(
    State(app): State<Shared>,
    who: Who,
    PathId(id): PathId,
    shows: bool,
) -> Result<Json<Empty>, Refusal> {
    let me = moderator(&app, &who, WRITE).await?;
    app.engine.decide_held(ReportId::from_u64(id)?, me, shows).await?;
    Ok(Json(Empty {}))
}

/// `POST /api/tideline/v1/reports/:id/resolve`
pub(super) async fn resolve(
    State(app): State<Shared>,
    who: Who,
    PathId(id): PathId,
) -> Result<Json<Empty>, Refusal> {
    let me = moderator(&app, &who, WRITE).await?;
    app.engine.resolve_report(ReportId::from_u64(id)?, me).await?;
    Ok(Json(Empty {}))
}
