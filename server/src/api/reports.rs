//! Telling moderators of somebody. What they do with it: `moderation`.

use axum::extract::State;
use axum::http::HeaderMap;
use futures::future::try_join_all;
use tideline::cluster::impatiently;
use tideline::{AccountId, Engine, ErrorKind, NewReport, PostId, Report, ReportCategory};

use super::accounts::{id_of, known};
use super::statuses::token_of;
use crate::app::{App, Shared};
use crate::auth::caller::Caller;
use crate::entity::{self, Id, ReportedStatus};
use crate::http::{Json, Params, Refusal, Timestamp};
use crate::keep::posts::readable;
use crate::show;

/// `POST /api/v1/reports`
pub(super) async fn create(
    State(app): State<Shared>,
    who: Caller,
    headers: HeaderMap,
    params: Params,
) -> Result<Json<entity::FiledReport>, Refusal> {
    let me = who.user("write:reports")?;
    let token = token_of(&headers)?;
    let target = known(&app, id_of(params.text("account_id").unwrap_or_default())?).await?;
    let rules = rules_of(&app, &params)?;
    let (category, said) = (category_of(&params, &rules)?, params.text("comment").unwrap_or_default());
    let posts = seen(&app, me, &params).await?;
    let report = NewReport {
        reporter: me,
        target: target.id,
        posts: posts.clone(),
        category,
        comment: with_rules(said, &rules),
        token,
    };
    let id = app.settled(app.engine.report(&report)).await?.value;
    Ok(Json(entity::FiledReport {
        id: Id(id.get()),
        action_taken: false,
        action_taken_at: None,
        category: category_name(category).into(),
        comment: said.to_owned(),
        forwarded: false,
        created_at: Timestamp(id.unix_ms()),
        status_ids: posts.into_iter().map(Id::from).collect(),
        rule_ids: rules.into_iter().map(Id).collect(),
        target_account: show::account::account(app.site(), &target),
    }))
}

/// The name of a category of reports.
pub(super) fn category_name(category: ReportCategory) -> &'static str {
    match category {
        ReportCategory::Held => "held",
        ReportCategory::Limit => "limit",
        ReportCategory::Spam => "spam",
        ReportCategory::Legal => "legal",
        ReportCategory::Violation => "violation",
        _ => "other",
    }
}

/// Reads what a report is about; of who names rules, that these were broken.
fn category_of(params: &Params, rules: &[u64]) -> Result<ReportCategory, Refusal> {
    match params.filled("category") {
        None if !rules.is_empty() => Ok(ReportCategory::Violation),
        None | Some("other") => Ok(ReportCategory::Other),
        Some("spam") => Ok(ReportCategory::Spam),
        Some("legal") => Ok(ReportCategory::Legal),
        Some("violation") => Ok(ReportCategory::Violation),
        Some(other) => {
            Err(Refusal::validation(format!("Category {other:?} is none of spam, legal, violation, other")))
        }
    }
}

/// The rules of the site that were broken.
fn rules_of(app: &App, params: &Params) -> Result<Vec<u64>, Refusal> {
    let rules = params.ids("rule_ids");
    let has = app.settings.rules.len() as u64;
    match rules.iter().find(|rule| !(1..=has).contains(*rule)) {
        Some(unknown) => Err(Refusal::validation(format!("There is no rule {unknown}"))),
        None => Ok(rules),
    }
}

/// The text that moderators read: also which rules were broken.
fn with_rules(said: &str, rules: &[u64]) -> String {
    if rules.is_empty() {
        return said.to_owned();
    }
    let rules = rules.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
    format!("{said} (rules {rules})").trim_start().to_owned()
}

/// The statuses that it names, without those that the reporter doesn't see: nobody learns of these by trying.
async fn seen(app: &App, me: AccountId, params: &Params) -> Result<Vec<PostId>, Refusal> {
    let mut ids: Vec<PostId> =
        params.ids("status_ids").into_iter().filter_map(|id| PostId::from_u64(id).ok()).collect();
    ids.sort_unstable();
    ids.dedup();
    if ids.is_empty() {
        return Ok(ids);
    }
    if ids.len() > tideline::REPORT_POSTS_MAX {
        let most = tideline::REPORT_POSTS_MAX;
        return Err(Refusal::validation(format!("{} statuses; a report names at most {most}", ids.len())));
    }
    let seen = app.engine.as_reader(me).posts(&ids).await?.posts;
    Ok(seen.iter().map(|post| post.id).collect())
}

/// Shows what reported posts say by now, and what they said when they were reported. The others don't depend on one
/// that is damaged, or lies where nobody can tell now: no server that is away is waited for.
///
/// # Errors
///
/// Those of a server that refuses what is asked.
pub async fn reported_posts(engine: &Engine, report: &Report) -> tideline::Result<Vec<ReportedStatus>> {
    let shown = report.report.posts.iter().map(|id| reported_post(engine, report, *id));
    impatiently(try_join_all(shown)).await
}

async fn reported_post(engine: &Engine, report: &Report, id: PostId) -> tideline::Result<ReportedStatus> {
    let post = match readable(engine, id).await {
        Err(e) if e.kind() == ErrorKind::Unavailable => None,
        post => post?,
    };
    Ok(ReportedStatus {
        id: id.into(),
        hidden: post.as_ref().is_some_and(|post| post.header().is_hidden()),
        spoiler_text: post.as_ref().and_then(|post| post.content().content_warning.clone()),
        text: post.map(|post| post.content().text.clone()),
        reported_as: report.excerpts.iter().find(|of| of.post == id).map(|of| of.text.clone()),
    })
}

#[cfg(test)]
mod tests {
    use super::with_rules;

    #[test]
    fn moderators_read_which_rules_were_broken() {
        assert_eq!(with_rules("shouts", &[]), "shouts");
        assert_eq!(with_rules("shouts", &[1, 3]), "shouts (rules 1, 3)");
        assert_eq!(with_rules("", &[2]), "(rules 2)");
    }
}
