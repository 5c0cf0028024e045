//! Reports: who reports whom, and why.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::excerpt::{self, PostExcerpt};
use crate::account::AccountState;
use crate::change::Tries;
use crate::cluster::{Command, Epoch, Request};
use crate::error::{Error, ErrorCode, ErrorKind, Result};
use crate::functions::{self, CompareAnswer, ReportAdd, ReportAddAnswer};
use crate::ids::{AccountId, PostId};
use crate::limits::AccountLimit;
use crate::nonce::{Nonce, draw};
use crate::post::TOKEN_LEN_MAX;
use crate::stored::StoredPost;
use crate::tenant::Tenant;

/// Posts that a report names.
pub const REPORT_POSTS_MAX: usize = 100;
/// Characters of a report's comment.
pub const REPORT_COMMENT_CHARS_MAX: usize = 1_000;
/// Open reports about the accounts of one bucket: then whoever has most, and two more than the next one who reports,
/// loses its newest to it. And as many that are resolved: of these the oldest go.
pub const REPORTS_OPEN_MAX: u32 = 500;
/// Open reports of one reporter about the accounts of one bucket: nobody fills the list alone.
pub const REPORTS_OPEN_OF_ONE_MAX: u32 = 10;

/// A report's id: it says when it came, and which bucket the account that it is about lies in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct ReportId(PostId);

impl ReportId {
    /// An id that came from outside.
    pub fn from_u64(id: u64) -> Result<Self> {
        PostId::from_u64(id).map(Self)
    }

    /// The number.
    pub fn get(self) -> u64 {
        self.0.get()
    }

    /// Tells when the report came, in milliseconds since 1970.
    pub fn unix_ms(self) -> u64 {
        self.0.unix_ms()
    }
}

impl fmt::Display for ReportId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The category of a report: what it is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ReportCategory {
    /// Advertising, links to harm, replies to everybody.
    Spam,
    /// Something that the law forbids.
    Legal,
    /// Something that the rules of the service forbid.
    Violation,
    /// A post that was [held back](crate::Judgement::Hold): the comment says why, the reporter is its author. Nobody
    /// reports so; [`Engine::decide_held`](crate::Engine::decide_held) releases the post, or removes it.
    Held,
    /// An account that has reached a [limit](crate::ActLimits) of what it may do: the comment says which, the reporter
    /// is the account itself. Nobody reports so; one such report of each account and limit at most, for as long as the
    /// setting `token_ttl` says.
    Limit,
    /// Something else; also what a later release knows.
    #[default]
    #[serde(other)]
    Other,
}

impl ReportCategory {
    /// Whether nobody has reported that: it was noted by itself, and names its account as the reporter.
    pub fn is_noted(self) -> bool {
        matches!(self, Self::Held | Self::Limit)
    }
}

/// A report that is made.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct NewReport {
    /// The account that reports.
    pub reporter: AccountId,
    /// The account that is reported.
    pub target: AccountId,
    /// Posts of that account; may be empty.
    pub posts: Vec<PostId>,
    /// The category: what it is about.
    pub category: ReportCategory,
    /// The reporter's comment.
    pub comment: String,
    /// Makes it safe to send it again, 1 to 64 bytes: with the same token, reporter and target it is the same report,
    /// for as long as the setting `token_ttl` says. `None`: it is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
}

/// A report, as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Report {
    /// Its id.
    pub id: ReportId,
    /// The report as it was made, without its token.
    #[serde(flatten)]
    pub report: NewReport,
    /// How its posts began when it was made, as far as the report kept it. It stays also where a post, or the account,
    /// is deleted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub excerpts: Vec<PostExcerpt>,
    /// The moderator who resolved it; `None`: it is open.
    pub resolved_by: Option<AccountId>,
    #[serde(skip)]
    pub(crate) stamp: Nonce,
}

/// As stored, behind the random bytes.
#[derive(Serialize, Deserialize)]
struct StoredReport {
    reporter: u64,
    target: u64,
    #[serde(default)]
    posts: Vec<u64>,
    #[serde(default)]
    category: ReportCategory,
    #[serde(default)]
    comment: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    excerpts: Vec<PostExcerpt>,
    #[serde(default)]
    resolved_by: Option<u64>,
}

impl NewReport {
    fn check(&self) -> Result<()> {
        let (posts, chars) = (self.posts.len(), self.comment.chars().count());
        if posts > REPORT_POSTS_MAX || chars > REPORT_COMMENT_CHARS_MAX {
            return Err(Error::out_of_range(format!(
                "a report with {posts} posts and a comment of {chars} characters; at most {REPORT_POSTS_MAX} posts and \
                 {REPORT_COMMENT_CHARS_MAX} characters are allowed"
            )));
        }
        if self.category.is_noted() {
            return Err(Error::invalid(format!(
                "category {:?}: only the engine makes such reports, when it holds a post back or an account \
                 reaches a limit. Choose another category",
                self.category
            )));
        }
        if self.reporter == self.target {
            return Err(Error::invalid(format!("account {} cannot report itself", self.target)));
        }
        if let Some(token) = self.token.as_ref().filter(|token| !(1..=TOKEN_LEN_MAX).contains(&token.len())) {
            let text = format!("token: {} bytes; 1 to {TOKEN_LEN_MAX} are allowed", token.len());
            return Err(Error::out_of_range(text));
        }
        Ok(())
    }

    fn stored(
        &self,
        excerpts: &[PostExcerpt],
        stamp: &Nonce,
        resolved_by: Option<AccountId>,
    ) -> Result<Vec<u8>> {
        let report = StoredReport {
            reporter: self.reporter.get(),
            target: self.target.get(),
            posts: self.posts.iter().map(|id| id.get()).collect(),
            category: self.category,
            comment: self.comment.clone(),
            excerpts: excerpts.to_vec(),
            resolved_by: resolved_by.map(AccountId::get),
        };
        let mut stored = stamp.to_vec();
        serde_json::to_writer(&mut stored, &report).map_err(|e| Error::internal(format!("a report: {e}")))?;
        Ok(stored)
    }
}

impl Report {
    pub(super) fn parse(id: ReportId, stored: &[u8]) -> Result<Self> {
        let wrong = |why: String| Error::internal(format!("report {id}: {why}"));
        let (stamp, json) =
            stored.split_first_chunk::<8>().ok_or_else(|| wrong("less than 8 bytes".into()))?;
        let stored: StoredReport = serde_json::from_slice(json).map_err(|e| wrong(e.to_string()))?;
        let report = NewReport {
            reporter: AccountId::new(stored.reporter)?,
            target: AccountId::new(stored.target)?,
            posts: stored.posts.into_iter().map(PostId::from_u64).collect::<Result<_>>()?,
            category: stored.category,
            comment: stored.comment,
            token: None,
        };
        let resolved_by = stored.resolved_by.map(AccountId::new).transpose()?;
        Ok(Self { id, report, excerpts: stored.excerpts, resolved_by, stamp: *stamp })
    }
}

/// Stores a report, if there is none with its token yet.
pub(crate) async fn add(tenant: &Tenant, report: &NewReport) -> Result<(ReportId, Epoch)> {
    report.check()?;
    // A repeat doesn't depend on what follows: posts may have gone meanwhile, and who reports is perhaps suspended.
    if let Some(before) = added_before(tenant, report).await? {
        return Ok(before);
    }
    let reporter = tenant.existing(report.reporter).await?;
    if reporter.state == AccountState::Suspended {
        return Err(Error::new(
            ErrorCode::NotActive,
            format!("account {} is suspended: it cannot report", report.reporter),
        ));
    }
    tenant.existing(report.target).await?;
    let excerpts = excerpts_of(tenant, report).await?;
    // In the reporter's bucket, before it is there: reports lie with whom they are about.
    tenant.count_act(report.reporter, &tenant.limits_of(&[(AccountLimit::Reports, 1)])).await?;
    store(tenant, report, &excerpts).await
}

/// Stores a report that was checked.
pub(super) async fn store(
    tenant: &Tenant,
    report: &NewReport,
    excerpts: &[PostExcerpt],
) -> Result<(ReportId, Epoch)> {
    let bucket = tenant.bucket(report.target);
    let ids = tenant.store.clock().post_ids(bucket, 1).await?;
    let id = ids.first().ok_or_else(|| Error::internal("the clock gave no id"))?;
    let keys = tenant.keys();
    let ttl = u64::try_from(tenant.settings.token_ttl.as_millis()).unwrap_or(u64::MAX);
    let add = ReportAdd {
        keys: [keys.reports(bucket, false), keys.reports(bucket, true), keys.reporters(bucket)],
        token: token_key(tenant, report).map(|key| (key, ttl)),
        most: [REPORTS_OPEN_MAX, REPORTS_OPEN_OF_ONE_MAX],
        id: id.get(),
        reporter: report.reporter,
        value: &report.stored(excerpts, &draw(), None)?,
    };
    // Sent twice it is the same: the id says so, for as long as the report is there; the token longer.
    let answer = tenant.router().ask(Request::write(tenant.slot(report.target), add.command())).await?;
    let epoch = answer.epoch.clone();
    match ReportAddAnswer::parse(answer.ok()?)? {
        ReportAddAnswer::Is(id) => Ok((ReportId::from_u64(id)?, epoch)),
        ReportAddAnswer::FullOfReporter => {
            let text = format!(
                "{REPORTS_OPEN_OF_ONE_MAX} reports of account {} are open there already; report again once some are \
                 resolved",
                report.reporter
            );
            Err(Error::new(ErrorCode::LimitReached, text))
        }
        ReportAddAnswer::Full => {
            let text = format!(
                "{REPORTS_OPEN_MAX} reports of that bucket are open, and nobody has many more of them than account {}; \
                 report again once some are resolved",
                report.reporter
            );
            Err(Error::new(ErrorKind::Overloaded, text))
        }
    }
}

fn token_key(tenant: &Tenant, report: &NewReport) -> Option<Vec<u8>> {
    let token = report.token.as_deref()?;
    Some(tenant.keys().report_token(report.target, report.reporter, token))
}

/// The report that was made with this one's token, if it has one, and who told it.
pub(super) async fn added_before(tenant: &Tenant, report: &NewReport) -> Result<Option<(ReportId, Epoch)>> {
    let Some(token) = token_key(tenant, report) else { return Ok(None) };
    let command = Command::new("GET").arg(&token);
    let answer = tenant.router().ask(Request::read(tenant.slot(report.target), command)).await?;
    let epoch = answer.epoch.clone();
    let id = functions::maybe_nonce(&answer.ok()?)?;
    id.map(|id| Ok((ReportId::from_u64(u64::from_be_bytes(id))?, epoch))).transpose()
}

/// Reads what is reported. Refuses posts that aren't the target's: moderators go by the report. What is gone meanwhile
/// is gone.
async fn excerpts_of(tenant: &Tenant, report: &NewReport) -> Result<Vec<PostExcerpt>> {
    let posts = tenant.posts().get_many(report.posts.iter().copied()).await?;
    for (id, post) in report.posts.iter().zip(&posts) {
        let is_anothers = match post {
            StoredPost::There(post) => ![post.writer(), post.header().author].contains(&report.target),
            StoredPost::Gone => false,
            StoredPost::Unreadable(unreadable) => unreadable.is_anothers(report.target),
        };
        if is_anothers {
            return Err(Error::invalid(format!("post {id} is not by account {}", report.target)));
        }
    }
    let there = report.posts.iter().zip(&posts).filter_map(|(id, post)| match post {
        StoredPost::There(post) => Some((*id, post)),
        StoredPost::Gone | StoredPost::Unreadable(_) => None,
    });
    Ok(excerpt::of_posts(there))
}

pub(super) fn get_request(tenant: &Tenant, id: ReportId, resolved: bool) -> Request {
    let buckets = tenant.keys().buckets();
    let bucket = id.0.bucket(buckets);
    let command =
        Command::new("HGET").arg(&tenant.keys().reports(bucket, resolved)).arg(&id.get().to_be_bytes());
    Request::read(buckets.slot(bucket), command)
}

/// A report, whether it is open or not.
pub(crate) async fn get(tenant: &Tenant, id: ReportId) -> Result<Report> {
    for resolved in [false, true] {
        let stored = tenant.router().call(get_request(tenant, id, resolved)).await?;
        if !stored.is_nil() {
            return Report::parse(id, stored.bytes()?);
        }
    }
    Err(no_report(id))
}

fn no_report(id: ReportId) -> Error {
    Error::new(ErrorKind::NotFound, format!("there is no report {id}, or no longer"))
}

/// Resolves a report, or opens it again.
pub(crate) async fn resolve(tenant: &Tenant, id: ReportId, by: Option<AccountId>) -> Result<Epoch> {
    let buckets = tenant.keys().buckets();
    let bucket = id.0.bucket(buckets);
    let tries = &mut Tries::of_report(id.get());
    loop {
        let once = async {
            let resolved = by.is_some();
            let (mut from, mut stored) =
                (!resolved, tenant.router().call(get_request(tenant, id, !resolved)).await?);
            if stored.is_nil() {
                // It is there already, and written again: a copy of the opposite in a frozen server's socket is void
                // then.
                (from, stored) = (resolved, tenant.router().call(get_request(tenant, id, resolved)).await?);
            }
            if stored.is_nil() {
                return Err(no_report(id));
            }
            let report = Report::parse(id, stored.bytes()?)?;
            // Whoever resolved it first has.
            let by = by.map(|by| report.resolved_by.unwrap_or(by));
            let [from, to] = [from, resolved].map(|resolved| tenant.keys().reports(bucket, resolved));
            let keys = [from, to, tenant.keys().reporters(bucket)];
            let value = report.report.stored(&report.excerpts, &draw(), by)?;
            let most = resolved.then_some(REPORTS_OPEN_MAX);
            let command = functions::report_move(
                &keys,
                (id.get(), report.report.reporter),
                &report.stamp,
                &value,
                most,
            );
            let Some(answer) = tries.send(tenant, buckets.slot(bucket), command).await? else {
                return Ok(None);
            };
            let epoch = answer.epoch.clone();
            Ok((CompareAnswer::parse(answer.ok()?)? == CompareAnswer::Done).then_some(epoch))
        };
        let once = once.await;
        if let Some(epoch) = tries.ended(once)? {
            return Ok(epoch);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_gives_back_what_it_was() {
        let id = |id| AccountId::new(id).unwrap();
        let report = NewReport {
            reporter: id(1),
            target: id(2),
            posts: vec![PostId::from_u64(77).unwrap()],
            category: ReportCategory::Legal,
            comment: "look at this".into(),
            token: None,
        };
        let of = ReportId::from_u64(7).unwrap();
        let excerpts = vec![PostExcerpt { post: report.posts[0], text: "buy".into() }];
        for (by, excerpts) in [(None, excerpts), (Some(id(3)), Vec::new())] {
            let read = Report::parse(of, &report.stored(&excerpts, &[9; 8], by).unwrap()).unwrap();
            let made = Report { id: of, report: report.clone(), excerpts, resolved_by: by, stamp: [9; 8] };
            assert_eq!(read, made);
        }
        let later = b"12345678{\"reporter\":1,\"target\":2,\"category\":\"gossip\"}";
        assert_eq!(Report::parse(of, later).unwrap().report.category, ReportCategory::Other);
        assert!(Report::parse(of, b"1").is_err() && Report::parse(of, b"12345678{}").is_err());
        assert!(NewReport { target: id(1), ..report.clone() }.check().is_err());
        for token in [String::new(), "t".repeat(TOKEN_LEN_MAX + 1)] {
            assert!(NewReport { token: Some(token), ..report.clone() }.check().is_err());
        }
        assert!(NewReport { comment: "x".repeat(REPORT_COMMENT_CHARS_MAX + 1), ..report }.check().is_err());
    }
}
