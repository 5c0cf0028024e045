//! Moderation: what moderators say of posts, and reports. What state an account is in: `update_account`.

use super::Engine;
use crate::error::{CallFuture, Error};
use crate::ids::{AccountId, PostId};
use crate::moderation::{
    self, Moderation, NewReport, Report, ReportCategory, ReportId, ReportList, ReportQuery,
};
use crate::settings::Receipt;

impl Engine {
    /// Moderates a post: it is hidden from all but its author, or its attachments at first. Its
    /// author's edits don't change that. It shows everywhere within `visible_within`.
    ///
    /// [`Invalid`](crate::ErrorKind::Invalid): it is to show, and waits for a moderator:
    /// [`decide_held`](Self::decide_held). [`NotFound`](crate::ErrorKind::NotFound): there is no such post.
    pub fn moderate(&self, post: PostId, moderation: Moderation) -> CallFuture<'_, Receipt> {
        Box::pin(async move {
            let epoch = moderation::moderate(&self.tenant, post, moderation).await?;
            self.acknowledged(epoch).await
        })
    }

    /// Reports an account, perhaps with some of its posts. A call whose answer got lost may have stored the report;
    /// made again with the same token it gives that one, without a token it makes another one.
    ///
    /// [`Overloaded`](crate::ErrorKind::Overloaded): too many reports about accounts of that bucket are open, and
    /// nobody has many more than this reporter; of somebody who has, the newest one makes room.
    /// [`LimitReached`](crate::ErrorCode::LimitReached): too many of them are this reporter's
    /// ([`REPORTS_OPEN_OF_ONE_MAX`](crate::REPORTS_OPEN_OF_ONE_MAX)).
    pub fn report<'a>(&'a self, report: &'a NewReport) -> CallFuture<'a, Receipt<ReportId>> {
        Box::pin(async move {
            let (id, epoch) = moderation::add(&self.tenant, report).await?;
            Ok(self.acknowledged(epoch).await?.with(id))
        })
    }

    /// Lists reports, newest first, page by page. It asks all buckets, unless it is for one account: for moderators'
    /// pages.
    pub fn reports<'a>(&'a self, query: &'a ReportQuery) -> CallFuture<'a, ReportList> {
        Box::pin(moderation::list(&self.tenant, query))
    }

    /// Reads a report, open or resolved.
    ///
    /// [`NotFound`](crate::ErrorKind::NotFound): there is no such report, or no longer.
    pub fn find_report(&self, report: ReportId) -> CallFuture<'_, Report> {
        Box::pin(moderation::get(&self.tenant, report))
    }

    /// Resolves a report; of resolved ones the oldest go, a few hundred in each bucket are kept.
    ///
    /// [`Invalid`](crate::ErrorKind::Invalid): it is open, and about a post that was held back, which nobody would look
    /// at any more: [`decide_held`](Self::decide_held). [`NotFound`](crate::ErrorKind::NotFound): there is no such
    /// report.
    pub fn resolve_report(&self, report: ReportId, moderator: AccountId) -> CallFuture<'_, Receipt> {
        Box::pin(async move {
            let Report { report: of, resolved_by, .. } = moderation::get(&self.tenant, report).await?;
            if of.category == ReportCategory::Held && resolved_by.is_none() {
                return Err(Error::invalid(format!(
                    "report {report} is about a post that was held back: release it, or drop it (`decide_held`)"
                )));
            }
            let epoch = moderation::resolve(&self.tenant, report, Some(moderator)).await?;
            self.acknowledged(epoch).await
        })
    }

    /// Opens a resolved report again.
    pub fn reopen_report(&self, report: ReportId) -> CallFuture<'_, Receipt> {
        Box::pin(async move {
            let epoch = moderation::resolve(&self.tenant, report, None).await?;
            self.acknowledged(epoch).await
        })
    }
}
