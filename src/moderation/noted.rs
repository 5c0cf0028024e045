//! Reports that nobody has made: of posts that are held back, and of who reaches a limit of what an account may do.
//! They name the account itself as the reporter, so that they take its own room.

use std::sync::Arc;
use std::time::Duration;

use super::queue::{self, ReportQuery};
use super::reports::{
    self, NewReport, REPORT_COMMENT_CHARS_MAX, REPORTS_OPEN_OF_ONE_MAX, Report, ReportCategory, ReportId,
};
use crate::cluster::{Command, Epoch, Request, impatiently};
use crate::error::{Error, ErrorKind, Result};
use crate::ids::AccountId;
use crate::journal::Recurring;
use crate::post::PostRef;
use crate::tenant::{Refusals, Tenant};

/// The interval at which what was refused is brought to moderators: a client that tries again and again is one note.
const NOTE_EVERY: Duration = Duration::from_secs(2);
/// An account of which so many reports are open gets no note of a limit: there is room for posts that are held back.
const LIMIT_NOTES_MAX: u64 = REPORTS_OPEN_OF_ONE_MAX as u64 / 2;

/// The report of a new post that is held back, by its author about itself. Made again it is the same one.
pub(crate) async fn hold(tenant: &Tenant, post: PostRef, why: &str) -> Result<Epoch> {
    let report = of_new(post, why);
    if let Some((_, epoch)) = reports::added_before(tenant, &report).await? {
        return Ok(epoch);
    }
    Ok(reports::store(tenant, &report, &[]).await?.1)
}

/// The report of an edit that is held back: another one each time, or who was decided on before is never looked at
/// again (H267).
pub(crate) async fn hold_edit(tenant: &Tenant, post: PostRef, why: &str) -> Result<ReportId> {
    Ok(reports::store(tenant, &of_held(post, why), &[]).await?.0)
}

/// Whether there has been a report of a new post that is held back, as long as anybody can publish it again.
pub(crate) async fn is_told(tenant: &Tenant, post: PostRef) -> Result<bool> {
    Ok(reports::added_before(tenant, &of_new(post, "")).await?.is_some())
}

/// The open reports of a post that is held back, the newest first: one of itself, and one of each edit.
pub(crate) async fn held(tenant: &Tenant, post: PostRef) -> Result<Vec<ReportId>> {
    let mut query = ReportQuery { target: Some(post.author), limit: Some(100), ..ReportQuery::default() };
    let mut held = Vec::new();
    loop {
        let page = queue::list(tenant, &query).await?;
        let of_it = |report: &&Report| {
            report.report.category == ReportCategory::Held && report.report.posts.contains(&post.id)
        };
        held.extend(page.reports.iter().filter(of_it).map(|report| report.id));
        // Ids fall: this ends.
        match page.older {
            Some(older) => query.before = Some(older),
            None => return Ok(held),
        }
    }
}

/// Whether that report of a post which is held back waits for a moderator. Refuses one that an edit has made an old
/// one.
pub(super) async fn waits(tenant: &Tenant, post: PostRef, report: ReportId) -> Result<bool> {
    let held = held(tenant, post).await?;
    match held.first() {
        Some(newest) if *newest > report => {
            let text = format!(
                "post {} was edited since: report {newest} is about what it says now, look at that one",
                post.id
            );
            Err(Error::new(ErrorKind::Conflict, text))
        }
        _ => Ok(held.contains(&report)),
    }
}

/// Refuses a post that is held back: what it says nobody has looked at.
pub(super) async fn only_decided(tenant: &Tenant, post: PostRef) -> Result<()> {
    match held(tenant, post).await?.first() {
        Some(report) => Err(Error::invalid(format!(
            "post {} is held back: release it by its report {report}, or drop it (`decide_held`)",
            post.id
        ))),
        None => Ok(()),
    }
}

/// The report of a new post, of which there is one.
fn of_new(post: PostRef, why: &str) -> NewReport {
    NewReport { token: Some(format!("held {} 0", post.id)), ..of_held(post, why) }
}

fn of_held(post: PostRef, why: &str) -> NewReport {
    NewReport {
        reporter: post.author,
        target: post.author,
        posts: vec![post.id],
        category: ReportCategory::Held,
        comment: why.chars().take(REPORT_COMMENT_CHARS_MAX).collect(),
        token: None,
    }
}

/// Notes that an account has reached a limit, unless that is noted already.
async fn note_limit(tenant: &Tenant, account: AccountId, setting: &str, refusals: Refusals) -> Result<()> {
    let report = NewReport {
        reporter: account,
        target: account,
        posts: Vec::new(),
        category: ReportCategory::Limit,
        comment: refusals.comment(setting),
        token: Some(format!("reached {setting}")),
    };
    if reports::added_before(tenant, &report).await?.is_some()
        || open_of(tenant, account).await? >= LIMIT_NOTES_MAX
    {
        return Ok(());
    }
    reports::store(tenant, &report, &[]).await.map(drop)
}

/// Whether one more post of an account may be held back, as far as it can be told before.
pub(crate) async fn has_room_to_hold(tenant: &Tenant, author: AccountId) -> Result<bool> {
    Ok(open_of(tenant, author).await? < u64::from(REPORTS_OPEN_OF_ONE_MAX))
}

/// The number of open reports that an account has made, or stands in, about accounts of its own bucket.
async fn open_of(tenant: &Tenant, reporter: AccountId) -> Result<u64> {
    let key = tenant.keys().reporters(tenant.bucket(reporter));
    let command = Command::new("HGET").arg(&key).arg(&reporter.to_bytes());
    let open = tenant.router().call(Request::read(tenant.slot(reporter), command)).await?;
    if open.is_nil() { Ok(0) } else { open.count() }
}

/// Brings to moderators who has reached a limit, again and again. What an instance that dies has not brought comes with
/// the next refusal.
#[derive(Debug)]
pub(crate) struct ReachedLimitNotes;

impl Recurring for ReachedLimitNotes {
    type Owner = Tenant;

    fn pause(&mut self, _: &Tenant) -> Duration {
        NOTE_EVERY
    }

    async fn round(&mut self, tenant: &Arc<Tenant>) {
        for ((account, setting), refusals) in tenant.reached_limits.take() {
            let noted = impatiently(note_limit(tenant, account, setting, refusals)).await;
            if let Err(e) = noted {
                tracing::debug!("moderators don't hear that account {account} has reached `{setting}`: {e}");
            }
        }
    }
}
